/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Sums of many payloads in one pass: the same bits as one pass for each. */

#include "tests/kernels/kernel_samples.h"

#include "codecs/codec_sum.h"
#include "tests/codecs/formats.h"
#include "tests/support/unit_tests.h"

enum { N = 10000, PEERS = 5, SEED = 3 }; /* several tiles, a short last block */

/* Each test runs over every table of kernels that runs here. */
static const lcomm_kernels *table = &lcomm_kernels_scalar;

static const lcomm_kernels *kernels(void) {
  return table;
}

typedef struct peers {
  float *own, *values[PEERS];
  uint8_t *payload[PEERS];
  lcomm_summand summand[PEERS];
} peers;

/* Payloads of `format`; the values of peer 2 are plain. */
static void make_peers(const lcomm_format *format, peers *p) {
  uint64_t random = 5;
  for (int i = 0; i < PEERS; i++) {
    p->values[i] = sample_memory(N * sizeof(float));
    for (int j = 0; j < N; j++) {
      p->values[i][j] = sample_normal(&random);
    }
    p->payload[i] = sample_memory(lcomm_payload_size(format, N));
    lcomm_encode(format, kernels(), p->values[i], lcomm_range_whole(N), SEED, p->payload[i]);
    p->summand[i] = (lcomm_summand){.format = format, .payload = p->payload[i]};
  }
  p->summand[2] = (lcomm_summand){.values = p->values[2]};
}

static void free_peers(peers *p) {
  for (int i = 0; i < PEERS; i++) {
    free(p->values[i]);
    free(p->payload[i]);
  }
}

/* One pass for each peer. */
static void sum_slowly(const lcomm_format *format, const peers *p, float factor, float *sum) {
  lcomm_range all = lcomm_range_whole(N);
  for (int i = 0; i < PEERS; i++) {
    if (i == 2) {
      kernels()->f32_add(p->values[2], 1.0f, sum, N);
    } else if (i == 0) {
      lcomm_decode(format, kernels(), p->payload[i], all, 1.0f, sum);
    } else {
      lcomm_accumulate(format, kernels(), p->payload[i], all, 1.0f, sum);
    }
  }
  kernels()->f32_scale(sum, factor, sum, N);
}

static void one_pass_gives_the_bits_of_many(const lcomm_format *format) {
  float *expected = sample_memory(N * sizeof *expected), *sum = sample_memory(N * sizeof *sum);
  peers p;
  make_peers(format, &p);
  sum_slowly(format, &p, 0.2f, expected);
  lcomm_sum(kernels(), p.summand, PEERS, lcomm_range_whole(N), 0.2f, sum);
  assert_memory_equal(sum, expected, N * sizeof *sum);
  free(sum);
  free(expected);
  free_peers(&p);
}

static void ranges_give_the_sum_of_the_whole(const lcomm_format *format) {
  float *expected = sample_memory(N * sizeof *expected), *sum = sample_memory(N * sizeof *sum);
  peers p;
  make_peers(format, &p);
  lcomm_sum(kernels(), p.summand, PEERS, lcomm_range_whole(N), 1.0f, expected);
  for (uint64_t first = 0; first < N; first += 7 * LCOMM_BLOCK) {
    uint64_t n = N - first < 7 * LCOMM_BLOCK ? N - first : 7 * LCOMM_BLOCK;
    p.summand[2].values = p.values[2] + first;
    lcomm_sum(kernels(), p.summand, PEERS, (lcomm_range){N, first, n}, 1.0f, sum + first);
  }
  assert_memory_equal(sum, expected, N * sizeof *sum);
  free(sum);
  free(expected);
  free_peers(&p);
}

static void a_summand_may_be_the_destination(void **state) {
  (void)state;
  lcomm_format format = lcomm_format_of(&lcomm_codec_int8);
  float *expected = sample_memory(N * sizeof *expected);
  peers p;
  make_peers(&format, &p);
  lcomm_sum(kernels(), p.summand, PEERS, lcomm_range_whole(N), 0.5f, expected);
  lcomm_sum(kernels(), p.summand, PEERS, lcomm_range_whole(N), 0.5f, p.values[2]);
  assert_memory_equal(p.values[2], expected, N * sizeof *expected);
  free(expected);
  free_peers(&p);
}

static void summing_and_encoding_at_once_gives_the_same_bytes(const lcomm_format *format) {
  float *expected = sample_memory(N * sizeof *expected), *sum = sample_memory(N * sizeof *sum);
  size_t size = lcomm_payload_size(format, N);
  uint8_t *apart = sample_memory(size), *fused = sample_memory(size);
  lcomm_range all = lcomm_range_whole(N);
  peers p;
  make_peers(format, &p);
  lcomm_sum(kernels(), p.summand, PEERS, all, 0.2f, expected);
  lcomm_encode(format, kernels(), expected, all, SEED, apart);
  lcomm_sum_encode(kernels(), p.summand, PEERS, all, 0.2f, sum, format, SEED, fused);
  assert_memory_equal(sum, expected, N * sizeof *sum);
  assert_memory_equal(fused, apart, size);
  free(sum);
  free(expected);
  free(apart);
  free(fused);
  free_peers(&p);
}

static void one_peer_is_enough(void **state) {
  (void)state;
  lcomm_format format = lcomm_format_of(&lcomm_codec_bf16);
  float source = 3.0f, value = 0.0f;
  uint16_t code;
  lcomm_encode(&format, kernels(), &source, lcomm_range_whole(1), SEED, (uint8_t *)&code);
  lcomm_summand summand = {.format = &format, .payload = (const uint8_t *)&code};
  lcomm_sum(kernels(), &summand, 1, lcomm_range_whole(1), 2.0f, &value);
  assert_true(value == 6.0f);
}

/* By every table of kernels that runs here. */
static void test_each_format(void **state) {
  const format_property *property = *state;
  lcomm_format list[FORMATS_MAX];
  size_t count = dense_formats(list);
  for (size_t t = 0; lcomm_kernels_list[t] != NULL; t++) {
    table = lcomm_kernels_list[t];
    for (size_t i = 0; i < count && lcomm_kernels_runs(table); i++) {
      property->holds(&list[i]);
    }
  }
  table = &lcomm_kernels_scalar;
}

static const struct CMUnitTest tests[] = {
    FORMAT_TEST(test_each_format, one_pass_gives_the_bits_of_many),
    FORMAT_TEST(test_each_format, ranges_give_the_sum_of_the_whole),
    cmocka_unit_test(a_summand_may_be_the_destination),
    FORMAT_TEST(test_each_format, summing_and_encoding_at_once_gives_the_same_bytes),
    cmocka_unit_test(one_peer_is_enough),
};
RUN_TESTS(tests)
