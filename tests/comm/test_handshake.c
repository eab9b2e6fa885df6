/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Ranks that lie while a communicator is made: what they say is judged, and all
 * ranks come to the same verdict. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "libcomm/base/error.h"
#include "libcomm/base/status.h"
#include "libcomm/base/text.h"
#include "libcomm/comm/handshake.h"
#include "libcomm/transport/links.h"
#include "tests/support/forked.h"
#include "tests/support/unit_tests.h"

enum { LIAR = 1 };

/* The bootstrap of the rank that lies: what it says of one size has another number
 * in it, the `times`-th time. */
typedef struct liar {
  lcomm_bootstrap boot;
  size_t size, offset;
  int32_t number;
  int times;
  int rank;         /* that lies */
  bool sees_nobody; /* it also says that it reaches no other rank */
  lcomm_progress_mode progress;
} liar;

static int lie(void *context, const void *send, void *receive, size_t size) {
  liar *it = context;
  uint8_t *bytes = malloc(size + 1);
  memcpy(bytes, send, size);
  if (size == it->size && it->times-- == 1) {
    memcpy(bytes + it->offset, &it->number, sizeof(it->number));
  }
  if (it->sees_nobody && size == sizeof(lcomm_links_uniform)) {
    memcpy(bytes, &(lcomm_links_uniform){.value = 0, .uniform = 1}, size);
  }
  int broken = it->boot.allgather(it->boot.context, bytes, receive, size);
  free(bytes);
  return broken;
}

/* A communicator of three ranks, one of which lies so. */
static void make(forked *self, liar it, lcomm_status expected, const char *words) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  lcomm_comm *comm = NULL;
  lcomm_bootstrap boot = self->boot;
  config.transport = "shm";
  config.progress = it.progress;
  it.boot = self->boot;
  if (self->rank == it.rank) {
    boot.context = &it;
    boot.allgather = lie;
  }
  lcomm_status status = lcomm_create(&boot, &config, &comm);
  const char *sentence = lcomm_error_thread_text();
  forked_require(self, status == expected, "%d (%s): %s", (int)status, lcomm_status_name(status),
                 sentence);
  forked_require(self, strstr(sentence, words) != NULL, "'%s' is not in: %s", words, sentence);
  forked_require(self, !comm, "a communicator was made");
}

static const int32_t no_status[] = {1, 77, -14, -1000, INT32_MAX, INT32_MIN};

static void a_number_in_a_greeting_that_is_no_status_is_a_wire_error_everywhere(forked *self) {
  for (size_t i = 0; i < sizeof(no_status) / sizeof(no_status[0]); i++) {
    make(self,
         (liar){.rank = LIAR,
                .size = sizeof(lcomm_handshake_brief),
                .offset = offsetof(lcomm_handshake_brief, status),
                .number = no_status[i],
                .times = 1},
         LCOMM_ERR_WIRE, "rank 1 (host");
  }
  make(self,
       (liar){.rank = LIAR,
              .size = sizeof(lcomm_handshake_brief),
              .offset = offsetof(lcomm_handshake_brief, status),
              .number = LCOMM_ERR_POLICY,
              .times = 1},
       LCOMM_ERR_POLICY, "rank ");
}

/* Only with a progress thread something can fail after the links. */
static void a_number_in_the_agreement_that_is_no_status_is_a_wire_error_everywhere(forked *self) {
  for (size_t i = 0; i < sizeof(no_status) / sizeof(no_status[0]); i++) {
    make(self,
         (liar){.rank = LIAR,
                .size = sizeof(int32_t),
                .number = no_status[i],
                .times = 1,
                .progress = LCOMM_PROGRESS_THREAD},
         LCOMM_ERR_WIRE, "rank 1 (host");
  }
}

/* Who misses which link is asked where somebody misses one. */
static void a_link_to_no_peer_is_a_wire_error_everywhere(forked *self) {
  static const int32_t no_peer[] = {-2, 3, 0, 1000, INT32_MIN, INT32_MAX};
  for (size_t i = 0; i < sizeof(no_peer) / sizeof(no_peer[0]); i++) {
    make(self,
         (liar){.size = sizeof(lcomm_links_answer),
                .number = no_peer[i],
                .times = 1,
                .sees_nobody = true},
         LCOMM_ERR_WIRE, "rank 0 (host");
  }
}

