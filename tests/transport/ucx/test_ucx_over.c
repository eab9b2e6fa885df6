/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* When a message that was sent is over. */

#include "tests/support/unit_tests.h"
#include "tests/transport/ucx/test_ucx.h"

enum { MESSAGES_MAX = 20000 };

/* Over without the receiver, which makes no call of UCX meanwhile? */
static bool ends_alone(const party *p, lcomm_transfer *transfer) {
  enum { LOOKS = 200 };
  bool over = false;
  for (int i = 0; i < LOOKS && !over; i++) {
    p->v->progress(p->t);
    lcomm_status status = p->v->test(p->t, transfer, &over, NULL);
    forked_require(p->self, status == LCOMM_OK, "test: %s", p->t->why);
    if (!over) {
      sleep_for(1e-4);
    }
  }
  return over;
}

/* Send until the socket is full, then sleep until all that was over has come. */
static void fill_and_sleep(const party *p, size_t size, unsigned char *came) {
  static lcomm_transfer transfer;
  int32_t count = 0;
  unsigned char *bytes = pattern(size, 1);
  send_to(p, 1, 0, bytes, size, &transfer);
  while (ends_alone(p, &transfer) && count < MESSAGES_MAX) {
    count++;
    send_to(p, 1, (uint32_t)count, bytes, size, &transfer);
  }
  forked_require(p->self, count < MESSAGES_MAX, "the socket takes everything");
  memcpy(p->self->shared, &count, sizeof(count));
  forked_barrier(p->self);
  while (*(volatile unsigned char *)came == 0) {
    sleep_for(1e-3); /* no call of UCX */
  }
  expect_end(p, &transfer, size);
  free(bytes);
}

static void take_all(const party *p, size_t size, unsigned char *came) {
  lcomm_transfer transfer;
  int32_t count = 0;
  unsigned char *into = malloc(size);
  forked_barrier(p->self);
  memcpy(&count, p->self->shared, sizeof(count));
  for (int32_t i = 0; i < count; i++) {
    receive_from(p, 0, (uint32_t)i, into, size, &transfer);
    expect_end(p, &transfer, size);
  }
  *came = 1;
  receive_from(p, 0, (uint32_t)count, into, size, &transfer);
  expect_end(p, &transfer, size);
  free(into);
}

static void message_that_is_over_needs_its_sender_no_more(forked *self) {
  static const size_t sizes[] = {1600, 8000, 30000};
  party p = open_party(self);
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
    unsigned char *came = self->shared + 100 + i;
    (self->rank == 0 ? fill_and_sleep : take_all)(&p, sizes[i], came);
    forked_barrier(self);
  }
  close_party(&p);
}

static const struct CMUnitTest tests[] = {
    UCX_TEST(message_that_is_over_needs_its_sender_no_more, 2),
};
RUN_TESTS(tests)
