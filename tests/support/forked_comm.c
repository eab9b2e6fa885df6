/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/forked_comm.h"

lcomm_config forked_config(lcomm_progress_mode progress) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.policy = "net=int8+ef min=1";
  config.transport = "shm";
  config.nodes = 2;
  config.timeout_s = 60;
  config.progress = progress;
  return config;
}

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
