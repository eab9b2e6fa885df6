/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_PROBE_H
#define LCOMM_ENGINE_PROBE_H

/* Probes: a rank that waits asks others what they wait for.
 *
 * A probe is answered by whoever is inside libcomm: in a wait, in a test, in the
 * progress thread. So a rank that does not answer is stopped, dead or computing, or
 * the link to it is broken. To tell these apart a probe may also ask whether a third
 * rank answers the one that is asked, and pass on what that one said.
 *
 * Probes and answers may be lost, so they are repeated.
 */

#include <stdbool.h>
#include <stdint.h>

#include "libcomm/engine/fingerprint.h"

struct lcomm_comm;

/* What a rank is doing. */
typedef enum lcomm_activity {
  LCOMM_ACTIVITY_IDLE,     /* no operation is in flight */
  LCOMM_ACTIVITY_WAITS,    /* the oldest operation waits for a message */
  LCOMM_ACTIVITY_DEVICE,   /* it waits for its own device */
  LCOMM_ACTIVITY_WORKS,    /* it does neither: it computes */
  LCOMM_ACTIVITY_ELSEWHERE /* as IDLE, and its program waits in another communicator */
} lcomm_activity;

/* A rank that is waited for. */
typedef struct lcomm_awaited {
  int32_t rank;
  uint32_t step;      /* of the waiter's schedule */
  int32_t unanswered; /* it does not answer the waiter */
} lcomm_awaited;

enum { LCOMM_AWAITED_MAX = 24 };

/* What a rank says of itself. */
typedef struct lcomm_wait_state {
  int32_t activity;
  int32_t collective;            /* of the oldest operation in flight */
  uint32_t sequence;             /* its number */
  lcomm_fingerprint fingerprint; /* of that operation */
  uint32_t next[2];              /* numbers of the next operations, by sequence space */
  uint32_t awaited_count;
  uint64_t elsewhere_host, elsewhere_pid;   /* ELSEWHERE: for this process, or pid 0: not known */
  lcomm_awaited awaited[LCOMM_AWAITED_MAX]; /* WAITS: by that operation, all of them */
} lcomm_wait_state;

/* What is known of a rank. */
typedef struct lcomm_contact {
  double asked_s;       /* when the first probe was sent that it has not answered; 0: none */
  double sent_s;        /* when the last probe was sent */
  double answered_s;    /* when its last answer came; 0: never */
  uint32_t asked_round; /* number of the first unanswered probe */
  lcomm_wait_state state;

  /* Said by others. */
  double relayed_s, denied_s; /* when somebody last said that it answers, or does not */
  lcomm_wait_state relayed;
  bool visited; /* in the search along who waits for whom */
} lcomm_contact;

typedef struct lcomm_probes {
  lcomm_contact *contacts; /* per rank */
  int *queue;              /* room for the search: a rank each */
  double looked_s;         /* when this rank last looked for the reason of a wait */
  double next_s;           /* time of the next question to third ranks */
  uint32_t round;
} lcomm_probes;

/* Control messages of peers. */
void lcomm_probe_receive(struct lcomm_comm *comm, const void *message);
void lcomm_probe_receive_answer(struct lcomm_comm *comm, const void *message);

/* Ask a rank what it does, and whether `about` answers it (-1: nobody). */
void lcomm_probe_send(struct lcomm_comm *comm, int peer, int about, double now_s);

/* What this rank is doing in an operation; NULL: in none. */
struct lcomm_operation;
lcomm_wait_state lcomm_probe_state(const struct lcomm_comm *comm,
                                   const struct lcomm_operation *operation);

/* Has the rank not answered for long? Has it answered lately? Seconds of silence that
 * count depend on the time-out. */
bool lcomm_probe_is_silent(const struct lcomm_comm *comm, int peer, double now_s);
bool lcomm_probe_answers(const struct lcomm_comm *comm, int peer, double now_s);

/* Seconds between two rounds of probes, and of silence that count. */
double lcomm_probe_interval_s(const struct lcomm_comm *comm);
double lcomm_probe_silence_s(const struct lcomm_comm *comm);

#endif
