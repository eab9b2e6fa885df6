/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* A reunion is made with its communicator: where each rank can be met later. */

#include "libcomm/bootstrap/elastic/reunion.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "libcomm/base/verdict.h"
#include "libcomm/bootstrap/store/store_address.h"
#include "libcomm/bootstrap/store/store_internal.h"

void lcomm_reunion_forget_leavers(lcomm_reunion *reunion) {
  for (int i = 0; i < reunion->leaver_count; i++) {
    free(reunion->leavers[i].block.bytes);
  }
  free(reunion->leavers);
  reunion->leavers = NULL;
  reunion->leaver_count = 0;
}

void lcomm_reunion_free(lcomm_reunion *reunion) {
  if (!reunion) {
    return;
  }
  lcomm_reunion_forget_leavers(reunion);
  lcomm_store_door_free(reunion->door);
  if (reunion->listener >= 0) {
    close(reunion->listener);
  }
  free(reunion->places);
  free(reunion->members);
  free(reunion);
}

void lcomm_reunion_release(lcomm_bootstrap_object *bootstrap, bool orderly) {
  (void)orderly;
  lcomm_reunion_free(bootstrap->reunion);
  bootstrap->reunion = NULL;
}

/* Rank 0 looks before the ranks tell each other how many wait. */
int lcomm_reunion_look(lcomm_bootstrap_object *bootstrap) {
  lcomm_reunion *reunion = bootstrap->reunion;
  if (!reunion) {
    return 0;
  }
  if (!reunion->door) {
    reunion->door = lcomm_store_door_make(&reunion->place);
  }
  return reunion->door ? lcomm_store_door_look(reunion->door) : 0;
}

lcomm_status lcomm_reunion_make_room(lcomm_reunion *reunion, int seats) {
  if (seats <= reunion->seats) {
    return LCOMM_OK;
  }
  lcomm_store_place *places = realloc(reunion->places, (size_t)seats * sizeof *places);
  if (!places) {
    return LCOMM_ERR_MEMORY;
  }
  reunion->places = places;
  int *members = realloc(reunion->members, (size_t)seats * sizeof *members);
  if (!members) {
    return LCOMM_ERR_MEMORY;
  }
  reunion->members = members;
  memset(places + reunion->seats, 0, (size_t)(seats - reunion->seats) * sizeof *places);
  reunion->seats = seats;
  return LCOMM_OK;
}

lcomm_reunion *lcomm_reunion_of_newcomer(const lcomm_launcher_env *place) {
  lcomm_reunion *made = calloc(1, sizeof *made);
  if (!made) {
    return NULL;
  }
  made->listener = made->seat = -1;
  made->place = *place;
  if (getrandom(&made->process, sizeof(made->process), 0) != (ssize_t)sizeof(made->process)) {
    made->process = (uint64_t)getpid();
  }
  return made;
}

static lcomm_reunion *make(const lcomm_reunion_making *making) {
  lcomm_reunion *made = lcomm_reunion_of_newcomer(making->launcher);
  if (!made || lcomm_reunion_make_room(made, making->store->size) != LCOMM_OK) {
    lcomm_reunion_free(made);
    return NULL;
  }
  made->seat = making->store->rank;
  made->count = making->store->size;
  made->generation = 1;
  for (int seat = 0; seat < made->seats; seat++) {
    made->members[seat] = seat;
  }
  return made;
}

/* --------------------------------------------------------------- addresses */

static uint32_t family_of(int fd) {
  struct sockaddr_storage here;
  socklen_t size = 0;
  bool known = lcomm_socket_name(fd, false, &here, &size);
  return !known ? 0 : here.ss_family == AF_INET6 ? 6 : 4;
}

/* Others reach rank 0 at whatever addresses its host has. */
static void open_port(lcomm_reunion *made, const lcomm_store *store, int *port) {
  int fd = store->rank == 0 ? store->peers[1].fd : store->fd;
  bool one_host = made->place.one_host;
  made->listener = store->rank == 0 && !one_host ? lcomm_socket_listen_wide(fd, port)
                                                 : lcomm_socket_listen_beside(fd, one_host, port);
}

static void listen_for_others(const lcomm_store *store, lcomm_reunion *made,
                              lcomm_reunion_address *mine) {
  int port = 0;
  open_port(made, store, &port);
  *mine = (lcomm_reunion_address){.place = {.way = LCOMM_STORE_WAY_BESIDE}};
  if (store->rank > 0) {
    lcomm_socket_place_here(store->fd, &mine->place);
  }
  if (made->listener < 0 || mine->place.way == LCOMM_STORE_WAY_STAR) {
    *mine = (lcomm_reunion_address){.place = {.way = LCOMM_STORE_WAY_STAR}};
    return;
  }
  mine->place.port = (uint16_t)port;
  mine->family = family_of(made->listener);
}

/* What is beside rank 0 is where its connection comes from, for rank 0, and else where rank 0 is.
 */
