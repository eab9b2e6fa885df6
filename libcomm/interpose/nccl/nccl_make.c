/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Making communicators. To make one waits for its other ranks, which may be in the same group of
 * one thread: so those of a group are made at a time, by threads. */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libcomm/interpose/nccl/nccl_comm.h"

/* -------------------------------------------------------------- new and freed */

static bool blocks(const ncclComm_t parent, const ncclConfig_t *config) {
  bool says = config && config->size > offsetof(ncclConfig_t, blocking) &&
              (config->blocking == 0 || config->blocking == 1);
  return says ? config->blocking == 1 : !parent || parent->blocks;
}

ncclComm_t lcomm_nccl_comm_new(const char *function, const ncclComm_t parent,
                               const ncclConfig_t *config) {
  ncclComm_t it = calloc(1, sizeof *it);
  if (!it) {
    lcomm_nccl_fail(ncclSystemError, "%s: there is no memory for a communicator", function);
    return NULL;
  }
  pthread_mutex_init(&it->lock, NULL);
  it->blocks = blocks(parent, config);
  it->place_socket = -1;
  if (lcomm_device_current(&it->device) != LCOMM_OK) {
    it->device = -1;
  }
  return it;
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

/* Each rank tells the others where those that are left may meet if some are lost; zeros where it
 * has no place. */
static lcomm_status share_places(ncclComm_t comm) {
  lcomm_nccl_place place;
  ncclUniqueId mine;
  memset(&mine, 0, sizeof(mine));
  comm->places = calloc((size_t)comm->size, sizeof *comm->places);
  comm->counts = calloc((size_t)comm->size, sizeof *comm->counts);
  if (!comm->places || !comm->counts) {
    return LCOMM_ERR_MEMORY;
  }
  if (lcomm_nccl_place_find(&place, &comm->place_socket) == ncclSuccess) {
    lcomm_nccl_id_write(&place, &mine);
  }
  return lcomm_allgather(comm->comm, &mine, comm->places, sizeof(mine), LCOMM_UINT8);
}

/* Ranks that pose as more nodes than are left pose as a node each. */
static int posed_nodes(const lcomm_nccl_making *it) {
  const char *text = it->shrinks ? lcomm_setting("LCOMM_NODES") : NULL;
  return text && atoi(text) > it->comm->size ? it->comm->size : 0;
}

static lcomm_status meet(lcomm_nccl_making *it) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.nodes = posed_nodes(it);
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

static void give_up(ncclComm_t comm, const char *why) {
  lcomm_abort(comm->comm, why);
  lcomm_destroy(comm->comm);
  comm->comm = NULL;
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
  status = share_places(comm);
  if (status == LCOMM_OK) {
    return ncclSuccess;
  }
  ncclResult_t result = status == LCOMM_ERR_MEMORY
                            ? lcomm_nccl_fail(ncclSystemError, "no memory for a communicator")
                            : lcomm_nccl_ended(comm->comm, status);
  give_up(comm, "a rank could not make its communicator of NCCL");
  return result;
}
