/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_OTHER_WAITS_H
#define LCOMM_ENGINE_OTHER_WAITS_H

/* Waits of this process: what its threads wait for, and in which communicator. A rank that is
 * awaited in one communicator may itself wait in another: it says so to those that probe it
 * (probe.h), else they would find it at fault. Any thread. */

#include <stdbool.h>
#include <stdint.h>

struct lcomm_comm;

/* A wait in this communicator goes on; the fault seems to be this process, or pid 0: not
 * known yet. Where more threads wait than there is room for, some are not told of. */
void lcomm_other_waits_add(const struct lcomm_comm *comm, uint64_t host_hash, uint64_t pid);

/* The wait is over. */
void lcomm_other_waits_remove(const struct lcomm_comm *comm);

/* Is there a wait in another communicator than this one? For which process, as far as
 * that is known: pid 0 otherwise. */
bool lcomm_other_waits_find(const struct lcomm_comm *comm, uint64_t *host_hash, uint64_t *pid);

#endif
