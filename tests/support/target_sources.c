/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/target_sources.h"

#include <xxhash.h>

#include "tests/support/fuzz_promise.h"
#include "tools/codec/codec_source.h"

typedef lcomm_status (*parser)(const lcomm_source_input *input, lcomm_source_contents *contents,
                               char *error);

static void check_text(const char *text, size_t room) {
  size_t length = strnlen(text, room);
  fuzz_require(length > 0 && length < room, "a text is neither empty nor too long");
  for (size_t i = 0; i < length; i++) {
    fuzz_require((unsigned char)text[i] >= 0x20 && text[i] != 0x7f,
                 "a text has no control characters");
  }
}

/* ----------------------------------------------------------------- contents */

static void check_values(const lcomm_source_tensor *tensor, const lcomm_source_input *file) {
  size_t size = lcomm_source_type_size(tensor->type);
  fuzz_require(tensor->offset <= file->size &&
                   tensor->count <= (file->size - tensor->offset) / size,
               "the bytes of a tensor lie in the file");
  float *values = fuzz_allocate((size_t)tensor->count * sizeof *values);
  lcomm_source_convert(tensor->type, file->bytes + tensor->offset, tensor->count, values);
  free(values);
}

static void check_contents(const lcomm_source_contents *contents, const lcomm_source_input *file) {
  uint64_t next = 0;
  for (size_t i = 0; i < contents->tensor_count; i++) {
    const lcomm_source_tensor *tensor = contents->tensors + i;
    check_text(tensor->name, sizeof tensor->name);
    fuzz_require(tensor->first == next && tensor->count > 0, "tensors follow each other");
    fuzz_require(tensor->rows == 0 || (tensor->count % tensor->rows == 0 &&
                                       tensor->count / tensor->rows == tensor->columns),
                 "a matrix has the tensor's values");
    check_values(tensor, file);
    next += tensor->count;
  }
  fuzz_require(next == contents->count, "tensors cover a source");
  for (size_t i = 0; i < contents->skipped_count; i++) {
    check_text(contents->skipped[i].name, sizeof contents->skipped[i].name);
    check_text(contents->skipped[i].why, sizeof contents->skipped[i].why);
  }
}

static void check_refusal(lcomm_status status, const lcomm_source_input *input, const char *error) {
  size_t path = strlen(input->path);
  fuzz_require(status == LCOMM_ERR_WIRE || status == LCOMM_ERR_UNSUPPORTED,
               "what is refused is damaged or unknown");
  check_text(error, LCOMM_SOURCE_ERROR_MAX);
  fuzz_require(strncmp(error, input->path, path) == 0 && strncmp(error + path, ": ", 2) == 0,
               "an error names its file");
}

static bool run_parser(parser parse, const lcomm_source_input *input) {
  char error[LCOMM_SOURCE_ERROR_MAX] = "";
  lcomm_source_contents contents = {0};
  lcomm_status status = parse(input, &contents, error);
  if (status == LCOMM_OK) {
    check_contents(&contents, input);
  } else {
    check_refusal(status, input, error);
  }
  lcomm_source_contents_free(&contents);
  return status == LCOMM_OK;
}

/* ------------------------------------------------------------------ targets */

void lcomm_fuzz_npy(const uint8_t *data, size_t size) {
  uint8_t *bytes = fuzz_copy(data, size);
  run_parser(lcomm_source_parse_npy, &(lcomm_source_input){"folder/a.npy", bytes, size});
  free(bytes);
}

void lcomm_fuzz_npz(const uint8_t *data, size_t size) {
  uint8_t *bytes = fuzz_copy(data, size), *unpacked = NULL;
  size_t unpacked_size = 0;
  char error[LCOMM_SOURCE_ERROR_MAX] = "";
  lcomm_source_input input = {"folder/a.npz", bytes, size};
  lcomm_source_contents contents = {0};
  lcomm_status status = lcomm_source_parse_npz(&input, &unpacked, &unpacked_size, &contents, error);
  if (status == LCOMM_OK) {
    lcomm_source_input values = {input.path, unpacked ? unpacked : bytes,
                                 unpacked ? unpacked_size : size};
    check_contents(&contents, &values);
  } else {
    check_refusal(status, &input, error);
    fuzz_require(!unpacked, "what is refused leaves no memory");
  }
  free(unpacked);
  lcomm_source_contents_free(&contents);
  free(bytes);
}

void lcomm_fuzz_safetensors(const uint8_t *data, size_t size) {
  uint8_t *bytes = fuzz_copy(data, size);
  run_parser(lcomm_source_parse_safetensors,
             &(lcomm_source_input){"folder/a.safetensors", bytes, size});
  free(bytes);
}

/* A list over a file of as many f16 zeros as `file` has room for. */
static void split(parser parse, const lcomm_source_input *list, const lcomm_source_input *file) {
  char error[LCOMM_SOURCE_ERROR_MAX] = "";
  lcomm_source_contents contents = {0};
  fuzz_require(lcomm_source_parse_raw(file, LCOMM_SOURCE_F16, &contents, error) == LCOMM_OK,
               "a raw file is read");
  lcomm_status status = parse(list, &contents, error);
  if (status != LCOMM_OK) {
    check_refusal(status, list, error);
    fuzz_require(contents.tensor_count == 1, "a list that is refused changes nothing");
  }
  fuzz_require(contents.count == file->size / 2, "a list loses no values");
  check_contents(&contents, file);
  lcomm_source_contents_free(&contents);
}

void lcomm_fuzz_meta(const uint8_t *data, size_t size) {
  enum { COUNT_MAX = 1024 };
  static const uint8_t zeros[2 * COUNT_MAX];
  if (size < 2) {
    return;
  }
  uint8_t *bytes = fuzz_copy(data + 2, size - 2);
  size_t count = lcomm_source_number(data, 2) % COUNT_MAX + 1;
  lcomm_source_input list = {"list", bytes, size - 2}, file = {"a.f16", zeros, 2 * count};
  split(lcomm_source_split_text, &list, &file);
  split(lcomm_source_split_json, &list, &file);
  free(bytes);
}

void lcomm_fuzz_capture(const uint8_t *data, size_t size) {
  uint8_t *bytes = fuzz_copy(data, size);
  lcomm_source_input input = {"a.lcg", bytes, size};
  bool good = run_parser(lcomm_source_parse_capture, &input);
  if (size >= 8) {
    uint64_t checksum = XXH3_64bits(bytes, size - 8);
    bool same = lcomm_source_number(bytes + size - 8, 8) == checksum;
    fuzz_require(same || !good, "a wrong checksum is refused");
    for (size_t i = 0; i < 8; i++) {
      bytes[size - 8 + i] = (uint8_t)(checksum >> (8 * i));
    }
    run_parser(lcomm_source_parse_capture, &input);
  }
  free(bytes);
}
