/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Entries into payloads, see codecs/codec_topk.h for the bytes. Where an index block lies
 * depends on the sizes of those before it, so these are summed up first. */

#include <string.h>

#include "kernels/cuda/cuda_topk_chosen.cuh"

enum { OUTPUTS = 64, WORDS = 33 /* of an index block: 32 of 32 bits, and the next */ };

typedef struct write_args {
  lcomm_topk_tables t;
  uint32_t int8;
  lcomm_topk_rest rest;
  float *residual;
  float weight;
  uint64_t *payload_size;
  uint32_t first_group, first_output;
  uint8_t *payload[OUTPUTS]; /* from first_output on */
} write_args;

/* The entries that a block writes, of one output. */
typedef struct group {
  uint32_t output, number; /* in it */
  uint32_t count;          /* entries of it */
  const uint32_t *position;
  const float *value; /* of all entries */
} group;

LCOMM_DEVICE group group_of(const write_args *a) {
  uint32_t i = a->first_group + lcomm_block();
  group g;
  g.output = a->t.group_output[i];
  g.number = i - a->t.output[g.output].first_group;
  lcomm_topk_entries entries = lcomm_topk_entries_of(&a->t, g.output);
  g.count = entries.sent;
  g.position = a->t.chosen_position + entries.first;
  g.value = a->t.chosen_value + entries.first;
  return g;
}

/* ------------------------------------------------------------ index blocks */

/* One of up to 32 entries, a lane for each. */
typedef struct index_block {
  uint32_t count, delta, width; /* bits of a delta */
  uint32_t size;                /* bytes; 0: there is no such block */
} index_block;

LCOMM_DEVICE uint32_t bits_of(uint32_t number) {
  return number == 0 ? 0 : 32 - (uint32_t)__builtin_clz(number);
}

LCOMM_DEVICE uint64_t first_of_block(const group *g, uint32_t i) {
  return (uint64_t)g->number * LCOMM_TOPK_GROUP + i * LCOMM_TOPK_INDEX_BLOCK;
}

/* The lane's one of block i of the group. */
LCOMM_DEVICE uint32_t delta_of(const group *g, uint32_t i) {
  uint64_t own = first_of_block(g, i) + lcomm_lane();
  if (own >= g->count) {
    return 0;
  }
  uint32_t before = own > 0 ? g->position[own - 1] : UINT32_MAX; /* -1 */
  return g->position[own] - before - 1;
}

/* Block i of the group, whose deltas were loaded before; all lanes take part. */
LCOMM_DEVICE index_block index_block_of(const group *g, uint32_t i, uint32_t delta) {
  uint64_t first = first_of_block(g, i);
  index_block block = {0, delta, 0, 0};
  uint32_t all = delta;
  LCOMM_UNROLL for (uint32_t mask = LCOMM_WARP / 2; mask > 0; mask /= 2) {
    all |= lcomm_shuffle_xor(all, mask);
  }
  if (first >= g->count) {
    return block;
  }
  block.count = lcomm_topk_at_most(g->count - first, LCOMM_TOPK_INDEX_BLOCK);
  block.width = bits_of(all);
  block.size = 1 + (block.count * block.width + 7) / 8;
  return block;
}

/* AHEAD: index blocks, or values of a thread, that are loaded together. */
enum { OWN_BLOCKS = LCOMM_TOPK_GROUP_BLOCKS / LCOMM_TOPK_WARPS, AHEAD = 4 };

/* Where each index block of the group begins, from the first; returns their size. */
LCOMM_DEVICE uint32_t measure(const group *g, uint32_t begin[LCOMM_TOPK_GROUP_BLOCKS],
                              uint32_t sums[LCOMM_TOPK_WARPS]) {
  uint32_t own = lcomm_thread(), all;
  for (uint32_t i = lcomm_warp() * OWN_BLOCKS; i < (lcomm_warp() + 1) * OWN_BLOCKS; i += AHEAD) {
    uint32_t delta[AHEAD];
    LCOMM_UNROLL for (uint32_t j = 0; j < AHEAD; j++) {
      delta[j] = delta_of(g, i + j);
    }
    LCOMM_UNROLL for (uint32_t j = 0; j < AHEAD; j++) {
      index_block block = index_block_of(g, i + j, delta[j]);
      if (lcomm_lane() == 0) {
        begin[i + j] = block.size;
      }
    }
  }
  lcomm_sync_block();
  uint32_t size = own < LCOMM_TOPK_GROUP_BLOCKS ? begin[own] : 0;
  uint32_t before = lcomm_scan_block(size, sums, &all);
  if (own < LCOMM_TOPK_GROUP_BLOCKS) {
    begin[own] = before;
  }
  lcomm_sync_block();
  return all;
}

