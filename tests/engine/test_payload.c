/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Where a payload is, and how that changes: what is allowed, and what each change does to the
 * memory of its slot and to the transfer of a zero-copy receive. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "libcomm/engine/payload.h"
#include "tests/support/unit_tests.h"

enum { COUNT = LCOMM_PAYLOAD_STATE_COUNT };

/* ------------------------------------------------- a link that counts calls */

static struct {
  lcomm_transport base;
  int requests, releases, cancels;
  lcomm_status answer;
} wire;

static lcomm_status request(lcomm_transport *transport, int peer, uint32_t tag, size_t size,
                            lcomm_transfer *transfer) {
  assert_ptr_equal(transport, &wire.base);
  transfer->opaque[0] = (uint64_t)peer << 32 | tag;
  transfer->opaque[1] = size;
  wire.requests++;
  return wire.answer;
}

static void release(lcomm_transport *transport, lcomm_transfer *transfer) {
  assert_ptr_equal(transport, &wire.base);
  assert_int_equal(transfer->opaque[1], 5000);
  wire.releases++;
}

static void cancel(lcomm_transport *transport, lcomm_transfer *transfer) {
  assert_ptr_equal(transport, &wire.base);
  assert_int_equal(transfer->opaque[0], UINT64_C(3) << 32 | 7);
  wire.cancels++;
}

static const lcomm_transport_zero_copy zero_copy = {.receive = request, .release = release};
static const lcomm_transport_table table = {.cancel = cancel, .zero_copy = &zero_copy};

static uint8_t memory[128], vector[64], theirs[64];

/* A slot of an operation that begins. */
static lcomm_slot_memory slot_with(unsigned traits) {
  memset(&wire, 0, sizeof(wire));
  wire.base.table = &table;
  lcomm_slot_memory slot = {.traits = traits | LCOMM_SLOT_RECEIVED, .readers = 2};
  if (traits & LCOMM_SLOT_MEMORY) {
    slot.own_wire = slot.own_payload = memory + 64;
  }
  lcomm_payload_reset(&slot, traits & LCOMM_SLOT_ALIAS ? vector : NULL);
  return slot;
}

static lcomm_slot_memory requested(unsigned traits, lcomm_payload_state what) {
  lcomm_slot_memory slot = slot_with(traits);
  lcomm_payload_posted(&slot);
  assert_int_equal(lcomm_payload_request(&slot, what, &wire.base, 3, 7, 5000), LCOMM_OK);
  assert_int_equal(slot.state, what);
  assert_true(lcomm_payload_is_zcopy(&slot));
  return slot;
}

/* ---------------------------------------------------------------- the rule */

static bool can(lcomm_payload_state from, lcomm_payload_state to) {
  return lcomm_payload_may_become(from, to);
}

static bool is_zcopy(lcomm_payload_state state) {
  return lcomm_payload_is_zcopy(&(lcomm_slot_memory){.state = state});
}

static void every_state_can_be_reached_and_none_follows_itself(void **state) {
  (void)state;
  bool reached[COUNT] = {true};
  for (int round = 0; round < COUNT; round++) {
    for (int from = 0; from < COUNT; from++) {
      for (int to = 0; to < COUNT; to++) {
        reached[to] |= reached[from] && can((lcomm_payload_state)from, (lcomm_payload_state)to);
      }
    }
  }
  for (int i = 0; i < COUNT; i++) {
    assert_true(reached[i]);
    assert_false(can((lcomm_payload_state)i, (lcomm_payload_state)i));
  }
}

/* Nothing is made or received twice in an operation. */
static void a_payload_begins_once(void **state) {
  (void)state;
  for (int from = 1; from < COUNT; from++) {
    assert_false(can((lcomm_payload_state)from, LCOMM_PAYLOAD_POSTED));
    assert_false(can((lcomm_payload_state)from, LCOMM_PAYLOAD_ENCODED));
  }
}

