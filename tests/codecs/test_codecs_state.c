/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The bytes of a saved error-feedback state. */

#include "tests/kernels/kernel_samples.h"

#include <stdio.h>
#include <xxhash.h>

#include "codecs/codec_state.h"
#include "tests/support/unit_tests.h"

enum { TENSORS = 10, FILE_MAX = 4096 };

typedef struct sample {
  lcomm_state_header header;
  lcomm_state_tensor tensors[TENSORS];
  float values[TENSORS][4][64]; /* residual, momentum, velocity, Q */
  uint8_t bytes[FILE_MAX];
  size_t size;
  size_t record[TENSORS]; /* offset of each */
} sample;

static void fix_checksum(sample *s) {
  lcomm_state_put_checksum(XXH3_64bits(s->bytes, s->size - 8), s->bytes + s->size - 8);
}

static void append_values(sample *s, const float *values, uint64_t n) {
  memcpy(s->bytes + s->size, values, 4 * n);
  s->size += 4 * n;
}

static void append_tensor(sample *s, int i) {
  const lcomm_state_tensor *tensor = &s->tensors[i];
  s->record[i] = s->size;
  s->size += lcomm_state_pack_record(tensor, s->bytes + s->size);
  append_values(s, s->values[i][0], tensor->n);
  if (tensor->has_momentum) {
    append_values(s, s->values[i][1], tensor->n);
  }
  if (tensor->has_velocity) {
    append_values(s, s->values[i][2], lcomm_state_velocity_count(tensor));
  }
  append_values(s, s->values[i][3], lcomm_state_basis_count(tensor));
  memset(s->bytes + s->size, 0, lcomm_state_padding(tensor));
  s->size += lcomm_state_padding(tensor);
  assert_int_equal(s->size - s->record[i], lcomm_state_tensor_size(tensor));
}

static void fill_values(sample *s) {
  uint64_t state = 7;
  for (size_t i = 0; i < sizeof s->values / sizeof(float); i++) {
    (&s->values[0][0][0])[i] = sample_bits(&state);
  }
}

static void write_sample(sample *s) {
  s->header.file_size = lcomm_state_header_size(&s->header) + 8;
  for (int i = 0; i < TENSORS; i++) {
    s->header.file_size += lcomm_state_tensor_size(&s->tensors[i]);
  }
  assert_in_range(s->header.file_size, 64, FILE_MAX);
  s->size = lcomm_state_pack_header(&s->header, s->bytes);
  for (int i = 0; i < TENSORS; i++) {
    append_tensor(s, i);
  }
  s->size += 8;
  assert_int_equal(s->size, s->header.file_size);
  fix_checksum(s);
}

static lcomm_state_guard guard_of(uint32_t rungs, bool came_back, bool pays) {
  return (lcomm_state_guard){
      .rungs = rungs, .came_back = came_back, .pays = pays, .good = 7, .patience = UINT64_MAX};
}

