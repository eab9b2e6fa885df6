/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_API_ON_STREAM_H
#define LCOMM_API_ON_STREAM_H

/* What calls on a stream have in common. */

#include "libcomm/call/call.h"

/* Make a call in order with a stream. It is left to the stream where that can wait for it, else the
 * caller waits. left: of a call with a keeper, its request where the call was left to the stream,
 * and somebody has to wait for it before the keeper's next call. Errors as of a call. */
lcomm_status lcomm_call_on_stream(lcomm_comm *comm, lcomm_call *call, void *stream,
                                  lcomm_request *left);

#endif
