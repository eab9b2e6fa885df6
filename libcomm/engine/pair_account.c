/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Messages between two ranks in the statistics and the trace. */

#include "libcomm/base/clock.h"
#include "libcomm/engine/pair_internal.h"

void lcomm_pair_account_begin(lcomm_comm *comm, lcomm_pair_message *it) {
  it->end.begun_s = lcomm_clock_s();
  lcomm_summary_begin(&comm->observers.summary, it->end.begun_s);
}

/* With its headers. */
static uint64_t bytes_of(const lcomm_pair_message *it) {
  return LCOMM_PAIR_HEADER_SIZE + it->end.wire_bytes;
}

static void count(lcomm_comm *comm, const lcomm_pair_message *it, lcomm_link link) {
  lcomm_stats *all = &comm->stats;
  if (it->is_send) {
    all->sent_messages[link]++;
    all->sent_bytes[link] += bytes_of(it);
    lcomm_comm_count_in_rack(comm, it->peer, bytes_of(it));
    all->exact_bytes[link] += LCOMM_PAIR_HEADER_SIZE + it->size;
    all->encode_s += it->end.coding_s;
  } else {
    all->received_bytes[link] += bytes_of(it);
    all->decode_s += it->end.coding_s;
  }
}

static void add_to_table(lcomm_comm *comm, const lcomm_pair_message *it, lcomm_link link,
                         double now_s) {
  lcomm_summary *summary = &comm->observers.summary;
  lcomm_summary_cost cost = {.data_bytes = it->size, .codec = it->format.codec->id};
  if (it->is_send) {
    cost.sent_bytes[link] = bytes_of(it);
    cost.exact_bytes[link] = LCOMM_PAIR_HEADER_SIZE + it->size;
    cost.encode_s = it->end.coding_s;
  } else {
    cost.decode_s = it->end.coding_s;
  }
  lcomm_summary_add(summary,
                    &summary->rows[it->is_send ? LCOMM_SUMMARY_SENDS : LCOMM_SUMMARY_RECEIVES],
                    &cost, it->end.begun_s, now_s);
}

static void trace(const lcomm_comm *comm, const lcomm_pair_message *it, lcomm_link link,
                  double now_s) {
  lcomm_trace_event event = {.kind = it->is_send ? LCOMM_TRACE_SEND : LCOMM_TRACE_RECV,
                             .begin_s = it->end.begun_s,
                             .end_s = now_s,
                             .operation = "message",
                             .sequence = it->what.number,
                             .peer = it->peer,
                             .message = LCOMM_PAIR_TRACED_AS,
                             .link = link,
                             .bytes = bytes_of(it),
                             .codec = it->format.codec->name};
  lcomm_trace_add(comm->observers.trace, &event);
}

/* What a rank sends to itself travels nowhere. */
void lcomm_pair_account_end(lcomm_comm *comm, const lcomm_pair_message *it, lcomm_status status) {
  double now_s = lcomm_clock_s();
  if (status != LCOMM_OK || it->peer == comm->rank) {
    lcomm_summary_drop(&comm->observers.summary, now_s);
    return;
  }
  lcomm_link link = lcomm_topo_link(&comm->topo, comm->rank, it->peer);
  count(comm, it, link);
  add_to_table(comm, it, link, now_s);
  if (comm->observers.trace) {
    trace(comm, it, link, now_s);
  }
}
