/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_FORKED_H
#define LCOMM_TESTS_FORKED_H

/* Ranks as forked processes of a cmocka test, without MPI: a bootstrap between
 * them, and the first thing that is wrong on any of them fails the test. */

#include <stdbool.h>

#include "libcomm/include/libcomm.h"
#include "libcomm/topo/topo.h"

enum { FORKED_MAX = 64, FORKED_SHARED = 4096, FORKED_NOBODY = -1 };

/* A rank, inside its process. */
typedef struct forked {
  int rank, size;
  lcomm_identity identities[FORKED_MAX]; /* one machine, the right process numbers */
  lcomm_bootstrap boot;                  /* an allgather over these processes */
  unsigned char *shared;                 /* FORKED_SHARED bytes that all see, zero at first */
  struct forked_area *area;
} forked;

typedef void (*forked_function)(forked *self);

/* Run a function on `ranks` processes. The test fails with rank and sentence
 * if one of them requires what does not hold, or dies; `dies` must be killed. */
void forked_run(int ranks, forked_function function);
void forked_run_dying(int ranks, int dies, forked_function function);

/* A line of cmocka's table, FORKED_TEST(property, 2) or FORKED_TEST(property, 2, 4): the property
 * is a forked_function that so many processes run, with each number in turn. */
#define FORKED_TEST(property, ...) FORKED_TEST_BY(forked_test, property, __VA_ARGS__)
#define FORKED_TEST_BY(test, property, ...)                                                        \
  {                                                                                                \
    .name = #property, .test_func = test, .initial_state = &(forked_property) {                    \
      property, {__VA_ARGS__}, 0                                                                   \
    }                                                                                              \
  }

/* With so many ranks, of which number `dies` must be killed meanwhile; it is not 0. */
#define FORKED_TEST_DYING(property, count, dies)                                                   \
  FORKED_TEST_DYING_BY(forked_test, property, count, dies)
#define FORKED_TEST_DYING_BY(test, property, count, dies)                                          \
  {                                                                                                \
    .name = #property, .test_func = test, .initial_state = &(forked_property) {                    \
      property, {count}, dies                                                                      \
    }                                                                                              \
  }

typedef struct forked_property {
  forked_function function;
  int ranks[4]; /* 0: no more */
  int victim;   /* 0: nobody */
} forked_property;

/* The test of that line; its state is a forked_property. */
void forked_test(void **state);

/* What must hold; the process ends where it does not. */
__attribute__((format(printf, 3, 4))) void forked_require(forked *self, bool holds,
                                                          const char *format, ...);

/* Wait for all ranks that live. */
void forked_barrier(forked *self);

/* End without a word, as by the system's hand. */
_Noreturn void forked_die(void);

#endif
