/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/interpose/mpi/greeting.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/interpose/mpi/interpose_mode.h"
#include "libcomm/interpose/mpi/words.h"
#include "libcomm_interpose.h"

/* ------------------------------------------------ words of the name service */

static const char *const words[LCOMM_INTERPOSE_WORD_KINDS] = {[LCOMM_INTERPOSE_HERE] = "here",
                                                              [LCOMM_INTERPOSE_ALL] = "all",
                                                              [LCOMM_INTERPOSE_LACKS] = "lacks",
                                                              [LCOMM_INTERPOSE_DIFFERS] =
                                                                  "differs"};

void lcomm_interpose_word_write(const lcomm_interpose_word *word, char *text) {
  snprintf(text, LCOMM_INTERPOSE_WORD_TEXT_MAX, "%s-%d", words[word->kind], word->number);
}

/* Digits only, at most INT_MAX. */
static bool read_number(const char *digits, int *number) {
  size_t length = strlen(digits);
  if (length == 0 || length > 10 || strspn(digits, "0123456789") != length) {
    return false;
  }
  long value = strtol(digits, NULL, 10);
  *number = value <= INT_MAX ? (int)value : 0;
  return value <= INT_MAX;
}

bool lcomm_interpose_word_read(const char *text, lcomm_interpose_word *word) {
  for (int kind = 0; kind < LCOMM_INTERPOSE_WORD_KINDS; kind++) {
    size_t length = strlen(words[kind]);
    if (strncmp(text, words[kind], length) == 0 && text[length] == '-') {
      word->kind = (lcomm_interpose_word_kind)kind;
      return read_number(text + length + 1, &word->number);
    }
  }
  return false;
}

void lcomm_interpose_word_explain(const lcomm_interpose_word *verdict, char *sentence) {
  sentence[0] = '\0';
  if (verdict->kind == LCOMM_INTERPOSE_LACKS) {
    snprintf(
        sentence, LCOMM_INTERPOSE_SENTENCE_MAX,
        "rank %d does not take part: it runs without the preload, without LCOMM_POLICY or with "
        "LCOMM_INTERPOSE=off. Give all ranks the same environment (mpirun -x LD_PRELOAD -x "
        "LCOMM_POLICY)",
        verdict->number);
  } else if (verdict->kind == LCOMM_INTERPOSE_DIFFERS) {
    snprintf(sentence, LCOMM_INTERPOSE_SENTENCE_MAX,
             "rank %d preloads another version of libcomm-mpi.so than rank 0; install the same one "
             "on all hosts",
             verdict->number);
  }
}

/* --------------------------------------------------------------- greetings */

static const char magic_text[8] = "lc-door";

void lcomm_interpose_hello_begin(lcomm_interpose_hello *mine) {
  memset(mine, 0, sizeof *mine);
  memcpy(mine->magic, magic_text, sizeof(mine->magic));
  mine->version = lcomm_version();
}

void lcomm_interpose_verdict_begin(lcomm_interpose_verdict *mine) {
  memcpy(mine->magic, magic_text, sizeof(mine->magic));
}

bool lcomm_interpose_verdict_take(lcomm_interpose_verdict *heard) {
  lcomm_interpose_text_sanitize(heard->sentence, sizeof(heard->sentence));
  return memcmp(heard->magic, magic_text, sizeof(magic_text)) == 0;
}

static const char *name_of(int32_t mode, bool required) {
  static const char *const names[] = {[LCOMM_INTERPOSE_SHUT] = "off",
                                      [LCOMM_INTERPOSE_OPEN] = "on",
                                      [LCOMM_INTERPOSE_BLOCKING] = "blocking",
                                      [LCOMM_INTERPOSE_REPORT] = "report"};
  if (required) {
    return "require";
  }
  return mode >= 0 && mode <= LCOMM_INTERPOSE_REPORT ? names[mode] : "unknown";
}

/* What the rank says that differs from rank 0; false when nothing does. */
bool lcomm_interpose_hello_differs(const lcomm_interpose_hello *first,
                                   const lcomm_interpose_hello *other, int rank, char *sentence) {
  char ours[LCOMM_INTERPOSE_POLICY_MAX], theirs[LCOMM_INTERPOSE_POLICY_MAX];
  memcpy(ours, first->policy, sizeof(ours));
  memcpy(theirs, other->policy, sizeof(theirs));
  lcomm_interpose_text_sanitize(ours, sizeof(ours));
  lcomm_interpose_text_sanitize(theirs, sizeof(theirs));
  if (memcmp(other->magic, magic_text, sizeof(magic_text)) != 0 ||
      other->version != first->version) {
    snprintf(sentence, LCOMM_INTERPOSE_SENTENCE_MAX,
             "rank %d preloads another version of libcomm-mpi.so than rank 0; install the same one "
             "on all hosts",
             rank);
  } else if (strncmp(first->policy, other->policy, sizeof(first->policy)) != 0) {
    snprintf(sentence, LCOMM_INTERPOSE_SENTENCE_MAX,
             "LCOMM_POLICY is \"%s\" on rank 0 and \"%s\" on rank %d; give all ranks the same "
             "(mpirun -x LCOMM_POLICY)",
             ours, theirs, rank);
  } else if (first->mode != other->mode || first->required != other->required) {
    snprintf(sentence, LCOMM_INTERPOSE_SENTENCE_MAX,
             "LCOMM_INTERPOSE is %s on rank 0 and %s on rank %d; give all ranks the same "
             "(mpirun -x LCOMM_INTERPOSE)",
             name_of(first->mode, first->required), name_of(other->mode, other->required), rank);
  } else if (first->controlled != other->controlled) {
    snprintf(
        sentence, LCOMM_INTERPOSE_SENTENCE_MAX,
        "LCOMM_INTERPOSE_CONTROL is set on rank %d and not on rank %d; give it to all ranks or to "
        "none",
        first->controlled ? 0 : rank, first->controlled ? rank : 0);
  } else if (first->level != other->level) {
    snprintf(sentence, LCOMM_INTERPOSE_SENTENCE_MAX,
             "MPI gave thread level %d to rank 0 and %d to rank %d; let all ranks ask for the same",
             first->level, other->level, rank);
  } else {
    return false;
  }
  return true;
}
