/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Lists of encodes, decodes and copies: what single calls make of each piece, and of nothing else.
 */

#include "tests/kernels/cuda/dense_cases.h"

#include "tests/codecs/listed_formats.h"

enum { PIECES = COUNT(views) };

/* A piece on both sides: in a list, and by itself. */
typedef struct piece {
  const view *view;
  float *source, *residual[2], *result[2];
  uint8_t *payload[2];
} piece;

static piece piece_open(const lcomm_format *format, const view *v, uint64_t *random) {
  piece it = {.view = v, .source = array_open(v, v->base)};
  make_values(KIND_AWKWARD, it.source, (size_t)v->base, random);
  it.residual[0] = array_open(v, v->base);
  make_values(KIND_GRADIENT, it.residual[0], (size_t)v->base, random);
  it.residual[1] = array_copy(v, it.residual[0], v->base);
  for (int side = 0; side < 2; side++) {
    it.result[side] = array_copy(v, it.residual[0], v->base);
    it.payload[side] = payload_open(format, view_count(v));
  }
  return it;
}

static void piece_close(piece *it) {
  array_free(it->view, it->source);
  for (int side = 0; side < 2; side++) {
    array_free(it->view, it->residual[side]);
    array_free(it->view, it->result[side]);
    payload_free(it->payload[side]);
  }
}

static lcomm_cuda_encode encode_of(const lcomm_format *format, const piece *it, int side,
                                   lcomm_cuda_feedback feedback) {
  uint64_t n = view_count(it->view);
  lcomm_cuda_encode a = {.source = it->source,
                         .residual = feedback ? it->residual[side] : NULL,
                         .feedback = feedback,
                         .weight = 0.25f,
                         .n = n,
                         .parts = it->view->parts,
                         .part = it->view->part,
                         .code = parts_of(format, n, it->payload[side])};
  a.code.seed = SEED + n;
  return a;
}

static lcomm_cuda_decode decode_of(const lcomm_format *format, const piece *it) {
  uint64_t n = view_count(it->view);
  return (lcomm_cuda_decode){parts_of(format, n, it->payload[0]), it->result[0], n, it->view->parts,
                             it->view->part};
}

static void decode_alone(const lcomm_format *format, const piece *it) {
  uint64_t n = view_count(it->view);
  lcomm_cuda_code code = parts_of(format, n, it->payload[1]);
  lcomm_cuda_sum a = {.sources = &code,
                      .count = 1,
                      .factor = 1.0f,
                      .destination = it->result[1],
                      .n = n,
                      .parts = it->view->parts,
                      .part = it->view->part};
  assert_int_equal(lcomm_cuda_run_sum(&a, NULL), 0);
}

static void expect_alike(const lcomm_format *format, const piece *it) {
  size_t size = (size_t)it->view->base * sizeof(float);
  expect_equal_bytes(it->payload[0], it->payload[1],
                     lcomm_payload_size(format, view_count(it->view)), format, it->view, "payload");
  expect_equal_bytes(it->residual[0], it->residual[1], size, format, it->view, "residual");
  expect_equal_bytes(it->result[0], it->result[1], size, format, it->view, "result");
}

static void pieces_are_those_of_single_calls(const lcomm_format *format,
                                             lcomm_cuda_feedback feedback) {
  piece pieces[PIECES];
  lcomm_cuda_encode encodes[PIECES];
  lcomm_cuda_decode decodes[PIECES];
  uint64_t random = 9;
  for (size_t i = 0; i < PIECES; i++) {
    pieces[i] = piece_open(format, &views[i], &random);
    encodes[i] = encode_of(format, &pieces[i], 0, feedback);
    decodes[i] = decode_of(format, &pieces[i]);
  }
  assert_int_equal(lcomm_cuda_run_encode_list(encodes, PIECES, NULL), 0);
  bool is_coded = decodes[0].code.kind != LCOMM_CUDA_F32;
  assert_int_equal(lcomm_cuda_run_decode_list(decodes, is_coded ? PIECES : 0, NULL), 0);
  for (size_t i = 0; i < PIECES; i++) {
    lcomm_cuda_encode alone = encode_of(format, &pieces[i], 1, feedback);
    assert_int_equal(lcomm_cuda_run_encode(&alone, NULL), 0);
    if (is_coded) {
      decode_alone(format, &pieces[i]);
    }
    expect_alike(format, &pieces[i]);
    piece_close(&pieces[i]);
  }
}

