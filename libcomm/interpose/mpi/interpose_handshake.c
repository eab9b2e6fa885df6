/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/interpose/mpi/interpose_handshake.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm_interpose.h"

static void explain_version(int rank, char *sentence) {
  snprintf(sentence, LCOMM_INTERPOSE_SENTENCE_MAX,
           "rank %d preloads another version of libcomm-mpi.so than rank 0; install the same one "
           "on all hosts",
           rank);
}

/* --------------------------------------------------------------- handshake */

/* The first bytes of a handshake and of a verdict: fixed, so that all versions recognise them. */
static const char magic_text[8] = "lc-door";

void lcomm_interpose_handshake_init(lcomm_interpose_handshake *mine) {
  memset(mine, 0, sizeof *mine);
  memcpy(mine->magic, magic_text, sizeof(mine->magic));
  mine->version = lcomm_version();
}

void lcomm_interpose_verdict_init(lcomm_interpose_verdict *mine) {
  memcpy(mine->magic, magic_text, sizeof(mine->magic));
}

bool lcomm_interpose_verdict_check(lcomm_interpose_verdict *received) {
  lcomm_interpose_text_sanitize(received->sentence, sizeof(received->sentence));
  return memcmp(received->magic, magic_text, sizeof(magic_text)) == 0;
}

static const char *name_of(int32_t mode, bool required) {
  static const char *const names[] = {[LCOMM_INTERPOSE_OFF] = "off",
                                      [LCOMM_INTERPOSE_ON] = "on",
                                      [LCOMM_INTERPOSE_BLOCKING] = "blocking",
                                      [LCOMM_INTERPOSE_REPORT] = "report"};
  if (required) {
    return "require";
  }
  return mode >= 0 && mode <= LCOMM_INTERPOSE_REPORT ? names[mode] : "unknown";
}

bool lcomm_interpose_handshake_differs(const lcomm_interpose_handshake *first,
                                       const lcomm_interpose_handshake *other, int rank,
                                       char *sentence) {
  char own_policy[LCOMM_INTERPOSE_POLICY_MAX], their_policy[LCOMM_INTERPOSE_POLICY_MAX];
  memcpy(own_policy, first->policy, sizeof(own_policy));
  memcpy(their_policy, other->policy, sizeof(their_policy));
  lcomm_interpose_text_sanitize(own_policy, sizeof(own_policy));
  lcomm_interpose_text_sanitize(their_policy, sizeof(their_policy));
  if (memcmp(other->magic, magic_text, sizeof(magic_text)) != 0 ||
      other->version != first->version) {
    explain_version(rank, sentence);
  } else if (strncmp(first->policy, other->policy, sizeof(first->policy)) != 0) {
    snprintf(sentence, LCOMM_INTERPOSE_SENTENCE_MAX,
             "LCOMM_POLICY is \"%s\" on rank 0 and \"%s\" on rank %d; give all ranks the same "
             "(mpirun -x LCOMM_POLICY)",
             own_policy, their_policy, rank);
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

/* ------------------------------------------------ words of the name service */

static const char *const word_texts[LCOMM_INTERPOSE_WORD_KINDS] = {
    [LCOMM_INTERPOSE_HERE] = "here",
    [LCOMM_INTERPOSE_ALL] = "all",
    [LCOMM_INTERPOSE_LACKS] = "lacks",
    [LCOMM_INTERPOSE_DIFFERS] = "differs"};

void lcomm_interpose_presence_word_write(const lcomm_interpose_presence_word *word, char *text) {
  snprintf(text, LCOMM_INTERPOSE_WORD_TEXT_MAX, "%s-%d", word_texts[word->kind], word->number);
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

bool lcomm_interpose_presence_word_read(const char *text, lcomm_interpose_presence_word *word) {
  for (int kind = 0; kind < LCOMM_INTERPOSE_WORD_KINDS; kind++) {
    size_t length = strlen(word_texts[kind]);
    if (strncmp(text, word_texts[kind], length) == 0 && text[length] == '-') {
      word->kind = (lcomm_interpose_presence_word_kind)kind;
      return read_number(text + length + 1, &word->number);
    }
  }
  return false;
}

void lcomm_interpose_presence_word_explain(const lcomm_interpose_presence_word *verdict,
                                           char *sentence) {
  sentence[0] = '\0';
  if (verdict->kind == LCOMM_INTERPOSE_LACKS) {
    snprintf(
        sentence, LCOMM_INTERPOSE_SENTENCE_MAX,
        "rank %d does not take part: it runs without the preload, without LCOMM_POLICY or with "
        "LCOMM_INTERPOSE=off. Give all ranks the same environment (mpirun -x LD_PRELOAD -x "
        "LCOMM_POLICY)",
        verdict->number);
  } else if (verdict->kind == LCOMM_INTERPOSE_DIFFERS) {
    explain_version(verdict->number, sentence);
  }
}
