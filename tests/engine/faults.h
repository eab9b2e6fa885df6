/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_ENGINE_FAULTS_H
#define LCOMM_TESTS_ENGINE_FAULTS_H

/* Faults on purpose: ranks make random collectives until one of them is killed,
 * stopped, or does not come, or until a link between them carries nothing any more. */

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "libcomm/base/clock.h"
#include "libcomm/engine/engine.h"
#include "tests/support/forked.h"

typedef enum fault_kind {
  FAULT_KILLED,
  FAULT_KILLED_PARENT, /* it leaves a child */
  FAULT_STOPPED,
  FAULT_LATE, /* for two time-outs */
  FAULT_LINK, /* between culprit and other */
  FAULT_HOST  /* between the culprit's host and all others */
} fault_kind;

typedef struct fault_case {
  int ranks, per_host; /* ranks of each host; 0: all are on this one */
  fault_kind kind;
  int culprit, other;
  const char *transport;
  double timeout_s;
  int seed;
  bool threaded;
  const char *says; /* is in the sentence; NULL: "rank <culprit> " */
} fault_case;

enum { FAULT_RANKS_MAX = 8, FAULT_TEXT_MAX = 480 };

/* What the ranks share. */
typedef struct fault_board {
  _Atomic int written, over;
  char text[FAULT_RANKS_MAX][FAULT_TEXT_MAX];
} fault_board;

_Static_assert(sizeof(fault_board) <= FORKED_SHARED, "the board fits");

static fault_case the_fault;

static inline void fault_sleep(double seconds) {
  struct timespec pause = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  nanosleep(&pause, NULL);
}

/* ---------------------------------------------------------- broken links */

enum { LOST = 0x4c6f7374 };

static bool cut[FORKED_MAX];
static lcomm_transport_table broken[LCOMM_LINKS_MAX];
static const lcomm_transport_table *whole[LCOMM_LINKS_MAX];

static inline const lcomm_transport_table *whole_of(const lcomm_transport *transport) {
  return whole[transport->table - broken];
}

static lcomm_status lose_send(lcomm_transport *transport, int peer, uint32_t tag, const void *bytes,
                              size_t size, lcomm_transfer *transfer) {
  if (cut[peer]) {
    memset(transfer, 0, sizeof *transfer);
    transfer->opaque[3] = LOST;
    return LCOMM_OK;
  }
  lcomm_status status = whole_of(transport)->send(transport, peer, tag, bytes, size, transfer);
  transfer->opaque[3] = transfer->opaque[3] == LOST ? 0 : transfer->opaque[3];
  return status;
}

static lcomm_status test_lost(lcomm_transport *transport, lcomm_transfer *transfer, bool *over,
                              size_t *size) {
  *over = false;
  return transfer->opaque[3] == LOST ? LCOMM_OK
                                     : whole_of(transport)->test(transport, transfer, over, size);
}

static void cancel_lost(lcomm_transport *transport, lcomm_transfer *transfer) {
  if (transfer->opaque[3] != LOST) {
    whole_of(transport)->cancel(transport, transfer);
  }
}

static void lose_notice(lcomm_transport *transport, int peer, const void *message) {
  if (!cut[peer]) {
    whole_of(transport)->control.send(transport, peer, message);
  }
}

static void lose_error(lcomm_transport *transport, int peer, const void *message) {
  if (!cut[peer]) {
    whole_of(transport)->control.send_error(transport, peer, message);
  }
}

/* From now on nothing leaves for the peers that are cut. */
static inline void break_links(const lcomm_comm *comm) {
  for (int i = 0; i < comm->links.count; i++) {
    lcomm_transport *transport = comm->links.open[i];
    whole[i] = transport->table;
    broken[i] = *transport->table;
    broken[i].send = lose_send;
    broken[i].test = test_lost;
    broken[i].cancel = cancel_lost;
    broken[i].control.send = lose_notice;
    broken[i].control.send_error = lose_error;
    transport->table = &broken[i];
  }
}

static inline bool is_cut(int a, int b) {
  if (the_fault.kind == FAULT_LINK) {
    return (a == the_fault.culprit && b == the_fault.other) ||
           (b == the_fault.culprit && a == the_fault.other);
  }
  int host = the_fault.culprit / the_fault.per_host;
  return (a / the_fault.per_host == host) != (b / the_fault.per_host == host);
}

/* -------------------------------------------------------------- the fault */

static void *end_later(void *delay_us) {
  fault_sleep(1e-6 * (double)(uintptr_t)delay_us);
  kill(getpid(), the_fault.kind == FAULT_STOPPED ? SIGSTOP : SIGKILL);
  return NULL;
}

static inline bool is_breaking(void) {
  return the_fault.kind == FAULT_LINK || the_fault.kind == FAULT_HOST;
}

/* The culprit's part, before its calls. */
static inline void prepare_fault(forked *self, const lcomm_comm *comm) {
  pthread_t thread;
  if (is_breaking()) {
    for (int peer = 0; peer < self->size; peer++) {
      cut[peer] = is_cut(self->rank, peer);
    }
    return;
  }
  if (self->rank != the_fault.culprit || the_fault.kind == FAULT_LATE) {
    return;
  }
  (void)comm;
  if (the_fault.kind == FAULT_KILLED_PARENT && fork() == 0) {
    fault_board *board = (void *)self->shared;
    for (int tries = 0; tries < 600 && !atomic_load(&board->over); tries++) {
      fault_sleep(0.1);
    }
    _exit(0);
  }
  uintptr_t delay_us = 1000 + (uintptr_t)(the_fault.seed * 7919 % 40000);
  forked_require(self, pthread_create(&thread, NULL, end_later, (void *)delay_us) == 0, "thread");
}

