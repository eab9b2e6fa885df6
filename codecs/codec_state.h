/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_CODECS_CODEC_STATE_H
#define LCOMM_CODECS_CODEC_STATE_H

/* The bytes of a saved error-feedback state: what one rank keeps between two
 * steps. One file per rank; the files of all ranks are a set. Nothing here
 * touches a file, allocates, or trusts a byte that it reads.
 *
 * Numbers are little-endian, as is every machine libcomm runs on; every part
 * begins at a multiple of 8.
 *
 *   offset size header
 *        0    4 magic, the bytes 'L' 'C' 'M' 'S'
 *        4    4 version, 3; in files of version 1 no calls have a guard, and before 3 no tensor
 *               has factors
 *        8    8 bytes of the whole file, the checksum included
 *       16    8 step: steps that were finished
 *       24    4 rank that saved
 *       28    4 ranks in the set
 *       32    4 nodes
 *       36    4 node of the rank
 *       40    4 number of the communicator's next operation
 *       44    4 tensors
 *       48    4 bytes of the policy text, P, at most 1023
 *       52    4 zero
 *       56    P policy in force, for people, without a terminator; with adam= in it, what
 *               is kept is momentum
 *               zeros up to a multiple of 8
 *
 * then for each tensor, in the order in which they were added, and after them for each
 * residual of calls that has a name:
 *        0    4 bytes of the name, L, 1 to 127
 *        4    1 dtype, lcomm_dtype
 *        5    1 operation, 0 sum, 1 average, 2 minimum, 3 maximum
 *        6    1 flags: bit 0 momentum follows, bit 1 velocity follows, bit 2 of calls, bit 3
 *               of reduce-scatters, with bit 2 only, bit 4 a guard follows, bit 5 a factor
 *               of low rank follows, not with bit 2
 *        7    1 zero
 *        8    8 count, elements of the tensor
 *       16    8 first element whose residual this rank keeps
 *       24    8 n, how many elements it keeps; first + n <= count
 *       32    8 calls that were made, with flag bit 2; else this is left out
 *        .    4 with flag bit 4, else these are left out: how much milder than that of the policy
 *               its codec is, at most 15
 *        .    4 bit 0 it has come back by one and not fallen since; with flag bit 2 only, bit 1 the
 *               next call is exact and pays what is kept
 *        .    8 good checks in a row
 *        .    8 good checks after which it comes back
 *        .    4 with flag bit 5, else these are left out: rank, 1 to 64
 *        .    4 zero
 *        .    8 columns of the matrix; rank * columns <= count
 *        .    L name, without a terminator, no zero byte
 *               zeros up to a multiple of 8
 *             n float32 residual
 *             n float32 momentum, with flag bit 0
 *         count float32 velocity, with flag bit 1; n of them with flag bit 3
 *rank * columns float32 Q of low rank, with flag bit 5: vectors of `columns` values
 *               zeros up to a multiple of 8
 *
 * A residual of reduce-scatters has a record for each segment that the rank keeps, ascending, or
 * one with n = 0.
 *
 * and at the end 8 bytes, XXH3-64 of every byte before them.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libcomm/include/libcomm_types.h"

enum {
  LCOMM_STATE_VERSION = 3,
  LCOMM_STATE_VERSION_FIRST = 1, /* that is read */
  LCOMM_STATE_POLICY_MAX = 1024, /* with a terminator */
  LCOMM_STATE_NAME_MAX = 128,    /* with a terminator */
  LCOMM_STATE_HEADER_MAX = 56 + LCOMM_STATE_POLICY_MAX,
  LCOMM_STATE_RECORD_MAX = 80 + LCOMM_STATE_NAME_MAX,
  LCOMM_STATE_RUNGS_MAX = 15,
  LCOMM_STATE_RANK_MAX = 64,
  LCOMM_STATE_CHECKSUM_SIZE = 8
};

