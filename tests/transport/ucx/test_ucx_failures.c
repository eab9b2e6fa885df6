/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/transport/links.h"
#include "libcomm/transport/ucx/ucx_addresses.h"
#include "tests/support/unit_tests.h"
#include "tests/transport/ucx/test_ucx.h"

/* ------------------------------------------------------------ a peer that dies */

/* Messages with the dead end at once, messages between the living go on. */
static void go_on_without(party *p, int dead) {
  lcomm_transfer transfer, other;
  unsigned char byte = (unsigned char)p->self->rank, got = 255;
  int alive = 1 - p->self->rank;
  expect_failure(p, p->v->send(p->t, dead, 1, &byte, 1, &transfer), "rank 2 (host here)", "broke");
  expect_failure(p, p->v->receive(p->t, dead, 1, &byte, 1, &transfer), "rank 2 (host here)",
                 "broke");
  bool over = true;
  lcomm_status status = p->v->test(p->t, &transfer, &over, NULL);
  forked_require(p->self, status == LCOMM_ERR_TRANSPORT && !over, "a failed message was tested");
  p->v->cancel(p->t, &transfer);
  p->v->control.send(p->t, dead, p->self->shared);
  receive_from(p, alive, 5, &got, 1, &other);
  send_to(p, alive, 5, &byte, 1, &transfer);
  expect_end(p, &other, 1);
  expect_end(p, &transfer, 1);
  forked_require(p->self, got == alive, "%d from %d", got, alive);
}

static void close_in_time(party *p) {
  double before_s = lcomm_clock_s();
  p->v->close(p->t, false);
  double took_s = lcomm_clock_s() - before_s;
  forked_require(p->self, took_s < LIMIT_S / 4, "close took %.1f s", took_s);
}

static void killed_peer_is_named_and_the_others_go_on(forked *self) {
  party p = open_party(self);
  lcomm_transfer small, large, sent;
  size_t size = 32 << 20;
  unsigned char *bytes = calloc(1, size), *out = calloc(1, size);
  forked_barrier(self);
  if (self->rank == 2) {
    forked_die();
  }
  receive_from(&p, 2, 1, bytes, 100, &small);
  receive_from(&p, 2, 2, bytes + 100, size - 100, &large);
  lcomm_status status = p.v->send(p.t, 2, 3, out, size, &sent);
  expect_failure(&p, finish(&p, &small, NULL), "rank 2 (host here)", "broke");
  expect_failure(&p, finish(&p, &large, NULL), "rank 2 (host here)", "broke");
  if (status == LCOMM_OK) {
    expect_failure(&p, finish(&p, &sent, NULL), "rank 2 (host here)", "broke");
  }
  go_on_without(&p, 2);
  forked_barrier(self);
  close_in_time(&p);
  free(bytes);
  free(out);
}

/* Dies when a part of its message is with the receiver. */
static void peer_that_dies_in_the_middle_of_a_message_is_named(forked *self) {
  party p = open_party(self);
  lcomm_transfer transfer;
  size_t size = 64 << 20;
  unsigned char *bytes = malloc(size);
  memset(bytes, self->rank == 1, size);
  if (self->rank == 1) {
    send_to(&p, 0, 1, bytes, size, &transfer);
    while (self->shared[0] == 0) {
      sleep_for(1e-3);
    }
    forked_die();
  }
  receive_from(&p, 1, 1, bytes, size, &transfer);
  while (bytes[0] == 0) {
    p.v->progress(p.t);
  }
  self->shared[0] = 1;
  lcomm_status status = finish(&p, &transfer, NULL);
  bool whole = bytes[size - 1] != 0; /* sockets may have held all of it */
  if (!whole || status != LCOMM_OK) {
    expect_failure(&p, status, "rank 1 (host here)", "broke");
  }
  close_in_time(&p);
  free(bytes);
}

/* The last message of a peer lies here when the peer leaves, and is asked for later. */
static void last_message_of_a_peer_that_left_is_received(forked *self) {
  party p = open_party(self);
  lcomm_transfer transfer;
  unsigned char byte = 7;
  if (self->rank == 0) {
    send_to(&p, 1, 1, &byte, 1, &transfer);
    expect_end(&p, &transfer, 1);
    p.v->close(p.t, true);
    return;
  }
  const lcomm_ucx_peer *left = &((lcomm_ucx_transport *)p.t)->peers[0];
  double deadline_s = lcomm_clock_s() + LIMIT_S;
  while (left->failed == UCS_OK) {
    p.v->progress(p.t);
    forked_require(self, lcomm_clock_s() < deadline_s, "its end is not noticed");
  }
  byte = 0;
  receive_from(&p, 0, 1, &byte, 1, &transfer);
  expect_end(&p, &transfer, 1);
  forked_require(self, byte == 7, "%d came", byte);
  lcomm_status status = p.v->receive(p.t, 0, 1, &byte, 1, &transfer);
  expect_failure(&p, status, "rank 0 (host here)", "broke");
  close_in_time(&p);
}

