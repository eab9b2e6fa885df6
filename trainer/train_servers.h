/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_TRAIN_SERVERS_H
#define TRAINER_TRAIN_SERVERS_H

#include "trainer/train.h"

/* A training whose gradients are averaged by servers (algo=servers of the policy).
 *
 *   ranks of the job       0 1 2 3 4 5 | 6 7      training.served: gradients only
 *   servers=6,7            workers     | servers
 *   ranks that train       0 1 2 3 4 5            training.comm: all else, as in any training
 *
 * So a server holds no samples, takes part in no test, and is no replica. */

/* Part the communicator where its policy has servers; collective. Where that fails `why` says so,
 * and the communicator stays whole. */
void servers_part(training *self, failure *why);

/* The first weights of the workers go to the servers, where these step them. On all ranks; returns
 * 0, or -1 with `why`. */
int servers_share_weights(training *self, failure *why);

/* The whole life of a server, until the workers have ended. Returns 0, or -1 with `why`. */
int servers_serve(training *self, failure *why);

#endif
