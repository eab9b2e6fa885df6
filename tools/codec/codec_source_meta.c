/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Layer lists, as text and as JSON: which values of a flat file are which tensor. */

#include "tools/codec/codec_source.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* --------------------------------------------------------------------- JSON */

lcomm_status lcomm_source_json(const lcomm_source_input *input, cJSON **tree, char *error) {
  if (input->size > LCOMM_SOURCE_JSON_MAX) {
    return lcomm_source_fail(error, LCOMM_ERR_UNSUPPORTED, input->path,
                             "holds %zu bytes of JSON, at most %d are read", input->size,
                             LCOMM_SOURCE_JSON_MAX);
  }
  /* A copy that ends with a 0: versions of cJSON before 1.7.18 look one byte
   * past some texts that do not (CVE-2023-53154). */
  char *text = calloc(input->size + 1, 1);
  if (!text) {
    return lcomm_source_fail(error, LCOMM_ERR_MEMORY, input->path, "no memory for its JSON");
  }
  if (input->size > 0) {
    memcpy(text, input->bytes, input->size);
  }
  const char *stopped = text;
  lcomm_status status = LCOMM_OK;
  *tree = cJSON_ParseWithLengthOpts(text, input->size + 1, &stopped, true);
  if (!*tree) {
    status =
        lcomm_source_fail(error, LCOMM_ERR_WIRE, input->path, "is no JSON (near byte %zu of %zu)",
                          (size_t)(stopped - text), input->size);
  }
  free(text);
  return status;
}

bool lcomm_source_json_whole(const cJSON *item, uint64_t *value) {
  if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0.0 && item->valuedouble <= 0x1p53)) {
    return false;
  }
  *value = (uint64_t)item->valuedouble;
  return (double)*value == item->valuedouble;
}

/* -------------------------------------------------------------------- split */

/* A list is read into contents of its own, whose offsets count elements. */
static int by_offset(const void *a, const void *b) {
  uint64_t x = ((const lcomm_source_tensor *)a)->offset;
  uint64_t y = ((const lcomm_source_tensor *)b)->offset;
  return x < y ? -1 : x > y;
}

static lcomm_status check_list(const lcomm_source_input *input, const lcomm_source_contents *list,
                               uint64_t count, char *error) {
  const lcomm_source_tensor *before = NULL;
  for (size_t i = 0; i < list->tensor_count; i++) {
    const lcomm_source_tensor *tensor = list->tensors + i;
    if (tensor->offset > count || tensor->count > count - tensor->offset) {
      return lcomm_source_fail(error, LCOMM_ERR_WIRE, input->path,
                               "\"%s\" has %llu values from number %llu on, expected them inside "
                               "the %llu of the data file; --layers names another list",
                               tensor->name, (unsigned long long)tensor->count,
                               (unsigned long long)tensor->offset, (unsigned long long)count);
    }
    if (before && tensor->offset < before->offset + before->count) {
      return lcomm_source_fail(error, LCOMM_ERR_WIRE, input->path,
                               "\"%s\" begins at value %llu, expected it behind \"%s\", which ends "
                               "at %llu",
                               tensor->name, (unsigned long long)tensor->offset, before->name,
                               (unsigned long long)(before->offset + before->count));
    }
    before = tensor;
  }
  return LCOMM_OK;
}

/* Append values up to `until` that no tensor claims. */
static lcomm_status add_gap(const lcomm_source_input *input, const lcomm_source_tensor *whole,
                            uint64_t until, lcomm_source_contents *split, char *error) {
  char name[LCOMM_SOURCE_NAME_MAX];
  uint64_t first = split->count;
  if (first == until) {
    return LCOMM_OK;
  }
  int size = snprintf(name, sizeof name, "unlisted-%llu", (unsigned long long)first);
  lcomm_source_entry entry = {.name = name,
                              .name_size = (size_t)size,
                              .count = until - first,
                              .offset = whole->offset + first * lcomm_source_type_size(whole->type),
                              .type = whole->type};
  return lcomm_source_add(input, &entry, split, error);
}

