/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Every table that runs here gives the bytes of the scalar one, for all
 * kernels, lengths, alignments and kinds of values. */

#include "tests/kernels/kernel_cases.h"

#include <stdio.h>

#include "tests/kernels/kernel_jobs.h"
#include "tests/kernels/kernel_slabs.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* One job, all tables. */
static void compare_tables(const kernel_case *c, const job *j, workshop *shop) {
  area before[OUTPUTS], expected[OUTPUTS], got[OUTPUTS];
  for (int o = 0; o < OUTPUTS; o++) {
    before[o] = area_make(c, o, j->n, shop);
    expected[o] = area_copy(&before[o]);
  }
  run_case(c, &lcomm_kernels_scalar, j, expected);
  for (size_t t = 0; shop->tables[t] != NULL; t++) {
    const lcomm_kernels *table = shop->tables[t];
    for (int o = 0; o < OUTPUTS; o++) {
      got[o] = area_copy(&before[o]);
    }
    run_case(c, table, j, got);
    for (int o = 0; o < OUTPUTS; o++) {
      ptrdiff_t at =
          word_difference(expected[o].memory, got[o].memory, got[o].size, any_nan_will_do(c, j));
      if (at >= 0) {
        fail_msg("%s, table %s: n %zu, block %zu, factor %g, output %d differs at word %td of %zu",
                 c->name, table->name, j->n, j->block, (double)j->factor, o, at,
                 got[o].size / sizeof(float));
      }
      free(got[o].memory);
    }
  }
  for (int o = 0; o < OUTPUTS; o++) {
    free(before[o].memory);
    free(expected[o].memory);
  }
}

static void compare_length(const kernel_case *c, size_t n, kind k, workshop *shop) {
  for (size_t b = 0; c->blocks[b] != 0; b++) {
    inputs in = inputs_make(n, c->blocks[b], k, shop);
    compare_tables(c, &in.job, shop);
    inputs_free(&in);
  }
}

/* All short lengths, and some longer than a tile of eight of the largest
 * blocks. */
static void compare_all(const kernel_case *c, size_t cases, workshop *shop) {
  enum { ROUNDS = 3 };
  static const size_t longer[] = {511,  512,  513,  1023, 1024, 1025,
                                  2047, 2048, 2049, 2171, 4096, MOST_VALUES};
  for (size_t i = 0; i < cases; i++) {
    for (int round = 0; round < ROUNDS * KINDS; round++) {
      kind k = (kind)(round % KINDS);
      for (size_t n = 0; n <= 300; n++) {
        compare_length(&c[i], n, k, shop);
      }
      for (size_t l = 0; l < COUNT(longer); l++) {
        compare_length(&c[i], longer[l], k, shop);
      }
    }
  }
}

static void every_table_casts_16_bits_as_the_scalar_one_does(void **state) {
  compare_all(cases_16_bits, COUNT(cases_16_bits), *state);
}

static void every_table_encodes_int8_and_int4_as_the_scalar_one_does(void **state) {
  compare_all(cases_integer_encode, COUNT(cases_integer_encode), *state);
}

static void every_table_decodes_int8_and_int4_as_the_scalar_one_does(void **state) {
  compare_all(cases_integer_decode, COUNT(cases_integer_decode), *state);
}

static void every_table_encodes_fp8_as_the_scalar_one_does(void **state) {
  compare_all(cases_fp8_encode, COUNT(cases_fp8_encode), *state);
}

static void every_table_rounds_stochastically_as_the_scalar_one_does(void **state) {
  compare_all(cases_fp8_stochastic, COUNT(cases_fp8_stochastic), *state);
}

static void every_table_decodes_fp8_as_the_scalar_one_does(void **state) {
  compare_all(cases_fp8_decode, COUNT(cases_fp8_decode), *state);
}

static void every_table_encodes_sign_and_int2_as_the_scalar_one_does(void **state) {
  compare_all(cases_lowbit_encode, COUNT(cases_lowbit_encode), *state);
}

