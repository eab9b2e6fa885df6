/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Short exact sums and barriers inside a node in one go. A plan in which every
 * rank sends its elements to all others in one short message, and sums what it
 * gets, is done as one loop: post all, look at all, sum where the bytes lie. The
 * messages are those of the schedule, byte for byte, so a rank may do it in one
 * go and its peer step by step; and when something is late the operation goes on
 * step by step from where it is.
 */

#include <sched.h>
#include <string.h>

#include "libcomm/engine/exec_internal.h"
#include "libcomm/engine/operation.h"

enum { QUICK_SIZE = 4096, QUICK_RANKS = 16, LOOKS = 4000, LOOKS_CROWDED = 40 };

static bool has_one_round(const lcomm_plan *plan) {
  bool sums = plan->collective == LCOMM_COLLECTIVE_ALLREDUCE ||
              plan->collective == LCOMM_COLLECTIVE_BARRIER;
  return sums && plan->plain && !plan->error_feedback && !plan->checksum &&
         plan->shape.exchange == LCOMM_EXCHANGE_GATHER && !plan->shape.hierarchical &&
         plan->shape.chunks == 1 && plan->vector_count > 0;
}

bool lcomm_fastpath_fits(const lcomm_run *run) {
  const lcomm_comm *comm = run->comm;
  if (!run->backend->is_host || comm->size < 2 || comm->size > QUICK_RANKS || comm->trace ||
      !has_one_round(run->plan) || run->plan->vector_count * run->plan->element_size > QUICK_SIZE) {
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
static size_t compose(const lcomm_run *run, const void *send, uint32_t sequence, uint8_t *bytes) {
  const lcomm_plan *plan = run->plan;
  size_t size = plan->vector_count * plan->element_size;
  lcomm_wire_header header = {.version = LCOMM_WIRE_VERSION,
                              .dtype = (uint8_t)plan->dtype,
                              .parameters = run->parameters,
                              .sequence = sequence,
                              .count = plan->vector_count,
                              .payload_size = size};
  lcomm_wire_set_format(&header, &plan->stages[LCOMM_STAGE_NODE].format);
  lcomm_wire_pack(&header, bytes);
  memcpy(bytes + LCOMM_WIRE_HEADER_SIZE, send, size);
  return LCOMM_WIRE_HEADER_SIZE + size;
}

/* The first message between two ranks in this operation: number 0, piece 0. */
static uint32_t tag_of(uint32_t sequence) {
  return (sequence & 0x3fff) << 16;
}

/* Every peer's message must be ours but for the elements. */
static bool look(lcomm_comm *comm, uint32_t tag, const uint8_t *mine, size_t mine_size,
                 const void **sources, int *missing) {
  for (int peer = 0; peer < comm->size; peer++) {
    const void *bytes = NULL;
    size_t size = 0;
    lcomm_transport *link = sources[peer] ? NULL : lcomm_comm_link(comm, peer);
    if (!link || !link->table->peek(link, peer, tag, &bytes, &size)) {
      continue;
    }
    if (size != mine_size || memcmp(bytes, mine, LCOMM_WIRE_HEADER_SIZE) != 0) {
      return false; /* found out, and said, step by step */
    }
    sources[peer] = (const uint8_t *)bytes + LCOMM_WIRE_HEADER_SIZE;
    --*missing;
  }
  return true;
}

static void sum(const lcomm_run *run, const void *const *sources, int count,
                const lcomm_operation_data *data) {
  const lcomm_plan *plan = run->plan;
  lcomm_exec_add_plain(run, sources, (size_t)count, data->vector, plan->vector_count);
  lcomm_exec_scale(run, lcomm_exec_factor(run->comm, data->op, data->after), data->vector,
                   plan->vector_count);
}

/* Ranks of a host may pose as nodes: a link is what the topology says. */
static void count_it(lcomm_comm *comm, const lcomm_run *run, size_t size) {
  lcomm_summary_row *row =
      lcomm_summary_find(&comm->summary, run->plan->collective, run->terms.op_kind);
  for (int peer = 0; peer < comm->size; peer++) {
    if (peer == comm->rank) {
      continue;
    }
    lcomm_link link = lcomm_topo_link(&comm->topo, comm->rank, peer);
    comm->stats.sent_messages[link]++;
    comm->stats.sent_bytes[link] += size;
    comm->stats.exact_bytes[link] += size;
    comm->stats.received_bytes[link] += size;
    row->cost.sent_bytes[link] += size;
    row->cost.exact_bytes[link] += size;
  }
  comm->stats.operations++;
  row->operations++;
  row->cost.data_bytes += run->plan->count * lcomm_dtype_size(run->plan->dtype);
}

static lcomm_status send_all(lcomm_run *run, uint32_t sequence, const uint8_t *mine, size_t size) {
  lcomm_comm *comm = run->comm;
  for (int i = 1; i < comm->size; i++) {
    int peer = (comm->rank + i) % comm->size;
    lcomm_transport *link = lcomm_comm_link(comm, peer);
    lcomm_fastpath_send *sent = &run->fastpath_sent[peer];
    sent->over = false;
    if (link->table->send(link, peer, tag_of(sequence), mine, size, &sent->transfer) != LCOMM_OK) {
      char who[96];
      return lcomm_fail_peer(comm, LCOMM_ERR_TRANSPORT, peer,
                             "%s #%u: a message to %s cannot be sent. %s. Look at its log.",
                             lcomm_collective_name(run->plan->collective), sequence,
                             lcomm_comm_who(comm, peer, who, sizeof(who)), link->table->why(link));
    }
  }
  run->sends_done = true;
  return LCOMM_OK;
}

/* Have all messages left? A failure is found out, and said, step by step. */
static bool all_left(lcomm_run *run) {
  lcomm_comm *comm = run->comm;
  bool left = true;
  for (int peer = 0; peer < comm->size; peer++) {
    lcomm_transport *link = lcomm_comm_link(comm, peer);
    lcomm_fastpath_send *sent = &run->fastpath_sent[peer];
    if (link && !sent->over &&
        link->table->test(link, &sent->transfer, &sent->over, NULL) != LCOMM_OK) {
      return false;
    }
    left &= !link || sent->over;
  }
  return left;
}

/* Look at all peers for a moment. True when everything is there; *late when it
 * was there before. */
static bool look_for_a_moment(lcomm_run *run, uint32_t tag, const uint8_t *mine, size_t size,
                              const void **sources, bool *late) {
  lcomm_comm *comm = run->comm;
  int missing = comm->size - 1, looks = comm->waiting.crowded ? LOOKS_CROWDED : LOOKS;
  for (int i = looks; missing > 0 && i > 0; i--) {
    *late = i == looks;
    if (!look(comm, tag, mine, size, sources, &missing)) {
      return false;
    }
    if (comm->waiting.crowded && missing > 0) {
      sched_yield();
    }
  }
  return missing == 0 && all_left(run);
}

lcomm_status lcomm_fastpath_try(lcomm_run *run, const void *send, const lcomm_operation_data *data,
                                bool *over) {
  _Alignas(64) uint8_t mine[LCOMM_WIRE_HEADER_SIZE + QUICK_SIZE];
  const void *sources[QUICK_RANKS] = {NULL};
  lcomm_comm *comm = run->comm;
  uint32_t sequence = comm->operations.next[lcomm_op_kind_sequence_space(data->op_kind)];
  *over = false;
  if (comm->operations.first || comm->fingerprints.early_count > 0) {
    return LCOMM_OK; /* in order, and seen */
  }
  lcomm_run_key(run, data);
  size_t size = compose(run, send, sequence, mine);
  lcomm_status status = send_all(run, sequence, mine, size);
  sources[comm->rank] = send;
  bool late = false;
  if (status != LCOMM_OK || !look_for_a_moment(run, tag_of(sequence), mine, size, sources, &late)) {
    return status;
  }
  uint32_t environment = lcomm_fp_enter();
  sum(run, sources, comm->size, data);
  lcomm_fp_leave(environment);
  for (int peer = 0; peer < comm->size; peer++) {
    if (peer != comm->rank) {
      lcomm_comm_link(comm, peer)->table->drop(lcomm_comm_link(comm, peer), peer);
    }
  }
  run->sends_done = false;
  run->sequence = sequence;
  lcomm_fingerprint_begin(run); /* no fingerprint has come early, so it finds nothing */
  count_it(comm, run, size);
  if (late) { /* so late, perhaps, that the others gave up after they had sent */
    lcomm_links_progress(&comm->links);
    status = lcomm_control_receive(comm);
  }
  *over = status == LCOMM_OK;
  return status;
}
