/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Plan keys: which plans are equal, between the ranks and from call to call. */

#include <string.h>
#include <xxhash.h>

#include "libcomm/plan/select.h"

bool lcomm_plan_fits(const lcomm_plan *plan, const lcomm_plan_request *request) {
  if (plan->collective != request->collective || plan->count != request->count ||
      plan->dtype != request->dtype || (plan->ops >> request->op & 1) == 0 ||
      plan->root != request->root || plan->error_feedback != request->error_feedback ||
      plan->in_place != request->in_place ||
      !lcomm_memory_is_beside(plan->location, request->location)) {
    return false;
  }
  return !plan->part_counts || memcmp(plan->part_counts, request->part_counts,
                                      (size_t)plan->schedule.size * sizeof(uint64_t)) == 0;
}

/* What is hashed of a request; without padding. An average is a sum: whether a plan
 * serves both is for lcomm_plan_fits to say. */
typedef struct key_fields {
  uint64_t count, parts; /* parts: a hash of uneven counts */
  uint32_t collective, dtype, op, root, location, flags;
} key_fields;

_Static_assert(sizeof(key_fields) == 40, "a key is hashed: it has no padding");

uint64_t lcomm_plan_key(const lcomm_plan_request *request, int ranks) {
  const uint64_t *parts = request->part_counts;
  bool on_device = lcomm_memory_is_on_device(request->location);
  key_fields fields = {
      .count = request->count,
      .parts = parts ? XXH3_64bits(parts, (size_t)ranks * sizeof *parts) : 0,
      .collective = (uint32_t)request->collective,
      .dtype = (uint32_t)request->dtype,
      .op = (uint32_t)lcomm_plan_op(request->op),
      .root = (uint32_t)request->root,
      .location = on_device ? 1 + (uint32_t)request->location.device : 0,
      .flags = (request->in_place ? 1u : 0) | (request->error_feedback ? 2u : 0),
  };
  return XXH3_64bits(&fields, sizeof(fields));
}

/* Payloads of a whole vector, sent and received, of every rank where all give theirs
 * to all; headers, steps and scratch. A chunk of a broadcast has steps with a few ranks only. */
uint64_t lcomm_plan_charge(const lcomm_plan *plan) {
  static const uint64_t FIXED = 32 << 10, STEP = 512, ROOM = 8 << 10;
  uint64_t vector = plan->vector_count * plan->element_size;
  bool gathers = plan->collective == LCOMM_COLLECTIVE_ALLREDUCE &&
                 plan->shape.exchange == LCOMM_EXCHANGE_GATHER;
  uint64_t ranks = (uint64_t)plan->schedule.size, vectors = gathers ? ranks : 2;
  uint64_t partners = plan->collective == LCOMM_COLLECTIVE_BROADCAST && ranks > 8 ? 8 : ranks;
  return FIXED + STEP * plan->shape.chunks * partners + ROOM * ranks + vectors * vector;
}

/* ------------------------------------------------------------------ hash */

static uint64_t mix(uint64_t hash, uint64_t value) {
  return XXH3_64bits_withSeed(&value, sizeof(value), hash);
}

static uint64_t mix_all(uint64_t hash, const uint64_t *values, size_t count) {
  for (size_t i = 0; i < count; i++) {
    hash = mix(hash, values[i]);
  }
  return hash;
}

static uint64_t mix_format(uint64_t hash, const lcomm_format *format) {
  uint64_t density_bits;
  memcpy(&density_bits, &format->density, sizeof(density_bits));
  hash = mix(hash, (uint64_t)format->codec->id);
  hash = mix(hash, format->block);
  hash = mix(hash, format->variant);
  hash = mix(hash, (uint64_t)format->exponent);
  hash = mix(hash, format->zstd);
  hash = mix(hash, format->kept);
  return mix(hash, density_bits);
}

static uint64_t mix_shape(uint64_t hash, const lcomm_allreduce_shape *shape) {
  hash = mix(hash, (uint64_t)shape->exchange);
  hash = mix(hash, shape->hierarchical);
  hash = mix(hash, shape->leaders);
  hash = mix(hash, shape->by_racks);
  hash = mix(hash, shape->tells_sum);
  hash = mix(hash, shape->pieces);
  return mix(hash, shape->chunks);
}

/* in_place and place are not in it: they are each rank's own affair. */
static uint64_t mix_request(uint64_t hash, const lcomm_plan *plan) {
  hash = mix(hash, (uint64_t)plan->collective);
  hash = mix(hash, (uint64_t)plan->dtype);
  hash = mix(hash, (uint64_t)plan->op);
  hash = mix(hash, plan->count);
  hash = mix(hash, (uint64_t)plan->root);
  return mix(hash, plan->error_feedback);
}

uint64_t lcomm_plan_hash(const lcomm_plan *plan, const lcomm_policy *policy,
                         const lcomm_topo *topo) {
  char text[LCOMM_POLICY_MAX];
  lcomm_policy_format(policy, text);
  uint64_t hash = mix_request(XXH3_64bits(text, strlen(text)), plan);
  hash = mix(hash, plan->element_size);
  hash = mix(hash, plan->plain);
  hash = mix_shape(hash, &plan->shape);
  for (int i = 0; i < LCOMM_STAGE_COUNT; i++) {
    hash = mix_format(hash, &plan->stages[i].format);
    hash = mix(hash, plan->stages[i].error_feedback);
  }
  hash = mix_all(hash, plan->part_counts, plan->part_counts ? (size_t)topo->size : 0);
  hash = mix_all(hash, plan->segment_ends, plan->segments);
  for (int i = 0; i < topo->size; i++) {
    hash = mix(hash, (uint64_t)topo->node[i]);
  }
  for (int i = 0; topo->racks.count > 0 && i < topo->nodes; i++) {
    hash = mix(hash, (uint64_t)topo->racks.of[i]);
  }
  return hash;
}