static void lists_make_what_single_calls_make(void **state) {
  (void)state;
  for (size_t f = 0; f < format_count; f++) {
    for (int feedback = 0; feedback < LCOMM_CUDA_FEEDBACK_COUNT; feedback++) {
      pieces_are_those_of_single_calls(&formats[f], (lcomm_cuda_feedback)feedback);
    }
  }
}

static void pieces_may_be_empty(void **state) {
  float values[3] = {1.0f, -2.0f, 3.5f};
  uint16_t codes[2][4] = {{0}, {0}};
  lcomm_cuda_encode list[4] = {{0}};
  (void)state;
  for (int i = 0; i < 4; i++) {
    lcomm_cuda_code code = {.kind = LCOMM_CUDA_BF16, .code = codes[i / 2]};
    list[i] = (lcomm_cuda_encode){.source = values, .n = i % 2 * 3, .parts = 1, .code = code};
  }
  assert_int_equal(lcomm_cuda_run_encode_list(list, 4, NULL), 0);
  assert_memory_equal(codes[0], codes[1], sizeof(codes[0]));
  assert_int_equal(codes[1][2], 0x4060);
  list[1].n = list[3].n = 0;
  assert_int_equal(lcomm_cuda_run_encode_list(list, 4, NULL), 0);
  assert_int_equal(lcomm_cuda_run_encode_list(list, 0, NULL), 0);
}

/* Some of each length at places of any alignment, the same on both sides and not. */
static void copies_are_complete_and_touch_nothing_else(void **state) {
  enum { SIZES = 8, ROOM = 40000, SHIFTS = LCOMM_CUDA_LIST_MAX / SIZES };
  static const uint64_t sizes[SIZES] = {0, 1, 15, 16, 4097, 16384, 16400, 33001};
  static const uint32_t from_shift[SHIFTS] = {0, 16, 4, 3}, to_shift[SHIFTS] = {0, 32, 8, 5};
  static uint8_t from[LCOMM_CUDA_LIST_MAX][ROOM], to[LCOMM_CUDA_LIST_MAX][ROOM], wanted[ROOM];
  lcomm_cuda_copy list[LCOMM_CUDA_LIST_MAX];
  (void)state;
  for (uint32_t i = 0; i < LCOMM_CUDA_LIST_MAX; i++) {
    for (uint32_t k = 0; k < ROOM; k++) {
      from[i][k] = (uint8_t)(k * 7 + k / 256 + i);
      to[i][k] = 0xaa;
    }
    list[i] = (lcomm_cuda_copy){from[i] + from_shift[i / SIZES], to[i] + to_shift[i / SIZES],
                                sizes[i % SIZES]};
  }
  assert_int_equal(lcomm_cuda_run_copy_list(list, LCOMM_CUDA_LIST_MAX, NULL), 0);
  for (uint32_t i = 0; i < LCOMM_CUDA_LIST_MAX; i++) {
    memset(wanted, 0xaa, sizeof(wanted));
    memcpy(wanted + to_shift[i / SIZES], list[i].from, (size_t)sizes[i % SIZES]);
    assert_memory_equal(to[i], wanted, sizeof(wanted));
  }
}

/* From places that are written after the list was made; nothing from none. */
static void fetches_look_where_to_read_when_they_begin(void **state) {
  enum { FETCHES = 5, ROOM = 40000 };
  static const uint64_t sizes[FETCHES] = {0, 1, 16384, 33001, 4097};
  static uint8_t from[FETCHES][ROOM], to[FETCHES][ROOM], wanted[ROOM];
  const uint8_t *places[FETCHES] = {NULL};
  lcomm_cuda_fetch list[FETCHES];
  (void)state;
  for (uint32_t i = 0; i < FETCHES; i++) {
    for (uint32_t k = 0; k < ROOM; k++) {
      from[i][k] = (uint8_t)(k * 5 + k / 256 + i);
      to[i][k] = 0xaa;
    }
    list[i] = (lcomm_cuda_fetch){&places[i], to[i] + i, sizes[i]};
  }
  for (uint32_t i = 0; i + 1 < FETCHES; i++) {
    places[i] = from[i];
  }
  assert_int_equal(lcomm_cuda_run_fetch_list(list, FETCHES, NULL), 0);
  for (uint32_t i = 0; i < FETCHES; i++) {
    memset(wanted, 0xaa, sizeof(wanted));
    if (places[i]) {
      memcpy(wanted + i, from[i], (size_t)sizes[i]);
    }
    assert_memory_equal(to[i], wanted, sizeof(wanted));
  }
  list[2].from = NULL;
  assert_int_equal(lcomm_cuda_run_fetch_list(list, FETCHES, NULL), LCOMM_CUDA_INVALID_VALUE);
}

