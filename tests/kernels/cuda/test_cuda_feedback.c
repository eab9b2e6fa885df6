/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Error feedback step after step: two workers send what they have with what they
 * kept, the owner sums both payloads and sends the sum, and keeps its error too.
 * A device and a processor each go on from what they kept themselves, so that one
 * wrong bit stays. */

#include "tests/kernels/cuda/dense_cases.h"

#include "codecs/codec_residual.h"
#include "codecs/codec_sum.h"
#include "tests/kernels/cuda/recorded_gradients.h"

enum { WORKERS = 2, N = 2700, STEPS = 100, MADE_STEPS = 12 };

static const view whole = {N, 1, 0, 0};
static const float average = 1.0f / WORKERS;

/* Gradients of each worker: every step takes N of them from another place. */
static float *pool[FILES];

/* What one side goes on from. */
typedef struct side {
  float *residual[WORKERS], *owner, *sum;
  uint8_t *payload[WORKERS], *result;
} side;

static side side_open(const lcomm_format *format) {
  side s = {.owner = array_open(&whole, N), .sum = array_open(&whole, N)};
  for (int w = 0; w < WORKERS; w++) {
    s.residual[w] = array_open(&whole, N);
    s.payload[w] = payload_open(format, N);
  }
  s.result = payload_open(format, N);
  return s;
}

static void side_close(side *s) {
  for (int w = 0; w < WORKERS; w++) {
    array_free(&whole, s->residual[w]);
    payload_free(s->payload[w]);
  }
  array_free(&whole, s->owner);
  array_free(&whole, s->sum);
  payload_free(s->result);
}

static const float *gradient_of(int worker, int step) {
  const float *from = pool[(worker + 2 * step) % FILES];
  return from + (size_t)step * 577 % (POOL - N);
}

static void step_on_processor(const lcomm_format *format, int step, side *s) {
  const lcomm_kernels *scalar = &lcomm_kernels_scalar;
  lcomm_range all = lcomm_range_whole(N);
  lcomm_summand summands[WORKERS];
  for (int w = 0; w < WORKERS; w++) {
    lcomm_residual_encode(format, scalar, gradient_of(w, step), s->residual[w], s->residual[w], all,
                          SEED + (uint64_t)step, s->payload[w]);
    summands[w] = (lcomm_summand){.format = format, .payload = s->payload[w]};
  }
  lcomm_sum(scalar, summands, WORKERS, all, average, s->sum);
  lcomm_residual_encode_owner(format, scalar, s->sum, s->owner, WORKERS, all, SEED + (uint64_t)step,
                              s->result);
}

static void encode_on_device(const lcomm_format *format, int step, const float *source,
                             float *residual, lcomm_cuda_feedback feedback, uint8_t *payload) {
  lcomm_cuda_encode a = {.source = source,
                         .residual = residual,
                         .feedback = feedback,
                         .weight = WORKERS,
                         .n = N,
                         .parts = 1,
                         .code = parts_of(format, N, payload)};
  a.code.seed = SEED + (uint64_t)step;
  assert_int_equal(lcomm_cuda_run_encode(&a, NULL), 0);
}

static void step_on_device(const lcomm_format *format, int step, side *s) {
  lcomm_cuda_code sources[WORKERS];
  for (int w = 0; w < WORKERS; w++) {
    encode_on_device(format, step, gradient_of(w, step), s->residual[w], LCOMM_CUDA_FEEDBACK_SEND,
                     s->payload[w]);
    sources[w] = parts_of(format, N, s->payload[w]);
  }
  lcomm_cuda_sum a = {.sources = sources,
                      .count = WORKERS,
                      .factor = average,
                      .destination = s->sum,
                      .n = N,
                      .parts = 1};
  assert_int_equal(lcomm_cuda_run_sum(&a, NULL), 0);
  encode_on_device(format, step, s->sum, s->owner, LCOMM_CUDA_FEEDBACK_OWNER, s->result);
}

static void expect_equal_sides(const lcomm_format *format, const side *device,
                               const side *processor) {
  size_t size = lcomm_payload_size(format, N), bytes = N * sizeof(float);
  for (int w = 0; w < WORKERS; w++) {
    expect_equal_bytes(device->payload[w], processor->payload[w], size, format, &whole, "payload");
    expect_equal_bytes(device->residual[w], processor->residual[w], bytes, format, &whole, "kept");
  }
  expect_equal_bytes(device->sum, processor->sum, bytes, format, &whole, "sum");
  expect_equal_bytes(device->result, processor->result, size, format, &whole, "result");
  expect_equal_bytes(device->owner, processor->owner, bytes, format, &whole, "kept by the owner");
}

static void train(int steps) {
  lcomm_format formats[FORMATS_MAX];
  size_t count = dense_formats(formats);
  for (size_t f = 0; f < count; f++) {
    side device = side_open(&formats[f]), processor = side_open(&formats[f]);
    for (int step = 0; step < steps; step++) {
      step_on_device(&formats[f], step, &device);
      step_on_processor(&formats[f], step, &processor);
      expect_equal_sides(&formats[f], &device, &processor);
    }
    side_close(&device);
    side_close(&processor);
  }
}

/* NaN and Inf in some steps. */
static void made_gradients_leave_the_same_residuals(void **state) {
  (void)state;
  uint64_t random = 3;
  for (int p = 0; p < FILES; p++) {
    make_values(KIND_GRADIENT, pool[p], POOL, &random);
    pool[p][6000] = SAMPLE_INFINITY;
    pool[p][6100] = p % 2 ? -SAMPLE_INFINITY : 1.0f;
  }
  pool[0][5000] = SAMPLE_NAN;
  train(MADE_STEPS);
}

/* ---------------------------------------------------------- real gradients */

static void real_gradients_leave_the_same_residuals(void **state) {
  (void)state;
  train(STEPS);
}

int main(void) {
  const struct CMUnitTest made[] = {cmocka_unit_test(made_gradients_leave_the_same_residuals)};
  const struct CMUnitTest real[] = {cmocka_unit_test(real_gradients_leave_the_same_residuals)};
  for (int p = 0; p < FILES; p++) {
    pool[p] = sample_memory(POOL * sizeof **pool);
  }
  int failed = cmocka_run_group_tests(made, NULL, NULL);
  if (find_gradients(pool)) {
    failed += cmocka_run_group_tests(real, NULL, NULL);
  } else {
    puts("SKIP real_gradients_leave_the_same_residuals: no gradients/*/step100_worker[01].f32 "
         "below LCOMM_DATA, data or ../shared/data");
  }
  for (int p = 0; p < FILES; p++) {
    free(pool[p]);
  }
  return failed;
}
