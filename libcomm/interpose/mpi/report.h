/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_MPI_REPORT_H
#define LCOMM_INTERPOSE_MPI_REPORT_H

/* The table at the end: which classes of calls the program made, what was done with
 * them and why, what they sent between nodes and what they would have sent exactly.
 * LCOMM_INTERPOSE=report asks for it, and LCOMM_STATS=exit (rank 0 of the world) or exit:all.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libcomm_interpose.h"

/* One call. Texts are constants but for type, comm, members and policy, which are copied. */
typedef struct lcomm_interpose_note {
  const char *function; /* "MPI_Allreduce" */
  const char *type;     /* "MPI_FLOAT", "derived", ... */
  const char *op;       /* "MPI_SUM", "user-defined", ...; "" for data that is moved */
  const char *comm;     /* its name */
  const char *members;  /* its world ranks, see lcomm_interpose_members_text(); NULL: not known */
  const char *policy;   /* in force for it; NULL: as at the start */
  int ranks, nodes;     /* nodes 0: not known */
  uint64_t count;       /* elements */
  uint64_t size_bytes;  /* of all elements, 0: not known */
  lcomm_selection choice;
  bool exact_now;  /* chosen with error feedback, and exact while no pattern was known */
  const char *why; /* why it is left or exact, "" otherwise */
  uint64_t sent_bytes, exact_bytes; /* between nodes by this rank, see lcomm_call_bytes */
} lcomm_interpose_note;

enum { LCOMM_INTERPOSE_MEMBERS_MAX = 64 }; /* of a text of ranks, with the terminator */

/* Wanted at all? Calls are noted only then. Set once, before the first call. */
extern bool lcomm_interpose_noting;

/* Any thread. Classes are the same function, type, operation, communicator name, its ranks,
 * choice and reason; those that are chosen also by count and policy. At most 256; further ones are
 * counted together. */
void lcomm_interpose_report_note(const lcomm_interpose_note *note);

/* Of a class that was noted before: its bytes, so that they are not computed for every
 * call. False when the class is new. */
bool lcomm_interpose_report_known(lcomm_interpose_note *note);

typedef struct lcomm_interpose_report_about {
  bool report_only; /* LCOMM_INTERPOSE=report: nothing was changed */
  int rank, ranks, nodes;
  const char *host, *policy; /* the policy at the start */
} lcomm_interpose_report_about;

/* The table as text, cut to `size` bytes with the terminator; returns the length it would
 * have. Largest savings first. */
size_t lcomm_interpose_report_print(const lcomm_interpose_report_about *about, char *text,
                                    size_t size);

/* World ranks as text, cut to `size` bytes: "0-3", "0,2", "0-12:4" for each fourth. Returns
 * `text`. */
const char *lcomm_interpose_members_text(const int *members, int count, char *text, size_t size);

/* Begin with the policy of the start, before the first call. */
void lcomm_interpose_report_begin(const char *policy);

/* Forget all classes. */
void lcomm_interpose_report_clear(void);

#endif
