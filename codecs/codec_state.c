/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "codecs/codec_state.h"

#include <string.h>
#include <xxhash.h>

#include "codecs/little_endian.h"

static const uint8_t magic[4] = {'L', 'C', 'M', 'S'};

enum {
  HEADER_FIXED = 56,
  RECORD_FIXED = 32,
  FLAG_MOMENTUM = 1,
  FLAG_VELOCITY = 2,
  FLAG_CALLS = 4,
  FLAG_SCATTERS = 8,
  FLAG_GUARD = 16,
  FLAG_BASIS = 32,
  FLAGS_END = 64,
  GUARD_SIZE = 24,
  BASIS_SIZE = 16,
  VERSION_OF_BASIS = 3,
  GUARD_CAME_BACK = 1,
  GUARD_PAYS = 2,
  OPERATIONS = 4
};

/* So many values fit into any file, and sums of their bytes into 64 bits. */
static const uint64_t COUNT_MAX = UINT64_MAX / 64;

static uint64_t round_up(uint64_t size) {
  return (size + 7) / 8 * 8;
}

/* ------------------------------------------------------------------ writing */

static uint64_t values_size(const lcomm_state_tensor *tensor) {
  uint64_t values = tensor->n;
  values += tensor->has_momentum ? tensor->n : 0;
  values += tensor->has_velocity ? lcomm_state_velocity_count(tensor) : 0;
  values += lcomm_state_basis_count(tensor);
  return values * sizeof(float);
}

static size_t guard_end(const lcomm_state_tensor *tensor) {
  return RECORD_FIXED + (tensor->of_calls ? 8u : 0u) + (tensor->has_guard ? GUARD_SIZE : 0u);
}

static size_t fixed_size(const lcomm_state_tensor *tensor) {
  return guard_end(tensor) + (tensor->shape.rank > 0 ? BASIS_SIZE : 0u);
}

static size_t record_size(const lcomm_state_tensor *tensor) {
  return (size_t)round_up(fixed_size(tensor) + strlen(tensor->name));
}

size_t lcomm_state_header_size(const lcomm_state_header *header) {
  return (size_t)round_up(HEADER_FIXED + strlen(header->policy));
}

uint64_t lcomm_state_tensor_size(const lcomm_state_tensor *tensor) {
  return record_size(tensor) + round_up(values_size(tensor));
}

size_t lcomm_state_padding(const lcomm_state_tensor *tensor) {
  return (size_t)(round_up(values_size(tensor)) - values_size(tensor));
}

size_t lcomm_state_pack_header(const lcomm_state_header *header, uint8_t *bytes) {
  size_t length = strlen(header->policy), size = lcomm_state_header_size(header);
  memset(bytes, 0, size);
  memcpy(bytes, magic, sizeof magic);
  lcomm_le_put(bytes + 4, header->version, 4);
  lcomm_le_put(bytes + 8, header->file_size, 8);
  lcomm_le_put(bytes + 16, header->step, 8);
  lcomm_le_put(bytes + 24, header->rank, 4);
  lcomm_le_put(bytes + 28, header->ranks, 4);
  lcomm_le_put(bytes + 32, header->nodes, 4);
  lcomm_le_put(bytes + 36, header->node, 4);
  lcomm_le_put(bytes + 40, header->sequence, 4);
  lcomm_le_put(bytes + 44, header->tensors, 4);
  lcomm_le_put(bytes + 48, length, 4);
  memcpy(bytes + HEADER_FIXED, header->policy, length);
  return size;
}

static void put_guard(const lcomm_state_guard *guard, uint8_t *bytes) {
  lcomm_le_put(bytes, guard->rungs, 4);
  lcomm_le_put(bytes + 4,
               (guard->came_back ? GUARD_CAME_BACK : 0u) | (guard->pays ? GUARD_PAYS : 0u), 4);
  lcomm_le_put(bytes + 8, guard->good, 8);
  lcomm_le_put(bytes + 16, guard->patience, 8);
}

