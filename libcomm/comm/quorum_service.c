/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/comm/quorum_service.h"

#include "libcomm/base/fork.h"
#include "libcomm/include/libcomm_interpose.h"
#include "libcomm/shards/shards.h"

/* By what all ranks know alike. */
static lcomm_status check(lcomm_comm *comm) {
  int needed = lcomm_policy_quorum(&comm->settings.policy.quorum, comm->size);
  if (needed > comm->size) {
    return lcomm_error_thread(LCOMM_ERR_ARGUMENT,
                              "quorum=%d needs more ranks than the %d of the communicator; give a "
                              "number up to that, or a share such as quorum=90%%",
                              needed, comm->size);
  }
  if (comm->bootstrap.elastic) {
    return lcomm_error_thread(
        LCOMM_ERR_UNSUPPORTED,
        "quorum= counts the ranks that a communicator is made with, and an "
        "elastic one loses some and gets others; make one that is not elastic");
  }
  return LCOMM_OK;
}

/* Its time-out is for owners that do not answer; shards look after ranks that do not contribute. */
static lcomm_status make(lcomm_comm *comm, lcomm_comm **service) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.policy = "net=none";
  config.progress = LCOMM_PROGRESS_THREAD;
  LCOMM_TRY(lcomm_split(comm, 0, comm->rank, &config, service));
  lcomm_stats_hide(*service);
  return LCOMM_OK;
}

lcomm_status lcomm_quorum_service_begin(lcomm_comm *comm) {
  lcomm_comm *service = NULL;
  if (!lcomm_policy_has_quorum(&comm->settings.policy) || comm->size == 1) {
    return LCOMM_OK;
  }
  LCOMM_TRY(check(comm));
  LCOMM_TRY(make(comm, &service));
  if (lcomm_shards_make(comm, service) != LCOMM_OK) {
    lcomm_release(service);
    return lcomm_fail(comm, LCOMM_ERR_MEMORY, "out of memory for what quorum= needs");
  }
  return LCOMM_OK;
}

void lcomm_quorum_service_end(lcomm_comm *comm, bool orderly) {
  lcomm_comm *service = lcomm_shards_take_down(comm);
  if (!service) {
    return;
  }
  if (orderly) {
    (void)lcomm_destroy(service);
    return;
  }
  lcomm_retire(service);
  lcomm_release(service);
}
