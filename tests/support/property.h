/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_PROPERTY_H
#define LCOMM_TESTS_PROPERTY_H

/* Properties that hold on several ranks. A property is a function that every
 * rank runs; it says with require() what must be true. The line PASS, FAIL or
 * SKIP is printed once, by rank 0, after all ranks have come back.
 *
 * All of it is in MPI alone, and calls it as PMPI_X: programs that know nothing of
 * libcomm use it, too, and it works where a library between them and MPI is broken.
 * main() comes from mpi_property.h or interposer_property.h. */

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mpi_property {
  const char *name;
  void (*run)(void);
  int ranks;                 /* it needs so many */
  bool (*is_possible)(void); /* else it is skipped, and this has said why; NULL: it is */
} mpi_property;

/* A line of a program's table: the property has the name of its function. The second one is skipped
 * where there are fewer ranks, the third one where bool possible(void) calls skip_property() and
 * returns false. */
#define PROPERTY(function) PROPERTY_OF(1, function)
#define PROPERTY_OF(least, function)                                                               \
  { .name = #function, .run = function, .ranks = least }
#define PROPERTY_WHERE(possible, function)                                                         \
  { .name = #function, .run = function, .is_possible = possible }

/* A table and its length: two arguments. */
#define WITH_COUNT(properties) properties, (int)(sizeof(properties) / sizeof(properties[0]))

/* main() of a program that is nothing but such a table; `run` is mpi_property_main (mpi_property.h)
 * or one of its siblings. */
#define RUN_PROPERTIES(run, properties)                                                            \
  int main(int argc, char **argv) { return run(&argc, &argv, WITH_COUNT(properties)); }

/* Run those whose names hold argv[1], or all, and finalise MPI; the exit code for
 * main. After MPI_Init. */
int run_properties(char **argv, const mpi_property *properties, int count);

extern int mpi_rank, mpi_size;
extern int mpi_threads; /* the level that MPI gave */

/* Remember a failure of this rank; the first one of the lowest rank is shown. */
__attribute__((format(printf, 2, 3))) void require(bool holds, const char *format, ...);

/* The property cannot be tried here; counted as skipped. */
void skip_property(const char *why);

/* Has this rank no failure so far? */
bool all_well(void);

/* Do all ranks of the world (of a communicator) hold the same bytes? */
bool same_everywhere(const void *bytes, size_t size);
bool same_on(MPI_Comm comm, const void *bytes, size_t size);

/* The sums of values over the ranks of the world (of a communicator), in their place. A rank sleeps
 * while it waits: MPI keeps a processor meanwhile, which other ranks may need. */
void sum_everywhere(double *values, uint64_t count);
void sum_over(MPI_Comm comm, double *values, uint64_t count);

/* Is a value (a status, an error class) the same on all ranks? */
bool equal_everywhere(int64_t value);

/* Reproducible numbers that look like gradients: mostly small, some large. */
void fill_gradient(float *values, uint64_t count, uint64_t seed);

#endif
