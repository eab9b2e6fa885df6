/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The diagnosis: a search along the ranks that wait for each other. */

#include "libcomm/engine/diagnose.h"

#include <string.h>

#include "libcomm/base/clock.h"
#include "libcomm/engine/other_waits.h"

enum { WITNESSES_MAX = 32 };

static lcomm_contact *contact_of(const lcomm_comm *comm, int rank) {
  return &comm->errors.probes.contacts[rank];
}

static bool share_host(const lcomm_comm *comm, int a, int b) {
  return comm->identity.processes[a].host_hash == comm->identity.processes[b].host_hash;
}

/* ---------------------------------------------------------------- asking */

/* Another wait than the one before: what was heard then says nothing now. */
static void forget(lcomm_comm *comm) {
  for (int rank = 0; rank < comm->size; rank++) {
    lcomm_contact *it = contact_of(comm, rank);
    it->asked_s = it->answered_s = it->relayed_s = it->denied_s = 0;
  }
}

static void ask(lcomm_comm *comm, int rank, double now_s) {
  if (now_s - contact_of(comm, rank)->sent_s >= lcomm_probe_interval_s(comm)) {
    lcomm_probe_send(comm, rank, -1, now_s);
  }
}

/* Who is asked about a rank: first those of its host, then those of ours, then the
 * others, which are tried at equal distances. */
static bool is_witness(const lcomm_comm *comm, int rank, int about) {
  if (rank == comm->rank || rank == about) {
    return false;
  }
  int stride = (comm->size + WITNESSES_MAX - 1) / WITNESSES_MAX;
  return share_host(comm, rank, about) || share_host(comm, rank, comm->rank) || rank % stride == 0;
}

static void ask_about(lcomm_comm *comm, int about, double now_s) {
  if (now_s < comm->errors.probes.next_s) {
    return;
  }
  comm->errors.probes.next_s = now_s + lcomm_probe_interval_s(comm);
  for (int rank = 0; rank < comm->size; rank++) {
    if (is_witness(comm, rank, about)) {
      lcomm_probe_send(comm, rank, about, now_s);
    }
  }
}

/* ------------------------------------------------------------- searching */

static bool is_relayed(const lcomm_comm *comm, int rank, double now_s) {
  const lcomm_contact *it = contact_of(comm, rank);
  return it->relayed_s > 0 && now_s - it->relayed_s < 4 * lcomm_probe_silence_s(comm);
}

/* What a rank has said, itself or through others; NULL when nothing was heard. */
static const lcomm_wait_state *state_of(const lcomm_comm *comm, int rank, double now_s) {
  if (lcomm_probe_answers(comm, rank, now_s)) {
    return &contact_of(comm, rank)->state;
  }
  return is_relayed(comm, rank, now_s) ? &contact_of(comm, rank)->relayed : NULL;
}

static bool is_replay(const lcomm_fingerprint *fingerprint) {
  return fingerprint->op_kind == (uint8_t)LCOMM_OP_KIND_REPLAY;
}

/* Has a rank been through with an operation? Of replays nobody says so. */
static bool has_passed(const lcomm_wait_state *state, const lcomm_wait_edge *edge) {
  uint32_t sequence = edge->sequence;
  if (is_replay(&edge->fingerprint)) {
    return false;
  }
  bool same_space =
      !is_replay(&state->fingerprint) &&
      state->sequence % LCOMM_SEQUENCE_SPACE_COUNT == sequence % LCOMM_SEQUENCE_SPACE_COUNT;
  bool in_call =
      state->activity != LCOMM_ACTIVITY_IDLE && state->activity != LCOMM_ACTIVITY_ELSEWHERE;
  uint32_t reached =
      in_call && same_space ? state->sequence : state->next[sequence % LCOMM_SEQUENCE_SPACE_COUNT];
  return (int32_t)(reached - sequence) > 0;
}

