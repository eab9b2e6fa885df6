/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_DOORS_MPI_GREETING_H
#define LCOMM_DOORS_MPI_GREETING_H

/* What ranks tell each other while MPI starts (presence.h, hello.h), and what of it may be
 * believed. Knows nothing of MPI. */

#include <stdbool.h>
#include <stdint.h>

enum { LCOMM_DOOR_POLICY_MAX = 1024, LCOMM_DOOR_SENTENCE_MAX = 2600 };

typedef struct lcomm_door_hello {
  char magic[8];
  int32_t version, mode;              /* lcomm_door_mode that the rank was told */
  int32_t level;                      /* what it is allowed of threads */
  int32_t controlled;                 /* LCOMM_DOOR_CONTROL is set */
  char policy[LCOMM_DOOR_POLICY_MAX]; /* LCOMM_POLICY */
  int32_t required;                   /* LCOMM_DOOR=require */
} lcomm_door_hello;

/* What rank 0 has found. */
typedef struct lcomm_door_verdict {
  char magic[8];
  int32_t good;
  char sentence[LCOMM_DOOR_SENTENCE_MAX];
} lcomm_door_verdict;

/* ------------------------------------------------ words of the name service */

typedef enum lcomm_door_word_kind {
  LCOMM_DOOR_HERE,    /* a rank of version `number` */
  LCOMM_DOOR_ALL,     /* verdict: all `number` ranks are there */
  LCOMM_DOOR_LACKS,   /* verdict: rank `number` is not */
  LCOMM_DOOR_DIFFERS, /* verdict: it has another version */
  LCOMM_DOOR_WORD_KINDS
} lcomm_door_word_kind;

typedef struct lcomm_door_word {
  lcomm_door_word_kind kind;
  int number; /* at least 0 */
} lcomm_door_word;

enum { LCOMM_DOOR_WORD_TEXT_MAX = 32 }; /* with the terminator */

/* As a text without white space, such as "lacks-3"; text has LCOMM_DOOR_WORD_TEXT_MAX bytes. */
void lcomm_door_word_write(const lcomm_door_word *word, char *text);

/* False: it is none. */
bool lcomm_door_word_read(const char *text, lcomm_door_word *word);

/* What a verdict means, as a sentence; "" where all is well. */
void lcomm_door_word_explain(const lcomm_door_word *verdict, char *sentence);

/* --------------------------------------------------------------- greetings */

/* Fill in magic and version. */
void lcomm_door_hello_begin(lcomm_door_hello *mine);
void lcomm_door_verdict_begin(lcomm_door_verdict *mine);

/* Does what another rank says, any bytes, differ from what rank 0 says? Then
 * `sentence` (LCOMM_DOOR_SENTENCE_MAX bytes) says in what. */
bool lcomm_door_hello_differs(const lcomm_door_hello *first, const lcomm_door_hello *other,
                              int rank, char *sentence);

/* Is it a verdict? Its sentence is made a text. */
bool lcomm_door_verdict_take(lcomm_door_verdict *heard);

#endif