size_t lcomm_state_pack_record(const lcomm_state_tensor *tensor, uint8_t *bytes) {
  size_t length = strlen(tensor->name), size = record_size(tensor);
  memset(bytes, 0, size);
  lcomm_le_put(bytes, length, 4);
  bytes[4] = tensor->dtype;
  bytes[5] = tensor->op;
  bytes[6] =
      (uint8_t)((tensor->has_momentum ? FLAG_MOMENTUM : 0) |
                (tensor->has_velocity ? FLAG_VELOCITY : 0) | (tensor->of_calls ? FLAG_CALLS : 0) |
                (tensor->of_scatters ? FLAG_SCATTERS : 0) | (tensor->has_guard ? FLAG_GUARD : 0) |
                (tensor->shape.rank > 0 ? FLAG_BASIS : 0));
  lcomm_le_put(bytes + 8, tensor->count, 8);
  lcomm_le_put(bytes + 16, tensor->first, 8);
  lcomm_le_put(bytes + 24, tensor->n, 8);
  if (tensor->of_calls) {
    lcomm_le_put(bytes + RECORD_FIXED, tensor->calls, 8);
  }
  if (tensor->has_guard) {
    put_guard(&tensor->guard, bytes + guard_end(tensor) - GUARD_SIZE);
  }
  if (tensor->shape.rank > 0) {
    lcomm_le_put(bytes + guard_end(tensor), tensor->shape.rank, 4);
    lcomm_le_put(bytes + guard_end(tensor) + 8, tensor->shape.columns, 8);
  }
  memcpy(bytes + fixed_size(tensor), tensor->name, length);
  return size;
}

void lcomm_state_put_checksum(uint64_t checksum, uint8_t *bytes) {
  lcomm_le_put(bytes, checksum, LCOMM_STATE_CHECKSUM_SIZE);
}

/* ------------------------------------------------------------------ reading */

/* Takes a text of `length` bytes and the zeros behind it; NULL is good. */
static const char *take_text(lcomm_state_reader *reader, uint64_t length, char *text) {
  uint64_t padded = round_up(length);
  if (padded > reader->size - reader->at) {
    return "it ends inside a text";
  }
  const uint8_t *bytes = reader->bytes + reader->at;
  for (uint64_t i = 0; i < padded; i++) {
    if ((bytes[i] == 0) != (i >= length)) {
      return "a text in it is malformed";
    }
  }
  memcpy(text, bytes, (size_t)length);
  text[length] = '\0';
  reader->at += (size_t)padded;
  return NULL;
}

static const char *take_values(lcomm_state_reader *reader, lcomm_state_tensor *tensor) {
  uint64_t size = values_size(tensor);
  if (round_up(size) > reader->size - reader->at) {
    return "it ends inside the values of a tensor";
  }
  const uint8_t *bytes = reader->bytes + reader->at;
  for (uint64_t i = size; i < round_up(size); i++) {
    if (bytes[i] != 0) {
      return "its padding is not zero";
    }
  }
  tensor->residual = tensor->n > 0 ? bytes : NULL;
  tensor->momentum = tensor->n > 0 && tensor->has_momentum ? bytes + 4 * tensor->n : NULL;
  tensor->velocity = NULL;
  if (tensor->has_velocity) {
    tensor->velocity = bytes + 4 * tensor->n * (tensor->has_momentum ? 2 : 1);
  }
  bool factored = tensor->shape.rank > 0;
  tensor->basis = factored ? bytes + size - 4 * lcomm_state_basis_count(tensor) : NULL;
  reader->at += (size_t)round_up(size);
  return NULL;
}

static const char *get_guard(const uint8_t *bytes, lcomm_state_tensor *tensor) {
  uint32_t flags = (uint32_t)lcomm_le_get(bytes + 4, 4);
  tensor->guard = (lcomm_state_guard){.rungs = (uint32_t)lcomm_le_get(bytes, 4),
                                      .came_back = (flags & GUARD_CAME_BACK) != 0,
                                      .pays = (flags & GUARD_PAYS) != 0,
                                      .good = lcomm_le_get(bytes + 8, 8),
                                      .patience = lcomm_le_get(bytes + 16, 8)};
  uint32_t known = tensor->of_calls ? GUARD_CAME_BACK | GUARD_PAYS : GUARD_CAME_BACK;
  return tensor->guard.rungs > LCOMM_STATE_RUNGS_MAX || (flags & ~known) != 0
             ? "the guard of a tensor is impossible"
             : NULL;
}

