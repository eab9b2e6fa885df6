/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "tests/support/temp_folder.h"
#include "tests/support/unit_tests.h"
#include "trainer/train_data.h"

enum { PATH_SIZE = 512, IMAGES = 20, SIDE = 8, BODY = IMAGES * SIDE * SIDE };

static const char *const set_files[] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                        "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};

static const char *file_in(const folder *in, const char *name, char path[PATH_SIZE]) {
  snprintf(path, PATH_SIZE, "%s/%s", in->path, name);
  return path;
}

static void put_word(uint8_t *to, uint32_t word) {
  for (int i = 0; i < 4; i++) {
    to[i] = (uint8_t)(word >> (24 - 8 * i));
  }
}

/* Header of an IDX file with the given magic and sizes; returns its length. */
static size_t put_header(uint8_t *to, uint32_t magic, const uint32_t *sizes, int dimensions) {
  put_word(to, magic);
  for (int i = 0; i < dimensions; i++) {
    put_word(to + 4 + 4 * i, sizes[i]);
  }
  return 4 + 4 * (size_t)dimensions;
}

static size_t make_images(uint8_t *to) {
  const uint32_t sizes[] = {IMAGES, SIDE, SIDE};
  size_t header = put_header(to, 0x803, sizes, 3);
  for (int i = 0; i < BODY; i++) {
    to[header + i] = (uint8_t)(i * 7);
  }
  return header + BODY;
}

static size_t make_labels(uint8_t *to) {
  const uint32_t sizes[] = {IMAGES};
  size_t header = put_header(to, 0x801, sizes, 1);
  for (int i = 0; i < IMAGES; i++) {
    to[header + i] = (uint8_t)(i % 10);
  }
  return header + IMAGES;
}

static void write_plain(const char *path, const uint8_t *bytes, size_t size) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  assert_int_equal(fclose(file), 0);
}

static void write_gzip(const char *path, const uint8_t *bytes, size_t size) {
  gzFile file = gzopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(gzwrite(file, bytes, (unsigned)size), (int)size);
  assert_int_equal(gzclose(file), Z_OK);
}

static long size_of(const char *path) {
  struct stat found;
  assert_int_equal(stat(path, &found), 0);
  return (long)found.st_size;
}

/* The file is refused, nothing is kept, and the sentence names the file. */
static void assert_refused(const char *path, int dimensions, const char *expected) {
  idx_array read;
  failure why = {0};
  assert_int_equal(idx_read(path, dimensions, &read, &why), -1);
  assert_null(read.bytes);
  assert_int_equal(why.exit_code, EXIT_SETUP);
  assert_non_null(strstr(why.text, path));
  if (!strstr(why.text, expected)) {
    fail_msg("\"%s\" does not say \"%s\"", why.text, expected);
  }
}

static void assert_images(const char *path) {
  uint8_t expected[BODY + 16];
  make_images(expected);
  idx_array read;
  failure why = {0};
  assert_int_equal(idx_read(path, 3, &read, &why), 0);
  assert_int_equal(read.sizes[0], IMAGES);
  assert_int_equal(read.sizes[1], SIDE);
  assert_int_equal(read.sizes[2], SIDE);
  assert_memory_equal(read.bytes, expected + 16, BODY);
  idx_free(&read);
}

static void plain_and_gzip_files_give_the_same_images(void **state) {
  char path[PATH_SIZE];
  uint8_t bytes[BODY + 16];
  size_t size = make_images(bytes);
  file_in(*state, "file", path);
  write_plain(path, bytes, size);
  assert_images(path);
  write_gzip(path, bytes, size);
  assert_images(path);
}

static void a_file_larger_than_the_first_buffer_is_read_whole(void **state) {
  char path[PATH_SIZE];
  const uint32_t sizes[] = {3000000};
  uint8_t *bytes = test_malloc(3000008);
  size_t header = put_header(bytes, 0x801, sizes, 1);
  for (size_t i = 0; i < 3000000; i++) {
    bytes[header + i] = (uint8_t)(i % 251);
  }
  write_plain(file_in(*state, "file", path), bytes, header + 3000000);
  idx_array read;
  failure why = {0};
  assert_int_equal(idx_read(path, 1, &read, &why), 0);
  assert_memory_equal(read.bytes, bytes + header, 3000000);
  idx_free(&read);
  test_free(bytes);
}

