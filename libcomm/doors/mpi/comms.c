/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Communicators: made, found, freed. */

#include "libcomm/doors/mpi/comms.h"

#include <stdlib.h>
#include <string.h>

#include "libcomm/doors/mpi/control.h"
#include "libcomm/doors/mpi/persistent.h"
#include "libcomm/doors/mpi/queue.h"

/* All that the door knows, and where the ranks of the world are. */
static struct {
  int keyval;
  pthread_mutex_t lock; /* guards the list */
  lcomm_door_comm *first;
  int world_size;
  int *world_nodes; /* of each rank of the world */
  bool posing;      /* LCOMM_NODES is set */
} known = {.keyval = MPI_KEYVAL_INVALID, .lock = PTHREAD_MUTEX_INITIALIZER};

/* ---------------------------------------------------------------- the list */

static void append(lcomm_door_comm *at) {
  pthread_mutex_lock(&known.lock);
  lcomm_door_comm **link = &known.first;
  while (*link) {
    link = &(*link)->next;
  }
  *link = at;
  pthread_mutex_unlock(&known.lock);
}

static void forget(const lcomm_door_comm *at) {
  pthread_mutex_lock(&known.lock);
  for (lcomm_door_comm **link = &known.first; *link; link = &(*link)->next) {
    if (*link == at) {
      *link = at->next;
      break;
    }
  }
  pthread_mutex_unlock(&known.lock);
}

lcomm_door_comm *lcomm_door_find(MPI_Comm comm) {
  void *at = NULL;
  int found = 0;
  if (comm == MPI_COMM_NULL || known.keyval == MPI_KEYVAL_INVALID ||
      PMPI_Comm_get_attr(comm, known.keyval, &at, &found) != MPI_SUCCESS) {
    return NULL;
  }
  return found ? at : NULL;
}

/* ----------------------------------------------------------------- freeing */

static void destroy(lcomm_door_comm *at) {
  if (!at) {
    return;
  }
  lcomm_door_lasting_destroy(at->lasting);
  lcomm_door_lasting_destroy(at->owed);
  lcomm_destroy(at->made);
  lcomm_destroy(at->owing);
  pthread_mutex_destroy(&at->lock);
  free(at->parts);
  free(at);
}

/* MPI calls this when the program frees the communicator, on all of its ranks. What
 * is pending on it ends first: MPI frees a communicator when its operations are over. */
static int freed(MPI_Comm comm, int keyval, void *value, void *extra) {
  lcomm_door_comm *at = value;
  (void)comm;
  (void)keyval;
  (void)extra;
  lcomm_door_drain(at);
  lcomm_door_requests_forget(at);
  lcomm_door_places_forget(at);
  forget(at);
  destroy(at);
  return MPI_SUCCESS;
}

void lcomm_door_comms_close(void) {
  while (known.first) {
    lcomm_door_comm *at = known.first;
    PMPI_Comm_delete_attr(at->comm, known.keyval);
  }
  if (known.keyval != MPI_KEYVAL_INVALID) {
    PMPI_Comm_free_keyval(&known.keyval);
  }
  free(known.world_nodes);
  known.world_nodes = NULL;
}

/* ------------------------------------------------------------------ making */

/* Collective: all ranks have memory for it, or none goes on. */
static bool all_have(MPI_Comm comm, bool mine) {
  int least = mine;
  PMPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_INT, MPI_MIN, comm);
  return least != 0;
}

static lcomm_status equip(lcomm_door_comm *at, const lcomm_config *config) {
  lcomm_comm *made = NULL;
  lcomm_status status = lcomm_create_mpi(at->comm, config, &made);
  if (status != LCOMM_OK) {
    return status;
  }
  lcomm_policy_facts facts;
  lcomm_policy_facts_get(made, &facts);
  lcomm_door_lasting *lasting =
      facts.error_feedback ? lcomm_door_lasting_create(made, facts.step_calls) : NULL;
  if (!all_have(at->comm, lasting || !facts.error_feedback)) {
    lcomm_door_lasting_destroy(lasting);
    lcomm_destroy(made);
    return LCOMM_ERR_MEMORY;
  }
  at->made = made;
  at->facts = facts;
  if (facts.min_bytes < at->candidate_bytes) {
    at->candidate_bytes = facts.min_bytes;
  }
  at->lasting = lasting;
  if (at->name_agreed) {
    lcomm_name_set(made, at->name);
  }
  return LCOMM_OK;
}

/* The distinct nodes of the world that the communicator has ranks on; 0 when it has
 * ranks of other worlds. */
static int count_nodes(MPI_Comm comm, int size) {
  int nodes = 0, *ranks = malloc(3 * (size_t)size * sizeof(*ranks));
  if (!ranks) {
    return 0;
  }
  int *in_world = ranks + size, *seen = in_world + size;
  MPI_Group group = MPI_GROUP_NULL, world = MPI_GROUP_NULL;
  PMPI_Comm_group(comm, &group);
  PMPI_Comm_group(MPI_COMM_WORLD, &world);
  for (int i = 0; i < size; i++) {
    ranks[i] = i;
  }
  PMPI_Group_translate_ranks(group, size, ranks, world, in_world);
  PMPI_Group_free(&group);
  PMPI_Group_free(&world);
  for (int i = 0; i < size; i++) {
    if (in_world[i] == MPI_UNDEFINED) {
      nodes = 0;
      break;
    }
    int node = known.world_nodes[in_world[i]], j = 0;
    while (j < nodes && seen[j] != node) {
      j++;
    }
    seen[j] = node;
    nodes += j == nodes;
  }
  free(ranks);
  return nodes;
}

