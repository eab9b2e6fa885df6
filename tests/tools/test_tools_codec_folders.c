/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Layer lists, captures and folders as sources of codec_bench. */

#include "tests/support/unit_tests.h"
#include "tests/tools/source_files.h"

/* ------------------------------------------------------------- layer lists */

static void a_layer_list_names_values_and_gaps(void **state) {
  static const char *const lists[] = {
      "# a list\n  b\t10 3 # of a#b\r\n\na#b 4\r\nc 0\nd 19 1",
      "{\"model\": {\"layers\": 3}, \"steps\": [], \"layers\": ["
      "{\"name\": \"b\", \"shape\": [3], \"offset\": 10, \"numel\": 3},"
      "{\"name\": \"d\", \"offset\": 19, \"count\": 1},"
      "{\"name\": \"c\", \"offset\": 0, \"numel\": 0},"
      "{\"name\": \"a#b\", \"offset\": 13, \"numel\": 4}]}"};
  bytes b = {0};
  put_floats(&b, 20);
  char path[PATH_SIZE];
  snprintf(path, sizeof path, "%s", write_file(state, "a.f32", &b));
  for (int i = 0; i < 2; i++) {
    const char *layers = write_text(state, i == 0 ? "list" : "list.json", lists[i]);
    lcomm_source *source = open_good(path, layers);
    const lcomm_source_contents *contents = lcomm_source_contents_of(source);
    assert_int_equal(contents->count, 20);
    assert_int_equal(contents->tensor_count, 5);
    check_tensor(contents, 0, "unlisted-0", 0, 10);
    check_tensor(contents, 1, "b", 10, 3);
    check_tensor(contents, 2, "a#b", 13, 4);
    check_tensor(contents, 3, "unlisted-17", 17, 2);
    check_tensor(contents, 4, "d", 19, 1);
    assert_int_equal(contents->skipped_count, 1);
    assert_string_equal(contents->skipped[0].name, "c");
    lcomm_source_close(source);
  }
}

static void a_list_splits_npy_files_of_any_type(void **state) {
  bytes b = make_npy(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (2,2)}");
  for (int i = 0; i < 4; i++) {
    put(&b, &(double){(double)i}, 8);
  }
  char path[PATH_SIZE];
  snprintf(path, sizeof path, "%s", write_file(state, "a.npy", &b));
  write_text(state, "meta.json", "no list for .npy files unless asked for");
  lcomm_source_close(open_good(path, NULL));
  lcomm_source *source = open_good(path, write_text(state, "list", "a 1 2\n"));
  check_tensor(lcomm_source_contents_of(source), 0, "unlisted-0", 0, 1);
  check_tensor(lcomm_source_contents_of(source), 1, "a", 1, 2);
  check_tensor(lcomm_source_contents_of(source), 2, "unlisted-3", 3, 1);
  for (int i = 0; i < 4; i++) {
    float value = -1.0f;
    lcomm_source_read(source, (uint64_t)i, 1, &value);
    assert_true(value == (float)i);
  }
  lcomm_source_close(source);
}

