/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The bytes that travel are those of codecs/WIRE.md and do not change: golden
 * messages, and a second decoder that shares no code with the library. With
 * --write the program writes the golden files anew; README.md has more. */

#include "tests/wire/golden_index.h"

#include <dirent.h>

#include "kernels/stripe.h"
#include "tests/wire/golden_write.h"

#include "tests/wire/decoder.h"

static void check_library(const lcomm_kernels *kernels, const entry *e, golden_bytes message) {
  decoder_message read = golden_read(kernels, message.data, message.size);
  check_read(kernels->name, e, &read);
  decoder_free(&read);
}

static void the_library_reads_or_refuses_every_message_as_the_index_says(void **state) {
  (void)state;
  for_each_table(NULL, check_library);
}

static void check_decoder(const entry *e, golden_bytes message) {
  decoder_message read = decoder_read(message.data, message.size);
  check_read("the second decoder", e, &read);
  decoder_free(&read);
}

static void the_second_decoder_reads_or_refuses_every_message_as_the_index_says(void **state) {
  (void)state;
  for_each_entry(NULL, check_decoder);
}

/* Encoding */

static const golden_good *good_of(const char *name) {
  for (size_t i = 0; i < GOLDEN_GOOD; i++) {
    if (strcmp(golden_list[i].name, name) == 0) {
      return &golden_list[i];
    }
  }
  fail_msg("%s is not in golden_list", name);
  return NULL;
}

static void check_encoder(const lcomm_kernels *kernels, const entry *e, golden_bytes expected) {
  golden_bytes source = golden_load(e->rest, ".in");
  golden_bytes made =
      golden_encode(kernels, good_of(e->name), false, (const float *)(const void *)source.data,
                    source.size / sizeof(float));
  if (made.size != expected.size || memcmp(made.data, expected.data, made.size) != 0) {
    fail_msg("%s kernels, %s: the encoder makes other bytes", kernels->name, e->name);
  }
  free(source.data);
  free(made.data);
}

static void the_encoder_makes_the_golden_bytes(void **state) {
  (void)state;
  for_each_table("same", check_encoder);
}

/* Frames differ between versions of zstd, what is in them does not. */
static void what_this_zstd_makes_is_read_by_the_second_decoder(void **state) {
  (void)state;
  golden_bytes source = golden_load("source", ".in");
  uint64_t count = 70000;
  float *values = sample_memory(count * sizeof *values);
  for (size_t i = 0; i < count; i++) {
    memcpy(&values[i], source.data + i * 7 % (source.size / 4) * 4, sizeof *values);
  }
  for (size_t i = 0; i < GOLDEN_GOOD; i++) {
    golden_good good = golden_list[i];
    good.kept *= 200;
    golden_bytes plain = golden_encode(lcomm_kernels_best(), &good, false, values, count);
    golden_bytes packed = golden_encode(lcomm_kernels_best(), &good, true, values, count);
    decoder_message a = decoder_read(plain.data, plain.size);
    decoder_message b = decoder_read(packed.data, packed.size);
    assert_null(a.refusal);
    assert_null(b.refusal);
    assert_memory_equal(a.values, b.values, count * sizeof *values);
    decoder_free(&a), decoder_free(&b);
    free(plain.data), free(packed.data);
  }
  free(values);
  free(source.data);
}

/* Both decoders on damaged messages */

static void check_agreement(const char *name, const uint8_t *bytes, size_t size, size_t where) {
  decoder_message theirs = decoder_read(bytes, size);
  decoder_message ours = golden_read(lcomm_kernels_best(), bytes, size);
  if ((!ours.refusal) != (!theirs.refusal)) {
    fail_msg("%s, damaged at %zu: the library says \"%s\", the second decoder \"%s\"", name, where,
             ours.refusal ? ours.refusal : "fine", theirs.refusal ? theirs.refusal : "fine");
  }
  for (size_t i = 0; ours.refusal == NULL && i < ours.count; i++) {
    if (!same_value(ours.values[i], theirs.values[i])) {
      fail_msg("%s, damaged at %zu: value %zu is %a or %a", name, where, i, (double)ours.values[i],
               (double)theirs.values[i]);
    }
  }
  decoder_free(&ours);
  decoder_free(&theirs);
}

/* Without a checksum, which would refuse all the rest. */
static void check_damage(const entry *e, golden_bytes message) {
  static const uint8_t flips[] = {0x01, 0x08, 0x80, 0xff};
  size_t step = message.size > 300 ? 23 : 1;
  if (message.size >= LCOMM_WIRE_HEADER_SIZE && (message.data[7] & LCOMM_WIRE_CHECKSUM) != 0) {
    message.data[7] ^= LCOMM_WIRE_CHECKSUM;
    memset(message.data + 32, 0, 8);
  }
  for (size_t at = 0; at < message.size; at += at < 80 ? 1 : step) {
    for (size_t f = 0; f < sizeof flips; f++) {
      message.data[at] ^= flips[f];
      check_agreement(e->name, message.data, message.size, at);
      message.data[at] ^= flips[f];
    }
  }
}

static void both_decoders_agree_on_damaged_messages(void **state) {
  (void)state;
  for_each_entry(NULL, check_damage);
}

