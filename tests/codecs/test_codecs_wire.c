/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The header in front of every payload. */

#include "tests/kernels/kernel_samples.h"

#include "codecs/codec.h"
#include "codecs/wire.h"
#include "tests/codecs/formats.h"
#include "tests/support/unit_tests.h"

static lcomm_wire_header good_header(void) {
  return (lcomm_wire_header){.version = LCOMM_WIRE_VERSION,
                             .codec = LCOMM_CODEC_INT8,
                             .dtype = LCOMM_BFLOAT16,
                             .flags = LCOMM_WIRE_CHECKSUM,
                             .parameters = 0x01020304u,
                             .sequence = 0x05060708u,
                             .count = 0x1112131415161718u,
                             .payload_size = 0x2122232425262728u,
                             .checksum = 0x3132333435363738u};
}

static void header_has_the_bytes_the_format_says(void **state) {
  (void)state;
  const uint8_t expected[LCOMM_WIRE_HEADER_SIZE] = {
      'L',  'C',  'M',  'W',  1,    5,    2,    1,    0x04, 0x03, 0x02, 0x01, 0x08, 0x07,
      0x06, 0x05, 0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11, 0x28, 0x27, 0x26, 0x25,
      0x24, 0x23, 0x22, 0x21, 0x38, 0x37, 0x36, 0x35, 0x34, 0x33, 0x32, 0x31};
  lcomm_wire_header header = good_header();
  uint8_t bytes[LCOMM_WIRE_HEADER_SIZE];
  lcomm_wire_pack(&header, bytes);
  assert_memory_equal(bytes, expected, sizeof expected);
}

static void unpack_returns_what_was_packed(void **state) {
  (void)state;
  lcomm_wire_header header = good_header(), read;
  uint8_t bytes[LCOMM_WIRE_HEADER_SIZE];
  lcomm_wire_pack(&header, bytes);
  assert_int_equal(lcomm_wire_unpack(bytes, sizeof bytes, &read, NULL), LCOMM_OK);
  assert_int_equal(read.version, header.version);
  assert_int_equal(read.codec, header.codec);
  assert_int_equal(read.dtype, header.dtype);
  assert_int_equal(read.flags, header.flags);
  assert_int_equal(read.parameters, header.parameters);
  assert_int_equal(read.sequence, header.sequence);
  assert_true(read.count == header.count);
  assert_true(read.payload_size == header.payload_size);
  assert_true(read.checksum == header.checksum);
}

static void check_refused(const uint8_t *bytes, size_t size, const char *phrase) {
  uint8_t *exact = sample_memory(size);
  memcpy(exact, bytes, size);
  lcomm_wire_header header = good_header(), before = header;
  const char *why = NULL;
  assert_int_equal(lcomm_wire_unpack(exact, size, &header, &why), LCOMM_ERR_WIRE);
  assert_string_equal(why, phrase);
  assert_int_equal(lcomm_wire_unpack(exact, size, &header, NULL), LCOMM_ERR_WIRE);
  assert_memory_equal(&header, &before, sizeof header);
  free(exact);
}

static void short_headers_are_refused(void **state) {
  (void)state;
  lcomm_wire_header header = good_header();
  uint8_t bytes[LCOMM_WIRE_HEADER_SIZE];
  lcomm_wire_pack(&header, bytes);
  for (size_t size = 0; size < sizeof bytes; size++) {
    check_refused(bytes, size, "fewer bytes than a header");
  }
}

/* Every value of one byte: `accepted` says which are right. */
static void check_byte(size_t offset, int (*accepted)(int), const char *phrase) {
  lcomm_wire_header header = good_header(), read;
  uint8_t bytes[LCOMM_WIRE_HEADER_SIZE];
  lcomm_wire_pack(&header, bytes);
  for (int value = 0; value < 256; value++) {
    bytes[offset] = (uint8_t)value;
    if (accepted(value)) {
      assert_int_equal(lcomm_wire_unpack(bytes, sizeof bytes, &read, NULL), LCOMM_OK);
    } else {
      check_refused(bytes, sizeof bytes, phrase);
    }
  }
}

