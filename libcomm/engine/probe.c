/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Probes and their answers. */

#include "libcomm/engine/probe.h"

#include <string.h>

#include "libcomm/base/clock.h"
#include "libcomm/engine/operation.h"
#include "libcomm/engine/other_waits.h"

typedef struct probe {
  int32_t kind; /* LCOMM_CONTROL_PROBE */
  int32_t rank;
  int32_t about; /* does this rank answer you? -1: not asked */
  uint32_t round;
} probe;

typedef enum testimony { UNKNOWN, ANSWERS, SILENT } testimony;

typedef struct answer {
  int32_t kind; /* LCOMM_CONTROL_ANSWER */
  int32_t rank;
  uint32_t round; /* of the probe */
  int32_t about;
  int32_t testimony;
  lcomm_wait_state state, relayed;
} answer;

_Static_assert(sizeof(answer) <= LCOMM_CONTROL_SIZE, "an answer fits a control message");

static double clamp(double value, double least, double most) {
  return value < least ? least : value > most ? most : value;
}

double lcomm_probe_interval_s(const lcomm_comm *comm) {
  return clamp(comm->settings.timeout_s / 20, 0.02, 1);
}

double lcomm_probe_silence_s(const lcomm_comm *comm) {
  return clamp(comm->settings.timeout_s / 8, 0.1, 5);
}

bool lcomm_probe_is_silent(const lcomm_comm *comm, int peer, double now_s) {
  const lcomm_contact *it = &comm->errors.probes.contacts[peer];
  return it->asked_s > 0 && now_s - it->asked_s >= lcomm_probe_silence_s(comm);
}

bool lcomm_probe_answers(const lcomm_comm *comm, int peer, double now_s) {
  const lcomm_contact *it = &comm->errors.probes.contacts[peer];
  return it->answered_s > 0 && !lcomm_probe_is_silent(comm, peer, now_s) &&
         now_s - it->answered_s < 4 * lcomm_probe_silence_s(comm);
}

/* Longer than the silence that others count, so that a slow answer breaks no link. */
static bool is_unanswered(const lcomm_comm *comm, int peer) {
  const lcomm_contact *it = &comm->errors.probes.contacts[peer];
  return it->asked_s > 0 && lcomm_clock_s() - it->asked_s >= 2 * lcomm_probe_silence_s(comm);
}

lcomm_wait_state lcomm_probe_state(const lcomm_comm *comm, const lcomm_operation *operation) {
  lcomm_wait_state state = {.next = {comm->operations.next[0], comm->operations.next[1]}};
  if (!operation) {
    bool waits = lcomm_other_waits_find(comm, &state.elsewhere_host, &state.elsewhere_pid);
    state.activity = waits ? LCOMM_ACTIVITY_ELSEWHERE : LCOMM_ACTIVITY_IDLE;
    return state;
  }
  state.sequence = operation->sequence;
  state.collective = (int32_t)operation->run->plan->collective;
  state.fingerprint = operation->run->series.channel > 0
                          ? lcomm_fingerprint_of(operation->run)
                          : comm->fingerprints.mine[operation->sequence % LCOMM_FINGERPRINTS_KEPT];
  state.awaited_count = lcomm_run_awaits(operation->run, state.awaited, LCOMM_AWAITED_MAX);
  for (uint32_t i = 0; i < state.awaited_count; i++) {
    state.awaited[i].unanswered = is_unanswered(comm, state.awaited[i].rank);
  }
  if (lcomm_operation_waits_for_device(operation)) {
    state.activity = LCOMM_ACTIVITY_DEVICE;
  } else {
    state.activity = state.awaited_count > 0 ? LCOMM_ACTIVITY_WAITS : LCOMM_ACTIVITY_WORKS;
  }
  return state;
}