/* One tensor of each kind: residual, with momentum, velocity, all, nothing; calls; and a matrix. */
static sample *make_sample(void) {
  sample *s = sample_memory(sizeof *s);
  s->header = (lcomm_state_header){.version = LCOMM_STATE_VERSION,
                                   .step = 0x0102030405060708u,
                                   .rank = 3,
                                   .ranks = 8,
                                   .nodes = 2,
                                   .node = 1,
                                   .sequence = 0xfffffffeu,
                                   .tensors = TENSORS};
  snprintf(s->header.policy, sizeof s->header.policy, "net=topk:0.01+ef");
  s->tensors[0] = (lcomm_state_tensor){.name = "weight", .op = 1, .count = 50, .first = 7, .n = 13};
  s->tensors[1] = (lcomm_state_tensor){
      .name = "bias", .dtype = 2, .has_momentum = true, .count = 40, .first = 0, .n = 40};
  s->tensors[2] =
      (lcomm_state_tensor){.name = "norm.one", .dtype = 1, .has_velocity = true, .count = 33};
  s->tensors[3] = (lcomm_state_tensor){.name = "both.one",
                                       .has_momentum = true,
                                       .has_velocity = true,
                                       .count = 10,
                                       .first = 2,
                                       .n = 5};
  s->tensors[4] = (lcomm_state_tensor){
      .name = "x", .count = 1, .first = 1, .has_guard = true, .guard = guard_of(3, true, false)};
  s->tensors[5] = (lcomm_state_tensor){.name = "call",
                                       .of_calls = true,
                                       .has_velocity = true,
                                       .count = 12,
                                       .n = 3,
                                       .calls = 0x0102030405060708u};
  s->tensors[6] = (lcomm_state_tensor){.name = "shard.one",
                                       .of_calls = true,
                                       .of_scatters = true,
                                       .has_momentum = true,
                                       .has_velocity = true,
                                       .count = 1000,
                                       .first = 900,
                                       .n = 11,
                                       .calls = 3};
  s->tensors[7] = (lcomm_state_tensor){.name = "fallen",
                                       .of_calls = true,
                                       .has_guard = true,
                                       .count = 5,
                                       .n = 2,
                                       .calls = 9,
                                       .guard = guard_of(2, false, true)};
  s->tensors[8] = (lcomm_state_tensor){
      .name = "matrix", .count = 48, .first = 0, .n = 48, .shape = {.rank = 3, .columns = 5}};
  s->tensors[9] = (lcomm_state_tensor){.name = "none", .of_calls = true, .count = 2, .calls = 1};
  fill_values(s);
  write_sample(s);
  return s;
}

/* In memory of exactly this size. */
static lcomm_status open_copy(const uint8_t *bytes, size_t size, const char **why) {
  uint8_t *exact = sample_memory(size);
  lcomm_state_header header;
  lcomm_state_reader reader;
  memcpy(exact, bytes, size);
  lcomm_status status = lcomm_state_open(exact, size, &header, &reader, why);
  free(exact);
  return status;
}

static void check_refused(const uint8_t *bytes, size_t size, const char *phrase) {
  const char *why = "";
  assert_int_equal(open_copy(bytes, size, &why), LCOMM_ERR_WIRE);
  assert_string_equal(why, phrase);
}

/* ------------------------------------------------------------------- format */

static void header_has_the_bytes_the_format_says(void **state) {
  (void)state;
  const uint8_t expected[64] = {'L', 'C', 'M', 'S', 3, 0, 0, 0, 0x48, 0,   0, 0, 0, 0, 0, 0,
                                8,   7,   6,   5,   4, 3, 2, 1, 1,    0,   0, 0, 3, 0, 0, 0,
                                2,   0,   0,   0,   1, 0, 0, 0, 4,    3,   2, 1, 0, 0, 0, 0,
                                2,   0,   0,   0,   0, 0, 0, 0, 'a',  'b', 0, 0, 0, 0, 0, 0};
  lcomm_state_header header = {.version = LCOMM_STATE_VERSION,
                               .file_size = 0x48,
                               .step = 0x0102030405060708u,
                               .rank = 1,
                               .ranks = 3,
                               .nodes = 2,
                               .node = 1,
                               .sequence = 0x01020304,
                               .policy = "ab"};
  uint8_t bytes[LCOMM_STATE_HEADER_MAX];
  assert_int_equal(lcomm_state_pack_header(&header, bytes), sizeof expected);
  assert_memory_equal(bytes, expected, sizeof expected);
}

