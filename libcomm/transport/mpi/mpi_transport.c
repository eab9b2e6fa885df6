/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Messages over MPI point-to-point calls on a communicator of our own.
 * Messages past 1 GiB use a derived type, because MPI counts are ints.
 *
 * All calls are those of MPI's profiling interface, PMPI_: libcomm's own messages are
 * not the program's, so tools and doors that stand between a program and MPI must not
 * see them. */

#include "libcomm/transport/mpi/mpi_transport.h"

#include <mpi.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/base/clock.h"

enum { NOTICE_TAG = LCOMM_TAG_CONTROL | 2, BIG = 1 << 30, NOTICES_MAX = 3, FLUSH_TRIES = 1000 };

/* Places of a peer: NOTICES_MAX for ordinary control messages, then one for an error, and one for
 * the empty message that says that no other control message follows. */
enum { ERROR_PLACE = NOTICES_MAX, LAST_PLACE, PLACES };

/* A control message that leaves: idle when its request is MPI_REQUEST_NULL. */
typedef struct outgoing {
  MPI_Request request;
  unsigned char bytes[LCOMM_CONTROL_SIZE];
} outgoing;

typedef struct mpi_transport {
  lcomm_transport base;
  MPI_Comm comm;
  int rank, size;
  int *ranks; /* of the peers, in comm */
  char why[MPI_MAX_ERROR_STRING + 32];
  MPI_Request listening; /* receives the next control message */
  unsigned char heard[LCOMM_CONTROL_SIZE];
  outgoing *told;        /* PLACES per peer */
  bool *left;            /* the peers that were sent the last control message */
  bool *gone;            /* the peers whose last control message has been received */
  double cancel_until_s; /* patience with messages that are no longer wanted; 0: all of it */
  struct mpi_transport *next_left;
} mpi_transport;

static const double CANCEL_S = 1;

/* Transports closed after a failure: MPI may still read their control messages, so
 * they stay, reachable, to the end of the process. */
static mpi_transport *_Atomic left_behind;

/* The words of a transfer: the request, and which way it goes. */
enum { AT_WAY = 3, SENDS = 0, RECEIVES = 1 };

_Static_assert(sizeof(MPI_Request) <= AT_WAY * sizeof(uint64_t), "an MPI_Request fits a transfer");

static mpi_transport *of(lcomm_transport *transport) {
  return (mpi_transport *)transport;
}

/* An MPI_Request is an opaque handle of a type that MPI chooses; it is kept
 * in the transfer as bytes. */
static MPI_Request load(const lcomm_transfer *transfer) {
  MPI_Request request;
  memcpy(&request, transfer->opaque, sizeof(request));
  return request;
}

static void store(lcomm_transfer *transfer, MPI_Request request) {
  memcpy(transfer->opaque, &request, sizeof(request));
}

static lcomm_status check(mpi_transport *t, int code) {
  if (code == MPI_SUCCESS) {
    return LCOMM_OK;
  }
  int length = 0;
  char text[MPI_MAX_ERROR_STRING] = "unknown MPI error";
  PMPI_Error_string(code, text, &length);
  snprintf(t->why, sizeof(t->why), "MPI says: %s", text);
  return LCOMM_ERR_TRANSPORT;
}

/* A type of `size` bytes for messages too long for an int count. */
static int big_type(size_t size, MPI_Datatype *type) {
  MPI_Datatype whole = MPI_DATATYPE_NULL;
  int lengths[2] = {1, (int)(size % BIG)};
  MPI_Aint places[2] = {0, (MPI_Aint)(size / BIG) * BIG};
  int code = PMPI_Type_contiguous(BIG, MPI_BYTE, &whole);
  if (code != MPI_SUCCESS) {
    return code;
  }
  MPI_Datatype blocks = MPI_DATATYPE_NULL;
  code = PMPI_Type_contiguous((int)(size / BIG), whole, &blocks);
  PMPI_Type_free(&whole);
  if (code != MPI_SUCCESS) {
    return code;
  }
  MPI_Datatype parts[2] = {blocks, MPI_BYTE};
  code = PMPI_Type_create_struct(2, lengths, places, parts, type);
  PMPI_Type_free(&blocks);
  return code == MPI_SUCCESS ? PMPI_Type_commit(type) : code;
}