/* MPI waits as long as it takes: for a rank that writes a checkpoint, say. */
static const double PATIENCE_S = 7 * 24 * 3600;

lcomm_status lcomm_door_comm_equip(lcomm_door_comm *at, const char *policy) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.policy = policy;
  config.timeout_s = lcomm_setting("LCOMM_TIMEOUT_S") ? 0 : PATIENCE_S;
  /* LCOMM_NODES is about the whole job; a part poses as those nodes it has ranks on. */
  if (known.posing && at->comm != MPI_COMM_WORLD) {
    config.nodes = count_nodes(at->comm, at->size);
  }
  return equip(at, &config);
}

static lcomm_door_comm *new_comm(MPI_Comm comm) {
  lcomm_door_comm *at = calloc(1, sizeof(*at));
  if (!at) {
    return NULL;
  }
  at->comm = comm;
  at->candidate_bytes = UINT64_MAX;
  PMPI_Comm_rank(comm, &at->rank);
  PMPI_Comm_size(comm, &at->size);
  at->parts = malloc((size_t)at->size * sizeof(*at->parts));
  if (!at->parts) {
    free(at);
    return NULL;
  }
  pthread_mutex_init(&at->lock, NULL);
  return at;
}

/* All ranks have the same sentence. */
static void tell_failure(const lcomm_door_comm *at) {
  if (at->rank == 0 && at->comm != MPI_COMM_WORLD) { /* start.c tells of the world's */
    lcomm_door_say("a communicator of %d ranks stays plain MPI: %s", at->size,
                   lcomm_last_error(NULL));
  }
}

static bool attach(MPI_Comm comm) {
  lcomm_door_comm *at = new_comm(comm);
  if (!all_have(comm, at != NULL)) {
    destroy(at);
    return false;
  }
  lcomm_status status = lcomm_door_comm_equip(at, NULL);
  if (status != LCOMM_OK) {
    tell_failure(at);
    destroy(at);
    return false;
  }
  append(at);
  PMPI_Comm_set_attr(comm, known.keyval, at);
  strcpy(at->control, "on");
  lcomm_door_control_new(at);
  return true;
}

/* ------------------------------------------------------------ which, and when */

/* A call is chosen only between nodes, or where node= compresses, too. */
static bool is_worth_it(MPI_Comm comm) {
  int inter = 0, size = 0;
  PMPI_Comm_test_inter(comm, &inter);
  if (inter) {
    return false;
  }
  PMPI_Comm_size(comm, &size);
  if (size < 2) {
    return false;
  }
  const lcomm_door_comm *world = lcomm_door_find(MPI_COMM_WORLD);
  int nodes = count_nodes(comm, size);
  return world && (nodes > 1 || (nodes == 1 && world->facts.inside_nodes));
}

void lcomm_door_adopt(MPI_Comm comm) {
  if (lcomm_door_is_shut() || comm == MPI_COMM_NULL || !known.world_nodes || !is_worth_it(comm)) {
    return;
  }
  (void)attach(comm); /* the reason was told */
}

static bool learn_nodes(const lcomm_door_comm *world) {
  int node = lcomm_node(world->made);
  known.world_nodes = malloc((size_t)world->size * sizeof(int));
  if (!all_have(MPI_COMM_WORLD, known.world_nodes != NULL)) {
    return false;
  }
  PMPI_Allgather(&node, 1, MPI_INT, known.world_nodes, 1, MPI_INT, MPI_COMM_WORLD);
  return true;
}

bool lcomm_door_comms_open(void) {
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, freed, &known.keyval, NULL);
  known.posing = lcomm_setting("LCOMM_NODES") != NULL;
  const lcomm_door_comm *world = attach(MPI_COMM_WORLD) ? lcomm_door_find(MPI_COMM_WORLD) : NULL;
  return world && learn_nodes(world);
}

/* -------------------------------------------------------------------- names */

void lcomm_door_agree_on_name(lcomm_door_comm *at) {
  char mine[MPI_MAX_OBJECT_NAME] = "", first[MPI_MAX_OBJECT_NAME];
  int length = 0;
  PMPI_Comm_get_name(at->comm, mine, &length);
  memcpy(first, mine, sizeof(first));
  PMPI_Bcast(first, sizeof(first), MPI_CHAR, 0, at->comm);
  if (all_have(at->comm, strncmp(mine, first, sizeof(first)) == 0)) {
    memcpy(at->name, mine, sizeof(at->name));
    lcomm_name_set(at->made, at->name);
  } else if (at->rank == 0) {
    lcomm_door_say("the ranks of the communicator that rank 0 calls \"%s\" have different names "
                   "for it, so no rule of match=comm= fits it; give it the same name on all ranks",
                   first);
  }
  at->name_agreed = true;
}