/* Close with messages of all kinds in flight, towards peers that do nothing. */
static void close_ends_whatever_is_under_way(forked *self) {
  enum { MANY = 40 };
  party p = open_party(self);
  lcomm_transfer transfers[2 * MANY];
  size_t size = 2 << 20;
  unsigned char *out = calloc(1, size), *into = calloc(MANY, size);
  for (int i = 0; i < MANY; i++) {
    receive_from(&p, 1 - self->rank, (uint32_t)i, into + (size_t)i * size, size, &transfers[2 * i]);
    send_to(&p, 1 - self->rank, (uint32_t)i, out, size, &transfers[2 * i + 1]);
  }
  for (int i = 0; i < 50; i++) {
    p.v->progress(p.t);
  }
  forked_barrier(self);
  close_in_time(&p);
  memset(into, 1, MANY * size);
  free(out);
  free(into);
}

/* ------------------------------------------------------- a link that is none */

/* Take part in the bootstrap and give a good address, but never answer. */
static void keep_silent(forked *self) {
  lcomm_why why;
  lcomm_ucx_interfaces none = {0}, all_interfaces[2];
  lcomm_ucx_place place;
  uint8_t offer[LCOMM_UCX_OFFER_SIZE] = {0}, offers[2 * LCOMM_UCX_OFFER_SIZE];
  lcomm_links_uniform reached = {.value = 1, .uniform = 1}, all_reached[2];
  ucp_worker_attr_t own = {.field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS};
  bool works = lcomm_ucx_load(&why) == LCOMM_OK &&
               lcomm_ucx_place_open("", &place, &why) == LCOMM_OK &&
               lcomm_ucx.ucp_worker_query(place.worker, &own) == UCS_OK;
  forked_require(self, works, "%s", why.text);
  forked_require(self, own.address_length <= lcomm_ucx_short_address, "the address is long");
  lcomm_ucx_label_pack(own.address, own.address_length, offer);
  memcpy(offer + LCOMM_UCX_LABEL_SIZE, own.address, own.address_length);
  self->boot.allgather(self->boot.context, &none, all_interfaces, sizeof(none));
  self->boot.allgather(self->boot.context, offer, offers, sizeof(offer));
  self->boot.allgather(self->boot.context, &reached, all_reached, sizeof(reached));
  lcomm_ucx.ucp_worker_release_address(place.worker, own.address);
  lcomm_ucx_place_close(&place);
}

static void peer_that_does_not_answer_is_found_at_open(forked *self) {
  lcomm_why why = {.text = ""};
  lcomm_transport *t = NULL;
  lcomm_transport_setup setup = setup_of(self, 1.5);
  if (self->rank == 1) {
    keep_silent(self);
    return;
  }
  double before_s = lcomm_clock_s();
  lcomm_status status = lcomm_transport_ucx.open(&setup, &t, &why);
  double took_s = lcomm_clock_s() - before_s;
  forked_require(self, status == LCOMM_ERR_TRANSPORT, "status %d", (int)status);
  forked_require(self, strstr(why.text, "rank 1 (host here): no link over tcp/") != NULL, "'%s'",
                 why.text);
  forked_require(self, strstr(why.text, "LCOMM_UCX_NET_DEVICES") != NULL, "'%s'", why.text);
  forked_require(self, took_s < LIMIT_S / 2, "it took %.1f s", took_s);
}

/* ------------------------------------------------ a bootstrap that damages bytes */

/* The allgathers of an open: interfaces, labels with short addresses, long addresses where there
 * are some, who was reached. */
enum { LABELS = 1, ADDRESSES = 2 };

static lcomm_bootstrap honest;
static int gathers, damaged;
static size_t place; /* SIZE_MAX: the size in the label, else a byte */

