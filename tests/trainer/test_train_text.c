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
#include "trainer/train_text.h"

enum { PATH_SIZE = 512 };

static void write_file(const folder *in, const char *name, const char *bytes, size_t size) {
  char path[PATH_SIZE];
  snprintf(path, sizeof path, "%s/%s", in->path, name);
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  fclose(file);
}

static void write_text(const folder *in, const char *name, const char *text) {
  write_file(in, name, text, strlen(text));
}

static void write_gzip(const folder *in, const char *name, const char *text) {
  char path[PATH_SIZE];
  snprintf(path, sizeof path, "%s/%s", in->path, name);
  gzFile file = gzopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(gzwrite(file, text, (unsigned)strlen(text)), (int)strlen(text));
  assert_int_equal(gzclose(file), Z_OK);
}

static void assert_part(const text_part *part, const char *expected) {
  assert_int_equal(part->size, strlen(expected));
  assert_memory_equal(part->bytes, expected, part->size);
}

/* `name` in the folder, or the folder itself if it is NULL, is refused; the sentence has `said`. */
static void assert_refused(const folder *in, const char *name, const char *said) {
  char path[PATH_SIZE];
  text_data made;
  failure why = {0};
  snprintf(path, sizeof path, "%s%s%s", in->path, name ? "/" : "", name ? name : "");
  assert_int_equal(text_load(path, 1, &made, &why), -1);
  assert_int_equal(why.exit_code, EXIT_SETUP);
  if (!strstr(why.text, said) || !strstr(why.text, path)) {
    fail_msg("\"%s\" does not say \"%s\" of %s", why.text, said, path);
  }
  assert_null(made.train.bytes);
}

static void the_last_tenth_of_each_file_of_a_folder_is_held_out(void **state) {
  const folder *in = *state;
  text_data made;
  failure why = {0};
  write_text(in, "b", "ABCDEFGHIJ");
  write_gzip(in, "a.gz", "abcdefghijklmnopqrst");
  write_text(in, ".hidden", "no");
  assert_int_equal(text_load(in->path, 1, &made, &why), 0);
  assert_part(&made.train, "abcdefghijklmnopqrABCDEFGHI");
  assert_part(&made.test, "stJ");
  assert_false(made.built_in);
  text_free(&made);
}

static void a_folder_of_data_sets_has_a_known_text(void **state) {
  const folder *in = *state;
  char inner[PATH_SIZE];
  text_data made;
  failure why = {0};
  write_text(in, "README", "not this");
  snprintf(inner, sizeof inner, "%s/text", in->path);
  assert_int_equal(mkdir(inner, 0700), 0);
  write_text(in, "text/tinyshakespeare.txt", "0123456789");
  setenv("LCOMM_DATA", in->path, 1);
  assert_int_equal(text_load(NULL, 1, &made, &why), 0);
  unsetenv("LCOMM_DATA");
  assert_part(&made.train, "012345678");
  assert_non_null(strstr(made.where, "text/tinyshakespeare.txt"));
  text_free(&made);
}

static void bad_files_are_refused_by_name(void **state) {
  const folder *in = *state;
  char path[PATH_SIZE];
  write_text(in, "empty", "");
  write_file(in, "zero", "one\ntwo\nth\0ree", 14);
  write_gzip(in, "cut.gz", "some text that is long enough to be cut somewhere");
  snprintf(path, sizeof path, "%s/cut.gz", in->path);
  assert_int_equal(truncate(path, 30), 0);
  snprintf(path, sizeof path, "%s/pipe", in->path);
  assert_int_equal(mkfifo(path, 0600), 0);
  assert_refused(in, "empty", "is empty");
  assert_refused(in, "zero", "line 3: a zero byte");
  assert_refused(in, "cut.gz", "");
  assert_refused(in, "none", "No such file");
  assert_refused(in, "pipe", "is not a file"); /* and nobody waits for a writer */
}

static void a_folder_with_a_bad_file_or_without_any_is_refused(void **state) {
  const folder *in = *state;
  assert_refused(in, NULL, "holds no files");
  write_text(in, "a", "good text");
  write_text(in, "b", "");
  assert_refused(in, NULL, "/b is empty");
}

static void a_refused_file_leaves_what_was_read_before(void **state) {
  const folder *in = *state;
  char path[PATH_SIZE];
  text_part part = {0};
  failure why = {0};
  write_text(in, "good", "good");
  write_file(in, "bad", "b\0d", 3);
  snprintf(path, sizeof path, "%s/good", in->path);
  assert_int_equal(text_read_file(path, &part, &why), 0);
  snprintf(path, sizeof path, "%s/bad", in->path);
  assert_int_equal(text_read_file(path, &part, &why), -1);
  assert_part(&part, "good");
  free(part.bytes);
}

static void the_built_in_text_depends_on_the_seed_alone(void **state) {
  (void)state;
  text_data one, same, other;
  failure why = {0};
  assert_int_equal(text_load(TEXT_BUILT_IN, 1, &one, &why), 0);
  assert_int_equal(text_load(TEXT_BUILT_IN, 1, &same, &why), 0);
  assert_int_equal(text_load(TEXT_BUILT_IN, 2, &other, &why), 0);
  assert_true(one.built_in);
  assert_true(text_hash(&one) == text_hash(&same));
  assert_true(text_hash(&one) != text_hash(&other));
  assert_int_equal(one.train.size + one.test.size, STORY_SIZE);
  text_free(&one);
  text_free(&same);
  text_free(&other);
}

static void windows_lie_side_by_side_and_have_their_next_bytes(void **state) {
  (void)state;
  uint8_t bytes[] = {'a', 'b', 'c', 'd', 'e', 'f', 255};
  const text_part part = {sizeof bytes, bytes};
  float window[3];
  uint8_t next[3];
  assert_int_equal(text_windows(&part, 3), 2);
  text_window(&part, 3, 3, window, next);
  assert_true(window[0] == 'd' && window[1] == 'e' && window[2] == 'f');
  assert_memory_equal(next, bytes + 4, 3);
  const text_part short_part = {3, bytes}, none = {0};
  assert_int_equal(text_windows(&short_part, 3), 0);
  assert_int_equal(text_windows(&none, 3), 0);
}

static const struct CMUnitTest tests[] = {
    IN_FOLDER(the_last_tenth_of_each_file_of_a_folder_is_held_out),
    IN_FOLDER(a_folder_of_data_sets_has_a_known_text),
    IN_FOLDER(bad_files_are_refused_by_name),
    IN_FOLDER(a_folder_with_a_bad_file_or_without_any_is_refused),
    IN_FOLDER(a_refused_file_leaves_what_was_read_before),
    cmocka_unit_test(the_built_in_text_depends_on_the_seed_alone),
    cmocka_unit_test(windows_lie_side_by_side_and_have_their_next_bytes),
};
RUN_TESTS(tests)
