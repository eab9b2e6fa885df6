/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What the receiver of a top-k payload does with it. */

#include <string.h>

#include "codecs/codec_topk.h"
#include "codecs/codec_topk_payload.h"
#include "kernels/element.h"
#include "kernels/stripe.h"

void lcomm_topk_add(const lcomm_format *format, const uint8_t *payload, uint32_t parts,
                    uint32_t part, float factor, float *base) {
  lcomm_topk_reader reader = lcomm_topk_open(format, payload);
  lcomm_topk_block block;
  for (lcomm_topk_read(&reader, &block); block.count > 0; lcomm_topk_read(&reader, &block)) {
    for (uint32_t i = 0; i < block.count; i++) {
      base[lcomm_stripe_global(block.position[i], parts, part)] += factor * block.value[i];
    }
  }
}

void lcomm_topk_decode(const lcomm_format *format, const uint8_t *payload, uint64_t base_count,
                       uint32_t parts, uint32_t part, float factor, float *base) {
  uint64_t end = lcomm_stripe_count(base_count, parts, part);
  for (uint64_t local = 0, length; local < end; local += length) {
    length = lcomm_stripe_run(local, end, parts);
    memset(base + lcomm_stripe_global(local, parts, part), 0, (size_t)length * sizeof *base);
  }
  lcomm_topk_add(format, payload, parts, part, factor, base);
}

/* A payload entry by entry. */
typedef struct cursor {
  lcomm_topk_reader reader;
  lcomm_topk_block block;
  uint32_t at;
} cursor;

static void cursor_open(cursor *self, const lcomm_format *format, const uint8_t *payload) {
  self->reader = lcomm_topk_open(format, payload);
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
  if (++self->at < self->block.count) {
    return;
  }
  lcomm_topk_read(&self->reader, &self->block);
  self->at = 0;
}

/* Moves `applied` up to `position`. Was it applied? */
static bool cursor_meets(cursor *applied, uint32_t position) {
  while (!cursor_ended(applied) && cursor_position(applied) < position) {
    cursor_next(applied);
  }
  return !cursor_ended(applied) && cursor_position(applied) == position;
}

/* What is sent and applied, entry by entry. */
typedef struct committed {
  cursor mine, theirs;
  bool sparse; /* else all that was sent was applied */
} committed;

static void committed_open(committed *self, const lcomm_format *format, const uint8_t *sent,
                           const uint8_t *applied) {
  cursor_open(&self->mine, format, sent);
  self->sparse = applied != NULL;
  if (self->sparse) {
    cursor_open(&self->theirs, format, applied);
  }
}

static bool committed_next(committed *self, uint32_t *position, float *value) {
  for (; !cursor_ended(&self->mine); cursor_next(&self->mine)) {
    *position = cursor_position(&self->mine);
    *value = self->mine.block.value[self->mine.at];
    if (self->sparse && !cursor_meets(&self->theirs, *position)) {
      continue;
    }
    cursor_next(&self->mine);
    return true;
  }
  return false;
}

void lcomm_topk_commit(const lcomm_format *format, const uint8_t *sent, const uint8_t *applied,
                       uint32_t parts, uint32_t part, float *residual) {
  committed both;
  uint32_t position;
  float value;
  committed_open(&both, format, sent, applied);
  while (committed_next(&both, &position, &value)) {
    float *kept = residual + lcomm_stripe_global(position, parts, part);
    *kept = lcomm_error_kept(*kept, value);
  }
}

void lcomm_topk_mask(const lcomm_format *format, const uint8_t *sent, const uint8_t *applied,
                     uint32_t parts, uint32_t part, float *momentum) {
  committed both;
  uint32_t position;
  float value;
  committed_open(&both, format, sent, applied);
  while (committed_next(&both, &position, &value)) {
    momentum[lcomm_stripe_global(position, parts, part)] = 0.0f;
  }
}
