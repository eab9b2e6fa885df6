/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 3 */

/* Over an NCCL: error feedback of sums that name no buffer. Until the sums of a step have repeated
 * they are NCCL's; what libcomm's then leave out is in later ones, to the last bit of it when the
 * pattern breaks. */

#include "tests/interpose/nccl/nccl_over_world.h"

enum { SUMS = 2, STEPS = 24, LONG_COUNT = 5000, SHORT_COUNT = 3000 };

static const size_t counts[SUMS] = {LONG_COUNT, SHORT_COUNT};
static double applied[SUMS][LONG_COUNT], expected[SUMS][LONG_COUNT];

static float gradient(int rank, int sum, int step, int i) {
  return (float)((i * 37 + rank * 11 + sum * 5 + step * 101) % 1009 - 504) / 64;
}

static void put_gradient(const world *it, int sum, int step) {
  static float values[LONG_COUNT];
  for (size_t i = 0; i < counts[sum]; i++) {
    values[i] = gradient(mpi_rank, sum, step, (int)i);
    for (int rank = 0; rank < mpi_size; rank++) {
      expected[sum][i] += (double)gradient(rank, sum, step, (int)i);
    }
  }
  to_device(it->from + sum * LONGEST, values, counts[sum] * sizeof(float));
}

static void take_result(const world *it, int sum) {
  static float values[LONG_COUNT];
  check(device->stream.finish(it->stream));
  from_device(values, it->to + sum * LONGEST, counts[sum] * sizeof(float));
  for (size_t i = 0; i < counts[sum]; i++) {
    applied[sum][i] += (double)values[i];
  }
}

static void sum_of(const world *it, int sum) {
  fine(ncclAllReduce(it->from + sum * LONGEST, it->to + sum * LONGEST, counts[sum], ncclFloat32,
                     ncclSum, it->comm, it->stream));
}

static void step_of(const world *it, int step, bool grouped) {
  for (int sum = 0; sum < SUMS; sum++) {
    put_gradient(it, sum, step);
  }
  if (grouped) {
    fine(ncclGroupStart());
  }
  for (int sum = 0; sum < SUMS; sum++) {
    sum_of(it, sum);
  }
  if (grouped) {
    fine(ncclGroupEnd());
  }
  for (int sum = 0; sum < SUMS; sum++) {
    take_result(it, sum);
  }
}

static double largest_difference(void) {
  double largest = 0;
  for (int sum = 0; sum < SUMS; sum++) {
    for (size_t i = 0; i < counts[sum]; i++) {
      double difference = applied[sum][i] - expected[sum][i];
      difference = difference < 0 ? -difference : difference;
      largest = difference > largest ? difference : largest;
    }
  }
  return largest;
}

static void nothing_is_lost(const char *policy, bool grouped) {
  memset(applied, 0, sizeof(applied));
  memset(expected, 0, sizeof(expected));
  world it = begin_over(policy);
  (void)sums_below();
  for (int step = 0; step < STEPS; step++) {
    step_of(&it, step, grouped);
    require(step > 1 || largest_difference() < 1e-3, "step %d is not exact", step);
  }
  int below = sums_below();
  require(below >= 6 && below <= 10, "NCCL has made %d", below);
  require(largest_difference() > 1e-3, "libcomm's are exact");
  fine(ncclAllReduce(it.from, it.from, 2000, ncclFloat32, ncclSum, it.comm, it.stream));
  check(device->stream.finish(it.stream));
  require(sums_below() == 1, "one that breaks the pattern is exact");
  step_of(&it, STEPS, grouped);
  require(sums_below() == 0, "those that flush are libcomm's");
  require(largest_difference() < 0.05, "%g is lost", largest_difference());
  end(&it);
}

static void what_is_left_out_comes_later(void) {
  nothing_is_lost("net=topk:0.05+ef min=1K", false);
  nothing_is_lost("net=int8+ef min=1K", false);
}

static void in_groups_as_well(void) {
  nothing_is_lost("net=topk:0.05+ef min=1K", true);
}

/* Of a sum each rank gets a part of this length. */
enum { EACH = 1500 };

static double part[EACH];

static void part_of_sum(const world *it) {
  fine(ncclReduceScatter(it->from, it->to, EACH, ncclFloat32, ncclSum, it->comm, it->stream));
  add_from_device(part, it->to, EACH, it->stream);
}

static double difference_of_parts(int steps) {
  double largest = 0;
  for (int i = 0; i < EACH; i++) {
    double difference = part[i];
    for (int rank = 0; rank < mpi_size; rank++) {
      difference -= steps * (double)value_of(rank, EACH * mpi_rank + i);
    }
    difference = difference < 0 ? -difference : difference;
    largest = difference > largest ? difference : largest;
  }
  return largest;
}

static void nothing_of_parts_is_lost(const char *policy) {
  memset(part, 0, sizeof(part));
  world it = begin_over(policy);
  (void)sums_below();
  put_floats(it.from, mpi_rank, EACH * mpi_size);
  for (int step = 0; step < STEPS; step++) {
    part_of_sum(&it);
    require(step > 1 || difference_of_parts(step + 1) < 1e-3, "step %d is not exact", step);
  }
  int below = sums_below();
  require(below >= 2 && below <= 10, "NCCL has made %d", below);
  require(difference_of_parts(STEPS) > 1e-3, "libcomm's are exact");
  fine(ncclAllReduce(it.from, it.to, EACH, ncclFloat32, ncclSum, it.comm, it.stream));
  check(device->stream.finish(it.stream));
  require(sums_below() == 1, "an all-reduce of that length flushes what a reduce-scatter carries");
  part_of_sum(&it);
  require(sums_below() == 0, "the one that flushes is libcomm's");
  require(difference_of_parts(STEPS + 1) < 0.05, "%g is lost", difference_of_parts(STEPS + 1));
  end(&it);
}

static void parts_that_ranks_get_are_made_up_for(void) {
  nothing_of_parts_is_lost("net=topk:0.05+ef min=1K");
  nothing_of_parts_is_lost("net=int8+ef min=1K");
}

static const mpi_property properties[] = {
    PROPERTY(what_is_left_out_comes_later),
    PROPERTY(in_groups_as_well),
    PROPERTY(parts_that_ranks_get_are_made_up_for),
    PROPERTY(nothing_of_threads_is_left_on_the_device),
};

RUN_PROPERTIES(over_main, properties)
