/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The small-message fast path (eager): short exact sums and barriers inside a node. A plan in
 * which every rank sends its elements to all others in one short message, and sums what it
 * receives, is one loop: post all sends, poll all peers, sum where the bytes are. The messages
 * are those of the schedule, byte for byte, so one rank may take the fast path and its peer the
 * steps; and where a message does not come in time, the operation goes on with the steps.
 */

#include <string.h>

#include "libcomm/base/backoff.h"
#include "libcomm/engine/exec_internal.h"
#include "libcomm/engine/operation.h"

enum { SIZE_MAX_BYTES = 4096, RANKS_MAX = 16, POLLS = 4000, POLLS_CROWDED = 40 };

static bool has_one_round(const lcomm_plan *plan) {
  bool sums = plan->collective == LCOMM_COLLECTIVE_ALLREDUCE ||
              plan->collective == LCOMM_COLLECTIVE_BARRIER;
  return sums && plan->plain && !plan->error_feedback && !plan->checksum &&
         plan->shape.exchange == LCOMM_EXCHANGE_GATHER && !plan->shape.hierarchical &&
         plan->shape.chunks == 1 && plan->vector_count > 0;
}

bool lcomm_fastpath_fits(const lcomm_run *run) {
  const lcomm_comm *comm = run->comm;
  if (!run->backend->is_host || comm->size < 2 || comm->size > RANKS_MAX || comm->observers.trace ||
      !has_one_round(run->plan) ||
      run->plan->vector_count * run->plan->element_size > SIZE_MAX_BYTES) {
    return false;
  }
  for (int peer = 0; peer < comm->size; peer++) {
    if (peer != comm->rank && !lcomm_comm_link(comm, peer)->table->peek) {
      return false;
    }
  }
  return true;
}

/* Header and elements, as the schedule's ENCODE and SEND make them. */
static size_t compose(const lcomm_run *run, uint8_t *bytes) {
  const lcomm_plan *plan = run->plan;
  size_t size = plan->vector_count * plan->element_size;
  lcomm_wire_header header =
      lcomm_exec_header(run, &plan->stages[LCOMM_STAGE_NODE].format, plan->vector_count, size);
  lcomm_wire_pack(&header, bytes);
  memcpy(bytes + LCOMM_WIRE_HEADER_SIZE, run->data.vector, size);
  return size;
}

/* Every peer's message must be ours but for the elements. */
static bool poll_peers(const lcomm_run *run, const uint8_t *mine, size_t mine_size,
                       const void **sources, int *missing) {
  lcomm_comm *comm = run->comm;
  for (int peer = 0; peer < comm->size; peer++) {
    const void *bytes = NULL;
    size_t size = 0;
    lcomm_transport *link = sources[peer] ? NULL : lcomm_comm_link(comm, peer);
    if (!link || !link->table->peek(link, peer, lcomm_exec_tag(run, 0, 0), &bytes, &size)) {
      continue;
    }
    if (size != mine_size || memcmp(bytes, mine, LCOMM_WIRE_HEADER_SIZE) != 0) {
      return false; /* the steps find the difference, and say it */
    }
    sources[peer] = (const uint8_t *)bytes + LCOMM_WIRE_HEADER_SIZE;
    --*missing;
  }
  return true;
}

static void sum(const lcomm_run *run, const void *const *sources, int count) {
  const lcomm_plan *plan = run->plan;
  const lcomm_operation_data *data = &run->data;
  lcomm_exec_add_plain(run, sources, (size_t)count, data->vector, plan->vector_count);
  lcomm_exec_scale(run, lcomm_exec_factor(run->comm, data->op, data->after), data->vector,
                   plan->vector_count);
}

/* Ranks of a host may pose as nodes: a link is what the topology says. */
static void account(lcomm_comm *comm, const lcomm_run *run, size_t size) {
  lcomm_summary_row *row =
      lcomm_summary_find(&comm->observers.summary, run->plan->collective, run->terms.op_kind);
  for (int peer = 0; peer < comm->size; peer++) {
    if (peer == comm->rank) {
      continue;
    }
    lcomm_link link = lcomm_topo_link(&comm->topo, comm->rank, peer);
    lcomm_exec_count_sent(&comm->stats, link, size, size);
    lcomm_comm_count_in_rack(comm, peer, LCOMM_WIRE_HEADER_SIZE + size);
    lcomm_exec_count_received(&comm->stats, link, size);
    row->cost.sent_bytes[link] += LCOMM_WIRE_HEADER_SIZE + size;
    row->cost.exact_bytes[link] += LCOMM_WIRE_HEADER_SIZE + size;
  }
  comm->stats.operations++;
  row->operations++;
  row->cost.data_bytes += run->plan->count * lcomm_dtype_size(run->plan->dtype);
}

