/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The host of a meeting of survivors: takes them in as rank 0 of a store does, finds out who is
 * dead, decides who goes on, and tells all who came. */

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "libcomm/base/clock.h"
#include "libcomm/bootstrap/elastic/reunion.h"
#include "libcomm/bootstrap/store/store_internal.h"

static const double LOOK_S = 0.02;      /* how long one round of the meeting lasts at most */
static const double PROBE_MIN_S = 0.02; /* between two looks whether absent ones are dead, ... */
static const double PROBE_MAX_S = 2;    /* ... which become rarer */

typedef struct hosting {
  lcomm_reunion *reunion;
  lcomm_launcher_env place;
  lcomm_store *store; /* of all seats: seat s is rank s + 1 */
  lcomm_store_rendezvous meeting;
  bool *dead; /* per seat */
  double probe_s, pause_s;
} hosting;

static lcomm_store_peer *peer_of(const hosting *h, int seat) {
  return &h->store->peers[seat + 1];
}

/* It is this rank, or it has come. */
static bool is_here(const hosting *h, int seat) {
  return seat == h->reunion->seat || peer_of(h, seat)->fd >= 0;
}

static lcomm_status begin(hosting *h, double timeout_s) {
  static const lcomm_store_shape star = {.star_most = INT_MAX, .fan_out = 4};
  lcomm_reunion *reunion = h->reunion;
  h->place = reunion->place;
  h->place.rank = 0;
  h->place.world_size = reunion->seats + 1;
  h->place.size_from = "the first communicator";
  LCOMM_TRY(lcomm_store_begin(&h->place, timeout_s, star, &h->store));
  h->store->launcher = &h->place;
  h->dead = calloc((size_t)reunion->seats, sizeof *h->dead);
  h->meeting = (lcomm_store_rendezvous){
      .store = h->store,
      .any_world = true,
      .listeners = {reunion->listener},
      .listener_count = reunion->listener >= 0,
      .missing = reunion->seats,
      .visitors = calloc(LCOMM_STORE_VISITORS_MAX, sizeof *h->meeting.visitors)};
  if (!h->dead || !h->meeting.visitors) {
    return lcomm_error_thread(LCOMM_ERR_MEMORY, "lcomm_shrink: out of memory");
  }
  return LCOMM_OK;
}

/* The listener stays. */
static void finish(hosting *h) {
  if (h->store && h->meeting.visitors) {
    h->meeting.listener_count = 0;
    lcomm_store_end_meeting(&h->meeting);
  }
  lcomm_store_close(h->store);
  free(h->dead);
}

/* Those that are waited for: the members, then guests. */
static int count_awaited(const lcomm_reunion *reunion) {
  return reunion->count + reunion->guest_count;
}

static int awaited(const lcomm_reunion *reunion, int i) {
  return i < reunion->count ? reunion->members[i] : reunion->guests[i - reunion->count];
}

/* Seats that were given up come too late. */
static void turn_away(hosting *h) {
  for (int seat = 0; seat < h->reunion->seats; seat++) {
    if (peer_of(h, seat)->fd >= 0 && !lcomm_reunion_has(h->reunion, seat)) {
      lcomm_store_say_reason(peer_of(h, seat)->fd, LCOMM_STORE_REFUSED, LCOMM_ERR_TIMEOUT,
                             "this rank was given up, and the others have gone on without it");
      lcomm_store_member_lose(&h->meeting, seat + 1);
    }
  }
}

static void probe(hosting *h) {
  double now_s = lcomm_clock_s();
  if (now_s < h->probe_s) {
    return;
  }
  for (int i = 0; i < count_awaited(h->reunion); i++) {
    int seat = awaited(h->reunion, i);
    if (!is_here(h, seat) && !h->dead[seat]) {
      h->dead[seat] = lcomm_reunion_is_dead(h->reunion, seat);
    }
  }
  h->pause_s = h->pause_s * 2 < PROBE_MAX_S ? h->pause_s * 2 + PROBE_MIN_S : PROBE_MAX_S;
  h->probe_s = lcomm_clock_s() + h->pause_s;
}

/* Are all here, or dead? Those that are here are looked at once more. */
static bool is_complete(hosting *h) {
  bool complete = true;
  for (int i = 0; i < count_awaited(h->reunion); i++) {
    int seat = awaited(h->reunion, i);
    if (peer_of(h, seat)->fd >= 0) {
      lcomm_store_member_check(&h->meeting, seat + 1);
    }
    complete &= is_here(h, seat) || h->dead[seat];
  }
  return complete;
}

static lcomm_status gather(hosting *h, double until_s) {
  while (!is_complete(h) && lcomm_clock_s() < until_s) {
    LCOMM_TRY(lcomm_store_round(&h->meeting, lcomm_clock_s() + LOOK_S));
    turn_away(h);
    probe(h);
  }
  return LCOMM_OK;
}

