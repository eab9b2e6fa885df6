/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Shards of a communicator: their life, and what goes wrong. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/engine/entry.h"
#include "libcomm/shards/shards_internal.h"

/* -------------------------------------------------------------------- life */

static void free_shards(lcomm_shards *shards) {
  for (int i = 0; shards->peers && i < shards->service->size; i++) {
    free(shards->peers[i].bytes);
  }
  free(shards->peers);
  free(shards->self);
  free(shards->vectors);
  lcomm_shard_roles_free(&shards->roles);
  pthread_mutex_destroy(&shards->lock);
  pthread_cond_destroy(&shards->news);
  free(shards);
}

static bool make_peers(lcomm_shards *shards) {
  int size = shards->service->size;
  int rank = shards->service->rank;
  shards->peers = calloc((size_t)size, sizeof *shards->peers);
  shards->self = calloc(1, lcomm_quorum_mask_size(size));
  bool whole = shards->peers && shards->self;
  for (int i = 0; whole && i < size; i++) {
    shards->peers[i].bytes = calloc(1, lcomm_shard_header_size(size));
    whole = shards->peers[i].bytes != NULL;
  }
  if (whole) {
    shards->self[rank / 8] |= (uint8_t)(1 << rank % 8);
  }
  return whole;
}

/* Time-outs of the condition count on the clock of clock.h. */
static void init_news(lcomm_shards *shards) {
  pthread_condattr_t attributes;
  pthread_mutex_init(&shards->lock, NULL);
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&shards->news, &attributes);
  pthread_condattr_destroy(&attributes);
}

static void set_rule(lcomm_shards *shards, const lcomm_shard_roles *roles) {
  const lcomm_quorum_policy *policy = &shards->comm->settings.policy.quorum;
  int ranks = shards->comm->size, needed = lcomm_policy_quorum(policy, roles->workers);
  /* stale=N:drop counts rounds of single ranks over all lanes. */
  bool has_nodes = shards->comm->topo.nodes > 1 && shards->comm->topo.nodes < ranks;
  shards->collects = has_nodes && !policy->drops && roles->servers == 0;
  shards->stale.rule = (lcomm_stale_rule){.steps = policy->stale, .drops = policy->drops};
  if (policy->stale > 0) {
    shards->rule = lcomm_stale_quorum(&shards->stale.rule, ranks, roles->apart, LCOMM_SHARD_KEPT);
    snprintf(shards->word, sizeof(shards->word), "stale=%u%s", policy->stale,
             policy->drops ? ":drop" : "");
    return;
  }
  shards->rule = (lcomm_quorum_rule){.ranks = ranks,
                                     .needed = needed,
                                     .late_s = policy->late_ms / 1000.0,
                                     .kept = LCOMM_SHARD_KEPT,
                                     .apart = roles->apart};
  if (roles->servers > 0) {
    snprintf(shards->word, sizeof(shards->word), "algo=servers");
  } else {
    snprintf(shards->word, sizeof(shards->word), "quorum=%d", needed);
  }
}

bool lcomm_shards_sum_calls(const lcomm_shards *shards) {
  return shards && shards->stale.rule.steps == 0 && shards->roles.servers == 0;
}

lcomm_shard_staleness *lcomm_shards_stale(lcomm_shards *shards) {
  return &shards->stale;
}

lcomm_shard_staleness *lcomm_shards_stale_of(const lcomm_comm *comm) {
  lcomm_shards *shards = comm->deferred.shards;
  return shards && shards->stale.rule.steps > 0 ? &shards->stale : NULL;
}

lcomm_status lcomm_shards_make(lcomm_comm *comm, lcomm_comm *service, lcomm_shard_roles *roles) {
  lcomm_shards *made = calloc(1, sizeof *made);
  if (!made) {
    return LCOMM_ERR_MEMORY;
  }
  made->comm = comm;
  made->service = service;
  set_rule(made, roles);
  init_news(made);
  if (!make_peers(made) || lcomm_enter(service) != LCOMM_OK) {
    free_shards(made);
    return LCOMM_ERR_MEMORY;
  }
  made->roles = *roles;
  *roles = (lcomm_shard_roles){0};
  comm->deferred.shards = service->deferred.shards = made;
  service->deferred.start = lcomm_shards_serve;
  service->deferred.for_others = true;
  atomic_store(&service->deferred.open, true);
  lcomm_exit(service);
  lcomm_progress_thread_wake(service->progress.thread);
  return LCOMM_OK;
}

