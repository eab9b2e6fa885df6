/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/comm/quorum_service.h"

#include "libcomm/base/fork.h"
#include "libcomm/include/libcomm_interpose.h"
#include "libcomm/shards/shards.h"

static const char *word(const lcomm_comm *comm) {
  const lcomm_policy *policy = &comm->settings.policy;
  if (lcomm_policy_has_servers(policy)) {
    return "algo=servers";
  }
  return policy->quorum.stale > 0 ? "stale=" : "quorum=";
}

/* By what all ranks know alike. */
static lcomm_status check(const lcomm_comm *comm, const lcomm_shard_roles *roles) {
  int needed = lcomm_policy_quorum(&comm->settings.policy.quorum, roles->workers);
  if (needed > roles->workers) {
    return lcomm_error_thread(LCOMM_ERR_ARGUMENT,
                              "quorum=%d needs more ranks than the %d of the communicator%s; give "
                              "a number up to that, or a share such as quorum=90%%",
                              needed, roles->workers,
                              roles->servers > 0 ? " that are no servers" : "");
  }
  return LCOMM_OK;
}

/* Of one rank alone, too, which others may join. */
static lcomm_status check_elastic(const lcomm_comm *comm) {
  if (!comm->bootstrap.elastic) {
    return LCOMM_OK;
  }
  return lcomm_error_thread(LCOMM_ERR_UNSUPPORTED,
                            "%s lets steps go on without some ranks, and with LCOMM_ELASTIC=on "
                            "each step waits for all, so that they can go on from one step when a "
                            "rank is lost; leave out one of the two",
                            word(comm));
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

static lcomm_status begin(lcomm_comm *comm, lcomm_shard_roles *roles) {
  lcomm_comm *service = NULL;
  lcomm_why why = {.text = ""};
  LCOMM_TRY(check_elastic(comm));
  lcomm_status status =
      lcomm_shard_roles_make(&comm->settings.policy.quorum.servers, &comm->topo, roles, &why);
  if (status != LCOMM_OK) {
    return lcomm_error_thread(status, "%s",
                              status == LCOMM_ERR_MEMORY ? "out of memory" : why.text);
  }
  LCOMM_TRY(comm->size > 1 ? check(comm, roles) : LCOMM_OK);
  LCOMM_TRY(comm->size > 1 ? make(comm, &service) : LCOMM_OK);
  if (service && lcomm_shards_make(comm, service, roles) != LCOMM_OK) {
    lcomm_release(service);
    return lcomm_fail(comm, LCOMM_ERR_MEMORY, "out of memory for what %s needs", word(comm));
  }
  return LCOMM_OK;
}

lcomm_status lcomm_quorum_service_begin(lcomm_comm *comm) {
  lcomm_shard_roles roles = {0};
  if (!lcomm_policy_has_owners(&comm->settings.policy)) {
    return LCOMM_OK;
  }
  lcomm_status status = begin(comm, &roles);
  lcomm_shard_roles_free(&roles);
  return status;
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