static void fill_list(const hosting *h, lcomm_reunion_list *list) {
  const lcomm_reunion *reunion = h->reunion;
  list->survivors = list->dead = list->newcomers = list->rank = 0;
  list->world = reunion->seats;
  for (int i = 0; i < count_awaited(reunion); i++) {
    if (is_here(h, awaited(reunion, i))) {
      list->seats[list->survivors++] = awaited(reunion, i);
    }
  }
  for (int i = 0; i < count_awaited(reunion); i++) {
    int seat = awaited(reunion, i);
    if (!is_here(h, seat) && h->dead[seat]) {
      list->seats[list->survivors + list->dead++] = seat;
    }
  }
}

static lcomm_status check(hosting *h, const lcomm_reunion_list *list, double timeout_s) {
  const lcomm_reunion *reunion = h->reunion;
  if (lcomm_reunion_list_suffices(list, reunion->members, reunion->count)) {
    return LCOMM_OK;
  }
  lcomm_store_fail(
      h->store, LCOMM_ERR_TIMEOUT,
      "%d of %d ranks came to the meeting after a loss within %g s, %d are dead, and of "
      "the others nobody knows; they could go on as well, so these do not: see whether "
      "the network between the hosts is down",
      list->survivors, reunion->count, timeout_s, list->dead);
  return lcomm_store_fail_all(h->store);
}

/* Have all come but those that have left in order? */
static bool is_nobody_lost(const hosting *h, const lcomm_reunion_list *list) {
  const lcomm_reunion *reunion = h->reunion;
  int left = 0;
  for (int i = 0; i < reunion->leaver_count; i++) {
    left += !is_here(h, reunion->leavers[i].seat);
  }
  return list->survivors + left == count_awaited(reunion);
}

static void admit(hosting *h, lcomm_reunion_list *list, int *fds) {
  lcomm_bootstrap_object here = {.reunion = h->reunion};
  if (h->reunion->admits && is_nobody_lost(h, list) && lcomm_reunion_look(&here) > 0) {
    list->newcomers = lcomm_store_door_take(h->reunion->door, fds + list->survivors);
  }
}

/* Who does not get it breaks off, which all notice in what follows. */
static void send_list(lcomm_reunion_list *list, const int *fds, uint8_t *bytes) {
  size_t size = lcomm_reunion_list_size(list);
  lcomm_store_pack_frame((lcomm_store_frame){LCOMM_STORE_LIST, size}, bytes);
  for (int rank = 1; rank < list->survivors + list->newcomers; rank++) {
    list->rank = rank;
    lcomm_reunion_pack_list(list, bytes + LCOMM_STORE_HEADER_SIZE);
    lcomm_socket_expect(fds[rank], 0);
    (void)lcomm_store_say_bytes(fds[rank], bytes, LCOMM_STORE_HEADER_SIZE + size);
  }
  list->rank = 0;
}

/* The connections become those of the store. */
static lcomm_status tell(hosting *h, lcomm_reunion_list *list, double timeout_s,
                         lcomm_survivors *found) {
  uint8_t *bytes = malloc(LCOMM_STORE_HEADER_SIZE + lcomm_reunion_list_size(list));
  int *fds = calloc((size_t)list->survivors + LCOMM_STORE_NEWCOMERS_MAX, sizeof *fds);
  lcomm_status status = LCOMM_ERR_MEMORY;
  if (bytes && fds) {
    for (int i = 1; i < list->survivors; i++) {
      fds[i] = peer_of(h, list->seats[i])->fd;
    }
    admit(h, list, fds);
    status = lcomm_store_star(0, list->survivors + list->newcomers, fds, timeout_s, &found->store);
  }
  for (int i = 0; status != LCOMM_OK && i < list->newcomers; i++) {
    close(fds[list->survivors + i]);
  }
  for (int i = 1; status == LCOMM_OK && i < list->survivors; i++) {
    peer_of(h, list->seats[i])->fd = -1;
  }
  if (status == LCOMM_OK) {
    send_list(list, fds, bytes);
  }
  free(bytes);
  free(fds);
  return status == LCOMM_ERR_MEMORY ? lcomm_error_thread(status, "lcomm_shrink: out of memory")
                                    : status;
}

lcomm_status lcomm_reunion_host(lcomm_reunion *reunion, double timeout_s, double until_s,
                                lcomm_survivors *found) {
  hosting h = {.reunion = reunion};
  double end_s = lcomm_clock_s() + timeout_s;
  lcomm_status status = begin(&h, timeout_s);
  if (status == LCOMM_OK && lcomm_reunion_list_make_room(&found->list, reunion->seats)) {
    status = lcomm_error_thread(LCOMM_ERR_MEMORY, "lcomm_shrink: out of memory");
  }
  if (status == LCOMM_OK) {
    status = gather(&h, end_s < until_s ? end_s : until_s);
  }
  if (status == LCOMM_OK) {
    fill_list(&h, &found->list);
    status = check(&h, &found->list, timeout_s);
  }
  if (status == LCOMM_OK) {
    found->rank = 0;
    status = tell(&h, &found->list, timeout_s, found);
  }
  finish(&h);
  return status;
}
