/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/peers.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

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

static void cut(const uint64_t *values, int count, float *pieces) {
  for (int i = 0; i < count; i++) {
    for (int k = 0; k < PIECES; k++) {
      *pieces++ = (float)(values[i] >> (PIECE_BITS * k) & 0xffff);
    }
  }
}

static void join(const float *pieces, int count, uint64_t *values) {
  memset(values, 0, (size_t)count * sizeof *values);
  for (int i = 0; i < count; i++) {
    for (int k = 0; k < PIECES; k++) {
      values[i] |= (uint64_t)*pieces++ << (PIECE_BITS * k);
    }
  }
}

const uint64_t *peers_gather(peers *self, const uint64_t *values, int count, failure *why) {
  cut(values, count, self->send);
  uint64_t pieces = (uint64_t)count * PIECES;
  lcomm_status status =
      lcomm_allgather(self->comm, self->send, self->receive, pieces, LCOMM_FLOAT32);
  if (peers_check(self->comm, status, "an exchange of counters", why)) {
    return NULL;
  }
  join(self->receive, count * self->size, self->all);
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
static int judge(const peers *self, const uint64_t *reports, failure *mine) {
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
    return judge(self, reports, mine);
  }
  if (mine->exit_code == 0) {
    *mine = exchange;
  }
  return -1;
}
