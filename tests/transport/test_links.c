/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Which transport reaches which peer, with transports of our own instead of the
 * library's. */

#include "tests/transport/links_fakes.h"

/* ---------------------------------------------------------------- properties */

static void lists_of_known_names_are_taken(void **state) {
  static const char *const good[] = {"auto", "near", "near,far", "far,near", ",near,,far,", NULL};
  lcomm_why why = {.text = "untouched"};
  (void)state;
  for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
    assert_int_equal(lcomm_links_parse(good[i], &why), LCOMM_OK);
  }
  assert_string_equal(why.text, "untouched");
}

static void other_lists_are_refused_with_the_name_that_is_wrong(void **state) {
  static const char *const bad[][2] = {{"", "empty"},          {",", "empty"},
                                       {"nea", "'nea'"},       {"near far", "'near far'"},
                                       {"near,shm", "'shm'"},  {"Near", "'Near'"},
                                       {"far,auto", "'auto'"}, {"nearnear", "'nearnear'"}};
  (void)state;
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    lcomm_why why = {.text = ""};
    assert_int_equal(lcomm_links_parse(bad[i][0], &why), LCOMM_ERR_ARGUMENT);
    assert_non_null(strstr(why.text, bad[i][1]));
  }
}

static void each_peer_gets_the_first_transport_that_reaches_it(void **state) {
  (void)state;
  open_all("auto");
  for (int rank = 0; rank < RANKS; rank++) {
    assert_int_equal(ranks[rank].status, LCOMM_OK);
    for (int peer = 0; peer < RANKS; peer++) {
      bool neighbours = rank / 2 == peer / 2;
      assert_string_equal(link_of(rank, peer), rank == peer ? "none" : neighbours ? "near" : "far");
    }
    assert_int_equal(ranks[rank].links.count, 2);
    assert_true(lcomm_links_use(&ranks[rank].links, "near"));
    assert_false(lcomm_links_use(&ranks[rank].links, "middle"));
  }
  close_all();
}

static void a_transport_is_told_whom_others_have_linked(void **state) {
  (void)state;
  open_all("auto");
  for (int rank = 0; rank < RANKS; rank++) {
    assert_false(behaviours[0].told[rank][rank ^ 1] || behaviours[2].told[rank][rank ^ 2]);
    assert_true(behaviours[2].told[rank][rank ^ 1]);
  }
  close_all();
}

static void links_that_are_not_there_yet_are_known(void **state) {
  (void)state;
  behaviours[2].late = true;
  open_all("auto");
  assert_false(lcomm_links_linked(&ranks[0].links, 0));
  assert_true(lcomm_links_linked(&ranks[0].links, 1));
  assert_false(lcomm_links_linked(&ranks[0].links, 2));
  close_all();
}

static void what_nobody_needs_is_not_kept_open(void **state) {
  (void)state;
  memset(behaviours[0].reach, 1, sizeof(behaviours[0].reach));
  open_all(NULL);
  for (int rank = 0; rank < RANKS; rank++) {
    assert_int_equal(ranks[rank].links.count, 1);
    assert_int_equal(behaviours[1].opened[rank], 0);
    assert_int_equal(behaviours[2].opened[rank], 0);
  }
  close_all();
  set_up(state);
  open_all("auto"); /* the middle one reaches nobody, and that shows only once it is open */
  for (int rank = 0; rank < RANKS; rank++) {
    assert_int_equal(behaviours[1].opened[rank], 1);
    assert_int_equal(behaviours[1].closed[rank], 1);
  }
  close_all();
}

static void names_restrict_the_choice_and_their_order_says_nothing(void **state) {
  (void)state;
  open_all("far");
  assert_string_equal(link_of(0, 1), "far");
  assert_int_equal(behaviours[0].opened[0], 0);
  close_all();
  open_all("far,near");
  assert_string_equal(link_of(0, 1), "near");
  assert_string_equal(link_of(1, 2), "far");
  close_all();
}

static void a_transport_that_cannot_be_opened_is_passed_over(void **state) {
  (void)state;
  behaviours[0].opens = LCOMM_ERR_UNSUPPORTED;
  open_all("auto");
  assert_int_equal(ranks[3].status, LCOMM_OK);
  assert_string_equal(link_of(3, 2), "far");
  close_all();
}

/* The same sentence, from every rank: a pair, and what each transport said. */
static void a_pair_without_a_link_stops_all_ranks_with_the_reasons(void **state) {
  (void)state;
  behaviours[2].opens = LCOMM_ERR_TRANSPORT;
  open_all("auto");
  for (int rank = 0; rank < RANKS; rank++) {
    assert_int_equal(ranks[rank].status, LCOMM_ERR_TRANSPORT);
    assert_string_equal(ranks[rank].why.text, ranks[0].why.text);
    for (int number = 0; number < FAKES; number++) {
      assert_int_equal(behaviours[number].opened[rank], behaviours[number].closed[rank]);
    }
  }
  assert_non_null(
      strstr(ranks[0].why.text, "rank 0 (host host0) has no link to rank 2 (host host1)"));
  assert_non_null(strstr(ranks[0].why.text, "near: does not reach it"));
  assert_non_null(strstr(ranks[0].why.text, "middle: does not reach it"));
  assert_non_null(strstr(ranks[0].why.text, "far: fake 2 is broken"));
}

