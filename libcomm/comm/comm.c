/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The communicator: queries and the end. How it is made: create.c. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/base/clock.h"
#include "libcomm/base/log.h"
#include "libcomm/call/call_watch.h"
#include "libcomm/comm/comm_left.h"
#include "libcomm/comm/quorum_service.h"
#include "libcomm/device/device_deferred.h"
#include "libcomm/engine/entry.h"
#include "libcomm/engine/flow.h"
#include "libcomm/engine/lanes.h"
#include "libcomm/engine/lost_ranks.h"
#include "libcomm/engine/pair.h"
#include "libcomm/engine/peer_memory.h"
#include "libcomm/engine/progress_thread.h"
#include "libcomm/engine/recording.h"
#include "libcomm/engine/siblings.h"
#include "libcomm/observe/capture.h"
#include "libcomm/shards/shards.h"
#include "libcomm/tensor/bucket.h"
#include "libcomm/tensor/residual_quorum.h"

/* --------------------------------------------------------------- queries */

int lcomm_rank(const lcomm_comm *comm) {
  return comm ? comm->rank : -1;
}

int lcomm_size(const lcomm_comm *comm) {
  return comm ? comm->size : -1;
}

int lcomm_node(const lcomm_comm *comm) {
  return comm ? comm->topo.node[comm->rank] : -1;
}

int lcomm_nodes(const lcomm_comm *comm) {
  return comm ? comm->topo.nodes : -1;
}

int lcomm_local_rank(const lcomm_comm *comm) {
  return comm ? comm->topo.local[comm->rank] : -1;
}

int lcomm_travels_over(const lcomm_comm *comm, const char *transport) {
  return comm && transport && lcomm_links_use(&comm->links, transport);
}

const char *lcomm_policy_string(const lcomm_comm *comm) {
  return comm ? comm->settings.policy_text : "";
}

lcomm_status lcomm_stats_get(const lcomm_comm *comm, lcomm_stats *stats) {
  if (!comm || !stats) {
    return lcomm_refuse_null(comm, "lcomm_stats_get", "stats");
  }
  lcomm_comm *entered = (lcomm_comm *)(uintptr_t)comm; /* only the lock changes */
  LCOMM_TRY(lcomm_enter(entered));
  *stats = comm->stats;
  stats->memory_bytes = comm->links.memory_size;
  stats->run_hits = comm->runs.cache.hits;
  stats->run_misses = comm->runs.cache.misses;
  lcomm_shards_add_stats(comm, stats);
  lcomm_exit(entered);
  return LCOMM_OK;
}

lcomm_status lcomm_rack_stats_get(const lcomm_comm *comm, lcomm_rack_stats *stats) {
  if (!comm || !stats) {
    return lcomm_refuse_null(comm, "lcomm_rack_stats_get", "stats");
  }
  lcomm_comm *entered = (lcomm_comm *)(uintptr_t)comm; /* only the lock changes */
  LCOMM_TRY(lcomm_enter(entered));
  *stats = comm->observers.in_rack;
  stats->racks = (uint64_t)comm->topo.racks.count;
  lcomm_exit(entered);
  return LCOMM_OK;
}

lcomm_status lcomm_stats_reset(lcomm_comm *comm) {
  LCOMM_TRY(lcomm_enter_given(comm, "lcomm_stats_reset"));
  memset(&comm->stats, 0, sizeof(comm->stats));
  comm->observers.in_rack = (lcomm_rack_stats){0};
  comm->runs.cache.hits = comm->runs.cache.misses = 0;
  lcomm_shards_reset_stats(comm);
  lcomm_exit(comm);
  return LCOMM_OK;
}

/* --------------------------------------------------------------- the end */

static void free_runs(lcomm_run *run) {
  while (run) {
    lcomm_run *next = run->cached.next;
    lcomm_run_destroy(run);
    run = next;
  }
}

static void free_operations(lcomm_comm *comm) {
  lcomm_operation *operation = comm->operations.made;
  while (operation) {
    lcomm_operation *next = operation->next_made;
    free(operation);
    operation = next;
  }
  lcomm_call_watch_free(comm);
  lcomm_recordings_free(comm);
  lcomm_run_cache_free(&comm->runs.cache);
  free_runs(comm->runs.spent);
  lcomm_lanes_free(comm);
  free(comm->runs.tiles);
}

void lcomm_comm_free(lcomm_comm *comm, bool orderly) {
  lcomm_progress_thread_stop(comm);
  lcomm_summary_close(&comm->observers.summary);
  lcomm_trace_destroy(comm->observers.trace);
  lcomm_progress_thread_free(comm); /* its lock guards the two above */
  lcomm_tensor_set_free(comm);
  lcomm_residual_set_free(comm);
  lcomm_quorum_service_end(comm, orderly);
  free_operations(comm);
  lcomm_peer_memory_free(comm);
  lcomm_flow_cancel(comm);
  lcomm_pairs_cancel(comm);
  bool is_over = lcomm_links_close(&comm->links, orderly);
  if (comm->bootstrap.release) {
    comm->bootstrap.release(&comm->bootstrap, orderly);
  }
  lcomm_capture_free(comm->observers.capture);
  if (is_over) {
    lcomm_comm_free_rest(comm);
  } else {
    lcomm_left_comms_add(comm);
  }
}

