/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Making communicators. To make one waits for its other ranks, which may be in the same group of
 * one thread: so those of a group are made at a time, by threads. */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libcomm/interpose/nccl/nccl_choice.h"
#include "libcomm/interpose/nccl/nccl_environment.h"

/* -------------------------------------------------------------- new and freed */

ncclResult_t lcomm_nccl_comm_new(const char *function, const ncclComm_t parent,
                                 const ncclConfig_t *config, ncclComm_t *made) {
  ncclResult_t result = lcomm_nccl_config_check(function, config);
  ncclComm_t it = result == ncclSuccess ? calloc(1, sizeof *it) : NULL;
  if (!it) {
    return result != ncclSuccess
               ? result
               : lcomm_nccl_fail(ncclSystemError, "%s: there is no memory for a communicator",
                                 function);
  }
  pthread_mutex_init(&it->lock, NULL);
  it->blocks = lcomm_nccl_config_blocks(config, !parent || parent->blocks);
  lcomm_nccl_config_name(config, it->name);
  it->place_socket = -1;
  it->device = lcomm_device_noted();
  *made = it;
  return ncclSuccess;
}

void lcomm_nccl_comm_free(ncclComm_t comm) {
  pthread_mutex_destroy(&comm->lock);
  if (comm->place_socket >= 0) {
    close(comm->place_socket);
  }
  free(comm->sentence);
  free(comm->places);
  free(comm->counts);
  free(comm->factors);
  free(comm);
}

/* ----------------------------------------------------------------- families */

static uint64_t mix(uint64_t family, uint64_t value) {
  family = (family ^ value) * UINT64_C(0x9e3779b97f4a7c15);
  return family ^ family >> 29;
}

static uint64_t family_of(const lcomm_nccl_making *it) {
  uint64_t family = it->parent ? mix(it->parent->family, ++it->parent->parts) : 1;
  for (const char *at = it->place.token; *at; at++) {
    family = mix(family, (unsigned char)*at);
  }
  return it->parent && !it->shrinks ? mix(family, (uint64_t)it->color) : family;
}

/* ------------------------------------------------------------------- making */

/* What ranks tell each other when their communicator is made. */
typedef struct told {
  uint64_t process;       /* of the rank */
  uint64_t is_controlled; /* LCOMM_INTERPOSE_CONTROL is set */
  ncclUniqueId place; /* where those that are left may meet if some are lost; zeros: it has none */
  char name[LCOMM_NCCL_NAME_MAX];
} told;

static bool is_named_alike(const told *all, int ranks) {
  for (int rank = 1; rank < ranks; rank++) {
    if (memcmp(all[rank].name, all[0].name, sizeof(all[0].name)) != 0) {
      return false;
    }
  }
  return true;
}

/* They ask for its words together. */
static bool is_controlled_alike(const told *all, int ranks) {
  for (int rank = 1; rank < ranks; rank++) {
    if (all[rank].is_controlled != all[0].is_controlled) {
      return false;
    }
  }
  return true;
}

/* A name is one that all ranks give: where they differ, the communicator is one without. */
static lcomm_status drop_name(ncclComm_t comm) {
  lcomm_comm *named = comm->comm, *unnamed = NULL;
  lcomm_status status = lcomm_split(named, 0, comm->rank, NULL, &unnamed);
  if (status == LCOMM_OK) {
    comm->comm = unnamed;
    status = lcomm_destroy(named);
  }
  return status;
}

static lcomm_nccl_sharing sharing_of(const told *all, int ranks) {
  for (int rank = 1; rank < ranks; rank++) {
    for (int other = 0; other < rank; other++) {
      if (all[rank].process == all[other].process) {
        return LCOMM_NCCL_SHARED_PROCESS;
      }
    }
  }
  return LCOMM_NCCL_OWN_PROCESSES;
}

