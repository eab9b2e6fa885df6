/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The control file: read by one rank, obeyed by all at the same call. */

#include "libcomm/interpose/mpi/control.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "libcomm/interpose/mpi/comms.h"
#include "libcomm/interpose/mpi/leaving.h"
#include "libcomm/interpose/mpi/words.h"

enum { CALLS_BETWEEN_LOOKS = 16, WORDS_MAX = LCOMM_INTERPOSE_WORDS_MAX };

bool lcomm_interpose_control_wanted(void) {
  static atomic_int wanted; /* 0: not looked yet, 1: no, 2: yes */
  int known = atomic_load(&wanted);
  if (known == 0) {
    known = lcomm_setting("LCOMM_INTERPOSE_CONTROL") ? 2 : 1;
    atomic_store(&wanted, known);
  }
  return known == 2;
}

static void read_words(char *words) {
  const char *path = lcomm_setting("LCOMM_INTERPOSE_CONTROL");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
  ssize_t length = file < 0 ? 0 : read(file, words, WORDS_MAX - 1);
  if (file >= 0) {
    close(file);
  }
  lcomm_interpose_words_trim(words, length > 0 ? (size_t)length : 0);
}

/* Every communicator obeys at a call of its own; the same words are said once. */
static void say(const lcomm_interpose_comm *at, const char *what, const char *why) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static char last[WORDS_MAX];
  char text[WORDS_MAX];
  snprintf(text, sizeof(text), "%s%s", what, why);
  pthread_mutex_lock(&lock);
  if (at->rank == 0 && strcmp(text, last) != 0) {
    lcomm_interpose_say("LCOMM_INTERPOSE_CONTROL: %s", text);
    memcpy(last, text, sizeof(last));
  }
  pthread_mutex_unlock(&lock);
}

/* ---------------------------------------------------------------- obeying */

void lcomm_interpose_control_settle(lcomm_interpose_comm *at) {
  if (at->owed && lcomm_interpose_lasting_owing(at->owed) == 0) {
    lcomm_interpose_drain(at); /* the last payment may still be under way */
    lcomm_interpose_lasting_destroy(at->owed);
    lcomm_interpose_leave(at, &at->owing);
    at->owed = NULL;
  }
}

/* What the policy before owes is paid by the calls to come. What the one before that still
 * owes has found no call in all that time and is given up. */
static bool replace(lcomm_interpose_comm *at, const char *policy) {
  lcomm_interpose_drain(at);
  lcomm_interpose_home home = at->home;
  lcomm_interpose_lasting *lasting = at->lasting;
  if (lcomm_interpose_comm_judge_by(at, policy) != LCOMM_OK) {
    say(at, "the policy stays as it is: ", lcomm_last_error(NULL));
    return false;
  }
  at->off = false;
  lcomm_interpose_lasting_destroy(at->owed);
  lcomm_interpose_leave(at, &at->owing);
  at->owed = lasting;
  at->owing = home;
  if (lasting) {
    lcomm_interpose_lasting_end(lasting);
    lcomm_interpose_control_settle(at);
  } else {
    lcomm_interpose_leave(at, &at->owing);
  }
  say(at, "from here on the policy is ", lcomm_preview_policy(at->preview));
  return true;
}

static void switch_off(lcomm_interpose_comm *at) {
  at->off = true;
  if (at->lasting) {
    lcomm_interpose_lasting_end(at->lasting);
  }
  say(at, "from here on all calls are MPI's", "");
}

static void switch_on(lcomm_interpose_comm *at) {
  if (at->other_policy) {
    at->other_policy = !replace(at, NULL);
  } else if (at->off) {
    at->off = false;
    if (at->lasting) {
      lcomm_interpose_lasting_resume(at->lasting);
    }
    say(at, "on again, the policy is ", lcomm_preview_policy(at->preview));
  }
}

static void obey(lcomm_interpose_comm *at, const char *words) {
  const char *policy = NULL;
  switch (lcomm_interpose_words_read(words, &policy)) {
  case LCOMM_INTERPOSE_WORDS_POLICY:
    at->other_policy |= replace(at, policy);
    break;
  case LCOMM_INTERPOSE_WORDS_OFF:
    switch_off(at);
    break;
  case LCOMM_INTERPOSE_WORDS_ON:
    switch_on(at);
    break;
  case LCOMM_INTERPOSE_WORDS_UNKNOWN:
    say(at, "neither on, off nor policy WORDS, ignored: ", words);
  }
}

/* In a blocking collective call on the communicator. */
static void look(lcomm_interpose_comm *at) {
  char words[WORDS_MAX] = "";
  if (at->rank == 0) {
    read_words(words);
  }
  PMPI_Bcast(words, WORDS_MAX, MPI_CHAR, 0, at->comm);
  lcomm_interpose_text_sanitize(words, sizeof(words));
  if (strcmp(words, at->control) != 0) {
    memcpy(at->control, words, sizeof(at->control));
    obey(at, words);
  }
}

void lcomm_interpose_control_look(lcomm_interpose_comm *at) {
  if (at->owed) {
    lcomm_interpose_control_settle(at);
  }
  if (lcomm_interpose_control_wanted() && at->candidates % CALLS_BETWEEN_LOOKS == 1) {
    look(at);
  }
}
