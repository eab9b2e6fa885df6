/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_COMM_CREATE_H
#define LCOMM_COMM_CREATE_H

/* Making a communicator, for all bootstraps and for lcomm_split(). */

#include "libcomm/transport/bootstrap_object.h"

/* Make a communicator of the ranks of bootstrap->base; collective. Takes the
 * object over on success; on failure the caller releases it. */
lcomm_status lcomm_comm_create(lcomm_bootstrap_object *bootstrap, const lcomm_config *config,
                               lcomm_comm **comm);

/* The same, and on failure the object is released. For libcomm-with-mpi.so, too. */
LCOMM_API lcomm_status lcomm_create_over(lcomm_bootstrap_object *bootstrap,
                                         const lcomm_config *config, lcomm_comm **comm);

/* What a caller gives to make a communicator: ARGUMENT, with the sentence, for a NULL, and for a
 * bootstrap that is none. */
lcomm_status lcomm_bootstrap_check(const lcomm_bootstrap *base, lcomm_comm *const *comm);

/* The configuration that a caller gives, NULL allowed, with all members that this version has.
 * struct_size is 0 for one that was not begun with LCOMM_CONFIG_INIT: it is refused on all ranks.
 */
lcomm_config lcomm_config_take(const lcomm_config *given);

#endif