static int is_l(int value) {
  return value == 'L';
}

static int is_w(int value) {
  return value == 'W';
}

static int is_version(int value) {
  return value == 1;
}

static int is_codec(int value) {
  return value <= LCOMM_CODEC_INT2;
}

static int is_dtype(int value) {
  return value <= LCOMM_UINT8;
}

static void wrong_bytes_are_refused_with_a_reason(void **state) {
  (void)state;
  check_byte(0, is_l, "wrong magic");
  check_byte(3, is_w, "wrong magic");
  check_byte(4, is_version, "unknown wire version");
  check_byte(5, is_codec, "unknown codec");
  check_byte(6, is_dtype, "unknown dtype");
}

static void unknown_flags_are_refused(void **state) {
  (void)state;
  lcomm_wire_header header = good_header();
  uint8_t bytes[LCOMM_WIRE_HEADER_SIZE];
  for (int flags = 0x40; flags < 256; flags++) {
    header.flags = (uint8_t)flags;
    lcomm_wire_pack(&header, bytes);
    check_refused(bytes, sizeof bytes, "unknown flag");
  }
}

/* What block index and variant a codec may have. */
static int has_block(const lcomm_codec *codec, unsigned index) {
  return index == 0 || (index < 4 && codec->blocks[index] != 0);
}

static int has_variant(const lcomm_codec *codec, unsigned variant) {
  unsigned last = codec->id == LCOMM_CODEC_FP16 ? 2 : codec->id == LCOMM_CODEC_TOPK ? 1 : 0;
  return variant <= last;
}

static void only_blocks_and_variants_of_the_codec_are_accepted(void **state) {
  (void)state;
  lcomm_wire_header header = good_header(), read;
  uint8_t bytes[LCOMM_WIRE_HEADER_SIZE];
  for (unsigned id = 0; id <= LCOMM_CODEC_INT2; id++) {
    for (unsigned flags = 0; flags < 16; flags++) {
      const lcomm_codec *codec = lcomm_codec_by_id(id);
      header.codec = (uint8_t)id;
      header.flags = (uint8_t)(flags << 2 | LCOMM_WIRE_CHECKSUM);
      lcomm_wire_pack(&header, bytes);
      if (!has_block(codec, flags & 3)) {
        check_refused(bytes, sizeof bytes, "a block size that the codec does not have");
      } else if (!has_variant(codec, flags >> 2)) {
        check_refused(bytes, sizeof bytes, "a variant that the codec does not have");
      } else {
        assert_int_equal(lcomm_wire_unpack(bytes, sizeof bytes, &read, NULL), LCOMM_OK);
      }
    }
  }
}

static void a_header_tells_the_format(void **state) {
  (void)state;
  lcomm_format list[FORMATS_MAX + 2];
  size_t count = dense_formats(list);
  list[count] = lcomm_format_of(&lcomm_codec_topk);
  list[count + 1] = list[count];
  list[++count].variant = LCOMM_TOPK_INT8;
  for (size_t i = 0; i <= count; i++) {
    for (int zstd = 0; zstd < 2; zstd++) {
      lcomm_wire_header header = good_header();
      list[i].zstd = zstd == 1;
      lcomm_wire_set_format(&header, &list[i]);
      lcomm_format read = lcomm_wire_get_format(&header);
      assert_int_equal(header.flags & LCOMM_WIRE_CHECKSUM, LCOMM_WIRE_CHECKSUM);
      assert_ptr_equal(read.codec, list[i].codec);
      assert_int_equal(read.block, list[i].block);
      assert_int_equal(read.variant, list[i].variant);
      assert_int_equal(read.zstd, zstd);
    }
  }
}

static void checksum_needs_its_flag(void **state) {
  (void)state;
  lcomm_wire_header header = good_header(), read;
  uint8_t bytes[LCOMM_WIRE_HEADER_SIZE];
  header.flags = 0;
  lcomm_wire_pack(&header, bytes);
  check_refused(bytes, sizeof bytes, "a checksum without its flag");
  header.checksum = 0;
  lcomm_wire_pack(&header, bytes);
  assert_int_equal(lcomm_wire_unpack(bytes, sizeof bytes, &read, NULL), LCOMM_OK);
}

