/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_FAILURE_H
#define TRAINER_FAILURE_H

/* Why the program ends early: one sentence, the exit code, and who says it.
 * Functions of the trainer that can fail return 0 or -1 and fill a failure. */

enum { EXIT_SETUP = 2, EXIT_TRAINING = 3, EXIT_SIGNAL = 128 /* and its number */ };

typedef enum failure_speaker {
  SPEAKER_EACH_RANK, /* the sentence belongs to the rank that failed */
  SPEAKER_FIRST_RANK /* every rank has the same sentence, rank 0 prints it */
} failure_speaker;

typedef struct failure {
  int exit_code; /* 0: nothing failed */
  failure_speaker speaker;
  char text[1024];
} failure;

/* Both return -1, so that a caller can say `return failure_set(...)`. */
__attribute__((format(printf, 3, 4))) int failure_set(failure *why, int exit_code,
                                                      const char *format, ...);
__attribute__((format(printf, 3, 4))) int failure_set_common(failure *why, int exit_code,
                                                             const char *format, ...);

#endif