static void every_table_decodes_sign_and_int2_as_the_scalar_one_does(void **state) {
  compare_all(cases_lowbit_decode, COUNT(cases_lowbit_decode), *state);
}

static void every_table_codes_f16_blocks_as_the_scalar_one_does(void **state) {
  compare_all(cases_f16_block, COUNT(cases_f16_block), *state);
}

static void every_table_scales_adds_and_counts_as_the_scalar_one_does(void **state) {
  compare_all(cases_arithmetic, COUNT(cases_arithmetic), *state);
}

static void every_table_keeps_errors_as_the_scalar_one_does(void **state) {
  compare_all(cases_feedback, COUNT(cases_feedback), *state);
}

static void every_table_selects_as_the_scalar_one_does(void **state) {
  compare_all(cases_select, COUNT(cases_select), *state);
}

static void every_table_splits_and_joins_as_the_scalar_one_does(void **state) {
  compare_all(cases_planes, COUNT(cases_planes), *state);
}

static void joined_planes_are_what_was_split(void **state) {
  workshop *shop = *state;
  for (size_t t = 0; shop->tables[t] != NULL; t++) {
    const lcomm_kernels *table = shop->tables[t];
    for (size_t n = 0; n <= 300; n++) {
      inputs in = inputs_make(n, LCOMM_BLOCK, KIND_BITS, shop);
      uint8_t plane[4][300], joined[4 * 300];
      uint8_t *const to[4] = {plane[0], plane[1], plane[2], plane[3]};
      const uint8_t *const from[4] = {plane[0], plane[1], plane[2], plane[3]};
      table->planes.split4(in.job.code, to, n);
      table->planes.join4(from, joined, n);
      assert_memory_equal(joined, in.job.code, 4 * n);
      table->planes.split2(in.job.code, to, n);
      table->planes.join2(from, joined, n);
      assert_memory_equal(joined, in.job.code, 2 * n);
      inputs_free(&in);
    }
  }
}

typedef struct case_list {
  const kernel_case *cases;
  size_t count;
} case_list;

static const case_list all_cases[] = {
    {cases_16_bits, COUNT(cases_16_bits)},
    {cases_integer_encode, COUNT(cases_integer_encode)},
    {cases_integer_decode, COUNT(cases_integer_decode)},
    {cases_fp8_encode, COUNT(cases_fp8_encode)},
    {cases_fp8_stochastic, COUNT(cases_fp8_stochastic)},
    {cases_fp8_decode, COUNT(cases_fp8_decode)},
    {cases_f16_block, COUNT(cases_f16_block)},
    {cases_arithmetic, COUNT(cases_arithmetic)},
    {cases_feedback, COUNT(cases_feedback)},
    {cases_select, COUNT(cases_select)},
    {cases_planes, COUNT(cases_planes)},
};

/* Every table may pass by the caches then. */
static void every_table_codes_long_arrays_as_the_scalar_one_does(void **state) {
  workshop *shop = *state;
  const size_t n = LCOMM_STREAM_COUNT + 77;
  float *value = sample_memory(n * sizeof *value);
  for (size_t i = 0; i < n; i++) {
    value[i] = shop->pool[i / POOL % KINDS][i % POOL];
  }
  slabs s = slabs_open(5 * n + 16 * LINE);
  job j = slab_job(value, n);
  for (size_t l = 0; l < COUNT(all_cases); l++) {
    for (size_t i = 0; i < all_cases[l].count; i++) {
      slabs_compare(&all_cases[l].cases[i], &j, &s, shop);
    }
  }
  slabs_close(&s);
  free(value);
}

/* Real gradients, where there are some */

static FILE *open_gradients(const char *name) {
  const char *folders[] = {getenv("LCOMM_DATA"), "data", "../shared/data"};
  for (size_t f = 0; f < COUNT(folders); f++) {
    char path[4096];
    if (!folders[f]) {
      continue;
    }
    snprintf(path, sizeof path, "%s/gradients/%s/step100_worker0.f32", folders[f], name);
    FILE *file = fopen(path, "rb");
    if (file) {
      return file;
    }
  }
  return NULL;
}

