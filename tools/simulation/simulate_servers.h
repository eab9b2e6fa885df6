/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_SIMULATION_SIMULATE_SERVERS_H
#define LCOMM_TOOLS_SIMULATION_SIMULATE_SERVERS_H

/* Buckets that servers sum (algo=servers), which follow no plan of the library: workers encode the
 * pieces of all chunks, which libcomm/shards/shard_roles.h cuts, and send them; a server adds what
 * has come from all workers, encodes the sum, and answers them; workers decode. A piece travels as
 * header and payload, two messages. Without an update function, so sums come back by the codec. */

#include "libcomm/shards/shard_roles.h"
#include "tools/simulation/simulate_world.h"

/* Are tensors of this request summed by servers? Plain calls are not. */
bool simulate_servers_sum(const simulate_world_request *request);

/* Programs [roles->ranks] of one shape, of workers and of servers, whose pieces are cut with those
 * of the shapes before. false with a sentence in `why` (SIMULATE_WHY_MAX bytes); what was made is
 * freed by simulate_program_free in any case. */
bool simulate_servers_make(const simulate_world_request *request, const simulate_bucket *bucket,
                           lcomm_shard_roles *roles, simulate_program *programs, char *why);

#endif