/* Policies that differ are told in words, although only their hashes travel at first. */
static void texts_travel_where_they_differ(forked *self) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  lcomm_comm *comm = NULL;
  config.transport = "shm";
  config.policy = self->rank == 2 ? "net=bf16" : "net=int8";
  lcomm_status status = lcomm_create(&self->boot, &config, &comm);
  const char *sentence = lcomm_error_thread_text();
  forked_require(self, status == LCOMM_ERR_MISMATCH, "status %d", (int)status);
  forked_require(self,
                 strstr(sentence, "the policy of rank 0 is \"net=int8") &&
                     strstr(sentence, "that of rank 2 is \"net=bf16"),
                 "%s", sentence);
}

/* What goes through the bootstrap while a communicator of this size is made. */
typedef struct counted {
  lcomm_bootstrap boot;
  int times;
  size_t bytes;
} counted;

static int count(void *context, const void *send, void *receive, size_t size) {
  counted *it = context;
  it->times++;
  it->bytes += size;
  return it->boot.allgather(it->boot.context, send, receive, size);
}

static void equal_ranks_of_a_host_make_few_short_allgathers(forked *self) {
  enum { TIMES = 3, BYTES = 700 };
  counted it = {.boot = self->boot};
  lcomm_bootstrap boot = self->boot;
  lcomm_config config = LCOMM_CONFIG_INIT;
  lcomm_comm *comm = NULL;
  config.policy = "net=int8";
  boot.context = &it;
  boot.allgather = count;
  lcomm_status status = lcomm_create(&boot, &config, &comm);
  forked_require(self, status == LCOMM_OK, "%s", lcomm_error_thread_text());
  forked_require(self, it.times <= TIMES && it.bytes <= BYTES, "%d allgathers of %zu bytes",
                 it.times, it.bytes);
  forked_require(self, lcomm_destroy(comm) == LCOMM_OK, "destroy");
}

static void only_statuses_are_heard(void **state) {
  char text[LCOMM_STATUS_TEXT_MAX];
  (void)state;
  for (int32_t number = -100; number <= 100; number++) {
    bool known = strcmp(lcomm_status_name((lcomm_status)number), "LCOMM_ERR_UNKNOWN") != 0;
    lcomm_status heard = lcomm_status_received(number, text);
    assert_int_equal(heard, known ? number : LCOMM_ERR_WIRE);
    assert_int_equal(lcomm_status_received(number, NULL), heard);
    assert_true(known ? strcmp(text, lcomm_status_string(heard)) == 0
                      : strstr(text, "no status") != NULL);
  }
  assert_int_equal(lcomm_status_received(INT32_MIN, text), LCOMM_ERR_WIRE);
  assert_int_equal(lcomm_status_received(INT32_MAX, text), LCOMM_ERR_WIRE);
}

static void a_peers_text_has_an_end_and_no_control_characters(void **state) {
  char text[8] = "a\x1b[1m\nb", whole[4] = {'a', 'b', 'c', 'd'}, utf8[] = "\xc3\xbc\x7f";
  (void)state;
  lcomm_text_sanitize(text, sizeof(text));
  assert_string_equal(text, "a?[1m b");
  lcomm_text_sanitize(whole, sizeof(whole));
  assert_string_equal(whole, "abc");
  lcomm_text_sanitize(utf8, sizeof(utf8));
  assert_string_equal(utf8, "\xc3\xbc?");
  memcpy(text, "x\0yyyyy", sizeof(text));
  lcomm_text_sanitize(text, sizeof(text));
  assert_memory_equal(text, "x\0\0\0\0\0\0\0", sizeof(text));
}

static const struct CMUnitTest tests[] = {
    FORKED_TEST(a_number_in_a_greeting_that_is_no_status_is_a_wire_error_everywhere, 3),
    FORKED_TEST(a_number_in_the_agreement_that_is_no_status_is_a_wire_error_everywhere, 3),
    FORKED_TEST(a_link_to_no_peer_is_a_wire_error_everywhere, 3),
    FORKED_TEST(texts_travel_where_they_differ, 3),
    FORKED_TEST(equal_ranks_of_a_host_make_few_short_allgathers, 2, 4),
    cmocka_unit_test(only_statuses_are_heard),
    cmocka_unit_test(a_peers_text_has_an_end_and_no_control_characters),
};
RUN_TESTS(tests)
