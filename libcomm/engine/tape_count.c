/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Counting: what stays on devices depends on what both ends of a message say of it, so runs of all
 * ranks of a node are made, and that of one is played. */

#include <stdlib.h>

#include "libcomm/engine/device_zcopy.h"
#include "libcomm/engine/exec_internal.h"
#include "libcomm/engine/gates_internal.h"
#include "libcomm/engine/peer_memory_messages.h"
#include "libcomm/engine/recording.h"
#include "libcomm/engine/run_device.h"
#include "libcomm/engine/tape_count_internal.h"
#include "libcomm/engine/tape_internal.h"

typedef struct counted_node {
  int count;
  lcomm_counted_run *runs;
  lcomm_counted_run *mine;
} counted_node;

/* --------------------------------------------------------------------- a node */

static bool has_near(const lcomm_comm *comm) {
  bool any = false;
  for (int peer = 0; peer < comm->size; peer++) {
    any |= peer != comm->rank && lcomm_device_may_stay(comm, peer);
  }
  return any;
}

static lcomm_counted_run *find(const counted_node *node, int rank) {
  for (int i = 0; i < node->count; i++) {
    if (node->runs[i].comm.rank == rank) {
      return &node->runs[i];
    }
  }
  return NULL;
}

static void free_node(counted_node *node) {
  for (int i = 0; i < node->count; i++) {
    lcomm_counted_run_free(&node->runs[i]);
  }
  free(node->runs);
}

/* The first run is that of the rank that is counted; the others are there where something can stay.
 */
static lcomm_status make_node(counted_node *node, const lcomm_tape_case *it,
                              lcomm_tape_calls *calls) {
  lcomm_group group = lcomm_topo_node_group(it->topo, it->topo->node[it->rank], it->rank);
  node->runs = calloc((size_t)group.size, sizeof *node->runs);
  node->mine = node->runs;
  if (!node->runs) {
    return LCOMM_ERR_MEMORY;
  }
  node->count = 1;
  LCOMM_TRY(lcomm_counted_run_make(node->mine, it, it->rank, calls));
  for (int i = 0; i < group.size && has_near(&node->mine->comm); i++) {
    if (group.ranks[i] != it->rank) {
      node->count++;
      LCOMM_TRY(lcomm_counted_run_make(&node->runs[node->count - 1], it, group.ranks[i], calls));
    }
  }
  return LCOMM_OK;
}

/* All ranks have opened the memory of all, and say what they take. */
static void agree(const counted_node *node) {
  for (int i = 0; i < node->count; i++) {
    lcomm_run *owner = &node->runs[i].run;
    for (int k = 0; k < node->count; k++) {
      lcomm_take_message take = {.kind = LCOMM_CONTROL_TAKE, .rank = node->runs[k].comm.rank};
      if (k != i) {
        lcomm_share_take_all(&node->runs[k].run, owner->comm->rank, &take);
        lcomm_share_learn(owner, &take);
      }
    }
    lcomm_share_fix(owner);
  }
}

/* ------------------------------------------------------------------- messages */

/* The SEND at the other end of a RECV. */
static const lcomm_step *find_send(const lcomm_run *sender, int receiver, uint32_t message) {
  for (uint32_t i = 0; i < sender->plan->schedule.step_count; i++) {
    const lcomm_step *step = &sender->plan->schedule.steps[i];
    if (step->kind == LCOMM_STEP_SEND && step->peer == receiver && step->message == message) {
      return step;
    }
  }
  return NULL;
}

/* NULL where this rank does not fetch what comes, or its sender does not leave it. */
static const lcomm_step *find_left(const counted_node *node, const lcomm_step *receive,
                                   const lcomm_run **sender) {
  const lcomm_counted_run *peer = find(node, receive->peer);
  if (!peer || !lcomm_gates_may_await(&node->mine->run, receive)) {
    return NULL;
  }
  const lcomm_step *send = find_send(&peer->run, node->mine->comm.rank, receive->message);
  *sender = &peer->run;
  return send && peer->run.device->share.stays[send->slot] ? send : NULL;
}

