/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_TRAIN_SHARD_CALLS_H
#define TRAINER_TRAIN_SHARD_CALLS_H

#include "trainer/train_shard.h"

/* Calls of buckets, which go on while backward, or the next bucket, does. `number` is the bucket's.
 *
 * On a device, where every rank is a node of its own, they are put into the stream beside the work
 * (backend->beside), and the host waits for nothing: what travels crosses through the host, and
 * streams wait for it. Elsewhere the host waits until the device has made what is sent, and then
 * for a request: ranks of a node may read each other's devices, and no stream can wait for that
 * without a thread of libcomm. */

/* Can calls be put into a stream? */
bool shard_calls_in_stream(const shard *self);

/* Begin: the averages of this rank's part of `values`; with error feedback; the parts `mine` of all
 * ranks. Places of results are written until the call is over. */
lcomm_status shard_calls_average(shard *self, int number, const void *values, void *result);
lcomm_status shard_calls_average_ef(shard *self, int number, const float *values, float *result);
lcomm_status shard_calls_gather(shard *self, int number, const void *mine, void *all);

/* The bucket's call is over: on the host now, on a device before all that is asked for from here
 * on. */
lcomm_status shard_calls_wait(shard *self, int number);

#endif
