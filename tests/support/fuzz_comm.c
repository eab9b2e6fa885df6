/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/fuzz_comm.h"

#include "tests/support/fuzz_promise.h"

static fuzz_link *link_of(lcomm_transport *transport) {
  return (fuzz_link *)transport;
}

/* ------------------------------------------------------------- messages */

/* A message on its way: the bytes of a receive, its room. */
static lcomm_status send_it(lcomm_transport *transport, int peer, uint32_t tag, const void *bytes,
                            size_t size, lcomm_transfer *transfer) {
  (void)peer;
  (void)tag;
  (void)bytes;
  (void)size;
  *transfer = (lcomm_transfer){.opaque = {0}};
  return fuzz_u8(link_of(transport)->in) == 255 ? LCOMM_ERR_TRANSPORT : LCOMM_OK;
}

static lcomm_status receive_it(lcomm_transport *transport, int peer, uint32_t tag, void *bytes,
                               size_t capacity, lcomm_transfer *transfer) {
  (void)peer;
  (void)tag;
  *transfer = (lcomm_transfer){.opaque = {(uintptr_t)bytes, capacity}};
  return fuzz_u8(link_of(transport)->in) == 255 ? LCOMM_ERR_TRANSPORT : LCOMM_OK;
}

/* One byte: 255 a failure, 254 nothing yet, an even number all bytes, an odd one
 * fewer. */
static lcomm_status test_it(lcomm_transport *transport, lcomm_transfer *transfer, bool *over,
                            size_t *size) {
  fuzz_link *link = link_of(transport);
  uint8_t how = fuzz_u8(link->in);
  uint8_t *bytes = (uint8_t *)(uintptr_t)transfer->opaque[0];
  size_t capacity = (size_t)transfer->opaque[1];
  if (how == 255) {
    return LCOMM_ERR_TRANSPORT;
  }
  *over = how != 254;
  if (*over && bytes) {
    capacity = how % 2 == 0 || capacity == 0 ? capacity : how % capacity;
    fuzz_take(link->in, bytes, capacity);
  }
  if (*over && bytes && size) {
    *size = capacity;
  }
  return LCOMM_OK;
}

static void cancel_it(lcomm_transport *transport, lcomm_transfer *transfer) {
  (void)transport;
  *transfer = (lcomm_transfer){.opaque = {0}};
}

/* -------------------------------------------------------------- control messages */

static void tell_it(lcomm_transport *transport, int peer, const void *control) {
  (void)peer;
  int32_t kind;
  memcpy(&kind, control, sizeof(kind));
  fuzz_require(kind > 0, "a control message has a kind");
  link_of(transport)->told++;
}

static bool hear_it(lcomm_transport *transport, void *control) {
  fuzz_link *link = link_of(transport);
  if (!link->has_control) {
    return false;
  }
  memcpy(control, link->control, LCOMM_CONTROL_SIZE);
  link->has_control = false;
  return true;
}

/* --------------------------------------------------------------- memory */

/* Of exactly its size. */
static void *memory_get_it(lcomm_transport *transport, size_t size) {
  (void)transport;
  return fuzz_allocate(size);
}

static int arm_it(lcomm_transport *transport) {
  (void)transport;
  return LCOMM_ARM_BUSY;
}

static void disarm_it(lcomm_transport *transport) {
  (void)transport;
}

static const lcomm_transport_wakeup wakeup = {.arm = arm_it, .disarm = disarm_it};

/* ------------------------------------------------------------------ both */

lcomm_comm *fuzz_comm_make(fuzz_bytes *in, int rank, int size, fuzz_link *link) {
  lcomm_comm *comm = fuzz_allocate(sizeof *comm);
  memset(link, 0, sizeof *link);
  link->table = (lcomm_transport_table){
      .name = "fuzz",
      .summary = "an input",
      .control = {.send = tell_it, .send_error = tell_it, .receive = hear_it},
      .send = send_it,
      .receive = receive_it,
      .test = test_it,
      .cancel = cancel_it,
      .memory_get = memory_get_it,
      .memory_free = free,
      .wakeup = &wakeup};
  link->base.table = &link->table;
  snprintf(link->base.why, sizeof(link->base.why), "the input says so");
  link->in = in;
  comm->rank = rank;
  comm->size = size;
  comm->settings.timeout_s = 1e6;
  comm->topo.host = fuzz_allocate((size_t)size * sizeof *comm->topo.host);
  comm->links.of = fuzz_allocate((size_t)size * sizeof(lcomm_transport *));
  for (int peer = 0; peer < size; peer++) {
    comm->topo.host[peer][0] = 'h';
    comm->links.of[peer] = peer == rank ? NULL : &link->base;
  }
  comm->links.rank = rank;
  comm->links.size = size;
  comm->links.open[comm->links.count++] = &link->base;
  comm->operations.next[LCOMM_SEQUENCE_SPACE_BUCKETS] = 1;
  pthread_mutex_init(&comm->errors.lock, NULL);
  lcomm_fingerprint_book_init(&comm->fingerprints);
  fuzz_require(lcomm_failure_state_make(comm), "there is memory");
  return comm;
}

void fuzz_comm_free(lcomm_comm *comm) {
  lcomm_runs_free_abandoned(comm);
  lcomm_links_memory_free_all(&comm->links);
  pthread_mutex_destroy(&comm->errors.lock);
  lcomm_failure_state_free(comm);
  free(comm->topo.host);
  free(comm->links.of);
  free(comm);
}

void fuzz_check_text(const char *text, size_t room) {
  size_t length = strnlen(text, room);
  fuzz_require(length < room, "a text ends");
  for (size_t i = 0; i < length; i++) {
    fuzz_require((unsigned char)text[i] >= 0x20 && text[i] != 0x7f,
                 "a text has no control characters");
  }
}

void fuzz_comm_check(const lcomm_comm *comm) {
  int status = atomic_load(&comm->errors.status);
  fuzz_require(status <= 0 && status >= LCOMM_ERR_INTERNAL, "an error is a status");
  fuzz_check_text(comm->errors.text, sizeof(comm->errors.text));
  fuzz_require((status == LCOMM_OK) == (comm->errors.text[0] == '\0'), "an error has a sentence");
}