lcomm_comm *lcomm_shards_take_down(lcomm_comm *comm) {
  lcomm_shards *shards = comm->deferred.shards;
  if (!shards) {
    return NULL;
  }
  lcomm_comm *service = shards->service;
  if (lcomm_enter(service) == LCOMM_OK) {
    atomic_store(&service->deferred.open, false);
    service->deferred.for_others = false;
    service->deferred.shards = NULL;
    lcomm_pairs_cancel(service);
    lcomm_exit(service);
  }
  comm->deferred.shards = NULL;
  free_shards(shards);
  return service;
}

/* -------------------------------------------------------------------- counters */

void lcomm_shards_add_stats(const lcomm_comm *comm, lcomm_stats *stats) {
  const lcomm_shards *shards = comm->deferred.shards;
  if (!shards || lcomm_enter(shards->service) != LCOMM_OK) {
    return;
  }
  const lcomm_stats *of = &shards->service->stats;
  for (int i = 0; i < LCOMM_LINK_COUNT; i++) {
    stats->sent_bytes[i] += of->sent_bytes[i];
    stats->received_bytes[i] += of->received_bytes[i];
    stats->exact_bytes[i] += of->exact_bytes[i] + shards->saved_bytes[i];
    stats->sent_messages[i] += of->sent_messages[i];
  }
  lcomm_exit(shards->service);
}

void lcomm_shards_reset_stats(const lcomm_comm *comm) {
  lcomm_shards *shards = comm->deferred.shards;
  if (!shards || lcomm_enter(shards->service) != LCOMM_OK) {
    return;
  }
  memset(&shards->service->stats, 0, sizeof(shards->service->stats));
  memset(shards->saved_bytes, 0, sizeof(shards->saved_bytes));
  lcomm_exit(shards->service);
}

/* ----------------------------------------------------------- what goes wrong */

void lcomm_shards_tell(lcomm_shards *shards) {
  pthread_mutex_lock(&shards->lock);
  pthread_cond_broadcast(&shards->news);
  pthread_mutex_unlock(&shards->lock);
}

double lcomm_shards_patience_s(const lcomm_shards *shards, lcomm_shard_patience whom) {
  double timeout_s = shards->comm->settings.timeout_s;
  switch (whom) {
  case LCOMM_SHARD_FOR_RANKS:
    return timeout_s;
  case LCOMM_SHARD_FOR_NODES:
    return 1 + 1.25 * timeout_s;
  case LCOMM_SHARD_FOR_OWNER:
    return shards->collects ? 2 + 2 * timeout_s : 1 + 1.25 * timeout_s;
  default:
    return 3 + 3 * timeout_s;
  }
}

/* Whom a round needs, for sentences. */
static const char *say_needed(const lcomm_shards *shards, char *text, size_t size) {
  if (lcomm_shards_have_servers(shards)) {
    snprintf(text, size, "of %d workers", shards->rule.needed);
  } else {
    snprintf(text, size, "with %s", shards->word);
  }
  return text;
}

lcomm_status lcomm_shards_accuse(lcomm_shards *shards, int rank, int there, int all,
                                 const char *where, double waited_s) {
  char who[96], needed[48];
  return lcomm_fail_peer(shards->service, LCOMM_ERR_TIMEOUT, rank,
                         "%d of %d ranks%s wait for %s, without which no sum %s can go "
                         "on: it has not contributed for %g s. LCOMM_TIMEOUT_S sets the time-out.",
                         there, all, where, lcomm_comm_who(shards->service, rank, who, sizeof(who)),
                         say_needed(shards, needed, sizeof(needed)), waited_s);
}

/* Ranks have the same numbers in both, so the sentence is right in both. */
lcomm_status lcomm_shards_follow_failure(lcomm_shards *shards) {
  lcomm_comm *service = shards->service;
  lcomm_status status = (lcomm_status)atomic_load(&service->errors.status);
  if (status == LCOMM_OK) {
    return LCOMM_OK;
  }
  lcomm_fault fault = {.status = status, .author = shards->comm->rank, .culprit = LCOMM_NO_CULPRIT};
  pthread_mutex_lock(&service->errors.lock);
  if (service->errors.agreement.found) {
    fault.author = service->errors.agreement.fault.author;
    fault.culprit = service->errors.agreement.fault.culprit;
  }
  snprintf(fault.text, sizeof(fault.text), "%s", service->errors.text);
  pthread_mutex_unlock(&service->errors.lock);
  return lcomm_fault_agree(shards->comm, &fault, shards->comm->rank);
}