static lcomm_status mpi_send(lcomm_transport *transport, int peer, uint32_t tag, const void *bytes,
                             size_t size, lcomm_transfer *transfer) {
  mpi_transport *t = of(transport);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Datatype type = MPI_BYTE;
  lcomm_status status = size < BIG ? LCOMM_OK : check(t, big_type(size, &type));
  if (status != LCOMM_OK) {
    return status;
  }
  int count = size < BIG ? (int)size : 1;
  status = check(t, PMPI_Isend(bytes, count, type, t->ranks[peer], (int)tag, t->comm, &request));
  store(transfer, request);
  transfer->opaque[AT_WAY] = SENDS;
  if (type != MPI_BYTE) {
    PMPI_Type_free(&type);
  }
  return status;
}

static lcomm_status mpi_receive(lcomm_transport *transport, int peer, uint32_t tag, void *bytes,
                                size_t capacity, lcomm_transfer *transfer) {
  mpi_transport *t = of(transport);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Datatype type = MPI_BYTE;
  lcomm_status status = capacity < BIG ? LCOMM_OK : check(t, big_type(capacity, &type));
  if (status != LCOMM_OK) {
    return status;
  }
  int count = capacity < BIG ? (int)capacity : 1;
  status = check(t, PMPI_Irecv(bytes, count, type, t->ranks[peer], (int)tag, t->comm, &request));
  store(transfer, request);
  transfer->opaque[AT_WAY] = RECEIVES;
  if (type != MPI_BYTE) {
    PMPI_Type_free(&type);
  }
  return status;
}

static lcomm_status mpi_test(lcomm_transport *transport, lcomm_transfer *transfer, bool *over,
                             size_t *size) {
  mpi_transport *t = of(transport);
  MPI_Status result;
  MPI_Request request = load(transfer);
  int flag = 0;
  lcomm_status status = check(t, PMPI_Test(&request, &flag, &result));
  store(transfer, request);
  if (status != LCOMM_OK) {
    return status;
  }
  if (flag && size) {
    MPI_Count count = 0;
    PMPI_Get_elements_x(&result, MPI_BYTE, &count);
    *size = (size_t)count;
  }
  *over = flag != 0;
  return LCOMM_OK;
}

static void forget(MPI_Request *request) {
  if (*request == MPI_REQUEST_NULL) {
    return;
  }
  PMPI_Cancel(request);
  PMPI_Request_free(request);
}

/* A message whose beginning has come can no longer be cancelled; its end is
 * waited for, so that nothing is written into memory of others later. False: it may be. */
static bool end_receive(mpi_transport *t, MPI_Request *request) {
  double now_s = lcomm_clock_s();
  int flag = 0;
  t->cancel_until_s = t->cancel_until_s > 0 ? t->cancel_until_s : now_s + CANCEL_S;
  PMPI_Cancel(request);
  do {
    PMPI_Test(request, &flag, MPI_STATUS_IGNORE);
  } while (!flag && lcomm_clock_s() < t->cancel_until_s);
  if (!flag) {
    PMPI_Request_free(request);
  }
  return flag != 0;
}

static void mpi_cancel(lcomm_transport *transport, lcomm_transfer *transfer) {
  MPI_Request request = load(transfer);
  if (request != MPI_REQUEST_NULL && transfer->opaque[AT_WAY] == RECEIVES) {
    (void)end_receive(of(transport), &request);
  } else {
    forget(&request);
  }
  store(transfer, request);
}

static lcomm_status listen_again(mpi_transport *t) {
  return check(t, PMPI_Irecv(t->heard, LCOMM_CONTROL_SIZE, MPI_BYTE, MPI_ANY_SOURCE, NOTICE_TAG,
                             t->comm, &t->listening));
}

