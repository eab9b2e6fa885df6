/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Quiescing: times in which all stream gates are open, for work that waits for a whole device. */

#include "libcomm/base/backoff.h"
#include "libcomm/base/clock.h"
#include "libcomm/device/stream_gate.h"
#include "libcomm/engine/operation.h"
#include "libcomm/engine/run_device.h"

enum { QUIESCE_NS = 100000 }; /* between two looks */

/* Where an operation goes step by step, whoever moves messages calls CUDA, and may wait there for
 * the one who waits for lanes. */
bool lcomm_device_is_quiet(const lcomm_comm *comm) {
  return lcomm_stream_gate_count() == 0 && (comm->runs.played == 0 || comm->runs.stepped == 0);
}

/* Streams of this communicator have its patience here, others' are looked after by
 * the threads that drive them. */
lcomm_status lcomm_device_quiesce(lcomm_comm *comm) {
  lcomm_backoff pause = {.sleep_ns = QUIESCE_NS};
  lcomm_stream_gate_quiesce();
  while (!lcomm_device_is_quiet(comm)) {
    bool moved = false;
    lcomm_status status = lcomm_operations_move(comm, &moved);
    if (status == LCOMM_OK && !moved) {
      lcomm_external_progress(&comm->waiting.external, &comm->bootstrap, lcomm_clock_s());
      status = lcomm_operations_check(comm);
      lcomm_backoff_step(&pause);
    }
    if (status != LCOMM_OK) {
      return lcomm_error_thread(status, "%s", lcomm_last_error(comm));
    }
  }
  return LCOMM_OK;
}

void lcomm_device_resume(void) {
  lcomm_stream_gate_resume();
}

void lcomm_device_quiesce_to_free(void) {
  static const double PATIENCE_S = 5;
  double since_s = lcomm_clock_s();
  lcomm_backoff pause = {.sleep_ns = QUIESCE_NS};
  lcomm_stream_gate_quiesce();
  while (lcomm_stream_gate_count() > 0 && lcomm_clock_s() - since_s < PATIENCE_S) {
    lcomm_backoff_step(&pause);
  }
}
