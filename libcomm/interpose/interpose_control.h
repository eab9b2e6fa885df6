/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_INTERPOSE_CONTROL_H
#define LCOMM_INTERPOSE_INTERPOSE_CONTROL_H

/* How a user controls an interposer, of whatever library: LCOMM_INTERPOSE when the program starts,
 * the control file while it runs. */

#include <stdbool.h>
#include <stddef.h>

/* -------------------------------------------------------------------- modes */

typedef enum lcomm_interpose_mode {
  LCOMM_INTERPOSE_OFF,      /* no policy, or libcomm could not start: the other library alone */
  LCOMM_INTERPOSE_ON,       /* libcomm makes the calls that the policy chooses */
  LCOMM_INTERPOSE_BLOCKING, /* of them those that block; the other library makes the others */
  LCOMM_INTERPOSE_REPORT    /* the other library makes all calls; the report says what libcomm
                               would do */
} lcomm_interpose_mode;

/* The mode that LCOMM_INTERPOSE asks for; on where it is not set. False: it is none. */
bool lcomm_interpose_mode_read(lcomm_interpose_mode *mode);

/* LCOMM_INTERPOSE=require: on, for programs that must not run without libcomm. */
bool lcomm_interpose_is_required(void);

/* How long a rank waits for others: LCOMM_TIMEOUT_S, else as long as the other library itself would
 * wait, for a rank that writes a checkpoint, say. */
#define LCOMM_INTERPOSE_DEFAULT_TIMEOUT_S (7.0 * 24 * 3600)
double lcomm_interpose_timeout_s(void);

/* Should calls be recorded, and does LCOMM_STATS name ranks whose table is shown? */
typedef struct lcomm_interpose_tables {
  bool recorded, of_rank_0, of_all;
} lcomm_interpose_tables;
lcomm_interpose_tables lcomm_interpose_tables_wanted(lcomm_interpose_mode mode);

/* ------------------------------------------------------------- control file */

enum { LCOMM_INTERPOSE_CONTROL_MAX = 1024 }; /* of its words, with the terminator */

typedef enum lcomm_interpose_control_command {
  LCOMM_INTERPOSE_CONTROL_ON,
  LCOMM_INTERPOSE_CONTROL_OFF,
  LCOMM_INTERPOSE_CONTROL_POLICY,
  LCOMM_INTERPOSE_CONTROL_UNKNOWN
} lcomm_interpose_control_command;

/* Does LCOMM_INTERPOSE_CONTROL name a file? Any thread. */
bool lcomm_interpose_control_wanted(void);

/* The first line of that file, trimmed, in LCOMM_INTERPOSE_CONTROL_MAX bytes; "on" without one. */
void lcomm_interpose_control_read(char *words);

/* Reduce the first `length` bytes of a file, below LCOMM_INTERPOSE_CONTROL_MAX, in a buffer of
 * LCOMM_INTERPOSE_CONTROL_MAX, to the first line as a text without white space around it; "on"
 * when the line is empty. */
void lcomm_interpose_control_trim(char *words, size_t length);

/* The command of trimmed words; *policy: what follows "policy ". */
lcomm_interpose_control_command lcomm_interpose_control_parse(const char *words,
                                                              const char **policy);

/* Say what has become of the words, by the log of an interposer. Each communicator obeys by itself;
 * the process says equal sentences once. Any thread. */
void lcomm_interpose_control_say(void (*log)(const char *format, ...), const char *what,
                                 const char *why);

/* Turn any `size` bytes (at least 1) into a terminated text without control characters. Bytes
 * from 128 up stay, as parts of UTF-8. */
void lcomm_interpose_text_sanitize(char *bytes, size_t size);

#endif
