/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/traffic.h"

#include <string.h>

/* A traffic is nothing but counters, so it can be handled as an array. */
enum { COUNTERS = sizeof(traffic) / sizeof(uint64_t) };
_Static_assert((int)COUNTERS <= (int)PEERS_VALUES_MAX, "the counters must fit one exchange");

int traffic_read(const lcomm_comm *comm, traffic *now, failure *why) {
  lcomm_stats stats;
  if (peers_check(comm, lcomm_stats_get(comm, &stats), "reading the statistics", why)) {
    return -1;
  }
  memcpy(now->sent_bytes, stats.sent_bytes, sizeof now->sent_bytes);
  memcpy(now->exact_bytes, stats.exact_bytes, sizeof now->exact_bytes);
  now->encode_us = (uint64_t)(stats.encode_s * 1e6);
  now->decode_us = (uint64_t)(stats.decode_s * 1e6);
  now->wait_us = (uint64_t)(stats.wait_s * 1e6);
  return 0;
}

static void to_counters(const traffic *from, uint64_t *counters) {
  memcpy(counters, from, sizeof *from);
}

static void from_counters(const uint64_t *counters, traffic *to) {
  memcpy(to, counters, sizeof *to);
}

traffic traffic_since(const traffic *now, const traffic *before) {
  uint64_t later[COUNTERS], earlier[COUNTERS];
  to_counters(now, later);
  to_counters(before, earlier);
  for (int i = 0; i < COUNTERS; i++) {
    later[i] -= earlier[i];
  }
  traffic difference;
  from_counters(later, &difference);
  return difference;
}

void traffic_add(traffic *sum, const traffic *more) {
  uint64_t total[COUNTERS], part[COUNTERS];
  to_counters(sum, total);
  to_counters(more, part);
  for (int i = 0; i < COUNTERS; i++) {
    total[i] += part[i];
  }
  from_counters(total, sum);
}

int traffic_sum(peers *ranks, traffic *counters, failure *why) {
  uint64_t values[COUNTERS];
  to_counters(counters, values);
  if (peers_sum(ranks, values, COUNTERS, why)) {
    return -1;
  }
  from_counters(values, counters);
  return 0;
}

double traffic_ratio(const traffic *counters, lcomm_link link) {
  if (counters->sent_bytes[link] == 0) {
    return 0.0;
  }
  return (double)counters->exact_bytes[link] / (double)counters->sent_bytes[link];
}
