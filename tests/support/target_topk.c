/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/target_topk.h"

#include "codecs/codec_topk.h"
#include "codecs/codec_topk_payload.h"
#include "kernels/stripe.h"
#include "tests/support/fuzz_promise.h"

typedef struct topk_input {
  lcomm_format format;
  uint64_t base_count;
  uint32_t parts, part, outputs;
  const uint8_t *rest;
  size_t size;
} topk_input;

static const float outside = -7.0f; /* marks elements that are not in the view */

/* The end of the tile that begins at `first`; *inside: does it belong to the view? */
FUZZ_UNTRACED static uint64_t tile_end(const topk_input *in, uint64_t first, bool *inside) {
  uint64_t end = first + LCOMM_TILE;
  *inside = lcomm_stripe_owner(first, in->parts) == in->part;
  return end < in->base_count ? end : in->base_count;
}

/* An array of base_count elements: the view holds `value`, the rest `outside`. */
FUZZ_UNTRACED static float *make_view(const topk_input *in, float value) {
  float *base = fuzz_allocate((size_t)in->base_count * sizeof *base);
  bool inside = false;
  for (uint64_t i = 0, end; i < in->base_count;) {
    end = tile_end(in, i, &inside);
    for (float fill = inside ? value : outside; i < end; i++) {
      base[i] = fill;
    }
  }
  return base;
}

/* Nothing outside the view was touched; returns how many inside are not `value`. */
FUZZ_UNTRACED static uint64_t check_view(const topk_input *in, const float *base, float value) {
  uint64_t changed = 0, spoilt = 0;
  bool inside = false;
  for (uint64_t i = 0, end; i < in->base_count;) {
    end = tile_end(in, i, &inside);
    uint64_t others = 0;
    for (float expected = inside ? value : outside; i < end; i++) {
      others += base[i] != expected;
    }
    changed += inside ? others : 0;
    spoilt += inside ? 0 : others;
  }
  fuzz_require(spoilt == 0, "elements outside the view stay as they are");
  return changed;
}

static void commit_payload(const topk_input *in, const uint8_t *payload) {
  const lcomm_format *format = &in->format;
  float *residual = make_view(in, 0.0f);
  lcomm_topk_add(format, payload, in->parts, in->part, 1.0f, residual);
  lcomm_topk_commit(format, payload, payload, in->parts, in->part, residual);
  fuzz_require(check_view(in, residual, 0.0f) == 0,
               "what was sent and applied leaves the residual");
  lcomm_topk_commit(format, payload, NULL, in->parts, in->part, residual);
  check_view(in, residual, 0.0f);
  free(residual);
}

FUZZ_UNTRACED static bool are_masked(const topk_input *in, const float *all, const float *both) {
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < in->base_count; i++) {
    wrong += !(all[i] == both[i] && (all[i] == 0.0f || all[i] == 5.0f || all[i] == outside));
  }
  return wrong == 0;
}

static void mask_payload(const topk_input *in, const uint8_t *payload, uint64_t entries) {
  float *all = make_view(in, 5.0f), *both = make_view(in, 5.0f);
  lcomm_topk_mask(&in->format, payload, NULL, in->parts, in->part, all);
  lcomm_topk_mask(&in->format, payload, payload, in->parts, in->part, both);
  fuzz_require(check_view(in, all, 5.0f) == entries, "mask clears its entries");
  fuzz_require(are_masked(in, all, both), "mask writes zeros, where the payloads agree");
  free(all);
  free(both);
}

static void apply_payload(const topk_input *in, const uint8_t *payload, uint64_t entries) {
  const lcomm_format *format = &in->format;
  float *base = make_view(in, 5.0f);
  lcomm_topk_decode(format, payload, in->base_count, in->parts, in->part, 1.0f, base);
  fuzz_require(check_view(in, base, 0.0f) <= entries, "decode writes its entries only");
  lcomm_topk_add(format, payload, in->parts, in->part, 0.5f, base);
  fuzz_require(check_view(in, base, 0.0f) <= entries, "add writes its entries only");
  free(base);
  commit_payload(in, payload);
  mask_payload(in, payload, entries);
}

/* Positions that are read and written again have the same bytes. */
static void write_again(const topk_input *in, const uint8_t *payload, uint64_t entries,
                        uint64_t count) {
  size_t bound = lcomm_topk_bound(&in->format, entries, count);
  uint8_t *again = fuzz_allocate(bound);
  lcomm_entries read = {.position = fuzz_allocate((size_t)entries * sizeof(uint32_t)),
                        .value = fuzz_allocate((size_t)entries * sizeof(float))};
  lcomm_topk_reader reader = lcomm_topk_open(&in->format, payload);
  lcomm_topk_block block;
  for (lcomm_topk_read(&reader, &block); block.count > 0; lcomm_topk_read(&reader, &block)) {
    for (uint32_t i = 0; i < block.count; i++, read.count++) {
      read.position[read.count] = block.position[i];
      read.value[read.count] = block.value[i];
    }
  }
  fuzz_require(read.count == entries, "a reader reads all entries");
  size_t size = lcomm_topk_write(&in->format, lcomm_kernels_best(), &read, again);
  size_t index = size - lcomm_topk_values_size(&in->format, entries);
  fuzz_require(size <= bound && size == in->size, "no payload exceeds its bound");
  fuzz_require(memcmp(again, payload, index) == 0, "positions have one representation");
  free(read.position);
  free(read.value);
  free(again);
}

