/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_DOOR_PROPERTY_H
#define LCOMM_TESTS_DOOR_PROPERTY_H

/* Properties of programs that know nothing of libcomm: as mpi_property.h, in
 * MPI alone. MPI_X is the door's where its library is linked or preloaded; what is
 * here calls PMPI_X, so it works also where the door is broken. Without the door
 * the programs run on plain MPI and must pass too. */

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef void (*door_property_function)(void);

typedef struct door_property {
  const char *name;
  door_property_function run;
} door_property;

/* The names are those of mpi_property.h to the tests, but not to the linker, which
 * finds both in one archive. */
#define mpi_rank door_rank
#define mpi_size door_size
#define mpi_threads door_threads
#define require door_require
#define skip_property door_skip_property
#define same_everywhere door_same_everywhere
#define equal_everywhere door_equal_everywhere
#define fill_gradient door_fill_gradient

extern int mpi_rank, mpi_size;
extern int mpi_threads; /* the level that MPI gave, or said in MPI_Query_thread */

/* Set the environment with `before`, which may be NULL, then initialise MPI, run
 * all, finalise; the exit code for main. Before it are set, where they are not:
 * LCOMM_NODES=2 (1 with one rank), LCOMM_TRANSPORT=shm,mpi. The second asks for
 * a thread level with MPI_Init_thread, the first calls MPI_Init.
 * argv[1]: only properties with that in their name. */
int door_property_main(int *argc, char ***argv, void (*before)(void),
                       const door_property *properties, int count);
int door_property_main_threads(int *argc, char ***argv, void (*before)(void), int level,
                               const door_property *properties, int count);

/* For `before`: set an environment variable that is not set. */
void set_default(const char *variable, const char *value);

/* For `before`: how many ranks the launcher started, and which is this one. */
int launched_ranks(void);
int launched_rank(void);

/* Remember a failure of this rank; the first one of the lowest rank is shown. */
__attribute__((format(printf, 2, 3))) void require(bool holds, const char *format, ...);

/* The property cannot be tried here; counted as skipped. */
void skip_property(const char *why);

/* Has this rank no failure so far? */
bool all_well(void);

/* Do all ranks of the world (of a communicator) hold the same bytes? */
bool same_everywhere(const void *bytes, size_t size);
bool same_on(MPI_Comm comm, const void *bytes, size_t size);

/* Is a value (an error class, say) the same on all ranks? */
bool equal_everywhere(int64_t value);

/* Reproducible numbers that look like gradients: mostly small, some large. */
void fill_gradient(float *values, uint64_t count, uint64_t seed);

/* Is the door in this process? Is it open, by LCOMM_POLICY and LCOMM_DOOR? */
bool door_is_there(void);
bool door_is_open(void);

/* The node that a rank of the world poses to be on, with 2 nodes. */
int node_of(int world_rank);

#endif
