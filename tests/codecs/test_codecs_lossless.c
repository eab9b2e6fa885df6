/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The lossless stage: whatever it takes comes back, and whatever comes from a
 * peer is read or refused. */

#include "tests/kernels/samples.h"

#include <zstd.h>

#include "codecs/lossless.h"
#include "codecs/topk.h"
#include "codecs/topk_payload.h"
#include "tests/codecs/formats.h"

enum { CHUNK = 64 << 10, ALL_MAX = FORMATS_MAX + 2 };

typedef enum content { RANDOM, GRADIENT, CONSTANT, AWKWARD, CONTENTS } content;

/* One format with room for payloads of up to `most` values. */
typedef struct stage {
  lcomm_format format;
  size_t bound, stream_bound;
  uint8_t *payload, *stream, *back;
  lcomm_lossless *lossless;
  /* of the last call of encode() */
  uint64_t count;
  size_t size, stream_size;
} stage;

static const lcomm_kernels *kernels(void) {
  return lcomm_kernels_best();
}

static size_t all_formats(lcomm_format list[ALL_MAX]) {
  size_t count = dense_formats(list);
  for (uint8_t variant = 0; variant < 2; variant++) {
    list[count] = lcomm_format_of(&lcomm_codec_topk);
    list[count++].variant = variant;
  }
  return count;
}

static stage make_stage(lcomm_format format, uint64_t most) {
  stage s = {.format = format};
  s.bound = lcomm_format_is_sparse(&format) ? lcomm_topk_bound(&format, most, 16 * most)
                                            : lcomm_payload_size(&format, most);
  s.stream_bound = lcomm_lossless_bound(&format, s.bound);
  s.payload = sample_memory(s.bound);
  s.back = sample_memory(s.bound);
  s.stream = sample_memory(s.stream_bound);
  assert_int_equal(lcomm_lossless_create(&format, s.bound, &s.lossless), LCOMM_OK);
  return s;
}

static void free_stage(stage *s) {
  lcomm_lossless_destroy(s->lossless);
  free(s->payload);
  free(s->back);
  free(s->stream);
}

static float value_of(content what, uint64_t i, uint64_t *seed) {
  switch (what) {
  case GRADIENT: /* layers of different size */
    return sample_normal(seed) * lcomm_f32_from_bits((uint32_t)(90 + i / 400 % 3) << 23);
  case CONSTANT:
    return 0.375f;
  default:
    return sample_bits(seed);
  }
}

/* n entries at random distances that sum up to 16 * n at most; constant ones
 * lie side by side. */
static void make_sparse(stage *s, content what, uint64_t n, uint64_t *seed) {
  lcomm_entries entries = {.position = sample_memory((size_t)n * sizeof(uint32_t)),
                           .value = sample_memory((size_t)n * sizeof(float)),
                           .count = (size_t)n};
  uint64_t left = 15 * n, next = 0;
  for (uint64_t i = 0; i < n; i++) {
    uint64_t jump = sample_u64(seed) % (i % 40 == 0 ? 400 : 9);
    jump = what == CONSTANT ? 0 : jump > left ? left : jump;
    left -= jump, next += jump;
    entries.position[i] = (uint32_t)next++;
    entries.value[i] = value_of(what, i, seed);
  }
  s->count = 16 * n;
  s->size = lcomm_topk_write(&s->format, kernels(), &entries, s->payload);
  free(entries.position);
  free(entries.value);
}

static void make_dense(stage *s, content what, uint64_t n, uint64_t *seed) {
  s->count = n;
  s->size = lcomm_payload_size(&s->format, n);
  float *value = sample_memory((size_t)n * sizeof *value);
  for (uint64_t i = 0; i < n; i++)
    value[i] = value_of(what, i, seed);
  lcomm_encode(&s->format, kernels(), value, lcomm_range_whole(n), 1, s->payload);
  for (size_t i = 0; what == RANDOM && i < s->size; i++)
    s->payload[i] = (uint8_t)(sample_u64(seed) >> 20);
  free(value);
}

static void encode(stage *s) {
  s->stream_size =
      lcomm_lossless_encode(s->lossless, kernels(), s->payload, s->size, s->count, s->stream);
  assert_true(s->stream_size <= s->stream_bound);
}

static void make(stage *s, content what, uint64_t n) {
  uint64_t seed = 1 + n * CONTENTS + what;
  if (lcomm_format_is_sparse(&s->format))
    make_sparse(s, what, n, &seed);
  else
    make_dense(s, what, n, &seed);
  encode(s);
}

