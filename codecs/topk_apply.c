/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What the receiver of a top-k payload does with it. */

#include <string.h>

#include "codecs/topk.h"
#include "codecs/topk_payload.h"
#include "kernels/element.h"
#include "kernels/stripe.h"

void lcomm_topk_add(const uint8_t *payload, uint32_t parts, uint32_t part, float factor,
                    float *base) {
  lcomm_topk_reader reader = lcomm_topk_open(payload);
  lcomm_topk_block block;
  for (lcomm_topk_read(&reader, &block); block.count > 0; lcomm_topk_read(&reader, &block))
    for (uint32_t i = 0; i < block.count; i++)
      base[lcomm_stripe_global(block.position[i], parts, part)] += factor * block.value[i];
}

void lcomm_topk_decode(const uint8_t *payload, uint64_t base_count, uint32_t parts, uint32_t part,
                       float factor, float *base) {
  uint64_t end = lcomm_stripe_count(base_count, parts, part);
  for (uint64_t local = 0, length; local < end; local += length) {
    length = lcomm_stripe_run(local, end, parts);
    memset(base + lcomm_stripe_global(local, parts, part), 0, (size_t)length * sizeof *base);
  }
  lcomm_topk_add(payload, parts, part, factor, base);
}

/* A payload entry by entry. */
typedef struct cursor {
  lcomm_topk_reader reader;
  lcomm_topk_block block;
  uint32_t at;
} cursor;

static void cursor_open(cursor *self, const uint8_t *payload) {
  self->reader = lcomm_topk_open(payload);
  lcomm_topk_read(&self->reader, &self->block);
  self->at = 0;
}

static bool cursor_ended(const cursor *self) {
  return self->block.count == 0;
}

static uint32_t cursor_position(const cursor *self) {
  return self->block.position[self->at];
}

static void cursor_next(cursor *self) {
  if (++self->at < self->block.count)
    return;
  lcomm_topk_read(&self->reader, &self->block);
  self->at = 0;
}

/* Moves `applied` up to `position`. Was it applied? */
static bool cursor_meets(cursor *applied, uint32_t position) {
  while (!cursor_ended(applied) && cursor_position(applied) < position)
    cursor_next(applied);
  return !cursor_ended(applied) && cursor_position(applied) == position;
}

void lcomm_topk_settle(const uint8_t *sent, const uint8_t *applied, uint32_t parts, uint32_t part,
                       float *residual) {
  cursor mine, theirs;
  cursor_open(&mine, sent);
  cursor_open(&theirs, applied != NULL ? applied : sent);
  for (; !cursor_ended(&mine); cursor_next(&mine)) {
    float value = mine.block.value[mine.at];
    uint32_t position = cursor_position(&mine);
    if (cursor_meets(&theirs, position) && lcomm_f32_is_finite(value))
      residual[lcomm_stripe_global(position, parts, part)] -= value;
  }
}
