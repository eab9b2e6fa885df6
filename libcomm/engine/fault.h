/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_FAULT_H
#define LCOMM_ENGINE_FAULT_H

/* A fault: why a communicator fails, found by one rank and reported alike by all.
 *
 * Several ranks may find faults at the same moment, of which some are only consequences of others.
 * So a rank that finds one, or is told of one, tells all others, listens for a moment to what they
 * found, and only then reports the strongest fault. Every rank says once what it knows, so all have
 * seen every fault and report the same one. A rank that sends nothing delays the report by at most
 * half a second.
 *
 * Where links are made when they are needed, a rank tells those that it has a link to, and again
 * whenever it hears of a stronger fault; so each fault reaches all over a few ranks, and
 * everybody listens for the whole half second.
 */

#include <stdbool.h>
#include <stdint.h>

#include "libcomm/base/error.h"

struct lcomm_comm;

enum { LCOMM_NO_CULPRIT = -1 };

/* Of two faults the stronger is reported. The order: what a rank found on itself or in bytes that
 * came, then a broken link, then silence; among equals the lower author; of one author the sentence
 * that comes first by its bytes. An accusation of a rank that has told of another fault itself
 * counts less than any other fault: such a rank works. */
typedef struct lcomm_fault {
  int32_t status;
  int32_t author;             /* the rank that found it */
  int32_t culprit;            /* the rank whose fault it is, or LCOMM_NO_CULPRIT */
  char text[LCOMM_ERROR_MAX]; /* a sentence that begins with the author */
} lcomm_fault;

/* How long a rank waits for ranks that have not sent what they know. */
#define LCOMM_FAULT_LISTEN_S 0.5

typedef struct lcomm_agreement {
  double listen_s; /* LCOMM_FAULT_LISTEN_S, or 0 where nobody can speak */
  bool running;    /* the moment of listening */
  bool found;      /* there is a fault */
  bool news;       /* the others have not been told of it */
  lcomm_fault fault;
  bool *told;    /* per rank: it was told once, which is never lost */
  bool *spoke;   /* per rank: it has said what it knows */
  bool *cleared; /* per rank: it has told of a fault that is not its own */
} lcomm_agreement;

/* Agree on a fault that this rank (teller == its own) or a peer reports, and make the result the
 * communicator's error. While an agreement runs, the fault only joins it. Returns the status in
 * force. */
lcomm_status lcomm_fault_agree(struct lcomm_comm *comm, const lcomm_fault *fault, int teller);

/* The same for a control message. */
lcomm_status lcomm_fault_receive(struct lcomm_comm *comm, const void *message);

/* Make a fault the communicator's error and tell all, without listening: for what all
 * others find by themselves. */
lcomm_status lcomm_fault_declare(struct lcomm_comm *comm, const lcomm_fault *fault);

/* Tell all peers that this rank has a link to. */
void lcomm_fault_send(struct lcomm_comm *comm, const lcomm_fault *fault);

#endif
