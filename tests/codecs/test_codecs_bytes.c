/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Every table of kernels gives the same bytes, for every format, over 100
 * steps with error feedback; and so does every compiler at every optimisation,
 * because the digests are kept in bytes.golden. With --print the program
 * prints that file anew.
 */

#include "tests/kernels/kernel_samples.h"

#include <stdio.h>
#include <xxhash.h>

#include "codecs/codec_residual.h"
#include "codecs/codec_sum.h"
#include "tests/codecs/formats.h"
#include "tests/codecs/topk_shapes.h"

enum { N = 3000, STEPS = 100, SUMMANDS = 3 };

static const char golden_file[] = "tests/codecs/bytes.golden";

/* A gradient made of integers and powers of two only, so that no library and no
 * compiler has a say in it: sizes differ from block to block, some blocks are
 * zeros, some subnormal, and now and then a value is not finite. */
static void make_gradient(uint64_t step, float *gradient) {
  for (uint32_t i = 0; i < N; i++) {
    uint64_t random = (step * N + i + 1) * 0x9e3779b97f4a7c15u;
    sample_u64(&random);
    uint32_t layer = i / 200;
    int32_t sum = 0;
    for (int part = 0; part < 4; part++) {
      sum += (int32_t)(sample_u64(&random) >> 44) - (1 << 19);
    }
    uint32_t exponent = layer == 3 ? 1 : layer == 4 ? 60 : 90 + 2 * layer;
    gradient[i] = layer == 7 ? 0.0f : (float)sum * lcomm_f32_from_bits(exponent << 23);
    if (step % 10 == 9 && i % 997 == 5) {
      gradient[i] = i % 2 ? SAMPLE_INFINITY : -SAMPLE_INFINITY;
    }
    if (step % 25 == 24 && i == 1234) {
      gradient[i] = lcomm_f32_from_bits(0xffc12345u);
    }
  }
}

static uint64_t mix(uint64_t digest, const void *bytes, size_t size) {
  return XXH3_64bits_withSeed(bytes, size, digest);
}

/* What a dense format sends and keeps, and sums of it. */
static uint64_t digest_dense(const lcomm_kernels *kernels, const lcomm_format *format) {
  static float gradient[N], residual[N], sum[N];
  lcomm_range all = lcomm_range_whole(N);
  size_t size = lcomm_payload_size(format, N);
  uint8_t *payload[SUMMANDS], *result = sample_memory(size);
  lcomm_summand summands[SUMMANDS];
  uint64_t digest = 0;
  for (int i = 0; i < SUMMANDS; i++) {
    payload[i] = sample_memory(size);
    summands[i] = (lcomm_summand){.format = format, .payload = payload[i]};
  }
  memset(residual, 0, sizeof residual);
  for (uint64_t step = 0; step < STEPS; step++) {
    make_gradient(step, gradient);
    lcomm_residual_encode(format, kernels, gradient, residual, residual, all, step,
                          payload[step % SUMMANDS]);
    digest = mix(digest, payload[step % SUMMANDS], size);
    if (step % 10 == 8) { /* no NaN is added to another here */
      lcomm_sum_encode(kernels, summands, SUMMANDS, all, 0.3f, sum, format, step, result);
      digest = mix(mix(digest, sum, sizeof sum), result, size);
      lcomm_residual_encode_owner(format, kernels, sum, residual, 0.7f, all, step, result);
    }
  }
  digest = mix(digest, residual, sizeof residual);
  for (int i = 0; i < SUMMANDS; i++) {
    free(payload[i]);
  }
  free(result);
  return digest;
}

static uint64_t digest_sparse(const lcomm_kernels *kernels, const lcomm_format *format) {
  static float gradient[N], residual[N], momentum[N], sum[N];
  const uint64_t ends[] = {1000, 1001, N};
  const lcomm_topk_shape shape = segmented(ends, 3, format);
  lcomm_topk *topk = NULL;
  assert_int_equal(lcomm_topk_create(&shape, &topk), LCOMM_OK);
  size_t size = 0;
  uint8_t *payload = sample_memory(lcomm_topk_output_bound(topk, 0));
  uint64_t digest = 0;
  memset(residual, 0, sizeof residual);
  memset(momentum, 0, sizeof momentum);
  for (uint64_t step = 0; step < STEPS; step++) {
    make_gradient(step, gradient);
    kernels->ef.f32_momentum(0.9f, momentum, momentum, gradient, N);
    lcomm_topk_encode(topk, kernels, gradient, residual, residual, LCOMM_TOPK_RELEASE, &payload,
                      &size);
    lcomm_topk_mask(format, payload, NULL, 1, 0, momentum);
    lcomm_topk_decode(format, payload, N, 1, 0, 0.25f, sum);
    digest = mix(mix(digest, payload, size), sum, sizeof sum);
  }
  digest = mix(mix(digest, residual, sizeof residual), momentum, sizeof momentum);
  free(payload);
  lcomm_topk_destroy(topk);
  return digest;
}

