/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* lcomm_create_at: ranks meet where the program says, whatever a launcher's variables are. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "libcomm/include/libcomm_interpose.h"
#include "tests/bootstrap/crew.h"
#include "tests/support/unit_tests.h"

static lcomm_meeting meeting_of(const crew *c, int rank) {
  return (lcomm_meeting){.rank = rank,
                         .world_size = c->size,
                         .address = c->place.address,
                         .port = c->place.port,
                         .token = c->place.token};
}

static void make(const lcomm_meeting *meeting, const crew *c, report *mine) {
  lcomm_comm *comm = NULL;
  lcomm_config config = LCOMM_CONFIG_INIT;
  float sum = (float)(meeting->rank + 1);
  config.timeout_s = c->timeout_s;
  config.transport = "shm";
  mine->status = lcomm_create_at(meeting, &config, &comm);
  snprintf(mine->sentence, sizeof(mine->sentence), "%s", lcomm_last_error(NULL));
  mine->good = mine->status == LCOMM_OK &&
               lcomm_allreduce(comm, &sum, &sum, 1, LCOMM_FLOAT32, LCOMM_SUM) == LCOMM_OK &&
               sum == (float)(c->size * (c->size + 1) / 2) && lcomm_rank(comm) == meeting->rank;
  lcomm_destroy(comm);
}

static void ranks_meet_and_sum(const crew *c, int rank, report *mine) {
  lcomm_meeting meeting = meeting_of(c, rank);
  setenv("RANK", "7", 1);
  setenv("WORLD_SIZE", "9", 1);
  setenv("LCOMM_PORT", "1", 1);
  make(&meeting, c, mine);
}

static void a_rank_alone_meets_nobody(const crew *c, int rank, report *mine) {
  ranks_meet_and_sum(c, rank, mine);
}

static void without_a_token(const crew *c, int rank, report *mine) {
  lcomm_meeting meeting = meeting_of(c, rank);
  meeting.token = NULL;
  make(&meeting, c, mine);
}

static void one_has_another_token(const crew *c, int rank, report *mine) {
  lcomm_meeting meeting = meeting_of(c, rank);
  meeting.token = rank == 1 ? "a guess" : meeting.token;
  make(&meeting, c, mine);
}

static void a_rank_with_another_token_is_refused(void **state) {
  (void)state;
  crew c = new_crew(2, one_has_another_token);
  c.timeout_s = 2;
  run_crew(&c);
  assert_int_not_equal(c.reports[0].status, LCOMM_OK);
  assert_int_not_equal(c.reports[1].status, LCOMM_OK);
  dismiss(&c);
}

static void meetings_that_are_none_are_refused(void **state) {
  (void)state;
  static char longer[300];
  memset(longer, 'a', sizeof(longer) - 1);
  static const lcomm_meeting none[] = {
      {0, 0, "localhost", 29600, NULL},  {2, 2, "localhost", 29600, NULL},
      {-1, 2, "localhost", 29600, NULL}, {0, 2, NULL, 29600, NULL},
      {0, 2, "", 29600, NULL},           {0, 2, longer, 29600, NULL},
      {0, 2, "localhost", 0, NULL},      {0, 2, "localhost", 65536, NULL},
      {0, 2, "localhost", 29600, longer}};
  lcomm_comm *comm = NULL;
  for (size_t i = 0; i < sizeof(none) / sizeof *none; i++) {
    assert_int_equal(lcomm_create_at(&none[i], NULL, &comm), LCOMM_ERR_ARGUMENT);
    assert_non_null(strstr(lcomm_last_error(NULL), "lcomm_create_at: "));
  }
}

static const struct CMUnitTest tests[] = {
    CREW_TEST(ranks_meet_and_sum, 3),
    CREW_TEST(a_rank_alone_meets_nobody, 1),
    CREW_TEST(without_a_token, 2),
    cmocka_unit_test(a_rank_with_another_token_is_refused),
    cmocka_unit_test(meetings_that_are_none_are_refused),
};

RUN_TESTS(tests)
