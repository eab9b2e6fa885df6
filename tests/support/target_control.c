/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/target_control.h"

#include "libcomm/engine/operation.h"
#include "libcomm/engine/peer_memory.h"
#include "tests/support/fuzz_comm.h"
#include "tests/support/fuzz_promise.h"

enum { EVENTS_MAX = 64 };

/* What a call and a fingerprint have in common: 12 bytes of the input. */
typedef struct operation {
  uint8_t kind, dtype, op, op_kind;
  uint16_t count, root, residual, ahead;
} operation;

/* A fingerprint as it travels. */
typedef struct message {
  int32_t kind, rank;
  lcomm_fingerprint fingerprint;
} message;

/* The parameters follow from the rest, as the hash of a plan does. */
static uint32_t parameters_of(const operation *it) {
  return it->kind * 2654435761u + it->count * 40503u + it->dtype + it->op * 17u;
}

static void begin(lcomm_comm *comm, fuzz_bytes *in) {
  operation it;
  fuzz_take(in, &it, sizeof(it));
  lcomm_plan plan = {.collective = (lcomm_collective)(it.kind % LCOMM_COLLECTIVE_COUNT),
                     .dtype = (lcomm_dtype)(it.dtype % 6),
                     .root = it.root % comm->size,
                     .count = it.count};
  lcomm_run run = {.plan = &plan, .comm = comm, .hash.key = 1};
  run.terms.op = (lcomm_op)(it.op % (LCOMM_MAX + 1));
  run.terms.op_kind = (lcomm_op_kind)(it.op_kind % LCOMM_OP_KIND_COUNT);
  run.terms.residual = it.residual;
  run.sequence = comm->operations.next[lcomm_op_kind_sequence_space(run.terms.op_kind)];
  run.hash.parameters = parameters_of(&it);
  uint32_t next = run.sequence + LCOMM_SEQUENCE_SPACE_COUNT;
  lcomm_status status = lcomm_fingerprint_begin(&run);
  fuzz_require(comm->operations.next[lcomm_op_kind_sequence_space(run.terms.op_kind)] == next,
               "an operation has its own number");
  fuzz_require(status == LCOMM_OK || status == (lcomm_status)atomic_load(&comm->errors.status),
               "a difference is the communicator's error");
}

/* A fingerprint that is likely to be compared. */
static void hear_ticket(lcomm_comm *comm, fuzz_link *link, fuzz_bytes *in) {
  operation it;
  fuzz_take(in, &it, sizeof(it));
  uint32_t next = comm->operations.next[it.ahead % LCOMM_SEQUENCE_SPACE_COUNT];
  message heard = {.kind = LCOMM_CONTROL_FINGERPRINT,
                   .rank = (comm->rank + comm->size - 1) % comm->size,
                   .fingerprint = {.sequence = next + (uint32_t)((int8_t)(it.ahead >> 8) *
                                                                 LCOMM_SEQUENCE_SPACE_COUNT),
                                   .collective = it.kind,
                                   .dtype = it.dtype,
                                   .op = it.op,
                                   .op_kind = it.op_kind,
                                   .root = it.root,
                                   .parameters = parameters_of(&it),
                                   .count = it.count,
                                   .residual = it.residual}};
  memcpy(link->control, &heard, sizeof(heard));
  link->has_control = true;
}

/* A probe or an answer to one. */
static void hear_probe(fuzz_link *link, fuzz_bytes *in) {
  int32_t kind = LCOMM_CONTROL_PROBE + fuzz_u8(in) % 2;
  memcpy(link->control, &kind, sizeof(kind));
  fuzz_take(in, link->control + sizeof(kind), 120);
  link->has_control = true;
}

/* Memory of a device that is offered, or the answer. */
static void hear_offer(fuzz_link *link, fuzz_bytes *in) {
  int32_t kind = LCOMM_CONTROL_OFFER + fuzz_u8(in) % 2;
  memcpy(link->control, &kind, sizeof(kind));
  fuzz_take(in, link->control + sizeof(kind), 160);
  link->has_control = true;
}

static void check_offers(const lcomm_comm *comm) {
  size_t count = 0;
  for (const lcomm_peer_memory *it = comm->runs.peer_memory; it; it = it->next) {
    fuzz_require(it->peer >= 0 && it->peer < comm->size && it->peer != comm->rank &&
                     it->memory.size > 0 && it->memory.offset == 0 && !it->base,
                 "what is offered is memory of a peer, and closed");
    count++;
  }
  fuzz_require(count <= LCOMM_OFFERS_MAX, "offers are counted");
}

static void hear(lcomm_comm *comm, fuzz_link *link) {
  lcomm_status status = lcomm_control_receive(comm);
  fuzz_require((int)status == atomic_load(&comm->errors.status),
               "listening returns the error in force");
  fuzz_require(!link->has_control, "all is heard");
}

void lcomm_fuzz_control(const uint8_t *data, size_t size) {
  fuzz_bytes in = {data, size};
  fuzz_link link;
  int ranks = 2 + fuzz_u8(&in) % 4, rank = fuzz_u8(&in) % ranks;
  lcomm_comm *comm = fuzz_comm_make(&in, rank, ranks, &link);
  for (int i = 0; i < EVENTS_MAX && in.left > 0; i++) {
    uint8_t event = fuzz_u8(&in);
    if (event == 0) {
      begin(comm, &in);
      continue;
    }
    memset(link.control, 0, sizeof(link.control));
    if (event == 1) {
      hear_ticket(comm, &link, &in);
    } else if (event == 2) {
      hear_probe(&link, &in);
    } else if (event == 3) {
      hear_offer(&link, &in);
    } else {
      size_t length = fuzz_u16(&in) % (LCOMM_CONTROL_SIZE + 1);
      fuzz_take(&in, link.control, length);
      link.has_control = true;
    }
    hear(comm, &link);
  }
  fuzz_comm_check(comm);
  fuzz_require(comm->fingerprints.early_count <= LCOMM_FINGERPRINTS_KEPT,
               "fingerprints are counted");
  check_offers(comm);
  lcomm_peer_memory_free(comm);
  fuzz_comm_free(comm);
}