void lcomm_probe_send(lcomm_comm *comm, int peer, int about, double now_s) {
  lcomm_contact *it = &comm->errors.probes.contacts[peer];
  probe asked = {.kind = LCOMM_CONTROL_PROBE,
                 .rank = comm->rank,
                 .about = about,
                 .round = ++comm->errors.probes.round};
  /* Silence counts from the first probe of a series without pauses. */
  bool paused = now_s - it->sent_s > 2 * lcomm_probe_silence_s(comm);
  if (it->asked_s <= 0 || paused) {
    it->asked_s = now_s;
    it->asked_round = asked.round;
  }
  it->sent_s = now_s;
  lcomm_control_send(comm, peer, &asked, sizeof(asked));
}

static bool is_peer(const lcomm_comm *comm, int32_t rank) {
  return rank >= 0 && rank < comm->size && rank != comm->rank;
}

/* Answer about a third rank: it must be probed, too. */
static void testify(lcomm_comm *comm, int about, double now_s, answer *said) {
  lcomm_contact *it = &comm->errors.probes.contacts[about];
  bool paused = now_s - it->sent_s > 2 * lcomm_probe_silence_s(comm);
  if (!paused && lcomm_probe_is_silent(comm, about, now_s)) {
    said->testimony = SILENT;
  } else if (lcomm_probe_answers(comm, about, now_s)) {
    said->testimony = ANSWERS;
    said->relayed = it->state;
  }
  if (now_s - it->sent_s >= lcomm_probe_interval_s(comm)) {
    lcomm_probe_send(comm, about, -1, now_s);
  }
}

void lcomm_probe_receive(lcomm_comm *comm, const void *message) {
  probe heard;
  memcpy(&heard, message, sizeof(heard));
  if (!is_peer(comm, heard.rank)) {
    return;
  }
  answer said = {.kind = LCOMM_CONTROL_ANSWER,
                 .rank = comm->rank,
                 .round = heard.round,
                 .about = heard.about,
                 .state = lcomm_probe_state(comm, comm->operations.first)};
  if (is_peer(comm, heard.about) && heard.about != heard.rank) {
    testify(comm, heard.about, lcomm_clock_s(), &said);
  }
  lcomm_control_send(comm, heard.rank, &said, sizeof(said));
}

/* Check what a peer says of itself: it may be any bytes. */
static bool is_possible(const lcomm_comm *comm, const lcomm_wait_state *state) {
  bool waits = state->activity == LCOMM_ACTIVITY_WAITS;
  if (state->activity < LCOMM_ACTIVITY_IDLE || state->activity > LCOMM_ACTIVITY_ELSEWHERE ||
      state->collective < 0 || state->collective >= LCOMM_COLLECTIVE_COUNT ||
      state->awaited_count > LCOMM_AWAITED_MAX || (waits && state->awaited_count == 0)) {
    return false;
  }
  for (uint32_t i = 0; i < state->awaited_count; i++) {
    if (state->awaited[i].rank < 0 || state->awaited[i].rank >= comm->size) {
      return false;
    }
  }
  return true;
}

void lcomm_probe_receive_answer(lcomm_comm *comm, const void *message) {
  answer heard;
  memcpy(&heard, message, sizeof(heard));
  if (!is_peer(comm, heard.rank) || !is_possible(comm, &heard.state)) {
    return;
  }
  double now_s = lcomm_clock_s();
  lcomm_contact *it = &comm->errors.probes.contacts[heard.rank];
  if (it->asked_s <= 0 || (int32_t)(heard.round - it->asked_round) >= 0) {
    it->asked_s = 0;
    it->answered_s = now_s;
    it->state = heard.state;
  }
  if (!is_peer(comm, heard.about) || heard.about == heard.rank) {
    return;
  }
  lcomm_contact *third = &comm->errors.probes.contacts[heard.about];
  if (heard.testimony == SILENT) {
    third->denied_s = now_s;
  } else if (heard.testimony == ANSWERS && is_possible(comm, &heard.relayed)) {
    third->relayed_s = now_s;
    third->relayed = heard.relayed;
  }
}