lcomm_status lcomm_reunion_resolve(const lcomm_store *store, int rank, lcomm_reunion_address *it) {
  uint16_t port = it->place.port;
  if (it->place.way == LCOMM_STORE_WAY_STAR) {
    return LCOMM_ERR_UNSUPPORTED;
  }
  if (it->place.way == LCOMM_STORE_WAY_BESIDE && rank != store->rank) {
    lcomm_socket_place_seen(store->rank == 0 ? store->peers[rank].fd : store->fd, &it->place);
    it->place.port = port;
  }
  bool is_six = it->place.way == LCOMM_STORE_WAY_IPV6;
  return rank == store->rank || it->family == (is_six ? 6 : 4) ? LCOMM_OK : LCOMM_ERR_UNSUPPORTED;
}

lcomm_reunion_address lcomm_reunion_address_here(lcomm_reunion *reunion, const lcomm_store *store) {
  struct sockaddr_storage here;
  socklen_t size = 0;
  int port = 0;
  if (reunion->listener < 0 && store->rank == 0 && store->size > 1) {
    open_port(reunion, store, &port);
  }
  lcomm_reunion_address it = {.place = {.way = LCOMM_STORE_WAY_BESIDE}};
  if (store->rank > 0) {
    lcomm_socket_place_here(store->fd, &it.place);
  }
  if (it.place.way == LCOMM_STORE_WAY_STAR ||
      !lcomm_socket_name(reunion->listener, false, &here, &size)) {
    return (lcomm_reunion_address){.place = {.way = LCOMM_STORE_WAY_STAR}};
  }
  it.place.port = (uint16_t)lcomm_socket_port(&here);
  it.family = family_of(reunion->listener);
  return it;
}

/* The first rank that others cannot meet, from here. */
static lcomm_status take_all(const lcomm_store *store, const uint8_t *all, lcomm_reunion *made,
                             int *unmet) {
  for (int rank = 0; rank < store->size; rank++) {
    lcomm_reunion_address it;
    lcomm_status status =
        lcomm_reunion_read_address(all + (size_t)rank * LCOMM_REUNION_ADDRESS_SIZE, &it);
    *unmet = rank;
    LCOMM_TRY(status == LCOMM_OK ? lcomm_reunion_resolve(store, rank, &it) : status);
    made->places[rank] = it.place;
  }
  return LCOMM_OK;
}

/* A rank without memory for it (NULL) takes part all the same. */
static lcomm_status exchange(const lcomm_reunion_making *making, const lcomm_bootstrap *base,
                             lcomm_reunion *made, int *unmet) {
  uint8_t mine[LCOMM_REUNION_ADDRESS_SIZE];
  lcomm_reunion_address address = {.place = {.way = LCOMM_STORE_WAY_STAR}};
  if (base->world_size == 1) { /* there is nobody to be met by */
    return made ? LCOMM_OK : LCOMM_ERR_MEMORY;
  }
  uint8_t *all = calloc((size_t)base->world_size, sizeof(mine));
  if (!all) {
    return LCOMM_ERR_TRANSPORT; /* the others cannot go on either */
  }
  if (made) {
    listen_for_others(making->store, made, &address);
  }
  lcomm_reunion_pack_address(&address, mine);
  bool good = base->allgather(base->context, mine, all, sizeof(mine)) == 0;
  lcomm_status status = !good   ? LCOMM_ERR_TRANSPORT
                        : !made ? LCOMM_ERR_MEMORY
                                : take_all(making->store, all, made, unmet);
  free(all);
  return status;
}

/* ------------------------------------------------------------------ joining */

static lcomm_status say(const lcomm_verdict *verdict, int rank, int unmet) {
  if (verdict->status == LCOMM_ERR_UNSUPPORTED && verdict->rank == rank) {
    return lcomm_error_thread(
        verdict->status,
        "rank %d: after a loss rank %d could not be met (LCOMM_ELASTIC=on): it "
        "cannot listen at a port, or its address is good on one link only, or "
        "is of another version of IP; set MASTER_ADDR to an address of rank 0 "
        "that all hosts reach",
        rank, unmet);
  }
  return lcomm_error_thread(verdict->status,
                            "rank %d: addresses for the time after a loss (LCOMM_ELASTIC=on) were "
                            "not exchanged; rank %d reports: %s",
                            rank, verdict->rank, verdict->text);
}

/* Collective; on all ranks or on none. */
static lcomm_status join(lcomm_bootstrap_object *bootstrap, const lcomm_world_rank *all) {
  (void)all;
  const lcomm_reunion_making *making = bootstrap->context;
  int rank = bootstrap->base.rank, unmet = 0;
  lcomm_verdict verdict;
  bootstrap->reunion = make(making);
  lcomm_status status = exchange(making, &bootstrap->base, bootstrap->reunion, &unmet);
  bootstrap->context = NULL;
  bootstrap->join = NULL;
  if (status == LCOMM_ERR_TRANSPORT) {
    return lcomm_error_thread(status,
                              "rank %d: addresses for the time after a loss could not be "
                              "exchanged with the others",
                              rank);
  }
  LCOMM_TRY(lcomm_verdict_gather(&bootstrap->base, status, &verdict));
  return verdict.status == LCOMM_OK ? LCOMM_OK : say(&verdict, rank, unmet);
}

void lcomm_reunion_prepare(lcomm_bootstrap_object *bootstrap, lcomm_reunion_making *making) {
  bootstrap->elastic = true;
  bootstrap->world = (lcomm_world_rank){.rank = -1};
  bootstrap->context = making;
  bootstrap->join = join;
  bootstrap->look = lcomm_reunion_look;
  bootstrap->release = lcomm_reunion_release;
}