static void record_has_the_bytes_the_format_says(void **state) {
  (void)state;
  const uint8_t expected[40] = {3, 0, 0, 0, 2, 1, 3, 0, 9, 0, 0, 0, 0,   0,   0,   0, 4, 0, 0, 0,
                                0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 'a', 'b', 'c', 0, 0, 0, 0, 0};
  lcomm_state_tensor tensor = {.name = "abc",
                               .dtype = 2,
                               .op = 1,
                               .has_momentum = true,
                               .has_velocity = true,
                               .count = 9,
                               .first = 4,
                               .n = 5};
  uint8_t bytes[LCOMM_STATE_RECORD_MAX];
  assert_int_equal(lcomm_state_pack_record(&tensor, bytes), sizeof expected);
  assert_memory_equal(bytes, expected, sizeof expected);
  assert_int_equal(lcomm_state_padding(&tensor), 4);
  assert_int_equal(lcomm_state_tensor_size(&tensor), 40 + 4 * (5 + 5 + 9) + 4);
}

static void a_guard_has_the_bytes_the_format_says(void **state) {
  (void)state;
  const uint8_t expected[64] = {1,  0, 0, 0, 0, 0, 16, 0, 9,   0, 0, 0, 0, 0, 0, 0,
                                0,  0, 0, 0, 0, 0, 0,  0, 0,   0, 0, 0, 0, 0, 0, 0,
                                2,  0, 0, 0, 1, 0, 0,  0, 6,   0, 0, 0, 0, 0, 0, 0,
                                20, 0, 0, 0, 0, 0, 0,  0, 'a', 0, 0, 0, 0, 0, 0, 0};
  lcomm_state_tensor tensor = {.name = "a",
                               .count = 9,
                               .has_guard = true,
                               .guard = {.rungs = 2, .came_back = true, .good = 6, .patience = 20}};
  uint8_t bytes[LCOMM_STATE_RECORD_MAX];
  assert_int_equal(lcomm_state_pack_record(&tensor, bytes), sizeof expected);
  assert_memory_equal(bytes, expected, sizeof expected);
}

static void a_factor_has_the_bytes_the_format_says(void **state) {
  (void)state;
  const uint8_t expected[56] = {1, 0, 0, 0, 0, 0, 32, 0, 9, 0, 0,   0, 0, 0, 0, 0, 0, 0, 0,
                                0, 0, 0, 0, 0, 0, 0,  0, 0, 0, 0,   0, 0, 2, 0, 0, 0, 0, 0,
                                0, 0, 3, 0, 0, 0, 0,  0, 0, 0, 'a', 0, 0, 0, 0, 0, 0, 0};
  lcomm_state_tensor tensor = {.name = "a", .count = 9, .shape = {.rank = 2, .columns = 3}};
  uint8_t bytes[LCOMM_STATE_RECORD_MAX];
  assert_int_equal(lcomm_state_pack_record(&tensor, bytes), sizeof expected);
  assert_memory_equal(bytes, expected, sizeof expected);
  assert_int_equal(lcomm_state_tensor_size(&tensor), sizeof expected + 24);
}

static void the_guard_of_calls_has_the_bytes_the_format_says(void **state) {
  (void)state;
  const uint8_t expected[72] = {1, 0, 0,  0, 0, 0, 20, 0, 9, 0, 0,   0, 0, 0, 0, 0, 0, 0,
                                0, 0, 0,  0, 0, 0, 0,  0, 0, 0, 0,   0, 0, 0, 5, 0, 0, 0,
                                0, 0, 0,  0, 3, 0, 0,  0, 3, 0, 0,   0, 4, 0, 0, 0, 0, 0,
                                0, 0, 20, 0, 0, 0, 0,  0, 0, 0, 'a', 0, 0, 0, 0, 0, 0, 0};
  lcomm_state_tensor tensor = {.name = "a",
                               .count = 9,
                               .of_calls = true,
                               .calls = 5,
                               .has_guard = true,
                               .guard = {3, true, true, 4, 20}};
  uint8_t bytes[LCOMM_STATE_RECORD_MAX];
  assert_int_equal(lcomm_state_pack_record(&tensor, bytes), sizeof expected);
  assert_memory_equal(bytes, expected, sizeof expected);
}

/* ------------------------------------------------------------------ reading */

