/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_FEEDBACK_CHECKPOINT_H
#define LCOMM_FEEDBACK_CHECKPOINT_H

/* Saved states of error feedback, inside; what they promise is in libcomm.h, the bytes are in
 * codecs/codec_state.h. What they are of is a list that the owners give. checkpoint_write.c has the
 * bytes of this rank, checkpoint_source.c where bytes come from, checkpoint_match.c finds what
 * records are of, checkpoint_restore.c puts values where they were, checkpoint_reshard.c shares
 * them out anew. Ranks agree elsewhere (tensor/saved_state_load.c).
 *
 * An lcomm_restore holds what was read until all ranks have agreed; only
 * lcomm_restore_commit changes the communicator, and it cannot fail.
 */

#include "codecs/codec_state.h"
#include "libcomm/base/file.h"
#include "libcomm/feedback/ef.h"

enum {
  LCOMM_STATE_FILE_MAX = 64,
  LCOMM_STATE_TILE = 1024 /* elements that are handed out together */
};

/* "rank-00001-of-00004.lcs"; returns name. */
const char *lcomm_state_file(int rank, int ranks, char name[LCOMM_STATE_FILE_MAX]);

/* Ranks of the set that a file's name belongs to; 0 when it is no such name. */
int lcomm_state_file_ranks(const char *name);

/* What a record is of: a tensor, or calls with a residual that has a name. */
typedef struct lcomm_ef_item {
  const char *name;
  lcomm_ef *ef;                  /* NULL: a tensor whose state is parked */
  const lcomm_ef_parked *parked; /* then */
  uint64_t offset, count;        /* elements of the vector */
  lcomm_dtype dtype;
  lcomm_op op;
  uint64_t *calls;         /* how many were made so far; NULL: a tensor */
  lcomm_state_guard guard; /* all zero for nothing */
} lcomm_ef_item;

/* All of a communicator: the tensors, then the calls. Those of one lcomm_ef are tensors only. */
typedef struct lcomm_ef_list {
  lcomm_comm *comm;
  int rank, ranks; /* by which the bytes name who saved them; rank 0 says what all have alike */
  int node, nodes;
  lcomm_ef_item *items;
  size_t tensors, count;
  bool leaves_out_calls; /* records of other calls are of no use */
} lcomm_ef_list;

/* Where bytes go: a file that was begun, or memory (file NULL) with room for all. */
typedef struct lcomm_state_sink {
  lcomm_file *file;
  uint8_t *bytes;
  size_t at;
} lcomm_state_sink;

/* Memory that the two below need, NULL for none; the caller frees it. MEMORY. */
lcomm_status lcomm_state_scratch(const lcomm_ef_list *list, float **scratch);

/* All bytes of this rank, the checksum included; write all but the checksum. */
uint64_t lcomm_state_written_size(const lcomm_ef_list *list, float *scratch);
void lcomm_state_write_to(const lcomm_ef_list *list, float *scratch, lcomm_state_sink *sink);

/* Where bytes come from: the files of a folder, blocks in memory of the caller, or blocks that each
 * rank has and brings to the others. */
typedef struct lcomm_state_source {
  const char *folder; /* NULL: the memory below */
  const uint8_t *bytes;
  size_t size;
  /* If it is there: one of so many blocks, whose order counts, not who wrote them; valid until the
   * next one is asked for. Collective. */
  lcomm_status (*bring)(void *context, int number, const uint8_t **bytes, size_t *size);
  int blocks;
  void *context;
} lcomm_state_source;

/* How many ranks saved what is there. On failure `why` says what is wrong, and
 * where. SYSTEM, WIRE, UNSUPPORTED. */
lcomm_status lcomm_state_source_ranks(const lcomm_state_source *source, int *ranks, lcomm_why *why);

/* What one of so many ranks saved; lcomm_state_source_done when it was read. Errors likewise,
 * ARGUMENT for a block that is not there, MEMORY. */
lcomm_status lcomm_state_source_take(const lcomm_state_source *source, int rank, int ranks,
                                     const uint8_t **bytes, size_t *size, lcomm_why *why);
void lcomm_state_source_done(const lcomm_state_source *source, const uint8_t *bytes);