static lcomm_wait_end end_of(const lcomm_comm *comm, const lcomm_wait_edge *edge, bool unanswered,
                             double now_s) {
  const lcomm_wait_state *state = state_of(comm, edge->last, now_s);
  bool unheard =
      edge->waiter == comm->rank ? !lcomm_probe_answers(comm, edge->last, now_s) : unanswered;
  if (!state) {
    return lcomm_probe_is_silent(comm, edge->last, now_s) ? LCOMM_END_SILENT : LCOMM_END_ASKED;
  }
  if (unheard) {
    return LCOMM_END_LINK;
  }
  switch (state->activity) {
  case LCOMM_ACTIVITY_IDLE:
    return has_passed(state, edge) ? LCOMM_END_PASSED : LCOMM_END_IDLE;
  case LCOMM_ACTIVITY_ELSEWHERE:
    return has_passed(state, edge) ? LCOMM_END_PASSED : LCOMM_END_ELSEWHERE;
  case LCOMM_ACTIVITY_DEVICE:
    return LCOMM_END_DEVICE;
  case LCOMM_ACTIVITY_WORKS:
    return LCOMM_END_WORKS;
  default:
    return has_passed(state, edge) ? LCOMM_END_PASSED : LCOMM_END_CYCLE;
  }
}

static bool is_stronger(const lcomm_wait_edge *edge, const lcomm_wait_edge *best) {
  if (edge->end != best->end) {
    return edge->end > best->end;
  }
  return edge->last != best->last ? edge->last < best->last : edge->waiter < best->waiter;
}

/* All ranks that one waits for; those that wait themselves are looked at later. */
static int search_from(lcomm_comm *comm, int waiter, const lcomm_wait_state *state, int count,
                       lcomm_wait_edge *best, double now_s) {
  for (uint32_t i = 0; i < state->awaited_count; i++) {
    int last = state->awaited[i].rank;
    lcomm_wait_edge edge = {.waiter = waiter,
                            .last = last,
                            .collective = state->collective,
                            .sequence = state->sequence,
                            .step = state->awaited[i].step,
                            .fingerprint = state->fingerprint};
    if (last == comm->rank) {
      continue; /* this rank waits, as is known */
    }
    ask(comm, last, now_s);
    edge.end = end_of(comm, &edge, state->awaited[i].unanswered != 0, now_s);
    if (is_stronger(&edge, best)) {
      *best = edge;
    }
    const lcomm_wait_state *next = state_of(comm, last, now_s);
    if (!contact_of(comm, last)->visited && next && next->activity == LCOMM_ACTIVITY_WAITS) {
      contact_of(comm, last)->visited = true;
      comm->errors.probes.queue[count++] = last;
    }
  }
  return count;
}

static lcomm_wait_edge search(lcomm_comm *comm, const lcomm_wait_state *mine, double now_s) {
  lcomm_wait_edge best = {.end = LCOMM_END_NONE};
  for (int rank = 0; rank < comm->size; rank++) {
    contact_of(comm, rank)->visited = rank == comm->rank;
  }
  int count = search_from(comm, comm->rank, mine, 0, &best, now_s);
  for (int i = 0; i < count; i++) {
    int rank = comm->errors.probes.queue[i];
    count = search_from(comm, rank, state_of(comm, rank, now_s), count, &best, now_s);
  }
  return best;
}

/* ------------------------------------------------------------- witnesses */

static lcomm_witnesses ask_witnesses(const lcomm_comm *comm, int about, double now_s) {
  lcomm_witnesses said = {.denied = contact_of(comm, about)->denied_s > 0,
                          .remote = !share_host(comm, about, comm->rank)};
  int neighbours = 0, neighbours_answer = 0, elsewhere = 0, elsewhere_answers = 0;
  for (int rank = 0; rank < comm->size; rank++) {
    if (rank == comm->rank) {
      continue;
    }
    bool answers = lcomm_probe_answers(comm, rank, now_s);
    said.asked += is_witness(comm, rank, about);
    said.answered += rank != about && answers;
    if (share_host(comm, rank, about)) {
      neighbours++;
      neighbours_answer += answers;
    } else if (!share_host(comm, rank, comm->rank)) {
      elsewhere++;
      elsewhere_answers += answers;
    }
  }
  said.host_silent = said.remote && neighbours > 1 && neighbours_answer == 0;
  said.others_silent = said.asked > 0 && said.answered == 0;
  said.only_remote_host = said.remote && elsewhere == 0;
  said.cut_off = said.remote && elsewhere > 0 && elsewhere_answers + neighbours_answer == 0;
  return said;
}

