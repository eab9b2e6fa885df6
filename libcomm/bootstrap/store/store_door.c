/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/bootstrap/store/store_door.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "libcomm/base/clock.h"

static const double RETRY_S = 0.5; /* before a port that was taken is tried again */

struct lcomm_store_door {
  lcomm_store_door *next;
  lcomm_launcher_env place;
  lcomm_store *store;
  lcomm_store_rendezvous meeting;
  lcomm_store_newcomer newcomers[LCOMM_STORE_NEWCOMERS_MAX];
  int count;
  double open_from_s;
};

/* All doors of this process, and what is in them. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static lcomm_store_door *doors;

static void free_door(lcomm_store_door *door) {
  free(door->meeting.visitors);
  lcomm_store_close(door->store);
  free(door);
}

lcomm_store_door *lcomm_store_door_make(const lcomm_launcher_env *launcher) {
  static const lcomm_store_shape star = {.star_most = INT_MAX, .fan_out = 4};
  lcomm_store_door *made = calloc(1, sizeof *made);
  if (!made) {
    return NULL;
  }
  made->place = *launcher;
  made->place.rank = 0;
  made->place.world_size = 1;
  made->meeting.visitors = calloc(LCOMM_STORE_VISITORS_MAX, sizeof *made->meeting.visitors);
  if (!made->meeting.visitors ||
      lcomm_store_begin(&made->place, 1, star, &made->store) != LCOMM_OK) {
    free_door(made);
    return NULL;
  }
  made->store->launcher = &made->place;
  made->meeting.store = made->store;
  made->meeting.door = made;
  pthread_mutex_lock(&lock);
  made->next = doors;
  doors = made;
  pthread_mutex_unlock(&lock);
  return made;
}

/* Listen no more, and hang up on who has not said who it is. */
static void shut(lcomm_store_door *door) {
  lcomm_store_rendezvous *m = &door->meeting;
  for (int i = 0; i < m->listener_count; i++) {
    close(m->listeners[i]);
  }
  for (int i = 0; i < m->visitor_count; i++) {
    if (m->visitors[i].fd >= 0) {
      lcomm_store_visitor_part(&m->visitors[i]);
    }
  }
  m->listener_count = m->visitor_count = 0;
}

void lcomm_store_door_free(lcomm_store_door *door) {
  if (!door) {
    return;
  }
  pthread_mutex_lock(&lock);
  lcomm_store_door **at = &doors;
  while (*at != door) {
    at = &(*at)->next;
  }
  *at = door->next;
  shut(door);
  for (int i = 0; i < door->count; i++) {
    close(door->newcomers[i].fd);
  }
  pthread_mutex_unlock(&lock);
  free_door(door);
}

void lcomm_store_door_yield(int port) {
  pthread_mutex_lock(&lock);
  for (lcomm_store_door *door = doors; door; door = door->next) {
    if (door->place.port == port) {
      shut(door);
    }
  }
  pthread_mutex_unlock(&lock);
}

/* ----------------------------------------------------------------- looking */

static bool is_open(lcomm_store_door *door) {
  lcomm_why why;
  bool in_use = false;
  lcomm_store_rendezvous *m = &door->meeting;
  if (m->listener_count == 0 && lcomm_clock_s() >= door->open_from_s) {
    m->listener_count = lcomm_socket_listen(door->place.address, door->place.port,
                                            door->place.one_host, m->listeners, &in_use, &why);
    door->open_from_s = lcomm_clock_s() + RETRY_S;
  }
  return m->listener_count > 0;
}

static void forget_those_who_left(lcomm_store_door *door) {
  int still = 0;
  for (int i = 0; i < door->count; i++) {
    if (lcomm_socket_is_silent(door->newcomers[i].fd)) {
      door->newcomers[still++] = door->newcomers[i];
    } else {
      close(door->newcomers[i].fd);
    }
  }
  door->count = still;
}

int lcomm_store_door_look(lcomm_store_door *door) {
  pthread_mutex_lock(&lock);
  if (is_open(door)) {
    (void)lcomm_store_round(&door->meeting, 0); /* what it cannot do now, it can later */
  }
  forget_those_who_left(door);
  int count = door->count;
  pthread_mutex_unlock(&lock);
  return count;
}

int lcomm_store_door_take(lcomm_store_door *door, int fds[LCOMM_STORE_NEWCOMERS_MAX]) {
  pthread_mutex_lock(&lock);
  int count = door->count;
  for (int i = 0; i < count; i++) {
    fds[i] = door->newcomers[i].fd;
  }
  door->count = 0;
  pthread_mutex_unlock(&lock);
  return count;
}

/* Who greets again has a new connection. */
bool lcomm_store_door_admit(lcomm_store_door *door, int fd,
                            const lcomm_store_handshake *handshake) {
  for (int i = 0; i < door->count; i++) {
    if (door->newcomers[i].process == handshake->process) {
      close(door->newcomers[i].fd);
      door->newcomers[i] = door->newcomers[--door->count];
      break;
    }
  }
  if (door->count == LCOMM_STORE_NEWCOMERS_MAX || !lcomm_store_say(fd, LCOMM_STORE_WAIT)) {
    return false;
  }
  door->newcomers[door->count++] = (lcomm_store_newcomer){fd, handshake->process};
  return true;
}
