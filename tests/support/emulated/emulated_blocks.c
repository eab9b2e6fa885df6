/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/emulated/emulated_blocks.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/emulated/emulated_exchange.h"
#include "tests/support/emulated/emulated_fibers.h"
#include "tests/support/emulated/emulated_shared.h"

enum { WARPS_MAX = LCOMM_THREADS_MAX / LCOMM_WARP };

typedef enum phase { UNSTARTED, RUNNING, WAITING, ENDED } phase;

/* A thread of the block. */
typedef struct actor {
  phase phase;
  lcomm_emulated_meeting meeting;
  const char *site;
  lcomm_fiber *fiber; /* while it waits */
} actor;

/* The grid that a thread of the system runs. */
typedef struct grid {
  bool busy;
  lcomm_emulated_kernel *kernel;
  const void *args;
  const char *name;
  lcomm_fiber *home, *current;
  lcomm_fiber *idle[LCOMM_THREADS_MAX + 1];
  uint32_t idle_count;
  actor actors[LCOMM_THREADS_MAX];
  uint32_t order[LCOMM_THREADS_MAX]; /* in which threads start */
  uint32_t started, ended;
  uint32_t ready[LCOMM_THREADS_MAX]; /* a ring of threads that may go on */
  uint32_t ready_first, ready_count;
  lcomm_gathering block, warps[WARPS_MAX];
} grid;

__thread lcomm_emulated_locate lcomm_emulated_here;
uint64_t lcomm_emulated_order;

static _Thread_local grid *mine;
static pthread_key_t grid_key;
static pthread_once_t grid_key_once = PTHREAD_ONCE_INIT;

/* --------------------------------------------------------------- reporting */

static const char *const meeting_names[] = {
    "lcomm_sync_block", "lcomm_sync_warp", "lcomm_shuffle_xor",
    "lcomm_shuffle_up", "lcomm_shuffle",   "lcomm_ballot",
};

static bool same_state(const actor *a, const actor *b) {
  return a->phase == b->phase &&
         (a->phase != WAITING || (a->meeting == b->meeting && strcmp(a->site, b->site) == 0));
}

static void print_state(const actor *a, uint32_t first, uint32_t last) {
  fprintf(stderr, "  threads %u to %u ", first, last);
  if (a->phase == WAITING) {
    fprintf(stderr, "are at %s, %s\n", meeting_names[a->meeting], a->site);
  } else {
    fprintf(stderr, "%s\n",
            a->phase == ENDED       ? "have returned"
            : a->phase == UNSTARTED ? "have not begun"
                                    : "run");
  }
}

/* End the process: where this kernel hangs, or computes nonsense, on a device. */
_Noreturn static void give_up(const grid *g, const char *what) {
  const lcomm_emulated_locate *here = &lcomm_emulated_here;
  fflush(stdout);
  fprintf(stderr, "emulated grid: kernel %s, block %u of %u: %s\n", g->name, here->block,
          here->blocks, what);
  for (uint32_t first = 0, i = 1; i <= here->threads; i++) {
    if (i < here->threads && same_state(&g->actors[first], &g->actors[i])) {
      continue;
    }
    print_state(&g->actors[first], first, i - 1);
    first = i;
  }
  abort();
}

void lcomm_emulated_misaligned(size_t size, const char *site) {
  char what[256];
  snprintf(what, sizeof what,
           "thread %u reads or writes %zu bytes at an address that is no "
           "multiple of %zu, %s",
           lcomm_emulated_here.thread, size, size, site);
  give_up(mine, what);
}

/* -------------------------------------------------------------- taking turns */

static void make_ready(grid *g, uint32_t thread) {
  g->ready[(g->ready_first + g->ready_count++) % LCOMM_THREADS_MAX] = thread;
}

static uint32_t take_ready(grid *g) {
  uint32_t thread = g->ready[g->ready_first];
  g->ready_first = (g->ready_first + 1) % LCOMM_THREADS_MAX;
  g->ready_count--;
  return thread;
}

static void change_to(grid *g, lcomm_fiber *to) {
  lcomm_fiber *from = g->current;
  g->current = to;
  lcomm_fiber_change(from, to);
}

static void run_threads(void);

/* A fiber that will start the next thread. */
static lcomm_fiber *fresh_fiber(grid *g) {
  return g->idle_count ? g->idle[--g->idle_count] : lcomm_fiber_create(run_threads);
}

/* Let others run until somebody makes this thread ready. */
static void wait_for_others(grid *g) {
  uint32_t self = lcomm_emulated_here.thread;
  g->actors[self].fiber = g->current;
  change_to(g, g->ready_count ? g->actors[take_ready(g)].fiber : fresh_fiber(g));
  lcomm_emulated_here.thread = self;
}

/* Any thread may be the first, also of another warp. */
static void draw_order(grid *g, uint32_t threads, uint32_t block) {
  uint64_t random = lcomm_emulated_order;
  for (uint32_t i = 0; i < threads; i++) {
    g->order[i] = i;
  }
  if (random == 0) {
    return;
  }
  random = (random ^ block) * UINT64_C(0x9e3779b97f4a7c15) | 1;
  for (uint32_t i = threads - 1; i > 0; i--) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    uint32_t other = (uint32_t)(random >> 32) % (i + 1), kept = g->order[i];
    g->order[i] = g->order[other];
    g->order[other] = kept;
  }
}

