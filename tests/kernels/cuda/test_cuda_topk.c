/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Top-k of a device: the encoder of one payload gives the bytes of the CPU's. */

#include "tests/kernels/cuda/topk_pair.h"
#include "tests/support/unit_tests.h"

static const double densities[] = {0.001, 0.01, 0.3, 1.0};
enum { DENSITIES = sizeof densities / sizeof *densities };

static void encode_kind(const lcomm_topk_shape *shape, value_of *kind, pair_mode mode) {
  pair p = make_pair(shape);
  fill(p.base, shape->base_count, kind, 7 + shape->base_count);
  if (mode == RELEASE || mode == HOLD) {
    fill_residuals(&p, kind == any_bits ? normal : kind, 11);
  } else {
    fill_residuals(&p, normal, 11);
  }
  for (uint64_t i = 0; i < shape->base_count; i++) { /* which of two NaNs survives is open */
    if (!lcomm_f32_is_finite(p.base[i])) {
      p.expected.residual[i] = p.found.residual[i] = 1.0f;
    }
  }
  encode_both(&p, mode);
  encode_both(&p, mode);
  free_pair(&p);
}

static void every_kind_of_data_gives_the_same_bytes(void **state) {
  (void)state;
  const uint64_t count = 9001;
  for (int variant = 0; variant < VARIANTS; variant++) {
    for (int kind = 0; kind < KINDS; kind++) {
      for (int mode = 0; mode < MODES; mode++) {
        const lcomm_format format = topk_format(0.01, variant);
        const lcomm_topk_shape shape = whole(&count, &format);
        encode_kind(&shape, kinds[kind], (pair_mode)mode);
      }
    }
  }
}

/* int8 sends such values as zeros. */
static float tiny(uint64_t i, uint64_t *random) {
  return lcomm_f32_from_bits(0x03000000u) * normal(i, random);
}

static void tiny_values_give_the_same_bytes(void **state) {
  (void)state;
  const uint64_t count = 9001;
  for (int variant = 0; variant < VARIANTS; variant++) {
    const lcomm_format format = topk_format(0.01, variant);
    lcomm_topk_shape shape = whole(&count, &format);
    pair p = make_pair(&shape);
    fill(p.base, count, tiny, 1);
    encode_both(&p, RELEASE);
    free_pair(&p);
  }
}

/* Enough NaNs for a threshold that is one; no Inf may stay behind. */
static float often_not_finite(uint64_t i, uint64_t *random) {
  uint64_t dice = sample_u64(random) % 1000;
  if (i % 2 == 0 && dice < 100) {
    return dice < 80 ? SAMPLE_NAN : SAMPLE_INFINITY;
  }
  return sample_normal(random);
}

static void a_step_full_of_nan_leaves_no_trace(void **state) {
  (void)state;
  const uint64_t count = 9001;
  for (int mode = 0; mode < MODES; mode++) {
    for (int variant = 0; variant < VARIANTS; variant++) {
      const lcomm_format format = topk_format(0.01, variant);
      const lcomm_topk_shape shape = whole(&count, &format);
      encode_kind(&shape, often_not_finite, (pair_mode)mode);
    }
  }
}

static void every_density_gives_the_same_bytes(void **state) {
  (void)state;
  const uint64_t count = 9001;
  value_of *const chosen[] = {normal, few_levels, mostly_zero, rarely_not_finite};
  for (int density = 0; density < DENSITIES; density++) {
    for (size_t kind = 0; kind < sizeof chosen / sizeof *chosen; kind++) {
      const lcomm_format format = topk_format(densities[density], (int)(kind % 2));
      const lcomm_topk_shape shape = whole(&count, &format);
      encode_kind(&shape, chosen[kind], RELEASE);
    }
  }
}

static void every_count_gives_the_same_bytes(void **state) {
  (void)state;
  static const uint64_t counts[] = {0,   1,    2,    31,   32,   33,   127,  128,   129,  255,
                                    256, 1000, 1024, 1025, 4095, 4096, 4097, 12288, 20001};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    for (int density = 0; density < DENSITIES; density++) {
      for (int variant = 0; variant < VARIANTS; variant++) {
        const lcomm_format format = topk_format(densities[density], variant);
        const lcomm_topk_shape shape = whole(&counts[i], &format);
        encode_kind(&shape, normal, (pair_mode)((i + (size_t)density) % MODES));
      }
    }
  }
}