static void one_lonely_rank_is_named(void **state) {
  (void)state;
  for (int rank = 0; rank < 3; rank++) {
    behaviours[2].reach[rank][3] = behaviours[2].reach[3][rank] = false;
  }
  open_all("far");
  for (int rank = 0; rank < RANKS; rank++) {
    assert_int_equal(ranks[rank].status, LCOMM_ERR_TRANSPORT);
    assert_non_null(strstr(ranks[rank].why.text, "rank 0 (host host0) has no link to rank 3"));
  }
}

static void what_a_transport_says_of_those_it_misses_is_told(void **state) {
  (void)state;
  behaviours[0].trouble = "rank 2 cannot be opened: Too many open files";
  behaviours[2].opens = LCOMM_ERR_TRANSPORT;
  open_all("auto");
  for (int rank = 0; rank < RANKS; rank++) {
    assert_int_equal(ranks[rank].status, LCOMM_ERR_TRANSPORT);
    assert_non_null(
        strstr(ranks[rank].why.text, "near: rank 2 cannot be opened: Too many open files"));
  }
}

/* Rank 2 lacks some for the last one, which is not opened anywhere. */
static void a_rank_with_too_few_file_descriptors_is_named_before_it_runs_out(void **state) {
  (void)state;
  behaviours[0].needed[1] = behaviours[2].needed[0] = 1;
  behaviours[2].needed[2] = 1 << 30;
  open_all("auto");
  for (int rank = 0; rank < RANKS; rank++) {
    assert_int_equal(ranks[rank].status, LCOMM_ERR_SYSTEM);
    assert_string_equal(ranks[rank].why.text, ranks[0].why.text);
    assert_int_equal(behaviours[0].opened[rank], behaviours[0].closed[rank]);
    assert_int_equal(behaviours[2].opened[rank], 0);
  }
  assert_non_null(strstr(ranks[0].why.text, "rank 2 (host host1) has too few file descriptors"));
  assert_non_null(strstr(ranks[0].why.text, "far among 4 ranks needs 1073741828"));
  assert_non_null(strstr(ranks[0].why.text, "`ulimit -n "));
}

static void a_bootstrap_that_fails_is_an_error(void **state) {
  (void)state;
  allgather_fails = true;
  open_all("auto");
  assert_int_equal(ranks[1].status, LCOMM_ERR_TRANSPORT);
  assert_non_null(strstr(ranks[1].why.text, "bootstrap"));
  assert_int_equal(behaviours[0].opened[1], behaviours[0].closed[1]);
}

static void a_rank_alone_opens_nothing(void **state) {
  int rank = 0;
  lcomm_links links;
  lcomm_why why;
  lcomm_identity identity = {.host = "here"};
  lcomm_bootstrap boot = {0, 1, &rank, gather};
  lcomm_transport_setup setup = {.size = 1, .identities = &identity, .bootstrap = &boot};
  (void)state;
  assert_int_equal(lcomm_links_open(&setup, "auto", &links, &why), LCOMM_OK);
  assert_int_equal(links.count, 0);
  assert_null(links.of[0]);
  lcomm_links_close(&links, true);
}

static void all_open_transports_are_driven_and_heard(void **state) {
  unsigned char message[LCOMM_CONTROL_SIZE];
  (void)state;
  open_all("auto");
  lcomm_links_progress(&ranks[1].links);
  assert_int_equal(behaviours[0].progressed[1], 1);
  assert_int_equal(behaviours[2].progressed[1], 1);
  assert_false(lcomm_links_control_receive(&ranks[1].links, message));
  behaviours[2].has_notice = true;
  assert_true(lcomm_links_control_receive(&ranks[1].links, message));
  assert_int_equal(message[LCOMM_CONTROL_SIZE - 1], 2);
  assert_false(lcomm_links_control_receive(&ranks[1].links, message));
  lcomm_links_close(&ranks[1].links, false);
  assert_false(behaviours[0].orderly);
  for (int rank = 0; rank < RANKS; rank++) {
    lcomm_links_close(&ranks[rank].links, true); /* closing again is harmless */
  }
}