/* Of every rank's part in one allgather: a size that is too small, or a byte. */
static int damaging_allgather(void *context, const void *send, void *receive, size_t size) {
  int status = honest.allgather(context, send, receive, size);
  for (int rank = 0; gathers == damaged && rank < honest.world_size; rank++) {
    unsigned char *part = (unsigned char *)receive + (size_t)rank * size;
    if (place == SIZE_MAX) {
      memcpy(part, (const unsigned char[4]){1, 0, 0, 0}, 4);
    } else {
      part[place] ^= 0x40;
    }
  }
  gathers++;
  return status;
}

/* It cannot be opened, with these words. */
static void require_refused(forked *self, lcomm_status expected, const char *words) {
  lcomm_why why;
  lcomm_transport *t = NULL;
  lcomm_status status = try_open(self, &t, &why);
  forked_require(self, status == expected, "status %d", (int)status);
  forked_require(self, strstr(why.text, words) != NULL, "'%s'", why.text);
}

static void damaged_address_is_no_address(forked *self) {
  static const struct {
    int damaged;
    size_t place, short_address;
  } cases[] = {{LABELS, SIZE_MAX, LCOMM_UCX_OFFER_SIZE - LCOMM_UCX_LABEL_SIZE},
               {LABELS, LCOMM_UCX_LABEL_SIZE + 3, LCOMM_UCX_OFFER_SIZE - LCOMM_UCX_LABEL_SIZE},
               {LABELS, SIZE_MAX, 0},
               {ADDRESSES, 3, 0}};
  honest = self->boot;
  self->boot.allgather = damaging_allgather;
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    gathers = 0;
    damaged = cases[i].damaged;
    place = cases[i].place;
    lcomm_ucx_short_address = cases[i].short_address;
    require_refused(self, LCOMM_ERR_TRANSPORT, "a damaged one came");
  }
}

static void long_addresses_are_exchanged_by_themselves(forked *self) {
  lcomm_why why;
  lcomm_transport *t = NULL;
  lcomm_ucx_short_address = 0;
  lcomm_status status = try_open(self, &t, &why);
  forked_require(self, status == LCOMM_OK, "%s", why.text);
  forked_require(self, lcomm_transport_ucx.reaches(t, 1 - self->rank), "it is not reached");
  forked_barrier(self);
  lcomm_transport_ucx.close(t, true);
}

/* -------------------------------------------------------- UCX is not there */

static void missing_library_is_said(forked *self) {
  lcomm_ucx_library = "libnothing.so.0";
  require_refused(self, LCOMM_ERR_UNSUPPORTED, "libnothing.so.0 cannot be loaded: ");
  forked_require(self, !lcomm_ucx_version(), "it has a version");
}

/* Not the right library, which has none of the functions. */
static void library_without_the_functions_is_said(forked *self) {
  lcomm_ucx_library = "libm.so.6";
  require_refused(self, LCOMM_ERR_UNSUPPORTED, "has no function ucp_");
}

static void rank_without_the_library_does_not_hold_up_the_others(forked *self) {
  lcomm_why why;
  lcomm_transport *t = NULL;
  if (self->rank == 1) {
    lcomm_ucx_library = "libnothing.so.0";
  }
  lcomm_status status = try_open(self, &t, &why);
  if (self->rank == 1) {
    forked_require(self, status == LCOMM_ERR_UNSUPPORTED, "status %d", (int)status);
    return;
  }
  forked_require(self, status == LCOMM_OK, "%s", why.text);
  for (int peer = 0; peer < 3; peer++) {
    forked_require(self, lcomm_transport_ucx.reaches(t, peer) == (peer == 2 - self->rank),
                   "reaches %d", peer);
  }
  lcomm_transport_ucx.close(t, true);
}

static const struct CMUnitTest tests[] = {
    UCX_TEST_DYING(killed_peer_is_named_and_the_others_go_on, 3, 2),
    UCX_TEST_DYING(peer_that_dies_in_the_middle_of_a_message_is_named, 2, 1),
    UCX_TEST(last_message_of_a_peer_that_left_is_received, 2),
    UCX_TEST(close_ends_whatever_is_under_way, 2),
    UCX_TEST(peer_that_does_not_answer_is_found_at_open, 2),
    UCX_TEST(damaged_address_is_no_address, 2),
    UCX_TEST(long_addresses_are_exchanged_by_themselves, 2),
    FORKED_TEST(missing_library_is_said, 2),
    FORKED_TEST(library_without_the_functions_is_said, 1),
    UCX_TEST(rank_without_the_library_does_not_hold_up_the_others, 3),
};
RUN_TESTS(tests)
