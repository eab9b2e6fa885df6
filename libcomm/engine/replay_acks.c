/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Acknowledgements of replays. */

#include <stdlib.h>

#include "libcomm/engine/exec_internal.h"
#include "libcomm/engine/recording.h"

struct lcomm_acknowledgement {
  int peer;
  bool comes; /* else it leaves */
  bool in_flight;
  uint8_t byte;
  lcomm_transfer transfer;
};

typedef struct traffic {
  bool sends, receives;
} traffic;

static void look(const lcomm_plan *plan, traffic *of) {
  for (uint32_t i = 0; i < plan->schedule.step_count; i++) {
    const lcomm_step *step = &plan->schedule.steps[i];
    if (lcomm_step_is_message(step)) {
      of[step->peer].sends |= step->kind == LCOMM_STEP_SEND;
      of[step->peer].receives |= step->kind == LCOMM_STEP_RECV;
    }
  }
}

lcomm_status lcomm_acknowledgements_make(lcomm_recording *recording) {
  int size = recording->run->comm->size;
  traffic *of = calloc((size_t)size, sizeof *of);
  recording->acks = calloc((size_t)size, sizeof *recording->acks);
  if (!of || !recording->acks) {
    free(of);
    return LCOMM_ERR_MEMORY;
  }
  look(recording->run->plan, of);
  for (int peer = 0; peer < size; peer++) {
    if (of[peer].sends != of[peer].receives) {
      recording->acks[recording->ack_count++] =
          (struct lcomm_acknowledgement){.peer = peer, .comes = of[peer].sends};
    }
  }
  free(of);
  return LCOMM_OK;
}

static lcomm_status failed(const lcomm_recording *recording, int peer) {
  char who[96];
  lcomm_comm *comm = recording->run->comm;
  return lcomm_fail_peer(
      comm, LCOMM_ERR_TRANSPORT, peer,
      "the acknowledgement of a replay from or to %s failed: %s. Look at the network and at the "
      "peer's log.",
      lcomm_comm_who(comm, peer, who, sizeof(who)), lcomm_comm_link(comm, peer)->why);
}

/* No message of a schedule has the last number. */
lcomm_status lcomm_acknowledgements_begin(lcomm_recording *recording) {
  uint32_t tag = lcomm_exec_tag(recording->run, LCOMM_MESSAGES_MAX - 1, 1);
  for (uint32_t i = 0; i < recording->ack_count; i++) {
    struct lcomm_acknowledgement *it = &recording->acks[i];
    lcomm_transport *link = lcomm_comm_link(recording->run->comm, it->peer);
    lcomm_status status =
        it->comes ? link->table->receive(link, it->peer, tag, &it->byte, 1, &it->transfer)
                  : link->table->send(link, it->peer, tag, &it->byte, 1, &it->transfer);
    if (status != LCOMM_OK) {
      return failed(recording, it->peer);
    }
    it->in_flight = true;
  }
  return LCOMM_OK;
}

lcomm_status lcomm_acknowledgements_test(lcomm_recording *recording, bool *over) {
  *over = true;
  for (uint32_t i = 0; i < recording->ack_count; i++) {
    struct lcomm_acknowledgement *it = &recording->acks[i];
    lcomm_transport *link = lcomm_comm_link(recording->run->comm, it->peer);
    bool here = true;
    if (it->in_flight && link->table->test(link, &it->transfer, &here, NULL) != LCOMM_OK) {
      return failed(recording, it->peer);
    }
    it->in_flight = !here;
    *over &= here;
  }
  return LCOMM_OK;
}

void lcomm_acknowledgements_cancel(lcomm_recording *recording) {
  for (uint32_t i = 0; i < recording->ack_count; i++) {
    struct lcomm_acknowledgement *it = &recording->acks[i];
    if (it->in_flight) {
      lcomm_transport *link = lcomm_comm_link(recording->run->comm, it->peer);
      link->table->cancel(link, &it->transfer);
      it->in_flight = false;
    }
  }
}