static void every_truncation_of_a_plain_file_is_refused(void **state) {
  char path[PATH_SIZE];
  uint8_t bytes[BODY + 16];
  size_t size = make_images(bytes);
  file_in(*state, "file", path);
  for (size_t kept = 0; kept < size; kept += kept < 20 ? 1 : 97) {
    write_plain(path, bytes, kept);
    assert_refused(path, 3, kept < 16 ? "header" : "cut short");
  }
}

static void every_truncation_of_a_gzip_file_is_refused(void **state) {
  char path[PATH_SIZE];
  uint8_t bytes[BODY + 16];
  size_t size = make_images(bytes);
  write_gzip(file_in(*state, "file", path), bytes, size);
  for (long kept = size_of(path) - 1; kept >= 0; kept--) {
    assert_int_equal(truncate(path, kept), 0);
    assert_refused(path, 3, "");
  }
}

static void a_gzip_file_with_a_flipped_bit_is_refused_or_equal(void **state) {
  char path[PATH_SIZE];
  uint8_t bytes[BODY + 16], packed[BODY + 64];
  size_t size = make_images(bytes);
  write_gzip(file_in(*state, "file", path), bytes, size);
  long packed_size = size_of(path);
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  assert_int_equal(fread(packed, 1, sizeof packed, file), packed_size);
  fclose(file);
  for (long at = 0; at < packed_size; at++) {
    packed[at] ^= 0x10;
    write_plain(path, packed, (size_t)packed_size);
    packed[at] ^= 0x10;
    idx_array read;
    failure why = {0};
    if (idx_read(path, 3, &read, &why)) {
      continue; /* bits of the gzip header may change without harm */
    }
    assert_memory_equal(read.bytes, bytes + 16, BODY);
    idx_free(&read);
  }
}

static void a_wrong_magic_is_refused_with_both_values(void **state) {
  char path[PATH_SIZE];
  uint8_t bytes[BODY + 16];
  size_t size = make_images(bytes);
  write_plain(file_in(*state, "file", path), bytes, size);
  assert_refused(path, 1, "0x00000803");
  assert_refused(path, 1, "0x00000801");
}

static void announced_sizes_are_never_believed(void **state) {
  static const struct {
    uint32_t sizes[3];
    const char *expected;
  } cases[] = {
      {{0, 28, 28}, "announces 0 in dimension 1"},
      {{10, 0, 28}, "announces 0 in dimension 2"},
      {{UINT32_MAX, 28, 28}, "announces 4294967295 in dimension 1"},
      {{65536, 65536, 1}, "announces more than"}, /* 2^32 */
      {{65536, 65536, 65536}, "announces more than"},
      {{0x80000000u, 2, 1}, "announces 2147483648 in dimension 1"},
      {{10000000, 10000000, 10000000}, "announces more than"}, /* over 2^64 */
      {{1024, 1024, 1025}, "announces more than"},
  };
  char path[PATH_SIZE];
  uint8_t bytes[16 + 100] = {0};
  file_in(*state, "file", path);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    put_header(bytes, 0x803, cases[i].sizes, 3);
    write_plain(path, bytes, sizeof bytes);
    assert_refused(path, 3, cases[i].expected);
  }
}

static void the_largest_announced_size_costs_no_memory(void **state) {
  char path[PATH_SIZE];
  const uint32_t sizes[] = {1024, 1024, 1024};
  uint8_t bytes[16 + 100] = {0};
  put_header(bytes, 0x803, sizes, 3);
  write_plain(file_in(*state, "file", path), bytes, sizeof bytes);
  assert_refused(path, 3, "holds 100 bytes");
}

static void bytes_after_the_data_are_refused(void **state) {
  char path[PATH_SIZE];
  uint8_t bytes[BODY + 17] = {0};
  size_t size = make_images(bytes);
  write_plain(file_in(*state, "file", path), bytes, size + 1);
  assert_refused(path, 3, "goes on");
}

static void missing_files_and_folders_are_refused(void **state) {
  char path[PATH_SIZE];
  assert_refused(file_in(*state, "file", path), 3, "No such file");
  assert_refused(((folder *)*state)->path, 3, "");
}

/* ------------------------------------------------------------ data sets */

static void write_set(const folder *in) {
  char path[PATH_SIZE];
  uint8_t bytes[BODY + 16];
  for (int i = 0; i < 4; i++) {
    size_t size = i % 2 == 0 ? make_images(bytes) : make_labels(bytes);
    write_plain(file_in(in, set_files[i], path), bytes, size);
  }
}

static void assert_set_refused(const folder *in, const char *expected) {
  dataset data;
  failure why = {0};
  assert_int_equal(dataset_load(in->path, 1, &data, &why), -1);
  assert_null(data.train.pixels);
  if (!strstr(why.text, expected)) {
    fail_msg("\"%s\" does not say \"%s\"", why.text, expected);
  }
}