/* Nothing here waits: what is asked to wait for ever has a reason to wake. */
static void a_sleep_ends_for_every_transport_that_can_wake_it(void **state) {
  lcomm_links_wait_set set;
  int near[2], bell[2];
  (void)state;
  assert_int_equal(pipe(near), 0);
  assert_int_equal(pipe(bell), 0);
  open_all("auto");
  behaviours[0].arms = near[0];
  behaviours[2].arms = LCOMM_ARM_NEVER;
  lcomm_links_prepare(&ranks[0].links, &set, bell[0]);
  assert_int_equal(set.count, 2);
  assert_true(set.blind && !set.busy);
  lcomm_links_sleep(&set, FOREVER_S); /* one that cannot tell makes it short */
  behaviours[2].arms = LCOMM_ARM_BUSY;
  lcomm_links_prepare(&ranks[0].links, &set, bell[0]);
  assert_true(set.busy);
  lcomm_links_sleep(&set, FOREVER_S);
  behaviours[2].arms = near[0];
  for (int which = 0; which < 2; which++) {
    char byte = 0;
    assert_int_equal(write(which == 0 ? near[1] : bell[1], "", 1), 1);
    lcomm_links_prepare(&ranks[0].links, &set, bell[0]);
    assert_true(set.count == 3 && !set.busy && !set.blind);
    lcomm_links_sleep(&set, FOREVER_S);
    assert_int_equal(read(which == 0 ? near[0] : bell[0], &byte, 1), 1);
  }
  lcomm_links_prepare(&ranks[0].links, &set, -1);
  assert_int_equal(set.count, 2);
  lcomm_links_awake(&ranks[0].links); /* without disarm functions */
  close_all();
  for (int i = 0; i < 2; i++) {
    close(near[i]);
    close(bell[i]);
  }
}

static void memory_comes_from_a_transport_while_it_has_some(void **state) {
  (void)state;
  open_all("auto");
  lcomm_links *links = &ranks[0].links;
  behaviours[2].lends = true;
  unsigned char *lent = lcomm_links_memory_get(links, 1000);
  behaviours[2].lends = false;
  unsigned char *plain = lcomm_links_memory_get(links, 5000),
                *empty = lcomm_links_memory_get(links, 0);
  assert_true(lent && plain && empty);
  assert_int_equal(behaviours[2].lent, 1);
  assert_int_equal((uintptr_t)plain % 4096, 0);
  for (int i = 0; i < 5000; i++) {
    assert_int_equal(plain[i], 0);
  }
  assert_int_equal(links->memory_size, 6000);
  lcomm_links_memory_free(links, lent);
  lcomm_links_memory_free(links, NULL);
  lcomm_links_memory_free(links, &ranks); /* not ours: nothing happens */
  assert_int_equal(returned, 1);
  assert_int_equal(links->memory_size, 5000);
  assert_null(lcomm_links_memory_get(links, SIZE_MAX - 5));
  lcomm_links_memory_free(links, empty);
  plain[4999] = 1;
  close_all(); /* leaves it */
  plain[4999] = 2;
  lcomm_links_memory_free_all(links);
  assert_int_equal(links->memory_size, 0);
}

static void what_somebody_reads_stays_after_the_end_until_nobody_does(void **state) {
  (void)state;
  open_all("auto");
  lcomm_links *links = &ranks[0].links;
  behaviours[0].read = behaviours[2].read = true;
  assert_false(lcomm_links_close(links, false));
  assert_null(links->of);
  assert_false(lcomm_links_release(links));
  behaviours[2].read = false; /* one of the two is still read */
  assert_false(lcomm_links_release(links));
  behaviours[0].read = false;
  assert_true(lcomm_links_release(links));
  assert_true(lcomm_links_release(links)); /* once more is harmless */
  assert_int_equal(behaviours[0].closed[0], 1);
  close_all();
  assert_int_equal(behaviours[0].closed[0], 1);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      TEST(lists_of_known_names_are_taken),
      TEST(other_lists_are_refused_with_the_name_that_is_wrong),
      TEST(each_peer_gets_the_first_transport_that_reaches_it),
      TEST(a_transport_is_told_whom_others_have_linked),
      TEST(links_that_are_not_there_yet_are_known),
      TEST(what_nobody_needs_is_not_kept_open),
      TEST(names_restrict_the_choice_and_their_order_says_nothing),
      TEST(a_transport_that_cannot_be_opened_is_passed_over),
      TEST(a_pair_without_a_link_stops_all_ranks_with_the_reasons),
      TEST(one_lonely_rank_is_named),
      TEST(what_a_transport_says_of_those_it_misses_is_told),
      TEST(a_rank_with_too_few_file_descriptors_is_named_before_it_runs_out),
      TEST(a_bootstrap_that_fails_is_an_error),
      TEST(a_rank_alone_opens_nothing),
      TEST(all_open_transports_are_driven_and_heard),
      TEST(a_sleep_ends_for_every_transport_that_can_wake_it),
      TEST(memory_comes_from_a_transport_while_it_has_some),
      TEST(what_somebody_reads_stays_after_the_end_until_nobody_does),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
