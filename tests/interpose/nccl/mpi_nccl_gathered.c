/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 8 */

/* Sums that ranks combine of what all have given: products, 8-bit floats, unsigned types, factors.
 * Their numbers are any bits, and the reference is made another way. */

#include <math.h>

#include "tests/interpose/nccl/nccl_values.h"

enum { RANKS = 8, COUNT = 600, CODES = 256 };

static unsigned char given[RANKS][RANKS * COUNT * 8], got[RANKS * COUNT * 8];

/* The same bytes on all ranks; each value with each other one, in the end. */
static void draw(uint64_t seed) {
  uint64_t state = seed * 2654435761u + 1;
  for (int rank = 0; rank < RANKS; rank++) {
    for (size_t i = 0; i < sizeof(given[rank]); i++) {
      state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
      given[rank][i] = (unsigned char)(state >> 56);
    }
  }
}

/* ------------------------------------------------------------- 8-bit floats */

/* The numbers of all codes, by the definition of the type; NaN where a code is none. */
static void list_numbers(ncclDataType_t type, double numbers[CODES]) {
  bool is_e4m3 = type == ncclFloat8e4m3;
  int fractions = is_e4m3 ? 8 : 4, lowest = is_e4m3 ? -9 : -16;
  for (int code = 0; code < CODES / 2; code++) {
    int exponent = code / fractions, fraction = code % fractions;
    double step = ldexp(1, lowest + (exponent > 0 ? exponent - 1 : 0));
    double size = step * (exponent > 0 ? fractions + fraction : fraction);
    if (is_e4m3 ? code == 0x7f : code > 0x7c) {
      size = (double)NAN;
    } else if (!is_e4m3 && code == 0x7c) {
      size = (double)INFINITY;
    }
    numbers[code] = size;
    numbers[code + CODES / 2] = -size;
  }
}

/* Of all numbers the nearest finite one, of two the one with an even code. */
static int nearest(const double numbers[CODES], double exact) {
  double largest = isnan(numbers[0x7e]) ? numbers[0x7b] : numbers[0x7e];
  double value = fabs(exact) < largest ? exact : copysign(largest, exact);
  int best = signbit(value) ? CODES / 2 : 0, first = best;
  for (int code = first; code < first + CODES / 2 && isfinite(numbers[code]); code++) {
    double is = fabs(numbers[code] - value), was = fabs(numbers[best] - value);
    best = is < was || (is == was && code % 2 == 0) ? code : best;
  }
  return best;
}

static double combined(ncclRedOp_t op, double a, double b) {
  if (op == ncclMin || op == ncclMax) {
    return isnan(a) || isnan(b) ? (double)NAN : op == ncclMin ? (b < a ? b : a) : (b > a ? b : a);
  }
  return op == ncclProd ? a * b : a + b;
}

/* By how much the factor of a rank is larger than that of the one before. */
static double factor_step;

static double factor_at(double factor, int rank) {
  return factor + rank * factor_step;
}

/* The code of one result; -1: any NaN. */
static int code_of(const double numbers[CODES], ncclRedOp_t op, double factor, size_t place) {
  double value = factor * numbers[given[0][place]];
  for (int rank = 1; rank < mpi_size; rank++) {
    value = combined(op, value, factor_at(factor, rank) * numbers[given[rank][place]]);
  }
  value = op == ncclAvg ? value / mpi_size : value;
  return isnan(value)   ? -1
         : isinf(value) ? (signbit(value) ? 0xfc : 0x7c)
                        : nearest(numbers, value);
}

static void holds_codes(const char *what, ncclDataType_t type, ncclRedOp_t op, double factor,
                        size_t first, const unsigned char *codes) {
  double numbers[CODES];
  list_numbers(type, numbers);
  for (size_t i = 0; i < COUNT; i++) {
    int wanted = code_of(numbers, op, factor, first + i);
    bool is_nan = isnan(numbers[codes[i]]);
    require(wanted < 0 ? is_nan : codes[i] == wanted,
            "%s, type %d, operation %d: element %zu is code %d, not %d", what, (int)type, (int)op,
            i, codes[i], wanted);
  }
}

/* ------------------------------------------------------------- whole numbers */

static uint64_t bits_of(const struct value_type *type, const unsigned char *from) {
  uint64_t value = 0;
  memcpy(&value, from, type->size);
  return value;
}

static int64_t signed_of(const struct value_type *type, uint64_t bits) {
  return type->size == 8 ? (int64_t)bits : type->size == 4 ? (int32_t)bits : (int8_t)bits;
}

