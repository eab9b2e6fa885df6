/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Places of persistent requests. Freeing a request is no call that ranks make
 * together, and freeing a communicator of libcomm is one: so a place that was left
 * waits for the next request, and all places go with their communicator. */

#include <stdlib.h>
#include <string.h>

#include "libcomm/interpose/mpi/comms.h"
#include "libcomm/interpose/mpi/leaving.h"
#include "libcomm/interpose/mpi/making.h"
#include "libcomm/interpose/mpi/persistent.h"

/* Further requests of a communicator stay MPI's. Tags of MPI go up to 32767 at least. */
enum { PLACES_MAX = 256, TAG_MAX = 32767, WORDS = PLACES_MAX / 64 };

pthread_mutex_t lcomm_interpose_places_lock = PTHREAD_MUTEX_INITIALIZER;
atomic_int lcomm_interpose_untold;

static struct {
  lcomm_interpose_place *first; /* in the order of being made, the same on all ranks */
  MPI_Comm self;
  int tags;
  atomic_bool any;
} places = {.self = MPI_COMM_NULL};

bool lcomm_interpose_places_exist(void) {
  return atomic_load_explicit(&places.any, memory_order_relaxed);
}

MPI_Comm lcomm_interpose_places_self(void) {
  return places.self;
}

lcomm_interpose_place *lcomm_interpose_place_of(MPI_Request request) {
  lcomm_interpose_place *it = request == MPI_REQUEST_NULL ? NULL : places.first;
  while (it && it->request != request) {
    it = it->next;
  }
  return it;
}

/* ------------------------------------------------------------------- making */

/* Locally: memory for a place, and a way to talk to oneself. */
static lcomm_interpose_place *prepare(lcomm_interpose_comm *parent) {
  lcomm_interpose_place *it = places.tags <= TAG_MAX ? calloc(1, sizeof *it) : NULL;
  if (!it) {
    return NULL;
  }
  if ((places.self == MPI_COMM_NULL &&
       PMPI_Comm_split(MPI_COMM_SELF, 0, 0, &places.self) != MPI_SUCCESS) ||
      lcomm_interpose_comm_init(&it->own, parent->comm, parent->members, parent->size, parent->rank,
                                lcomm_preview_policy(parent->preview)) != LCOMM_OK) {
    free(it);
    return NULL;
  }
  lcomm_interpose_lasting_destroy(it->own.lasting); /* its residual is its own */
  it->own.lasting = NULL;
  it->request = MPI_REQUEST_NULL;
  it->parent = parent;
  it->own.name_agreed = parent->name_agreed;
  memcpy(it->own.name, parent->name, sizeof(it->own.name));
  lcomm_preview_name_set(it->own.preview, it->own.name);
  return it;
}

static void discard(lcomm_interpose_place *it) {
  if (it) {
    lcomm_interpose_comm_clear(&it->own);
    free(it);
  }
}

static lcomm_interpose_place *append(lcomm_interpose_place *made) {
  pthread_mutex_lock(&lcomm_interpose_places_lock);
  lcomm_interpose_place **end = &places.first;
  while (*end) {
    end = &(*end)->next;
  }
  *end = made;
  made->tag = places.tags++;
  pthread_mutex_unlock(&lcomm_interpose_places_lock);
  atomic_store(&places.any, true);
  return made;
}

/* Of the policy that is in force: the control file may have changed it. */
static bool is_free(const lcomm_interpose_place *it, const lcomm_interpose_comm *parent) {
  return !it->held && !it->own.failed &&
         strcmp(lcomm_preview_policy(it->own.preview), lcomm_preview_policy(parent->preview)) == 0;
}

/* What a rank has, one bit for each place of the communicator. */
typedef struct offer {
  uint64_t free[WORDS];
  uint64_t has_new; /* memory for another one */
} offer;

static int count_free(const lcomm_interpose_comm *parent, offer *mine) {
  int count = 0;
  pthread_mutex_lock(&lcomm_interpose_places_lock);
  for (const lcomm_interpose_place *it = places.first; it; it = it->next) {
    if (it->parent == parent) {
      mine->free[count / 64] |= (uint64_t)is_free(it, parent) << count % 64;
      count++;
    }
  }
  pthread_mutex_unlock(&lcomm_interpose_places_lock);
  return count;
}