static void check_values(const uint8_t *bytes, const float *wanted, uint64_t n) {
  assert_non_null(bytes);
  assert_memory_equal(bytes, wanted, n * sizeof(float));
}

static void check_tensor(const sample *s, int i, const lcomm_state_tensor *read) {
  const lcomm_state_tensor *wanted = &s->tensors[i];
  assert_string_equal(read->name, wanted->name);
  assert_int_equal(read->dtype, wanted->dtype);
  assert_int_equal(read->op, wanted->op);
  assert_int_equal(read->count, wanted->count);
  assert_int_equal(read->first, wanted->first);
  assert_int_equal(read->n, wanted->n);
  assert_int_equal(read->of_calls, wanted->of_calls);
  assert_int_equal(read->of_scatters, wanted->of_scatters);
  assert_int_equal(read->calls, wanted->calls);
  assert_int_equal(read->has_momentum, wanted->has_momentum);
  assert_int_equal(read->has_velocity, wanted->has_velocity);
  assert_int_equal(read->has_guard, wanted->has_guard);
  assert_int_equal(read->guard.rungs, wanted->guard.rungs);
  assert_int_equal(read->guard.came_back, wanted->guard.came_back);
  assert_int_equal(read->guard.pays, wanted->guard.pays);
  assert_int_equal(read->guard.good, wanted->guard.good);
  assert_int_equal(read->guard.patience, wanted->guard.patience);
  if (wanted->n > 0) {
    check_values(read->residual, s->values[i][0], wanted->n);
  } else {
    assert_null(read->residual);
  }
  if (wanted->has_momentum) {
    check_values(read->momentum, s->values[i][1], wanted->n);
  } else {
    assert_null(read->momentum);
  }
  if (wanted->has_velocity) {
    check_values(read->velocity, s->values[i][2], lcomm_state_velocity_count(wanted));
  } else {
    assert_null(read->velocity);
  }
  assert_int_equal(read->shape.rank, wanted->shape.rank);
  assert_int_equal(read->shape.columns, wanted->shape.columns);
  if (wanted->shape.rank > 0) {
    check_values(read->basis, s->values[i][3], lcomm_state_basis_count(wanted));
  } else {
    assert_null(read->basis);
  }
}

static void a_file_reads_back_as_it_was_written(void **state) {
  (void)state;
  sample *s = make_sample();
  lcomm_state_header header;
  lcomm_state_reader reader;
  lcomm_state_tensor tensor;
  const char *why = "";
  assert_int_equal(lcomm_state_open(s->bytes, s->size, &header, &reader, &why), LCOMM_OK);
  assert_true(header.step == s->header.step && header.file_size == s->size);
  assert_int_equal(header.version, LCOMM_STATE_VERSION);
  assert_true(header.rank == 3 && header.ranks == 8 && header.nodes == 2 && header.node == 1);
  assert_true(header.sequence == 0xfffffffeu && header.tensors == TENSORS);
  assert_string_equal(header.policy, s->header.policy);
  for (int i = 0; i < TENSORS; i++) {
    assert_true(lcomm_state_next(&reader, &tensor));
    check_tensor(s, i, &tensor);
  }
  assert_false(lcomm_state_next(&reader, &tensor));
  assert_false(lcomm_state_next(&reader, &tensor));
  free(s);
}

static void files_cut_short_or_too_long_are_refused(void **state) {
  (void)state;
  sample *s = make_sample();
  for (size_t size = 0; size < s->size; size++) {
    check_refused(s->bytes, size,
                  size < 64 ? "it is shorter than a header" : "it is cut short or too long");
  }
  s->bytes[s->size] = 0;
  check_refused(s->bytes, s->size + 1, "it is cut short or too long");
  free(s);
}

static void every_flipped_bit_is_noticed(void **state) {
  (void)state;
  sample *s = make_sample();
  for (size_t bit = 0; bit < 8 * s->size; bit++) {
    const char *why = NULL;
    s->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    assert_int_not_equal(open_copy(s->bytes, s->size, &why), LCOMM_OK);
    assert_non_null(why);
    s->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
  }
  const char *why = NULL;
  assert_int_equal(open_copy(s->bytes, s->size, &why), LCOMM_OK);
  free(s);
}

