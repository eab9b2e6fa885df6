/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Communicators: found, judged, freed. */

#include "libcomm/interpose/mpi/comms.h"

#include <stdlib.h>

#include "libcomm/interpose/mpi/leaving.h"
#include "libcomm/interpose/mpi/making.h"
#include "libcomm/interpose/mpi/meeting.h"
#include "libcomm/interpose/mpi/persistent.h"
#include "libcomm/interpose/mpi/queue.h"
#include "libcomm/interpose/mpi/slots.h"

/* All that are known, and the world. */
static struct {
  int keyval;
  pthread_mutex_t lock; /* guards both lists */
  lcomm_interpose_comm *first;
  lcomm_interpose_comm *unused; /* to be freed by the next who may; by `next` */
  lcomm_comm *world;
  MPI_Comm self; /* lends its error handler's place to communicators that are gone */
  pthread_mutex_t asking;
} known = {.keyval = MPI_KEYVAL_INVALID,
           .lock = PTHREAD_MUTEX_INITIALIZER,
           .self = MPI_COMM_NULL,
           .asking = PTHREAD_MUTEX_INITIALIZER};

/* The attribute of communicators on which nothing is ever chosen. */
static char nothing;

lcomm_comm *lcomm_interpose_world(void) {
  return known.world;
}

/* ---------------------------------------------------------------- the list */

static void add(lcomm_interpose_comm *at) {
  pthread_mutex_lock(&known.lock);
  at->next = known.first;
  if (known.first) {
    known.first->previous = at;
  }
  known.first = at;
  pthread_mutex_unlock(&known.lock);
}

static void forget(lcomm_interpose_comm *at) {
  pthread_mutex_lock(&known.lock);
  if (at->previous) {
    at->previous->next = at->next;
  } else {
    known.first = at->next;
  }
  if (at->next) {
    at->next->previous = at->previous;
  }
  at->next = at->previous = NULL;
  pthread_mutex_unlock(&known.lock);
}

/* ----------------------------------------------------------------- finding */

/* The world ranks of an intra-communicator of several; NULL when it is none, has ranks of
 * other worlds, or memory is short, which *short_of_memory says. */
static int *find_members(MPI_Comm comm, int *size, bool *short_of_memory) {
  int inter = 0;
  PMPI_Comm_test_inter(comm, &inter);
  PMPI_Comm_size(comm, size);
  if (inter || *size < 2) {
    return NULL;
  }
  int *ranks = malloc(2 * (size_t)*size * sizeof *ranks);
  *short_of_memory = !ranks;
  if (!ranks) {
    return NULL;
  }
  int *numbers = ranks + *size;
  bool whole = true;
  MPI_Group group = MPI_GROUP_NULL, world = MPI_GROUP_NULL;
  PMPI_Comm_group(comm, &group);
  PMPI_Comm_group(MPI_COMM_WORLD, &world);
  for (int i = 0; i < *size; i++) {
    numbers[i] = i;
  }
  PMPI_Group_translate_ranks(group, *size, numbers, world, ranks);
  PMPI_Group_free(&group);
  PMPI_Group_free(&world);
  for (int i = 0; i < *size; i++) {
    whole &= ranks[i] != MPI_UNDEFINED;
  }
  if (!whole) {
    free(ranks);
    return NULL;
  }
  return ranks;
}

/* The other ranks go on, so this one cannot. */
static void give_up(MPI_Comm comm) {
  lcomm_interpose_say("out of memory for a communicator");
  PMPI_Comm_call_errhandler(comm, MPI_ERR_NO_MEM);
}

/* A call is chosen only between nodes, or where node= compresses, too. */
static bool is_worth_it(const lcomm_interpose_comm *at) {
  return lcomm_preview_nodes(at->preview) > 1 || at->facts.inside_nodes;
}

static lcomm_interpose_comm *attach(MPI_Comm comm, lcomm_interpose_comm *at) {
  PMPI_Comm_set_attr(comm, known.keyval, at ? (void *)at : (void *)&nothing);
  if (at) {
    add(at);
  }
  return at;
}

static lcomm_interpose_comm *adopt(MPI_Comm comm) {
  bool short_of_memory = false;
  int size = 0, rank = 0;
  int *members = find_members(comm, &size, &short_of_memory);
  lcomm_interpose_comm *at = members ? malloc(sizeof *at) : NULL;
  short_of_memory |= members && !at;
  PMPI_Comm_rank(comm, &rank);
  if (at && lcomm_interpose_comm_init(at, comm, members, size, rank, NULL) != LCOMM_OK) {
    free(at);
    at = NULL;
    short_of_memory = true;
  }
  free(members);
  if (at && !is_worth_it(at)) {
    lcomm_interpose_comm_clear(at);
    free(at);
    at = NULL;
  }
  if (short_of_memory) {
    give_up(comm);
    return NULL;
  }
  return attach(comm, at);
}

/* False when nothing is known of it yet. */
static bool look_up(MPI_Comm comm, lcomm_interpose_comm **at) {
  void *value = NULL;
  int found = 0;
  *at = NULL;
  if (comm == MPI_COMM_NULL || known.keyval == MPI_KEYVAL_INVALID ||
      PMPI_Comm_get_attr(comm, known.keyval, &value, &found) != MPI_SUCCESS) {
    return true;
  }
  *at = found && value != &nothing ? value : NULL;
  return found != 0;
}