/* `size` bytes as a stream, into `capacity` bytes; *why is NULL when it is one. */
static size_t decode(stage *s, const uint8_t *stream, size_t size, size_t capacity,
                     const char **why) {
  size_t payload_size = 0;
  uint8_t *exact = sample_memory(size), *room = sample_memory(capacity);
  *why = NULL;
  if (size > 0)
    memcpy(exact, stream, size);
  lcomm_status status = lcomm_lossless_decode(s->lossless, kernels(), exact, size, s->count, room,
                                              capacity, &payload_size, why);
  if (status == LCOMM_OK) {
    assert_true(payload_size <= capacity && capacity <= s->bound);
    memcpy(s->back, room, payload_size);
  } else {
    assert_int_equal(status, LCOMM_ERR_WIRE);
    assert_non_null(*why);
  }
  free(exact);
  free(room);
  return payload_size;
}

static const char *refusal(stage *s, const uint8_t *stream, size_t size) {
  const char *why;
  decode(s, stream, size, s->bound, &why);
  return why;
}

static void check_round_trip(stage *s) {
  const char *why;
  assert_int_equal(decode(s, s->stream, s->stream_size, s->size, &why), s->size);
  assert_null(why);
  assert_memory_equal(s->back, s->payload, s->size);
}

static void for_each_stage(uint64_t most, void (*check)(stage *)) {
  lcomm_format list[ALL_MAX];
  for (size_t i = 0, n = all_formats(list); i < n; i++) {
    stage s = make_stage(list[i], most);
    check(&s);
    free_stage(&s);
  }
}

/* What comes back */

static void check_small_counts(stage *s) {
  for (uint64_t n = 0; n <= 300; n += n < 140 ? 1 : 7)
    for (content what = 0; what < CONTENTS; what++) {
      make(s, what, n);
      check_round_trip(s);
    }
}

static void short_payloads_survive(void **state) {
  (void)state;
  for_each_stage(300, check_small_counts);
}

static void check_large_counts(stage *s) {
  static const uint64_t counts[] = {4096, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 1};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
    for (content what = 0; what < CONTENTS; what++) {
      make(s, what, counts[i]);
      check_round_trip(s);
    }
}

static void payloads_of_several_chunks_survive(void **state) {
  (void)state;
  for_each_stage(2 * CHUNK + 1, check_large_counts);
}

static void check_a_million(stage *s) {
  for (content what = 0; what <= GRADIENT; what++) {
    make(s, what, 1 << 20);
    check_round_trip(s);
  }
}

static void payloads_of_a_million_values_survive(void **state) {
  (void)state;
  for_each_stage(1 << 20, check_a_million);
}

/* Entries 2^width apart: every number of bytes that a delta can take. */
static void sparse_payloads_survive_at_every_width(void **state) {
  (void)state;
  for (uint8_t variant = 0; variant < 2; variant++)
    for (uint32_t width = 0; width < 32; width++) {
      lcomm_format format = lcomm_format_of(&lcomm_codec_topk);
      format.variant = variant;
      stage s = make_stage(format, 2000);
      uint32_t position[1000], n = 0;
      float value[1000];
      uint64_t seed = width + 1, step = (uint64_t)1 << width;
      for (uint64_t next = step; next <= UINT32_MAX && n < 999; next += step, n++)
        position[n] = (uint32_t)next - 1, value[n] = sample_bits(&seed);
      lcomm_entries entries = {position, value, n};
      s.count = UINT32_MAX;
      s.size = lcomm_topk_write(&format, kernels(), &entries, s.payload);
      encode(&s);
      check_round_trip(&s);
      free_stage(&s);
    }
}

/* What the stream is */

static void check_tables_agree(stage *s) {
  make(s, GRADIENT, 3000);
  uint8_t *other = sample_memory(s->stream_bound);
  for (size_t i = 0; lcomm_kernels_list[i] != NULL; i++) {
    if (!lcomm_kernels_runs(lcomm_kernels_list[i]))
      continue;
    size_t size = lcomm_lossless_encode(s->lossless, lcomm_kernels_list[i], s->payload, s->size,
                                        s->count, other);
    assert_int_equal(size, s->stream_size);
    assert_memory_equal(other, s->stream, size);
  }
  free(other);
}

static void all_kernel_tables_make_the_same_stream(void **state) {
  (void)state;
  for_each_stage(3000, check_tables_agree);
}