static void check_payload(const topk_input *in) {
  uint64_t entries = 0, count = lcomm_stripe_count(in->base_count, in->parts, in->part);
  uint8_t *payload = fuzz_copy(in->rest, in->size);
  lcomm_status status = lcomm_topk_check(&in->format, payload, in->size, count, &entries);
  fuzz_require(lcomm_topk_check(&in->format, payload, in->size, count, NULL) == status,
               "entries may be NULL");
  fuzz_require(status == LCOMM_OK || status == LCOMM_ERR_WIRE, "a payload is valid or malformed");
  if (status == LCOMM_OK) {
    fuzz_require(entries <= count, "no more entries than elements");
    apply_payload(in, payload, entries);
    write_again(in, payload, entries, count);
  }
  free(payload);
}

/* The floats of the rest, over and over, as the array to encode. */
static float *make_base(const topk_input *in) {
  size_t given = in->size / sizeof(float) * sizeof(float);
  size_t size = (size_t)in->base_count * sizeof(float);
  float *base = fuzz_allocate(size);
  for (size_t at = 0; given > 0 && at < size; at += given) {
    memcpy((uint8_t *)base + at, in->rest, given < size - at ? given : size - at);
  }
  return base;
}

FUZZ_UNTRACED static bool are_finite(const float *values, uint64_t count) {
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < count; i++) {
    wrong += values[i] - values[i] != 0.0f;
  }
  return wrong == 0;
}

/* The view that a payload of an encoder with this shape stands for. */
static uint64_t output_count(const lcomm_topk_shape *shape, uint32_t output) {
  if (shape->outputs > 1) {
    return lcomm_stripe_count(shape->base_count, shape->outputs, output);
  }
  return lcomm_stripe_count(shape->base_count, shape->parts, shape->part);
}

static void check_outputs(const lcomm_topk *topk, const lcomm_topk_shape *shape,
                          uint8_t *const *payload, const size_t *size) {
  uint64_t sent = 0, entries;
  for (uint32_t o = 0; o < shape->outputs; o++) {
    fuzz_require(size[o] <= lcomm_topk_output_bound(topk, o), "an encoder keeps to its bound");
    fuzz_require(lcomm_topk_check(shape->format, payload[o], size[o], output_count(shape, o),
                                  &entries) == LCOMM_OK,
                 "an encoder writes valid payloads");
    fuzz_require(entries <= lcomm_topk_output_capacity(topk, o),
                 "an encoder keeps to its capacity");
    sent += entries;
  }
  fuzz_require(sent <= lcomm_topk_total(topk), "an encoder keeps to its density");
}

enum { OUTPUTS_MAX = 4 };

static void run_encoder(lcomm_topk *topk, const topk_input *in, const lcomm_topk_shape *shape) {
  uint8_t *payload[OUTPUTS_MAX];
  size_t size[OUTPUTS_MAX];
  for (uint32_t o = 0; o < shape->outputs; o++) {
    payload[o] = fuzz_allocate(lcomm_topk_output_bound(topk, o));
  }
  float *base = make_base(in), *residual = fuzz_allocate((size_t)in->base_count * sizeof *residual);
  for (int step = 0; step < 2; step++) {
    lcomm_topk_encode(topk, lcomm_kernels_best(), base, residual, residual,
                      step == 0 ? LCOMM_TOPK_RELEASE : LCOMM_TOPK_HOLD, payload, size);
    check_outputs(topk, shape, payload, size);
  }
  if (shape->outputs == 1) {
    lcomm_topk_encode_owner(topk, lcomm_kernels_best(), base, residual, 0.5f, payload[0], size);
    check_outputs(topk, shape, payload, size);
  }
  fuzz_require(are_finite(residual, in->base_count), "a residual stays finite");
  for (uint32_t o = 0; o < shape->outputs; o++) {
    free(payload[o]);
  }
  free(base);
  free(residual);
}

static void check_encoder(const topk_input *in) {
  uint64_t ends[2] = {in->base_count / 3, in->base_count};
  lcomm_topk_shape shape = {.base_count = in->base_count,
                            .parts = in->outputs > 1 ? 1 : in->parts,
                            .part = in->outputs > 1 ? 0 : in->part,
                            .outputs = in->outputs,
                            .format = &in->format,
                            .segment_ends = ends,
                            .segments = 2};
  lcomm_topk *topk = NULL;
  fuzz_require(lcomm_topk_create(&shape, &topk) == LCOMM_OK, "a good shape makes an encoder");
  run_encoder(topk, in, &shape);
  lcomm_topk_destroy(topk);
}

static bool read_input(const uint8_t *data, size_t size, topk_input *in) {
  if (size < 4) {
    return false;
  }
  *in = (topk_input){.format = lcomm_format_of(&lcomm_codec_topk),
                     .base_count = data[0] + 256u * (data[1] % 80u),
                     .parts = 1 + data[2] % 4u,
                     .outputs = 1 + data[3] % 4u,
                     .rest = data + 4,
                     .size = size - 4};
  in->format.density = (1 + data[3]) / 256.0;
  in->format.variant = data[2] & 0x40 ? LCOMM_TOPK_INT8 : LCOMM_VARIANT_PLAIN;
  in->part = data[2] / 4u % in->parts;
  return true;
}

void lcomm_fuzz_topk(const uint8_t *data, size_t size) {
  topk_input in;
  if (read_input(data, size, &in)) {
    check_payload(&in);
  }
}

/* Long arrays are rare: each element costs more than all else. */
enum { LONG = 248 };

void lcomm_fuzz_topk_encode(const uint8_t *data, size_t size) {
  topk_input in;
  if (!read_input(data, size, &in)) {
    return;
  }
  in.base_count = data[0] + 256u * (data[1] < LONG ? data[1] % 4u : 10u * (data[1] - LONG));
  check_encoder(&in);
}