static void count_left(const counted_node *node, lcomm_tape_calls *calls) {
  const lcomm_schedule *schedule = &node->mine->run.plan->schedule;
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    const lcomm_run *sender = NULL;
    const lcomm_step *step = &schedule->steps[i];
    bool is_left = step->kind == LCOMM_STEP_RECV && find_left(node, step, &sender);
    calls->stay += is_left;
  }
}

/* ------------------------------------------------------------------ recordings */

static bool has_gate(const counted_node *node, const lcomm_step *step) {
  const lcomm_run *sender = NULL;
  if (step->kind == LCOMM_STEP_SEND) {
    return lcomm_gates_may_write(&node->mine->run, step);
  }
  const lcomm_step *send = step->kind == LCOMM_STEP_RECV ? find_left(node, step, &sender) : NULL;
  return send && lcomm_gates_may_write(sender, send);
}

static lcomm_status make_gates(const counted_node *node, lcomm_tape_calls *calls) {
  static uint32_t gate; /* nobody reads or writes there */
  lcomm_run *run = &node->mine->run;
  lcomm_gates *gates = calloc(1, sizeof *gates);
  run->recording->gates = gates;
  if (!gates) {
    return LCOMM_ERR_MEMORY;
  }
  gates->table = &lcomm_counting_table;
  gates->file = -1;
  if (!lcomm_gates_make_tables(run, gates)) {
    return LCOMM_ERR_MEMORY;
  }
  for (uint32_t i = 0; i < run->plan->schedule.step_count; i++) {
    const lcomm_step *step = &run->plan->schedule.steps[i];
    bool has = has_gate(node, step);
    gates->gates[i] = has ? &gate : NULL;
    calls->gates += has && step->kind == LCOMM_STEP_RECV;
  }
  lcomm_gates_find_all(&run->plan->schedule, gates);
  return LCOMM_OK;
}

static lcomm_status record(const counted_node *node, lcomm_tape_calls *calls) {
  lcomm_run *run = &node->mine->run;
  LCOMM_TRY(lcomm_recording_add(run));
  LCOMM_TRY(make_gates(node, calls));
  LCOMM_TRY(lcomm_recording_make_seed(run->recording));
  return lcomm_tape_record(run);
}

/* --------------------------------------------------------------------- playing */

static lcomm_status play(lcomm_counted_run *it) {
  lcomm_run *run = &it->run;
  lcomm_tape_turn_to(run, LCOMM_LANE_ENCODE);
  LCOMM_TRY(lcomm_run_device_follow(run, &it->program));
  lcomm_tape_rewind(run);
  LCOMM_TRY(lcomm_tape_play(run));
  return lcomm_tape_join(run, &it->program);
}

/* What of the tape depends on how it is played. */
typedef lcomm_status (*counted_part)(const counted_node *node, lcomm_tape_calls *calls);

static lcomm_status prepare_and_play(counted_node *node, counted_part prepare,
                                     lcomm_tape_calls *calls) {
  agree(node);
  count_left(node, calls);
  if (prepare) {
    LCOMM_TRY(prepare(node, calls));
  }
  return play(node->mine);
}

static lcomm_status count(const lcomm_tape_case *it, counted_part prepare,
                          lcomm_tape_calls *calls) {
  counted_node node = {0};
  *calls = (lcomm_tape_calls){0};
  lcomm_status status = make_node(&node, it, calls);
  if (status == LCOMM_OK) {
    status = prepare_and_play(&node, prepare, calls);
  }
  free_node(&node);
  return status;
}

lcomm_status lcomm_tape_count(const lcomm_tape_case *it, lcomm_tape_calls *calls) {
  return count(it, NULL, calls);
}

lcomm_status lcomm_tape_count_captured(const lcomm_tape_case *it, lcomm_tape_calls *calls) {
  return count(it, record, calls);
}