static void begin_block(grid *g, uint32_t block) {
  uint32_t threads = lcomm_emulated_here.threads;
  lcomm_emulated_here.block = block;
  g->started = g->ended = g->ready_first = g->ready_count = 0;
  for (uint32_t i = 0; i < threads; i++) {
    g->actors[i].phase = UNSTARTED;
  }
  draw_order(g, threads, block);
  lcomm_emulated_spoil_shared();
}

static void run_next_thread(grid *g) {
  uint32_t thread = g->order[g->started++];
  lcomm_emulated_here.thread = thread;
  g->actors[thread].phase = RUNNING;
  g->kernel(g->args);
  g->actors[thread].phase = ENDED;
  g->ended++;
}

/* What every fiber does: start threads, for as long as they do not wait. */
static void run_threads(void) {
  grid *g = mine;
  lcomm_emulated_locate *here = &lcomm_emulated_here;
  for (;;) {
    while (g->ready_count == 0 && g->started < here->threads) {
      run_next_thread(g);
    }
    if (g->ready_count == 0 && g->ended < here->threads) {
      give_up(g, "threads wait for each other, or for some that have returned");
    }
    if (g->ready_count == 0 && here->block + 1 < here->blocks) {
      begin_block(g, here->block + 1);
      continue;
    }
    g->idle[g->idle_count++] = g->current;
    change_to(g, g->ready_count ? g->actors[take_ready(g)].fiber : g->home);
  }
}

/* ------------------------------------------------------------------ meeting */

/* All come to where the first one waits. */
static void arrive(const grid *g, lcomm_gathering *gathered, uint32_t thread) {
  if (gathered->arrived++ == 0) {
    gathered->earliest = thread;
  }
  const actor *self = &g->actors[thread], *other = &g->actors[gathered->earliest];
  if (other->meeting != self->meeting ||
      (other->site != self->site && strcmp(other->site, self->site) != 0)) {
    give_up(g, "threads meet at different places");
  }
}

uint32_t lcomm_emulated_meet(lcomm_emulated_meeting meeting, uint32_t value, uint32_t selector,
                             const char *site) {
  grid *g = mine;
  bool whole = meeting == LCOMM_MEET_BLOCK;
  uint32_t thread = lcomm_emulated_here.thread, lane = thread % LCOMM_WARP;
  uint32_t first = whole ? 0 : thread - lane;
  uint32_t count = whole ? lcomm_emulated_here.threads : LCOMM_WARP;
  lcomm_gathering *gathered = whole ? &g->block : &g->warps[thread / LCOMM_WARP];
  g->actors[thread].meeting = meeting;
  g->actors[thread].site = site;
  g->actors[thread].phase = WAITING;
  gathered->value[lane] = value;
  gathered->selector[lane] = selector;
  arrive(g, gathered, thread);
  if (gathered->arrived < count) {
    wait_for_others(g);
    return gathered->result[lane];
  }
  gathered->arrived = 0;
  lcomm_exchange(gathered, meeting);
  for (uint32_t i = first; i < first + count; i++) {
    g->actors[i].phase = RUNNING;
    if (i != thread) {
      make_ready(g, i);
    }
  }
  return gathered->result[lane];
}

/* ---------------------------------------------------------------- launching */

static void forget_grid(void *memory) {
  grid *g = memory;
  for (uint32_t i = 0; i < g->idle_count; i++) {
    lcomm_fiber_destroy(g->idle[i]);
  }
  free(g);
}

static void make_key(void) {
  pthread_key_create(&grid_key, forget_grid);
}

static grid *own_grid(void) {
  if (mine) {
    return mine;
  }
  pthread_once(&grid_key_once, make_key);
  mine = calloc(1, sizeof *mine);
  if (!mine || pthread_setspecific(grid_key, mine) != 0) {
    fprintf(stderr, "emulated grid: no memory for a grid\n");
    abort();
  }
  return mine;
}

int lcomm_emulated_run(lcomm_emulated_kernel *kernel, const void *args, uint32_t blocks,
                       uint32_t threads, const char *name) {
  grid *g = own_grid();
  if (threads == 0 || threads > LCOMM_THREADS_MAX || threads % LCOMM_WARP || blocks > INT32_MAX ||
      g->busy) {
    fprintf(stderr, "emulated grid: kernel %s cannot be launched with %u blocks of %u threads%s\n",
            name, blocks, threads, g->busy ? " inside of a kernel" : "");
    abort();
  }
  if (blocks == 0) {
    return 0;
  }
  lcomm_emulated_enter_shared();
  g->busy = true;
  g->kernel = kernel;
  g->args = args;
  g->name = name;
  g->home = g->current = lcomm_fiber_home();
  lcomm_emulated_here = (lcomm_emulated_locate){.threads = threads, .blocks = blocks};
  begin_block(g, 0);
  change_to(g, fresh_fiber(g));
  g->busy = false;
  lcomm_emulated_leave_shared();
  return 0;
}

static int launch_now(lcomm_emulated_kernel *kernel, const void *args, size_t args_size,
                      uint32_t blocks, uint32_t threads, void *stream, const char *name) {
  (void)args_size;
  (void)stream;
  return lcomm_emulated_run(kernel, args, blocks, threads, name);
}

static int set_now(void *memory, size_t size, void *stream) {
  (void)stream;
  if (size) {
    memset(memory, 0, size);
  }
  return 0;
}

static int copy_in_now(void *device, const void *host, size_t size, void *stream) {
  (void)stream;
  if (size) {
    memcpy(device, host, size);
  }
  return 0;
}

lcomm_emulated_hooks lcomm_emulated = {launch_now, set_now, copy_in_now};
