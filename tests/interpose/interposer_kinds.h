/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_INTERPOSE_INTERPOSER_KINDS_H
#define LCOMM_TESTS_INTERPOSE_INTERPOSER_KINDS_H

/* Types with operations, and data for which every order of summation gives the same
 * bits: small whole numbers. */

#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/interposer_property.h"

static inline uint64_t draw(uint64_t *state) {
  uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

static inline int draw_below(uint64_t *state, int limit) {
  return (int)(draw(state) % (uint64_t)limit);
}

/* -------------------------------------------------------------------- data */

typedef void (*fill_function)(void *bytes, size_t size, uint64_t seed);

#define FILL(name, type, expression)                                                               \
  static inline void name(void *bytes, size_t size, uint64_t seed) {                               \
    type *values = bytes;                                                                          \
    for (size_t i = 0; i < size / sizeof(type); i++) {                                             \
      values[i] = (type)(expression);                                                              \
    }                                                                                              \
  }

FILL(fill_floats, float, draw_below(&seed, 17) - 8)
FILL(fill_doubles, double, draw_below(&seed, 17) - 8)
FILL(fill_shorts, short, draw_below(&seed, 9) - 4)
FILL(fill_ints, int, draw_below(&seed, 15) - 7)
FILL(fill_longs, long long, draw_below(&seed, 31) - 15)
FILL(fill_bytes, unsigned char, draw(&seed))

typedef struct float_int {
  float value;
  int index;
} float_int;

/* Few values, so that many are equal and the index decides. */
static inline void fill_float_ints(void *bytes, size_t size, uint64_t seed) {
  float_int *values = bytes;
  for (size_t i = 0; i < size / sizeof *values; i++) {
    values[i] = (float_int){(float)draw_below(&seed, 5), draw_below(&seed, 1000)};
  }
}

/* ---------------------------------------------- operations of the program */

/* Commutes: the larger magnitude, of floats. */
static inline void larger(void *in, void *inout, int *count, MPI_Datatype *type) {
  const float *a = in;
  float *b = inout;
  (void)type;
  for (int i = 0; i < *count; i++) {
    float x = a[i] < 0 ? -a[i] : a[i], y = b[i] < 0 ? -b[i] : b[i];
    b[i] = x > y ? x : y;
  }
}

/* Does not commute: the first of the floats that is not negative. */
static inline void first_of_all(void *in, void *inout, int *count, MPI_Datatype *type) {
  const float *a = in;
  float *b = inout;
  (void)type;
  for (int i = 0; i < *count; i++) {
    b[i] = a[i] >= 0 ? a[i] : b[i];
  }
}

/* Does not commute: x -> a*x + b, one after the other, in pairs of whole floats. */
static inline void compose(void *in, void *inout, int *count, MPI_Datatype *type) {
  const float *f = in;
  float *g = inout;
  (void)type;
  for (int i = 0; i < 2 * *count; i += 2) {
    g[i + 1] = f[i] * g[i + 1] + f[i + 1];
    g[i] = f[i] * g[i];
  }
}

FILL(fill_maps, float, draw_below(&seed, 5) - 2)

/* Commutes: the sums of what a vector of two floats with a gap between holds. */
static inline void add_vectors(void *in, void *inout, int *count, MPI_Datatype *type) {
  const float *a = in;
  float *b = inout;
  (void)type;
  for (int i = 0; i < 3 * *count; i += 3) {
    b[i] += a[i];
    b[i + 2] += a[i + 2];
  }
}

/* ------------------------------------------------------------------- kinds */

/* A type with what can be done with it. */
typedef struct data_kind {
  const char *name;
  MPI_Datatype type;
  MPI_Op op;
  fill_function fill;
} data_kind;

enum { DATA_KINDS_MAX = 40 };

typedef struct data_kinds {
  data_kind kind[DATA_KINDS_MAX];
  int count;
  MPI_Datatype pair, vector, copy;
  MPI_Op larger, first, compose, add;
} data_kinds;

static inline void add_kind(data_kinds *all, const char *name, MPI_Datatype type, MPI_Op op,
                            fill_function fill) {
  all->kind[all->count++] = (data_kind){name, type, op, fill};
}

static inline void add_plain_kinds(data_kinds *all) {
  add_kind(all, "float SUM", MPI_FLOAT, MPI_SUM, fill_floats);
  add_kind(all, "float SUM", MPI_FLOAT, MPI_SUM, fill_floats); /* twice as often */
  add_kind(all, "float MIN", MPI_FLOAT, MPI_MIN, fill_floats);
  add_kind(all, "float MAX", MPI_FLOAT, MPI_MAX, fill_floats);
  add_kind(all, "float PROD", MPI_FLOAT, MPI_PROD, fill_floats);
  add_kind(all, "double SUM", MPI_DOUBLE, MPI_SUM, fill_doubles);
  add_kind(all, "double MAX", MPI_DOUBLE, MPI_MAX, fill_doubles);
  add_kind(all, "double PROD", MPI_DOUBLE, MPI_PROD, fill_doubles);
  add_kind(all, "int SUM", MPI_INT, MPI_SUM, fill_ints);
  add_kind(all, "int MIN", MPI_INT, MPI_MIN, fill_ints);
  add_kind(all, "int PROD", MPI_INT, MPI_PROD, fill_ints);
  add_kind(all, "int BAND", MPI_INT, MPI_BAND, fill_bytes);
  add_kind(all, "int LOR", MPI_INT, MPI_LOR, fill_ints);
  add_kind(all, "unsigned SUM", MPI_UNSIGNED, MPI_SUM, fill_bytes);
  add_kind(all, "short SUM", MPI_SHORT, MPI_SUM, fill_shorts);
  add_kind(all, "long long SUM", MPI_LONG_LONG, MPI_SUM, fill_longs);
  add_kind(all, "long long MAX", MPI_LONG_LONG, MPI_MAX, fill_longs);
  add_kind(all, "unsigned long BAND", MPI_UNSIGNED_LONG, MPI_BAND, fill_bytes);
  add_kind(all, "int32_t SUM", MPI_INT32_T, MPI_SUM, fill_ints);
  add_kind(all, "int64_t SUM", MPI_INT64_T, MPI_SUM, fill_longs);
  add_kind(all, "FLOAT_INT MINLOC", MPI_FLOAT_INT, MPI_MINLOC, fill_float_ints);
  add_kind(all, "FLOAT_INT MAXLOC", MPI_FLOAT_INT, MPI_MAXLOC, fill_float_ints);
  add_kind(all, "byte BAND", MPI_BYTE, MPI_BAND, fill_bytes);
  add_kind(all, "byte BXOR", MPI_BYTE, MPI_BXOR, fill_bytes);
}

static inline void add_own_kinds(data_kinds *all) {
  add_kind(all, "float of an operation", MPI_FLOAT, all->larger, fill_floats);
  add_kind(all, "float of one that does not commute", MPI_FLOAT, all->first, fill_floats);
  add_kind(all, "pairs of one that does not commute", all->pair, all->compose, fill_maps);
  add_kind(all, "vectors of an operation", all->vector, all->add, fill_floats);
  add_kind(all, "a copy of MPI_FLOAT SUM", all->copy, MPI_SUM, fill_floats);
  add_kind(all, "a copy of MPI_FLOAT of an operation", all->copy, all->larger, fill_floats);
}

static inline data_kinds make_data_kinds(void) {
  data_kinds all = {.count = 0};
  MPI_Type_contiguous(2, MPI_FLOAT, &all.pair);
  MPI_Type_commit(&all.pair);
  MPI_Type_vector(2, 1, 2, MPI_FLOAT, &all.vector);
  MPI_Type_commit(&all.vector);
  MPI_Type_dup(MPI_FLOAT, &all.copy);
  MPI_Op_create(larger, 1, &all.larger);
  MPI_Op_create(first_of_all, 0, &all.first);
  MPI_Op_create(compose, 0, &all.compose);
  MPI_Op_create(add_vectors, 1, &all.add);
  add_plain_kinds(&all);
  add_own_kinds(&all);
  return all;
}

static inline void free_data_kinds(data_kinds *all) {
  MPI_Type_free(&all->pair);
  MPI_Type_free(&all->vector);
  MPI_Type_free(&all->copy);
  MPI_Op_free(&all->larger);
  MPI_Op_free(&all->first);
  MPI_Op_free(&all->compose);
  MPI_Op_free(&all->add);
}

#endif
