/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_KERNELS_CUDA_STEP_PROPERTIES_H
#define LCOMM_TESTS_KERNELS_CUDA_STEP_PROPERTIES_H

/* A hundred steps, in which a device and the processor each go on from what they
 * kept themselves, so that one wrong bit stays; and several streams at once. */

#include "tests/kernels/cuda/kernel_properties.h"
#include "tests/kernels/cuda/topk_properties.h"

/* ---------------------------------------------------------- error feedback */

enum { WORKERS = 2, STEPS = 100, STEP_COUNT = 900 };

/* Workers send what they have with what they kept, the owner sends the mean and
 * keeps its error too. */
static inline void train(const lcomm_format *format) {
  const view v = {STEP_COUNT, 1, 0, 0};
  encoding worker[WORKERS], owner = encoding_open(format, &v, LCOMM_CUDA_FEEDBACK_OWNER);
  lcomm_cuda_code sources[WORKERS];
  lcomm_summand summands[WORKERS];
  lcomm_cuda_sum mean = {sources, WORKERS,    LCOMM_CUDA_SUM, 0.5f, owner.source_there,
                         v.base,  .parts = 1, .part = 0};
  for (int w = 0; w < WORKERS; w++) {
    worker[w] = encoding_open(format, &v, LCOMM_CUDA_FEEDBACK_SEND);
    encoding_put(&worker[w]);
    sources[w] = parts_of(format, v.base, worker[w].payload_there);
    summands[w] = (lcomm_summand){.format = format, .payload = worker[w].payload};
  }
  owner.weight = WORKERS;
  encoding_put(&owner);
  for (size_t step = 0; step < STEPS; step++) {
    for (size_t w = 0; w < WORKERS; w++) {
      worker[w].seed = owner.seed = SEED + step;
      memcpy(worker[w].source, gradient(step * WORKERS + w, v.base), base_size(&v));
      put(worker[w].source_there, worker[w].source, base_size(&v));
      encode_there(&worker[w]);
      encode_here(&worker[w]);
    }
    CHECK(device->kernels->sum(&mean, stream));
    encode_there(&owner);
    lcomm_sum(scalar, summands, WORKERS, lcomm_range_whole(v.base), 0.5f, owner.source);
    encode_here(&owner);
    for (size_t w = 0; w < WORKERS; w++) {
      expect_encoded(&worker[w]);
    }
    expect_encoded(&owner);
  }
  for (int w = 0; w < WORKERS; w++) {
    encoding_close(&worker[w]);
  }
  encoding_close(&owner);
  give_back();
}

static void hundred_steps_of_error_feedback_stay_equal(void **state) {
  (void)state;
  for (size_t f = 0; f < format_count; f++) {
    train(&formats[f]);
  }
}

/* ----------------------------------------------------------- hundred steps */

enum { SLICE = 2900, TURNS = 3 };

/* What another rank applied of the payload before commits what was sent now. */
static inline void commit_both(topk *t, sparse *other, float *momentum, void *momentum_there) {
  const lcomm_format *format = t->shape.format;
  const sparse *mine = &t->output[0];
  lcomm_cuda_sparse sent = sparse_of(mine, &t->shape), applied;
  const uint8_t *was = other->size > 0 ? other->payload : NULL;
  if (was) {
    applied = sparse_of(other, &t->shape);
  }
  CHECK(device->kernels->topk_commit(&sent, was ? &applied : NULL, t->residual_there, stream));
  CHECK(device->kernels->topk_mask(&sent, was ? &applied : NULL, momentum_there, stream));
  lcomm_topk_commit(format, mine->payload, was, 1, 0, t->residual);
  lcomm_topk_mask(format, mine->payload, was, 1, 0, momentum);
  expect_there(t->residual_there, t->residual, SLICE * sizeof(float), "committed residual");
  expect_there(momentum_there, momentum, SLICE * sizeof(float), "masked momentum");
  memcpy(other->payload, mine->payload, mine->size);
  put(other->payload_there, mine->payload, mine->size);
  other->size = mine->size;
}

