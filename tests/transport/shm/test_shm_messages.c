/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Messages through shared memory arrive, whole and in order, each way. */

#include "tests/support/unit_tests.h"
#include "tests/transport/shm/test_shm.h"

enum { TAG = 5 };

/* Both ranks send one message of every size, all with one tag. */
typedef struct batch {
  const way *way;
  unsigned char *out[SIZES], *in[SIZES];
  lcomm_transfer sent[SIZES], received[SIZES];
} batch;

static batch *batch_send(const party *p, const way *w) {
  batch *b = calloc(1, sizeof *b);
  forked_require(p->self, b != NULL, "no memory");
  b->way = w;
  p->v->progress(p->t);
  lcomm_shm_set_ways(p->t, &w->ways);
  for (uint32_t i = 0; i < SIZES; i++) {
    b->out[i] = message_get(p, w, all_sizes[i]);
    fill(b->out[i], all_sizes[i], i);
    send_to(p, 1 - p->self->rank, TAG, b->out[i], all_sizes[i], &b->sent[i]);
  }
  return b;
}

static void batch_finish(const party *p, batch *b) {
  for (uint32_t i = 0; i < SIZES; i++) {
    finish(p, &b->sent[i]);
    message_free(p, b->way, b->out[i]);
    free(b->in[i]);
  }
  free(b);
  together_in_progress(p);
}

static void post(const party *p, batch *b) {
  for (int i = 0; i < SIZES; i++) {
    b->in[i] = malloc(all_sizes[i] + 1);
    receive_from(p, 1 - p->self->rank, TAG, b->in[i], all_sizes[i], &b->received[i]);
  }
}

static void require_batch(const party *p, batch *b) {
  for (uint32_t i = 0; i < SIZES; i++) {
    size_t size = 77;
    check(p, await(p, &b->received[i], &size), b->way->name);
    forked_require(p->self, size == all_sizes[i], "%s: %zu bytes for %zu", b->way->name, size,
                   all_sizes[i]);
    require_bytes(p, b->in[i], size, i, b->way->name);
  }
}

static void messages_that_were_asked_for_arrive_in_order(forked *self) {
  party p = open_party(self);
  for (int w = 0; w < WAYS; w++) {
    batch asked = {.way = &all_ways[w]};
    post(&p, &asked);
    together(self);
    batch *b = batch_send(&p, &all_ways[w]);
    memcpy(b->in, asked.in, sizeof(b->in));
    /* The transfers stay where they were posted. */
    for (uint32_t i = 0; i < SIZES; i++) {
      size_t size = 0;
      check(&p, await(&p, &asked.received[i], &size), b->way->name);
      forked_require(self, size == all_sizes[i], "%zu bytes for %zu", size, all_sizes[i]);
      require_bytes(&p, b->in[i], size, i, b->way->name);
    }
    batch_finish(&p, b);
  }
  close_party(&p);
}

static void messages_that_came_too_soon_arrive_in_order(forked *self) {
  party p = open_party(self);
  for (int w = 0; w < WAYS; w++) {
    batch *b = batch_send(&p, &all_ways[w]);
    progress_for(&p, 0.02);
    together(self);
    progress_for(&p, 0.01);
    post(&p, b);
    require_batch(&p, b);
    batch_finish(&p, b);
  }
  close_party(&p);
}

static void zcopy_one(const party *p, uint32_t i, const char *what) {
  lcomm_transfer zcopy;
  size_t size = 0;
  static unsigned char pieces[(3 << 20) + 64];
  check(p, p->v->zero_copy->receive(p->t, 1 - p->self->rank, TAG, all_sizes[i], &zcopy),
        "zero-copy receive");
  check(p, await(p, &zcopy, &size), what);
  forked_require(p->self, size == all_sizes[i], "%s: %zu bytes for %zu", what, size, all_sizes[i]);
  const unsigned char *view = p->v->zero_copy->map(p->t, &zcopy);
  if (view) {
    require_bytes(p, view, size, i, what);
  }
  for (size_t at = 0, step = 1; at < size; at += step, step = 3 * step + 1) {
    step = step < size - at ? step : size - at;
    check(p, p->v->zero_copy->get(p->t, &zcopy, at, step, pieces + at), what);
  }
  require_bytes(p, pieces, size, i, what);
  forked_require(p->self, p->v->zero_copy->get(p->t, &zcopy, size, 1, pieces) != LCOMM_OK,
                 "bytes behind the end were got");
  p->v->zero_copy->release(p->t, &zcopy);
}

static void zero_copy_messages_are_read_in_odd_pieces(forked *self) {
  party p = open_party(self);
  for (int w = 0; w < WAYS; w++) {
    batch *b = batch_send(&p, &all_ways[w]);
    if (w % 2 == 0) {
      together(self);
      progress_for(&p, 0.01);
    }
    for (uint32_t i = 0; i < SIZES; i++) {
      zcopy_one(&p, i, all_ways[w].name);
    }
    batch_finish(&p, b);
  }
  close_party(&p);
}

