/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_MPI_INTERPOSE_HANDSHAKE_H
#define LCOMM_INTERPOSE_MPI_INTERPOSE_HANDSHAKE_H

/* Bytes and texts that the ranks exchange: the handshake of MPI_Init and the words of the name
 * service. Each is checked before it is used. Knows nothing of MPI. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libcomm/interpose/interpose_control.h"

enum {
  LCOMM_INTERPOSE_POLICY_MAX = 1024, /* sizes with the terminator */
  LCOMM_INTERPOSE_SENTENCE_MAX = 2600,
  LCOMM_INTERPOSE_WORD_TEXT_MAX = 32
};

/* --------------------------------------------------------------- handshake */

/* What each rank sends to rank 0. */
typedef struct lcomm_interpose_handshake {
  char magic[8];
  int32_t version, mode;                   /* lcomm_interpose_mode of the environment */
  int32_t level;                           /* thread level of MPI */
  int32_t controlled;                      /* LCOMM_INTERPOSE_CONTROL is set */
  char policy[LCOMM_INTERPOSE_POLICY_MAX]; /* LCOMM_POLICY */
  int32_t required;                        /* LCOMM_INTERPOSE=require */
} lcomm_interpose_handshake;

/* What rank 0 answers. */
typedef struct lcomm_interpose_verdict {
  char magic[8];
  int32_t good;
  char sentence[LCOMM_INTERPOSE_SENTENCE_MAX];
} lcomm_interpose_verdict;

/* Set magic and version. */
void lcomm_interpose_handshake_init(lcomm_interpose_handshake *mine);
void lcomm_interpose_verdict_init(lcomm_interpose_verdict *mine);

/* True: the handshake of `rank`, any bytes, differs from that of rank 0; `sentence`
 * (LCOMM_INTERPOSE_SENTENCE_MAX bytes) says in what. */
bool lcomm_interpose_handshake_differs(const lcomm_interpose_handshake *first,
                                       const lcomm_interpose_handshake *other, int rank,
                                       char *sentence);

/* True: any bytes are a verdict. Its sentence becomes a text. */
bool lcomm_interpose_verdict_check(lcomm_interpose_verdict *received);

/* ------------------------------------------------ words of the name service */

typedef enum lcomm_interpose_presence_word_kind {
  LCOMM_INTERPOSE_HERE,    /* a rank runs version `number` */
  LCOMM_INTERPOSE_ALL,     /* verdict: all `number` ranks are present */
  LCOMM_INTERPOSE_LACKS,   /* verdict: rank `number` is missing */
  LCOMM_INTERPOSE_DIFFERS, /* verdict: rank `number` runs another version */
  LCOMM_INTERPOSE_WORD_KINDS
} lcomm_interpose_presence_word_kind;

typedef struct lcomm_interpose_presence_word {
  lcomm_interpose_presence_word_kind kind;
  int number; /* at least 0 */
} lcomm_interpose_presence_word;

/* Write a text without white space, such as "lacks-3", of LCOMM_INTERPOSE_WORD_TEXT_MAX bytes. */
void lcomm_interpose_presence_word_write(const lcomm_interpose_presence_word *word, char *text);

/* False: the text is no such word. */
bool lcomm_interpose_presence_word_read(const char *text, lcomm_interpose_presence_word *word);

/* Write a verdict as a sentence of LCOMM_INTERPOSE_SENTENCE_MAX bytes; "" when all are present. */
void lcomm_interpose_presence_word_explain(const lcomm_interpose_presence_word *verdict,
                                           char *sentence);

/* ----------------------------------------------------- interpose_presence.c */

/* The agreement of all ranks in MPI_Init: are all present, with the same version and settings?
 *
 * A rank that runs without this library or without a policy is in its program already. Nothing may
 * be sent to it over MPI: a message could match one of its receives, a collective call would hang
 * or match one of its own. So the ranks find each other in the launcher's name service
 * (MPI_Publish_name) first. Collective calls follow when all are present.
 */

typedef enum lcomm_interpose_agreement {
  LCOMM_INTERPOSE_AGREED,
  LCOMM_INTERPOSE_REFUSED, /* rank 0 has told all ranks why */
  LCOMM_INTERPOSE_UNHEARD  /* rank 0 does not answer */
} lcomm_interpose_agreement;

/* Compare the handshakes of all ranks of the world. Every rank with a policy calls this in
 * MPI_Init. AGREED on all ranks or on none, however late a rank is. Otherwise `sentence`
 * (LCOMM_INTERPOSE_SENTENCE_MAX bytes) says what is wrong: after 1.5 s on an idle machine when a
 * rank is missing. Without a name service all ranks wait for each other, and the job ends with a
 * sentence when some do not come. */
lcomm_interpose_agreement lcomm_interpose_agree(const lcomm_interpose_handshake *mine,
                                                char *sentence);

#endif