LCOMM_KERNEL(topk_measure, write_args) {
  LCOMM_SHARED uint32_t begin[LCOMM_TOPK_GROUP_BLOCKS], sums[LCOMM_TOPK_WARPS], last;
  group g = group_of(&a);
  const lcomm_topk_output *output = &a.t.output[g.output];
  lcomm_topk_progress *progress = &a.t.progress[g.output];
  uint32_t capacity = output->capacity > 0 ? output->capacity : 1;
  uint32_t groups = (uint32_t)(((uint64_t)capacity + LCOMM_TOPK_GROUP - 1) / LCOMM_TOPK_GROUP);
  uint32_t size = measure(&g, begin, sums);
  if (lcomm_thread() == 0) {
    a.t.group_before[output->first_group + g.number] = size;
  }
  if (!lcomm_is_last(&progress->ticket, groups, &last)) {
    return;
  }
  uint32_t all = lcomm_scan_written(a.t.group_before + output->first_group, groups, sums);
  if (lcomm_thread() == 0) {
    progress->index_size = all;
    a.payload_size[g.output] =
        sizeof(uint32_t) + (uint64_t)all + lcomm_topk_value_bytes(g.count, a.int8);
  }
}

/* Puts the deltas next to each other, in `words`, and then into the payload. */
LCOMM_DEVICE void write_index_block(const index_block *block, uint32_t words[WORDS],
                                    uint8_t *bytes) {
  uint32_t lane = lcomm_lane(), bit = lane * block->width;
  words[lane] = 0;
  if (lane == 0) {
    words[WORDS - 1] = 0;
  }
  lcomm_sync_warp();
  if (lane < block->count) {
    uint64_t shifted = (uint64_t)block->delta << bit % 32;
    lcomm_atomic_or(&words[bit / 32], (uint32_t)shifted);
    lcomm_atomic_or(&words[bit / 32 + 1], (uint32_t)(shifted >> 32));
  }
  lcomm_sync_warp();
  if (lane == 0 && block->size > 0) {
    bytes[0] = (uint8_t)block->width;
  }
  for (uint32_t i = lane; i + 1 < block->size; i += LCOMM_WARP) {
    bytes[1 + i] = (uint8_t)(words[i / 4] >> i % 4 * 8);
  }
  lcomm_sync_warp();
}

/* ------------------------------------------------------------------ values */

/* Numbers in a payload lie at any address. */
LCOMM_DEVICE void put(uint8_t *bytes, uint32_t number, uint32_t size) {
  for (uint32_t i = 0; i < size; i++) {
    bytes[i] = (uint8_t)(number >> 8 * i);
  }
}

/* What stays of an entry that the receivers decode to `decoded`. */
LCOMM_DEVICE void keep_error(const write_args *a, const group *g, uint32_t i, float decoded) {
  if (a->rest == LCOMM_TOPK_REST_DONE) {
    return;
  }
  float error = lcomm_error_kept(g->value[i], decoded);
  float *kept = a->residual + lcomm_topk_entry_global(&a->t, g->output, g->position[i]);
  *kept = a->rest == LCOMM_TOPK_REST_SENT ? error : lcomm_finite_or_zero(*kept + a->weight * error);
}

LCOMM_DEVICE uint64_t end_of_group(const group *g) {
  uint64_t end = ((uint64_t)g->number + 1) * LCOMM_TOPK_GROUP;
  return end < g->count ? end : g->count;
}

LCOMM_DEVICE void write_bf16(const write_args *a, const group *g, uint8_t *values) {
  uint64_t end = end_of_group(g);
  for (uint64_t first = (uint64_t)g->number * LCOMM_TOPK_GROUP + lcomm_thread(); first < end;
       first += AHEAD * LCOMM_TOPK_THREADS) {
    float value[AHEAD];
    LCOMM_UNROLL for (uint32_t j = 0; j < AHEAD; j++) {
      uint64_t i = first + j * LCOMM_TOPK_THREADS;
      value[j] = i < end ? g->value[i] : 0.0f;
    }
    LCOMM_UNROLL for (uint32_t j = 0; j < AHEAD; j++) {
      uint64_t i = first + j * LCOMM_TOPK_THREADS;
      uint16_t code = lcomm_f32_to_bf16_finite(value[j]);
      if (i >= end) {
        continue;
      }
      put(values + i * sizeof code, code, sizeof code);
      keep_error(a, g, (uint32_t)i, lcomm_bf16_to_f32(code));
    }
  }
}

/* Of a block whose largest magnitude is `amax`; see kernels.h. */
LCOMM_DEVICE float int8_scale(uint32_t amax) {
  if (amax > LCOMM_F32_INF_BITS) {
    return lcomm_f32_from_bits(LCOMM_F32_NAN_BITS);
  }
  if (amax == LCOMM_F32_INF_BITS) {
    return lcomm_f32_from_bits(LCOMM_F32_INF_BITS);
  }
  return amax < LCOMM_INTEGER_TINY_BITS ? 0.0f : lcomm_f32_from_bits(amax) / 127.0f;
}

LCOMM_DEVICE int8_t int8_code(float value, uint32_t amax) {
  if (amax == LCOMM_F32_INF_BITS && !lcomm_f32_is_finite(value)) {
    return value > 0.0f ? 127 : -127;
  }
  if (amax >= LCOMM_F32_INF_BITS || amax < LCOMM_INTEGER_TINY_BITS) {
    return 0;
  }
  return lcomm_f32_to_int8(value * (127.0f / lcomm_f32_from_bits(amax)));
}

