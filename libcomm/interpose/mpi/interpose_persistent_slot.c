/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Freeing a request is not collective, but releasing a backing communicator is. So a vacant slot
 * waits for the next request, and slots are released with their communicator. */

#include <stdlib.h>
#include <string.h>

#include "libcomm/interpose/mpi/interpose_comm.h"
#include "libcomm/interpose/mpi/interpose_persistent.h"
#include "libcomm/interpose/mpi/interpose_wait.h"

/* MPI makes further requests of a communicator. Each MPI has tags up to 32767. */
enum { SLOTS_MAX = 256, TAG_MAX = 32767, WORDS = SLOTS_MAX / 64 };

pthread_mutex_t lcomm_interpose_slots_lock = PTHREAD_MUTEX_INITIALIZER;

static struct {
  lcomm_interpose_persistent_slot
      *first; /* in the order of creation, which is the same on all ranks */
  MPI_Comm self;
  int tags;
  atomic_bool any;
} slots = {.self = MPI_COMM_NULL};

bool lcomm_interpose_slots_exist(void) {
  return atomic_load_explicit(&slots.any, memory_order_relaxed);
}

MPI_Comm lcomm_interpose_slots_self(void) {
  return slots.self;
}

lcomm_interpose_persistent_slot *lcomm_interpose_slot_of(MPI_Request request) {
  lcomm_interpose_persistent_slot *it = request == MPI_REQUEST_NULL ? NULL : slots.first;
  while (it && it->request != request) {
    it = it->next;
  }
  return it;
}

/* ----------------------------------------------------------------- creation */

/* Allocate a slot and the communicator of its messages. Local. */
static lcomm_interpose_persistent_slot *prepare(lcomm_interpose_comm *parent) {
  lcomm_interpose_persistent_slot *it = slots.tags <= TAG_MAX ? calloc(1, sizeof *it) : NULL;
  if (!it) {
    return NULL;
  }
  if ((slots.self == MPI_COMM_NULL &&
       PMPI_Comm_split(MPI_COMM_SELF, 0, 0, &slots.self) != MPI_SUCCESS) ||
      lcomm_interpose_comm_init(&it->own, parent->comm, parent->members, parent->size, parent->rank,
                                lcomm_preview_policy(parent->policy.preview)) != LCOMM_OK) {
    free(it);
    return NULL;
  }
  lcomm_interpose_ef_destroy(it->own.ef); /* the request has a residual of its own */
  it->own.ef = NULL;
  it->request = MPI_REQUEST_NULL;
  it->freed = MPI_REQUEST_NULL;
  it->parent = parent;
  it->own.name_agreed = parent->name_agreed;
  memcpy(it->own.name, parent->name, sizeof(it->own.name));
  lcomm_preview_name_set(it->own.policy.preview, it->own.name);
  return it;
}

static void discard(lcomm_interpose_persistent_slot *it) {
  if (it) {
    lcomm_interpose_comm_clear(&it->own);
    free(it);
  }
}

static lcomm_interpose_persistent_slot *append(lcomm_interpose_persistent_slot *created) {
  pthread_mutex_lock(&lcomm_interpose_slots_lock);
  lcomm_interpose_persistent_slot **end = &slots.first;
  while (*end) {
    end = &(*end)->next;
  }
  *end = created;
  created->tag = slots.tags++;
  pthread_mutex_unlock(&lcomm_interpose_slots_lock);
  atomic_store(&slots.any, true);
  return created;
}

/* Needs the policy in force, which the control file may have replaced. */
static bool is_free(const lcomm_interpose_persistent_slot *it, const lcomm_interpose_comm *parent) {
  return !it->held && !it->own.failed &&
         strcmp(lcomm_preview_policy(it->own.policy.preview),
                lcomm_preview_policy(parent->policy.preview)) == 0;
}

/* What a rank has: one bit for each slot of the communicator. */
typedef struct offer {
  uint64_t free[WORDS];
  uint64_t has_new; /* memory for another one */
} offer;

static int count_free(const lcomm_interpose_comm *parent, offer *mine) {
  int count = 0;
  pthread_mutex_lock(&lcomm_interpose_slots_lock);
  for (const lcomm_interpose_persistent_slot *it = slots.first; it; it = it->next) {
    if (it->parent == parent) {
      mine->free[count / 64] |= (uint64_t)is_free(it, parent) << count % 64;
      count++;
    }
  }
  pthread_mutex_unlock(&lcomm_interpose_slots_lock);
  return count;
}

static lcomm_interpose_persistent_slot *free_on_all(const lcomm_interpose_comm *parent,
                                                    const offer *all) {
  int number = 0;
  for (lcomm_interpose_persistent_slot *it = slots.first; it; it = it->next) {
    if (it->parent != parent) {
      continue;
    }
    if (all->free[number / 64] >> number % 64 & 1) {
      return it;
    }
    number++;
  }
  return NULL;
}