static lcomm_status tell_others(ncclComm_t comm, told *all) {
  lcomm_nccl_place place;
  told mine = {.process = lcomm_nccl_process_number(),
               .is_controlled = lcomm_interpose_control_wanted(),
               .name = ""};
  if (lcomm_nccl_place_find(&place, &comm->place_socket) == ncclSuccess) {
    lcomm_nccl_id_write(&place, &mine.place);
  }
  memcpy(mine.name, comm->name, sizeof(mine.name));
  lcomm_name_set(comm->comm, comm->name);
  lcomm_status status = lcomm_allgather(comm->comm, &mine, all, sizeof(mine), LCOMM_UINT8);
  for (int rank = 0; rank < comm->size && status == LCOMM_OK; rank++) {
    comm->places[rank] = all[rank].place;
  }
  if (status == LCOMM_OK && !is_controlled_alike(all, comm->size)) {
    return LCOMM_ERR_MISMATCH;
  }
  if (status == LCOMM_OK && !is_named_alike(all, comm->size)) {
    status = drop_name(comm);
  }
  if (status == LCOMM_OK) {
    lcomm_nccl_choices_make(comm, sharing_of(all, comm->size));
  }
  return status;
}

static lcomm_status share(ncclComm_t comm) {
  told *all = calloc((size_t)comm->size, sizeof *all);
  comm->places = calloc((size_t)comm->size, sizeof *comm->places);
  comm->counts = calloc((size_t)comm->size, sizeof *comm->counts);
  lcomm_status status =
      all && comm->places && comm->counts ? tell_others(comm, all) : LCOMM_ERR_MEMORY;
  free(all);
  return status;
}

/* Ranks that pose as more nodes than are left pose as a node each. */
static int posed_nodes(const lcomm_nccl_making *it) {
  const char *text = it->shrinks ? lcomm_setting("LCOMM_NODES") : NULL;
  return text && atoi(text) > it->comm->size ? it->comm->size : 0;
}

static lcomm_status meet(lcomm_nccl_making *it) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.nodes = posed_nodes(it);
  config.policy = lcomm_nccl_choices_policy();
  lcomm_meeting meeting = {.rank = it->comm->rank,
                           .world_size = it->comm->size,
                           .address = it->place.address,
                           .port = it->place.port,
                           .token = it->place.token};
  lcomm_status status = lcomm_create_at(&meeting, &config, &it->comm->comm);
  if (it->comm->rank == 0) {
    lcomm_nccl_place_release(&it->place);
  }
  return status;
}

static lcomm_status split(lcomm_nccl_making *it) {
  pthread_mutex_lock(&it->parent->lock);
  lcomm_status status = lcomm_split(it->parent->comm, it->color, it->key, NULL, &it->comm->comm);
  if (status != LCOMM_OK) {
    (void)lcomm_nccl_ended(it->parent->comm, status);
  }
  pthread_mutex_unlock(&it->parent->lock);
  return status;
}

static ncclResult_t not_shared(const struct ncclComm *comm, lcomm_status status) {
  switch (status) {
  case LCOMM_ERR_MEMORY:
    return lcomm_nccl_fail(ncclSystemError, "no memory for a communicator");
  case LCOMM_ERR_MISMATCH:
    return lcomm_nccl_fail(ncclInvalidUsage,
                           "LCOMM_INTERPOSE_CONTROL is set on some ranks of a communicator, and "
                           "not on others; set it on all, or on none");
  default:
    return lcomm_nccl_ended(comm->comm, status);
  }
}

/* What the thread's device is now does not matter when this returns. */
ncclResult_t lcomm_nccl_make(lcomm_nccl_making *it) {
  ncclComm_t comm = it->comm;
  if (comm->device >= 0) {
    (void)lcomm_device_use(comm->device);
  }
  comm->family = family_of(it);
  bool splits = it->parent && !it->shrinks;
  lcomm_status status = splits ? split(it) : meet(it);
  if (status != LCOMM_OK) {
    return splits ? lcomm_nccl_result(status) : lcomm_nccl_ended(NULL, status);
  }
  if (!comm->comm) { /* no color */
    return ncclSuccess;
  }
  comm->rank = lcomm_rank(comm->comm);
  comm->size = lcomm_size(comm->comm);
  status = share(comm);
  if (status == LCOMM_OK) {
    return ncclSuccess;
  }
  ncclResult_t result = not_shared(comm, status);
  if (status != LCOMM_ERR_MISMATCH) { /* which all ranks have found */
    lcomm_abort(comm->comm, "a rank could not make its communicator of NCCL");
  }
  lcomm_destroy(comm->comm);
  comm->comm = NULL;
  return result;
}