/* The numbers are those of XXH3-64, so any other program can check them. */
static void checksum_is_xxh3(void **state) {
  (void)state;
  assert_true(lcomm_wire_checksum("", 0) == 0x2d06800538d394c2u);
  assert_true(lcomm_wire_checksum("a", 1) != lcomm_wire_checksum("b", 1));
  uint8_t bytes[1000] = {0};
  uint64_t before = lcomm_wire_checksum(bytes, sizeof bytes);
  for (size_t i = 0; i < sizeof bytes; i++) {
    bytes[i] ^= 1;
    assert_true(lcomm_wire_checksum(bytes, sizeof bytes) != before);
    bytes[i] ^= 1;
  }
}

/* Bit 6 of byte 7, whatever the rest says, and nothing else. */
static void a_handle_is_one_bit_of_the_flags(void **state) {
  (void)state;
  for (unsigned flags = 0; flags < 256; flags++) {
    uint8_t bytes[LCOMM_WIRE_HEADER_SIZE], expected[LCOMM_WIRE_HEADER_SIZE];
    memset(bytes, 0xa5, sizeof bytes);
    bytes[7] = (uint8_t)flags;
    memcpy(expected, bytes, sizeof bytes);
    assert_int_equal(lcomm_wire_has_handle(bytes), flags >> 6 & 1);
    lcomm_wire_set_handle(bytes);
    expected[7] = (uint8_t)(flags | 0x40);
    assert_true(lcomm_wire_has_handle(bytes));
    assert_memory_equal(bytes, expected, sizeof bytes);
    lcomm_wire_clear_handle(bytes);
    expected[7] = (uint8_t)(flags & 0xbf);
    assert_false(lcomm_wire_has_handle(bytes));
    assert_memory_equal(bytes, expected, sizeof bytes);
  }
}

/* Who does not ask for a handle refuses it; who cleared the bit reads the header that
 * the payload would have had. */
static void unpack_refuses_a_handle_until_it_is_cleared(void **state) {
  (void)state;
  uint8_t bytes[LCOMM_WIRE_HEADER_SIZE], again[LCOMM_WIRE_HEADER_SIZE];
  lcomm_wire_header header = {0}, back;
  header.version = LCOMM_WIRE_VERSION;
  header.count = header.payload_size = 7;
  lcomm_format format = lcomm_format_of(lcomm_codec_by_id(LCOMM_CODEC_FP8E5M2));
  format.block = 32;
  lcomm_wire_set_format(&header, &format);
  lcomm_wire_pack(&header, bytes);
  memcpy(again, bytes, sizeof bytes);
  lcomm_wire_set_handle(bytes);
  check_refused(bytes, sizeof bytes, "unknown flag");
  lcomm_wire_clear_handle(bytes);
  assert_int_equal(lcomm_wire_unpack(bytes, sizeof bytes, &back, NULL), LCOMM_OK);
  assert_int_equal(lcomm_wire_get_format(&back).block, 32);
  assert_memory_equal(bytes, again, sizeof bytes);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(header_has_the_bytes_the_format_says),
    cmocka_unit_test(unpack_returns_what_was_packed),
    cmocka_unit_test(short_headers_are_refused),
    cmocka_unit_test(wrong_bytes_are_refused_with_a_reason),
    cmocka_unit_test(unknown_flags_are_refused),
    cmocka_unit_test(only_blocks_and_variants_of_the_codec_are_accepted),
    cmocka_unit_test(a_header_tells_the_format),
    cmocka_unit_test(checksum_needs_its_flag),
    cmocka_unit_test(checksum_is_xxh3),
    cmocka_unit_test(a_handle_is_one_bit_of_the_flags),
    cmocka_unit_test(unpack_refuses_a_handle_until_it_is_cleared),
};
RUN_TESTS(tests)
