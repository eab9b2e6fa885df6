/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* .safetensors (Hugging Face): the length of the header in 8 bytes, the header,
 * a JSON object {"NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets":
 * [BEGIN, END]}, ...} with an optional "__metadata__", and the data, which the
 * tensors cover without gaps or overlap. Offsets count from its first byte. */

#include "tools/codec/codec_source.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH_SIZE = 8 };

/* A tensor as it is announced; begin and end are bytes of the data. */
typedef struct announced {
  const cJSON *item;
  uint64_t begin, end;
} announced;

typedef struct reader {
  const lcomm_source_input *input;
  char *error;
  uint64_t data, data_size; /* where the data begins in the file */
  announced *tensors;
  size_t count;
} reader;

static const char *text_of(const cJSON *object, const char *key) {
  const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
  return text ? text : "";
}

/* A sentence about one tensor, its name cut to what is readable. */
static lcomm_status fail_tensor(const reader *self, const announced *tensor, const char *what) {
  return lcomm_source_fail(self->error, LCOMM_ERR_WIRE, self->input->path, "tensor \"%.127s\" %s",
                           tensor->item->string, what);
}

static lcomm_status read_offsets(reader *self, announced *tensor) {
  const cJSON *offsets = cJSON_GetObjectItemCaseSensitive(tensor->item, "data_offsets");
  if (!cJSON_IsArray(offsets) || cJSON_GetArraySize(offsets) != 2 ||
      !lcomm_source_json_whole(cJSON_GetArrayItem(offsets, 0), &tensor->begin) ||
      !lcomm_source_json_whole(cJSON_GetArrayItem(offsets, 1), &tensor->end)) {
    return fail_tensor(self, tensor, "has no \"data_offsets\" of two whole numbers");
  }
  if (tensor->begin > tensor->end || tensor->end > self->data_size) {
    return fail_tensor(self, tensor, "has \"data_offsets\" outside of the file: is it cut short?");
  }
  return LCOMM_OK;
}

static lcomm_status read_announced(reader *self, const cJSON *tree) {
  const cJSON *item;
  size_t most = (size_t)cJSON_GetArraySize(tree);
  self->tensors = calloc(most > 0 ? most : 1, sizeof *self->tensors);
  if (!self->tensors) {
    return lcomm_source_fail(self->error, LCOMM_ERR_MEMORY, self->input->path,
                             "no memory for %zu tensors", most);
  }
  cJSON_ArrayForEach(item, tree) {
    if (strcmp(item->string, "__metadata__") == 0) {
      continue;
    }
    announced *tensor = self->tensors + self->count++;
    tensor->item = item;
    lcomm_status status = read_offsets(self, tensor);
    if (status != LCOMM_OK) {
      return status;
    }
  }
  return LCOMM_OK;
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const announced *)a)->item->string, ((const announced *)b)->item->string);
}

/* Empty tensors come before the one that begins where they are. */
static int by_place(const void *a, const void *b) {
  const announced *x = a, *y = b;
  if (x->begin != y->begin) {
    return x->begin < y->begin ? -1 : 1;
  }
  if (x->end != y->end) {
    return x->end < y->end ? -1 : 1;
  }
  return by_name(a, b);
}

static lcomm_status check_cover(const reader *self) {
  uint64_t at = 0;
  qsort(self->tensors, self->count, sizeof *self->tensors, by_name);
  for (size_t i = 1; i < self->count; i++) {
    if (by_name(self->tensors + i - 1, self->tensors + i) == 0) {
      return fail_tensor(self, self->tensors + i, "is announced twice");
    }
  }
  qsort(self->tensors, self->count, sizeof *self->tensors, by_place);
  for (size_t i = 0; i < self->count; i++) {
    if (self->tensors[i].begin != at) {
      return fail_tensor(self, self->tensors + i,
                         "does not begin where the tensor before it in the data ends");
    }
    at = self->tensors[i].end;
  }
  if (at == self->data_size) {
    return LCOMM_OK;
  }
  return lcomm_source_fail(self->error, LCOMM_ERR_WIRE, self->input->path,
                           "holds %llu bytes of data, expected the %llu that its tensors cover",
                           (unsigned long long)self->data_size, (unsigned long long)at);
}