/* Planes this short are stored. */
static void a_stream_has_the_bytes_the_format_says(void **state) {
  (void)state;
  static const uint8_t number[] = {0x01, 0x02, 0x03, 0x84}; /* rotated: 03 04 06 08 */
  static const uint8_t none[] = {1, 0, 0, 0, 3, 1, 0, 0, 0, 4, 1, 0, 0, 0, 6, 1, 0, 0, 0, 8};
  static const uint8_t bf16[] = {2, 0, 0, 0, 2, 7, 2, 0, 0, 0, 4, 8};
  stage s = make_stage(lcomm_format_of(&lcomm_codec_none), 1);
  s.count = 1, s.size = 4;
  memcpy(s.payload, number, s.size);
  encode(&s);
  assert_int_equal(s.stream_size, sizeof none);
  assert_memory_equal(s.stream, none, sizeof none);
  free_stage(&s);
  s = make_stage(lcomm_format_of(&lcomm_codec_bf16), 2);
  s.count = 2, s.size = 4;
  memcpy(s.payload, number, s.size);
  encode(&s);
  assert_int_equal(s.stream_size, sizeof bf16);
  assert_memory_equal(s.stream, bf16, sizeof bf16);
  free_stage(&s);
  s = make_stage(lcomm_format_of(&lcomm_codec_int4), 1); /* a scale, 4 zeros, one code */
  make(&s, CONSTANT, 1);
  assert_int_equal(s.stream_size, 4 + 8 + 4 + 1);
  assert_int_equal(s.stream[0], 8);
  free_stage(&s);
}

static void a_sparse_stream_has_the_bytes_the_format_says(void **state) {
  (void)state;
  uint32_t position[] = {5, 6, 206};
  float value[] = {1.0f, -127.0f, 2.0f};
  lcomm_entries entries = {position, value, 3};
  static const uint8_t bf16[] = {3, 0, 0, 0, 4, 0,    0,    0,    4, 0, 0, 0, 5,    0,    199,
                                 1, 3, 0, 0, 0, 0x00, 0xfd, 0x00, 3, 0, 0, 0, 0x7f, 0x85, 0x80};
  static const uint8_t int8[] = {3, 0, 0, 0, 4, 0, 0,    0,    4, 0, 0, 0, 5, 0,   199, 1,
                                 4, 0, 0, 0, 0, 0, 0x80, 0x3f, 3, 0, 0, 0, 1, 129, 2};
  for (uint8_t variant = 0; variant < 2; variant++) {
    lcomm_format format = lcomm_format_of(&lcomm_codec_topk);
    format.variant = variant;
    stage s = make_stage(format, 100);
    s.count = 207;
    s.size = lcomm_topk_write(&format, kernels(), &entries, s.payload);
    encode(&s);
    assert_int_equal(s.stream_size, variant == 0 ? sizeof bf16 : sizeof int8);
    assert_memory_equal(s.stream, variant == 0 ? bf16 : int8, s.stream_size);
    s.count = 206;
    assert_string_equal(refusal(&s, s.stream, s.stream_size), "a position outside the view");
    free_stage(&s);
  }
}

static void exponents_are_coded_and_mantissas_stored(void **state) {
  (void)state;
  stage s = make_stage(lcomm_format_of(&lcomm_codec_bf16), 1 << 20);
  make(&s, GRADIENT, 1 << 20);
  uint32_t first;
  memcpy(&first, s.stream, sizeof first);
  assert_int_equal(first, CHUNK);
  assert_in_range(s.stream_size, s.size / 2, s.size * 3 / 4);
  make(&s, CONSTANT, 1 << 20);
  assert_in_range(s.stream_size, 1, 2000);
  free_stage(&s);
}

/* One chunk of random codes, one in `zeros` of which is 0. */
static size_t coded_size(unsigned zeros) {
  stage s = make_stage(lcomm_format_of(&lcomm_codec_fp8e4m3), CHUNK);
  uint64_t seed = 5;
  s.count = CHUNK, s.size = s.bound;
  for (size_t i = s.size - CHUNK; i < s.size; i++)
    s.payload[i] = (sample_u64(&seed) >> 40) % zeros != 0 ? (uint8_t)(seed >> 20) : 0;
  encode(&s);
  size_t size = s.stream_size;
  free_stage(&s);
  return size;
}