/* The same answer on all ranks. */
static lcomm_interpose_persistent_slot *find(lcomm_interpose_comm *parent) {
  offer all = {.has_new = 0};
  int count = count_free(parent, &all);
  lcomm_interpose_persistent_slot *fresh = count < SLOTS_MAX ? prepare(parent) : NULL;
  all.has_new = fresh != NULL;
  PMPI_Allreduce(MPI_IN_PLACE, &all, sizeof(all) / sizeof(uint64_t), MPI_UINT64_T, MPI_BAND,
                 parent->comm);
  lcomm_interpose_persistent_slot *old = free_on_all(parent, &all);
  if (!old && all.has_new && lcomm_interpose_backing_create(&fresh->own) == LCOMM_OK) {
    return append(fresh);
  }
  discard(fresh);
  return old;
}

lcomm_interpose_persistent_slot *lcomm_interpose_slot_take(const lcomm_interpose_call *call,
                                                           bool with_ef) {
  lcomm_interpose_persistent_slot *it = find(call->at);
  if (!it) {
    return NULL;
  }
  if (it->call.residual) { /* of the request before */
    lcomm_residual_destroy(it->call.residual);
  }
  it->call = *call;
  it->call.at = &it->own;
  it->call.comm = it->own.context.backing.comm;
  it->call.ef = NULL;
  it->call.residual = NULL;
  it->call.feedback = LCOMM_INTERPOSE_PLAIN;
  it->code = MPI_SUCCESS;
  it->held = true;
  if (with_ef) {
    it->call.feedback = LCOMM_INTERPOSE_EF;
    it->call.status = lcomm_residual_create(it->own.context.backing.comm, call->count, call->op,
                                            &it->call.residual);
  }
  return it;
}

void lcomm_interpose_slot_vacate(lcomm_interpose_persistent_slot *slot) {
  if (slot->undelivered != LCOMM_OK) { /* the program has not asked for it */
    atomic_fetch_sub(&lcomm_interpose_undelivered, 1);
  }
  slot->undelivered = LCOMM_OK;
  slot->request = MPI_REQUEST_NULL;
  slot->held = false;
}

/* ------------------------------------------------------------------ freeing */

void lcomm_interpose_slot_close(lcomm_interpose_persistent_slot *it) {
  if (it->call.residual) {
    lcomm_residual_destroy(it->call.residual);
    it->call.residual = NULL;
  }
  lcomm_interpose_backing_release(&it->own, &it->own.context.backing);
}

/* A failure is delivered while the communicator has its error handler. */
static void detach(lcomm_interpose_persistent_slot *it) {
  if (it->undelivered != LCOMM_OK) {
    it->code = lcomm_interpose_call_fail(&it->call, it->undelivered);
  }
  pthread_mutex_lock(&lcomm_interpose_slots_lock);
  lcomm_interpose_comm_detach(&it->own);
  it->parent = NULL;
  if (!it->active) {
    lcomm_interpose_slot_close(it);
  }
  pthread_mutex_unlock(&lcomm_interpose_slots_lock);
}

static lcomm_interpose_persistent_slot *first_of(const lcomm_interpose_comm *at) {
  lcomm_interpose_persistent_slot *it = slots.first;
  while (it && it->parent != at) {
    it = it->next;
  }
  return it;
}

/* Free detached slots without a request. Needs the lock. */
static void free_detached(void) {
  lcomm_interpose_persistent_slot **link = &slots.first;
  while (*link) {
    lcomm_interpose_persistent_slot *it = *link;
    if (it->parent || it->held || atomic_load(&it->own.users) > 1) {
      link = &it->next;
      continue;
    }
    *link = it->next;
    discard(it);
  }
}

void lcomm_interpose_slots_detach(const lcomm_interpose_comm *at) {
  if (!lcomm_interpose_slots_exist()) {
    return;
  }
  for (lcomm_interpose_persistent_slot *it = first_of(at); it; it = first_of(at)) {
    detach(it);
  }
  pthread_mutex_lock(&lcomm_interpose_slots_lock);
  free_detached();
  pthread_mutex_unlock(&lcomm_interpose_slots_lock);
}

void lcomm_interpose_slots_free(void) {
  bool in_use = slots.first != NULL;
  while (slots.first) {
    lcomm_interpose_persistent_slot *next = slots.first->next;
    discard(slots.first);
    slots.first = next;
  }
  if (slots.self != MPI_COMM_NULL && !in_use) { /* requests may use it */
    PMPI_Comm_free(&slots.self);
  }
}