/* ------------------------------------------------------------ the verdict */

/* What the end of an edge has said, itself or through others. */
static const lcomm_wait_state *said_last(const lcomm_comm *comm, const lcomm_wait_edge *edge) {
  const lcomm_contact *last = contact_of(comm, edge->last);
  return last->answered_s > 0 ? &last->state : &last->relayed;
}

int lcomm_diagnose_other_wait(const lcomm_comm *comm, const lcomm_wait_edge *edge) {
  const lcomm_wait_state *said = said_last(comm, edge);
  int rank = comm->size - 1;
  while (rank >= 0 && (comm->identity.processes[rank].host_hash != said->elsewhere_host ||
                       comm->identity.processes[rank].pid != said->elsewhere_pid)) {
    rank--;
  }
  return said->elsewhere_pid != 0 ? rank : -1;
}

/* The process that seems to be the fault, for those who wait in other communicators. */
static void log_elsewhere(const lcomm_comm *comm, const lcomm_wait_edge *edge) {
  lcomm_process it = comm->identity.processes[edge->last];
  if (edge->end == LCOMM_END_ELSEWHERE) {
    const lcomm_wait_state *said = said_last(comm, edge);
    it = (lcomm_process){said->elsewhere_host, said->elsewhere_pid};
  }
  if (comm->waiting.long_wait && edge->end != LCOMM_END_NONE) {
    lcomm_other_waits_add(comm, it.host_hash, it.pid);
  }
}

/* Third ranks need time to ask, too. */
static bool is_certain(const lcomm_comm *comm, const lcomm_wait_edge *edge,
                       const lcomm_witnesses *said, double now_s) {
  const lcomm_contact *last = contact_of(comm, edge->last);
  if (edge->end == LCOMM_END_SILENT) {
    return said->asked == 0 || said->denied ||
           now_s - last->asked_s >= 3 * lcomm_probe_silence_s(comm);
  }
  if (edge->end == LCOMM_END_ELSEWHERE) {
    return said_last(comm, edge)->elsewhere_pid != 0;
  }
  return edge->end != LCOMM_END_ASKED;
}

static lcomm_status conclude(lcomm_comm *comm, const lcomm_wait_edge *edge, double waited_s,
                             double now_s) {
  static const double LONGER_S = 0.4; /* with LCOMM_FAULT_LISTEN_S less than a second */
  /* Who waits in another communicator may have begun to later. */
  double longer_s = edge->end == LCOMM_END_ELSEWHERE ? comm->settings.timeout_s : LONGER_S;
  lcomm_witnesses said = ask_witnesses(comm, edge->last, now_s);
  if (waited_s < comm->settings.timeout_s + longer_s && !is_certain(comm, edge, &said, now_s)) {
    return LCOMM_OK;
  }
  return lcomm_diagnose_fail(comm, edge, &said);
}

lcomm_status lcomm_diagnose(lcomm_comm *comm, const lcomm_operation *operation, double waited_s) {
  if (waited_s < comm->settings.timeout_s / 2) {
    return LCOMM_OK;
  }
  double now_s = lcomm_clock_s();
  if (now_s - comm->errors.probes.looked_s > comm->settings.timeout_s / 4) {
    forget(comm);
  }
  comm->errors.probes.looked_s = now_s;
  lcomm_wait_state mine = lcomm_probe_state(comm, operation);
  lcomm_wait_edge edge = search(comm, &mine, now_s);
  if (edge.end == LCOMM_END_SILENT) {
    ask_about(comm, edge.last, now_s);
  }
  log_elsewhere(comm, &edge);
  if (waited_s < comm->settings.timeout_s) {
    return LCOMM_OK;
  }
  if (edge.end == LCOMM_END_NONE) {
    return lcomm_fail(comm, LCOMM_ERR_INTERNAL, "%s #%u waits for nothing",
                      lcomm_collective_name(operation->run->plan->collective), operation->sequence);
  }
  return conclude(comm, &edge, waited_s, now_s);
}