typedef struct lcomm_state_header {
  uint64_t file_size, step;
  uint32_t version; /* LCOMM_STATE_VERSION in what is written */
  uint32_t rank, ranks, nodes, node, sequence, tensors;
  char policy[LCOMM_STATE_POLICY_MAX];
} lcomm_state_header;

/* What the guard remembers of a tensor or of calls, see lcomm_guarded. All zero: nothing. */
typedef struct lcomm_state_guard {
  uint32_t rungs;
  bool came_back;
  bool pays; /* of calls: the next one pays what is kept */
  uint64_t good, patience;
} lcomm_state_guard;

/* Q of a matrix that travels by low rank. */
typedef struct lcomm_state_basis {
  uint32_t rank; /* 0: it has none */
  uint64_t columns;
} lcomm_state_basis;

/* One tensor, or one residual of calls. The values of one that was read are views of the file's
 * bytes: float32 at any address, to be copied by memcpy. */
typedef struct lcomm_state_tensor {
  char name[LCOMM_STATE_NAME_MAX];
  uint8_t dtype, op;
  bool has_momentum, has_velocity, of_calls, of_scatters, has_guard;
  uint64_t count, first, n, calls;
  lcomm_state_guard guard;
  lcomm_state_basis shape;
  const uint8_t *residual, *momentum, *velocity, *basis; /* NULL when it has none */
} lcomm_state_tensor;

/* Values of its velocity, where it has one. */
static inline uint64_t lcomm_state_velocity_count(const lcomm_state_tensor *tensor) {
  return tensor->of_scatters ? tensor->n : tensor->count;
}

/* Values of its Q. */
static inline uint64_t lcomm_state_basis_count(const lcomm_state_tensor *tensor) {
  return tensor->shape.rank * tensor->shape.columns;
}

/* Bytes of the header with its policy, and of a tensor with its values. */
size_t lcomm_state_header_size(const lcomm_state_header *header);
uint64_t lcomm_state_tensor_size(const lcomm_state_tensor *tensor);

/* Write the header (at most LCOMM_STATE_HEADER_MAX bytes), or what stands
 * before the values of a tensor (at most LCOMM_STATE_RECORD_MAX bytes); return
 * how many bytes. The texts must be terminated; the pointers are not used. */
size_t lcomm_state_pack_header(const lcomm_state_header *header, uint8_t *bytes);
size_t lcomm_state_pack_record(const lcomm_state_tensor *tensor, uint8_t *bytes);

/* Zero bytes after the values of a tensor. */
size_t lcomm_state_padding(const lcomm_state_tensor *tensor);

void lcomm_state_put_checksum(uint64_t checksum, uint8_t *bytes);

/* Walks over the tensors of a file that was opened. */
typedef struct lcomm_state_reader {
  const uint8_t *bytes;
  size_t at, size;
  uint32_t left;    /* tensors */
  uint32_t version; /* of the file */
} lcomm_state_reader;

/* Files may lie in memory one after the other, as blocks. The size of the first one, and who
 * saved it; what is inside is for lcomm_state_open to say. Errors as there. */
typedef struct lcomm_state_block {
  size_t size;
  uint32_t rank, ranks;
} lcomm_state_block;
lcomm_status lcomm_state_block_find(const uint8_t *bytes, size_t size, lcomm_state_block *block,
                                    const char **why);

/* Look through a whole file: every size, text and the checksum. The bytes must
 * stay until the last tensor was used. LCOMM_ERR_WIRE, or UNSUPPORTED for
 * another version, and *why then points at a static phrase for people, e.g.
 * "its checksum is wrong"; the outputs are not written. */
lcomm_status lcomm_state_open(const uint8_t *bytes, size_t size, lcomm_state_header *header,
                              lcomm_state_reader *reader, const char **why);

/* The next tensor; false after the last one. Never fails after an open. */
bool lcomm_state_next(lcomm_state_reader *reader, lcomm_state_tensor *tensor);

#endif