/* Arrays that do not begin at a multiple of 16 bytes. */
static void every_address_gives_the_same_bytes(void **state) {
  (void)state;
  enum { COUNT = 9000 };
  const uint64_t count = COUNT;
  const lcomm_format format = topk_format(0.01, 0);
  const lcomm_topk_shape shape = whole(&count, &format);
  for (size_t shift = 0; shift < 16; shift++) {
    pair p = make_pair(&shape);
    float *base = sample_memory((COUNT + 4) * sizeof *base);
    float *residual = sample_memory((COUNT + 4) * sizeof *residual);
    float *old_base = p.base, *old_residual = p.found.residual;
    fill(p.base, COUNT, normal, shift + 1);
    fill_residuals(&p, normal, shift + 2);
    encode_expected(&p, RELEASE);
    p.base = memcpy(base + shift % 4, p.base, COUNT * sizeof *base);
    p.found.residual = memcpy(residual + shift / 4, p.found.residual, COUNT * sizeof *base);
    encode_found(&p, RELEASE);
    assert_int_equal(p.found.size[0], p.expected.size[0]);
    assert_memory_equal(p.found.payload[0], p.expected.payload[0], p.expected.size[0]);
    assert_memory_equal(p.found.residual, p.expected.residual, COUNT * sizeof *base);
    p.base = old_base;
    p.found.residual = old_residual;
    free(base);
    free(residual);
    free_pair(&p);
  }
}

/* ----------------------------------------------------------------- segments */

/* Segments of all lengths; the scale of their values differs. */
static void segments_are_chosen_from_by_themselves(void **state) {
  (void)state;
  static const uint64_t ends[] = {1,    2,    2,     130,   131,   1500,  4096,
                                  4097, 9000, 20000, 20100, 28672, 40000, 40001};
  static const double density[] = {0.5, 1.0, 0.5,   0.1, 1.0,  0.01, 0.02,
                                   1.0, 0.3, 0.001, 0.9, 0.01, 0.5,  0.2};
  enum { SEGMENTS = sizeof ends / sizeof *ends };
  for (int variant = 0; variant < VARIANTS; variant++) {
    for (int kind = 0; kind < KINDS; kind++) {
      const lcomm_format format = topk_format(0.0, variant);
      lcomm_topk_shape shape = segmented(ends, SEGMENTS, &format);
      shape.segment_densities = density;
      encode_kind(&shape, kinds[kind], kind % 2 == 0 ? RELEASE : HOLD);
    }
  }
}

/* More than one block searches such a segment. */
static void long_segments_are_searched_by_many_blocks(void **state) {
  (void)state;
  static const uint64_t ends[] = {5000, 300000, 300001};
  value_of *const chosen[] = {normal, few_levels, mostly_zero};
  const lcomm_format format = topk_format(0.01, 0);
  const lcomm_topk_shape shape = segmented(ends, 3, &format);
  for (size_t i = 0; i < sizeof chosen / sizeof *chosen; i++) {
    encode_kind(&shape, chosen[i], RELEASE);
  }
}

/* -------------------------------------------------------------- many steps */

enum { SLICE = 12500, WORKERS = 4 };

/* A slice of a real gradient, or numbers like it where there is none. */
static void load_gradient(const char *model, unsigned worker, float *value) {
  char path[128];
  snprintf(path, sizeof path, "../shared/data/gradients/%s/step100_worker%u.f32", model, worker);
  FILE *file = fopen(path, "rb");
  fill(value, SLICE, clustered, worker + 1);
  if (!file) {
    return;
  }
  assert_int_equal(fseek(file, 1000000 * (long)sizeof(float), SEEK_SET), 0);
  assert_int_equal(fread(value, sizeof *value, SLICE, file), SLICE);
  fclose(file);
}