static void a_data_set_is_loaded_and_normalised(void **state) {
  const folder *in = *state;
  write_set(in);
  dataset data;
  failure why = {0};
  assert_int_equal(dataset_load(in->path, 1, &data, &why), 0);
  assert_false(data.built_in);
  assert_int_equal(data.train.count, IMAGES);
  assert_int_equal(data.train.width, SIDE);
  float images[BODY];
  uint8_t labels[IMAGES];
  uint32_t order[IMAGES];
  for (uint32_t i = 0; i < IMAGES; i++) {
    order[i] = IMAGES - 1 - i;
  }
  dataset_batch(&data, &data.train, order, IMAGES, images, labels);
  double sum = 0.0, squares = 0.0;
  for (int i = 0; i < BODY; i++) {
    sum += (double)images[i];
    squares += (double)images[i] * (double)images[i];
  }
  assert_true(sum / BODY < 1e-4 && sum / BODY > -1e-4);
  assert_true(squares / BODY < 1.001 && squares / BODY > 0.999);
  assert_int_equal(labels[0], (IMAGES - 1) % 10);
  dataset_free(&data);
}

static void a_data_set_with_a_missing_file_is_refused(void **state) {
  const folder *in = *state;
  char path[PATH_SIZE];
  for (int i = 0; i < 4; i++) {
    write_set(in);
    unlink(file_in(in, set_files[i], path));
    assert_set_refused(in, set_files[i]);
  }
}

static void labels_that_do_not_fit_are_refused(void **state) {
  const folder *in = *state;
  char path[PATH_SIZE];
  uint8_t bytes[BODY + 16];
  write_set(in);
  size_t size = make_labels(bytes);
  bytes[size - 1] = 10;
  write_plain(file_in(in, set_files[1], path), bytes, size);
  assert_set_refused(in, "is 10, expected 0 to 9");
  put_word(bytes + 4, IMAGES - 1);
  write_plain(path, bytes, size - 1);
  assert_set_refused(in, "19 labels for 20 images");
}

static void write_images_of(const char *path, uint32_t height, uint32_t width) {
  const uint32_t sizes[] = {IMAGES, height, width};
  uint8_t bytes[16 + BODY];
  memset(bytes, 1, sizeof bytes);
  size_t header = put_header(bytes, 0x803, sizes, 3);
  write_plain(path, bytes, header + (size_t)IMAGES * height * width);
}

static void images_of_other_sizes_are_refused(void **state) {
  const folder *in = *state;
  char train[PATH_SIZE], test[PATH_SIZE];
  write_set(in);
  file_in(in, set_files[0], train);
  file_in(in, set_files[2], test);
  write_images_of(test, SIDE - 1, SIDE);
  assert_set_refused(in, "do not belong together");
  write_images_of(test, SIDE, SIDE - 1);
  assert_set_refused(in, "do not belong together");
  write_images_of(test, 16, 3);
  write_images_of(train, 16, 3);
  assert_set_refused(in, "16x3");
  write_images_of(test, 3, 16);
  write_images_of(train, 3, 16);
  assert_set_refused(in, "3x16");
}

static void a_folder_without_data_is_refused(void **state) {
  assert_set_refused(*state, "--data");
}

static const struct CMUnitTest tests[] = {
    IN_FOLDER(plain_and_gzip_files_give_the_same_images),
    IN_FOLDER(a_file_larger_than_the_first_buffer_is_read_whole),
    IN_FOLDER(every_truncation_of_a_plain_file_is_refused),
    IN_FOLDER(every_truncation_of_a_gzip_file_is_refused),
    IN_FOLDER(a_gzip_file_with_a_flipped_bit_is_refused_or_equal),
    IN_FOLDER(a_wrong_magic_is_refused_with_both_values),
    IN_FOLDER(announced_sizes_are_never_believed),
    IN_FOLDER(the_largest_announced_size_costs_no_memory),
    IN_FOLDER(bytes_after_the_data_are_refused),
    IN_FOLDER(missing_files_and_folders_are_refused),
    IN_FOLDER(a_data_set_is_loaded_and_normalised),
    IN_FOLDER(a_data_set_with_a_missing_file_is_refused),
    IN_FOLDER(labels_that_do_not_fit_are_refused),
    IN_FOLDER(images_of_other_sizes_are_refused),
    IN_FOLDER(a_folder_without_data_is_refused),
};
RUN_TESTS(tests)