/* So that they have no more values than the tensor has elements. */
static const char *get_basis(const uint8_t *bytes, lcomm_state_tensor *tensor) {
  uint64_t rank = lcomm_le_get(bytes, 4), columns = lcomm_le_get(bytes + 8, 8);
  bool possible = rank > 0 && rank <= LCOMM_STATE_RANK_MAX && lcomm_le_get(bytes + 4, 4) == 0 &&
                  columns > 0 && columns <= tensor->count / rank;
  tensor->shape = (lcomm_state_basis){(uint32_t)rank, columns};
  return possible ? NULL : "the factor of a matrix is impossible";
}

/* The first version had guards of tensors only, and factors came with the third. */
static bool has_unknown_flag(const lcomm_state_reader *reader, const uint8_t *bytes,
                             const lcomm_state_tensor *tensor) {
  bool basis = (bytes[6] & FLAG_BASIS) != 0;
  return bytes[6] >= FLAGS_END || bytes[7] != 0 || (tensor->of_scatters && !tensor->of_calls) ||
         (basis && (tensor->of_calls || reader->version < VERSION_OF_BASIS)) ||
         (tensor->has_guard && tensor->of_calls && reader->version == LCOMM_STATE_VERSION_FIRST);
}

/* What stands before the name. Flags and counts are possible. */
static const char *take_fields(lcomm_state_reader *reader, const uint8_t *bytes,
                               lcomm_state_tensor *tensor) {
  bool factored = (bytes[6] & FLAG_BASIS) != 0;
  size_t guarded = guard_end(tensor), fixed = guarded + (factored ? BASIS_SIZE : 0u);
  if (reader->size - reader->at < fixed) {
    return "it ends inside a tensor";
  }
  tensor->calls = tensor->of_calls ? lcomm_le_get(bytes + RECORD_FIXED, 8) : 0;
  const char *why = tensor->has_guard ? get_guard(bytes + guarded - GUARD_SIZE, tensor) : NULL;
  reader->at += fixed;
  return why || !factored ? why : get_basis(bytes + guarded, tensor);
}

static const char *take_tensor(lcomm_state_reader *reader, lcomm_state_tensor *tensor) {
  if (reader->size - reader->at < RECORD_FIXED) {
    return "it ends inside a tensor";
  }
  const uint8_t *bytes = reader->bytes + reader->at;
  uint64_t length = lcomm_le_get(bytes, 4);
  tensor->dtype = bytes[4];
  tensor->op = bytes[5];
  tensor->has_momentum = (bytes[6] & FLAG_MOMENTUM) != 0;
  tensor->has_velocity = (bytes[6] & FLAG_VELOCITY) != 0;
  tensor->of_calls = (bytes[6] & FLAG_CALLS) != 0;
  tensor->of_scatters = (bytes[6] & FLAG_SCATTERS) != 0;
  tensor->has_guard = (bytes[6] & FLAG_GUARD) != 0;
  tensor->guard = (lcomm_state_guard){.rungs = 0};
  tensor->shape = (lcomm_state_basis){.rank = 0};
  tensor->count = lcomm_le_get(bytes + 8, 8);
  tensor->first = lcomm_le_get(bytes + 16, 8);
  tensor->n = lcomm_le_get(bytes + 24, 8);
  if (length < 1 || length >= LCOMM_STATE_NAME_MAX) {
    return "the name of a tensor has an impossible length";
  }
  if (tensor->dtype > LCOMM_UINT8 || tensor->op >= OPERATIONS) {
    return "a tensor has an unknown type or operation";
  }
  if (has_unknown_flag(reader, bytes, tensor)) {
    return "a tensor has an unknown flag";
  }
  if (tensor->count > COUNT_MAX || tensor->first > tensor->count ||
      tensor->n > tensor->count - tensor->first) {
    return "a tensor keeps elements that it does not have";
  }
  const char *why = take_fields(reader, bytes, tensor);
  why = why ? why : take_text(reader, length, tensor->name);
  return why ? why : take_values(reader, tensor);
}

