/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/target_state.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "codecs/codec_state.h"
#include "tests/support/fuzz_promise.h"

/* A file that is accepted can be written in one way only. */
typedef struct rewriter {
  const uint8_t *bytes;
  size_t size, at;
} rewriter;

static void expect(rewriter *self, const uint8_t *written, size_t size) {
  fuzz_require(size <= self->size - self->at, "nothing lies behind the end");
  fuzz_require(memcmp(self->bytes + self->at, written, size) == 0, "written again it is the same");
  self->at += size;
}

static void skip_values(rewriter *self, const uint8_t *values, uint64_t n) {
  fuzz_require(values == self->bytes + self->at, "values lie where they are written");
  fuzz_require(n <= (self->size - self->at) / 4, "values lie in the file");
  self->at += 4 * n;
}

static void expect_tensor(rewriter *self, const lcomm_state_tensor *tensor) {
  static const uint8_t zeros[8];
  uint8_t record[LCOMM_STATE_RECORD_MAX];
  size_t begin = self->at;
  fuzz_require(tensor->first <= tensor->count && tensor->n <= tensor->count - tensor->first,
               "a rank keeps only what there is");
  fuzz_require((tensor->residual != NULL) == (tensor->n > 0), "a residual is there or not");
  fuzz_require(!tensor->momentum || tensor->has_momentum, "a momentum is announced");
  fuzz_require((tensor->velocity != NULL) == tensor->has_velocity, "a velocity is announced");
  size_t size = lcomm_state_pack_record(tensor, record);
  expect(self, record, size);
  if (tensor->residual) {
    skip_values(self, tensor->residual, tensor->n);
  }
  if (tensor->momentum) {
    skip_values(self, tensor->momentum, tensor->n);
  }
  if (tensor->velocity && lcomm_state_velocity_count(tensor) > 0) {
    skip_values(self, tensor->velocity, lcomm_state_velocity_count(tensor));
  }
  fuzz_require((tensor->basis != NULL) == (tensor->shape.rank > 0), "a factor is announced");
  if (tensor->basis) {
    skip_values(self, tensor->basis, lcomm_state_basis_count(tensor));
  }
  expect(self, zeros, lcomm_state_padding(tensor));
  fuzz_require(self->at - begin == lcomm_state_tensor_size(tensor), "a tensor knows its size");
}

static void read_whole(const uint8_t *bytes, size_t size) {
  lcomm_state_header header;
  lcomm_state_reader reader;
  lcomm_state_tensor tensor;
  const char *why = NULL;
  lcomm_status status = lcomm_state_open(bytes, size, &header, &reader, &why);
  if (status != LCOMM_OK) {
    fuzz_require(status == LCOMM_ERR_WIRE || status == LCOMM_ERR_UNSUPPORTED,
                 "a refusal has a status");
    fuzz_require(why && why[0] != '\0', "a refusal has a reason");
    return;
  }
  rewriter again = {bytes, size - LCOMM_STATE_CHECKSUM_SIZE, 0};
  uint8_t packed[LCOMM_STATE_HEADER_MAX];
  size_t header_size = lcomm_state_pack_header(&header, packed);
  expect(&again, packed, header_size);
  for (uint32_t i = 0; i < header.tensors; i++) {
    fuzz_require(lcomm_state_next(&reader, &tensor), "every tensor can be read");
    expect_tensor(&again, &tensor);
  }
  fuzz_require(!lcomm_state_next(&reader, &tensor), "no tensor follows the last one");
  fuzz_require(again.at == again.size, "the tensors fill the file");
}

/* Blocks one after the other: each lies inside the bytes, and the walk ends. */
static void walk_blocks(const uint8_t *bytes, size_t size) {
  lcomm_state_block block;
  const char *why = NULL;
  while (size > 0) {
    lcomm_status status = lcomm_state_block_find(bytes, size, &block, &why);
    if (status != LCOMM_OK) {
      fuzz_require(why && why[0] != '\0', "a refusal has a reason");
      return;
    }
    fuzz_require(block.size > 0 && block.size <= size, "a block lies in the bytes");
    fuzz_require(block.rank < block.ranks, "a rank is one of all");
    read_whole(bytes, block.size);
    bytes += block.size;
    size -= block.size;
  }
}

void lcomm_fuzz_state(const uint8_t *data, size_t size) {
  uint8_t *bytes = calloc(size, 1); /* exactly, so that a sanitizer sees one byte too far */
  fuzz_require(bytes || size == 0, "the test machine has memory");
  if (size > 0) {
    memcpy(bytes, data, size);
  }
  read_whole(bytes, size);
  walk_blocks(bytes, size);
  if (size >= 16 + LCOMM_STATE_CHECKSUM_SIZE) {
    for (int i = 0; i < 8; i++) {
      bytes[8 + i] = (uint8_t)((uint64_t)size >> (8 * i));
    }
    size_t end = size - LCOMM_STATE_CHECKSUM_SIZE;
    lcomm_state_put_checksum(XXH3_64bits(bytes, end), bytes + end);
    read_whole(bytes, size);
    walk_blocks(bytes, size);
  }
  free(bytes);
}