/* More than one launch takes; those that await are reached, or passed. */
static void gates_take_the_number_that_is_there(void **state) {
  enum { GATES = 2 * LCOMM_CUDA_NUMBERS_MAX + 1 };
  static uint32_t places[GATES];
  lcomm_cuda_gate list[GATES];
  uint32_t number = 41, over = 0, passed = 1, ahead = 1u << 30;
  (void)state;
  for (int i = 0; i < GATES; i++) {
    list[i] = (lcomm_cuda_gate){&places[i], &number, &over, false};
  }
  number = 42;
  assert_int_equal(lcomm_cuda_run_gates(list, GATES, NULL), 0);
  for (int i = 0; i < GATES; i++) {
    assert_int_equal(places[i], 42);
    list[i].is_awaited = true;
  }
  places[0] = 43;         /* is further */
  places[1] = UINT32_MAX; /* would be waited for */
  list[1].passed = &passed;
  list[2].number = &ahead;
  list[2].passed = &passed;
  assert_int_equal(lcomm_cuda_run_gates(list, GATES, NULL), 0);
  assert_int_equal(places[0], 43);
  assert_int_equal(places[1], UINT32_MAX);
}

static void what_is_no_list_is_refused(void **state) {
  static float values[4];
  static uint64_t codes[4];
  lcomm_cuda_encode encodes[LCOMM_CUDA_LIST_MAX + 1] = {{0}};
  lcomm_cuda_decode decodes[2];
  lcomm_cuda_copy copies[2] = {{values, codes, 4}, {values, codes, UINT64_C(1) << 60}};
  lcomm_cuda_code bf16 = {.kind = LCOMM_CUDA_BF16, .code = codes};
  (void)state;
  for (int i = 0; i <= LCOMM_CUDA_LIST_MAX; i++) {
    encodes[i] = (lcomm_cuda_encode){.source = values, .n = 4, .parts = 1, .code = bf16};
  }
  assert_int_equal(lcomm_cuda_run_encode_list(encodes, LCOMM_CUDA_LIST_MAX + 1, NULL),
                   LCOMM_CUDA_INVALID_VALUE);
  encodes[1].code.kind = LCOMM_CUDA_F16; /* two kinds */
  assert_int_equal(lcomm_cuda_run_encode_list(encodes, 2, NULL), LCOMM_CUDA_INVALID_VALUE);
  decodes[0] = decodes[1] = (lcomm_cuda_decode){bf16, values, 4, 1, 0};
  decodes[1].destination = NULL;
  assert_int_equal(lcomm_cuda_run_decode_list(decodes, 2, NULL), LCOMM_CUDA_INVALID_VALUE);
  decodes[0].code.kind = LCOMM_CUDA_F32; /* is copied */
  assert_int_equal(lcomm_cuda_run_decode_list(decodes, 1, NULL), LCOMM_CUDA_INVALID_VALUE);
  assert_int_equal(lcomm_cuda_run_copy_list(copies, 2, NULL), LCOMM_CUDA_INVALID_VALUE);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lists_make_what_single_calls_make),
      cmocka_unit_test(pieces_may_be_empty),
      cmocka_unit_test(copies_are_complete_and_touch_nothing_else),
      cmocka_unit_test(fetches_look_where_to_read_when_they_begin),
      cmocka_unit_test(gates_take_the_number_that_is_there),
      cmocka_unit_test(what_is_no_list_is_refused),
  };
  return cmocka_run_group_tests(tests, list_formats, NULL);
}
