/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_MPI_INTERPOSE_RELEASE_H
#define LCOMM_INTERPOSE_MPI_INTERPOSE_RELEASE_H

/* Release of backing communicators that this rank no longer uses. Each rank tells the root, which
 * tells all when the last rank has; then each frees its part. Nobody waits for that: a rank looks
 * when it creates or frees another communicator, and at the end. */

#include "libcomm/interpose/mpi/interpose.h"

/* Release a backing communicator without calls in flight on this rank: backing->comm, which may be
 * NULL, is NULL afterwards. The world's is released at the end only, because the others are parts
 * of it. Local. */
void lcomm_interpose_backing_release(const lcomm_interpose_comm *at,
                                     lcomm_interpose_backing *backing);

/* Free what all ranks have released by now. Cheap where nothing was. */
void lcomm_interpose_release_ready(void);

/* The end: release the world's communicator, too, which is NULL then. Free what all ranks release
 * within some seconds; what others still use stays until the process ends. */
void lcomm_interpose_release_world(lcomm_comm **world);

#endif