static lcomm_status add_listed(const lcomm_source_input *input, const lcomm_source_tensor *whole,
                               const lcomm_source_contents *list, lcomm_source_contents *split,
                               char *error) {
  for (size_t i = 0; i < list->tensor_count; i++) {
    const lcomm_source_tensor *tensor = list->tensors + i;
    lcomm_source_entry entry = {.name = tensor->name,
                                .name_size = strlen(tensor->name),
                                .count = tensor->count,
                                .offset = whole->offset +
                                          tensor->offset * lcomm_source_type_size(whole->type),
                                .rows = tensor->rows,
                                .columns = tensor->columns,
                                .type = whole->type};
    lcomm_status status = add_gap(input, whole, tensor->offset, split, error);
    if (status == LCOMM_OK) {
      status = lcomm_source_add(input, &entry, split, error);
    }
    if (status != LCOMM_OK) {
      return status;
    }
  }
  return add_gap(input, whole, whole->count, split, error);
}

static lcomm_status split_by(const lcomm_source_input *input, lcomm_source_contents *list,
                             lcomm_source_contents *contents, char *error) {
  lcomm_source_contents split = {0};
  lcomm_status status = check_list(input, list, contents->count, error);
  if (status != LCOMM_OK) {
    return status;
  }
  status = add_listed(input, contents->tensors, list, &split, error);
  if (status != LCOMM_OK) {
    lcomm_source_contents_free(&split);
    return status;
  }
  /* Empty tensors of the list are the skipped ones of the file. */
  split.skipped = list->skipped;
  split.skipped_count = list->skipped_count;
  list->skipped = NULL;
  lcomm_source_contents_free(contents);
  *contents = split;
  return LCOMM_OK;
}

/* Sorts the list first; frees it in the end. */
static lcomm_status split_and_free(const lcomm_source_input *input, lcomm_source_contents *list,
                                   lcomm_source_contents *contents, char *error) {
  if (list->tensor_count > 0) {
    qsort(list->tensors, list->tensor_count, sizeof *list->tensors, by_offset);
  }
  lcomm_status status = split_by(input, list, contents, error);
  lcomm_source_contents_free(list);
  return status;
}

/* ---------------------------------------------------------------- JSON lists */

/* A shape that says something else than the count is none. */
static void read_shape(const cJSON *shape, lcomm_source_entry *entry) {
  const cJSON *item;
  uint64_t numbers = 0, rows = 1, left = entry->count, number = 0;
  bool fits = cJSON_IsArray(shape);
  cJSON_ArrayForEach(item, shape) {
    fits = fits && lcomm_source_json_whole(item, &number) && number > 0 && left % number == 0;
    left = fits ? left / number : 0;
    rows = numbers++ == 0 ? number : rows;
  }
  if (fits && numbers > 1 && left == 1) {
    entry->rows = rows;
    entry->columns = entry->count / rows;
  }
}

static lcomm_status add_layer(const lcomm_source_input *input, const cJSON *layer,
                              lcomm_source_contents *list, char *error) {
  const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(layer, "name"));
  const cJSON *count = cJSON_GetObjectItemCaseSensitive(layer, "numel");
  lcomm_source_entry entry = {.name = name};
  if (!count) {
    count = cJSON_GetObjectItemCaseSensitive(layer, "count");
  }
  if (!name || !lcomm_source_json_whole(count, &entry.count) ||
      !lcomm_source_json_whole(cJSON_GetObjectItemCaseSensitive(layer, "offset"), &entry.offset)) {
    return lcomm_source_fail(error, LCOMM_ERR_WIRE, input->path,
                             "an entry of \"layers\" (%.40s) has no \"name\", \"offset\" and "
                             "\"numel\", expected a string and two whole numbers",
                             name ? name : "nameless");
  }
  entry.name_size = strlen(name);
  read_shape(cJSON_GetObjectItemCaseSensitive(layer, "shape"), &entry);
  return lcomm_source_add(input, &entry, list, error);
}