static void a_chunk_that_gains_less_than_5_percent_is_stored(void **state) {
  (void)state;
  assert_true(coded_size(11) > CHUNK);
  assert_true(coded_size(7) < CHUNK / 100 * 95);
}

/* The exponents behind random mantissas and behind zeros. */
static void a_plane_is_coded_alike_whatever_stands_before_it(void **state) {
  (void)state;
  stage s = make_stage(lcomm_format_of(&lcomm_codec_bf16), 20000);
  make(&s, GRADIENT, 20000);
  size_t exponents = s.stream_size - (4 + 20000);
  uint8_t *first = sample_memory(exponents);
  memcpy(first, s.stream + 4 + 20000, exponents);
  for (size_t i = 0; i < s.size; i += 2)
    s.payload[i] &= 0x80, s.payload[i + 1] &= 0x7f;
  encode(&s);
  assert_true(s.stream_size < exponents + 100);
  assert_memory_equal(s.stream + s.stream_size - exponents, first, exponents);
  free(first);
  free_stage(&s);
}

/* Chunks 0 and 8 are tried, those between are not. */
static void after_a_stored_chunk_seven_are_stored_untried(void **state) {
  (void)state;
  stage s = make_stage(lcomm_format_of(&lcomm_codec_fp8e4m3), 10 * CHUNK);
  uint64_t seed = 3;
  s.count = 10 * CHUNK;
  s.size = s.bound;
  size_t head = s.size - 10 * CHUNK;
  for (size_t i = 0; i < CHUNK; i++)
    s.payload[head + i] = (uint8_t)(sample_u64(&seed) >> 20);
  encode(&s);
  assert_in_range(s.stream_size, 8 * CHUNK, 8 * CHUNK + 200);
  check_round_trip(&s);
  free_stage(&s);
}

/* zstd forgets a context's size when it thinks it too large for its work. */
static void many_short_payloads_leave_room_for_a_long_one(void **state) {
  (void)state;
  stage s = make_stage(lcomm_format_of(&lcomm_codec_bf16), 1 << 17);
  make(&s, GRADIENT, 1 << 17);
  size_t size = s.stream_size;
  for (int i = 0; i < 1000; i++)
    make(&s, CONSTANT, 100);
  assert_true(s.stream_size < s.size / 2);
  make(&s, GRADIENT, 1 << 17);
  assert_int_equal(s.stream_size, size);
  free_stage(&s);
}

/* What is refused */

static void check_cuts(stage *s) {
  for (content what = 0; what < CONTENTS; what++) {
    make(s, what, 300);
    for (size_t size = 0; size < s->stream_size; size++)
      assert_non_null(refusal(s, s->stream, size));
    uint8_t *longer = sample_memory(s->stream_size + 1);
    memcpy(longer, s->stream, s->stream_size);
    assert_string_equal(refusal(s, longer, s->stream_size + 1), "bytes behind the last plane");
    free(longer);
  }
}

static void a_stream_of_another_length_is_refused(void **state) {
  (void)state;
  for_each_stage(300, check_cuts);
}

