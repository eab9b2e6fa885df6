/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Making a communicator. Every rank sends a handshake; all ranks check all handshakes and come to
 * the same verdict, so either all succeed or all return the same error.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libcomm/base/descriptors.h"
#include "libcomm/base/env.h"
#include "libcomm/base/fork.h"
#include "libcomm/base/log.h"
#include "libcomm/base/verdict.h"
#include "libcomm/comm/announce.h"
#include "libcomm/comm/create.h"
#include "libcomm/comm/create_internal.h"
#include "libcomm/comm/quorum_service.h"
#include "libcomm/engine/lost_ranks.h"
#include "libcomm/engine/operation.h"
#include "libcomm/engine/progress_thread.h"
#include "libcomm/engine/siblings.h"
#include "libcomm/observe/capture.h"
#include "libcomm/plan/policy_match.h"
#include "libcomm/tensor/bucket.h"
#include "libcomm/tensor/residual.h"
#include "libcomm/topo/topo_file.h"

lcomm_status lcomm_create_complain(int rank, const lcomm_identity *identity, lcomm_status status,
                                   const char *sentence) {
  return lcomm_error_thread(status, "rank %d (host %.63s): %s", rank, identity->host, sentence);
}

static void take_file(lcomm_comm *comm, const lcomm_topo *file) {
  char text[LCOMM_TOPO_NAME_MAX + 256];
  lcomm_topo_taken taken = lcomm_topo_take(&comm->topo, file);
  bool racks = lcomm_topo_take_racks(&comm->topo, file);
  bool left = file->racks.count > 0 && comm->topo.racks.count == 0;
  snprintf(text, sizeof(text), "LCOMM_TOPO_FILE=%.95s: %s%s", lcomm_env_get(LCOMM_ENV_TOPO_FILE),
           taken == LCOMM_TOPO_TAKEN_LINKS   ? "what links cost and which devices reach each other"
           : taken == LCOMM_TOPO_TAKEN_COSTS ? "what links cost"
           : racks                           ? "of links nothing"
                                             : "nothing was measured, so nothing is taken from it",
           racks  ? "; the racks of all hosts"
           : left ? "; no racks, as it does not name one rack for each host of these ranks"
                  : "");
  if (comm->rank == 0) {
    lcomm_log_info(text);
  }
}

static lcomm_status make_topology(lcomm_comm *comm, const lcomm_create_context *m) {
  const lcomm_handshake *all = m->all;
  lcomm_why error = {"out of memory"};
  lcomm_identity *identities = calloc((size_t)comm->size, sizeof *identities);
  if (!identities) {
    return lcomm_create_complain(comm->rank, &all[comm->rank].identity, LCOMM_ERR_MEMORY,
                                 error.text);
  }
  for (int i = 0; i < comm->size; i++) {
    identities[i] = all[i].identity;
  }
  lcomm_status status =
      lcomm_topo_create(identities, comm->size, all[0].nodes, &comm->topo, &error);
  free(identities);
  if (status == LCOMM_OK && m->topo_file.size > 0) {
    take_file(comm, &m->topo_file);
  }
  if (status != LCOMM_OK) {
    return lcomm_create_complain(comm->rank, &all[comm->rank].identity, status, error.text);
  }
  return LCOMM_OK;
}

/* ------------------------------------------------------------ the communicator */

static lcomm_status gather_failed(const lcomm_bootstrap *base, size_t size) {
  return lcomm_error_thread(LCOMM_ERR_TRANSPORT,
                            "rank %d: the bootstrap could not exchange %zu bytes with the others",
                            base->rank, size);
}

/* All ranks keep the same runs, see run_cache.h. */
static uint64_t smallest_cache(const lcomm_handshake *all, int size) {
  uint64_t smallest = UINT64_MAX;
  for (int i = 0; i < size; i++) {
    smallest = all[i].run_cache_bytes < smallest ? all[i].run_cache_bytes : smallest;
  }
  return smallest;
}

static lcomm_status join_world(lcomm_comm *comm, const lcomm_handshake *all) {
  if (!comm->bootstrap.join) {
    return LCOMM_OK;
  }
  lcomm_world_rank *ranks = calloc((size_t)comm->size, sizeof *ranks);
  for (int i = 0; ranks && i < comm->size; i++) {
    ranks[i] = all[i].world;
  }
  lcomm_status status =
      ranks ? comm->bootstrap.join(&comm->bootstrap, ranks)
            : lcomm_error_thread(LCOMM_ERR_MEMORY, "rank %d: out of memory", comm->rank);
  free(ranks);
  return status;
}