static const char *take_header(lcomm_state_reader *reader, lcomm_state_header *header) {
  const uint8_t *bytes = reader->bytes;
  *header = (lcomm_state_header){
      .version = (uint32_t)lcomm_le_get(bytes + 4, 4),
      .file_size = lcomm_le_get(bytes + 8, 8),
      .step = lcomm_le_get(bytes + 16, 8),
      .rank = (uint32_t)lcomm_le_get(bytes + 24, 4),
      .ranks = (uint32_t)lcomm_le_get(bytes + 28, 4),
      .nodes = (uint32_t)lcomm_le_get(bytes + 32, 4),
      .node = (uint32_t)lcomm_le_get(bytes + 36, 4),
      .sequence = (uint32_t)lcomm_le_get(bytes + 40, 4),
      .tensors = (uint32_t)lcomm_le_get(bytes + 44, 4),
  };
  uint64_t length = lcomm_le_get(bytes + 48, 4);
  if (header->rank >= header->ranks || header->node >= header->nodes ||
      header->nodes > header->ranks || header->ranks > INT32_MAX) {
    return "its rank or node is impossible";
  }
  if (length >= LCOMM_STATE_POLICY_MAX || lcomm_le_get(bytes + 52, 4) != 0) {
    return "its header is malformed";
  }
  reader->at = HEADER_FIXED;
  reader->left = header->tensors;
  reader->version = header->version;
  return take_text(reader, length, header->policy);
}

/* NULL when the bytes are a file. */
static const char *refusal(const uint8_t *bytes, size_t size, lcomm_state_header *header,
                           lcomm_state_reader *reader) {
  lcomm_state_tensor tensor;
  *reader = (lcomm_state_reader){.bytes = bytes, .size = size - LCOMM_STATE_CHECKSUM_SIZE};
  if (lcomm_le_get(bytes + 8, 8) != size) {
    return "it is cut short or too long";
  }
  if (lcomm_le_get(bytes + reader->size, 8) != XXH3_64bits(bytes, reader->size)) {
    return "its checksum is wrong";
  }
  const char *why = take_header(reader, header);
  lcomm_state_reader walk = *reader;
  for (; why == NULL && walk.left > 0; walk.left--) {
    why = take_tensor(&walk, &tensor);
  }
  if (!why && walk.at != walk.size) {
    why = "bytes follow its last tensor";
  }
  return why;
}

static lcomm_status check_begin(const uint8_t *bytes, size_t size, const char **why) {
  if (size < HEADER_FIXED + LCOMM_STATE_CHECKSUM_SIZE) {
    *why = "it is shorter than a header";
    return LCOMM_ERR_WIRE;
  }
  if (memcmp(bytes, magic, sizeof magic) != 0) {
    *why = "it does not begin with LCMS";
    return LCOMM_ERR_WIRE;
  }
  uint64_t version = lcomm_le_get(bytes + 4, 4);
  if (version < LCOMM_STATE_VERSION_FIRST || version > LCOMM_STATE_VERSION) {
    *why = "it is of another version";
    return LCOMM_ERR_UNSUPPORTED;
  }
  return LCOMM_OK;
}

lcomm_status lcomm_state_block_find(const uint8_t *bytes, size_t size, lcomm_state_block *block,
                                    const char **why) {
  lcomm_status status = check_begin(bytes, size, why);
  if (status != LCOMM_OK) {
    return status;
  }
  uint64_t whole = lcomm_le_get(bytes + 8, 8);
  if (whole > size || whole < HEADER_FIXED + LCOMM_STATE_CHECKSUM_SIZE) {
    *why = "it is cut short or too long";
    return LCOMM_ERR_WIRE;
  }
  *block = (lcomm_state_block){.size = (size_t)whole,
                               .rank = (uint32_t)lcomm_le_get(bytes + 24, 4),
                               .ranks = (uint32_t)lcomm_le_get(bytes + 28, 4)};
  if (block->rank >= block->ranks || block->ranks > INT32_MAX) {
    *why = "its rank or node is impossible";
    return LCOMM_ERR_WIRE;
  }
  return LCOMM_OK;
}

lcomm_status lcomm_state_open(const uint8_t *bytes, size_t size, lcomm_state_header *header,
                              lcomm_state_reader *reader, const char **why) {
  lcomm_state_header read;
  lcomm_state_reader walk;
  lcomm_status status = check_begin(bytes, size, why);
  if (status != LCOMM_OK) {
    return status;
  }
  const char *reason = refusal(bytes, size, &read, &walk);
  if (reason) {
    *why = reason;
    return LCOMM_ERR_WIRE;
  }
  *header = read;
  *reader = walk;
  return LCOMM_OK;
}

bool lcomm_state_next(lcomm_state_reader *reader, lcomm_state_tensor *tensor) {
  if (reader->left == 0) {
    return false;
  }
  reader->left--;
  return !take_tensor(reader, tensor);
}
