/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Messages whose length or payload is wrong, although their header is right: the receiver names the
 * sender and what is wrong, both ranks get that sentence, and nobody hangs. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "codecs/wire.h"
#include "libcomm/engine/exec.h"
#include "tests/support/forked_comm.h"
#include "tests/support/unit_tests.h"

enum { SHORT = 1000, LONG = 200000, SIZE_MAX_BYTES = 1 << 20, SPOILT = 32 };

/* What rank 0 does to one of its messages. */
typedef struct change {
  const char *policy;
  uint64_t count;
  int number;         /* of the message to be changed, from 1 */
  int longer;         /* bytes that it has more */
  bool spoils;        /* the bytes behind a header are overwritten */
  const char *expect; /* in the sentence */
} change;

static const change changes[] = {
    {"net=int8 min=1", SHORT, 1, 1, false, "its length is not what its header says"},
    {"net=int8 min=1", SHORT, 1, -1, false, "its length is not what its header says"},
    {"net=int8 min=1", LONG, 1, 1, false, "a long payload does not follow its header"},
    {"net=int8 min=1", LONG, 2, -1, false, "the length of the payload is not what its header says"},
    {"net=int8 min=1 check=xxhash", SHORT, 1, 0, true, "wrong checksum"},
    {"net=topk:0.1 min=1", SHORT, 1, 0, true, "not a top-k payload"},
};

static const change *of_this_run;
static lcomm_transport_table table;
static const lcomm_transport_table *true_table;
static int sent;
static float values[LONG];

static lcomm_status send_changed(lcomm_transport *transport, int peer, uint32_t tag,
                                 const void *bytes, size_t size, lcomm_transfer *transfer) {
  static uint8_t changed[SIZE_MAX_BYTES];
  if (++sent != of_this_run->number) {
    return true_table->send(transport, peer, tag, bytes, size, transfer);
  }
  memcpy(changed, bytes, size);
  if (of_this_run->spoils) {
    memset(changed + LCOMM_WIRE_HEADER_SIZE, 0xff, SPOILT);
  }
  size = (size_t)((ptrdiff_t)size + of_this_run->longer);
  return true_table->send(transport, peer, tag, changed, size, transfer);
}

/* Payloads are sent, not read where they lie, and each message by a step. */
static void replace_table(const forked *self, lcomm_comm *comm) {
  lcomm_transport *link = lcomm_comm_link(comm, 1 - self->rank);
  true_table = link->table;
  table = *link->table;
  table.zero_copy = NULL;
  table.peek = NULL;
  table.send = self->rank == 0 ? send_changed : table.send;
  link->table = &table;
}

static void sum_with_a_wrong_message(forked *self) {
  lcomm_config config = forked_config(LCOMM_PROGRESS_CALLS);
  config.policy = of_this_run->policy;
  lcomm_comm *comm = forked_create(self, &config);
  replace_table(self, comm);
  for (uint64_t i = 0; i < of_this_run->count; i++) {
    values[i] = (float)(i % 100);
  }
  lcomm_status status =
      lcomm_allreduce(comm, values, values, of_this_run->count, LCOMM_FLOAT32, LCOMM_SUM);
  if (status == LCOMM_OK) { /* rank 0 may have all that it needs */
    status = lcomm_barrier(comm);
  }
  const char *said = lcomm_last_error(comm);
  forked_require(self, status == LCOMM_ERR_WIRE, "%s with `%s` gives %s: %s", of_this_run->policy,
                 of_this_run->expect, lcomm_status_name(status), said);
  forked_require(self, strstr(said, of_this_run->expect) && strstr(said, "from rank 0"),
                 "not `%s` of rank 0, but: %s", of_this_run->expect, said);
  lcomm_destroy(comm);
}

static void wrong_messages_are_refused_with_their_sender(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
    of_this_run = &changes[i];
    forked_run(2, sum_with_a_wrong_message);
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(wrong_messages_are_refused_with_their_sender),
};
RUN_TESTS(tests)