lcomm_interpose_comm *lcomm_interpose_find(MPI_Comm comm) {
  lcomm_interpose_comm *at = NULL;
  bool is_known = look_up(comm, &at);
  return is_known || !known.world ? at : adopt(comm);
}

/* ----------------------------------------------------------------- freeing */

void lcomm_interpose_use(lcomm_interpose_comm *at) {
  atomic_fetch_add(&at->users, 1);
}

/* Also called from inside of MPI's functions that wait, where nothing is freed. */
void lcomm_interpose_unuse(lcomm_interpose_comm *at) {
  if (atomic_fetch_sub(&at->users, 1) > 1) {
    return;
  }
  pthread_mutex_lock(&known.lock);
  at->next = known.unused;
  known.unused = at;
  pthread_mutex_unlock(&known.lock);
}

static void free_unused(void) {
  pthread_mutex_lock(&known.lock);
  lcomm_interpose_comm *at = known.unused, *next = NULL;
  known.unused = NULL;
  pthread_mutex_unlock(&known.lock);
  for (; at; at = next) {
    next = at->next;
    lcomm_interpose_comm_clear(at);
    free(at);
  }
  lcomm_interpose_sweep();
}

void lcomm_interpose_comm_orphan(lcomm_interpose_comm *at) {
  pthread_mutex_lock(&known.asking);
  PMPI_Comm_get_errhandler(at->comm, &at->handler);
  at->comm = MPI_COMM_NULL;
  pthread_mutex_unlock(&known.asking);
}

/* MPI calls this when this rank frees the communicator. Nobody is waited for: calls that are
 * under way go on, and what fails is told to the error handler all the same. */
static int freed(MPI_Comm comm, int keyval, void *value, void *extra) {
  lcomm_interpose_comm *at = value;
  (void)comm;
  (void)keyval;
  (void)extra;
  if (value == &nothing) {
    return MPI_SUCCESS;
  }
  lcomm_interpose_home_let_go(at);
  lcomm_interpose_requests_forget(at);
  lcomm_interpose_places_forget(at);
  forget(at);
  lcomm_interpose_comm_orphan(at);
  lcomm_interpose_unuse(at);
  free_unused();
  return MPI_SUCCESS;
}

/* The handler is the program's function, which gets a communicator that exists. */
void lcomm_interpose_ask_handler(const lcomm_interpose_comm *at) {
  pthread_mutex_lock(&known.asking);
  MPI_Comm comm = at->comm;
  if (comm == MPI_COMM_NULL) { /* one after the other */
    PMPI_Comm_set_errhandler(known.self, at->handler);
    PMPI_Comm_call_errhandler(known.self, MPI_ERR_OTHER);
  }
  pthread_mutex_unlock(&known.asking);
  if (comm != MPI_COMM_NULL) {
    PMPI_Comm_call_errhandler(comm, MPI_ERR_OTHER);
  }
}

/* Unlike freeing, this waits for what is under way. */
LCOMM_INTERPOSE_API int MPI_Comm_disconnect(MPI_Comm *comm) {
  lcomm_interpose_comm *at = NULL;
  if (!lcomm_interpose_is_shut() && comm && look_up(*comm, &at) && at) {
    lcomm_interpose_drain(at);
  }
  return PMPI_Comm_disconnect(comm);
}

static lcomm_interpose_comm *take_first(void) {
  pthread_mutex_lock(&known.lock);
  lcomm_interpose_comm *at = known.first;
  pthread_mutex_unlock(&known.lock);
  return at;
}

void lcomm_interpose_comms_close(void) {
  lcomm_interpose_drain(NULL);
  for (lcomm_interpose_comm *at = take_first(); at; at = take_first()) {
    PMPI_Comm_delete_attr(at->comm, known.keyval);
  }
  lcomm_interpose_requests_forget(NULL);
  free_unused();
  lcomm_interpose_leave_world(&known.world);
  if (known.keyval != MPI_KEYVAL_INVALID) {
    PMPI_Comm_free_keyval(&known.keyval);
  }
  lcomm_interpose_slots_close();
  lcomm_interpose_makings_close();
  if (known.self != MPI_COMM_NULL) {
    PMPI_Comm_free(&known.self);
  }
}

/* ------------------------------------------------------------------ opening */

/* On all ranks, or on none. */
static bool make_world(void) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.timeout_s = lcomm_setting("LCOMM_TIMEOUT_S") ? 0 : LCOMM_INTERPOSE_PATIENCE_S;
  lcomm_status status = lcomm_create_mpi(MPI_COMM_WORLD, &config, &known.world);
  if (status == LCOMM_OK) {
    lcomm_stats_hide(known.world);
    return true;
  }
  return false;
}

const char *lcomm_interpose_comms_open(void) {
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, freed, &known.keyval, NULL);
  if (!make_world()) {
    return lcomm_last_error(NULL);
  }
  if (!lcomm_interpose_makings_open() || !lcomm_interpose_slots_open()) {
    return "MPI makes no communicators for libcomm's own messages";
  }
  PMPI_Comm_split(MPI_COMM_SELF, 0, 0, &known.self);
  lcomm_interpose_comm *at = adopt(MPI_COMM_WORLD);
  if (at) {
    at->home.comm = known.world;
  }
  return NULL;
}