typedef struct subject {
  lcomm_format format;
  char name[64];
} subject;

enum { SUBJECTS_MAX = FORMATS_MAX + 4 };

static void name_subject(subject *s) {
  snprintf(s->name, sizeof s->name, "%s:block=%u,variant=%u,exponent=%d,stochastic=%d",
           s->format.codec->name, s->format.block, s->format.variant, s->format.exponent,
           s->format.stochastic);
}

static size_t list_subjects(subject list[SUBJECTS_MAX]) {
  lcomm_format dense[FORMATS_MAX];
  size_t count = dense_formats(dense);
  for (size_t i = 0; i < count; i++) {
    list[i].format = dense[i];
  }
  for (uint8_t variant = 0; variant <= LCOMM_TOPK_INT8; variant++) {
    list[count].format = lcomm_format_of(&lcomm_codec_topk);
    list[count++].format.variant = variant;
  }
  for (size_t i = 0; i < count; i++) {
    name_subject(&list[i]);
  }
  return count;
}

static uint64_t digest_of(const lcomm_kernels *kernels, const lcomm_format *format) {
  uint32_t environment = lcomm_fp_enter();
  uint64_t digest = lcomm_format_is_sparse(format) ? digest_sparse(kernels, format)
                                                   : digest_dense(kernels, format);
  lcomm_fp_leave(environment);
  return digest;
}

static uint64_t golden_of(const char *name) {
  char line[128], found[64];
  unsigned long long digest = 0;
  FILE *file = fopen(golden_file, "r");
  assert_non_null(file);
  while (fgets(line, sizeof line, file)) {
    if (sscanf(line, "%63s %llx", found, &digest) == 2 && strcmp(found, name) == 0) {
      break;
    } else {
      digest = 0;
    }
  }
  fclose(file);
  return digest;
}

static void check_all_tables(void) {
  subject list[SUBJECTS_MAX];
  size_t count = list_subjects(list);
  for (size_t t = 0; lcomm_kernels_list[t] != NULL; t++) {
    const lcomm_kernels *kernels = lcomm_kernels_list[t];
    if (!lcomm_kernels_runs(kernels)) {
      printf("%s kernels do not run on this processor\n", kernels->name);
      continue;
    }
    for (size_t i = 0; i < count; i++) {
      uint64_t digest = digest_of(kernels, &list[i].format);
      if (digest != golden_of(list[i].name)) {
        fail_msg("%s kernels, %s: digest %016llx is not the one in %s", kernels->name, list[i].name,
                 (unsigned long long)digest, golden_file);
      }
    }
  }
}

static void every_table_gives_the_golden_bytes_over_100_steps(void **state) {
  (void)state;
  check_all_tables();
}

/* The application's thread flushes subnormals and rounds up. */
static void an_application_with_flush_to_zero_changes_nothing(void **state) {
  (void)state;
#if defined(__x86_64__)
  unsigned before = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(before | 0x8040u | 0x4000u);
  check_all_tables();
  __builtin_ia32_ldmxcsr(before);
#else
  skip();
#endif
}

static int print_golden(void) {
  subject list[SUBJECTS_MAX];
  size_t count = list_subjects(list);
  for (size_t i = 0; i < count; i++) {
    printf("%s %016llx\n", list[i].name,
           (unsigned long long)digest_of(&lcomm_kernels_scalar, &list[i].format));
  }
  return 0;
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_table_gives_the_golden_bytes_over_100_steps),
      cmocka_unit_test(an_application_with_flush_to_zero_changes_nothing),
  };
  if (argc == 2 && strcmp(argv[1], "--print") == 0) {
    return print_golden();
  }
  return cmocka_run_group_tests(tests, NULL, NULL);
}