static lcomm_status send_all(lcomm_run *run, const uint8_t *mine, size_t size) {
  lcomm_comm *comm = run->comm;
  for (int i = 1; i < comm->size; i++) {
    int peer = (comm->rank + i) % comm->size;
    lcomm_transport *link = lcomm_comm_link(comm, peer);
    lcomm_fastpath_send *sent = &run->fastpath.sends[peer];
    sent->over = false;
    if (link->table->send(link, peer, lcomm_exec_tag(run, 0, 0), mine, size, &sent->transfer) !=
        LCOMM_OK) {
      char who[96];
      return lcomm_fail_peer(comm, LCOMM_ERR_TRANSPORT, peer,
                             "%s #%u: a message to %s cannot be sent. %s. Look at its log.",
                             lcomm_collective_name(run->plan->collective), run->sequence,
                             lcomm_comm_who(comm, peer, who, sizeof(who)), link->why);
    }
  }
  run->fastpath.is_sent = true;
  return LCOMM_OK;
}

/* Are all sends over? The steps find a failure, and say it. */
static bool all_sent(lcomm_run *run) {
  lcomm_comm *comm = run->comm;
  bool all = true;
  for (int peer = 0; peer < comm->size; peer++) {
    lcomm_transport *link = lcomm_comm_link(comm, peer);
    lcomm_fastpath_send *sent = &run->fastpath.sends[peer];
    if (link && !sent->over &&
        link->table->test(link, &sent->transfer, &sent->over, NULL) != LCOMM_OK) {
      return false;
    }
    all &= !link || sent->over;
  }
  return all;
}

/* Poll all peers for a moment. True when everything is there; *late when it was there
 * before. */
static bool poll_for_a_moment(lcomm_run *run, const uint8_t *mine, size_t size,
                              const void **sources, bool *late) {
  lcomm_comm *comm = run->comm;
  lcomm_backoff yield = {.yields = LCOMM_BACKOFF_ALWAYS};
  int missing = comm->size - 1, polls = comm->waiting.crowded ? POLLS_CROWDED : POLLS;
  for (int i = polls; missing > 0 && i > 0; i--) {
    *late = i == polls;
    if (!poll_peers(run, mine, size, sources, &missing)) {
      return false;
    }
    if (comm->waiting.crowded && missing > 0) {
      lcomm_backoff_step(&yield);
    }
  }
  return missing == 0 && all_sent(run);
}

lcomm_status lcomm_fastpath_try(lcomm_run *run, bool *over) {
  _Alignas(64) uint8_t mine[LCOMM_WIRE_HEADER_SIZE + SIZE_MAX_BYTES];
  const void *sources[RANKS_MAX] = {NULL};
  lcomm_comm *comm = run->comm;
  *over = false;
  if (comm->operations.first || comm->fingerprints.early_count > 0) {
    return LCOMM_OK; /* in order, and seen */
  }
  run->sequence = comm->operations.next[lcomm_op_kind_sequence_space(run->data.op_kind)];
  lcomm_run_key(run, &run->data);
  size_t size = compose(run, mine), whole = LCOMM_WIRE_HEADER_SIZE + size;
  lcomm_status status = send_all(run, mine, whole);
  sources[comm->rank] = run->data.vector;
  bool late = false;
  if (status != LCOMM_OK || !poll_for_a_moment(run, mine, whole, sources, &late)) {
    return status;
  }
  sum(run, sources, comm->size);
  for (int peer = 0; peer < comm->size; peer++) {
    if (peer != comm->rank) {
      lcomm_comm_link(comm, peer)->table->drop(lcomm_comm_link(comm, peer), peer);
    }
  }
  run->fastpath.is_sent = false;
  lcomm_fingerprint_begin(run); /* no fingerprint has come early, so it finds nothing */
  account(comm, run, size);
  if (late) { /* so late, perhaps, that the others gave up after they had sent */
    lcomm_links_progress(&comm->links);
    status = lcomm_control_receive(comm);
  }
  *over = status == LCOMM_OK;
  return status;
}
