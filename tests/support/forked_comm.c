/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/forked_comm.h"

lcomm_comm *forked_create(forked *self, const lcomm_config *config) {
  lcomm_comm *comm = NULL;
  lcomm_status status = lcomm_create(&self->boot, config, &comm);
  forked_require(self, status == LCOMM_OK, "no communicator: %s", lcomm_last_error(NULL));
  return comm;
}

void forked_fine(forked *self, const lcomm_comm *comm, lcomm_status status, const char *what) {
  forked_require(self, status == LCOMM_OK, "%s: %s", what, lcomm_last_error(comm));
}

void forked_destroy(forked *self, lcomm_comm *comm) {
  lcomm_status status = lcomm_destroy(comm);
  forked_require(self, status == LCOMM_OK, "the end: %s", lcomm_status_name(status));
}
