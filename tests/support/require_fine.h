/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_REQUIRE_FINE_H
#define LCOMM_TESTS_SUPPORT_REQUIRE_FINE_H

#include "tests/support/mpi_property.h"

/* A call of the communicator went well. It may be gone then, or NULL. */
static inline void require_fine(lcomm_comm *comm, lcomm_status status) {
  const char *why = status == LCOMM_OK ? "" : lcomm_last_error(comm);
  require(status == LCOMM_OK, "%s: %s", lcomm_status_name(status), why);
}

#endif
