/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_CALL_CALL_RECORD_H
#define LCOMM_CALL_CALL_RECORD_H

/* Calls in a stream that is captured into a graph (../engine/recording.h). */

#include "libcomm/call/call.h"

/* Put a call into the graph that its stream is captured into, with the number `capture`. Ranks
 * agree that all can before any of them does, so it waits for the others; ARGUMENT, the same on
 * all, where one cannot, MISMATCH where they capture different calls. */
lcomm_status lcomm_call_record(lcomm_comm *comm, lcomm_call *call, uint64_t capture);

#endif