/* More than a ring holds, first all asked for, then from the last to the first. */
static void a_full_ring_only_delays(forked *self) {
  enum { MANY = 700 };
  static unsigned char out[MANY][5000], in[MANY][5000];
  static lcomm_transfer sent[MANY], received[MANY];
  party p = open_party(self);
  for (int w = 0; w < 6; w++) {
    lcomm_shm_set_ways(p.t, &all_ways[w].ways);
    for (uint32_t i = 0; i < MANY; i++) {
      size_t size = i % 2 == 0 ? 4500 + i % 500 : i;
      fill(out[i], size, i);
      send_to(&p, 1 - self->rank, i, out[i], size, &sent[i]);
    }
    for (uint32_t i = MANY; i-- > 0;) {
      receive_from(&p, 1 - self->rank, i, in[i], sizeof(in[i]), &received[i]);
    }
    for (uint32_t i = 0; i < MANY; i++) {
      size_t size = 0;
      check(&p, await(&p, &received[i], &size), all_ways[w].name);
      forked_require(self, size == (i % 2 == 0 ? 4500 + i % 500 : i), "message %u has %zu bytes", i,
                     size);
      require_bytes(&p, in[i], size, i, all_ways[w].name);
    }
    for (int i = 0; i < MANY; i++) {
      finish(&p, &sent[i]);
    }
    together_in_progress(&p);
  }
  close_party(&p);
}

/* The last message is asked for first, and the first one last. */
static void messages_are_received_in_any_order_of_tags(forked *self) {
  enum { MANY = 700 };
  static unsigned char out[MANY][5000], in[5000];
  static lcomm_transfer sent[MANY];
  party p = open_party(self);
  for (int w = 0; w < WAYS; w++) {
    lcomm_shm_set_ways(p.t, &all_ways[w].ways);
    for (uint32_t i = 0; i < MANY; i++) {
      fill(out[i], sizeof(out[i]), i);
      send_to(&p, 1 - self->rank, i, out[i], 4000 + i, &sent[i]);
    }
    for (uint32_t i = MANY; i-- > 0;) {
      lcomm_transfer received;
      receive_from(&p, 1 - self->rank, i, in, sizeof(in), &received);
      finish(&p, &received);
      require_bytes(&p, in, 4000 + i, i, all_ways[w].name);
    }
    for (int i = 0; i < MANY; i++) {
      finish(&p, &sent[i]);
    }
    together_in_progress(&p);
  }
  close_party(&p);
}

/* More long messages than there are slots. */
static void full_slots_only_delay(forked *self) {
  enum { MANY = LCOMM_SHM_SLOTS + 500, SIZE = 5000 };
  static unsigned char out[SIZE], in[SIZE];
  static lcomm_transfer sent[MANY];
  party p = open_party(self);
  fill(out, SIZE, 3);
  for (int w = 0; w < WAYS; w++) {
    lcomm_shm_set_ways(p.t, &all_ways[w].ways);
    for (uint32_t i = 0; self->rank == 0 && i < MANY; i++) {
      send_to(&p, 1, TAG, out, SIZE, &sent[i]);
    }
    for (int i = MANY - 1; self->rank == 0 && i >= 0; i--) {
      finish(&p, &sent[i]); /* the last one first, which has no slot yet */
    }
    for (int i = 0; self->rank == 1 && i < MANY; i++) {
      lcomm_transfer received;
      receive_from(&p, 0, TAG, in, SIZE, &received);
      finish(&p, &received);
      require_bytes(&p, in, SIZE, 3, all_ways[w].name);
    }
    together_in_progress(&p);
  }
  close_party(&p);
}

static void a_view_is_the_memory_of_the_sender(forked *self) {
  party p = open_party(self);
  lcomm_transfer transfer;
  enum { SIZE = 100000 };
  if (self->rank == 0) {
    unsigned char *memory = p.v->memory_get(p.t, SIZE);
    forked_require(self, memory && ((uintptr_t)memory & 4095) == 0, "memory is not aligned");
    for (int i = 0; i < SIZE; i++) {
      forked_require(self, memory[i] == 0, "memory is not zeroed");
    }
    send_to(&p, 1, TAG, memory, SIZE, &transfer);
    together(self);
    memory[SIZE - 1] = 200;
    together(self);
    finish(&p, &transfer);
    p.v->memory_free(memory);
  } else {
    check(&p, p.v->zero_copy->receive(p.t, 0, TAG, SIZE, &transfer), "zero-copy receive");
    finish(&p, &transfer);
    const unsigned char *view = p.v->zero_copy->map(p.t, &transfer);
    forked_require(self, view && view[SIZE - 1] == 0, "there is no view");
    together(self);
    together(self);
    forked_require(self, view[SIZE - 1] == 200, "the view is not the sender's memory");
    p.v->zero_copy->release(p.t, &transfer);
  }
  close_party(&p);
}

