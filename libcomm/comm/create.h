/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_COMM_CREATE_H
#define LCOMM_COMM_CREATE_H

/* Making a communicator, for all bootstraps and for lcomm_split(). */

#include "libcomm/transport/bootstrap_object.h"

/* Make a communicator of the ranks of bootstrap->boot; collective. Takes the
 * object over on success; on failure the caller releases it. */
lcomm_status lcomm_comm_create(lcomm_bootstrap_object *bootstrap, const lcomm_config *config,
                               lcomm_comm **comm);

/* The same, and on failure the object is released. For libcomm-with-mpi.so, too. */
LCOMM_API lcomm_status lcomm_create_over(lcomm_bootstrap_object *bootstrap,
                                         const lcomm_config *config, lcomm_comm **comm);

#endif
