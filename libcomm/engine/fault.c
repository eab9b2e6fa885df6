/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The agreement of all ranks on one fault. */

#include "libcomm/engine/fault.h"

#include <stdio.h>
#include <string.h>

#include "libcomm/base/backoff.h"
#include "libcomm/base/clock.h"
#include "libcomm/base/text.h"
#include "libcomm/engine/lost_ranks.h"
#include "libcomm/engine/operation.h"

static const double AGAIN_S = 0.05;

/* The control message. */
typedef struct message {
  int32_t kind; /* LCOMM_CONTROL_ERROR */
  int32_t teller;
  int32_t asks; /* the teller has not received from the receiver */
  lcomm_fault fault;
} message;

_Static_assert(sizeof(message) <= LCOMM_CONTROL_SIZE, "a fault fits a control message");

/* ------------------------------------------------------------ comparison */

static int strength(lcomm_status status) {
  switch (status) {
  case LCOMM_ERR_REMOTE:
    return 0;
  case LCOMM_ERR_TIMEOUT:
    return 1;
  case LCOMM_ERR_TRANSPORT:
    return 2;
  case LCOMM_ERR_ABORTED:
    return 4;
  default: /* found on the author itself, or in what was sent */
    return 3;
  }
}

static bool is_cleared(const lcomm_agreement *it, const lcomm_fault *fault) {
  return fault->culprit >= 0 && fault->culprit != fault->author && it->cleared[fault->culprit];
}

static bool precedes(const lcomm_agreement *it, const lcomm_fault *a, const lcomm_fault *b) {
  bool a_cleared = is_cleared(it, a), b_cleared = is_cleared(it, b);
  if (a_cleared != b_cleared) {
    return b_cleared;
  }
  int left = strength((lcomm_status)a->status), right = strength((lcomm_status)b->status);
  if (left != right || a->author != b->author) {
    return left != right ? left > right : a->author < b->author;
  }
  return strcmp(a->text, b->text) < 0;
}

/* --------------------------------------------------------------- telling */

static void send_fault(lcomm_comm *comm, const lcomm_fault *fault, int peer, int32_t asks) {
  message it;
  memset(&it, 0, sizeof(it));
  it.kind = LCOMM_CONTROL_ERROR;
  it.teller = comm->rank;
  it.asks = asks;
  it.fault = *fault;
  if (!comm->errors.agreement.told[peer]) {
    lcomm_control_send_error(comm, peer, &it, sizeof(it));
    comm->errors.agreement.told[peer] = true;
  } else {
    lcomm_control_send(comm, peer, &it, sizeof(it));
  }
}

/* Over the links that there are: who hears of it tells it over its own. */
void lcomm_fault_send(lcomm_comm *comm, const lcomm_fault *fault) {
  for (int peer = 0; peer < comm->size; peer++) {
    if (lcomm_links_linked(&comm->links, peer)) {
      send_fault(comm, fault, peer, 0);
    }
  }
}

/* ------------------------------------------------------------- agreement */

/* The author reports the fault as its own, other ranks name the author. */
static lcomm_status report(lcomm_comm *comm, const lcomm_fault *fault) {
  char who[96], sentence[LCOMM_ERROR_MAX];
  snprintf(sentence, sizeof(sentence), "%s", fault->text);
  if (fault->author != comm->rank) {
    snprintf(sentence, sizeof(sentence), "%s: stopped by %.900s",
             lcomm_comm_who(comm, comm->rank, who, sizeof(who)), fault->text);
  }
  if (lcomm_comm_stick(comm, (lcomm_status)fault->status, sentence)) {
    lcomm_lost_ranks_add(comm, fault);
    if (fault->author == comm->rank) {
      lcomm_log_error(sentence);
    }
  }
  return (lcomm_status)atomic_load(&comm->errors.status);
}

static void take_in(lcomm_comm *comm, const lcomm_fault *fault, int teller) {
  lcomm_agreement *it = &comm->errors.agreement;
  it->spoke[teller] = true;
  it->cleared[teller] |= fault->culprit != teller;
  it->cleared[fault->author] |= fault->culprit != fault->author;
  if (!it->found || precedes(it, fault, &it->fault)) {
    it->fault = *fault;
    it->found = it->news = true;
  }
}

