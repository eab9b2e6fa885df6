/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/temp_folder.h"
#include "tests/support/unit_tests.h"
#include "trainer/train_checkpoint.h"

enum { WEIGHTS = 5, FIRST = 3, PATH_SIZE = 512, FILE_MAX = 512 };

typedef struct saved {
  checkpoint head;
  float weights[WEIGHTS], first[FIRST];
} saved;

static void fill(saved *made) {
  memset(made, 0, sizeof *made);
  for (int i = 1; i < CHECKPOINT_WORDS; i++) {
    made->head.at.words[i] = (uint64_t)i * 1000003;
  }
  made->head.at.values = WEIGHTS + FIRST;
  strcpy(made->head.model, "gpt-nano");
  for (int i = 0; i < WEIGHTS; i++) {
    made->weights[i] = 0.25f * (float)i;
  }
  made->first[2] = -7.5f;
}

static void write_to(const folder *in, saved *from, char path[PATH_SIZE]) {
  checkpoint_file file;
  failure why = {0};
  fill(from);
  snprintf(path, PATH_SIZE, "%s/trainer", in->path);
  assert_int_equal(checkpoint_begin(path, &from->head, &file, &why), 0);
  assert_int_equal(checkpoint_put(&file, from->weights, WEIGHTS, &why), 0);
  assert_int_equal(checkpoint_put(&file, from->first, FIRST, &why), 0);
  assert_int_equal(checkpoint_finish(&file, &why), 0);
  checkpoint_close(&file);
}

/* In other pieces than it was written. */
static int read_values(checkpoint_file *file, saved *to, failure *why) {
  float all[WEIGHTS + FIRST];
  for (int i = 0; i < WEIGHTS + FIRST; i++) {
    if (checkpoint_get(file, &all[i], 1, why)) {
      return -1;
    }
  }
  memcpy(to->weights, all, sizeof to->weights);
  memcpy(to->first, all + WEIGHTS, sizeof to->first);
  return checkpoint_end(file, why);
}

static int read_from(const char *path, saved *to, failure *why) {
  checkpoint_file file;
  memset(to, 0, sizeof *to);
  if (checkpoint_open(path, &file, &to->head, why)) {
    return -1;
  }
  int result = checkpoint_expect(&file, WEIGHTS + FIRST, why) || read_values(&file, to, why);
  checkpoint_close(&file);
  return result ? -1 : 0;
}

static void what_is_written_is_read(void **state) {
  char path[PATH_SIZE];
  saved from, to;
  failure why = {0};
  write_to(*state, &from, path);
  assert_int_equal(read_from(path, &to, &why), 0);
  assert_memory_equal(&to.head, &from.head, sizeof from.head);
  assert_memory_equal(to.weights, from.weights, sizeof from.weights);
  assert_memory_equal(to.first, from.first, sizeof from.first);
}

static void a_file_that_was_cut_anywhere_is_refused(void **state) {
  char path[PATH_SIZE];
  saved from, to;
  write_to(*state, &from, path);
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  fseek(file, 0, SEEK_END);
  long size = ftell(file);
  fclose(file);
  while (--size >= 0) {
    failure why = {0};
    assert_int_equal(truncate(path, size), 0);
    assert_int_equal(read_from(path, &to, &why), -1);
    assert_non_null(strstr(why.text, path));
  }
}

static void any_bit_that_flips_is_seen(void **state) {
  char path[PATH_SIZE];
  uint8_t bytes[FILE_MAX];
  saved from, to;
  write_to(*state, &from, path);
  FILE *file = fopen(path, "rb+");
  assert_non_null(file);
  size_t size = fread(bytes, 1, sizeof bytes, file);
  for (size_t i = 0; i < 8 * size; i += 3) {
    failure why = {0};
    int changed = bytes[i / 8] ^ (1 << (i % 8));
    fseek(file, (long)(i / 8), SEEK_SET);
    fputc(changed, file);
    fflush(file);
    assert_int_equal(read_from(path, &to, &why), -1);
    fseek(file, (long)(i / 8), SEEK_SET);
    fputc(bytes[i / 8], file);
    fflush(file);
  }
  fclose(file);
  failure why = {0};
  assert_int_equal(read_from(path, &to, &why), 0);
}

static void a_file_that_goes_on_is_refused(void **state) {
  char path[PATH_SIZE];
  saved from, to;
  failure why = {0};
  write_to(*state, &from, path);
  FILE *file = fopen(path, "ab");
  assert_non_null(file);
  fputc(0, file);
  fclose(file);
  assert_int_equal(read_from(path, &to, &why), -1);
  assert_non_null(strstr(why.text, "goes on after its end"));
}

static void vectors_of_another_training_are_refused(void **state) {
  char path[PATH_SIZE];
  saved from;
  checkpoint_file file;
  checkpoint head;
  failure why = {0};
  write_to(*state, &from, path);
  assert_int_equal(checkpoint_open(path, &file, &head, &why), 0);
  assert_int_equal(checkpoint_expect(&file, WEIGHTS, &why), -1);
  assert_non_null(strstr(why.text, "other sizes"));
  checkpoint_close(&file);
}

static void a_folder_that_is_not_there_is_named(void **state) {
  saved from;
  failure why = {0};
  (void)state;
  fill(&from);
  checkpoint_file file;
  assert_int_equal(checkpoint_begin("/none/trainer", &from.head, &file, &why), -1);
  checkpoint_close(&file);
  assert_non_null(strstr(why.text, "/none/trainer"));
}

static const struct CMUnitTest tests[] = {
    IN_FOLDER(what_is_written_is_read),
    IN_FOLDER(a_file_that_was_cut_anywhere_is_refused),
    IN_FOLDER(any_bit_that_flips_is_seen),
    IN_FOLDER(a_file_that_goes_on_is_refused),
    IN_FOLDER(vectors_of_another_training_are_refused),
    cmocka_unit_test(a_folder_that_is_not_there_is_named),
};
RUN_TESTS(tests)
