/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The queue's thread. The program's threads only append to a list under a lock that
 * is never held for long, and wait for conditions of it. */

#include "libcomm/interpose/mpi/line.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include "libcomm/interpose/mpi/persistent.h"

static const long NAP_MIN_NS = 4000, NAP_MAX_NS = 100000, BUSY_NS = 20000;

typedef struct piece {
  lcomm_interpose_entry entry;
  lcomm_interpose_line line;
  struct piece *next;
} piece;

static struct {
  pthread_mutex_t lock;
  pthread_cond_t given, ended;
  bool ready; /* both conditions are made */
  bool running, stops;
  pthread_t thread;
  lcomm_interpose_entry *first, *last; /* given, not yet seen by the thread */
  lcomm_interpose_entry *spare;
  piece *pieces;    /* all memory */
  unsigned pending; /* calls that are not over */
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The thread's own. */
static struct {
  lcomm_interpose_lines lines;
  long nap_ns;
} served;

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* With the queue's lock: wait for a signal, at most so long. */
static void wait_at_most(pthread_cond_t *condition, long ns) {
  int64_t until = now_ns() + ns;
  struct timespec end = {.tv_sec = until / 1000000000, .tv_nsec = until % 1000000000};
  pthread_cond_timedwait(condition, &queue.lock, &end);
}

/* The communicator may be freed as soon as nothing is pending on it. */
static void finish(lcomm_interpose_entry *over) {
  while (over) {
    lcomm_interpose_entry *next = over->next;
    over->end(over->context, over->status);
    lcomm_interpose_done(&over->call);
    pthread_mutex_lock(&queue.lock);
    over->next = queue.spare;
    queue.spare = over;
    queue.pending--;
    pthread_cond_broadcast(&queue.ended);
    pthread_mutex_unlock(&queue.lock);
    over = next;
  }
}

/* A round through all communicators: did anything move? libcomm does not say how far it
 * got, but who computes takes time. */
static bool serve_all(void) {
  bool moved = false;
  int64_t begun_ns = now_ns();
  lcomm_interpose_line **link = &served.lines.first;
  while (*link) {
    lcomm_interpose_entry *over = NULL;
    if (lcomm_interpose_line_serve(*link, &moved, &over)) {
      finish(over);
    }
    if ((*link)->first) {
      link = &(*link)->next;
    } else {
      lcomm_interpose_line_drop(&served.lines, link);
    }
  }
  return moved || now_ns() - begun_ns > BUSY_NS;
}

/* ---------------------------------------------------------------- the thread */

/* The cores are the program's: sleep, longer and longer. Who only yields comes back when
 * a thread of the program that waits in a loop has used up its time; who sleeps is
 * woken at once. */
static void rest(bool moved) {
  if (moved) {
    served.nap_ns = NAP_MIN_NS;
    return;
  }
  pthread_mutex_lock(&queue.lock);
  if (!queue.first) {
    wait_at_most(&queue.given, served.nap_ns);
  }
  pthread_mutex_unlock(&queue.lock);
  served.nap_ns = 2 * served.nap_ns < NAP_MAX_NS ? 2 * served.nap_ns : NAP_MAX_NS;
}

/* Take over what was given; wait for it when there is nothing else to do. False at the end. */
static bool fetch(void) {
  pthread_mutex_lock(&queue.lock);
  while (!served.lines.first && !queue.first && !queue.stops) {
    pthread_cond_wait(&queue.given, &queue.lock);
  }
  lcomm_interpose_entry *given = queue.first;
  queue.first = queue.last = NULL;
  pthread_mutex_unlock(&queue.lock);
  if (given) {
    lcomm_interpose_line_up(&served.lines, given);
    rest(true);
  }
  return served.lines.first != NULL;
}

static void *serve(void *unused) {
  (void)unused;
  prctl(PR_SET_TIMERSLACK, (unsigned long)NAP_MIN_NS, 0, 0, 0); /* short naps stay short */
  while (fetch()) {
    rest(serve_all());
  }
  return NULL;
}

/* With the lock. The program's signals are for its own threads. */
static bool start(void) {
  sigset_t all, before;
  if (queue.running) {
    return true;
  }
  if (!queue.ready) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&queue.given, &attributes);
    pthread_cond_init(&queue.ended, &attributes);
    pthread_condattr_destroy(&attributes);
    queue.ready = true;
  }
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  queue.stops = false;
  queue.running = pthread_create(&queue.thread, NULL, serve, NULL) == 0;
  if (queue.running) {
    pthread_setname_np(queue.thread, "libcomm-mpi");
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return queue.running;
}

void lcomm_interpose_queue_stop(void) {
  pthread_mutex_lock(&queue.lock);
  bool running = queue.running;
  queue.running = false;
  queue.stops = true;
  if (running) {
    pthread_cond_signal(&queue.given);
  }
  pthread_mutex_unlock(&queue.lock);
  if (running) {
    pthread_join(queue.thread, NULL);
  }
  while (queue.pieces) {
    piece *next = queue.pieces->next;
    free(queue.pieces);
    queue.pieces = next;
  }
  queue.spare = NULL;
  served.lines.spare = NULL;
  lcomm_interpose_requests_free();
  lcomm_interpose_places_end();
}

/* ------------------------------------------------------- the program's threads */

/* With the lock. A new one brings a line. */
static lcomm_interpose_entry *take_entry(void) {
  lcomm_interpose_entry *it = queue.spare;
  if (it) {
    queue.spare = it->next;
    return it;
  }
  piece *made = calloc(1, sizeof *made);
  if (!made) {
    return NULL;
  }
  made->next = queue.pieces;
  queue.pieces = made;
  made->entry.brings = &made->line;
  return &made->entry;
}

static bool put(const lcomm_interpose_call *call, lcomm_interpose_end end, void *context) {
  lcomm_interpose_entry *it = start() ? take_entry() : NULL;
  if (!it) {
    return false;
  }
  *it =
      (lcomm_interpose_entry){.call = *call, .end = end, .context = context, .brings = it->brings};
  if (queue.last) {
    queue.last->next = it;
  } else {
    queue.first = it;
  }
  queue.last = it;
  queue.pending++;
  pthread_cond_signal(&queue.given);
  return true;
}

bool lcomm_interpose_queue_put(const lcomm_interpose_call *call, lcomm_interpose_end end,
                               void *context) {
  pthread_mutex_lock(&queue.lock);
  bool done = put(call, end, context);
  pthread_mutex_unlock(&queue.lock);
  return done;
}

/* A look for a message to itself: MPI makes progress in it. A peer may wait for a message of
 * the program before it comes to the call that is pending here. */
static void let_mpi_move(void) {
  int found = 0;
  PMPI_Iprobe(0, 0, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE);
}

void lcomm_interpose_drain(lcomm_interpose_comm *at) {
  static const long PAUSE_LEAST_NS = 20000, PAUSE_MOST_NS = 1000000;
  long pause_ns = PAUSE_LEAST_NS;
  pthread_mutex_lock(&queue.lock);
  while (queue.ready && (at ? atomic_load(&at->pending) > 0 : queue.pending > 0)) {
    wait_at_most(&queue.ended, pause_ns);
    pthread_mutex_unlock(&queue.lock);
    let_mpi_move();
    pthread_mutex_lock(&queue.lock);
    pause_ns = 2 * pause_ns < PAUSE_MOST_NS ? 2 * pause_ns : PAUSE_MOST_NS;
  }
  pthread_mutex_unlock(&queue.lock);
}