static void other_versions_are_not_supported(void **state) {
  (void)state;
  static const uint8_t others[] = {0, LCOMM_STATE_VERSION + 1, 255};
  sample *s = make_sample();
  for (size_t i = 0; i < sizeof others; i++) {
    const char *why = "";
    s->bytes[4] = others[i];
    fix_checksum(s);
    assert_int_equal(open_copy(s->bytes, s->size, &why), LCOMM_ERR_UNSUPPORTED);
    assert_string_equal(why, "it is of another version");
  }
  free(s);
}

static void expect_version(sample *s, uint32_t version, const char *refusal) {
  const char *why = "";
  s->header.version = version;
  write_sample(s);
  if (refusal) {
    check_refused(s->bytes, s->size, refusal);
  } else {
    assert_int_equal(open_copy(s->bytes, s->size, &why), LCOMM_OK);
  }
}

static void earlier_versions_are_read_and_know_less(void **state) {
  (void)state;
  sample *s = make_sample();
  expect_version(s, 2, "a tensor has an unknown flag");
  s->tensors[8].shape.rank = 0; /* factors came with the third */
  expect_version(s, 2, NULL);
  expect_version(s, 1, "a tensor has an unknown flag");
  s->tensors[7].has_guard = false; /* and guards of calls with the second */
  expect_version(s, 1, NULL);
  free(s);
}

