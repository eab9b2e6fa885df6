/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_SIBLINGS_H
#define LCOMM_ENGINE_SIBLINGS_H

/* Siblings: the communicators of this process without a progress thread. Whoever waits in one
 * communicator moves the others that have operations in flight, and sleeps on the file descriptors
 * of all: a rank whose peers wait for an operation that it has started makes progress in it
 * whatever it waits for itself. A communicator whose owner is inside a call is left to it. A
 * failure in another communicator is that communicator's, and the caller's own operation goes on.
 */

#include "libcomm/engine/engine.h"

/* Add a communicator to those that waiting threads move; remove it: no other thread moves it when
 * remove returns. remove may be called again. */
void lcomm_siblings_add(lcomm_comm *comm);
void lcomm_siblings_remove(lcomm_comm *comm);

/* One round of all others; true when anything moved. Does nothing while another thread
 * does it. */
bool lcomm_siblings_move(lcomm_comm *mine);

/* Receive control messages of those others in which nothing is in flight: their peers may probe
 * this process. */
void lcomm_siblings_listen(lcomm_comm *mine);

/* Around lcomm_links_sleep(): the others' descriptors join the wait set. prepare returns
 * whether they did, which awake is told. */
bool lcomm_siblings_prepare(lcomm_comm *mine, lcomm_links_wait_set *set);
void lcomm_siblings_awake(lcomm_comm *mine, bool joined);

#endif