/* Call number `number`, the same on all ranks. */
static inline lcomm_status call(lcomm_comm *comm, unsigned number) {
  static float values[300000], all[FAULT_RANKS_MAX * 20000];
  unsigned dice = (number + (unsigned)the_fault.seed) * 2654435761u >> 16;
  uint64_t count = 1 + dice % (dice % 3 == 0 ? 300000 : 3000);
  switch (dice % 5) {
  case 0:
    return lcomm_broadcast(comm, values, count, LCOMM_FLOAT32, (int)(dice % (unsigned)comm->size));
  case 1:
    return lcomm_allgather(comm, values, all, count % 20000, LCOMM_FLOAT32);
  case 2:
    return lcomm_barrier(comm);
  default:
    return lcomm_allreduce(comm, values, values, count, LCOMM_FLOAT32, LCOMM_SUM);
  }
}

enum { CALLS_BEFORE = 40 };

static inline lcomm_status call_until_failure(forked *self, lcomm_comm *comm) {
  lcomm_status status = LCOMM_OK;
  for (unsigned i = 0; status == LCOMM_OK; i++) {
    if (i == CALLS_BEFORE && is_breaking()) {
      break_links(comm);
    }
    if (i == CALLS_BEFORE && the_fault.kind == FAULT_LATE && self->rank == the_fault.culprit) {
      fault_sleep(2 * the_fault.timeout_s);
    }
    status = call(comm, i);
  }
  return status;
}

/* ------------------------------------------------------------ the verdict */

/* The sentence without who reports it and who found it. */
static inline const char *essence(const char *sentence) {
  const char *said = strstr(sentence, ": stopped by ");
  const char *text = strstr(said ? said + 13 : sentence, "): ");
  return text ? text + 3 : sentence;
}

static inline bool may_be_named(int rank) {
  if (the_fault.kind == FAULT_HOST) {
    return true; /* the ranks at its border */
  }
  return rank == the_fault.culprit || (the_fault.kind == FAULT_LINK && rank == the_fault.other);
}

static inline void require_sentence(forked *self, const char *sentence) {
  char wanted[32];
  const char *text = essence(sentence);
  snprintf(wanted, sizeof(wanted), "rank %d ", the_fault.culprit);
  forked_require(self, strstr(text, the_fault.says ? the_fault.says : wanted) != NULL,
                 "rank %d is the fault, but %s", the_fault.culprit, sentence);
  for (const char *at = strstr(text, "rank "); at; at = strstr(at + 1, "rank ")) {
    int rank = -1;
    forked_require(self, sscanf(at, "rank %d", &rank) != 1 || may_be_named(rank),
                   "rank %d is the fault, but rank %d is named: %s", the_fault.culprit, rank,
                   sentence);
  }
}

/* All have written what they were told; nobody needs the culprit any more. */
static inline void end_culprit(forked *self, fault_board *board, int reporters) {
  double begin_s = lcomm_clock_s();
  atomic_fetch_add(&board->written, 1);
  while (atomic_load(&board->written) < reporters && lcomm_clock_s() - begin_s < 60) {
    fault_sleep(0.001);
  }
  atomic_store(&board->over, 1);
  if (the_fault.kind == FAULT_STOPPED) {
    kill((pid_t)self->identities[the_fault.culprit].pid, SIGKILL);
  }
}

/* Do all that report say the same? */
static inline void compare_sentences(forked *self, const fault_board *board) {
  const char *mine = board->text[self->rank];
  for (int rank = 0; rank < self->size && the_fault.kind != FAULT_HOST; rank++) {
    const char *theirs = board->text[rank];
    forked_require(self, theirs[0] == '\0' || strcmp(essence(theirs), essence(mine)) == 0,
                   "'%s', but '%s'", mine, theirs);
  }
}

static void live_through_fault(forked *self) {
  char host[32];
  fault_board *board = (void *)self->shared;
  lcomm_config config = LCOMM_CONFIG_INIT;
  lcomm_comm *comm = NULL;
  bool dies = the_fault.kind <= FAULT_STOPPED;
  config.timeout_s = the_fault.timeout_s;
  config.policy = "net=int8 min=1";
  config.progress = the_fault.threaded ? LCOMM_PROGRESS_THREAD : LCOMM_PROGRESS_CALLS;
  setenv("LCOMM_TRANSPORT", the_fault.transport, 1);
  if (the_fault.per_host > 0) {
    snprintf(host, sizeof(host), "host%d", self->rank / the_fault.per_host);
    setenv("LCOMM_HOSTID", host, 1);
  }
  lcomm_status status = lcomm_create(&self->boot, &config, &comm);
  forked_require(self, status == LCOMM_OK, "%s", lcomm_last_error(NULL));
  prepare_fault(self, comm);
  status = call_until_failure(self, comm);
  snprintf(board->text[self->rank], FAULT_TEXT_MAX, "%s", lcomm_last_error(comm));
  bool remembered = lcomm_destroy(comm) == status;
  end_culprit(self, board, self->size - dies);
  require_sentence(self, board->text[self->rank]);
  compare_sentences(self, board);
  forked_require(self, remembered, "destroy forgot the error");
}

static inline void run_fault(fault_case fault) {
  the_fault = fault;
  forked_run_dying(fault.ranks, fault.kind <= FAULT_STOPPED ? fault.culprit : FORKED_NOBODY,
                   live_through_fault);
}

#endif
