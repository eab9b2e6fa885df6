/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The list of transports of a build without UCX's headers. */

#include "libcomm/transport/transport.h"

extern const lcomm_transport_table lcomm_transport_shm, lcomm_transport_mpi_entry;

const lcomm_transport_table *const lcomm_transport_list[] = {
    &lcomm_transport_shm,
    &lcomm_transport_mpi_entry,
    NULL,
};

const char *lcomm_ucx_version(void) {
  return NULL;
}
