/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_FORKED_COMM_H
#define LCOMM_TESTS_FORKED_COMM_H

/* Communicators over forked ranks. What does not succeed fails the test, with its sentence. */

#include "tests/support/forked.h"

/* Over shared memory, as if on two nodes, with int8 and error feedback between them. */
lcomm_config forked_config(lcomm_progress_mode progress);

lcomm_comm *forked_create(forked *self, const lcomm_config *config);

/* `what` says which call gave the status. */
void forked_fine(forked *self, const lcomm_comm *comm, lcomm_status status, const char *what);

void forked_destroy(forked *self, lcomm_comm *comm);

#endif
