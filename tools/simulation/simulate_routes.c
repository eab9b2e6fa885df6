/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Which step receives what a step sends. */

#include <stdlib.h>
#include <string.h>

#include "tools/simulation/simulate_world.h"

/* What the simulated ranks expect: for a receiver and a peer, the steps by message number. */
typedef struct expectations {
  int ranks, size;
  uint32_t *first; /* of receiver r and peer p: [r * (size + 1) + p], into `steps` of r */
  uint32_t **steps;
} expectations;

static void forget(expectations *it) {
  for (int i = 0; it->steps && i < it->ranks; i++) {
    free(it->steps[i]);
  }
  free(it->steps);
  free(it->first);
}

static bool expect(expectations *it, int rank, const simulate_program *program) {
  uint32_t *first = &it->first[(size_t)rank * ((size_t)it->size + 1)], total = 0;
  for (uint32_t i = 0; i < program->step_count; i++) {
    if (program->steps[i].kind == LCOMM_STEP_RECV) {
      first[program->steps[i].peer + 1]++;
      total++;
    }
  }
  for (int i = 0; i < it->size; i++) {
    first[i + 1] += first[i];
  }
  uint32_t *steps = malloc(((size_t)total + 1) * sizeof *steps);
  it->steps[rank] = steps;
  if (!steps) {
    return false;
  }
  memset(steps, 0xff, total * sizeof *steps);
  for (uint32_t i = 0; i < program->step_count; i++) {
    const simulate_step *step = &program->steps[i];
    if (step->kind == LCOMM_STEP_RECV) {
      if (step->message >= first[step->peer + 1] - first[step->peer]) {
        return false;
      }
      steps[first[step->peer] + step->message] = i;
    }
  }
  return true;
}

/* How nodes stand for each other. */
typedef struct shift {
  int nodes, block;
  simulate_mirror mirror;
} shift;

static int mirrored_in(int place, int places) {
  return (places - place) % places;
}

/* The node whose messages to node 0 are those of node 0 to `node`. */
static int mirrored(const shift *it, int node) {
  int far = mirrored_in(node / it->block, it->nodes / it->block);
  int near = mirrored_in(node % it->block, it->block);
  return it->mirror == SIMULATE_MIRROR_ROTATION ? far * it->block + near : node;
}

static bool route(const lcomm_topo *topo, const expectations *it, simulate_program *programs,
                  int sender, uint32_t index, simulate_mirror mirror) {
  simulate_step *step = &programs[sender].steps[index];
  int receiver = (int)step->peer, from = sender;
  if (mirror != SIMULATE_MIRROR_NONE) {
    shift by = {topo->nodes, programs[sender].block, mirror};
    int node = mirrored(&by, topo->node[step->peer]);
    receiver = lcomm_topo_rank(topo, 0, topo->local[step->peer]);
    from = lcomm_topo_rank(topo, node, topo->local[sender]);
  }
  const uint32_t *first = &it->first[(size_t)receiver * ((size_t)it->size + 1)];
  if (step->message >= first[from + 1] - first[from]) {
    return false;
  }
  step->partner = (uint32_t)receiver;
  step->partner_step = it->steps[receiver][first[from] + step->message];
  if (step->partner_step == UINT32_MAX) {
    return false;
  }
  simulate_step *received = &programs[receiver].steps[step->partner_step];
  received->partner = (uint32_t)sender;
  received->partner_step = index;
  return true;
}

static bool route_all(const lcomm_topo *topo, const expectations *it, simulate_program *programs,
                      simulate_mirror mirror) {
  uint64_t sent = 0, expected = 0;
  for (int rank = 0; rank < it->ranks; rank++) {
    expected += it->first[(size_t)rank * ((size_t)it->size + 1) + (size_t)it->size];
    for (uint32_t i = 0; i < programs[rank].step_count; i++) {
      if (programs[rank].steps[i].kind == LCOMM_STEP_SEND) {
        sent++;
        if (!route(topo, it, programs, rank, i, mirror)) {
          return false;
        }
      }
    }
  }
  return sent == expected;
}

bool simulate_routes_make(const lcomm_topo *topo, simulate_program *programs, int ranks,
                          simulate_mirror mirror) {
  expectations it = {.ranks = ranks, .size = topo->size};
  it.first = calloc((size_t)ranks * ((size_t)topo->size + 1), sizeof *it.first);
  it.steps = calloc((size_t)ranks, sizeof *it.steps);
  bool good = it.first && it.steps;
  for (int i = 0; good && i < ranks; i++) {
    good = expect(&it, i, &programs[i]);
  }
  good = good && route_all(topo, &it, programs, mirror);
  forget(&it);
  return good;
}

/* The node that is to `node` what `peer` is to node 0. */
static int shifted(const shift *it, int peer, int node) {
  int far = (peer / it->block + node / it->block) % (it->nodes / it->block);
  int near = (peer % it->block + node % it->block) % it->block;
  return it->mirror == SIMULATE_MIRROR_ROTATION ? far * it->block + near : peer ^ node;
}

bool simulate_routes_alike(const lcomm_topo *topo, const simulate_program *program,
                           const simulate_program *other, int node, simulate_mirror mirror) {
  shift by = {topo->nodes, program->block, mirror};
  if (program->step_count != other->step_count || program->block != other->block) {
    return false;
  }
  for (uint32_t i = 0; i < program->step_count; i++) {
    const simulate_step *a = &program->steps[i], *b = &other->steps[i];
    if (a->kind != b->kind || a->waits_for != b->waits_for || a->next_count != b->next_count) {
      return false;
    }
    bool is_message = a->kind == LCOMM_STEP_SEND || a->kind == LCOMM_STEP_RECV;
    if (is_message && (a->message != b->message || topo->local[a->peer] != topo->local[b->peer] ||
                       shifted(&by, topo->node[a->peer], node) != topo->node[b->peer])) {
      return false;
    }
  }
  return true;
}
