/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_PEERS_H
#define TRAINER_PEERS_H

#include <stdint.h>

#include <libcomm.h>

#include "trainer/failure.h"

/* Exact exchanges of a few numbers between the ranks. A policy may compress
 * sums, never all-gathers; so numbers travel by all-gather, as float32 pieces
 * of 16 bits each, and every rank adds them itself in rank order. All of
 * these are collective. */

enum { PEERS_VALUES_MAX = 32 };

typedef struct peers {
  lcomm_comm *comm;
  int rank;
  int size;
  float *send;
  float *receive;
  uint64_t *all;
} peers;

/* Not collective. Returns 0, or -1 without memory. */
int peers_create(lcomm_comm *comm, peers *made);
void peers_destroy(peers *self);

/* values[rank*count + i] of all ranks; NULL with `why` if it failed. Valid
 * until the next exchange. */
const uint64_t *peers_gather(peers *self, const uint64_t *values, int count, failure *why);

/* Replace the values by their sums over the ranks. */
int peers_sum(peers *self, uint64_t *values, int count, failure *why);
int peers_sum_real(peers *self, double *value, failure *why);

/* Do all ranks go on? `mine` says whether this rank has failed. Returns 0 if
 * none has; else -1 on every rank, and a rank that has not failed itself gets
 * a sentence that names one that has. Ranks that failed for the same reason
 * leave it to rank 0 to say so. */
int peers_agree(peers *self, failure *mine);

/* Returns 0 for LCOMM_OK, else -1 with libcomm's sentence in `why`. */
int peers_check(const lcomm_comm *comm, lcomm_status status, const char *doing, failure *why);

#endif