static inline void hundred_steps(int variant, const sending *turn) {
  static const uint64_t ends[] = {2500, SLICE};
  static float momentum[SLICE];
  const lcomm_format format = topk_format(0.02, variant);
  const lcomm_topk_shape shape = segmented(ends, COUNT(ends), &format);
  topk t = topk_open(&shape);
  sparse other =
      sparse_open(lcomm_topk_output_capacity(t.here, 0), lcomm_topk_output_bound(t.here, 0));
  void *momentum_there = there(NULL, sizeof momentum, 4);
  for (size_t step = 0; step < STEPS; step++) {
    memcpy(t.base, gradient(step, SLICE), sizeof momentum);
    topk_both(&t, turn[step % TURNS]);
    if (turn[step % TURNS] == HOLD) {
      memcpy(momentum, t.base, sizeof momentum);
      put(momentum_there, momentum, sizeof momentum);
      commit_both(&t, &other, momentum, momentum_there);
    }
  }
  free(other.payload);
  topk_close(&t);
  give_back();
}

static void hundred_steps_of_topk_stay_equal(void **state) {
  static const sending release[TURNS] = {RELEASE, RELEASE, RELEASE},
                       mixed[TURNS] = {HOLD, HOLD, OWNER};
  (void)state;
  for (int variant = 0; variant < 2; variant++) {
    hundred_steps(variant, release);
    hundred_steps(variant, mixed);
  }
}

/* ----------------------------------------------------------------- streams */

/* Dense and sparse encoders in each stream, nothing of which is waited for before
 * all streams have all of their work. */
static void streams_at_once_give_the_same_bytes(void **state) {
  enum { STREAMS = 4, ROUNDS = 3, N = 9001 };
  static const uint64_t end = N;
  const view v = {N, 1, 0, 0};
  void *streams[STREAMS], *own = stream;
  topk chooser[STREAMS];
  encoding dense[STREAMS];
  lcomm_format chosen[STREAMS];
  (void)state;
  for (size_t s = 0; s < STREAMS; s++) {
    CHECK(device->stream.create(&streams[s]));
    stream = streams[s];
    chosen[s] = topk_format(0.02, (int)(s % 2));
    chooser[s] = topk_open(&(lcomm_topk_shape){.base_count = N,
                                               .parts = 1,
                                               .outputs = 1,
                                               .format = &chosen[s],
                                               .segment_ends = &end,
                                               .segments = 1});
    memcpy(chooser[s].base, gradient(s, N), base_size(&v));
    dense[s] = encoding_made(&formats[s * (format_count - 1) / (STREAMS - 1)], &v,
                             LCOMM_CUDA_FEEDBACK_SEND, KIND_GRADIENT);
  }
  for (int round = 0; round < ROUNDS; round++) {
    for (size_t s = 0; s < STREAMS; s++) {
      stream = streams[s];
      topk_encode_there(&chooser[s], RELEASE);
      encode_there(&dense[s]);
    }
  }
  for (size_t s = 0; s < STREAMS; s++) {
    stream = streams[s];
    for (int round = 0; round < ROUNDS; round++) {
      topk_encode_here(&chooser[s], RELEASE);
      encode_here(&dense[s]);
    }
    topk_expect(&chooser[s]);
    expect_encoded(&dense[s]);
    topk_close(&chooser[s]);
    encoding_close(&dense[s]);
  }
  stream = own;
  give_back();
  for (size_t s = 0; s < STREAMS; s++) {
    CHECK(device->stream.destroy(streams[s]));
  }
}

#define STEP_PROPERTIES(TEST)                                                                      \
  TEST(hundred_steps_of_error_feedback_stay_equal), TEST(hundred_steps_of_topk_stay_equal),        \
      TEST(streams_at_once_give_the_same_bytes)

#endif
