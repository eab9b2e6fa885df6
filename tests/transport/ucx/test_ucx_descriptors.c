/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* UCX ends the process where it finds no file descriptor: it must not get there. */

#include "libcomm/transport/links.h"
#include "tests/support/few_files.h"
#include "tests/support/unit_tests.h"
#include "tests/transport/ucx/test_ucx.h"

static int files_left;

/* Rank 1 may open few files. All ranks get links, or the same sentence about it. */
static void open_with_few_files(forked *self) {
  lcomm_why why = {.text = ""};
  lcomm_links links;
  lcomm_transport_setup setup = setup_of(self, LIMIT_S);
  struct rlimit usual;
  getrlimit(RLIMIT_NOFILE, &usual);
  forked_require(self, self->rank != 1 || leave_files(files_left, false), "setrlimit");
  lcomm_status status = lcomm_links_open(&setup, "ucx", &links, &why);
  setrlimit(RLIMIT_NOFILE, &usual); /* leak checkers open files when the process ends */
  if (status == LCOMM_OK) {
    forked_barrier(self);
    lcomm_links_close(&links, true);
    return;
  }
  forked_require(self, status == LCOMM_ERR_SYSTEM, "status %d: %s", status, why.text);
  forked_require(self, strncmp(why.text, "rank 1 ", 7) == 0, "somebody else is named: %s",
                 why.text);
  forked_require(self, strstr(why.text, "`ulimit -n ") != NULL, "no number: %s", why.text);
}

static void few_files_are_a_sentence_on_all_ranks(void **state) {
  (void)state;
  skip_without_ucx();
  for (files_left = 0; files_left < 64; files_left += files_left < 24 ? 3 : 8) {
    forked_run(4, open_with_few_files);
  }
}

/* As many as are asked for, on all ranks, which connect at the same time. */
static void open_with_just_enough(forked *self) {
  lcomm_why why = {.text = ""};
  lcomm_links links;
  lcomm_transport_setup setup = setup_of(self, LIMIT_S);
  int needed = lcomm_ucx_descriptors(&setup) + 4; /* and those that a communicator has besides */
  forked_require(self, leave_files(needed, true), "setrlimit");
  lcomm_status status = lcomm_links_open(&setup, "ucx", &links, &why);
  forked_require(self, status == LCOMM_OK, "%d files are not enough: %s", needed, why.text);
  forked_barrier(self);
  lcomm_links_close(&links, true);
}

static void as_many_files_as_are_asked_for_are_enough(void **state) {
  (void)state;
  skip_without_ucx();
  for (int ranks = 2; ranks <= 8; ranks += 3) {
    forked_run(ranks, open_with_just_enough);
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(few_files_are_a_sentence_on_all_ranks),
    cmocka_unit_test(as_many_files_as_are_asked_for_are_enough),
};
RUN_TESTS(tests)
