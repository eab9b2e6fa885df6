/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_TRAIN_PEERS_H
#define TRAINER_TRAIN_PEERS_H

#include <stddef.h>
#include <stdint.h>

#include <libcomm.h>

/* What the ranks tell each other besides gradients: that one of them failed,
 * that a signal asks for the end, exact numbers, a hash of their weights. */

/* ---------------------------------------------------------------- failures
 * Functions that can fail return 0 or -1 and fill a failure: one sentence, the
 * exit code, and who prints it. */

enum { EXIT_SETUP = 2, EXIT_TRAINING = 3, EXIT_SIGNAL = 128 /* and its number */ };

typedef enum failure_speaker {
  SPEAKER_EACH_RANK, /* the sentence belongs to the rank that failed */
  SPEAKER_FIRST_RANK /* every rank has the same sentence, rank 0 prints it */
} failure_speaker;

typedef struct failure {
  int exit_code; /* 0: nothing failed */
  failure_speaker speaker;
  char text[1024];
} failure;

/* Both return -1, so that a caller can say `return failure_set(...)`. */
__attribute__((format(printf, 3, 4))) int failure_set(failure *why, int exit_code,
                                                      const char *format, ...);
__attribute__((format(printf, 3, 4))) int failure_set_common(failure *why, int exit_code,
                                                             const char *format, ...);

/* Print the sentence, if this rank is the one to do so. */
void failure_print(int rank, const failure *what);

/* ----------------------------------------------------------------- signals
 * The first SIGINT or SIGTERM, to one rank or to all, ends the run in order
 * after the step that it comes in; a second one ends the process at once. */

/* From now on the first signal is only noted. What is ignored stays ignored. */
void stop_signal_watch(void);

/* Where a rank can leave without the others: its first SIGTERM from now on is noted for that, and
 * stops nobody. */
void leave_signal_watch(void);
int leave_signal_noted(void);

/* Has this rank noted a signal? Then nobody needs the result of its work. */
int stop_signal_noted(void);

/* One all-reduce of the noted signals. It starts before the gradients leave
 * and ends after them, so no step waits for it. One at a time. */
typedef struct stop_signal {
  int32_t mine;
  int32_t agreed; /* the signal that came to any rank; 0: none. Valid after the wait. */
  lcomm_request request;
} stop_signal;

lcomm_status stop_signal_ask(lcomm_comm *comm, stop_signal *asked);
lcomm_status stop_signal_wait(lcomm_comm *comm, stop_signal *asked);

/* Returns 0 without a signal, else -1 on all ranks. Valid after the wait. */
int stop_signal_check(const stop_signal *asked, failure *why);

/* Ask, wait and check, where no step does. Collective. */
int stop_signal_check_now(lcomm_comm *comm, failure *why);

/* -------------------------------------------------------------- exchanges
 * A policy may compress sums, never all-gathers. So exact numbers travel by
 * all-gather, as float32 pieces of 16 bits each, and every rank adds them
 * itself in rank order. All of these are collective. */

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

/* ---------------------------------------------------------------- replicas
 * After every step all ranks hold the same weights, to the bit. */

/* Name the ranks whose hash differs from that of rank 0 in a sentence.
 * Returns how many there are; the text is cut if it does not fit. */
int replicas_describe(const uint64_t *hashes, int size, char *text, size_t text_size);

/* Compare the weights of all ranks. Collective. Returns 0 and the hash, or -1
 * on every rank if they differ. */
int replicas_compare(peers *ranks, const float *weights, size_t count, int epoch, uint64_t *hash,
                     failure *why);

/* ----------------------------------------------------------------- traffic
 * What was sent, of one rank or summed over all. */

enum { TRAFFIC_COUNTERS = 2 * LCOMM_LINK_COUNT + 6 };

typedef union traffic {
  struct {
    uint64_t sent_bytes[LCOMM_LINK_COUNT];
    uint64_t exact_bytes[LCOMM_LINK_COUNT]; /* the same messages as float32 */
    uint64_t encode_us;
    uint64_t decode_us;
    uint64_t wire_us; /* with a message in flight, summed over operations */
    uint64_t wait_us;
    uint64_t communication_us; /* of gradients, see struct overlap */
    uint64_t exposed_us;
  };
  uint64_t counters[TRAFFIC_COUNTERS]; /* all of them, to add and subtract */
} traffic;

/* Read the counters of this rank; those of the overlap are 0. */
int traffic_read(const lcomm_comm *comm, traffic *now, failure *why);

/* now - before */
traffic traffic_since(const traffic *now, const traffic *before);

void traffic_add(traffic *sum, const traffic *more);

/* Replace the counters of this rank by the sums over all ranks. Collective. */
int traffic_sum(peers *ranks, traffic *counters, failure *why);

/* float32 bytes per byte sent on a link; 0 if nothing was sent. */
double traffic_ratio(const traffic *counters, lcomm_link link);

#endif