static void lists_that_do_not_fit_are_refused(void **state) {
  static const struct {
    const char *list, *phrase;
    lcomm_status status;
  } cases[] = {
      {"a 21", "\"a\" has 21 values from number 0 on", LCOMM_ERR_WIRE},
      {"a 20\nb 1", "\"b\" has 1 values from number 20 on", LCOMM_ERR_WIRE},
      {"a 18446744073709551615 1", "line 1", LCOMM_ERR_WIRE},
      {"a 18446744073709551614 1", "inside the 20", LCOMM_ERR_WIRE},
      {"\na 18446744073709551616", "line 2", LCOMM_ERR_WIRE},
      {"a 5\nb 4 2", "\"b\" begins at value 4, expected it behind \"a\"", LCOMM_ERR_WIRE},
      {"a 5\n\n#\nb", "line 4", LCOMM_ERR_WIRE},
      {"a -5", "line 1", LCOMM_ERR_WIRE},
      {"a 36893488147419103242", "line 1", LCOMM_ERR_WIRE},
      {"a 5 x", "line 1", LCOMM_ERR_WIRE},
      {"a x 5", "line 1", LCOMM_ERR_WIRE},
      {"a 1 2 3", "line 1", LCOMM_ERR_WIRE},
      {"\x01 5", "\"?\" (1 bytes)", LCOMM_ERR_WIRE},
      {"{\"layers\": [{\"name\": \"a\", \"offset\": 1, \"numel\": 20}]}", "\"a\" has 20",
       LCOMM_ERR_WIRE},
      {"{\"layers\": [{\"name\": \"a\", \"numel\": 20}]}", "(a) has no", LCOMM_ERR_WIRE},
      {"{\"layers\": [{\"offset\": 1, \"numel\": 20}]}", "(nameless)", LCOMM_ERR_WIRE},
      {"{\"layers\": [3]}", "(nameless)", LCOMM_ERR_WIRE},
      {"{\"layers\": {\"name\": 3}}", "no list", LCOMM_ERR_WIRE},
      {"{\"layer\": []}", "has no \"layers\"", LCOMM_ERR_UNSUPPORTED},
      {"{\"layers\": [}", "no JSON", LCOMM_ERR_WIRE},
  };
  bytes b = {0};
  put_floats(&b, 20);
  char path[PATH_SIZE];
  snprintf(path, sizeof path, "%s", write_file(state, "a.f32", &b));
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const char *name = cases[i].list[0] == '{' ? "list.json" : "list";
    const char *layers = write_text(state, name, cases[i].list);
    check_refused(path, layers, cases[i].status, layers, cases[i].phrase);
  }
}

static void a_meta_json_beside_a_raw_file_names_its_tensors(void **state) {
  bytes b = {0};
  put_floats(&b, 4);
  char path[PATH_SIZE];
  snprintf(path, sizeof path, "%s", write_file(state, "\xff\n.f32", &b));
  lcomm_source *source = open_good(path, NULL);
  check_tensor(lcomm_source_contents_of(source), 0, "??.f32", 0, 4);
  lcomm_source_close(source);

  const char *meta = write_text(state, "meta.json",
                                "{\"layers\": [{\"name\": \"\xc3\xa4\", \"offset\": 0, "
                                "\"numel\": 4}], \"steps\": 0}");
  source = open_good(path, NULL);
  check_tensor(lcomm_source_contents_of(source), 0, "\xc3\xa4", 0, 4);
  lcomm_source_close(source);

  write_text(state, "meta.json", "{\"layers\": [{\"name\": \"a\", \"offset\": 1, \"numel\": 4}]}");
  check_refused(path, NULL, LCOMM_ERR_WIRE, meta, "--layers");
  write_text(state, "meta.json", "{\"author\": \"somebody else's\"}");
  lcomm_source_close(open_good(path, NULL));
}

/* ----------------------------------------------------------------- captures */

static void a_capture_tells_where_it_comes_from(void **state) {
  bytes b = make_capture("w", 3);
  put_floats(&b, 3);
  put_checksum(&b);
  lcomm_source *source = open_good(write_file(state, "step123456.lcg", &b), NULL);
  const lcomm_source_contents *contents = lcomm_source_contents_of(source);
  float values[3];
  assert_int_equal(contents->tensor_count, 1);
  check_tensor(contents, 0, "w", 0, 3);
  assert_int_equal(contents->capture.step, 123456);
  assert_int_equal(contents->capture.rank, 2);
  assert_int_equal(contents->capture.ranks, 6);
  assert_int_equal(contents->capture.nodes, 3);
  lcomm_source_read(source, 0, 3, values);
  assert_memory_equal(values, ((float[]){0, 1, 2}), sizeof values);
  lcomm_source_close(source);
}

