/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Times in which no stream is held, for what waits for a whole device. */

#include <time.h>

#include "libcomm/base/clock.h"
#include "libcomm/hold.h"
#include "libcomm/op.h"
#include "libcomm/run_device.h"

static void nap(void) {
  static const struct timespec moment = {.tv_nsec = 100000};
  nanosleep(&moment, NULL);
}

lcomm_status lcomm_device_pause(lcomm_comm *comm) {
  double since_s = lcomm_clock_s();
  lcomm_hold_pause();
  while (lcomm_hold_count() > 0) {
    bool moved = false;
    lcomm_status status = lcomm_operations_move(comm, &moved);
    if (status != LCOMM_OK) {
      return lcomm_error_thread(status, "%s", lcomm_last_error(comm));
    }
    if (moved) {
      since_s = lcomm_clock_s();
    } else if (lcomm_clock_s() - since_s > comm->timeout_s) {
      return lcomm_fail(comm, LCOMM_ERR_TIMEOUT,
                        "memory of a device is wanted, which has to wait for streams that wait for "
                        "earlier calls, for %g s now. A peer may be dead, stopped, or in another "
                        "call. LCOMM_TIMEOUT_S sets the patience.",
                        comm->timeout_s);
    } else {
      nap();
    }
  }
  return LCOMM_OK;
}

void lcomm_device_resume(void) {
  lcomm_hold_resume();
}

void lcomm_device_pause_to_free(void) {
  static const double PATIENCE_S = 5;
  double since_s = lcomm_clock_s();
  lcomm_hold_pause();
  while (lcomm_hold_count() > 0 && lcomm_clock_s() - since_s < PATIENCE_S) {
    nap();
  }
}