/* Nothing is over, and no copy is used again, while somebody looks at it. */
static void a_long_message_is_over_when_it_is_given_back(forked *self) {
  enum { SIZE = 100000 };
  static const int those[] = {0, 1, 2, 4, 6}; /* not the streams: there is nothing to look at */
  party p = open_party(self);
  for (size_t k = 0; k < sizeof(those) / sizeof(those[0]); k++) {
    const way *w = &all_ways[those[k]];
    lcomm_transfer transfer;
    bool over = false;
    lcomm_shm_set_ways(p.t, &w->ways);
    if (self->rank == 0) {
      unsigned char *memory = message_get(&p, w, SIZE);
      send_to(&p, 1, TAG, memory, SIZE, &transfer);
      together(self);
      p.v->progress(p.t);
      check(&p, p.v->test(p.t, &transfer, &over, NULL), "test");
      forked_require(self, !over, "%s: over before it was released", w->name);
      together(self);
      finish(&p, &transfer);
      message_free(&p, w, memory);
    } else {
      check(&p, p.v->zero_copy->receive(p.t, 0, TAG, SIZE, &transfer), "zero-copy receive");
      finish(&p, &transfer);
      together(self);
      together(self);
      p.v->zero_copy->release(p.t, &transfer);
    }
    together_in_progress(&p);
  }
  close_party(&p);
}

/* Also where the peer may read it, which takes longer. */
static void private_messages_up_to_a_mebibyte_can_be_viewed(forked *self) {
  enum { LARGE = 1 << 20 };
  static unsigned char bytes[LARGE];
  party p = open_party(self);
  for (size_t size = 8192; size <= LARGE; size *= 2) {
    lcomm_transfer transfer;
    if (self->rank == 0) {
      fill(bytes, size, 1);
      send_to(&p, 1, TAG, bytes, size, &transfer);
      finish(&p, &transfer);
      continue;
    }
    check(&p, p.v->zero_copy->receive(p.t, 0, TAG, size, &transfer), "zero-copy receive");
    finish(&p, &transfer);
    const unsigned char *view = p.v->zero_copy->map(p.t, &transfer);
    forked_require(self, view != NULL, "%zu bytes must be read", size);
    require_bytes(&p, view, size, 1, "a copy");
    p.v->zero_copy->release(p.t, &transfer);
  }
  close_party(&p);
}

/* The same bytes to two peers, again with others, and after a cancelled send of others. */
static void sends_of_the_same_bytes_share_a_copy(forked *self) {
  enum { LARGE = 1 << 20, ROUNDS = 5 };
  static unsigned char bytes[LARGE];
  party p = open_party(self);
  lcomm_transfer first, second, forgotten;
  for (uint32_t round = 0; round < ROUNDS; round++) {
    if (self->rank != 0) {
      together(self);
      receive_from(&p, 0, TAG, bytes, LARGE, &first);
      finish(&p, &first);
      require_bytes(&p, bytes, LARGE, round, "a shared copy");
      continue;
    }
    if (round == ROUNDS - 1) {
      fill(bytes, LARGE, round + 1);
      send_to(&p, 1, TAG + 1, bytes, LARGE, &forgotten);
      p.v->cancel(p.t, &forgotten);
    }
    fill(bytes, LARGE, round);
    send_to(&p, 1, TAG, bytes, LARGE, &first);
    send_to(&p, 2, TAG, bytes, LARGE, &second);
    size_t copied = lcomm_shm_of(p.t)->memory.bounce_size, copies = round < ROUNDS - 1 ? 1 : 2;
    forked_require(self, copied == copies * LARGE, "%zu bytes of copies", copied);
    together(self);
    finish(&p, &first);
    finish(&p, &second);
  }
  close_party(&p);
}

static const struct CMUnitTest tests[] = {
    FORKED_TEST(messages_that_were_asked_for_arrive_in_order, 2),
    FORKED_TEST(messages_that_came_too_soon_arrive_in_order, 2),
    FORKED_TEST(zero_copy_messages_are_read_in_odd_pieces, 2),
    FORKED_TEST(a_full_ring_only_delays, 2),
    FORKED_TEST(messages_are_received_in_any_order_of_tags, 2),
    FORKED_TEST(full_slots_only_delay, 2),
    FORKED_TEST(a_view_is_the_memory_of_the_sender, 2),
    FORKED_TEST(a_long_message_is_over_when_it_is_given_back, 2),
    FORKED_TEST(private_messages_up_to_a_mebibyte_can_be_viewed, 2),
    FORKED_TEST(sends_of_the_same_bytes_share_a_copy, 3),
};
RUN_TESTS(tests)