static void values_of_a_capture_begin_at_a_multiple_of_64_bytes(void **state) {
  (void)state;
  char name[LCOMM_SOURCE_NAME_MAX] = "";
  for (size_t length = 1; length < sizeof name; length++) {
    name[length - 1] = 'n';
    bytes b = make_capture(name, 2);
    uint64_t begin = b.size;
    put_floats(&b, 2);
    put_checksum(&b);
    lcomm_source_contents contents = parse_good(lcomm_source_parse_capture, &b);
    check_tensor(&contents, 0, name, 0, 2);
    assert_int_equal(contents.tensors[0].offset, begin);
    assert_int_equal(begin, (32 + 12 + length + 63) / 64 * 64);
    lcomm_source_contents_free(&contents);
  }
}

static void a_capture_has_the_shapes_of_matrices(void **state) {
  static const struct {
    uint64_t count, rows, columns;
    bool good;
  } cases[] = {{6, 2, 3, true},
               {6, 6, 1, true},
               {6, 0, 0, true},
               {6, 3, 3, false},
               {6, 0, 6, false},
               {6, 6, 0, false},
               {6, 4, 1, false},
               {6, 1, 7, false},
               {0, 1, 0, true},
               {6, UINT64_MAX, 2, false},
               {6, 2, 3 + (UINT64_C(1) << 63), false}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    bytes b = make_capture_of(2, "w", cases[i].count, cases[i].rows, cases[i].columns);
    put_floats(&b, cases[i].count);
    put_checksum(&b);
    if (!cases[i].good) {
      check_unparsed(lcomm_source_parse_capture, &b, LCOMM_ERR_WIRE, "rows and columns");
      continue;
    }
    lcomm_source_contents contents = parse_good(lcomm_source_parse_capture, &b);
    if (cases[i].count > 0) {
      check_tensor(&contents, 0, "w", 0, cases[i].count);
      assert_int_equal(contents.tensors[0].rows, cases[i].rows);
      assert_int_equal(contents.tensors[0].columns, cases[i].columns);
    }
    lcomm_source_contents_free(&contents);
  }
}

static void a_capture_that_ends_in_a_shape_is_refused(void **state) {
  (void)state;
  for (size_t size = 32 + 4 + 1 + 8; size < 32 + 4 + 1 + 24; size++) {
    bytes b = make_capture_of(2, "w", 6, 2, 3);
    b.size = size;
    put_checksum(&b);
    check_unparsed(lcomm_source_parse_capture, &b, LCOMM_ERR_WIRE, "tensor's shape");
  }
}

/* 39 bytes have no room for a header and a checksum; here the checksum's first
 * byte is the last one of the header's number of tensors. */
static void a_capture_shorter_than_its_header_is_refused(void **state) {
  (void)state;
  for (uint8_t tries = 0; tries < 255; tries++) {
    bytes b = make_capture("w", 0);
    b.data[8] = tries;
    b.size = 31;
    put_checksum(&b);
    check_unparsed(lcomm_source_parse_capture, &b, LCOMM_ERR_WIRE, "LCMG");
  }
}

static void a_damaged_capture_is_refused(void **state) {
  (void)state;
  bytes good = make_capture("w", 3);
  put_floats(&good, 3);
  put_checksum(&good);
  for (bytes b = good; b.size > 0; b.size--) {
    bytes cut = b;
    cut.size--;
    check_unparsed(lcomm_source_parse_capture, &cut, LCOMM_ERR_WIRE, "");
  }
  for (size_t bit = 0; bit < 8 * good.size; bit++) {
    bytes b = good;
    b.data[bit / 8] ^= (uint8_t)(1u << (bit % 8));
    bool version = bit / 32 == 1;
    check_unparsed(lcomm_source_parse_capture, &b, version ? LCOMM_ERR_UNSUPPORTED : LCOMM_ERR_WIRE,
                   version    ? "version"
                   : bit < 32 ? "LCMG"
                              : "checksum");
  }
  put_number(&good, 0, 1);
  check_unparsed(lcomm_source_parse_capture, &good, LCOMM_ERR_WIRE, "checksum");
}

