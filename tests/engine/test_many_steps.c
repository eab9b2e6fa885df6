/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The executor finds every step that is ready, also among more of them than a word has bits. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "libcomm/engine/exec.h"
#include "tests/support/forked.h"
#include "tests/support/unit_tests.h"

enum { COUNT = 6 << 20, WORD = 64 };

static float values[COUNT];

/* Small whole numbers: bfloat16 has them, and their sums nearly. */
static float value_of(const forked *self, int i) {
  return (float)((i + self->rank) % 100);
}

static float sum_of(const forked *self, int i) {
  float sum = 0;
  for (int rank = 0; rank < self->size; rank++) {
    forked other = {.rank = rank};
    sum += value_of(&other, i);
  }
  return sum;
}

static void an_operation_of_more_steps_than_a_word_has_bits_ends(forked *self) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  lcomm_comm *comm = NULL;
  config.policy = "net=bf16";
  config.transport = "shm";
  config.nodes = self->size;
  config.timeout_s = 30;
  config.progress = LCOMM_PROGRESS_CALLS;
  lcomm_status status = lcomm_create(&self->boot, &config, &comm);
  forked_require(self, status == LCOMM_OK, "no communicator: %s", lcomm_last_error(NULL));
  for (int i = 0; i < COUNT; i++) {
    values[i] = value_of(self, i);
  }
  status = lcomm_allreduce(comm, values, values, COUNT, LCOMM_FLOAT32, LCOMM_SUM);
  forked_require(self, status == LCOMM_OK, "the sum: %s", lcomm_last_error(comm));
  uint32_t steps = comm->runs.cache.newest->plan->schedule.step_count;
  forked_require(self, steps > WORD, "%u steps say nothing here", steps);
  for (int i = 0; i < COUNT; i++) {
    float expected = sum_of(self, i), error = values[i] - expected;
    forked_require(self, error <= 1 && error >= -1, "element %d is %g, not %g", i,
                   (double)values[i], (double)expected);
  }
  forked_require(self, lcomm_destroy(comm) == LCOMM_OK, "the end");
}

static const struct CMUnitTest tests[] = {
    FORKED_TEST(an_operation_of_more_steps_than_a_word_has_bits_ends, 2, 4),
};
RUN_TESTS(tests)
