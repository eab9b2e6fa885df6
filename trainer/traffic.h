/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_TRAFFIC_H
#define TRAINER_TRAFFIC_H

#include <stdint.h>

#include "trainer/peers.h"

/* What was sent, of one rank or summed over all. */
typedef struct traffic {
  uint64_t sent_bytes[LCOMM_LINK_COUNT];
  uint64_t exact_bytes[LCOMM_LINK_COUNT]; /* the same messages as float32 */
  uint64_t encode_us;
  uint64_t decode_us;
  uint64_t wait_us;
} traffic;

/* The counters of this rank now. */
int traffic_read(const lcomm_comm *comm, traffic *now, failure *why);

/* now - before */
traffic traffic_since(const traffic *now, const traffic *before);

void traffic_add(traffic *sum, const traffic *more);

/* Replace the counters of this rank by the sums over all ranks. Collective. */
int traffic_sum(peers *ranks, traffic *counters, failure *why);

/* float32 bytes per byte sent on a link; 0 if nothing was sent. */
double traffic_ratio(const traffic *counters, lcomm_link link);

#endif
