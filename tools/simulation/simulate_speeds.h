/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_SIMULATION_SIMULATE_SPEEDS_H
#define LCOMM_TOOLS_SIMULATION_SIMULATE_SPEEDS_H

/* How fast one processor computes: float32 bytes a second of each codec, from the JSON of
 * codec_bench or built in, of vectors in memory and of vectors in a cache. */

#include "libcomm/plan/policy.h"
#include "tools/simulation/simulate_cache.h"
#include "tools/simulation/simulate_events.h"

enum {
  SIMULATE_SPEEDS_MAX = 64,           /* codecs */
  SIMULATE_SPEEDS_FILE_MAX = 8 << 20, /* bytes of a file that is read */
  SIMULATE_WHY_MAX = 512              /* bytes of a sentence */
};

typedef struct simulate_speed {
  lcomm_codec_spec choice;
  double encode_gb_s, decode_gb_s, add_gb_s; /* add: decode and add to a sum */
  bool assumed;                              /* a guess, not measured */
} simulate_speed;

/* Low rank: bytes of the matrix a second, at rank 4: P = M Q; P orthonormal and Q = M' P; the
 * result and the residual. */
typedef struct simulate_lowrank_speed {
  double project_gb_s, turn_gb_s, expand_gb_s;
} simulate_lowrank_speed;

typedef struct simulate_speeds {
  size_t count;
  simulate_speed codec[SIMULATE_SPEEDS_MAX];
  double copy_gb_s, sum_gb_s; /* of exact values: bytes of the destination */
  double launch_us;           /* of each computation, besides */
  simulate_lowrank_speed lowrank;
  char source[128]; /* for people */
} simulate_speeds;

/* Measured on one core of a server, as tools/bench/RESULTS.md has them. */
simulate_speeds simulate_speeds_built_in(simulate_place place);

/* Add what codec_bench --json says: of each codec the speed of the largest size, in memory, or of
 * the smallest one, in a cache, by the fastest kernels, divided by its threads. Its memcpy is that
 * of copies, half of it that of sums. false with a sentence in `why` (SIMULATE_WHY_MAX bytes); then
 * the speeds are as before. */
bool simulate_speeds_read(const char *path, simulate_place place, simulate_speeds *speeds,
                          char *why);
bool simulate_speeds_parse(const char *text, size_t length, simulate_place place,
                           simulate_speeds *speeds, char *why);

/* The speed of a codec: its own; without one, that of the same codec with other options, slowed
 * down by the lossless stage where that is all that differs. Never NULL. */
simulate_speed simulate_speeds_of(const simulate_speeds *speeds, const lcomm_codec_spec *choice);

/* Time of `count` values of `element_size` bytes at a speed; 0 GB/s takes none. */
simulate_time simulate_speeds_time(double count, double gb_s);

#endif