static bool is_busy(const lcomm_comm *comm) {
  return lcomm_comm_is_busy(comm) || lcomm_residual_quorums_are_busy(comm);
}

/* From here on nobody but the caller moves it. */
static void stop(lcomm_comm *comm) {
  lcomm_siblings_remove(comm);
  lcomm_progress_thread_stop(comm);
  if (is_busy(comm) && atomic_load(&comm->errors.status) == LCOMM_OK) {
    lcomm_fail(comm, LCOMM_ERR_ABORTED,
               "lcomm_destroy was called with operations in flight; wait for them first");
  }
}

/* All operations are done, so this is no error: nothing of the program's is lost. */
static void warn_of_unparted(const lcomm_comm *comm, int peer, double limit_s) {
  char who[96], silent[96], sentence[LCOMM_ERROR_MAX];
  snprintf(sentence, sizeof(sentence),
           "%s: in lcomm_destroy all operations are done, but %s has not ended its part within "
           "%g s: is it dead, or stopped? The communicator is destroyed without it; what MPI may "
           "still touch stays allocated until this process ends",
           lcomm_comm_who(comm, comm->rank, who, sizeof(who)),
           lcomm_comm_who(comm, peer, silent, sizeof(silent)), limit_s);
  lcomm_log(LCOMM_LOG_WARN, sentence);
}

/* Ranks that have not noticed yet that all are here may have told this one so: that is heard
 * before the links are closed. False when a peer does not come along, or has failed. */
bool lcomm_comm_part(lcomm_comm *comm) {
  static const double MOMENT_S = 1e-3;
  static const double LIMIT_S = 5;
  double timeout_s = comm->settings.timeout_s;
  double limit_s = timeout_s < LIMIT_S ? timeout_s : LIMIT_S;
  double end_s = lcomm_clock_s() + limit_s;
  lcomm_flow_drain(comm);
  lcomm_links_part(&comm->links);
  while (lcomm_control_receive(comm) == LCOMM_OK) {
    int peer = lcomm_links_unparted(&comm->links);
    if (peer < 0) {
      return true;
    }
    if (lcomm_clock_s() >= end_s) {
      warn_of_unparted(comm, peer, limit_s);
      return false;
    }
    lcomm_comm_sleep(comm, MOMENT_S);
  }
  return false;
}

/* Its ranks have said farewell to each other. */
static void destroy_past(lcomm_comm *comm) {
  bool moved = false;
  stop(comm);
  lcomm_operations_move(comm, &moved); /* cancels what is left after a failure */
  lcomm_comm_free(comm, comm->changes.parted);
  lcomm_left_comms_free();
  lcomm_device_do_deferred();
}

lcomm_status lcomm_destroy(lcomm_comm *comm) {
  if (!comm) {
    return LCOMM_OK;
  }
  if (lcomm_is_child(comm)) {
    return lcomm_refuse_child(comm);
  }
  if (comm->changes.over) {
    destroy_past(comm);
    return LCOMM_OK;
  }
  LCOMM_TRY(lcomm_enter(comm));
  (void)lcomm_operations_finish(comm); /* a failure is found again below */
  (void)lcomm_residuals_join(comm);
  (void)lcomm_results_finish(comm); /* likewise */
  (void)lcomm_servers_leave(comm);
  lcomm_recordings_close(comm);
  lcomm_exit(comm);
  stop(comm);
  lcomm_fault lost;
  if (atomic_load(&comm->errors.status) == LCOMM_OK && lcomm_lost_ranks_find(comm, &lost)) {
    (void)lcomm_fault_declare(comm, &lost); /* peers find it by themselves: nobody listens */
  }
  lcomm_status status = lcomm_control_receive(comm);
  comm->operations.inside = LCOMM_OP_KIND_DESTROY;
  if (status == LCOMM_OK) {
    status = lcomm_call_barrier(comm);
  }
  bool parted = false;
  if (status == LCOMM_OK) {
    parted = lcomm_comm_part(comm);
  }
  bool moved = false;
  lcomm_operations_move(comm, &moved); /* after a failure: cancels what is left */
  if (status != LCOMM_OK) {
    lcomm_error_thread_keep(comm->errors.text);
  }
  lcomm_comm_free(comm, parted);
  lcomm_left_comms_free();
  lcomm_device_do_deferred();
  return status;
}

void lcomm_stats_hide(lcomm_comm *comm) {
  if (comm && !lcomm_is_child(comm)) {
    lcomm_summary_hide(&comm->observers.summary);
  }
}

int lcomm_is_busy(lcomm_comm *comm) {
  if (!comm || lcomm_enter(comm) != LCOMM_OK) {
    return 0;
  }
  bool is = is_busy(comm);
  lcomm_exit(comm);
  return is;
}

void lcomm_retire(lcomm_comm *comm) {
  if (comm && !lcomm_is_child(comm)) {
    stop(comm);
  }
}

/* No operation is in flight anywhere, so links may be cut: at most control messages are lost. */
void lcomm_release(lcomm_comm *comm) {
  bool moved = false;
  if (!comm || lcomm_is_child(comm)) {
    return;
  }
  lcomm_operations_move(comm, &moved); /* after a failure: cancels what is left */
  lcomm_comm_free(comm, false);
  lcomm_left_comms_free(); /* who releases many destroys none */
}