/* A transfer begins after the header has come, and ends in memory of the slot or empty. */
static void a_zero_copy_receive_is_requested_once_and_ends(void **state) {
  (void)state;
  for (int from = 0; from < COUNT; from++) {
    bool ends = false;
    for (int to = 0; to < COUNT; to++) {
      lcomm_payload_state a = (lcomm_payload_state)from, b = (lcomm_payload_state)to;
      if (can(a, b) && !is_zcopy(a) && is_zcopy(b)) {
        assert_int_equal(a, LCOMM_PAYLOAD_POSTED);
        assert_true(b == LCOMM_PAYLOAD_REQUESTED || b == LCOMM_PAYLOAD_HANDLE);
      }
      if (can(a, b) && is_zcopy(a) && !is_zcopy(b)) {
        assert_true(b == LCOMM_PAYLOAD_EMPTY || b == LCOMM_PAYLOAD_LOCAL);
      }
      ends |= b == LCOMM_PAYLOAD_EMPTY && can(a, b);
    }
    assert_true(ends == is_zcopy((lcomm_payload_state)from));
  }
}

/* Computations and messages take what is there, and nothing else. */
static void what_is_not_there_cannot_be_read_or_sent(void **state) {
  (void)state;
  static const lcomm_payload_state nowhere[] = {LCOMM_PAYLOAD_EMPTY, LCOMM_PAYLOAD_POSTED,
                                                LCOMM_PAYLOAD_REQUESTED, LCOMM_PAYLOAD_HANDLE};
  for (size_t i = 0; i < sizeof(nowhere) / sizeof *nowhere; i++) {
    lcomm_slot_memory slot = {.state = nowhere[i]};
    assert_false(lcomm_payload_is_readable(&slot));
    assert_false(lcomm_payload_is_complete(&slot));
    assert_false(lcomm_payload_is_on_device(&slot));
  }
  for (int i = 0; i < COUNT; i++) {
    lcomm_slot_memory slot = {.state = (lcomm_payload_state)i};
    assert_true(lcomm_payload_is_complete(&slot) || !lcomm_payload_is_readable(&slot));
  }
}

/* ---------------------------------------------------------- what they do */

static void a_slot_begins_at_its_memory_or_at_its_part_of_the_vector(void **state) {
  (void)state;
  lcomm_slot_memory own = slot_with(LCOMM_SLOT_MEMORY), alias = slot_with(LCOMM_SLOT_ALIAS),
                    none = slot_with(0);
  assert_true(own.wire == memory + 64 && own.payload == memory + 64);
  assert_true(alias.wire == vector && alias.payload == vector);
  assert_true(!none.wire && !none.payload);
  assert_true(own.readers_left == 2 && own.state == LCOMM_PAYLOAD_EMPTY);
}

static void a_payload_of_this_rank_is_made_by_its_encode_or_by_a_sum(void **state) {
  (void)state;
  lcomm_slot_memory slot = slot_with(LCOMM_SLOT_MEMORY);
  lcomm_payload_encoded(&slot);
  assert_false(lcomm_payload_is_complete(&slot)); /* it has no header yet */
  lcomm_payload_made(&slot);
  assert_true(lcomm_payload_is_readable(&slot) && !lcomm_payload_is_on_device(&slot));
  lcomm_payload_on_device(&slot);
  assert_int_equal(slot.state, LCOMM_PAYLOAD_ON_BOTH);
}

static void a_payload_of_a_device_is_copied_or_exported(void **state) {
  (void)state;
  lcomm_slot_memory copied = slot_with(LCOMM_SLOT_MEMORY), exported = slot_with(LCOMM_SLOT_EXPORTS);
  lcomm_payload_on_device(&copied);
  assert_true(lcomm_payload_is_on_device(&copied) && !lcomm_payload_is_readable(&copied));
  lcomm_payload_on_host(&copied);
  assert_int_equal(copied.state, LCOMM_PAYLOAD_ON_BOTH);
  lcomm_payload_exported(&exported);
  assert_true(lcomm_payload_is_complete(&exported) && lcomm_payload_is_on_device(&exported));
  lcomm_slot_memory elements = slot_with(LCOMM_SLOT_MEMORY);
  lcomm_payload_on_host(&elements); /* straight from the vector */
  assert_int_equal(elements.state, LCOMM_PAYLOAD_LOCAL);
}

static void a_short_payload_is_read_behind_its_header(void **state) {
  (void)state;
  lcomm_slot_memory slot = slot_with(0);
  lcomm_payload_posted(&slot);
  lcomm_payload_received_inline(&slot, theirs);
  assert_true(slot.payload == theirs && slot.wire == theirs && lcomm_payload_is_readable(&slot));
  lcomm_payload_reset(&slot, NULL);
  assert_null(slot.payload);
}

