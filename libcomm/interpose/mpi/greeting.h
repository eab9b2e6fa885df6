/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_MPI_GREETING_H
#define LCOMM_INTERPOSE_MPI_GREETING_H

/* What ranks tell each other while MPI starts (presence.h, hello.h), and what of it may be
 * believed. Knows nothing of MPI. */

#include <stdbool.h>
#include <stdint.h>

enum { LCOMM_INTERPOSE_POLICY_MAX = 1024, LCOMM_INTERPOSE_SENTENCE_MAX = 2600 };

typedef struct lcomm_interpose_hello {
  char magic[8];
  int32_t version, mode;                   /* lcomm_interpose_mode that the rank was told */
  int32_t level;                           /* what it is allowed of threads */
  int32_t controlled;                      /* LCOMM_INTERPOSE_CONTROL is set */
  char policy[LCOMM_INTERPOSE_POLICY_MAX]; /* LCOMM_POLICY */
  int32_t required;                        /* LCOMM_INTERPOSE=require */
} lcomm_interpose_hello;

/* What rank 0 has found. */
typedef struct lcomm_interpose_verdict {
  char magic[8];
  int32_t good;
  char sentence[LCOMM_INTERPOSE_SENTENCE_MAX];
} lcomm_interpose_verdict;

/* ------------------------------------------------ words of the name service */

typedef enum lcomm_interpose_word_kind {
  LCOMM_INTERPOSE_HERE,    /* a rank of version `number` */
  LCOMM_INTERPOSE_ALL,     /* verdict: all `number` ranks are there */
  LCOMM_INTERPOSE_LACKS,   /* verdict: rank `number` is not */
  LCOMM_INTERPOSE_DIFFERS, /* verdict: it has another version */
  LCOMM_INTERPOSE_WORD_KINDS
} lcomm_interpose_word_kind;

typedef struct lcomm_interpose_word {
  lcomm_interpose_word_kind kind;
  int number; /* at least 0 */
} lcomm_interpose_word;

enum { LCOMM_INTERPOSE_WORD_TEXT_MAX = 32 }; /* with the terminator */

/* As a text without white space, such as "lacks-3"; text has LCOMM_INTERPOSE_WORD_TEXT_MAX bytes.
 */
void lcomm_interpose_word_write(const lcomm_interpose_word *word, char *text);

/* False: it is none. */
bool lcomm_interpose_word_read(const char *text, lcomm_interpose_word *word);

/* What a verdict means, as a sentence; "" where all is well. */
void lcomm_interpose_word_explain(const lcomm_interpose_word *verdict, char *sentence);

/* --------------------------------------------------------------- greetings */

/* Fill in magic and version. */
void lcomm_interpose_hello_begin(lcomm_interpose_hello *mine);
void lcomm_interpose_verdict_begin(lcomm_interpose_verdict *mine);

/* Does what another rank says, any bytes, differ from what rank 0 says? Then
 * `sentence` (LCOMM_INTERPOSE_SENTENCE_MAX bytes) says in what. */
bool lcomm_interpose_hello_differs(const lcomm_interpose_hello *first,
                                   const lcomm_interpose_hello *other, int rank, char *sentence);

/* Is it a verdict? Its sentence is made a text. */
bool lcomm_interpose_verdict_take(lcomm_interpose_verdict *heard);

#endif
