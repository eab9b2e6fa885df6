/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include <string.h>

#include "trainer/train_peers.h"

/* What was sent. */

_Static_assert((int)TRAFFIC_COUNTERS <= (int)PEERS_VALUES_MAX,
               "the counters must fit one exchange");
_Static_assert(sizeof(traffic) == TRAFFIC_COUNTERS * sizeof(uint64_t),
               "a traffic is nothing but counters");

int traffic_read(const lcomm_comm *comm, traffic *now, failure *why) {
  lcomm_stats stats;
  if (peers_check(comm, lcomm_stats_get(comm, &stats), "reading the statistics", why)) {
    return -1;
  }
  memset(now, 0, sizeof *now);
  memcpy(now->sent_bytes, stats.sent_bytes, sizeof now->sent_bytes);
  memcpy(now->exact_bytes, stats.exact_bytes, sizeof now->exact_bytes);
  now->encode_us = (uint64_t)(stats.encode_s * 1e6);
  now->decode_us = (uint64_t)(stats.decode_s * 1e6);
  now->wire_us = (uint64_t)(stats.wire_s * 1e6);
  now->wait_us = (uint64_t)(stats.wait_s * 1e6);
  return 0;
}

traffic traffic_since(const traffic *now, const traffic *before) {
  traffic difference;
  for (int i = 0; i < TRAFFIC_COUNTERS; i++) {
    difference.counters[i] = now->counters[i] - before->counters[i];
  }
  return difference;
}

void traffic_add(traffic *sum, const traffic *more) {
  for (int i = 0; i < TRAFFIC_COUNTERS; i++) {
    sum->counters[i] += more->counters[i];
  }
}

int traffic_sum(peers *ranks, traffic *counters, failure *why) {
  return peers_sum(ranks, counters->counters, TRAFFIC_COUNTERS, why);
}

double traffic_ratio(const traffic *counters, lcomm_link link) {
  if (counters->sent_bytes[link] == 0) {
    return 0.0;
  }
  return (double)counters->exact_bytes[link] / (double)counters->sent_bytes[link];
}
