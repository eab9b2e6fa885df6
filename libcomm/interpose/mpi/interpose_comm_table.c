/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The table of communicators: found, added, freed. */

#include <stdlib.h>

#include "libcomm/interpose/mpi/interpose_comm.h"
#include "libcomm/interpose/mpi/interpose_persistent.h"
#include "libcomm/interpose/mpi/interpose_queue.h"
#include "libcomm/interpose/mpi/interpose_rendezvous.h"

static struct {
  int keyval;           /* of the attribute */
  pthread_mutex_t lock; /* guards both lists */
  lcomm_interpose_comm *first;
  lcomm_interpose_comm *unused; /* to be freed by the next thread that may; linked by `next` */
  lcomm_comm *world;
} table = {.keyval = MPI_KEYVAL_INVALID, .lock = PTHREAD_MUTEX_INITIALIZER};

/* The attribute of communicators on which MPI makes all calls. */
static char ineligible;

lcomm_comm *lcomm_interpose_world(void) {
  return table.world;
}

/* ----------------------------------------------------------------- the list */

static void add(lcomm_interpose_comm *at) {
  pthread_mutex_lock(&table.lock);
  at->next = table.first;
  if (table.first) {
    table.first->previous = at;
  }
  table.first = at;
  pthread_mutex_unlock(&table.lock);
}

static void remove_from_list(lcomm_interpose_comm *at) {
  pthread_mutex_lock(&table.lock);
  if (at->previous) {
    at->previous->next = at->next;
  } else {
    table.first = at->next;
  }
  if (at->next) {
    at->next->previous = at->previous;
  }
  at->next = at->previous = NULL;
  pthread_mutex_unlock(&table.lock);
}

static lcomm_interpose_comm *first_in_list(void) {
  pthread_mutex_lock(&table.lock);
  lcomm_interpose_comm *at = table.first;
  pthread_mutex_unlock(&table.lock);
  return at;
}

/* ------------------------------------------------------------------ finding */

static bool is_whole(const int *ranks, int size) {
  bool whole = true;
  for (int i = 0; i < size; i++) {
    whole &= ranks[i] != MPI_UNDEFINED;
  }
  return whole;
}

/* The world ranks of an intra-communicator of several ranks. NULL: it is none, has ranks of other
 * worlds, or there is no memory, which *no_memory says. */
static int *find_members(MPI_Comm comm, int *size, bool *no_memory) {
  int inter = 0;
  PMPI_Comm_test_inter(comm, &inter);
  PMPI_Comm_size(comm, size);
  if (inter || *size < 2) {
    return NULL;
  }
  int *ranks = malloc(2 * (size_t)*size * sizeof *ranks);
  *no_memory = !ranks;
  if (!ranks) {
    return NULL;
  }
  int *numbers = ranks + *size;
  MPI_Group group = MPI_GROUP_NULL, world = MPI_GROUP_NULL;
  PMPI_Comm_group(comm, &group);
  PMPI_Comm_group(MPI_COMM_WORLD, &world);
  for (int i = 0; i < *size; i++) {
    numbers[i] = i;
  }
  PMPI_Group_translate_ranks(group, *size, numbers, world, ranks);
  PMPI_Group_free(&group);
  PMPI_Group_free(&world);
  if (!is_whole(ranks, *size)) {
    free(ranks);
    return NULL;
  }
  return ranks;
}

/* The other ranks continue with libcomm, so this one cannot use MPI instead. */
static void fail_without_memory(MPI_Comm comm) {
  lcomm_interpose_log("out of memory for a communicator");
  PMPI_Comm_call_errhandler(comm, MPI_ERR_NO_MEM);
}

/* libcomm makes calls between nodes, and inside a node where node= compresses. */
static bool is_eligible(const lcomm_interpose_comm *at) {
  return lcomm_preview_nodes(at->policy.preview) > 1 || at->policy.facts.inside_nodes;
}

/* NULL: ineligible. */
static lcomm_interpose_comm *attach(MPI_Comm comm, lcomm_interpose_comm *at) {
  PMPI_Comm_set_attr(comm, table.keyval, at ? (void *)at : (void *)&ineligible);
  if (at) {
    add(at);
  }
  return at;
}

static lcomm_interpose_comm *create(MPI_Comm comm) {
  bool no_memory = false;
  int size = 0, rank = 0;
  int *members = find_members(comm, &size, &no_memory);
  lcomm_interpose_comm *at = members ? malloc(sizeof *at) : NULL;
  no_memory |= members && !at;
  PMPI_Comm_rank(comm, &rank);
  if (at && lcomm_interpose_comm_init(at, comm, members, size, rank, NULL) != LCOMM_OK) {
    free(at);
    at = NULL;
    no_memory = true;
  }
  free(members);
  if (at && !is_eligible(at)) {
    lcomm_interpose_comm_clear(at);
    free(at);
    at = NULL;
  }
  if (no_memory) {
    fail_without_memory(comm);
    return NULL;
  }
  return attach(comm, at);
}

