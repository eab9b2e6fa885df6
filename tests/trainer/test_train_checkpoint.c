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
#include "trainer/train_checkpoint.h"

enum { WEIGHTS = 5, FIRST = 3, PATH_SIZE = 512, FILE_MAX = 512 };

typedef struct saved {
  checkpoint head;
  float weights[WEIGHTS], first[FIRST];
  checkpoint_vector vectors[2];
} saved;

static void fill(saved *made) {
  memset(made, 0, sizeof *made);
  for (int i = 1; i < CHECKPOINT_WORDS; i++) {
    made->head.at.words[i] = (uint64_t)i * 1000003;
  }
  strcpy(made->head.model, "gpt-nano");
  for (int i = 0; i < WEIGHTS; i++) {
    made->weights[i] = 0.25f * (float)i;
  }
  made->first[2] = -7.5f;
  made->vectors[0] = (checkpoint_vector){made->weights, sizeof made->weights};
  made->vectors[1] = (checkpoint_vector){made->first, sizeof made->first};
}

static const char *write_to(const folder *in, saved *from, char path[PATH_SIZE]) {
  failure why = {0};
  snprintf(path, PATH_SIZE, "%s/trainer", in->path);
  assert_int_equal(checkpoint_write(path, &from->head, from->vectors, 2, &why), 0);
  return path;
}

static int read_from(const char *path, saved *to, failure *why) {
  checkpoint_file file;
  fill(to);
  memset(to->weights, 0, sizeof to->weights);
  memset(to->first, 0, sizeof to->first);
  if (checkpoint_open(path, &file, &to->head, why)) {
    return -1;
  }
  int result = checkpoint_load(&file, &to->head, to->vectors, 2, why);
  checkpoint_close(&file);
  return result;
}

static void what_is_written_is_read(void **state) {
  char path[PATH_SIZE];
  saved from, to;
  failure why = {0};
  fill(&from);
  write_to(*state, &from, path);
  assert_int_equal(from.head.at.values, WEIGHTS + FIRST);
  assert_int_equal(read_from(path, &to, &why), 0);
  assert_memory_equal(&to.head, &from.head, sizeof from.head);
  assert_memory_equal(to.weights, from.weights, sizeof from.weights);
  assert_memory_equal(to.first, from.first, sizeof from.first);
}

static void a_file_that_was_cut_anywhere_is_refused(void **state) {
  char path[PATH_SIZE];
  saved from, to;
  fill(&from);
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
  fill(&from);
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
  fill(&from);
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
  fill(&from);
  write_to(*state, &from, path);
  assert_int_equal(checkpoint_open(path, &file, &head, &why), 0);
  assert_int_equal(checkpoint_load(&file, &head, from.vectors, 1, &why), -1);
  assert_non_null(strstr(why.text, "other sizes"));
  checkpoint_close(&file);
}

static void a_folder_that_is_not_there_is_named(void **state) {
  saved from;
  failure why = {0};
  (void)state;
  fill(&from);
  assert_int_equal(checkpoint_write("/none/trainer", &from.head, from.vectors, 2, &why), -1);
  assert_non_null(strstr(why.text, "/none/trainer"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(what_is_written_is_read),
      IN_FOLDER(a_file_that_was_cut_anywhere_is_refused),
      IN_FOLDER(any_bit_that_flips_is_seen),
      IN_FOLDER(a_file_that_goes_on_is_refused),
      IN_FOLDER(vectors_of_another_training_are_refused),
      cmocka_unit_test(a_folder_that_is_not_there_is_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