static lcomm_status shake_hands(lcomm_comm *comm, const lcomm_config *config,
                                lcomm_create_context *m) {
  lcomm_handshake *all = m->all;
  size_t size = 0;
  lcomm_handshake_prepare(comm, config, &m->summary, &m->topo_file, m->mine);
  lcomm_status status = lcomm_handshake_gather(m->base, m->mine, all, &size);
  if (status != LCOMM_OK) {
    return status == LCOMM_ERR_MEMORY
               ? lcomm_error_thread(status, "rank %d: out of memory", comm->rank)
               : gather_failed(m->base, size);
  }
  LCOMM_TRY(lcomm_handshake_check(all, comm->size, comm->rank));
  LCOMM_TRY(make_topology(comm, m));
  LCOMM_TRY(join_world(comm, all));
  comm->runs.cache.limit_bytes = smallest_cache(all, comm->size);
  memcpy(comm->settings.policy_text, m->mine->policy, sizeof(comm->settings.policy_text));
  atomic_store(&comm->identity.named_rules,
               lcomm_match_named(&comm->settings.policy, comm->identity.name));
  return LCOMM_OK;
}

/* Links to all peers, on all ranks or on none. */
static lcomm_status open_links(lcomm_comm *comm, const lcomm_create_context *m) {
  lcomm_why why = {.text = "out of memory"};
  lcomm_identity *identities = calloc((size_t)comm->size, sizeof *identities);
  lcomm_transport_introduction *introductions = calloc((size_t)comm->size, sizeof *introductions);
  bool mpi_everywhere = true;
  for (int i = 0; identities && introductions && i < comm->size; i++) {
    identities[i] = m->all[i].identity;
    introductions[i] = m->all[i].introduction;
    mpi_everywhere &= m->all[i].mpi != 0;
  }
  lcomm_transport_setup setup = {.rank = comm->rank,
                                 .size = comm->size,
                                 .identities = identities,
                                 .bootstrap = m->base,
                                 .mpi = mpi_everywhere ? comm->bootstrap.mpi : NULL,
                                 .mpi_ranks = comm->bootstrap.mpi_ranks,
                                 .timeout_s = comm->settings.timeout_s,
                                 .introductions = introductions};
  lcomm_status status = identities && introductions
                            ? lcomm_links_open(&setup, m->mine->transport, &comm->links, &why)
                            : LCOMM_ERR_MEMORY;
  free(introductions);
  free(identities);
  if (status != LCOMM_OK) {
    return lcomm_create_complain(comm->rank, &m->mine->identity, status, why.text);
  }
  return LCOMM_OK;
}

/* All ranks have come this far, or none goes on. */
static lcomm_status agree(lcomm_comm *comm, const lcomm_create_context *m, lcomm_status mine) {
  lcomm_verdict verdict;
  char sentence[288];
  lcomm_status status = lcomm_verdict_gather(m->base, mine, &verdict);
  if (status == LCOMM_ERR_TRANSPORT) {
    return gather_failed(m->base, sizeof(int32_t));
  }
  LCOMM_TRY(status);
  if (verdict.status != LCOMM_OK && mine == LCOMM_OK) {
    snprintf(sentence, sizeof(sentence), "rank %d (host %.63s) could not go on: %s", verdict.rank,
             m->all[verdict.rank].identity.host, verdict.text);
    lcomm_create_complain(comm->rank, &m->mine->identity, verdict.status, sentence);
  }
  return verdict.status;
}

static void describe_capture(const lcomm_comm *comm) {
  char who[96];
  if (comm->observers.capture) {
    lcomm_capture_describe(comm->observers.capture, comm->rank, comm->size, comm->topo.nodes,
                           lcomm_comm_who(comm, comm->rank, who, sizeof(who)),
                           lcomm_comm_speaks(comm));
  }
}

static void open_summary(lcomm_comm *comm, const lcomm_create_context *m) {
  lcomm_summary_about about = {.rank = comm->rank, .size = comm->size, .nodes = comm->topo.nodes};
  snprintf(about.host, sizeof(about.host), "%s", m->mine->identity.host);
  snprintf(about.policy, sizeof(about.policy), "%s", comm->settings.policy_text);
  for (int i = 0; i < comm->links.count; i++) {
    size_t used = strlen(about.transports);
    snprintf(about.transports + used, sizeof(about.transports) - used, "%s%s", i > 0 ? ", " : "",
             comm->links.open[i]->table->name);
  }
  lcomm_summary_open(&comm->observers.summary, m->summary, &about,
                     comm->progress.thread ? lcomm_progress_thread_guard(comm->progress.thread)
                                           : NULL);
}

