/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_BOOTSTRAP_STORE_STORE_H
#define LCOMM_BOOTSTRAP_STORE_STORE_H

/* A TCP store: rank 0 listens, the others come to it. Once all have come
 * nobody listens any more, and what is left is one connection from every rank
 * to rank 0, over which allgathers run as a star.
 *
 * Strangers, ranks with another token or world, and ranks that are there
 * already are refused with a reason; none of them disturbs the meeting. A rank
 * whose connection died greets again, and has its place back. Rank 0 decides what has
 * failed and tells all others, so all return the same sentence. */

#include "libcomm/bootstrap/launcher_env.h"

typedef struct lcomm_store lcomm_store;

/* Meet, collectively; launcher->world_size is at least 2. Errors, with the
 * sentence: TIMEOUT (the ranks that did not come are named), TRANSPORT,
 * MISMATCH (refused), SYSTEM (too few file descriptors), MEMORY. */
lcomm_status lcomm_store_meet(const lcomm_launcher_env *launcher, double timeout_s,
                              lcomm_store **store);

/* As in lcomm_bootstrap; `store` is an lcomm_store *. Once it has failed it fails. */
int lcomm_store_allgather(void *store, const void *send, void *receive, size_t size);

/* LCOMM_OK, or what the store failed with; *sentence is valid until close. */
lcomm_status lcomm_store_failure(const lcomm_store *store, const char **sentence);

/* Not collective: who needs the store no more may close it. */
void lcomm_store_close(lcomm_store *store);

#endif
