/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TENSOR_CHECKPOINT_H
#define LCOMM_TENSOR_CHECKPOINT_H

/* Checkpoints: saving and loading the error-feedback state, inside; what it promises is in
 * libcomm.h, the bytes are in codecs/codec_state.h. checkpoint_write.c makes the bytes of this
 * rank, checkpoint_save.c stores them, checkpoint_source.c reads stored ones; checkpoint.c loads
 * those of several ranks and brings all ranks to one verdict, checkpoint_match.c finds the tensor
 * or residual of a record, checkpoint_restore.c puts values back where they were,
 * checkpoint_reshard.c shares them out for other ranks, nodes or buckets.
 *
 * An lcomm_restore holds what was read until all ranks have agreed; only lcomm_restore_commit
 * changes the communicator, and it cannot fail.
 */

#include "codecs/codec_state.h"
#include "libcomm/base/file.h"
#include "libcomm/tensor/bucket.h"
#include "libcomm/tensor/residual.h"

enum {
  LCOMM_STATE_WHY_MAX = 768, /* a multiple of 4: it travels as words */
  LCOMM_STATE_FILE_MAX = 64,
  LCOMM_STATE_TILE = 1024 /* elements that are handed out together */
};

_Static_assert((int)LCOMM_STATE_WHY_MAX > (int)LCOMM_FILE_WHY_MAX, "a file's complaint fits");

/* "rank-00001-of-00004.lcs"; returns name. */
const char *lcomm_state_file(int rank, int ranks, char name[LCOMM_STATE_FILE_MAX]);

/* Ranks of the set that a file's name belongs to; 0 when it is no such name. */
int lcomm_state_file_ranks(const char *name);

/* STATE while a call with one of the residuals that have a name is in flight. */
lcomm_status lcomm_state_check_calls(const lcomm_comm *comm, const char *call);

/* Where bytes go: a file that was begun, or memory (file NULL) with room for all. */
typedef struct lcomm_state_sink {
  lcomm_file *file;
  uint8_t *bytes;
  size_t at;
} lcomm_state_sink;

/* Memory that the two below need, NULL for none; the caller frees it. MEMORY. */
lcomm_status lcomm_state_scratch(const lcomm_comm *comm, float **scratch);

/* All bytes of this rank, the checksum included; write all but the checksum. */
uint64_t lcomm_state_written_size(const lcomm_comm *comm, float *scratch);
void lcomm_state_write_to(const lcomm_comm *comm, float *scratch, lcomm_state_sink *sink);

/* Where bytes come from: the files of a folder, or blocks in memory of the caller. */
typedef struct lcomm_state_source {
  const char *folder; /* NULL: the memory below */
  const uint8_t *bytes;
  size_t size;
} lcomm_state_source;

/* How many ranks saved what is there. On failure a sentence is written into why
 * (LCOMM_STATE_WHY_MAX bytes), with what it is about. SYSTEM, WIRE, UNSUPPORTED. */
lcomm_status lcomm_state_source_ranks(const lcomm_state_source *source, int *ranks, char *why);

/* What one of so many ranks saved; lcomm_state_source_done when it was read. Errors likewise,
 * ARGUMENT for a block that is not there, MEMORY. */
lcomm_status lcomm_state_source_take(const lcomm_state_source *source, int rank, int ranks,
                                     const uint8_t **bytes, size_t *size, char *why);
void lcomm_state_source_done(const lcomm_state_source *source, const uint8_t *bytes);

/* Write "FOLDER/FILE: PHRASE", or the same of a block, into why. Returns status. */
lcomm_status lcomm_state_source_fail(const lcomm_state_source *source, lcomm_status status,
                                     int rank, int ranks, const char *phrase, char *why);

/* What has a state of its own: a bucket of tensors, or a residual of calls that has a name. */
typedef struct lcomm_restored {
  lcomm_ef *ef;
  lcomm_residual *residual; /* NULL: a bucket */
  lcomm_ef_state state;     /* that it will have; feedback as a plan makes it, NULL for none */
  bool has_residual;        /* the files hold a residual of it */
  /* Of a residual: the calls that were made; in the file that is being read, whether it was
   * there, and the end of what is kept of it so far. */
  uint64_t calls, end;
  bool seen;
} lcomm_restored;

typedef struct lcomm_restore {
  lcomm_comm *comm;
  lcomm_restored *restored; /* `count` of them: the buckets in their order, then the residuals */
  size_t count;
  bool *seen; /* tensors of the file that is being read */
  /* First element and number of elements that each rank keeps of each of them, one after the
   * other, rank after rank. NULL until lcomm_restore_share. */
  uint64_t *ranges;
  char why[LCOMM_STATE_WHY_MAX]; /* of a failure: one sentence */
} lcomm_restore;

/* Begin with nothing placed; the buckets are made. Free with
 * lcomm_restore_free, after a failure, too. MEMORY, or a sticky error. */
lcomm_status lcomm_restore_begin(lcomm_comm *comm, lcomm_restore *restore);
void lcomm_restore_free(lcomm_restore *restore);

/* Place the file of this very rank bit for bit. *fits becomes false when it
 * holds something that has another place here. ARGUMENT for a tensor that is
 * not here, MEMORY. */
lcomm_status lcomm_restore_copy(lcomm_restore *restore, lcomm_state_reader *reader, bool *fits);

/* Tell all ranks what this one will keep. Collective. */
lcomm_status lcomm_restore_share(lcomm_restore *restore);

/* After that: add one rank's file, which `header` belongs to; files in rank
 * order, then finish. Each element is handed to one of the ranks that keep it,
 * or, when nobody does, it is owed. Errors as copy. */
lcomm_status lcomm_reshard_add(lcomm_restore *restore, const lcomm_state_header *header,
                               lcomm_state_reader *reader);
void lcomm_restore_finish(lcomm_restore *restore);

/* Replace the state of the communicator's buckets and residuals. */
void lcomm_restore_commit(lcomm_restore *restore);

/* Parts of the above. */

static inline bool lcomm_restore_has_momentum(const lcomm_restore *restore) {
  return restore->comm->settings.policy.momentum > 0;
}

/* Make a vector of zeros for a result, unless it has been made. MEMORY. */
lcomm_status lcomm_restore_vector(lcomm_restore *restore, size_t index, float **vector);

bool lcomm_restore_all_zero(const uint8_t *values, uint64_t n);

/* The target of a record: its element 0 is element `offset` of the vector. */
typedef struct lcomm_target {
  size_t index;         /* of what was placed */
  lcomm_tensor *tensor; /* NULL: of calls */
  uint64_t offset;
  bool ignored; /* a record without a state */
} lcomm_target;

/* Find it. *index is where the search among tensors begins, and then where it ended. ARGUMENT,
 * WIRE for what was seen in this file already. */
lcomm_status lcomm_restore_match(lcomm_restore *restore, const lcomm_state_tensor *record,
                                 size_t *index, lcomm_target *target);

/* The next file begins. */
void lcomm_restore_next_file(lcomm_restore *restore);

/* Copy what belongs to this rank's result of the velocity of a record. MEMORY. */
lcomm_status lcomm_restore_velocity(lcomm_restore *restore, const lcomm_target *target,
                                    const lcomm_state_tensor *record);

/* A hash of the residuals that have a name, which ranks compare. */
uint64_t lcomm_restore_hash(const lcomm_comm *comm);

#endif