/* Has it left, or was there none? */
static bool is_idle(outgoing *message) {
  int flag = 0;
  PMPI_Test(&message->request, &flag, MPI_STATUS_IGNORE);
  return flag != 0;
}

static outgoing *place_of(mpi_transport *t, int peer, int place) {
  return &t->told[(size_t)peer * PLACES + (size_t)place];
}

static void tell_from(mpi_transport *t, int peer, outgoing *message, int size) {
  PMPI_Isend(message->bytes, size, MPI_BYTE, t->ranks[peer], NOTICE_TAG, t->comm,
             &message->request);
}

/* Into the first place of these that is idle. */
static void tell_in(mpi_transport *t, int peer, int first, int end, const void *bytes) {
  for (int i = first; i < end && !t->left[peer]; i++) {
    outgoing *place = place_of(t, peer, i);
    if (is_idle(place)) {
      memcpy(place->bytes, bytes, sizeof(place->bytes));
      tell_from(t, peer, place, LCOMM_CONTROL_SIZE);
      return;
    }
  }
}

static void mpi_tell(lcomm_transport *transport, int peer, const void *bytes) {
  tell_in(of(transport), peer, 0, NOTICES_MAX, bytes);
}

static void mpi_tell_error(lcomm_transport *transport, int peer, const void *bytes) {
  tell_in(of(transport), peer, ERROR_PLACE, ERROR_PLACE + 1, bytes);
}

static void set_gone(mpi_transport *t, int mpi_rank) {
  for (int peer = 0; peer < t->size; peer++) {
    t->gone[peer] |= t->ranks[peer] == mpi_rank;
  }
}

/* The size of a control message that has arrived, or -1; 0: it was the peer's last. */
static int hear_any(mpi_transport *t, void *message) {
  MPI_Status result;
  int flag = 0, size = 0;
  if (t->listening == MPI_REQUEST_NULL || PMPI_Test(&t->listening, &flag, &result) != MPI_SUCCESS ||
      !flag) {
    return -1;
  }
  PMPI_Get_count(&result, MPI_BYTE, &size);
  memcpy(message, t->heard, LCOMM_CONTROL_SIZE);
  if (size == 0) {
    set_gone(t, result.MPI_SOURCE);
  }
  listen_again(t);
  return size;
}

static bool mpi_hear(lcomm_transport *transport, void *message) {
  mpi_transport *t = of(transport);
  int size = hear_any(t, message);
  while (size == 0) {
    size = hear_any(t, message);
  }
  return size == LCOMM_CONTROL_SIZE;
}

/* MPI gives the context of a communicator that was freed to the next one, and while it
 * makes that, to the one that it is made from: what arrives late would be taken for a
 * message of those. Control messages of one rank to another arrive in their order, so nothing of a
 * peer is in flight once its last one was heard. */
static void mpi_part(lcomm_transport *transport, int peer) {
  mpi_transport *t = of(transport);
  if (!t->left[peer]) {
    t->left[peer] = true;
    tell_from(t, peer, place_of(t, peer, LAST_PLACE), 0);
  }
}

static int mpi_unparted(const lcomm_transport *transport) {
  const mpi_transport *t = (const mpi_transport *)transport;
  for (int peer = 0; peer < t->size; peer++) {
    if (t->left[peer] && !t->gone[peer]) {
      return peer;
    }
  }
  return -1;
}

static const char *mpi_why(const lcomm_transport *transport) {
  return ((const mpi_transport *)transport)->why;
}

static bool mpi_reaches(const lcomm_transport *transport, int peer) {
  const mpi_transport *t = (const mpi_transport *)transport;
  return peer >= 0 && peer < t->size && peer != t->rank;
}

/* --------------------------------------------------------- open and close */

/* Give control messages on their way a moment to leave; a dead peer cannot hold us.
 * False: MPI may still read one. */
