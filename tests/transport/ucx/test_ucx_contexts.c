/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Contexts are shared by what is opened with the same settings, and by nothing else. */

#include <pthread.h>

#include "tests/support/process_counts.h"
#include "tests/support/unit_tests.h"
#include "tests/transport/ucx/test_ucx.h"

static lcomm_ucx_place open_place(forked *self, const char *devices) {
  lcomm_why why = {.text = ""};
  lcomm_ucx_place place = {0};
  bool works =
      lcomm_ucx_load(&why) == LCOMM_OK && lcomm_ucx_place_open(devices, &place, &why) == LCOMM_OK;
  forked_require(self, works, "%s", why.text);
  return place;
}

static void equal_settings_share_a_context(forked *self) {
  lcomm_ucx_place first = open_place(self, "lo"), second = open_place(self, "lo");
  forked_require(self, first.context == second.context, "there are two");
  forked_require(self, first.worker != second.worker, "there is one worker");
  lcomm_ucx_place_close(&first);
  lcomm_ucx_place third = open_place(self, "lo"); /* the second keeps it */
  forked_require(self, third.context == second.context, "there are two");
  lcomm_ucx_place_close(&second);
  lcomm_ucx_place_close(&third);
}

static void other_settings_have_another_context(forked *self) {
  lcomm_ucx_place loopback = open_place(self, "lo"), any = open_place(self, "");
  forked_require(self, loopback.context != any.context, "other devices share it");
  setenv("LCOMM_UCX_TCP_PORT_RANGE", "42100-42900", 1);
  lcomm_ucx_place ranged = open_place(self, "lo");
  forked_require(self, loopback.context != ranged.context, "other ports share it");
  setenv("UCX_TCP_PORT_RANGE", "43100-43900", 1); /* for MPI, not for us */
  lcomm_ucx_place again = open_place(self, "lo");
  forked_require(self, again.context == ranged.context, "what is set for MPI counts");
  lcomm_ucx_place_close(&again);
  lcomm_ucx_place_close(&ranged);
  lcomm_ucx_place_close(&any);
  lcomm_ucx_place_close(&loopback);
}

/* The parent's stays the parent's. */
static void forked_child_has_a_context_of_its_own(forked *self) {
  lcomm_ucx_place own = open_place(self, "lo");
  pid_t child = fork();
  if (child == 0) {
    lcomm_ucx_place place = open_place(self, "lo");
    bool apart = place.context != own.context;
    lcomm_ucx_place_close(&place);
    _exit(apart ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  forked_require(self, WIFEXITED(status) && WEXITSTATUS(status) == 0, "it has its parent's");
  lcomm_ucx_place_close(&own);
}

/* Of a transport that was given up, as it is for good. */
static lcomm_transport *volatile kept; /* read by nobody, but by who looks for leaks */

/* The end of one transport is not that of another, in whatever order. What was given up may be in
 * the middle of a message, which is read without it. */
static void transports_of_a_context_end_by_themselves(forked *self) {
  party first = open_party(self), second = open_party(self);
  lcomm_ucx_transport *a = (lcomm_ucx_transport *)first.t, *b = (lcomm_ucx_transport *)second.t;
  forked_require(self, a->place.context == b->place.context, "there are two contexts");
  if (self->rank == 0) {
    lcomm_ucx_give_up(a);
  }
  forked_barrier(self);
  lcomm_transfer sent, received;
  unsigned char out = (unsigned char)self->rank, in = 255;
  receive_from(&second, 1 - self->rank, 1, &in, 1, &received);
  send_to(&second, 1 - self->rank, 1, &out, 1, &sent);
  expect_end(&second, &received, 1);
  expect_end(&second, &sent, 1);
  kept = self->rank == 0 ? first.t : NULL;
  bool over = first.v->close(first.t, false);
  forked_require(self, over == (self->rank != 0), "rank %d: its memory is free: %d", self->rank,
                 over);
  close_party(&second);
}

static void nothing_is_left_when_all_are_closed(forked *self) {
  lcomm_ucx_place warm = open_place(self, "lo");
  lcomm_ucx_place_close(&warm);
  int files = count_files();
  for (int i = 0; i < 10; i++) {
    lcomm_ucx_place one = open_place(self, "lo"), other = open_place(self, "lo");
    lcomm_ucx_place_close(&one);
    lcomm_ucx_place_close(&other);
  }
  forked_require(self, count_files() <= files, "%d files, then %d", files, count_files());
}

static forked *party_of_threads;

static void *open_and_close(void *unused) {
  (void)unused;
  for (int i = 0; i < 10; i++) {
    lcomm_ucx_place place = open_place(party_of_threads, i % 2 == 0 ? "lo" : "");
    lcomm_ucx.ucp_worker_progress(place.worker);
    lcomm_ucx_place_close(&place);
  }
  return NULL;
}

static void threads_open_and_close_at_the_same_time(forked *self) {
  enum { THREADS = 4 };
  pthread_t threads[THREADS];
  party_of_threads = self;
  for (int i = 0; i < THREADS; i++) {
    forked_require(self, pthread_create(&threads[i], NULL, open_and_close, NULL) == 0, "no thread");
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
  }
}

static const struct CMUnitTest tests[] = {
    UCX_TEST(equal_settings_share_a_context, 1),
    UCX_TEST(other_settings_have_another_context, 1),
    UCX_TEST(forked_child_has_a_context_of_its_own, 1),
    UCX_TEST(transports_of_a_context_end_by_themselves, 2),
    UCX_TEST(nothing_is_left_when_all_are_closed, 1),
    UCX_TEST(threads_open_and_close_at_the_same_time, 1),
};
RUN_TESTS(tests)