/* Have all ranks sent what they know, from which that can be expected? Never where links are made
 * when they are needed: what far ranks know comes through others, as long as all listen. */
static bool is_complete(const lcomm_comm *comm) {
  const lcomm_agreement *it = &comm->errors.agreement;
  for (int peer = 0; peer < comm->size; peer++) {
    if (!it->spoke[peer] && peer != it->fault.culprit) {
      return false;
    }
  }
  return true;
}

static void send_again(lcomm_comm *comm) {
  for (int peer = 0; peer < comm->size; peer++) {
    if (!comm->errors.agreement.spoke[peer] && lcomm_links_linked(&comm->links, peer)) {
      send_fault(comm, &comm->errors.agreement.fault, peer, 1);
    }
  }
}

static void listen(lcomm_comm *comm) {
  lcomm_backoff pause = {.sleep_ns = 200000};
  lcomm_agreement *it = &comm->errors.agreement;
  double now_s = lcomm_clock_s(), end_s = now_s + it->listen_s, again_s = now_s + AGAIN_S;
  while (it->news || (!is_complete(comm) && now_s < end_s)) {
    if (it->news) {
      it->news = false;
      lcomm_fault_send(comm, &it->fault);
    } else if (now_s >= again_s) {
      again_s = now_s + AGAIN_S;
      send_again(comm);
    } else {
      lcomm_backoff_step(&pause);
    }
    lcomm_links_progress(&comm->links);
    if (lcomm_control_receive(comm) != LCOMM_OK) {
      return; /* the program has aborted meanwhile */
    }
    now_s = lcomm_clock_s();
  }
}

lcomm_status lcomm_fault_agree(lcomm_comm *comm, const lcomm_fault *fault, int teller) {
  lcomm_agreement *it = &comm->errors.agreement;
  if (atomic_load(&comm->errors.status) != LCOMM_OK) {
    return (lcomm_status)atomic_load(&comm->errors.status);
  }
  it->spoke[comm->rank] = true;
  take_in(comm, fault, teller);
  if (it->running) {
    return (lcomm_status)fault->status;
  }
  it->running = true;
  listen(comm);
  it->running = false;
  return report(comm, &it->fault);
}

lcomm_status lcomm_fault_declare(lcomm_comm *comm, const lcomm_fault *fault) {
  lcomm_status status = report(comm, fault);
  lcomm_fault_send(comm, fault);
  return status;
}

lcomm_status lcomm_fault_receive(lcomm_comm *comm, const void *bytes) {
  message received;
  memcpy(&received, bytes, sizeof(received));
  lcomm_fault *fault = &received.fault;
  lcomm_text_sanitize(fault->text, sizeof(fault->text));
  bool ranks = received.teller >= 0 && received.teller < comm->size &&
               received.teller != comm->rank && fault->author >= 0 && fault->author < comm->size &&
               fault->culprit >= LCOMM_NO_CULPRIT && fault->culprit < comm->size;
  if (!ranks) {
    return (lcomm_status)atomic_load(&comm->errors.status);
  }
  bool known = fault->status < 0 && fault->status >= LCOMM_ERR_INTERNAL;
  fault->status = known ? fault->status : LCOMM_ERR_REMOTE;
  if (fault->text[0] == '\0') {
    char who[96];
    snprintf(fault->text, sizeof(fault->text), "%s tells of an error without a sentence: %s",
             lcomm_comm_who(comm, fault->author, who, sizeof(who)),
             lcomm_status_string((lcomm_status)fault->status));
  }
  if (received.asks && atomic_load(&comm->errors.status) != LCOMM_OK &&
      comm->errors.agreement.found) {
    send_fault(comm, &comm->errors.agreement.fault, received.teller,
               0); /* our first word was lost */
  }
  return lcomm_fault_agree(comm, fault, received.teller);
}
