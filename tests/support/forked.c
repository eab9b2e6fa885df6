/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/forked.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { EXCHANGE_SIZE = 1 << 20, SENTENCE_SIZE = 512, LIMIT_S = 600, FAILED_STATUS = 9 };

/* What the processes share. */
typedef struct forked_area {
  _Atomic int arrived, round, living;
  _Atomic int failed; /* 1 + the rank whose sentence counts */
  char sentence[SENTENCE_SIZE];
  unsigned char exchange[EXCHANGE_SIZE];
  unsigned char shared[FORKED_SHARED];
} forked_area;

static void pause_shortly(void) {
  struct timespec moment = {0, 20000};
  nanosleep(&moment, NULL);
}

/* True when all who live have arrived; false when somebody has failed. */
static bool meet(forked_area *area) {
  int round = atomic_load(&area->round);
  atomic_fetch_add(&area->arrived, 1);
  while (atomic_load(&area->round) == round) {
    int arrived = atomic_load(&area->arrived);
    if (arrived >= atomic_load(&area->living) &&
        atomic_compare_exchange_strong(&area->arrived, &arrived, 0)) {
      atomic_fetch_add(&area->round, 1);
      return true;
    }
    if (atomic_load(&area->failed)) {
      return false;
    }
    pause_shortly();
  }
  return true;
}

static int gather(void *context, const void *send, void *receive, size_t size) {
  forked *self = context;
  if (size > EXCHANGE_SIZE / (size_t)self->size) {
    return 1;
  }
  memcpy(self->area->exchange + (size_t)self->rank * size, send, size);
  if (!meet(self->area)) {
    return 1;
  }
  memcpy(receive, self->area->exchange, (size_t)self->size * size);
  return !meet(self->area);
}

void forked_barrier(forked *self) {
  if (!meet(self->area)) {
    exit(EXIT_SUCCESS); /* somebody else has said why */
  }
}

void forked_require(forked *self, bool holds, const char *format, ...) {
  int nobody = 0;
  va_list arguments;
  if (holds) {
    return;
  }
  if (atomic_compare_exchange_strong(&self->area->failed, &nobody, 1 + self->rank)) {
    va_start(arguments, format);
    vsnprintf(self->area->sentence, SENTENCE_SIZE, format, arguments);
    va_end(arguments);
  }
  _exit(FAILED_STATUS);
}

_Noreturn void forked_die(void) {
  raise(SIGKILL);
  _exit(FAILED_STATUS);
}

/* The life of one rank. */
_Noreturn static void live(forked_area *area, int rank, int ranks, forked_function function) {
  static forked self;
  self.rank = rank;
  self.size = ranks;
  self.area = area;
  self.shared = area->shared;
  self.boot = (lcomm_bootstrap){rank, ranks, &self, gather};
  alarm(LIMIT_S);
  lcomm_identity mine;
  memset(&mine, 0, sizeof(mine));
  snprintf(mine.host, sizeof(mine.host), "here");
  mine.host_hash = 1;
  mine.pid = (uint64_t)getpid();
  if (gather(&self, &mine, self.identities, sizeof(mine)) == 0) {
    function(&self);
  }
  exit(EXIT_SUCCESS);
}

/* How a process that should not have failed has ended; "" when well. */
static void read_end(int rank, int status, bool dies, char *text, size_t size) {
  bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  if (dies ? killed : WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS) {
    return;
  }
  snprintf(text, size,
           WIFSIGNALED(status) ? "rank %d was ended by signal %d" : "rank %d ended with status %d",
           rank, WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

void forked_run_dying(int ranks, int dies, forked_function function) {
  pid_t children[FORKED_MAX];
  char text[SENTENCE_SIZE + 64] = "";
  assert_in_range(ranks, 1, FORKED_MAX);
  forked_area *area =
      mmap(NULL, sizeof *area, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(area, MAP_FAILED);
  atomic_store(&area->living, ranks);
  fflush(NULL);
  for (int rank = 0; rank < ranks; rank++) {
    children[rank] = fork();
    if (children[rank] == 0) {
      live(area, rank, ranks, function);
    }
  }
  for (int left = ranks; left > 0; left--) {
    int status = 0, rank = 0;
    pid_t child = wait(&status);
    while (rank < ranks && children[rank] != child) {
      rank++;
    }
    atomic_fetch_sub(&area->living, rank == dies);
    read_end(rank, status, rank == dies, text, sizeof(text));
    if (text[0] != '\0' && !atomic_load(&area->failed)) {
      atomic_store(&area->failed, 1 + ranks); /* let the others go */
    }
  }
  int failed = atomic_load(&area->failed);
  if (failed > 0 && failed <= ranks) {
    snprintf(text, sizeof(text), "rank %d: %s", failed - 1, area->sentence);
  }
  munmap(area, sizeof *area);
  if (text[0] != '\0') {
    fail_msg("%s", text);
  }
}

void forked_run(int ranks, forked_function function) {
  forked_run_dying(ranks, FORKED_NOBODY, function);
}

void forked_test(void **state) {
  const forked_property *property = *state;
  int victim = property->victim > 0 ? property->victim : FORKED_NOBODY;
  size_t most = sizeof property->ranks / sizeof *property->ranks;
  for (size_t i = 0; i < most && property->ranks[i] > 0; i++) {
    forked_run_dying(property->ranks[i], victim, property->function);
  }
}
