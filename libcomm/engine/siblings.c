/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/engine/siblings.h"

#include "libcomm/base/exit_hook.h"
#include "libcomm/engine/progress_thread.h"

/* A thread holds the lock while it moves others, so that none of them is freed. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static lcomm_comm *first;
static atomic_uint count;
static unsigned sleepers; /* threads that sleep on the descriptors of others */
static bool closed;       /* the process exits, and with it what others use */

/* ------------------------------------------------------------------ the list */

static void close_list(lcomm_exit_hook *it) {
  (void)it;
  pthread_mutex_lock(&lock);
  closed = true;
  pthread_mutex_unlock(&lock);
}

static lcomm_exit_hook hook = {.run = close_list};

/* In a forked child: the siblings are its parent's. */
static void forget_all(void) {
  pthread_mutex_init(&lock, NULL);
  first = NULL;
  sleepers = 0;
  atomic_store(&count, 0);
  hook.added = false;
}

static void watch_forks(void) {
  pthread_atfork(NULL, NULL, forget_all);
}

void lcomm_siblings_add(lcomm_comm *comm) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, watch_forks);
  lcomm_exit_hook_add(&hook); /* without the lock, which hooks take */
  pthread_mutex_lock(&lock);
  comm->sibling.previous = NULL;
  comm->sibling.next = first;
  if (first) {
    first->sibling.previous = comm;
  }
  first = comm;
  comm->sibling.is_listed = true;
  atomic_fetch_add(&count, 1);
  pthread_mutex_unlock(&lock);
}

void lcomm_siblings_remove(lcomm_comm *comm) {
  if (!comm->sibling.is_listed) {
    return;
  }
  pthread_mutex_lock(&lock);
  *(comm->sibling.previous ? &comm->sibling.previous->sibling.next : &first) = comm->sibling.next;
  if (comm->sibling.next) {
    comm->sibling.next->sibling.previous = comm->sibling.previous;
  }
  comm->sibling.is_listed = false;
  atomic_fetch_sub(&count, 1);
  pthread_mutex_unlock(&lock);
}

/* ------------------------------------------------------------------- others */

static bool has_others(const lcomm_comm *mine) {
  return atomic_load_explicit(&count, memory_order_relaxed) > (mine->sibling.is_listed ? 1 : 0);
}

/* May there be something to do? Read without its turn, so this is a hint. */
static bool is_busy(const lcomm_comm *comm) {
  return atomic_load_explicit(&comm->operations.in_flight, memory_order_relaxed) > 0 ||
         atomic_load_explicit(&comm->deferred.open, memory_order_relaxed);
}

/* The next busy one, starting with `it`, that nobody is inside of; the caller's turn. */
static lcomm_comm *take_busy(const lcomm_comm *mine, lcomm_comm *it) {
  while (it && (it == mine || !is_busy(it) || !lcomm_turn_try(&it->turn))) {
    it = it->sibling.next;
  }
  return it;
}

static lcomm_comm *take_next(const lcomm_comm *mine, lcomm_comm *taken) {
  lcomm_turn_end(&taken->turn);
  return take_busy(mine, taken->sibling.next);
}

bool lcomm_siblings_move(lcomm_comm *mine) {
  bool moved = false;
  if (!has_others(mine) || pthread_mutex_trylock(&lock) != 0) {
    return false;
  }
  for (lcomm_comm *it = closed ? NULL : take_busy(mine, first); it; it = take_next(mine, it)) {
    moved |= lcomm_engine_progress(it);
  }
  pthread_mutex_unlock(&lock);
  return moved;
}

void lcomm_siblings_listen(lcomm_comm *mine) {
  if (!has_others(mine) || pthread_mutex_trylock(&lock) != 0) {
    return;
  }
  for (lcomm_comm *it = closed ? NULL : first; it; it = it->sibling.next) {
    if (it != mine && !is_busy(it) && lcomm_turn_try(&it->turn)) {
      lcomm_engine_progress(it);
      lcomm_turn_end(&it->turn);
    }
  }
  pthread_mutex_unlock(&lock);
}

/* ----------------------------------------------------------------- sleeping */

bool lcomm_siblings_prepare(lcomm_comm *mine, lcomm_links_wait_set *set) {
  if (!has_others(mine)) {
    return false;
  }
  if (pthread_mutex_trylock(&lock) != 0) {
    set->blind = true; /* another thread is at them; soon again */
    return false;
  }
  for (lcomm_comm *it = closed ? NULL : take_busy(mine, first); it; it = take_next(mine, it)) {
    lcomm_links_join(&it->links, set);
    set->blind |= it->runs.device_works > 0;
  }
  sleepers++;
  pthread_mutex_unlock(&lock);
  return true;
}

/* Links on which another thread still sleeps stay armed, and so do those whose owner is inside a
 * call: a peer then sends one wake-up too many. */
void lcomm_siblings_awake(lcomm_comm *mine, bool joined) {
  if (!joined) {
    return;
  }
  pthread_mutex_lock(&lock);
  bool last = --sleepers == 0 && !closed;
  for (lcomm_comm *it = last ? take_busy(mine, first) : NULL; it; it = take_next(mine, it)) {
    lcomm_links_awake(&it->links);
  }
  pthread_mutex_unlock(&lock);
}