/* By a warp: the LCOMM_BLOCK values from `first` on. */
LCOMM_DEVICE void write_int8_block(const write_args *a, const group *g, uint64_t first,
                                   uint8_t *values) {
  uint8_t *codes = values + lcomm_topk_value_bytes(g->count, 1) - g->count;
  uint32_t amax = 0;
  for (uint64_t i = first + lcomm_lane(); i < first + LCOMM_BLOCK; i += LCOMM_WARP) {
    uint32_t magnitude = i < g->count ? lcomm_topk_magnitude(g->value[i]) : 0;
    amax = amax > magnitude ? amax : magnitude;
  }
  LCOMM_UNROLL for (uint32_t mask = LCOMM_WARP / 2; mask > 0; mask /= 2) {
    uint32_t other = lcomm_shuffle_xor(amax, mask);
    amax = amax > other ? amax : other;
  }
  float scale = int8_scale(amax);
  if (lcomm_lane() == 0) {
    put(values + first / LCOMM_BLOCK * sizeof scale, lcomm_f32_bits(scale), sizeof scale);
  }
  for (uint64_t i = first + lcomm_lane(); i < first + LCOMM_BLOCK && i < g->count;
       i += LCOMM_WARP) {
    int8_t code = int8_code(g->value[i], amax);
    codes[i] = (uint8_t)code;
    keep_error(a, g, (uint32_t)i, scale * (float)code);
  }
}

LCOMM_DEVICE void write_int8(const write_args *a, const group *g, uint8_t *values) {
  uint64_t end = end_of_group(g);
  for (uint64_t first = (uint64_t)g->number * LCOMM_TOPK_GROUP + lcomm_warp() * LCOMM_BLOCK;
       first < end; first += LCOMM_TOPK_WARPS * LCOMM_BLOCK) {
    write_int8_block(a, g, first, values);
  }
}

/* ----------------------------------------------------------------- payload */

LCOMM_KERNEL(topk_write, write_args) {
  LCOMM_SHARED uint32_t begin[LCOMM_TOPK_GROUP_BLOCKS], sums[LCOMM_TOPK_WARPS];
  LCOMM_SHARED uint32_t words[LCOMM_TOPK_WARPS][WORDS];
  group g = group_of(&a);
  uint8_t *payload = a.payload[g.output - a.first_output], *index = payload + sizeof(uint32_t);
  uint8_t *values = index + a.t.progress[g.output].index_size;
  if (g.number == 0 && lcomm_thread() == 0) {
    put(payload, g.count, sizeof g.count);
  }
  if ((uint64_t)g.number * LCOMM_TOPK_GROUP >= g.count) {
    return;
  }
  index += a.t.group_before[a.first_group + lcomm_block()];
  measure(&g, begin, sums);
  for (uint32_t i = lcomm_warp() * OWN_BLOCKS; i < (lcomm_warp() + 1) * OWN_BLOCKS; i += AHEAD) {
    uint32_t delta[AHEAD];
    LCOMM_UNROLL for (uint32_t j = 0; j < AHEAD; j++) {
      delta[j] = delta_of(&g, i + j);
    }
    LCOMM_UNROLL for (uint32_t j = 0; j < AHEAD; j++) {
      index_block block = index_block_of(&g, i + j, delta[j]);
      write_index_block(&block, words[lcomm_warp()], index + begin[i + j]);
    }
  }
  if (a.int8) {
    write_int8(&a, &g, values);
  } else {
    write_bf16(&a, &g, values);
  }
}

/* So many outputs as the arguments of a launch have room for. */
static int write_some(const lcomm_cuda_topk *topk, const lcomm_topk_job *job, write_args *args,
                      void *stream) {
  uint32_t outputs = lcomm_topk_at_most(topk->tables.outputs - args->first_output, OUTPUTS);
  const lcomm_topk_output *first = &topk->output[args->first_output];
  memcpy(args->payload, job->payload + args->first_output, outputs * sizeof *args->payload);
  args->first_group = first->first_group;
  uint32_t groups = first[outputs].first_group - first->first_group;
  return LCOMM_LAUNCH(topk_write, groups, LCOMM_TOPK_THREADS, stream, *args);
}

extern "C" int lcomm_cuda_topk_write(const lcomm_cuda_topk *topk, const lcomm_topk_job *job,
                                     void *stream) {
  write_args args;
  memset(&args, 0, sizeof args);
  args.t = topk->tables;
  args.int8 = topk->int8;
  args.rest = job->rest;
  args.residual = job->residual;
  args.weight = job->weight;
  args.payload_size = job->payload_size;
  int error = LCOMM_LAUNCH(topk_measure, topk->groups, LCOMM_TOPK_THREADS, stream, args);
  for (uint32_t o = 0; o < topk->tables.outputs && error == 0; o += OUTPUTS) {
    args.first_output = o;
    error = write_some(topk, job, &args, stream);
  }
  return error;
}