static bool is_less(const struct value_type *type, uint64_t a, uint64_t b) {
  bool is_signed = type->type == ncclInt8 || type->type == ncclInt32 || type->type == ncclInt64;
  return is_signed ? signed_of(type, a) < signed_of(type, b) : a < b;
}

static uint64_t cut(const struct value_type *type, uint64_t value) {
  return type->size == 8 ? value : value & ((UINT64_C(1) << (8 * type->size)) - 1);
}

static uint64_t whole_of(const struct value_type *type, ncclRedOp_t op, uint64_t factor,
                         size_t place) {
  uint64_t value = cut(type, factor * bits_of(type, given[0] + place * type->size));
  for (int rank = 1; rank < mpi_size; rank++) {
    uint64_t own = (uint64_t)factor_at((double)factor, rank);
    uint64_t other = cut(type, own * bits_of(type, given[rank] + place * type->size));
    bool takes = op == ncclMin ? is_less(type, other, value) : is_less(type, value, other);
    value = op == ncclProd                   ? cut(type, value * other)
            : op == ncclMin || op == ncclMax ? (takes ? other : value)
                                             : cut(type, value + other);
  }
  return op == ncclAvg ? value / (uint64_t)mpi_size : value;
}

static void holds_wholes(const char *what, const struct value_type *type, ncclRedOp_t op,
                         uint64_t factor, size_t first, const unsigned char *values) {
  for (size_t i = 0; i < COUNT; i++) {
    uint64_t is = bits_of(type, values + i * type->size);
    uint64_t wanted = whole_of(type, op, factor, first + i);
    require(is == wanted, "%s, type %d, operation %d: element %zu is %llx, not %llx", what,
            (int)type->type, (int)op, i, (unsigned long long)is, (unsigned long long)wanted);
  }
}

/* ------------------------------------------------------------------- trying */

static void is_combined(const char *what, const struct value_type *type, ncclRedOp_t op,
                        double factor, size_t first, const void *there, cudaStream_t stream) {
  cuda(cudaStreamSynchronize(stream));
  cuda(cudaMemcpy(got, there, COUNT * type->size, cudaMemcpyDeviceToHost));
  if (type->is_float) {
    holds_codes(what, type->type, op, factor, first, got);
  } else {
    holds_wholes(what, type, op, (uint64_t)factor, first, got);
  }
}

static void give(program *it, const struct value_type *type) {
  draw((uint64_t)type->type);
  cuda(cudaMemcpyAsync(it->from, given[mpi_rank], RANKS * COUNT * type->size,
                       cudaMemcpyHostToDevice, it->stream));
}

static void try_sums(program *it, const struct value_type *type, ncclRedOp_t op, ncclRedOp_t as,
                     double factor) {
  size_t mine = COUNT * (size_t)mpi_rank;
  int root = mpi_size - 1;
  give(it, type);
  fine(ncclAllReduce(it->from, it->to, COUNT, type->type, op, it->comm, it->stream));
  is_combined("all-reduce", type, as, factor, 0, it->to, it->stream);
  fine(ncclReduceScatter(it->from, it->to, COUNT, type->type, op, it->comm, it->stream));
  is_combined("reduce-scatter", type, as, factor, mine, it->to, it->stream);
  void *to = mpi_rank == root ? it->to : NULL;
  fine(ncclReduce(it->from, to, COUNT, type->type, op, root, it->comm, it->stream));
  if (to) {
    is_combined("reduce", type, as, factor, 0, to, it->stream);
  }
  fine(ncclAllReduce(it->from, it->from, COUNT, type->type, op, it->comm, it->stream));
  is_combined("all-reduce in place", type, as, factor, 0, it->from, it->stream);
  fine(ncclAllReduce(it->from, it->from, 0, type->type, op, it->comm, it->stream));
}

static bool is_unsigned(const struct value_type *type) {
  return type->type == ncclUint8 || type->type == ncclUint32 || type->type == ncclUint64;
}

static void try_all(bool of_floats) {
  program it = begin_with_stream();
  for (int t = 0; t < TYPES; t++) {
    const struct value_type *type = &value_types[t];
    bool is_one = of_floats ? type->is_float && type->size == 1 : !type->is_float;
    for (int op = 0; is_one && op < ncclNumOps; op++) {
      if (of_floats || op != ncclAvg || is_unsigned(type)) {
        try_sums(&it, type, (ncclRedOp_t)op, (ncclRedOp_t)op, 1);
      }
    }
  }
  end_program(&it);
}

static void sums_of_8_bit_floats_are_exact_and_rounded_once(void) {
  try_all(true);
}

static void operations_on_whole_numbers_wrap_around_in_their_type(void) {
  try_all(false);
}

