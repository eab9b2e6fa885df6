/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Clock offsets, for traces: rank 0 exchanges a few ping-pongs with every rank on another host, one
 * rank after the other. An error here shows again in the first operation; the trace then has the
 * clocks as they are. */

#include "libcomm/base/backoff.h"
#include "libcomm/base/clock.h"
#include "libcomm/engine/engine.h"

enum { CLOCK_TAG = LCOMM_TAG_CONTROL | 4, SAMPLES = 16 };

static bool finish(lcomm_comm *comm, lcomm_transport *link, lcomm_transfer *transfer) {
  double limit_s = lcomm_clock_s() + comm->settings.timeout_s;
  lcomm_backoff backoff = {.yields = LCOMM_BACKOFF_ALWAYS};
  bool over = false;
  while (!over) {
    lcomm_links_progress(&comm->links);
    if (link->table->test(link, transfer, &over, NULL) != LCOMM_OK) {
      return false;
    }
    if (!over && lcomm_clock_s() > limit_s) {
      link->table->cancel(link, transfer);
      return false;
    }
    if (!over) {
      lcomm_backoff_step(&backoff);
    }
  }
  return true;
}

static bool send_number(lcomm_comm *comm, int peer, const double *number) {
  lcomm_transport *link = lcomm_comm_link(comm, peer);
  lcomm_transfer transfer;
  return link->table->send(link, peer, CLOCK_TAG, number, sizeof *number, &transfer) == LCOMM_OK &&
         finish(comm, link, &transfer);
}

static bool receive_number(lcomm_comm *comm, int peer, double *number) {
  lcomm_transport *link = lcomm_comm_link(comm, peer);
  lcomm_transfer transfer;
  return link->table->receive(link, peer, CLOCK_TAG, number, sizeof *number, &transfer) ==
             LCOMM_OK &&
         finish(comm, link, &transfer);
}

static void answer(lcomm_comm *comm, int peer) {
  for (int i = 0; i < SAMPLES; i++) {
    double number = 0;
    if (!receive_number(comm, peer, &number)) {
      return;
    }
    number = lcomm_clock_s();
    if (!send_number(comm, peer, &number)) {
      return;
    }
  }
}

static void ask(lcomm_comm *comm) {
  lcomm_clock_sample samples[SAMPLES];
  double offset_s = 0, error_s = 0;
  for (int i = 0; i < SAMPLES; i++) {
    samples[i].sent_s = lcomm_clock_s();
    if (!send_number(comm, 0, &samples[i].sent_s) ||
        !receive_number(comm, 0, &samples[i].remote_s)) {
      return;
    }
    samples[i].received_s = lcomm_clock_s();
  }
  if (lcomm_trace_offset(samples, SAMPLES, &offset_s, &error_s)) {
    lcomm_trace_clock(comm->observers.trace, offset_s, error_s);
  }
}

void lcomm_clock_align(lcomm_comm *comm, const bool *elsewhere) {
  if (comm->rank != 0 && elsewhere[comm->rank]) {
    ask(comm);
  }
  for (int peer = 1; comm->rank == 0 && peer < comm->size; peer++) {
    if (elsewhere[peer]) {
      answer(comm, peer);
    }
  }
}
