/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_PROGRESS_THREAD_H
#define LCOMM_ENGINE_PROGRESS_THREAD_H

/* The progress thread of a communicator: it starts deferred operations and makes progress on all
 * operations while the program computes. Calls of the program and the thread take turns by one
 * lock; a call never waits for more than one round of the thread. Without a thread there is no
 * lock.
 */

#include "libcomm/engine/engine.h"

typedef struct lcomm_progress_thread lcomm_progress_thread;

/* Start the thread. The caller is inside `depth` calls, which have the first turn.
 * MEMORY, SYSTEM with the reason in why. */
lcomm_status lcomm_progress_thread_start(lcomm_comm *comm, unsigned depth, lcomm_why *why);

/* For progress.wants_thread: a call that does not block begins; the caller has entered
 * the communicator, and leaves it as usual. Without a thread calls go on making progress,
 * which the log says. */
void lcomm_progress_thread_begin(lcomm_comm *comm);

/* End it; calls may still take turns by its lock, which free frees. Both may be
 * called without a progress thread, and again. */
void lcomm_progress_thread_stop(lcomm_comm *comm);
void lcomm_progress_thread_free(lcomm_comm *comm);

void lcomm_progress_thread_enter(lcomm_progress_thread *thread);
void lcomm_progress_thread_leave(lcomm_progress_thread *thread);

/* Leave as often as this thread has entered; returns how often that was. */
unsigned lcomm_progress_thread_give(lcomm_progress_thread *thread);

/* How often the caller, which is inside, has entered. */
unsigned lcomm_progress_thread_depth(const lcomm_progress_thread *thread);

/* How often this thread has entered, and not left, communicators whose progress thread somebody may
 * wait for. It is 0 or less in a call of CUDA (device_turn.h), which emulated devices check. */
extern _Thread_local int lcomm_progress_thread_turns;

/* Wake the thread: there may be something to do. Any thread, without the lock. */
void lcomm_progress_thread_wake(lcomm_progress_thread *thread);

/* One round for a communicator whose turn the caller has: start deferred operations that are ready,
 * make progress on all. True when something moved. A failure is that communicator's. */
bool lcomm_engine_progress(lcomm_comm *comm);

/* The lock that guards the communicator's statistics. */
pthread_mutex_t *lcomm_progress_thread_guard(lcomm_progress_thread *thread);

#endif