/* Write "FOLDER/FILE: PHRASE", or the same of a block, into why. Returns status. */
lcomm_status lcomm_state_source_fail(const lcomm_state_source *source, lcomm_status status,
                                     int rank, int ranks, const char *phrase, lcomm_why *why);

typedef struct lcomm_restored {
  lcomm_ef *ef;
  lcomm_codec_spec milder; /* as ef->milder: of what is kept */
  lcomm_ef_state state;    /* that it will have; feedback as a plan makes it, NULL for none */
  bool has_residual;       /* the files hold a residual of it */
  uint64_t *made;          /* of calls: where their number goes */
  /* Of calls: those calls that were made; in the file that is being read, whether it was
   * there, and the end of what is kept of it so far. */
  uint64_t calls, end;
  bool seen;
} lcomm_restored;

typedef struct lcomm_restore {
  const lcomm_ef_list *list;
  lcomm_comm *comm;
  lcomm_restored *restored; /* `count` of them, in the order of the list */
  size_t *of;               /* which of them an item belongs to */
  size_t count;
  bool *seen;                /* items of the file that is being read */
  lcomm_state_guard *guards; /* of the list's items, as the file has it */
  /* First element and number of elements that each rank keeps of each of them, one after the
   * other, rank after rank. NULL until lcomm_restore_share. */
  uint64_t *ranges;
  int ranks_before; /* over how many ranks averages were made; 0: as many as have saved */
  lcomm_why why;    /* of a failure: one sentence */
} lcomm_restore;

/* Begin with nothing placed; the buckets are made. Free with
 * lcomm_restore_free, after a failure, too. MEMORY. */
lcomm_status lcomm_restore_begin(const lcomm_ef_list *list, lcomm_restore *restore);
void lcomm_restore_free(lcomm_restore *restore);

/* Before values are placed: the guards of a file, which the reader is of. Then, once codecs are set
 * by them, what each codec will keep, as zeros. MEMORY, or a sticky error. */
void lcomm_restore_note_guards(lcomm_restore *restore, lcomm_state_reader reader);
lcomm_status lcomm_restore_make(lcomm_restore *restore);

/* Place the file of this very rank bit for bit. *fits becomes false when it
 * holds something that has another place here. ARGUMENT for a tensor that is
 * not here, MEMORY. */
lcomm_status lcomm_restore_copy(lcomm_restore *restore, lcomm_state_reader *reader, bool *fits);

/* Tell all ranks what this one will keep: `gather` brings the bytes of all together. Collective. */
typedef lcomm_status lcomm_restore_gather(lcomm_comm *comm, const void *send, void *receive,
                                          size_t size);
lcomm_status lcomm_restore_share(lcomm_restore *restore, lcomm_restore_gather *gather);

/* After that: add one rank's file, which `header` belongs to; files in rank
 * order, then finish. Each element is handed to one of the ranks that keep it,
 * or, when nobody does, it is carried to the next result. Errors as copy. */
lcomm_status lcomm_reshard_add(lcomm_restore *restore, const lcomm_state_header *header,
                               lcomm_state_reader *reader);
void lcomm_restore_finish(lcomm_restore *restore);

/* Replace the state of the communicator's buckets and residuals. */
void lcomm_restore_commit(lcomm_restore *restore);

/* Parts of the above. */

/* Does what is restored go on with a momentum of results? */
static inline bool lcomm_restore_has_velocity(const lcomm_restored *restored) {
  return restored->ef->momentum > 0 || restored->ef->beta1 > 0;
}

/* Make a vector of zeros for a result, unless it has been made. MEMORY. */
lcomm_status lcomm_restore_vector(lcomm_restore *restore, size_t index, float **vector);

bool lcomm_restore_all_zero(const uint8_t *values, uint64_t n);

/* The target of a record: its element 0 is element `offset` of the vector. */
typedef struct lcomm_target {
  size_t index; /* of what is restored */
  const lcomm_ef_item *item;
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

/* Copy the Q of a record, where its matrix travels by low rank of the same rank here; what is none
 * is started anew. MEMORY. */
lcomm_status lcomm_restore_basis(lcomm_restore *restore, const lcomm_target *target,
                                 const lcomm_state_tensor *record);

/* A hash of the residuals that have a name, which ranks compare. */
uint64_t lcomm_restore_hash(const lcomm_ef_list *list);

#endif