static void a_capture_whose_numbers_lie_is_refused(void **state) {
  static const struct {
    size_t at, size;
    uint64_t value;
    const char *phrase;
  } cases[] = {
      {4, 4, 3, "version 3"},
      {16, 4, 6, "rank"},
      {20, 4, 0, "rank"},
      {20, 4, 2, "rank"},
      {24, 4, 0, "nodes"},
      {24, 4, 7, "nodes"},
      {28, 4, 0, "number of tensors"},
      {28, 4, 65537, "number of tensors"},
      {28, 4, 2, "(0 bytes)"},   /* the padding is no record */
      {32, 4, 0, "more values"}, /* the name is read as a count */
      {32, 4, 128, "tensor's name"},
      {32, 4, UINT32_MAX, "tensor's name"},
      {36, 1, '\n', "\"?\" (1 bytes)"},
      {37, 8, 2, "12 bytes of values, expected 8"},
      {37, 8, 4, "12 bytes of values, expected 16"},
      {37, 8, UINT64_MAX, "more values"},
      {37, 8, (uint64_t)1 << 62 | 3, "more values"}, /* 4 times this is 12 modulo 2^64 */
      {45, 1, 1, "no zeros"},
      {63, 1, 1, "no zeros"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    bytes b = make_capture("w", 3), lie = {0};
    put_floats(&b, 3);
    put_number(&lie, cases[i].value, cases[i].size);
    memcpy(b.data + cases[i].at, lie.data, lie.size);
    put_checksum(&b);
    check_unparsed(lcomm_source_parse_capture, &b, i == 0 ? LCOMM_ERR_UNSUPPORTED : LCOMM_ERR_WIRE,
                   cases[i].phrase);
  }
  bytes b = make_capture("w", 0);
  b.size = 60; /* inside the padding */
  put_checksum(&b);
  check_unparsed(lcomm_source_parse_capture, &b, LCOMM_ERR_WIRE, "before its values");
}

/* -------------------------------------------------------- files and folders */

static void check_found(const lcomm_source_paths *found, size_t index, const char *name) {
  assert_in_range(index, 0, found->count - 1);
  const char *slash = strrchr(found->paths[index], '/');
  assert_non_null(slash);
  assert_string_equal(slash + 1, name);
  assert_int_equal(access(found->paths[index], R_OK), 0);
}

static void a_folder_stands_for_its_files_in_name_order(void **state) {
  char error[LCOMM_SOURCE_ERROR_MAX];
  const char *folder_path = ((folder *)*state)->path;
  lcomm_source_paths found;
  write_text(state, "README.md", "");
  assert_int_equal(lcomm_source_find(folder_path, &found, error), LCOMM_ERR_ARGUMENT);
  check_sentence(error, folder_path, "no files");
  write_text(state, "worker10.f32", "");
  write_text(state, "worker9.f32", "");
  write_text(state, ".hidden.f32", "");
  assert_int_equal(lcomm_source_find(folder_path, &found, error), LCOMM_OK);
  assert_int_equal(found.count, 2);
  check_found(&found, 0, "worker9.f32");
  check_found(&found, 1, "worker10.f32");
  lcomm_source_paths_free(&found);

  write_text(state, "step1000000-bucket000-rank0000.lcg", "");
  write_text(state, "step000009-bucket001-rank0000.lcg", "");
  write_text(state, "step000009-bucket000-rank0010.lcg", "");
  write_text(state, "step000010-bucket000-rank0002.lcg", "");
  assert_int_equal(lcomm_source_find(folder_path, &found, error), LCOMM_OK);
  assert_int_equal(found.count, 4);
  check_found(&found, 0, "step000009-bucket000-rank0010.lcg");
  check_found(&found, 1, "step000009-bucket001-rank0000.lcg");
  check_found(&found, 2, "step000010-bucket000-rank0002.lcg");
  check_found(&found, 3, "step1000000-bucket000-rank0000.lcg");
  lcomm_source_paths_free(&found);
}

static void a_file_stands_for_itself(void **state) {
  char error[LCOMM_SOURCE_ERROR_MAX];
  const char *path = write_text(state, "any name", "");
  lcomm_source_paths found;
  assert_int_equal(lcomm_source_find(path, &found, error), LCOMM_OK);
  assert_int_equal(found.count, 1);
  assert_string_equal(found.paths[0], path);
  lcomm_source_paths_free(&found);
  unlink(path);
  assert_int_equal(lcomm_source_find(path, &found, error), LCOMM_ERR_SYSTEM);
  check_sentence(error, path, "No such file");
}

static void what_is_no_readable_file_is_refused(void **state) {
  const char *folder_path = ((folder *)*state)->path;
  char path[PATH_SIZE], list[PATH_SIZE];
  check_refused(folder_path, NULL, LCOMM_ERR_ARGUMENT, folder_path, "is a folder");
  snprintf(path, sizeof path, "%s", write_text(state, "a.txt", "x"));
  check_refused(path, NULL, LCOMM_ERR_UNSUPPORTED, path, "\".txt\"");
  snprintf(path, sizeof path, "%s", write_text(state, "f32", "x"));
  check_refused(path, NULL, LCOMM_ERR_UNSUPPORTED, path, "extension \"\"");
  snprintf(path, sizeof path, "%s", write_text(state, "a.f32", "12345"));
  check_refused(path, NULL, LCOMM_ERR_WIRE, path, "5 bytes, expected a multiple of 4");
  snprintf(list, sizeof list, "%s/no list", folder_path);
  write_text(state, "a.f32", "1234");
  check_refused(path, list, LCOMM_ERR_SYSTEM, list, "No such file");
  write_text(state, "a.f32", "");
  check_refused(path, NULL, LCOMM_ERR_UNSUPPORTED, path, "no floating-point values");
  unlink(path);
  check_refused(path, NULL, LCOMM_ERR_SYSTEM, path, "No such file");
  assert_int_equal(mkfifo(path, 0600), 0);
  check_refused(path, NULL, LCOMM_ERR_ARGUMENT, path, "no regular file");
}

static void files_that_name_their_tensors_take_no_list(void **state) {
  bytes b = make_capture("w", 3);
  put_floats(&b, 3);
  put_checksum(&b);
  const char *path = write_file(state, "a.lcg", &b);
  check_refused(path, "list", LCOMM_ERR_ARGUMENT, path, "its own tensors");
}

static void a_long_path_leaves_room_for_the_reason(void **state) {
  char path[3000], error[LCOMM_SOURCE_ERROR_MAX];
  lcomm_source *source = NULL;
  (void)state;
  memset(path, 'a', sizeof path - 1);
  path[sizeof path - 1] = '\0';
  assert_int_equal(lcomm_source_open(path, NULL, &source, error), LCOMM_ERR_SYSTEM);
  check_sentence(error, "...aaa", "cannot be opened");
}

static const struct CMUnitTest tests[] = {
    IN_FOLDER(a_layer_list_names_values_and_gaps),
    IN_FOLDER(a_list_splits_npy_files_of_any_type),
    IN_FOLDER(lists_that_do_not_fit_are_refused),
    IN_FOLDER(a_meta_json_beside_a_raw_file_names_its_tensors),
    IN_FOLDER(a_capture_tells_where_it_comes_from),
    cmocka_unit_test(values_of_a_capture_begin_at_a_multiple_of_64_bytes),
    cmocka_unit_test(a_capture_has_the_shapes_of_matrices),
    cmocka_unit_test(a_capture_that_ends_in_a_shape_is_refused),
    cmocka_unit_test(a_capture_shorter_than_its_header_is_refused),
    cmocka_unit_test(a_damaged_capture_is_refused),
    cmocka_unit_test(a_capture_whose_numbers_lie_is_refused),
    IN_FOLDER(a_folder_stands_for_its_files_in_name_order),
    IN_FOLDER(a_file_stands_for_itself),
    IN_FOLDER(what_is_no_readable_file_is_refused),
    IN_FOLDER(files_that_name_their_tensors_take_no_list),
    cmocka_unit_test(a_long_path_leaves_room_for_the_reason),
};
RUN_TESTS(tests)