static bool flush_notices(mpi_transport *t) {
  bool all = true;
  for (int i = 0; i < t->size * PLACES; i++) {
    bool idle = false;
    for (int tries = 0; !idle && tries < FLUSH_TRIES; tries++) {
      idle = is_idle(&t->told[i]);
    }
    if (!idle) {
      PMPI_Request_free(&t->told[i].request);
      all = false;
    }
  }
  return all;
}

static void discard(mpi_transport *t) {
  free(t->ranks);
  free(t->told);
  free(t->left);
  free(t->gone);
  free(t);
}

static void mpi_close(lcomm_transport *transport, bool orderly) {
  mpi_transport *t = of(transport);
  bool flushed = flush_notices(t);
  (void)orderly; /* what MPI may still touch decides */
  if (t->listening != MPI_REQUEST_NULL) {
    flushed &= end_receive(t, &t->listening);
  }
  if (flushed) {
    discard(t);
    return;
  }
  t->next_left = atomic_load(&left_behind);
  while (!atomic_compare_exchange_weak(&left_behind, &t->next_left, t)) {
  }
}

static bool tags_suffice(void) {
  int *limit = NULL, found = 0;
  /* Predefined attributes are those of the world. */
  PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &limit, &found);
  return found && *limit >= (int)(LCOMM_TAG_CONTROL | 255);
}

static mpi_transport *make(const lcomm_transport_setup *setup) {
  mpi_transport *t = calloc(1, sizeof *t);
  outgoing *told = calloc((size_t)setup->size * PLACES, sizeof *told);
  bool *left = calloc((size_t)setup->size, sizeof *left);
  bool *gone = calloc((size_t)setup->size, sizeof *gone);
  int *ranks = calloc((size_t)setup->size, sizeof *ranks);
  if (!t || !told || !left || !gone || !ranks) {
    free(ranks);
    free(left);
    free(gone);
    free(told);
    free(t);
    return NULL;
  }
  for (int i = 0; i < setup->size; i++) {
    ranks[i] = setup->mpi_ranks ? setup->mpi_ranks[i] : i;
  }
  for (int i = 0; i < setup->size * PLACES; i++) {
    told[i].request = MPI_REQUEST_NULL;
  }
  t->base.table = &lcomm_transport_mpi;
  t->comm = *(const MPI_Comm *)setup->mpi;
  t->rank = setup->rank;
  t->size = setup->size;
  t->told = told;
  t->left = left;
  t->gone = gone;
  t->ranks = ranks;
  return t;
}

/* Nothing here waits for a peer, so there is nothing to agree on. */
static lcomm_status mpi_open(const lcomm_transport_setup *setup, lcomm_transport **transport,
                             lcomm_why *why) {
  if (!setup->mpi) {
    snprintf(why->text, sizeof(why->text), "MPI is not running");
    return LCOMM_ERR_UNSUPPORTED;
  }
  if (!tags_suffice()) {
    snprintf(why->text, sizeof(why->text), "this MPI's largest message tag is too small");
    return LCOMM_ERR_UNSUPPORTED;
  }
  mpi_transport *t = make(setup);
  if (!t) {
    snprintf(why->text, sizeof(why->text), "out of memory");
    return LCOMM_ERR_MEMORY;
  }
  PMPI_Comm_set_errhandler(t->comm, MPI_ERRORS_RETURN);
  if (listen_again(t) != LCOMM_OK) {
    snprintf(why->text, sizeof(why->text), "%.200s", t->why);
    discard(t);
    return LCOMM_ERR_TRANSPORT;
  }
  *transport = &t->base;
  return LCOMM_OK;
}

const lcomm_transport_table lcomm_transport_mpi = {
    .name = "mpi",
    .summary = "MPI point-to-point messages",
    .open = mpi_open,
    .close = mpi_close,
    .reaches = mpi_reaches,
    .send = mpi_send,
    .receive = mpi_receive,
    .test = mpi_test,
    .cancel = mpi_cancel,
    .control.send = mpi_tell,
    .control.send_error = mpi_tell_error,
    .control.receive = mpi_hear,
    .control.part = mpi_part,
    .control.unparted = mpi_unparted,
    .why = mpi_why,
};