static void check_bit_flips(stage *s) {
  const char *why;
  for (content what = GRADIENT; what <= CONSTANT; what++) {
    make(s, what, 150);
    for (size_t bit = 0; bit < 8 * s->stream_size; bit++) {
      s->stream[bit / 8] ^= (uint8_t)(1u << bit % 8);
      size_t size = decode(s, s->stream, s->stream_size, s->bound, &why);
      if (why == NULL && lcomm_format_is_sparse(&s->format))
        assert_int_equal(lcomm_topk_check(&s->format, s->back, size, s->count, NULL), LCOMM_OK);
      else if (why == NULL)
        assert_int_equal(size, s->size);
      s->stream[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
  }
}

static void a_flipped_bit_is_refused_or_stays_within_bounds(void **state) {
  (void)state;
  for_each_stage(150, check_bit_flips);
}

static void check_capacity(stage *s) {
  const char *why;
  make(s, GRADIENT, 200);
  for (size_t capacity = 0; capacity < s->size; capacity++) {
    decode(s, s->stream, s->stream_size, capacity, &why);
    assert_non_null(why);
  }
  for (unsigned shift = 0; shift < 4 && !lcomm_format_is_sparse(&s->format); shift++) {
    s->count = (uint64_t)1 << (60 + shift); /* four times that is 0 */
    assert_string_equal(refusal(s, s->stream, s->stream_size),
                        "more values than there is room for");
  }
}

static void a_payload_never_exceeds_its_room(void **state) {
  (void)state;
  for_each_stage(200, check_capacity);
}

/* One plane of 1000 equal codes as `size` bytes of frame. */
static const char *frame_refusal(const void *frame, size_t size) {
  stage s = make_stage(lcomm_format_of(&lcomm_codec_int8), 1000);
  uint8_t stream[256] = {32};
  uint32_t word = 0x80000000u | (uint32_t)size;
  s.count = 1000;
  memcpy(stream + 36, &word, sizeof word);
  memcpy(stream + 40, frame, size);
  const char *why = refusal(&s, stream, 40 + size);
  free_stage(&s);
  return why;
}

static void a_chunk_is_one_frame_that_declares_its_size(void **state) {
  (void)state;
  uint8_t plane[1001] = {0}, frame[200];
  static const uint8_t skippable[8] = {0x50, 0x2a, 0x4d, 0x18};
  size_t size = ZSTD_compress(frame, sizeof frame, plane, 1000, 1);
  assert_null(frame_refusal(frame, size));
  size_t empty = ZSTD_compress(frame + size, sizeof frame - size, plane, 0, 1);
  assert_string_equal(frame_refusal(frame, size + empty),
                      "a frame that does not end with its chunk");
  memcpy(frame + size, skippable, sizeof skippable);
  assert_non_null(frame_refusal(frame, size + sizeof skippable));
  for (size_t n = 999; n <= 1001; n += 2) {
    size = ZSTD_compress(frame, sizeof frame, plane, n, 1);
    assert_string_equal(frame_refusal(frame, size),
                        "a frame that does not declare the size of its chunk");
  }
  ZSTD_CCtx *context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
  size = ZSTD_compress2(context, frame, sizeof frame, plane, 1000);
  ZSTD_freeCCtx(context);
  assert_non_null(frame_refusal(frame, size));
  assert_non_null(frame_refusal("no frame at all", 15));
  for (size_t i = 0; i < sizeof plane; i++)
    plane[i] = (uint8_t)(i * i % 97 / 9);
  size = ZSTD_compress(frame, sizeof frame, plane, 1000, 1);
  assert_null(frame_refusal(frame, size));
  frame[10] = 0xff; /* behind the headers of the frame and of its block */
  assert_string_equal(frame_refusal(frame, size), "a frame that zstd refuses");
  assert_non_null(frame_refusal("", 0));
}

/* A delta plane of n bytes for `entries` bf16 values of 0. */
static const char *delta_refusal(uint8_t entries, const uint8_t *delta, uint8_t n) {
  stage s = make_stage(lcomm_format_of(&lcomm_codec_topk), 100);
  uint8_t stream[64] = {entries, 0, 0, 0, n, 0, 0, 0, n}, *end = stream + 12;
  s.count = UINT64_MAX;
  memcpy(end, delta, n);
  end += n;
  for (int plane = 0; plane < 2; plane++, end += 4 + entries)
    *end = entries;
  const char *why = refusal(&s, stream, (size_t)(end - stream));
  free_stage(&s);
  return why;
}

static void deltas_have_one_form_only(void **state) {
  (void)state;
  assert_null(delta_refusal(2, (uint8_t[]){0xff, 0xff, 0xff, 0xff, 0x0f, 0x80, 0x01}, 7));
  static const char *const wide = "a delta of more than 32 bits";
  assert_string_equal(delta_refusal(1, (uint8_t[]){0xff, 0xff, 0xff, 0xff, 0x10}, 5), wide);
  assert_string_equal(delta_refusal(1, (uint8_t[]){0x80, 0x80, 0x80, 0x80, 0x81, 0x00}, 6), wide);
  static const char *const overlong = "a delta that is longer than it need be";
  assert_string_equal(delta_refusal(1, (uint8_t[]){0x80, 0x00}, 2), overlong);
  assert_string_equal(delta_refusal(1, (uint8_t[]){0xff, 0xff, 0xff, 0xff, 0x00}, 5), overlong);
  static const char *const ends = "a delta plane that ends before its entries do";
  assert_string_equal(delta_refusal(1, (uint8_t[]){0x80}, 1), ends);
  assert_string_equal(delta_refusal(2, (uint8_t[]){5}, 1), ends);
  static const char *const more = "a delta plane that goes on after its entries";
  assert_string_equal(delta_refusal(1, (uint8_t[]){5, 0}, 2), more);
}

/* Entries, and the size of the delta plane. */
static void numbers_in_the_head_are_not_believed(void **state) {
  (void)state;
  stage s = make_stage(lcomm_format_of(&lcomm_codec_topk), 100);
  make(&s, GRADIENT, 100);
  s.count = UINT32_MAX;
  for (size_t field = 0; field < 8; field += 4)
    for (uint32_t shift = 0; shift < 32; shift++) {
      uint32_t honest, word = UINT32_MAX >> shift;
      memcpy(&honest, s.stream + field, sizeof honest);
      memcpy(s.stream + field, &word, sizeof word);
      assert_non_null(refusal(&s, s.stream, s.stream_size));
      memcpy(s.stream + field, &honest, sizeof honest);
    }
  check_round_trip(&s);
  uint32_t planes = (uint32_t)(s.bound + s.bound / 2);
  for (uint32_t size = planes - 100; size <= planes + 1; size += 101) {
    memcpy(s.stream + 4, &size, sizeof size);
    assert_string_equal(refusal(&s, s.stream, s.stream_size),
                        "larger planes than those of any payload");
  }
  s.count = 99;
  assert_string_equal(refusal(&s, s.stream, s.stream_size), "more entries than elements");
  free_stage(&s);
}

/* What is promised besides */

/* Of the sanitizers' runtime; not there in a build without one. */
extern int __sanitizer_install_malloc_and_free_hooks(void (*made)(const volatile void *, size_t),
                                                     void (*freed)(const volatile void *))
    __attribute__((weak));

static size_t allocations;

static void count_allocation(const volatile void *memory, size_t size) {
  (void)memory, (void)size;
  allocations++;
}

static void ignore_free(const volatile void *memory) {
  (void)memory;
}

static void check_no_allocation(stage *s) {
  make(s, GRADIENT, 100000);
  size_t size, before = allocations;
  encode(s);
  lcomm_lossless_decode(s->lossless, kernels(), s->stream, s->stream_size, s->count, s->back,
                        s->bound, &size, NULL);
  lcomm_lossless_decode(s->lossless, kernels(), s->stream, s->stream_size - 1, s->count, s->back,
                        s->bound, &size, NULL);
  assert_int_equal(allocations, before);
}

static void nothing_is_allocated(void **state) {
  (void)state;
  if (__sanitizer_install_malloc_and_free_hooks == NULL)
    skip();
  assert_true(__sanitizer_install_malloc_and_free_hooks(count_allocation, ignore_free) > 0);
  for_each_stage(100000, check_no_allocation);
  assert_true(allocations > 0);
}

static void a_stage_that_cannot_be_is_no_memory(void **state) {
  (void)state;
  lcomm_lossless *lossless = NULL;
  lcomm_format format = lcomm_format_of(&lcomm_codec_topk);
  assert_int_equal(lcomm_lossless_create(&format, SIZE_MAX, &lossless), LCOMM_ERR_MEMORY);
  assert_null(lossless);
  lcomm_lossless_destroy(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(short_payloads_survive),
      cmocka_unit_test(payloads_of_several_chunks_survive),
      cmocka_unit_test(payloads_of_a_million_values_survive),
      cmocka_unit_test(sparse_payloads_survive_at_every_width),
      cmocka_unit_test(all_kernel_tables_make_the_same_stream),
      cmocka_unit_test(a_stream_has_the_bytes_the_format_says),
      cmocka_unit_test(a_sparse_stream_has_the_bytes_the_format_says),
      cmocka_unit_test(exponents_are_coded_and_mantissas_stored),
      cmocka_unit_test(a_chunk_that_gains_less_than_5_percent_is_stored),
      cmocka_unit_test(a_plane_is_coded_alike_whatever_stands_before_it),
      cmocka_unit_test(after_a_stored_chunk_seven_are_stored_untried),
      cmocka_unit_test(many_short_payloads_leave_room_for_a_long_one),
      cmocka_unit_test(a_stream_of_another_length_is_refused),
      cmocka_unit_test(a_flipped_bit_is_refused_or_stays_within_bounds),
      cmocka_unit_test(a_payload_never_exceeds_its_room),
      cmocka_unit_test(a_chunk_is_one_frame_that_declares_its_size),
      cmocka_unit_test(deltas_have_one_form_only),
      cmocka_unit_test(numbers_in_the_head_are_not_believed),
      cmocka_unit_test(nothing_is_allocated),
      cmocka_unit_test(a_stage_that_cannot_be_is_no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
