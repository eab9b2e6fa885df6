/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "libcomm/transport/mpi/mpi_table.h"

#include <stdatomic.h>

#include "libcomm/base/error.h"

static _Atomic(const lcomm_mpi_table *) registered;

lcomm_status lcomm_mpi_register(const lcomm_mpi_table *table) {
  if (table->version != lcomm_version()) {
    return lcomm_error_thread(LCOMM_ERR_UNSUPPORTED,
                              "libcomm-with-mpi.so is of version %d and libcomm.so of %d; install "
                              "both from one build",
                              table->version, lcomm_version());
  }
  atomic_store(&registered, table);
  return LCOMM_OK;
}

const lcomm_mpi_table *lcomm_mpi_registered(void) {
  return atomic_load(&registered);
}

bool lcomm_mpi_allows_threads(void) {
  const lcomm_mpi_table *mpi = lcomm_mpi_registered();
  return mpi && mpi->allows_threads();
}

lcomm_status lcomm_bootstrap_mpi_part(void *parent_mpi, const int *members, int count, int tag,
                                      lcomm_bootstrap_object *bootstrap) {
  return lcomm_mpi_registered()->part(parent_mpi, members, count, tag, bootstrap);
}