/* Wrong bytes under a right checksum: a hostile file. */
static void impossible_numbers_are_refused(void **state) {
  (void)state;
  static const struct {
    int tensor; /* -1: of the header */
    size_t offset;
    int size;
    uint64_t value;
    const char *phrase;
  } wrong[] = {
      {-1, 24, 4, 8, "its rank or node is impossible"},
      {-1, 28, 4, 3, "its rank or node is impossible"},
      {-1, 28, 4, 0x80000000u, "its rank or node is impossible"},
      {-1, 32, 4, 9, "its rank or node is impossible"},
      {-1, 36, 4, 2, "its rank or node is impossible"},
      {-1, 44, 4, TENSORS + 1, "it ends inside a tensor"},
      {-1, 44, 4, TENSORS - 1, "bytes follow its last tensor"},
      {-1, 48, 4, 1024, "its header is malformed"},
      {-1, 48, 4, 15, "a text in it is malformed"},
      {-1, 48, 4, 17, "a text in it is malformed"},
      {-1, 48, 4, 1023, "a text in it is malformed"},
      {9, 0, 4, 127, "it ends inside a text"},
      {-1, 52, 4, 1, "its header is malformed"},
      {0, 0, 4, 0, "the name of a tensor has an impossible length"},
      {0, 0, 4, 128, "the name of a tensor has an impossible length"},
      {0, 0, 4, UINT32_MAX, "the name of a tensor has an impossible length"},
      {0, 0, 4, 7, "a text in it is malformed"},
      {0, 0, 4, 5, "a text in it is malformed"},
      {0, 4, 1, 8, "a tensor has an unknown type or operation"},
      {0, 5, 1, 4, "a tensor has an unknown type or operation"},
      {0, 6, 1, 8, "a tensor has an unknown flag"},
      {0, 6, 1, 32, "the factor of a matrix is impossible"},
      {0, 6, 1, 16, "the guard of a tensor is impossible"},
      {4, 32, 4, LCOMM_STATE_RUNGS_MAX + 1, "the guard of a tensor is impossible"},
      {4, 36, 4, 2, "the guard of a tensor is impossible"},
      {5, 6, 1, 4 + 16, "the guard of a tensor is impossible"},
      {7, 40, 4, LCOMM_STATE_RUNGS_MAX + 1, "the guard of a tensor is impossible"},
      {7, 44, 4, 4, "the guard of a tensor is impossible"},
      {7, 44, 4, 0x100, "the guard of a tensor is impossible"},
      {0, 6, 1, 4, "a text in it is malformed"},
      {5, 6, 1, 2, "a text in it is malformed"},
      {0, 7, 1, 1, "a tensor has an unknown flag"},
      {0, 8, 8, 19, "a tensor keeps elements that it does not have"},
      {0, 8, 8, UINT64_MAX / 64 + 1, "a tensor keeps elements that it does not have"},
      {0, 16, 8, 51, "a tensor keeps elements that it does not have"},
      {0, 16, 8, UINT64_MAX - 5, "a tensor keeps elements that it does not have"},
      {0, 24, 8, UINT64_MAX - 6, "a tensor keeps elements that it does not have"},
      {0, 24, 8, 44, "a tensor keeps elements that it does not have"},
      {1, 8, 8, UINT64_MAX / 64, NULL},
      {2, 8, 8, UINT64_MAX / 64, "it ends inside the values of a tensor"},
      {4, 6, 1, 2 + 16, "its padding is not zero"},
      {9, 6, 1, 6, "it ends inside the values of a tensor"},
      {0, 6, 1, 64, "a tensor has an unknown flag"},
      {5, 6, 1, 2 + 4 + 32, "a tensor has an unknown flag"},
      {8, 32, 4, 0, "the factor of a matrix is impossible"},
      {8, 32, 4, LCOMM_STATE_RANK_MAX + 1, "the factor of a matrix is impossible"},
      {8, 32, 4, 10, "the factor of a matrix is impossible"},
      {8, 32, 4, 4, "the name of a tensor has an impossible length"},
      {8, 36, 4, 1, "the factor of a matrix is impossible"},
      {8, 40, 8, 0, "the factor of a matrix is impossible"},
      {8, 40, 8, 17, "the factor of a matrix is impossible"},
      {8, 40, 8, UINT64_MAX / 2, "the factor of a matrix is impossible"},
      {8, 6, 1, 0, "a text in it is malformed"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    sample *s = make_sample();
    size_t at = wrong[i].offset + (wrong[i].tensor < 0 ? 0 : s->record[wrong[i].tensor]);
    for (int k = 0; k < wrong[i].size; k++) {
      s->bytes[at + (size_t)k] = (uint8_t)(wrong[i].value >> 8 * k);
    }
    fix_checksum(s);
    const char *why = "";
    lcomm_status status = open_copy(s->bytes, s->size, &why);
    assert_int_equal(status, wrong[i].phrase != NULL ? LCOMM_ERR_WIRE : LCOMM_OK);
    if (wrong[i].phrase) {
      assert_string_equal(why, wrong[i].phrase);
    }
    free(s);
  }
}

static void padding_that_is_not_zero_is_refused(void **state) {
  (void)state;
  sample *s = make_sample();
  s->bytes[s->record[1] - 1] = 1; /* 13 values are 52 bytes */
  fix_checksum(s);
  check_refused(s->bytes, s->size, "its padding is not zero");
  free(s);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(header_has_the_bytes_the_format_says),
    cmocka_unit_test(record_has_the_bytes_the_format_says),
    cmocka_unit_test(a_guard_has_the_bytes_the_format_says),
    cmocka_unit_test(a_factor_has_the_bytes_the_format_says),
    cmocka_unit_test(the_guard_of_calls_has_the_bytes_the_format_says),
    cmocka_unit_test(a_file_reads_back_as_it_was_written),
    cmocka_unit_test(files_cut_short_or_too_long_are_refused),
    cmocka_unit_test(every_flipped_bit_is_noticed),
    cmocka_unit_test(other_versions_are_not_supported),
    cmocka_unit_test(earlier_versions_are_read_and_know_less),
    cmocka_unit_test(impossible_numbers_are_refused),
    cmocka_unit_test(padding_that_is_not_zero_is_refused),
};
RUN_TESTS(tests)
