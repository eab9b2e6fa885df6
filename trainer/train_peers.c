/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/train_peers.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* ---------------------------------------------------------------- failures */

__attribute__((format(printf, 4, 0))) static void
fail(failure *why, int exit_code, failure_speaker speaker, const char *format, va_list arguments) {
  vsnprintf(why->text, sizeof why->text, format, arguments);
  why->exit_code = exit_code;
  why->speaker = speaker;
}

int failure_set(failure *why, int exit_code, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fail(why, exit_code, SPEAKER_EACH_RANK, format, arguments);
  va_end(arguments);
  return -1;
}

int failure_set_common(failure *why, int exit_code, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fail(why, exit_code, SPEAKER_FIRST_RANK, format, arguments);
  va_end(arguments);
  return -1;
}

/* One write per sentence, so that those of several ranks do not mix. */
void failure_print(int rank, const failure *what) {
  if (what->speaker == SPEAKER_EACH_RANK) {
    fprintf(stderr, "train: rank %d: %s\n", rank, what->text);
  } else if (rank == 0) {
    fprintf(stderr, "train: %s\n", what->text);
  }
}

/* ----------------------------------------------------------------- signals */

static const int watched[] = {SIGINT, SIGTERM};
enum { WATCHED = sizeof watched / sizeof watched[0] };

static volatile sig_atomic_t noted;

static void note(int number) {
  noted = number;
  for (int i = 0; i < WATCHED; i++) {
    signal(watched[i], SIG_DFL);
  }
}

static void watch(int number, void (*handler)(int)) {
  struct sigaction now, noting = {.sa_handler = handler, .sa_flags = SA_RESTART};
  sigemptyset(&noting.sa_mask);
  if (sigaction(number, NULL, &now) == 0 && now.sa_handler != SIG_IGN) {
    sigaction(number, &noting, NULL);
  }
}

void stop_signal_watch(void) {
  for (int i = 0; i < WATCHED; i++) {
    watch(watched[i], note);
  }
}

static volatile sig_atomic_t leave_noted;

static void note_leave(int number) {
  leave_noted = 1;
  signal(number, SIG_DFL);
}

void leave_signal_watch(void) {
  watch(SIGTERM, note_leave);
}

int leave_signal_noted(void) {
  return leave_noted;
}

int stop_signal_noted(void) {
  return noted != 0;
}

lcomm_status stop_signal_ask(lcomm_comm *comm, stop_signal *asked) {
  asked->mine = noted;
  return lcomm_iallreduce(comm, &asked->mine, &asked->agreed, 1, LCOMM_INT32, LCOMM_MAX,
                          &asked->request);
}

lcomm_status stop_signal_wait(lcomm_comm *comm, stop_signal *asked) {
  return lcomm_wait(comm, &asked->request);
}

int stop_signal_check(const stop_signal *asked, failure *why) {
  if (asked->agreed == 0) {
    return 0;
  }
  return failure_set_common(why, EXIT_SIGNAL + asked->agreed,
                            "stopped after a step by a signal: %s", strsignal(asked->agreed));
}

int stop_signal_check_now(lcomm_comm *comm, failure *why) {
  stop_signal stop = {0};
  lcomm_status status = stop_signal_ask(comm, &stop);
  if (status == LCOMM_OK) {
    status = stop_signal_wait(comm, &stop);
  }
  if (peers_check(comm, status, "asking for a signal", why)) {
    return -1;
  }
  return stop_signal_check(&stop, why);
}

/* --------------------------------------------------------------- exchanges */

enum { PIECES = 4, PIECE_BITS = 16 };

int peers_create(lcomm_comm *comm, peers *made) {
  memset(made, 0, sizeof *made);
  made->comm = comm;
  made->rank = lcomm_rank(comm);
  made->size = lcomm_size(comm);
  size_t all = (size_t)made->size * PEERS_VALUES_MAX;
  made->send = malloc(PEERS_VALUES_MAX * PIECES * sizeof(float));
  made->receive = malloc(all * PIECES * sizeof(float));
  made->all = malloc(all * sizeof(uint64_t));
  if (made->send && made->receive && made->all) {
    return 0;
  }
  peers_destroy(made);
  return -1;
}

void peers_destroy(peers *self) {
  free(self->send);
  free(self->receive);
  free(self->all);
  memset(self, 0, sizeof *self);
}

int peers_check(const lcomm_comm *comm, lcomm_status status, const char *doing, failure *why) {
  if (status == LCOMM_OK) {
    return 0;
  }
  const char *sentence = lcomm_last_error(comm);
  if (!sentence || !*sentence) {
    sentence = lcomm_status_string(status);
  }
  return failure_set(why, EXIT_SETUP, "%s failed: %s", doing, sentence);
}

