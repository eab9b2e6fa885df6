/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_SIMULATION_SIMULATE_CACHE_H
#define LCOMM_TOOLS_SIMULATION_SIMULATE_CACHE_H

/* The last-level cache that processors share, of lines that are replaced at random: of what a
 * processor has touched, a share of e^(-m / size) is still there when m bytes have been brought in
 * since. So arrays that are worked through in turn and do not all fit are found in part. */

#include <stdbool.h>

/* Where the bytes are that a processor works on. */
typedef enum simulate_place {
  SIMULATE_IN_MEMORY,
  SIMULATE_IN_CACHE,
  SIMULATE_PLACES
} simulate_place;

typedef struct simulate_cache {
  double size;    /* bytes; 0: none, everything is in memory */
  double brought; /* bytes, from memory */
} simulate_cache;

/* An array of a rank. Zeros: nobody has touched it. */
typedef struct simulate_array {
  double seen;    /* bytes that had been brought before it was last worked through */
  double begun;   /* likewise before it is worked through now */
  double covered; /* share of it that this has come to */
  bool is_seen;
} simulate_array;

/* Touch a part (0..1) of an array of so many bytes; parts one after the other, till all of it is
 * touched. Returns the share of the part that was in the cache. */
double simulate_cache_touch(simulate_cache *cache, simulate_array *array, double bytes,
                            double part);

/* The share that is there of as many bytes as have just been touched. */
double simulate_cache_again(const simulate_cache *cache, double bytes);

#endif