static void hundred_steps(const char *model, int variant) {
  static float gradient[WORKERS][SLICE];
  static const uint64_t ends[] = {3000, 11000, SLICE};
  const lcomm_format format = topk_format(0.01, variant);
  const lcomm_topk_shape shape = segmented(ends, 3, &format);
  for (unsigned worker = 0; worker < WORKERS; worker++) {
    load_gradient(model, worker, gradient[worker]);
  }
  pair p = make_pair(&shape);
  for (unsigned step = 0; step < 100; step++) {
    memcpy(p.base, gradient[step % WORKERS], SLICE * sizeof *p.base);
    encode_both(&p, RELEASE);
  }
  free_pair(&p);
}

static void hundred_steps_of_error_feedback_stay_equal(void **state) {
  (void)state;
  hundred_steps("gpt", 0);
  hundred_steps("cnn", 1);
}

/* --------------------------------------------------------------------- rest */

/* The result does not depend on which block or thread comes first. */
static void order_of_threads_does_not_matter(void **state) {
  (void)state;
  const uint64_t count = 9001;
  value_of *const chosen[] = {normal, equal, mostly_zero, clustered, rarely_not_finite};
  for (uint64_t order = 1; order <= 2; order++) {
    for (size_t i = 0; i < sizeof chosen / sizeof *chosen; i++) {
      for (int variant = 0; variant < VARIANTS; variant++) {
        const lcomm_format format = topk_format(0.01, variant);
        const lcomm_topk_shape shape = whole(&count, &format);
        lcomm_emulated_order = order;
        encode_kind(&shape, chosen[i], RELEASE);
        lcomm_emulated_order = 0;
      }
    }
  }
}

static void memory_is_a_small_part_of_the_view(void **state) {
  (void)state;
  static const uint64_t counts[] = {1 << 20, 1 << 24, 1 << 28};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    uint64_t kept = counts[i] / 100;
    lcomm_cuda_topk_shape shape = {.base_count = counts[i],
                                   .parts = 1,
                                   .outputs = 1,
                                   .segments = 1,
                                   .segment_count = &counts[i],
                                   .segment_kept = &kept,
                                   .output_capacity = &kept};
    assert_in_range(lcomm_cuda_run_topk_size(&shape), 1, counts[i] * sizeof(float) / 10);
  }
}

static void bad_shapes_are_refused(void **state) {
  (void)state;
  const uint64_t counts[] = {100, 200}, kept[] = {1, 2}, capacity[] = {3, 3};
  const lcomm_cuda_topk_shape good = {.base_count = 300,
                                      .parts = 1,
                                      .outputs = 1,
                                      .segments = 2,
                                      .segment_count = counts,
                                      .segment_kept = kept,
                                      .output_capacity = capacity};
  lcomm_cuda_topk_shape bad[6];
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    bad[i] = good;
  }
  bad[0].base_count = 299;
  bad[1].parts = 0;
  bad[2].part = 1;
  bad[3].outputs = 0;
  bad[4].segment_kept = counts + 1;
  bad[4].segments = 1;
  bad[4].base_count = 100;
  bad[5].base_count = (uint64_t)1 << 32;
  assert_int_not_equal(lcomm_cuda_run_topk_size(&good), 0);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_int_equal(lcomm_cuda_run_topk_size(&bad[i]), 0);
    assert_null(lcomm_cuda_run_topk_create(&bad[i], NULL, NULL));
  }
  lcomm_cuda_run_topk_destroy(NULL);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_kind_of_data_gives_the_same_bytes),
    cmocka_unit_test(tiny_values_give_the_same_bytes),
    cmocka_unit_test(a_step_full_of_nan_leaves_no_trace),
    cmocka_unit_test(every_density_gives_the_same_bytes),
    cmocka_unit_test(every_count_gives_the_same_bytes),
    cmocka_unit_test(every_address_gives_the_same_bytes),
    cmocka_unit_test(segments_are_chosen_from_by_themselves),
    cmocka_unit_test(long_segments_are_searched_by_many_blocks),
    cmocka_unit_test(hundred_steps_of_error_feedback_stay_equal),
    cmocka_unit_test(order_of_threads_does_not_matter),
    cmocka_unit_test(memory_is_a_small_part_of_the_view),
    cmocka_unit_test(bad_shapes_are_refused),
};
RUN_TESTS(tests)
