/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/doors/mpi/greeting.h"

#include <stdio.h>
#include <string.h>

#include "libcomm/doors/mpi/door.h"
#include "libcomm/doors/mpi/words.h"

static const char magic_text[8] = "lc-door";

void lcomm_door_hello_begin(lcomm_door_hello *mine) {
  memset(mine, 0, sizeof(*mine));
  memcpy(mine->magic, magic_text, sizeof(mine->magic));
  mine->version = lcomm_version();
}

void lcomm_door_verdict_begin(lcomm_door_verdict *mine) {
  memcpy(mine->magic, magic_text, sizeof(mine->magic));
}

bool lcomm_door_verdict_take(lcomm_door_verdict *heard) {
  lcomm_door_text_sanitize(heard->sentence, sizeof(heard->sentence));
  return memcmp(heard->magic, magic_text, sizeof(magic_text)) == 0;
}

static const char *name_of(int32_t mode) {
  static const char *const names[] = {[LCOMM_DOOR_SHUT] = "off",
                                      [LCOMM_DOOR_OPEN] = "on",
                                      [LCOMM_DOOR_BLOCKING] = "blocking",
                                      [LCOMM_DOOR_REPORT] = "report"};
  return mode >= 0 && mode <= LCOMM_DOOR_REPORT ? names[mode] : "unknown";
}

/* What the rank says that differs from rank 0; false when nothing does. */
bool lcomm_door_hello_differs(const lcomm_door_hello *first, const lcomm_door_hello *other,
                              int rank, char *sentence) {
  char ours[LCOMM_DOOR_POLICY_MAX], theirs[LCOMM_DOOR_POLICY_MAX];
  memcpy(ours, first->policy, sizeof(ours));
  memcpy(theirs, other->policy, sizeof(theirs));
  lcomm_door_text_sanitize(ours, sizeof(ours));
  lcomm_door_text_sanitize(theirs, sizeof(theirs));
  if (memcmp(other->magic, magic_text, sizeof(magic_text)) != 0 ||
      other->version != first->version) {
    snprintf(sentence, LCOMM_DOOR_SENTENCE_MAX,
             "rank %d preloads another version of libcomm-mpi.so than rank 0; install the same one "
             "on all hosts",
             rank);
  } else if (strncmp(first->policy, other->policy, sizeof(first->policy)) != 0) {
    snprintf(sentence, LCOMM_DOOR_SENTENCE_MAX,
             "LCOMM_POLICY is \"%s\" on rank 0 and \"%s\" on rank %d; give all ranks the same "
             "(mpirun -x LCOMM_POLICY)",
             ours, theirs, rank);
  } else if (first->mode != other->mode) {
    snprintf(sentence, LCOMM_DOOR_SENTENCE_MAX,
             "the door is %s on rank 0 and %s on rank %d; give all ranks the same LCOMM_DOOR "
             "(mpirun -x LCOMM_DOOR)",
             name_of(first->mode), name_of(other->mode), rank);
  } else if (first->controlled != other->controlled) {
    snprintf(sentence, LCOMM_DOOR_SENTENCE_MAX,
             "LCOMM_DOOR_CONTROL is set on rank %d and not on rank %d; give it to all ranks or to "
             "none",
             first->controlled ? 0 : rank, first->controlled ? rank : 0);
  } else if (first->level != other->level) {
    snprintf(sentence, LCOMM_DOOR_SENTENCE_MAX,
             "MPI gave thread level %d to rank 0 and %d to rank %d; let all ranks ask for the same",
             first->level, other->level, rank);
  } else {
    return false;
  }
  return true;
}