static void factors_of_whole_numbers_and_8_bit_floats(void) {
  program it = begin_with_stream();
  for (int t = 0; t < TYPES; t++) {
    const struct value_type *type = &value_types[t];
    unsigned char three[8] = {type->type == ncclFloat8e4m3 ? 0x44 : 3};
    ncclRedOp_t op = ncclSum;
    if (type->type == ncclFloat8e5m2) {
      three[0] = 0x42;
    }
    if (!type->is_float || type->size == 1) {
      fine(ncclRedOpCreatePreMulSum(&op, three, type->type, ncclScalarHostImmediate, it.comm));
      try_sums(&it, type, op, ncclSum, 3);
      refused(ncclAllReduce(it.from, it.to, 1, ncclFloat32, op, it.comm, it.stream),
              ncclInvalidArgument, "made for type");
      fine(ncclRedOpDestroy(op, it.comm));
    }
  }
  end_program(&it);
}

/* 0 on rank 0, 1 on rank 1 and so on: none is refused, and all have the same result. */
static void factors_may_differ_from_rank_to_rank(void) {
  program it = begin_with_stream();
  factor_step = 1;
  for (int t = 0; t < TYPES; t++) {
    const struct value_type *type = &value_types[t];
    static const unsigned char e4m3[] = {0, 0x38, 0x40, 0x44, 0x48, 0x4a, 0x4c, 0x4e};
    static const unsigned char e5m2[] = {0, 0x3c, 0x40, 0x42, 0x44, 0x45, 0x46, 0x47};
    unsigned char own[8] = {type->type == ncclFloat8e4m3   ? e4m3[mpi_rank]
                            : type->type == ncclFloat8e5m2 ? e5m2[mpi_rank]
                                                           : (unsigned char)mpi_rank};
    ncclRedOp_t op = ncclSum;
    if (!type->is_float || type->size == 1) {
      fine(ncclRedOpCreatePreMulSum(&op, own, type->type, ncclScalarHostImmediate, it.comm));
      try_sums(&it, type, op, ncclSum, 0);
      fine(ncclRedOpDestroy(op, it.comm));
    }
  }
  factor_step = 0;
  end_program(&it);
}

/* Two of them and other calls, which may begin in any order. */
static void they_are_made_in_groups_too(void) {
  program it = begin_with_stream();
  const struct value_type *type = &value_types[10];
  unsigned char *other = it.to + VALUES_MAX / 2, *moved = it.to + VALUES_MAX / 4;
  give(&it, type);
  fine(ncclGroupStart());
  fine(ncclAllReduce(it.from, it.to, COUNT, type->type, ncclSum, it.comm, it.stream));
  fine(ncclAllGather(it.from, moved, COUNT, type->type, it.comm, it.stream));
  fine(ncclGroupStart());
  fine(ncclReduceScatter(it.from, other, COUNT, type->type, ncclMax, it.comm, it.stream));
  fine(ncclGroupEnd());
  fine(ncclGroupEnd());
  is_combined("in a group", type, ncclSum, 1, 0, it.to, it.stream);
  is_combined("another", type, ncclMax, 1, COUNT * (size_t)mpi_rank, other, it.stream);
  cuda(cudaMemcpy(got, moved, COUNT, cudaMemcpyDeviceToHost));
  require(memcmp(got, given[0], COUNT) == 0, "what was moved is not that of rank 0");
  end_program(&it);
}

static void on_a_captured_stream_they_are_refused_on_all_ranks(void) {
  program it = begin_with_stream();
  const struct value_type *type = &value_types[11];
  void *graph = NULL;
  give(&it, type);
  check(emulated_capture_begin(it.stream));
  refused(ncclAllReduce(it.from, it.to, COUNT, type->type, ncclSum, it.comm, it.stream),
          ncclInvalidArgument, "end the capture before");
  check(emulated_capture_end(it.stream, &graph));
  check(emulated_graph_destroy(graph));
  try_sums(&it, type, ncclSum, ncclSum, 1);
  end_program(&it);
}

static const mpi_property properties[] = {
    PROPERTY(sums_of_8_bit_floats_are_exact_and_rounded_once),
    PROPERTY(operations_on_whole_numbers_wrap_around_in_their_type),
    PROPERTY(factors_of_whole_numbers_and_8_bit_floats),
    PROPERTY(factors_may_differ_from_rank_to_rank),
    PROPERTY(they_are_made_in_groups_too),
    PROPERTY(on_a_captured_stream_they_are_refused_on_all_ranks),
    PROPERTY(nothing_of_threads_is_left_on_the_device),
};

RUN_PROPERTIES(alone_main, properties)
