/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 4 5 8 */

/* Short sums of 16-bit types are those of float32, rounded once: the same bits as converting,
 * summing float32 and rounding the result, on all ranks; in the order that ALGORITHMS.md documents.
 */

#include "kernels/element.h"
#include "tests/support/require_fine.h"

enum { COUNT_MAX = 2000 };

static const uint64_t counts[] = {1, 7, 500, COUNT_MAX};

/* Halves at all magnitudes, so that every partial sum in 16 bits would be rounded. */
static float value_of(lcomm_dtype dtype, int rank, uint64_t element) {
  uint64_t mixed = ((uint64_t)rank * 7919 + element + 1) * UINT64_C(0x9e3779b97f4a7c15);
  float scale = (float)(1 << (mixed >> 60));
  float value = ((float)(mixed >> 40 & 0xfff) / 2048.0f - 1.0f) * scale;
  return dtype == LCOMM_FLOAT16 ? lcomm_f16_to_f32(lcomm_f32_to_f16(value))
                                : lcomm_bf16_to_f32(lcomm_f32_to_bf16(value));
}

static uint16_t narrow(lcomm_dtype dtype, float value) {
  return dtype == LCOMM_FLOAT16 ? lcomm_f32_to_f16(value) : lcomm_f32_to_bf16(value);
}

static void fill(lcomm_dtype dtype, uint64_t count, uint16_t *half, float *wide) {
  for (uint64_t i = 0; i < count; i++) {
    wide[i] = value_of(dtype, mpi_rank, i);
    half[i] = narrow(dtype, wide[i]);
  }
}

static void require_rounded_once(lcomm_comm *comm, lcomm_dtype dtype, lcomm_op op, uint64_t count) {
  static uint16_t half[COUNT_MAX];
  static float wide[COUNT_MAX];
  uint64_t wrong = 0;
  fill(dtype, count, half, wide);
  require_fine(comm, lcomm_allreduce(comm, wide, wide, count, LCOMM_FLOAT32, op));
  require_fine(comm, lcomm_allreduce(comm, half, half, count, dtype, op));
  for (uint64_t i = 0; i < count; i++) {
    wrong += half[i] != narrow(dtype, wide[i]);
  }
  require(wrong == 0, "%s of %d %s: %d are not the rounded sum of float32",
          op == LCOMM_AVG ? "average" : "sum", (int)count, lcomm_dtype_name(dtype), (int)wrong);
  require(same_everywhere(half, count * sizeof *half), "ranks differ");
}

static void require_on(int nodes) {
  static const lcomm_dtype types[] = {LCOMM_FLOAT16, LCOMM_BFLOAT16};
  static const lcomm_op ops[] = {LCOMM_SUM, LCOMM_AVG, LCOMM_MAX};
  lcomm_comm *comm = make_comm("net=int8", nodes);
  for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
    for (int i = 0; i < 6; i++) {
      require_rounded_once(comm, types[i % 2], ops[i / 2], counts[c]);
    }
  }
  require_fine(NULL, lcomm_destroy(comm));
}

static void short_sums_of_16_bits_are_those_of_float32_rounded_once(void) {
  for (int nodes = 1; nodes <= mpi_size; nodes++) {
    require_on(nodes);
  }
}

/* The sum of ranks first .. first + count - 1, in their order. */
static float sum_of_node(lcomm_dtype dtype, int first, int count, uint64_t element) {
  float sum = value_of(dtype, first, element);
  for (int i = 1; i < count; i++) {
    sum += value_of(dtype, first + i, element);
  }
  return sum;
}

/* Nodes in their order; neighbours first, then pairs of neighbours. */
static void nodes_are_added_from_pair_to_pair(void) {
  enum { NODES = 4, COUNT = 100 };
  uint16_t half[COUNT];
  float wide[COUNT];
  if (mpi_size % NODES != 0) {
    skip_property("ranks are no multiple of 4");
    return;
  }
  lcomm_comm *comm = make_comm("", NODES);
  int each = mpi_size / NODES;
  fill(LCOMM_FLOAT16, COUNT, half, wide);
  require_fine(comm, lcomm_allreduce(comm, half, half, COUNT, LCOMM_FLOAT16, LCOMM_SUM));
  for (uint64_t i = 0; i < COUNT; i++) {
    float node[NODES];
    for (int n = 0; n < NODES; n++) {
      node[n] = sum_of_node(LCOMM_FLOAT16, n * each, each, i);
    }
    float sum = (node[0] + node[1]) + (node[2] + node[3]);
    require(half[i] == narrow(LCOMM_FLOAT16, sum), "element %d: %04x, not %04x", (int)i, half[i],
            narrow(LCOMM_FLOAT16, sum));
  }
  require_fine(NULL, lcomm_destroy(comm));
}

static const mpi_property properties[] = {
    PROPERTY(short_sums_of_16_bits_are_those_of_float32_rounded_once),
    PROPERTY(nodes_are_added_from_pair_to_pair),
};
RUN_PROPERTIES(mpi_property_main, properties)
