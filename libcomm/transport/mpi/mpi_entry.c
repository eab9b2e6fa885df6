/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* MPI's place in the list of transports. The transport itself is in libcomm-with-mpi.so,
 * which a program may have loaded; what is opened here is that transport's from then on. */

#include <stdio.h>

#include "libcomm/transport/mpi/mpi_table.h"

static lcomm_status open_registered(const lcomm_transport_setup *setup, lcomm_transport **transport,
                                    lcomm_why *why) {
  const lcomm_mpi_table *mpi = lcomm_mpi_registered();
  if (!mpi) {
    return lcomm_why_set(
        why, LCOMM_ERR_UNSUPPORTED,
        "the program is not linked with libcomm-with-mpi.so, which libcomm needs for it");
  }
  return mpi->transport->open(setup, transport, why);
}

extern const lcomm_transport_table lcomm_transport_mpi_entry;

const lcomm_transport_table lcomm_transport_mpi_entry = {
    .name = "mpi",
    .summary = "MPI point-to-point messages",
    .open = open_registered,
};
