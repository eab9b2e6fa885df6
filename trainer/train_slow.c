/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/train_slow.h"

#include <stdio.h>

int slow_read(const char *text, slowness *made) {
  int rank = 0, used = 0;
  double factor = 0, pause_ms = 0, percent = 0;
  if (sscanf(text, "rank=%d:x%lf%n", &rank, &factor, &used) == 2 && !text[used] && rank >= 0 &&
      factor >= 1 && factor <= 100) {
    made->rank = rank;
    made->factor = factor;
    return 0;
  }
  used = 0;
  if (sscanf(text, "pause=%lfms:%lf%%%n", &pause_ms, &percent, &used) == 2 && used > 0 &&
      !text[used] && pause_ms >= 0 && pause_ms <= 60000 && percent >= 0 && percent <= 100) {
    made->pause_s = pause_ms / 1000;
    made->share = percent / 100;
    return 0;
  }
  return -1;
}

/* 0 to 1, the same in each run. */
static double chance(int rank, uint64_t step) {
  uint64_t x = (uint64_t)rank * 0xbf58476d1ce4e5b9u + step * 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return (double)((x ^ x >> 31) >> 11) / (double)(1ull << 53);
}

double slow_sleep_s(const slowness *of, int rank, uint64_t step, double computed_s) {
  double slow_s = of->factor > 0 && rank == of->rank ? (of->factor - 1) * computed_s : 0;
  return slow_s + (chance(rank, step) < of->share ? of->pause_s : 0);
}
