/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Messages over MPI point-to-point calls on a communicator of our own. */

#include "libcomm/transport/mpi/mpi_transport.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/base/clock.h"
#include "libcomm/transport/mpi/mpi_internal.h"

enum { BIG = 1 << 30 };

static const double CANCEL_S = 1;

/* Transports closed after a failure: MPI may still read their control messages, or what cancelled
 * sends were to send, so they stay, reachable, to the end of the process. */
static lcomm_mpi_transport *_Atomic left_behind;

/* The words of a transfer: the request, and which way it goes. */
enum { AT_WAY = 3, SENDS = 0, RECEIVES = 1 };

_Static_assert(sizeof(MPI_Request) <= AT_WAY * sizeof(uint64_t), "an MPI_Request fits a transfer");

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

lcomm_status lcomm_mpi_check(lcomm_mpi_transport *t, int code) {
  if (code == MPI_SUCCESS) {
    return LCOMM_OK;
  }
  int length = 0;
  char text[MPI_MAX_ERROR_STRING] = "unknown MPI error";
  PMPI_Error_string(code, text, &length);
  snprintf(t->base.why, sizeof(t->base.why), "MPI says: %s", text);
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

/* How the bytes of a message are described to MPI, whose counts are ints, and its request. */
typedef struct message {
  MPI_Datatype type;
  int count;
  MPI_Request request;
} message;

static lcomm_status describe(lcomm_mpi_transport *t, size_t size, message *m) {
  bool big = size >= BIG;
  *m = (message){MPI_BYTE, big ? 1 : (int)size, MPI_REQUEST_NULL};
  return big ? lcomm_mpi_check(t, big_type(size, &m->type)) : LCOMM_OK;
}

/* code: what MPI made of it. */
static lcomm_status started(lcomm_mpi_transport *t, message *m, int code, int way,
                            lcomm_transfer *transfer) {
  store(transfer, m->request);
  transfer->opaque[AT_WAY] = (uint64_t)way;
  if (m->type != MPI_BYTE) {
    PMPI_Type_free(&m->type);
  }
  return lcomm_mpi_check(t, code);
}

static lcomm_status mpi_send(lcomm_transport *transport, int peer, uint32_t tag, const void *bytes,
                             size_t size, lcomm_transfer *transfer) {
  lcomm_mpi_transport *t = lcomm_mpi_of(transport);
  message m;
  LCOMM_TRY(describe(t, size, &m));
  int code = PMPI_Isend(bytes, m.count, m.type, t->ranks[peer], (int)tag, t->comm, &m.request);
  return started(t, &m, code, SENDS, transfer);
}

static lcomm_status mpi_receive(lcomm_transport *transport, int peer, uint32_t tag, void *bytes,
                                size_t capacity, lcomm_transfer *transfer) {
  lcomm_mpi_transport *t = lcomm_mpi_of(transport);
  message m;
  LCOMM_TRY(describe(t, capacity, &m));
  int code = PMPI_Irecv(bytes, m.count, m.type, t->ranks[peer], (int)tag, t->comm, &m.request);
  return started(t, &m, code, RECEIVES, transfer);
}

static lcomm_status mpi_test(lcomm_transport *transport, lcomm_transfer *transfer, bool *over,
                             size_t *size) {
  lcomm_mpi_transport *t = lcomm_mpi_of(transport);
  MPI_Status result;
  MPI_Request request = load(transfer);
  int flag = 0;
  lcomm_status status = lcomm_mpi_check(t, PMPI_Test(&request, &flag, &result));
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

/* MPIs of today do not cancel sends, and whose request was given back cannot be asked about. */
static void end_send(lcomm_mpi_transport *t, MPI_Request *request) {
  int flag = 0;
  PMPI_Cancel(request);
  PMPI_Test(request, &flag, MPI_STATUS_IGNORE);
  if (!flag) {
    PMPI_Request_free(request);
    t->touches = true;
  }
}

bool lcomm_mpi_end_receive(lcomm_mpi_transport *t, MPI_Request *request) {
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
  lcomm_mpi_transport *t = lcomm_mpi_of(transport);
  MPI_Request request = load(transfer);
  if (request != MPI_REQUEST_NULL && transfer->opaque[AT_WAY] == RECEIVES) {
    t->touches |= !lcomm_mpi_end_receive(t, &request);
  } else if (request != MPI_REQUEST_NULL) {
    end_send(t, &request);
  }
  store(transfer, request);
}

static bool mpi_reaches(const lcomm_transport *transport, int peer) {
  const lcomm_mpi_transport *t = (const lcomm_mpi_transport *)transport;
  return peer >= 0 && peer < t->size && peer != t->rank;
}

/* --------------------------------------------------------- open and close */

static void discard(lcomm_mpi_transport *t) {
  lcomm_mpi_control_free(t);
  free(t->ranks);
  free(t);
}

static bool mpi_close(lcomm_transport *transport, bool orderly) {
  lcomm_mpi_transport *t = lcomm_mpi_of(transport);
  (void)orderly; /* what MPI may still touch decides */
  bool all = lcomm_mpi_control_close(t), over = !t->touches;
  if (all && over) {
    discard(t);
    return true;
  }
  t->next_left = atomic_load(&left_behind);
  while (!atomic_compare_exchange_weak(&left_behind, &t->next_left, t)) {
  }
  return over;
}

static bool tags_suffice(void) {
  int *limit = NULL, found = 0;
  /* Predefined attributes are those of the world. */
  PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &limit, &found);
  return found && *limit >= INT_MAX; /* see LCOMM_TAG_CONTROL */
}

static lcomm_mpi_transport *create(const lcomm_transport_setup *setup) {
  lcomm_mpi_transport *t = calloc(1, sizeof *t);
  int *ranks = calloc((size_t)setup->size, sizeof *ranks);
  if (!t || !ranks) {
    free(ranks);
    free(t);
    return NULL;
  }
  for (int i = 0; i < setup->size; i++) {
    ranks[i] = setup->mpi_ranks ? setup->mpi_ranks[i] : i;
  }
  t->base.table = &lcomm_transport_mpi;
  t->comm = *(const MPI_Comm *)setup->mpi;
  t->rank = setup->rank;
  t->size = setup->size;
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
  lcomm_mpi_transport *t = create(setup);
  if (!t) {
    snprintf(why->text, sizeof(why->text), "out of memory");
    return LCOMM_ERR_MEMORY;
  }
  PMPI_Comm_set_errhandler(t->comm, MPI_ERRORS_RETURN);
  lcomm_status status = lcomm_mpi_control_open(t);
  if (status != LCOMM_OK) {
    snprintf(why->text, sizeof(why->text), "%s", t->base.why);
    discard(t);
    return status;
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
    .control = {.send = lcomm_mpi_control_send,
                .send_error = lcomm_mpi_control_send_error,
                .receive = lcomm_mpi_control_receive,
                .part = lcomm_mpi_control_part,
                .unparted = lcomm_mpi_control_unparted},
    .send = mpi_send,
    .receive = mpi_receive,
    .test = mpi_test,
    .cancel = mpi_cancel,
};
