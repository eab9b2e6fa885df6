/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_DEVICE_TURN_H
#define LCOMM_ENGINE_DEVICE_TURN_H

/* Callers that put work on a device. A call of CUDA may wait: for a lock that another thread of the
 * program holds while it frees memory, which waits for all streams, ours too, which wait for
 * messages. So no thread that others need to move messages may be in CUDA: a caller gives up the
 * communicator's turn (entry.h) while it is there. What it puts on the device must not get
 * between what another caller puts there, so callers take the device's turn before. The progress
 * thread never does. */

#include "libcomm/engine/engine.h"

/* The caller has entered the communicator. Between the two it may find its state changed. */
void lcomm_device_turn_enter(lcomm_comm *comm);
void lcomm_device_turn_leave(lcomm_comm *comm);

/* Give up the communicator's turn, however often it was entered, and take it again: around calls of
 * CUDA. Without a progress thread nobody else wants it. */
unsigned lcomm_turn_give(lcomm_comm *comm);
void lcomm_turn_take(lcomm_comm *comm, unsigned depth);

/* Between the two nothing of the communicator is in flight, on devices neither, and nothing comes:
 * nobody waits for its progress thread, so a caller that keeps its turn may call CUDA. end takes
 * what begin has returned. */
unsigned lcomm_turn_idle_begin(lcomm_comm *comm);
void lcomm_turn_idle_end(unsigned depth);

/* Inside a call: the messages of what follows have to move while the program is in CUDA, or in no
 * call at all. Starts a progress thread where there is none. False where there can be none. */
bool lcomm_proxy_start(lcomm_comm *comm);

#endif