static lcomm_interpose_place *free_on_all(const lcomm_interpose_comm *parent, const offer *all) {
  int number = 0;
  for (lcomm_interpose_place *it = places.first; it; it = it->next) {
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

/* All ranks come to the same answer. */
static lcomm_interpose_place *find(lcomm_interpose_comm *parent) {
  offer all = {.has_new = 0};
  int count = count_free(parent, &all);
  lcomm_interpose_place *fresh = count < PLACES_MAX ? prepare(parent) : NULL;
  all.has_new = fresh != NULL;
  PMPI_Allreduce(MPI_IN_PLACE, &all, sizeof(all) / sizeof(uint64_t), MPI_UINT64_T, MPI_BAND,
                 parent->comm);
  lcomm_interpose_place *old = free_on_all(parent, &all);
  if (!old && all.has_new && lcomm_interpose_make_home(&fresh->own) == LCOMM_OK) {
    return append(fresh);
  }
  discard(fresh);
  return old;
}

lcomm_interpose_place *lcomm_interpose_place_take(const lcomm_interpose_call *call, bool lasting) {
  lcomm_interpose_place *it = find(call->at);
  if (!it) {
    return NULL;
  }
  if (it->call.residual) { /* of the request before */
    lcomm_residual_destroy(it->call.residual);
  }
  it->call = *call;
  it->call.at = &it->own;
  it->call.home = it->own.home.comm;
  it->call.of = NULL;
  it->call.residual = NULL;
  it->call.feedback = LCOMM_INTERPOSE_PLAIN;
  it->code = MPI_SUCCESS;
  it->held = true;
  if (lasting) {
    it->call.feedback = LCOMM_INTERPOSE_LASTS;
    it->call.status =
        lcomm_residual_create(it->own.home.comm, call->count, call->op, &it->call.residual);
  }
  return it;
}

void lcomm_interpose_place_leave(lcomm_interpose_place *place) {
  if (place->untold != LCOMM_OK) { /* the program did not want to know */
    atomic_fetch_sub(&lcomm_interpose_untold, 1);
  }
  place->untold = LCOMM_OK;
  place->request = MPI_REQUEST_NULL;
  place->held = false;
}

/* ------------------------------------------------------------------- freeing */

void lcomm_interpose_place_end(lcomm_interpose_place *it) {
  if (it->call.residual) {
    lcomm_residual_destroy(it->call.residual);
    it->call.residual = NULL;
  }
  lcomm_interpose_leave(&it->own, &it->own.home);
}

/* Failures are told while the communicator is there to ask for its error handler. */
static void end_place(lcomm_interpose_place *it) {
  if (it->untold != LCOMM_OK) {
    it->code = lcomm_interpose_fail(&it->call, it->untold);
  }
  pthread_mutex_lock(&lcomm_interpose_places_lock);
  lcomm_interpose_comm_orphan(&it->own);
  it->parent = NULL;
  if (!it->active) {
    lcomm_interpose_place_end(it);
  }
  pthread_mutex_unlock(&lcomm_interpose_places_lock);
}

static lcomm_interpose_place *first_of(const lcomm_interpose_comm *at) {
  lcomm_interpose_place *it = places.first;
  while (it && it->parent != at) {
    it = it->next;
  }
  return it;
}

/* Those that the program has no request for any more. With the lock. */
static void sweep(void) {
  lcomm_interpose_place **link = &places.first;
  while (*link) {
    lcomm_interpose_place *it = *link;
    if (it->parent || it->held || atomic_load(&it->own.users) > 1) {
      link = &it->next;
      continue;
    }
    *link = it->next;
    discard(it);
  }
}

void lcomm_interpose_places_forget(const lcomm_interpose_comm *at) {
  if (!lcomm_interpose_places_exist()) {
    return;
  }
  for (lcomm_interpose_place *it = first_of(at); it; it = first_of(at)) {
    end_place(it);
  }
  pthread_mutex_lock(&lcomm_interpose_places_lock);
  sweep();
  pthread_mutex_unlock(&lcomm_interpose_places_lock);
}

void lcomm_interpose_places_end(void) {
  bool left = places.first != NULL;
  while (places.first) {
    lcomm_interpose_place *next = places.first->next;
    discard(places.first);
    places.first = next;
  }
  if (places.self != MPI_COMM_NULL && !left) { /* requests that are left use it */
    PMPI_Comm_free(&places.self);
  }
}