static void check_cuts(const entry *e, golden_bytes message) {
  size_t step = message.size > 300 ? 29 : 1;
  for (size_t size = 0; size < message.size; size += step) {
    golden_bytes cut = {.data = sample_memory(size), .size = size};
    memcpy(cut.data, message.data, size);
    if (size >= LCOMM_WIRE_HEADER_SIZE) { /* so that more than the size is looked at */
      uint64_t payload_size = size - LCOMM_WIRE_HEADER_SIZE;
      memcpy(cut.data + 24, &payload_size, sizeof payload_size);
      cut.data[7] &= (uint8_t)~LCOMM_WIRE_CHECKSUM;
      memset(cut.data + 32, 0, 8);
    }
    check_agreement(e->name, cut.data, size, size);
    decoder_message read = golden_read(lcomm_kernels_best(), cut.data, size);
    if (!read.refusal) {
      fail_msg("%s cut to %zu bytes is read", e->name, size);
    }
    free(cut.data);
  }
}

static void cut_messages_are_refused_by_both_decoders(void **state) {
  (void)state;
  for_each_entry("same", check_cuts);
  for_each_entry("read", check_cuts);
}

/* The files are all there */

static bool has_format(unsigned codec, unsigned flags) {
  static entry list[MESSAGES_MAX];
  bool found = false;
  for (size_t i = 0, count = load_index(list); i < count && !found; i++) {
    bool zstd = (flags & LCOMM_WIRE_ZSTD) != 0;
    if (strcmp(list[i].kind, zstd ? "read" : "same") != 0) {
      continue;
    }
    golden_bytes message = golden_load(list[i].name, ".bin");
    found = message.data[5] == codec && (message.data[7] & 0xfe) == flags;
    free(message.data);
  }
  return found;
}

static void every_format_that_a_header_can_name_has_golden_messages(void **state) {
  (void)state;
  lcomm_wire_header header = {.version = LCOMM_WIRE_VERSION}, read;
  uint8_t bytes[LCOMM_WIRE_HEADER_SIZE];
  for (unsigned codec = 0; codec < 256; codec++) {
    for (unsigned flags = 0; flags < 256; flags += 2) {
      header.codec = (uint8_t)codec;
      header.flags = (uint8_t)flags;
      lcomm_wire_pack(&header, bytes);
      if (lcomm_wire_unpack(bytes, sizeof bytes, &read, NULL) == LCOMM_OK &&
          !has_format(codec, flags)) {
        fail_msg("no golden message has codec %u and flags 0x%02x", codec, flags);
      }
    }
  }
}

static void every_golden_message_is_in_the_index(void **state) {
  (void)state;
  static entry list[MESSAGES_MAX];
  size_t count = load_index(list), found = 0;
  DIR *folder = opendir(GOLDEN_FOLDER);
  assert_non_null(folder);
  for (struct dirent *file = readdir(folder); file != NULL; file = readdir(folder)) {
    const char *ending = strstr(file->d_name, ".bin");
    size_t i = 0, length = ending ? (size_t)(ending - file->d_name) : 0;
    if (!ending) {
      continue;
    }
    while (i < count &&
           (strlen(list[i].name) != length || memcmp(list[i].name, file->d_name, length) != 0)) {
      i++;
    }
    if (i == count) {
      fail_msg("%s is not in the index", file->d_name);
    }
    found++;
  }
  closedir(folder);
  assert_int_equal(found, count);
}

/* A block of WIRE.md that begins with "```hex NAME". */
static size_t check_example(FILE *text, const char *name) {
  char line[LINE_MAX_SIZE];
  golden_bytes expected = golden_load(name, ".bin"), bytes = {.data = NULL};
  while (fgets(line, sizeof line, text) && strcmp(line, "```\n") != 0) {
    golden_add_hex(line, &bytes);
  }
  if (bytes.size != expected.size || memcmp(bytes.data, expected.data, bytes.size) != 0) {
    fail_msg("%s in codecs/WIRE.md is not the golden message", name);
  }
  free(bytes.data);
  free(expected.data);
  return 1;
}

static void the_examples_of_the_text_are_golden_messages(void **state) {
  (void)state;
  char line[LINE_MAX_SIZE], name[64];
  size_t examples = 0;
  FILE *text = fopen("codecs/WIRE.md", "r");
  assert_non_null(text);
  while (fgets(line, sizeof line, text)) {
    if (sscanf(line, "```hex %63s", name) == 1) {
      examples += check_example(text, name);
    }
  }
  fclose(text);
  assert_int_equal(examples, 6);
}

static void stripes_are_those_of_the_text(void **state) {
  (void)state;
  for (uint32_t parts = 1; parts < 6; parts++) {
    for (uint32_t part = 0; part < parts; part++) {
      for (uint64_t i = 0; i < 30000; i += 31) {
        assert_int_equal(decoder_stripe(i, part, parts), lcomm_stripe_global(i, parts, part));
      }
    }
  }
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_encoder_makes_the_golden_bytes),
      cmocka_unit_test(the_library_reads_or_refuses_every_message_as_the_index_says),
      cmocka_unit_test(the_second_decoder_reads_or_refuses_every_message_as_the_index_says),
      cmocka_unit_test(what_this_zstd_makes_is_read_by_the_second_decoder),
      cmocka_unit_test(both_decoders_agree_on_damaged_messages),
      cmocka_unit_test(cut_messages_are_refused_by_both_decoders),
      cmocka_unit_test(every_format_that_a_header_can_name_has_golden_messages),
      cmocka_unit_test(every_golden_message_is_in_the_index),
      cmocka_unit_test(the_examples_of_the_text_are_golden_messages),
      cmocka_unit_test(stripes_are_those_of_the_text),
  };
  if (argc == 2 && strcmp(argv[1], "--write") == 0) {
    return write_golden();
  }
  return cmocka_run_group_tests(tests, NULL, NULL);
}
