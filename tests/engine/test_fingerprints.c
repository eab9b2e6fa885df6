/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Fingerprints of operations that have not begun here: a rank keeps those of the rank on its left,
 * which it will compare, and those of nobody else. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "libcomm/engine/operation.h"
#include "tests/support/unit_tests.h"

enum { RANKS = 5 };

/* As fingerprint.c sends it. */
typedef struct message {
  int32_t kind, rank;
  lcomm_fingerprint fingerprint;
  uint32_t flags, other_next;
} message;

static void only_those_of_the_left_rank_are_kept(void **state) {
  (void)state;
  for (int me = 0; me < RANKS; me++) {
    lcomm_comm *comm = calloc(1, sizeof *comm);
    assert_non_null(comm);
    comm->rank = me;
    comm->size = RANKS;
    lcomm_fingerprint_book_init(&comm->fingerprints);
    int left = (me + RANKS - 1) % RANKS;
    for (int i = 1; i <= RANKS; i++) { /* the left one is the last */
      message it = {.kind = LCOMM_CONTROL_FINGERPRINT, .rank = (left + i) % RANKS};
      uint8_t bytes[LCOMM_CONTROL_SIZE] = {0};
      memcpy(bytes, &it, sizeof it);
      lcomm_fingerprint_receive(comm, bytes);
      assert_int_equal(comm->fingerprints.early_count, it.rank == left);
    }
    free(comm);
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(only_those_of_the_left_rank_are_kept),
};
RUN_TESTS(tests)