static void begin_trace(lcomm_comm *comm, const lcomm_create_context *m) {
  bool *elsewhere = calloc((size_t)comm->size, sizeof *elsewhere);
  bool everywhere = elsewhere != NULL;
  for (int i = 0; everywhere && i < comm->size; i++) {
    elsewhere[i] = m->all[i].identity.host_hash != m->all[0].identity.host_hash;
    everywhere = m->all[i].traced != 0;
  }
  if (lcomm_comm_speaks(comm)) {
    lcomm_trace_speak(comm->observers.trace);
  }
  lcomm_trace_run(comm->observers.trace, m->all[0].number, comm->topo.node[comm->rank]);
  if (everywhere) {
    lcomm_clock_align(comm, elsewhere);
  }
  free(elsewhere);
}

static void take_processes(lcomm_comm *comm, const lcomm_handshake *all) {
  for (int i = 0; i < comm->size; i++) {
    comm->identity.processes[i] = (lcomm_process){all[i].identity.host_hash, all[i].identity.pid};
  }
  comm->errors.agreement.listen_s = LCOMM_FAULT_LISTEN_S;
  lcomm_lost_ranks_forget(comm);
}

static lcomm_status make(lcomm_comm *comm, const lcomm_config *config, lcomm_create_context *m) {
  LCOMM_TRY(shake_hands(comm, config, m));
  LCOMM_TRY(open_links(comm, m));
  take_processes(comm, m->all);
  lcomm_comm_announce(comm, m->all);
  if (comm->observers.trace) {
    begin_trace(comm, m);
  }
  lcomm_status status = lcomm_create_choose_waiting(comm, m);
  if (lcomm_create_waiting_may_fail(comm, m)) {
    status = agree(comm, m, status);
  }
  if (status == LCOMM_OK) {
    open_summary(comm, m);
    describe_capture(comm);
  }
  if (status == LCOMM_OK && comm->observers.trace) {
    lcomm_trace_watch(comm->observers.trace,
                      comm->progress.thread ? lcomm_progress_thread_guard(comm->progress.thread)
                                            : NULL);
  }
  return status;
}

/* Of communicators in this process. */
static atomic_uint numbers;

lcomm_status lcomm_comm_create(lcomm_bootstrap_object *bootstrap, const lcomm_config *config,
                               lcomm_comm **comm) {
  LCOMM_TRY(lcomm_bootstrap_check(bootstrap ? &bootstrap->base : NULL, comm));
  lcomm_descriptors_raise();
  lcomm_comm *made = calloc(1, sizeof *made);
  lcomm_create_context m = {
      .base = &bootstrap->base,
      .all = calloc((size_t)bootstrap->base.world_size + 1, sizeof(lcomm_handshake))};
  if (made) {
    made->size = bootstrap->base.world_size;
  }
  if (!made || !m.all || !lcomm_failure_state_make(made) ||
      lcomm_tensor_set_make(made) != LCOMM_OK || lcomm_residual_set_make(made) != LCOMM_OK) {
    if (made) {
      lcomm_residual_set_free(made);
      lcomm_tensor_set_free(made);
      lcomm_failure_state_free(made);
    }
    free(made);
    free(m.all);
    return lcomm_error_thread(LCOMM_ERR_MEMORY, "rank %d: out of memory", bootstrap->base.rank);
  }
  m.mine = &m.all[bootstrap->base.world_size];
  made->rank = bootstrap->base.rank;
  made->bootstrap = *bootstrap;
  lcomm_fork_watch();
  lcomm_turn_prepare();
  made->identity.fork_generation = lcomm_fork_generation;
  made->identity.process = (long)getpid();
  made->identity.number = 1 + atomic_fetch_add(&numbers, 1);
  pthread_mutex_init(&made->errors.lock, NULL);
  pthread_mutex_init(&made->runs.device_turn, NULL);
  made->operations.next[LCOMM_SEQUENCE_SPACE_BUCKETS] = 1;
  lcomm_fingerprint_book_init(&made->fingerprints);
  lcomm_status status = make(made, config, &m);
  lcomm_topo_free(&m.topo_file);
  free(m.all);
  if (status != LCOMM_OK) {
    *bootstrap = made->bootstrap; /* the caller's again, with what was made of it */
    made->bootstrap = (lcomm_bootstrap_object){.base = bootstrap->base};
    lcomm_comm_free(made, true);
    return status;
  }
  if (!made->progress.thread) {
    lcomm_siblings_add(made);
  }
  status = lcomm_quorum_service_begin(made);
  if (status != LCOMM_OK) {
    *bootstrap = made->bootstrap;
    made->bootstrap = (lcomm_bootstrap_object){.base = bootstrap->base};
    lcomm_siblings_remove(made);
    lcomm_comm_free(made, false);
    return status;
  }
  *comm = made;
  return LCOMM_OK;
}