static void what_is_mapped_is_read_there_until_its_release(void **state) {
  (void)state;
  lcomm_slot_memory slot = requested(LCOMM_SLOT_MEMORY, LCOMM_PAYLOAD_REQUESTED);
  lcomm_payload_mapped(&slot, theirs);
  assert_true(slot.payload == theirs && slot.wire == theirs && lcomm_payload_is_complete(&slot));
  lcomm_payload_release(&slot);
  assert_int_equal(slot.state, LCOMM_PAYLOAD_EMPTY);
  assert_true(slot.payload == memory + 64 && wire.releases == 1 && wire.cancels == 0);
}

static void what_is_remote_is_got_or_copied(void **state) {
  (void)state;
  lcomm_slot_memory remote = requested(0, LCOMM_PAYLOAD_REQUESTED);
  lcomm_payload_mapped(&remote, NULL);
  assert_true(remote.state == LCOMM_PAYLOAD_REMOTE && !lcomm_payload_is_readable(&remote));
  lcomm_payload_release(&remote);
  assert_int_equal(wire.releases, 1);
  lcomm_slot_memory copied = requested(LCOMM_SLOT_MEMORY, LCOMM_PAYLOAD_REQUESTED);
  lcomm_payload_mapped(&copied, NULL);
  lcomm_payload_copied(&copied);
  assert_true(copied.state == LCOMM_PAYLOAD_LOCAL && copied.payload == memory + 64);
  assert_int_equal(wire.releases, 1);
}

static void a_memory_handle_is_read_by_kernels_or_copied(void **state) {
  (void)state;
  lcomm_slot_memory read = requested(LCOMM_SLOT_MEMORY, LCOMM_PAYLOAD_HANDLE);
  lcomm_payload_on_peer_device(&read);
  assert_true(lcomm_payload_is_on_device(&read) && !lcomm_payload_is_complete(&read));
  lcomm_payload_release(&read);
  lcomm_slot_memory late = requested(0, LCOMM_PAYLOAD_HANDLE);
  lcomm_payload_use_memory(&late, memory);
  lcomm_payload_copied(&late);
  assert_true(late.payload == memory && lcomm_payload_is_readable(&late));
  lcomm_payload_reset(&late, NULL);
  assert_ptr_equal(late.wire, memory); /* which it keeps */
  lcomm_slot_memory alias = requested(LCOMM_SLOT_ALIAS, LCOMM_PAYLOAD_HANDLE);
  lcomm_payload_copied(&alias);
  assert_ptr_equal(alias.payload, vector);
}

static void what_is_cancelled_is_not_released(void **state) {
  (void)state;
  lcomm_slot_memory slot = requested(LCOMM_SLOT_MEMORY, LCOMM_PAYLOAD_REQUESTED);
  lcomm_payload_cancel(&slot);
  assert_true(wire.cancels == 1 && wire.releases == 0 && !lcomm_payload_is_zcopy(&slot));
}

static void a_request_that_fails_leaves_nothing_to_release(void **state) {
  (void)state;
  lcomm_slot_memory slot = slot_with(LCOMM_SLOT_MEMORY);
  lcomm_payload_posted(&slot);
  wire.answer = LCOMM_ERR_TRANSPORT;
  assert_int_equal(lcomm_payload_request(&slot, LCOMM_PAYLOAD_HANDLE, &wire.base, 3, 7, 5000),
                   LCOMM_ERR_TRANSPORT);
  assert_true(slot.state == LCOMM_PAYLOAD_POSTED && wire.requests == 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_state_can_be_reached_and_none_follows_itself),
    cmocka_unit_test(a_payload_begins_once),
    cmocka_unit_test(a_zero_copy_receive_is_requested_once_and_ends),
    cmocka_unit_test(what_is_not_there_cannot_be_read_or_sent),
    cmocka_unit_test(a_slot_begins_at_its_memory_or_at_its_part_of_the_vector),
    cmocka_unit_test(a_payload_of_this_rank_is_made_by_its_encode_or_by_a_sum),
    cmocka_unit_test(a_payload_of_a_device_is_copied_or_exported),
    cmocka_unit_test(a_short_payload_is_read_behind_its_header),
    cmocka_unit_test(what_is_mapped_is_read_there_until_its_release),
    cmocka_unit_test(what_is_remote_is_got_or_copied),
    cmocka_unit_test(a_memory_handle_is_read_by_kernels_or_copied),
    cmocka_unit_test(what_is_cancelled_is_not_released),
    cmocka_unit_test(a_request_that_fails_leaves_nothing_to_release),
};
RUN_TESTS(tests)
