/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The queue of one communicator: its calls begin and end in order, several are in flight. */

#include "libcomm/interpose/mpi/interpose_comm.h"
#include "libcomm/interpose/mpi/interpose_left.h"
#include "libcomm/interpose/mpi/interpose_queue.h"

/* As many runs as libcomm keeps of a shape, so no call allocates one of its own. */
enum { IN_FLIGHT_MAX = 8 };

/* There is always a spare queue. */
static lcomm_interpose_comm_queue *queue_of(lcomm_interpose_comm_queues *queues,
                                            lcomm_interpose_comm *at) {
  lcomm_interpose_comm_queue **end = &queues->first;
  while (*end && (*end)->at != at) {
    end = &(*end)->next;
  }
  if (!*end) {
    *end = queues->spare;
    queues->spare = queues->spare->next;
    **end = (lcomm_interpose_comm_queue){.at = at};
  }
  return *end;
}

static void append(lcomm_interpose_comm_queue *queue, lcomm_interpose_entry *entry) {
  entry->next = NULL;
  if (queue->last) {
    queue->last->next = entry;
  } else {
    queue->first = entry;
  }
  queue->last = entry;
  queue->waiting = queue->waiting ? queue->waiting : entry;
}

void lcomm_interpose_comm_queues_append(lcomm_interpose_comm_queues *queues,
                                        lcomm_interpose_entry *given) {
  while (given) {
    lcomm_interpose_entry *next = given->next;
    if (given->spare) {
      given->spare->next = queues->spare;
      queues->spare = given->spare;
      given->spare = NULL;
    }
    append(queue_of(queues, given->call.at), given);
    given = next;
  }
}

void lcomm_interpose_comm_queue_drop(lcomm_interpose_comm_queues *queues,
                                     lcomm_interpose_comm_queue **link) {
  lcomm_interpose_comm_queue *queue = *link;
  *link = queue->next;
  queue->next = queues->spare;
  queues->spare = queue;
}

/* One call in flight at a time may use a residual. */
static bool residual_is_busy(const lcomm_interpose_comm_queue *queue) {
  const lcomm_interpose_call *wanted = &queue->waiting->call;
  bool has_residual = wanted->feedback != LCOMM_INTERPOSE_PLAIN && wanted->ef;
  for (const lcomm_interpose_entry *it = queue->first; has_residual && it != queue->waiting;
       it = it->next) {
    if (it->call.feedback != LCOMM_INTERPOSE_PLAIN && it->call.ef == wanted->ef &&
        it->call.site == wanted->site) {
      return true;
    }
  }
  return false;
}

/* The next call, if a thread of the program is to begin it; else NULL. */
static lcomm_interpose_call *left_call(const lcomm_interpose_comm_queue *queue) {
  lcomm_interpose_call *call = queue->waiting ? &queue->waiting->call : NULL;
  return call && call->is_left && !call->begun && !residual_is_busy(queue) ? call : NULL;
}

/* Begin a call, unless a thread of the program has done so. */
static lcomm_status begin_call(lcomm_interpose_call *call) {
  if (call->begun) {
    return call->status;
  }
  lcomm_status status = lcomm_interpose_call_begin(call, &call->request);
  atomic_fetch_sub(&call->at->waiting, 1);
  return status;
}

static bool begin_calls(lcomm_interpose_comm_queue *queue) {
  bool moved = false;
  while (queue->waiting && queue->in_flight < IN_FLIGHT_MAX && !residual_is_busy(queue) &&
         !left_call(queue)) {
    lcomm_interpose_entry *it = queue->waiting;
    it->status = begin_call(&it->call);
    it->done = it->status != LCOMM_OK;
    queue->waiting = it->next;
    queue->in_flight++;
    moved = true;
  }
  return moved;
}

/* The test makes progress on all operations of the communicator. */
static bool is_done(lcomm_interpose_entry *oldest) {
  int done = 0;
  if (!oldest->done) {
    oldest->status = lcomm_test(oldest->call.comm, &oldest->call.request, &done);
    oldest->done = done || oldest->status != LCOMM_OK;
  }
  return oldest->done;
}

static void keep_error(const lcomm_interpose_entry *done) {
  if (done->status != LCOMM_OK && done->call.comm) {
    lcomm_interpose_context_keep_error(&done->call.at->context, lcomm_last_error(done->call.comm));
  }
}

static lcomm_interpose_entry *take_done(lcomm_interpose_comm_queue *queue) {
  lcomm_interpose_entry *done = NULL, **end = &done;
  while (queue->first != queue->waiting && is_done(queue->first)) {
    keep_error(queue->first);
    *end = queue->first;
    end = &queue->first->next;
    queue->first = queue->first->next;
    queue->in_flight--;
  }
  *end = NULL;
  queue->last = queue->first ? queue->last : NULL;
  return done;
}

bool lcomm_interpose_comm_queue_serve(lcomm_interpose_comm_queue *queue, bool *moved,
                                      lcomm_interpose_entry **done) {
  if (pthread_mutex_trylock(&queue->at->lock) != 0) {
    return false;
  }
  lcomm_status status = LCOMM_OK; /* on failure each call fails when it begins */
  if (lcomm_interpose_backing_ready(queue->at, &status)) {
    *moved |= begin_calls(queue);
    *done = take_done(queue);
    bool in_flight = queue->first != queue->waiting;
    lcomm_interpose_left_look(queue->at, in_flight ? queue->first->call.comm : NULL,
                              left_call(queue));
  }
  pthread_mutex_unlock(&queue->at->lock);
  *moved |= *done != NULL;
  return true;
}