static const char *const gradient_names[] = {"gpt", "cnn"};

static size_t gradient_files(void) {
  size_t found = 0;
  for (size_t g = 0; g < COUNT(gradient_names); g++) {
    FILE *file = open_gradients(gradient_names[g]);
    if (!file) {
      continue;
    }
    fclose(file);
    found++;
  }
  return found;
}

static void every_table_agrees_on_real_gradients(void **state) {
  const workshop *shop = *state;
  enum { MOST = 4 << 20 };
  float *value = sample_memory(MOST * sizeof *value);
  slabs s = slabs_open((size_t)16 * MOST + 16 * LINE);
  for (size_t g = 0; g < COUNT(gradient_names); g++) {
    FILE *file = open_gradients(gradient_names[g]);
    if (!file) {
      continue;
    }
    job j = slab_job(value, fread(value, sizeof *value, MOST, file));
    fclose(file);
    for (size_t l = 0; l < COUNT(all_cases); l++) {
      for (size_t i = 0; i < all_cases[l].count; i++) {
        for (size_t b = 0; all_cases[l].cases[i].blocks[b] != 0; b++) {
          j.block = all_cases[l].cases[i].blocks[b];
          slabs_compare(&all_cases[l].cases[i], &j, &s, shop);
        }
      }
    }
  }
  slabs_close(&s);
  free(value);
}

static int setup(void **state) {
  *state = workshop_open();
  return 0;
}

static int teardown(void **state) {
  free(*state);
  return 0;
}

/* Counted, and said with the reason. */
static void report_tables_that_do_not_run(void) {
  for (size_t t = 0; lcomm_kernels_list[t] != NULL; t++) {
    if (!lcomm_kernels_runs(lcomm_kernels_list[t])) {
      printf("SKIP table_%zu_agrees_with_the_scalar_one: the processor or the system lacks what "
             "%s needs\n",
             t, lcomm_kernels_list[t]->name);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_table_casts_16_bits_as_the_scalar_one_does),
      cmocka_unit_test(every_table_encodes_int8_and_int4_as_the_scalar_one_does),
      cmocka_unit_test(every_table_decodes_int8_and_int4_as_the_scalar_one_does),
      cmocka_unit_test(every_table_encodes_fp8_as_the_scalar_one_does),
      cmocka_unit_test(every_table_rounds_stochastically_as_the_scalar_one_does),
      cmocka_unit_test(every_table_decodes_fp8_as_the_scalar_one_does),
      cmocka_unit_test(every_table_encodes_sign_and_int2_as_the_scalar_one_does),
      cmocka_unit_test(every_table_decodes_sign_and_int2_as_the_scalar_one_does),
      cmocka_unit_test(every_table_codes_f16_blocks_as_the_scalar_one_does),
      cmocka_unit_test(every_table_scales_adds_and_counts_as_the_scalar_one_does),
      cmocka_unit_test(every_table_keeps_errors_as_the_scalar_one_does),
      cmocka_unit_test(every_table_selects_as_the_scalar_one_does),
      cmocka_unit_test(every_table_splits_and_joins_as_the_scalar_one_does),
      cmocka_unit_test(joined_planes_are_what_was_split),
      cmocka_unit_test(every_table_codes_long_arrays_as_the_scalar_one_does),
  };
  const struct CMUnitTest gradient_tests[] = {
      cmocka_unit_test(every_table_agrees_on_real_gradients),
  };
  report_tables_that_do_not_run();
  int failed = cmocka_run_group_tests(tests, setup, teardown);
  if (gradient_files() == 0) {
    puts("SKIP every_table_agrees_on_real_gradients: no gradients/*/step100_worker0.f32 below "
         "LCOMM_DATA, data or ../shared/data");
    return failed;
  }
  return failed + cmocka_run_group_tests(gradient_tests, setup, teardown);
}