lcomm_status lcomm_source_split_json(const lcomm_source_input *input,
                                     lcomm_source_contents *contents, char *error) {
  cJSON *tree = NULL;
  lcomm_source_contents list = {0};
  lcomm_status status = lcomm_source_json(input, &tree, error);
  if (status != LCOMM_OK) {
    return status;
  }
  const cJSON *layer, *layers = cJSON_GetObjectItemCaseSensitive(tree, "layers");
  if (!layers) {
    status = lcomm_source_fail(error, LCOMM_ERR_UNSUPPORTED, input->path,
                               "has no \"layers\", expected a list of them");
  } else if (!cJSON_IsArray(layers)) {
    status = lcomm_source_fail(error, LCOMM_ERR_WIRE, input->path,
                               "\"layers\" is no list, expected one of objects");
  }
  cJSON_ArrayForEach(layer, layers) {
    if (status == LCOMM_OK) {
      status = add_layer(input, layer, &list, error);
    }
  }
  cJSON_Delete(tree);
  if (status == LCOMM_OK) {
    return split_and_free(input, &list, contents, error);
  }
  lcomm_source_contents_free(&list);
  return status;
}

/* ---------------------------------------------------------------- text lists */

enum { WORDS_MAX = 3 };

typedef struct word {
  const char *text;
  size_t size;
} word;

static bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

/* The words of a line up to its comment; returns how many there are, at most
 * one more than are kept. */
static size_t cut_line(const char *line, const char *end, word words[WORDS_MAX]) {
  size_t count = 0;
  for (;;) {
    while (line < end && is_space(*line)) {
      line++;
    }
    if (line == end || *line == '#' || count > WORDS_MAX) {
      return count;
    }
    const char *begin = line;
    while (line < end && !is_space(*line)) {
      line++;
    }
    if (count < WORDS_MAX) {
      words[count] = (word){begin, (size_t)(line - begin)};
    }
    count++;
  }
}

/* Digits only; a word is never empty. */
static bool whole_number(word w, uint64_t *value) {
  *value = 0;
  for (size_t i = 0; i < w.size; i++) {
    if (w.text[i] < '0' || w.text[i] > '9' || __builtin_mul_overflow(*value, 10u, value) ||
        __builtin_add_overflow(*value, (uint64_t)(w.text[i] - '0'), value)) {
      return false;
    }
  }
  return true;
}

/* `next` is where a line without an offset begins. */
static lcomm_status add_line(const lcomm_source_input *input, size_t number, const word *words,
                             size_t count, uint64_t *next, lcomm_source_contents *list,
                             char *error) {
  lcomm_source_entry entry = {.name = words[0].text, .name_size = words[0].size, .offset = *next};
  bool good = count == 2 || count == 3;
  if (good && count == 3) {
    good = whole_number(words[1], &entry.offset);
  }
  if (!good || !whole_number(words[count - 1], &entry.count) ||
      __builtin_add_overflow(entry.offset, entry.count, next)) {
    return lcomm_source_fail(error, LCOMM_ERR_WIRE, input->path,
                             "line %zu is not `name count` or `name offset count`, expected whole "
                             "numbers below 2^64",
                             number);
  }
  return lcomm_source_add(input, &entry, list, error);
}

lcomm_status lcomm_source_split_text(const lcomm_source_input *input,
                                     lcomm_source_contents *contents, char *error) {
  lcomm_source_contents list = {0};
  lcomm_status status = LCOMM_OK;
  uint64_t next = 0;
  size_t number = 0;
  const char *line = (const char *)input->bytes, *end = line;
  for (size_t left = input->size; status == LCOMM_OK && left > 0; line = end) {
    word words[WORDS_MAX];
    const char *newline = memchr(line, '\n', left);
    size_t size = newline ? (size_t)(newline - line) : left;
    size_t count = cut_line(line, line + size, words);
    number++;
    if (count > 0) {
      status = add_line(input, number, words, count, &next, &list, error);
    }
    size += newline != NULL;
    end = line + size;
    left -= size;
  }
  if (status == LCOMM_OK) {
    return split_and_free(input, &list, contents, error);
  }
  lcomm_source_contents_free(&list);
  return status;
}

/* -------------------------------------------------------------- either kind */

static bool is_json(const char *path) {
  size_t size = strlen(path);
  return size >= 5 && strcasecmp(path + size - 5, ".json") == 0;
}

lcomm_status lcomm_source_split_file(const char *path, lcomm_source_contents *contents,
                                     char *error) {
  lcomm_source_input list;
  lcomm_status status = lcomm_source_map(path, &list, error);
  if (status != LCOMM_OK) {
    return status;
  }
  if (is_json(path)) {
    status = lcomm_source_split_json(&list, contents, error);
  } else {
    status = lcomm_source_split_text(&list, contents, error);
  }
  lcomm_source_unmap(&list);
  return status;
}