static bool shape_count(const cJSON *shape, uint64_t *count) {
  const cJSON *length;
  *count = 1;
  if (!cJSON_IsArray(shape)) {
    return false;
  }
  cJSON_ArrayForEach(length, shape) {
    uint64_t whole;
    if (!lcomm_source_json_whole(length, &whole) || __builtin_mul_overflow(*count, whole, count)) {
      return false;
    }
  }
  return true;
}

static bool find_type(const char *dtype, lcomm_source_type *type) {
  static const struct {
    const char *dtype;
    lcomm_source_type type;
  } known[] = {{"F32", LCOMM_SOURCE_F32},
               {"F16", LCOMM_SOURCE_F16},
               {"BF16", LCOMM_SOURCE_BF16},
               {"F64", LCOMM_SOURCE_F64}};
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    if (strcmp(known[i].dtype, dtype) != 0) {
      continue;
    }
    *type = known[i].type;
    return true;
  }
  return false;
}

/* Names of types are capital letters, digits and underscores, so that they can be shown. */
static bool is_dtype(const char *dtype) {
  size_t size = strspn(dtype, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
  return size > 0 && size < sizeof((lcomm_source_skipped *)0)->why && dtype[size] == '\0';
}

static lcomm_status add_tensor(const reader *self, const announced *tensor,
                               lcomm_source_contents *contents) {
  const char *dtype = text_of(tensor->item, "dtype");
  uint64_t size = 0;
  lcomm_source_entry entry = {.name = tensor->item->string,
                              .name_size = strlen(tensor->item->string),
                              .offset = self->data + tensor->begin};
  if (!is_dtype(dtype)) {
    return fail_tensor(self, tensor, "has no \"dtype\" such as \"F32\"");
  }
  if (!shape_count(cJSON_GetObjectItemCaseSensitive(tensor->item, "shape"), &entry.count)) {
    return fail_tensor(self, tensor, "has no \"shape\" of whole numbers");
  }
  if (!find_type(dtype, &entry.type)) {
    return lcomm_source_skip(self->input, &entry, dtype, contents, self->error);
  }
  if (__builtin_mul_overflow(entry.count, lcomm_source_type_size(entry.type), &size) ||
      size != tensor->end - tensor->begin) {
    return fail_tensor(self, tensor, "has a \"shape\" that does not fit its \"data_offsets\"");
  }
  return lcomm_source_add(self->input, &entry, contents, self->error);
}

static lcomm_status read_tree(reader *self, const cJSON *tree, lcomm_source_contents *contents) {
  if (!cJSON_IsObject(tree)) {
    return lcomm_source_fail(self->error, LCOMM_ERR_WIRE, self->input->path,
                             "its header is no JSON object");
  }
  lcomm_status status = read_announced(self, tree);
  if (status == LCOMM_OK) {
    status = check_cover(self);
  }
  for (size_t i = 0; status == LCOMM_OK && i < self->count; i++) {
    status = add_tensor(self, self->tensors + i, contents);
  }
  return status;
}

lcomm_status lcomm_source_parse_safetensors(const lcomm_source_input *input,
                                            lcomm_source_contents *contents, char *error) {
  if (input->size < LENGTH_SIZE) {
    return lcomm_source_fail(error, LCOMM_ERR_WIRE, input->path,
                             "holds %zu bytes, expected a .safetensors file", input->size);
  }
  uint64_t length = lcomm_source_number(input->bytes, LENGTH_SIZE);
  uint64_t left = input->size - LENGTH_SIZE;
  if (length > left) {
    return lcomm_source_fail(error, LCOMM_ERR_WIRE, input->path,
                             "announces a header of %llu bytes, expected at most the %llu that "
                             "follow: is it cut short?",
                             (unsigned long long)length, (unsigned long long)left);
  }
  lcomm_source_input header = {input->path, input->bytes + LENGTH_SIZE, (size_t)length};
  cJSON *tree = NULL;
  lcomm_status status = lcomm_source_json(&header, &tree, error);
  if (status != LCOMM_OK) {
    return status;
  }
  reader self = {
      .input = input, .error = error, .data = LENGTH_SIZE + length, .data_size = left - length};
  status = read_tree(&self, tree, contents);
  free(self.tensors);
  cJSON_Delete(tree);
  return status;
}
