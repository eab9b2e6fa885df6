/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The queue's thread. The program's threads append to a list, under a lock that is never held for
 * long, and wait for its conditions. */

#include "libcomm/interpose/mpi/interpose_queue.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include "libcomm/interpose/mpi/interpose_held.h"
#include "libcomm/interpose/mpi/interpose_left.h"
#include "libcomm/interpose/mpi/interpose_persistent.h"

static const long SLEEP_MIN_NS = 4000, SLEEP_MAX_NS = 100000, BUSY_NS = 20000;

/* An entry and the spare queue that it brings. */
typedef struct piece {
  lcomm_interpose_entry entry;
  lcomm_interpose_comm_queue queue;
  struct piece *next;
} piece;

static struct {
  pthread_mutex_t lock;
  pthread_cond_t given, ended;
  bool ready; /* both conditions are initialised */
  bool running, stops;
  pthread_t thread;
  lcomm_interpose_entry *first, *last; /* given, not fetched by the thread yet */
  lcomm_interpose_entry *spare;
  piece *pieces;       /* all memory */
  atomic_uint pending; /* calls that are not done */
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Only the thread uses it. */
static struct {
  lcomm_interpose_comm_queues queues;
  long sleep_ns;
} served;

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Needs the lock. Wait for a signal, at most so long. */
static void wait_at_most(pthread_cond_t *condition, long ns) {
  int64_t until = now_ns() + ns;
  struct timespec end = {.tv_sec = until / 1000000000, .tv_nsec = until % 1000000000};
  pthread_cond_timedwait(condition, &queue.lock, &end);
}

/* The communicator may be freed as soon as no call on it is pending. */
static void finish(lcomm_interpose_entry *done) {
  while (done) {
    lcomm_interpose_entry *next = done->next;
    done->on_done(done->context, done->status);
    lcomm_interpose_call_done(&done->call);
    pthread_mutex_lock(&queue.lock);
    done->next = queue.spare;
    queue.spare = done;
    queue.pending--;
    pthread_cond_broadcast(&queue.ended);
    pthread_mutex_unlock(&queue.lock);
    done = next;
  }
}

/* Serve all communicators once. True: something moved. libcomm does not tell its progress, but a
 * round that takes long has computed. */
static bool serve_all(void) {
  bool moved = false;
  int64_t begun_ns = now_ns();
  lcomm_interpose_comm_queue **link = &served.queues.first;
  while (*link) {
    lcomm_interpose_entry *done = NULL;
    if (lcomm_interpose_comm_queue_serve(*link, &moved, &done)) {
      finish(done);
    }
    if ((*link)->first) {
      link = &(*link)->next;
    } else {
      lcomm_interpose_comm_queue_drop(&served.queues, link);
    }
  }
  return moved || now_ns() - begun_ns > BUSY_NS;
}

/* ---------------------------------------------------------------- the thread */

/* Sleep, longer and longer, because the cores are the program's. A thread that only yields would
 * continue when a polling thread of the program has used up its time slice; a thread that sleeps
 * is woken at once. */
static void rest(bool moved) {
  if (moved) {
    served.sleep_ns = SLEEP_MIN_NS;
    return;
  }
  pthread_mutex_lock(&queue.lock);
  if (!queue.first) {
    wait_at_most(&queue.given, served.sleep_ns);
  }
  pthread_mutex_unlock(&queue.lock);
  served.sleep_ns = 2 * served.sleep_ns < SLEEP_MAX_NS ? 2 * served.sleep_ns : SLEEP_MAX_NS;
}

/* Take over new calls, and wait for them when there are no others. False: the thread ends. */
static bool fetch(void) {
  pthread_mutex_lock(&queue.lock);
  while (!served.queues.first && !queue.first && !queue.stops) {
    pthread_cond_wait(&queue.given, &queue.lock);
  }
  lcomm_interpose_entry *given = queue.first;
  queue.first = queue.last = NULL;
  pthread_mutex_unlock(&queue.lock);
  if (given) {
    lcomm_interpose_comm_queues_append(&served.queues, given);
    rest(true);
  }
  return served.queues.first != NULL;
}

static void *serve(void *unused) {
  enum { NO_DEVICE = -1 };
  (void)unused;
  lcomm_device_defer_thread(NO_DEVICE);
  prctl(PR_SET_TIMERSLACK, (unsigned long)SLEEP_MIN_NS, 0, 0, 0); /* short sleeps stay short */
  while (fetch()) {
    rest(serve_all());
  }
  return NULL;
}

/* Needs the lock. The thread blocks signals, which are for the program's threads. */
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
  served.queues.spare = NULL;
  lcomm_interpose_held_free();
  lcomm_interpose_slots_free();
}

/* ------------------------------------------------------- the program's threads */

/* Needs the lock. A new entry brings a spare queue. */
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
  made->entry.spare = &made->queue;
  return &made->entry;
}

static bool put(const lcomm_interpose_call *call, lcomm_interpose_on_done on_done, void *context) {
  lcomm_interpose_entry *it = start() ? take_entry() : NULL;
  if (!it) {
    return false;
  }
  *it = (lcomm_interpose_entry){
      .call = *call, .on_done = on_done, .context = context, .spare = it->spare};
  if (queue.last) {
    queue.last->next = it;
  } else {
    queue.first = it;
  }
  queue.last = it;
  queue.pending++;
  atomic_fetch_add(&call->at->waiting, !call->begun);
  pthread_cond_signal(&queue.given);
  return true;
}

bool lcomm_interpose_queue_is_busy(void) {
  return atomic_load_explicit(&queue.pending, memory_order_relaxed) > 0;
}

bool lcomm_interpose_queue_put(const lcomm_interpose_call *call, lcomm_interpose_on_done on_done,
                               void *context) {
  pthread_mutex_lock(&queue.lock);
  bool done = put(call, on_done, context);
  pthread_mutex_unlock(&queue.lock);
  return done;
}

/* MPI makes progress in a probe. Another rank may wait for a message of the program before it makes
 * the call that is pending here. */
static void progress_mpi(void) {
  int found = 0;
  PMPI_Iprobe(0, 0, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE);
  lcomm_interpose_left_do();
}

void lcomm_interpose_drain(lcomm_interpose_comm *at) {
  static const long PAUSE_LEAST_NS = 20000, PAUSE_MOST_NS = 1000000;
  long pause_ns = PAUSE_LEAST_NS;
  pthread_mutex_lock(&queue.lock);
  while (queue.ready && (at ? atomic_load(&at->pending) > 0 : queue.pending > 0)) {
    wait_at_most(&queue.ended, pause_ns);
    pthread_mutex_unlock(&queue.lock);
    progress_mpi();
    pthread_mutex_lock(&queue.lock);
    pause_ns = 2 * pause_ns < PAUSE_MOST_NS ? 2 * pause_ns : PAUSE_MOST_NS;
  }
  pthread_mutex_unlock(&queue.lock);
}
