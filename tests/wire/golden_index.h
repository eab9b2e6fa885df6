/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_WIRE_GOLDEN_INDEX_H
#define LCOMM_TESTS_WIRE_GOLDEN_INDEX_H

/* The index of the golden messages, and how a message is compared with it. */

#include "tests/wire/golden.h"

enum { LINE_MAX_SIZE = 256, MESSAGES_MAX = 256 };

/* One line of the index. */
typedef struct entry {
  char kind[8], name[64], rest[LINE_MAX_SIZE]; /* same: source; read: values; refuse: phrase */
} entry;

typedef void entry_check(const entry *e, golden_bytes message);

static inline size_t load_index(entry list[MESSAGES_MAX]) {
  char line[LINE_MAX_SIZE];
  size_t count = 0;
  FILE *file = fopen(GOLDEN_FOLDER "index.txt", "r");
  assert_non_null(file);
  while (fgets(line, sizeof line, file)) {
    entry *e = &list[count++];
    assert_int_equal(sscanf(line, "%7s %63s %255[^\n]", e->kind, e->name, e->rest), 3);
    assert_true(count < MESSAGES_MAX);
  }
  fclose(file);
  assert_true(count > 0);
  return count;
}

/* kind NULL: all of them. */
static inline void for_each_entry(const char *kind, entry_check *check) {
  static entry list[MESSAGES_MAX];
  for (size_t i = 0, count = load_index(list); i < count; i++) {
    if (kind && strcmp(list[i].kind, kind) != 0) {
      continue;
    }
    golden_bytes message = golden_load(list[i].name, ".bin");
    check(&list[i], message);
    free(message.data);
  }
}

static inline void for_each_table(const char *kind, void (*check)(const lcomm_kernels *,
                                                                  const entry *, golden_bytes)) {
  static entry list[MESSAGES_MAX];
  size_t count = load_index(list);
  for (size_t t = 0; lcomm_kernels_list[t] != NULL; t++) {
    for (size_t i = 0; lcomm_kernels_runs(lcomm_kernels_list[t]) && i < count; i++) {
      if (kind && strcmp(list[i].kind, kind) != 0) {
        continue;
      }
      golden_bytes message = golden_load(list[i].name, ".bin");
      check(lcomm_kernels_list[t], &list[i], message);
      free(message.data);
    }
  }
}

/* Bit for bit, but any NaN is a NaN. */
static inline bool same_value(float a, float b) {
  return lcomm_f32_bits(a) == lcomm_f32_bits(b) || (a != a && b != b);
}

/* What a line of the index says of a message. */
static inline void check_read(const char *who, const entry *e, const decoder_message *read) {
  if (strcmp(e->kind, "refuse") == 0) {
    if (!read->refusal || strcmp(read->refusal, e->rest) != 0) {
      fail_msg("%s: %s says \"%s\"", e->name, who, read->refusal ? read->refusal : "fine");
    }
    return;
  }
  if (read->refusal) {
    fail_msg("%s: %s says \"%s\"", e->name, who, read->refusal);
  }
  golden_bytes expected = golden_load(strcmp(e->kind, "same") == 0 ? e->name : e->rest, ".f32");
  assert_true(expected.size / sizeof(float) <= read->count);
  for (size_t i = 0; i < read->count; i++) {
    float value = 0.0f;
    if (i < expected.size / sizeof value) {
      memcpy(&value, expected.data + i * sizeof value, sizeof value);
    }
    if (!same_value(value, read->values[i])) {
      fail_msg("%s: %s reads %a at %zu, not %a", e->name, who, (double)read->values[i], i,
               (double)value);
    }
  }
  free(expected.data);
}

#endif