/* False: the communicator has no attribute yet. */
static bool look_up(MPI_Comm comm, lcomm_interpose_comm **at) {
  void *value = NULL;
  int found = 0;
  *at = NULL;
  if (comm == MPI_COMM_NULL || table.keyval == MPI_KEYVAL_INVALID ||
      PMPI_Comm_get_attr(comm, table.keyval, &value, &found) != MPI_SUCCESS) {
    return true;
  }
  *at = found && value != &ineligible ? value : NULL;
  return found != 0;
}

lcomm_interpose_comm *lcomm_interpose_comm_find(MPI_Comm comm) {
  lcomm_interpose_comm *at = NULL;
  bool is_known = look_up(comm, &at);
  return is_known || !table.world ? at : create(comm);
}

/* ------------------------------------------------------------------ freeing */

void lcomm_interpose_comm_retain(lcomm_interpose_comm *at) {
  atomic_fetch_add(&at->users, 1);
}

/* Frees nothing, because MPI's waiting functions call this, too. */
void lcomm_interpose_comm_release(lcomm_interpose_comm *at) {
  if (atomic_fetch_sub(&at->users, 1) > 1) {
    return;
  }
  pthread_mutex_lock(&table.lock);
  at->next = table.unused;
  table.unused = at;
  pthread_mutex_unlock(&table.lock);
}

static void free_unused(void) {
  pthread_mutex_lock(&table.lock);
  lcomm_interpose_comm *at = table.unused, *next = NULL;
  table.unused = NULL;
  pthread_mutex_unlock(&table.lock);
  for (; at; at = next) {
    next = at->next;
    lcomm_interpose_comm_clear(at);
    free(at);
  }
  lcomm_interpose_release_ready();
}

/* MPI calls this when this rank frees the communicator. It waits for no other rank: calls in flight
 * go on, and their failures still reach the error handler. */
static int on_free(MPI_Comm comm, int keyval, void *value, void *extra) {
  lcomm_interpose_comm *at = value;
  (void)comm;
  (void)keyval;
  (void)extra;
  if (value == &ineligible) {
    return MPI_SUCCESS;
  }
  lcomm_interpose_backing_detach(at);
  lcomm_interpose_requests_detach(at);
  lcomm_interpose_slots_detach(at);
  remove_from_list(at);
  lcomm_interpose_comm_detach(at);
  lcomm_interpose_comm_release(at);
  free_unused();
  return MPI_SUCCESS;
}

/* Unlike MPI_Comm_free this waits for calls in flight. */
LCOMM_INTERPOSE_API int MPI_Comm_disconnect(MPI_Comm *comm) {
  lcomm_interpose_comm *at = NULL;
  if (!lcomm_interpose_is_off() && comm && look_up(*comm, &at) && at) {
    lcomm_interpose_drain(at);
  }
  return PMPI_Comm_disconnect(comm);
}

void lcomm_interpose_comms_close(void) {
  lcomm_interpose_drain(NULL);
  for (lcomm_interpose_comm *at = first_in_list(); at; at = first_in_list()) {
    PMPI_Comm_delete_attr(at->comm, table.keyval);
  }
  lcomm_interpose_requests_detach(NULL);
  free_unused();
  lcomm_interpose_release_world(&table.world);
  if (table.keyval != MPI_KEYVAL_INVALID) {
    PMPI_Comm_free_keyval(&table.keyval);
  }
  lcomm_interpose_channels_close();
  lcomm_interpose_rendezvous_close();
  lcomm_interpose_error_close();
}

/* ------------------------------------------------------------------ opening */

/* Succeeds on all ranks or on none. */
static bool create_world(void) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.timeout_s = lcomm_setting("LCOMM_TIMEOUT_S") ? 0 : LCOMM_INTERPOSE_DEFAULT_TIMEOUT_S;
  if (lcomm_create_mpi(MPI_COMM_WORLD, &config, &table.world) != LCOMM_OK) {
    return false;
  }
  lcomm_stats_hide(table.world);
  return true;
}

const char *lcomm_interpose_comms_open(void) {
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_free, &table.keyval, NULL);
  if (!create_world()) {
    return lcomm_last_error(NULL);
  }
  if (!lcomm_interpose_rendezvous_open() || !lcomm_interpose_channels_open()) {
    return "MPI makes no communicators for libcomm's own messages";
  }
  lcomm_interpose_error_open();
  lcomm_interpose_comm *at = create(MPI_COMM_WORLD);
  if (at) {
    at->context.backing.comm = table.world;
  }
  return NULL;
}
