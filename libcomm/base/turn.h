/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_BASE_TURN_H
#define LCOMM_BASE_TURN_H

/* A biased lock: its owner pays a store and a load. The owner is whoever makes the calls on a
 * communicator, one thread at a time; it stores its depth and looks for a claim. A guest, which
 * moves the communicator while it waits in another one, stores a claim and looks at the depth. At
 * least one of the two sees the other, because the guest makes all threads of the process pass a
 * memory barrier in between (membarrier(2)); where the system cannot, the owner's store is a
 * barrier itself.
 */

#include <stdatomic.h>
#include <stdbool.h>

typedef struct lcomm_turn {
  atomic_uint depth;   /* of the owner's calls; changed by the owner only */
  atomic_bool claimed; /* by a guest; guests come one at a time */
} lcomm_turn;

/* Does the system make all threads pass a barrier? Found out by the first
 * lcomm_turn_prepare(), which must come before the first turn. */
extern bool lcomm_turn_is_biased;
void lcomm_turn_prepare(void);

/* Slow path of the owner: let the guest finish. The depth is 1 before and after. */
void lcomm_turn_await_guest(lcomm_turn *turn);

/* The owner's; nested. */
static inline void lcomm_turn_enter(lcomm_turn *turn) {
  unsigned depth = atomic_load_explicit(&turn->depth, memory_order_relaxed);
  if (lcomm_turn_is_biased) {
    atomic_store_explicit(&turn->depth, depth + 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
  } else {
    atomic_exchange(&turn->depth, depth + 1);
  }
  if (depth == 0 && atomic_load_explicit(&turn->claimed, memory_order_acquire)) {
    lcomm_turn_await_guest(turn);
  }
}

static inline void lcomm_turn_leave(lcomm_turn *turn) {
  unsigned depth = atomic_load_explicit(&turn->depth, memory_order_relaxed);
  atomic_store_explicit(&turn->depth, depth - 1, memory_order_release);
}

/* A guest's: true when the owner is not inside, and then it stays outside until the
 * guest ends. A guest must not wait for anything that the owner does. */
bool lcomm_turn_try(lcomm_turn *turn);
void lcomm_turn_end(lcomm_turn *turn);

#endif
