/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_INTERPOSE_REPORT_H
#define LCOMM_INTERPOSE_INTERPOSE_REPORT_H

/* The report at the end: classes of calls, who made them and why, the bytes between nodes, and the
 * bytes that exact calls would have sent. LCOMM_INTERPOSE=report prints it, and so do
 * LCOMM_STATS=exit (on rank 0) and exit:all. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libcomm_interpose.h"

/* One call. type, comm, members and policy are copied, the other texts are constants. */
typedef struct lcomm_interpose_record {
  const char *function; /* "MPI_Allreduce" */
  const char *type;     /* "MPI_FLOAT", "derived", ... */
  const char *op;       /* "MPI_SUM", "user-defined", ...; "" for calls that move data */
  const char *comm;     /* its name */
  const char *members;  /* its world ranks, see lcomm_interpose_members_text(); NULL: not known */
  const char *policy;   /* in force for it; NULL: as at the start */
  int ranks, nodes;     /* nodes 0: not known */
  uint64_t count;       /* elements */
  uint64_t size_bytes;  /* of all elements, 0: not known */
  lcomm_selection choice;
  bool no_bytes;   /* what is sent between nodes is not known */
  bool exact_now;  /* chosen with error feedback, and exact while no pattern was known */
  const char *why; /* why it is left or exact, "" otherwise */
  uint64_t sent_bytes, exact_bytes; /* between nodes by this rank, see lcomm_call_bytes */
} lcomm_interpose_record;

enum { LCOMM_INTERPOSE_MEMBERS_MAX = 64 }; /* of a text of ranks, with the terminator */

/* Calls are recorded at all. Set once, before the first call. */
extern bool lcomm_interpose_recording;

/* Count a call. Any thread may. A class has one function, type, operation, communicator name, set
 * of ranks, choice and reason; a class of libcomm's also one count and policy. There are at most
 * 256; further ones are counted together. */
void lcomm_interpose_report_add(const lcomm_interpose_record *record);

/* Set the bytes of a call from its class, so they are computed once. False: the class is new. */
bool lcomm_interpose_report_lookup(lcomm_interpose_record *record);

typedef struct lcomm_interpose_report_about {
  bool report_only; /* LCOMM_INTERPOSE=report: the other library made all calls */
  int rank, ranks, nodes;
  const char *policy;  /* at the start */
  const char *host;    /* set by lcomm_interpose_report_show() */
  const char *library; /* the interposer: "libcomm-mpi" */
  const char *other;   /* whose calls it takes: "MPI"; NULL: it makes all by itself */
} lcomm_interpose_report_about;

/* Write the report as text, cut to `size` bytes with the terminator. Returns its whole length.
 * Largest savings first. */
size_t lcomm_interpose_report_print(const lcomm_interpose_report_about *about, char *text,
                                    size_t size);

/* Write it on standard error, with the name of this host. */
void lcomm_interpose_report_show(lcomm_interpose_report_about about);

/* Write world ranks as text, cut to `size` bytes: "0-3", "0,2", "0-12:4" for every fourth. Returns
 * `text`. */
const char *lcomm_interpose_members_text(const int *members, int count, char *text, size_t size);

/* Set the policy of the start, before the first call. */
void lcomm_interpose_report_begin(const char *policy);

/* Forget all classes. */
void lcomm_interpose_report_clear(void);

/* -------------------------------------------------------- inside the report */

/* Shared by the files of the report: interpose_report.c counts calls by class,
 * interpose_report_text.c writes the tables, interpose_report_cell.c their cells. */

enum {
  LCOMM_INTERPOSE_CLASSES_MAX = 256,
  LCOMM_INTERPOSE_NAME_MAX = 64,
  LCOMM_INTERPOSE_POLICIES_MAX = 8, /* further ones count as the last */
  LCOMM_INTERPOSE_POLICY_TEXT_MAX = 512
};

/* The policies that were in force, in the order of their first call; the first is that of the
 * start. */
typedef struct lcomm_interpose_policies {
  char text[LCOMM_INTERPOSE_POLICIES_MAX][LCOMM_INTERPOSE_POLICY_TEXT_MAX];
  unsigned count;
} lcomm_interpose_policies;

/* A class of calls. */
typedef struct lcomm_interpose_class {
  const char *function, *op, *why; /* constants; function NULL: of many kinds */
  char type[LCOMM_INTERPOSE_NAME_MAX], comm[LCOMM_INTERPOSE_NAME_MAX],
      members[LCOMM_INTERPOSE_NAME_MAX];
  unsigned policy;  /* index, of a chosen class */
  int ranks, nodes; /* 0: not known, or not the same in all calls */
  bool no_bytes;
  bool chosen; /* libcomm's, of `count_min` elements each */
  lcomm_selection choice;
  uint64_t count_min, count_max;
  uint64_t calls;
  uint64_t size_bytes, sent_bytes, exact_bytes; /* of all calls */
  uint64_t call_sent_bytes, call_exact_bytes;   /* of the first call */
} lcomm_interpose_class;

/* Sort the classes and write their tables, as lcomm_interpose_report_print(). */
size_t lcomm_interpose_report_format(const lcomm_interpose_report_about *about,
                                     const lcomm_interpose_policies *policies,
                                     lcomm_interpose_class **classes, unsigned count, char *text,
                                     size_t size);

/* -------------------------------------------------- interpose_report_cell.c */

enum { LCOMM_INTERPOSE_CELL_MAX = 64 };

typedef enum lcomm_interpose_column {
  LCOMM_INTERPOSE_COLUMN_CALL,
  LCOMM_INTERPOSE_COLUMN_TYPE,
  LCOMM_INTERPOSE_COLUMN_OP,
  LCOMM_INTERPOSE_COLUMN_COMM,
  LCOMM_INTERPOSE_COLUMN_RANKS,
  LCOMM_INTERPOSE_COLUMN_MEMBERS,
  LCOMM_INTERPOSE_COLUMN_ELEMENTS,
  LCOMM_INTERPOSE_COLUMN_CALLS,
  LCOMM_INTERPOSE_COLUMN_DATA,
  LCOMM_INTERPOSE_COLUMNS_OF_OTHER, /* libcomm's calls have these, too */
  LCOMM_INTERPOSE_COLUMN_SENT = LCOMM_INTERPOSE_COLUMNS_OF_OTHER,
  LCOMM_INTERPOSE_COLUMN_EXACT,
  LCOMM_INTERPOSE_COLUMN_RATIO,
  LCOMM_INTERPOSE_COLUMNS
} lcomm_interpose_column;

const char *lcomm_interpose_column_title(lcomm_interpose_column column);

/* Texts are aligned left, numbers right. */
bool lcomm_interpose_column_is_text(lcomm_interpose_column column);

/* Both return `text`. */
const char *lcomm_interpose_cell(const lcomm_interpose_class *class, lcomm_interpose_column column,
                                 char text[LCOMM_INTERPOSE_CELL_MAX]);
const char *lcomm_interpose_bytes_text(uint64_t bytes, char text[LCOMM_INTERPOSE_CELL_MAX]);

#endif
