/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_API_PAIR_CALLS_H
#define LCOMM_API_PAIR_CALLS_H

/* What calls of messages between two ranks share. Calls may be nested: a communicator is entered
 * as often as it is left. */

#include "libcomm/engine/pair.h"

lcomm_pair_call lcomm_pair_call_send(const void *data, uint64_t count, lcomm_dtype dtype, int peer);
lcomm_pair_call lcomm_pair_call_receive(void *data, uint64_t count, lcomm_dtype dtype, int peer);

/* "send" or "receive". */
const char *lcomm_pair_call_name(const lcomm_pair_call *call);

/* Enter the communicator; ARGUMENT for NULL. */
lcomm_status lcomm_pair_call_enter(lcomm_comm *comm, const lcomm_pair_call *call);

/* Inside: find out where the data is, and refuse what cannot be sent from or received there. */
lcomm_status lcomm_pair_call_check(lcomm_comm *comm, lcomm_pair_call *call);

/* Check a call, and make it, start it, or put it into a stream. Errors as in libcomm_pairs.h. */
lcomm_status lcomm_pair_call_make(lcomm_comm *comm, lcomm_pair_call *call);
lcomm_status lcomm_pair_call_start(lcomm_comm *comm, lcomm_pair_call *call, lcomm_request *request);
lcomm_status lcomm_pair_call_on_stream(lcomm_comm *comm, lcomm_pair_call *call, void *stream);

#endif