/* Each value becomes four float32 of 16 bits, which are exact. */
static void to_pieces(const uint64_t *values, int count, float *pieces) {
  for (int i = 0; i < count; i++) {
    for (int k = 0; k < PIECES; k++) {
      *pieces++ = (float)(values[i] >> (PIECE_BITS * k) & 0xffff);
    }
  }
}

static void from_pieces(const float *pieces, int count, uint64_t *values) {
  memset(values, 0, (size_t)count * sizeof *values);
  for (int i = 0; i < count; i++) {
    for (int k = 0; k < PIECES; k++) {
      values[i] |= (uint64_t)*pieces++ << (PIECE_BITS * k);
    }
  }
}

const uint64_t *peers_gather(peers *self, const uint64_t *values, int count, failure *why) {
  to_pieces(values, count, self->send);
  uint64_t pieces = (uint64_t)count * PIECES;
  lcomm_status status =
      lcomm_allgather(self->comm, self->send, self->receive, pieces, LCOMM_FLOAT32);
  if (peers_check(self->comm, status, "an exchange of counters", why)) {
    return NULL;
  }
  from_pieces(self->receive, count * self->size, self->all);
  return self->all;
}

int peers_sum(peers *self, uint64_t *values, int count, failure *why) {
  const uint64_t *all = peers_gather(self, values, count, why);
  if (!all) {
    return -1;
  }
  memset(values, 0, (size_t)count * sizeof *values);
  for (int rank = 0; rank < self->size; rank++) {
    for (int i = 0; i < count; i++) {
      values[i] += all[rank * count + i];
    }
  }
  return 0;
}

int peers_sum_real(peers *self, double *value, failure *why) {
  uint64_t bits;
  memcpy(&bits, value, sizeof bits);
  const uint64_t *all = peers_gather(self, &bits, 1, why);
  if (!all) {
    return -1;
  }
  *value = 0.0;
  for (int rank = 0; rank < self->size; rank++) {
    double part;
    memcpy(&part, &all[rank], sizeof part);
    *value += part;
  }
  return 0;
}

/* The reports of all ranks are {exit code, hash of the sentence}. */
static int common_verdict(const peers *self, const uint64_t *reports, failure *mine) {
  int failed = -1;
  int same = 1;
  for (int rank = 0; rank < self->size; rank++) {
    if (reports[2 * rank] && failed < 0) {
      failed = rank;
    }
    same &= reports[2 * rank] == reports[0] && reports[2 * rank + 1] == reports[1];
  }
  if (failed < 0) {
    return 0;
  }
  if (same) {
    mine->speaker = SPEAKER_FIRST_RANK;
  }
  if (mine->exit_code == 0) {
    failure_set(mine, (int)reports[2 * failed],
                "stops because rank %d failed; the message of rank %d says why", failed, failed);
  }
  return -1;
}

int peers_agree(peers *self, failure *mine) {
  uint64_t report[2] = {(uint64_t)mine->exit_code, 0};
  if (mine->exit_code) {
    report[1] = XXH3_64bits(mine->text, strlen(mine->text));
  }
  failure exchange = {0};
  const uint64_t *reports = peers_gather(self, report, 2, &exchange);
  if (reports) {
    return common_verdict(self, reports, mine);
  }
  if (mine->exit_code == 0) {
    *mine = exchange;
  }
  return -1;
}

/* ---------------------------------------------------------------- replicas */

int replicas_describe(const uint64_t *hashes, int size, char *text, size_t text_size) {
  int differing = 0;
  size_t used = 0;
  text[0] = '\0';
  for (int rank = 1; rank < size; rank++) {
    if (hashes[rank] == hashes[0]) {
      continue;
    }
    differing++;
    if (used >= text_size) {
      continue;
    }
    int length = snprintf(text + used, text_size - used, "%srank %d has 0x%016" PRIx64,
                          differing > 1 ? ", " : "", rank, hashes[rank]);
    used += length > 0 ? (size_t)length : 0;
  }
  return differing;
}

int replicas_compare(peers *ranks, const float *weights, size_t count, int epoch, uint64_t *hash,
                     failure *why) {
  uint64_t mine = XXH3_64bits(weights, count * sizeof *weights);
  const uint64_t *hashes = peers_gather(ranks, &mine, 1, why);
  if (!hashes) {
    return -1;
  }
  char text[512];
  int differing = replicas_describe(hashes, ranks->size, text, sizeof text);
  *hash = mine;
  if (differing == 0) {
    return 0;
  }
  return failure_set(why, EXIT_TRAINING,
                     "the weights of %d of %d ranks differ from rank 0 after epoch %d (rank 0 has "
                     "0x%016" PRIx64 ", %s); the run is worthless, please report it with the "
                     "policy and the number of ranks and nodes",
                     differing, ranks->size, epoch, hashes[0], text);
}
