/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TENSOR_SAVED_STATE_H
#define LCOMM_TENSOR_SAVED_STATE_H

/* lcomm_state_save, _load and their kin: what of a communicator has a state, and when it may be
 * saved and loaded. saved_state_save.c says where the bytes go, saved_state_load.c brings all ranks
 * to one verdict about what they read; the bytes are of feedback/checkpoint.h. */

#include "libcomm/feedback/checkpoint.h"

/* All tensors in their order, then the residuals that have a name, the newest first. The buckets
 * are as they are now. Free the items. MEMORY. */
lcomm_status lcomm_saved_state_list(lcomm_comm *comm, lcomm_ef_list *list);

/* What goes over to another communicator: of residuals all that are not apart, by their keys. */
lcomm_status lcomm_saved_state_list_carried(lcomm_comm *comm, lcomm_ef_list *list);

/* What the guard remembers of tensors and calls, as it was read. */

/* What is kept of calls is where the codecs of their guards have it; what the next call pays, where
 * that of the policy has it, which any other with error feedback shares. */
void lcomm_saved_guards_soften(lcomm_restore *restore);

uint64_t lcomm_saved_guards_hash(const lcomm_restore *restore);

/* Put it in place, after what is kept. True when a tensor has another codec than before; buckets
 * are to be planned then. */
bool lcomm_saved_guards_commit(lcomm_comm *comm, const lcomm_restore *restore);

/* Load what each rank of `comm` brings by source->bring, of a communicator of `ranks_before` ranks,
 * which it was part of. Collective; errors as lcomm_state_read. `call` is named. */
lcomm_status lcomm_saved_state_bring(lcomm_comm *comm, const char *call,
                                     const lcomm_state_source *source, int ranks_before);

/* The same inside a step, which has grouped all tensors. */
lcomm_status lcomm_saved_state_resume(lcomm_comm *comm, const char *call,
                                      const lcomm_state_source *source, int ranks_before);

/* STATE while a call with one of the residuals that have a name is in flight. */
lcomm_status lcomm_saved_state_check_calls(const lcomm_comm *comm, const char *call);

#endif
