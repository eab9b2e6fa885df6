/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_DEVICE_PROPERTIES_H
#define LCOMM_TESTS_DEVICE_PROPERTIES_H

/* What every device does, emulated or real: questions, memory and copies of one
 * process. The test that includes this says how its device is opened. Beside it:
 * device_order.h (streams and events), device_sharing.h (several processes).
 */

#include "tests/device/device_objects.h"

static inline unsigned char pattern(size_t i, unsigned seed) {
  return (unsigned char)(i * 37 + i / 251 + seed);
}

/* ---------------------------------------------------------------- questions */

static void every_device_is_described(void **state) {
  int count = 0, driver = 0, runtime = 0;
  lcomm_device_facts facts;
  (void)state;
  need_device();
  CHECK(device->count(&count));
  assert_true(count >= 1);
  for (int i = 0; i < count; i++) {
    facts = facts_of(i);
    assert_true(facts.name[0] != '\0' && facts.memory_size > 0 && facts.major > 0);
    assert_true(strlen(facts.pci) >= strlen("0000:3b:00.0"));
    assert_int_equal(strspn(facts.pci, "0123456789abcdef:."), strlen(facts.pci));
  }
  assert_int_not_equal(device->facts(count, &facts), 0);
  assert_int_not_equal(device->facts(-1, &facts), 0);
  CHECK(device->version(&driver, &runtime));
  assert_true(driver >= 1000 && runtime >= 1000);
}

static void errors_have_sentences(void **state) {
  lcomm_device_ipc ipc;
  (void)state;
  need_device();
  int error = device->ipc.get(&ipc, &ipc);
  assert_int_not_equal(error, 0);
  assert_true(device->explain(error)[0] != '\0');
  assert_non_null(device->explain(-77));
  assert_non_null(device->explain(1 << 20));
}

static void device_in_use_lasts_until_another_is_used(void **state) {
  int count = 0, now = -1;
  (void)state;
  need_device();
  CHECK(device->count(&count));
  for (int i = count - 1; i >= 0; i--) {
    bool possible = false;
    CHECK(device->use(i));
    CHECK(device->ipc.peer_access((i + 1) % count, i, &possible));
    device->memory.free(memory_of(1));
    (void)facts_of(0);
    assert_int_not_equal(device->use(count), 0);
    CHECK(device->current(&now));
    assert_int_equal(now, i);
  }
}

static void device_reaches_itself(void **state) {
  bool possible = false;
  (void)state;
  need_device();
  CHECK(device->ipc.peer_access(0, 0, &possible));
  assert_true(possible);
}

/* ------------------------------------------------------------------- memory */

static void expect_place(const void *pointer, lcomm_memory_kind kind, int ordinal) {
  lcomm_memory_location place = device->locate(pointer);
  assert_int_equal(place.kind, kind);
  assert_int_equal(place.device, ordinal);
}

static void places_are_told_apart(void **state) {
  enum { SIZE = 5000 };
  static int of_the_program;
  int count = 0;
  (void)state;
  need_device();
  CHECK(device->count(&count));
  unsigned char *heap = malloc(SIZE), *pinned = pinned_of(SIZE);
  expect_place(NULL, LCOMM_MEMORY_HOST, -1);
  expect_place(&of_the_program, LCOMM_MEMORY_HOST, -1);
  expect_place(&count, LCOMM_MEMORY_HOST, -1);
  expect_place(heap, LCOMM_MEMORY_HOST, -1);
  expect_place(pinned, LCOMM_MEMORY_PINNED, -1);
  expect_place(pinned + SIZE - 1, LCOMM_MEMORY_PINNED, -1);
  for (int i = 0; i < count; i++) {
    CHECK(device->use(i));
    unsigned char *memory = memory_of(SIZE);
    expect_place(memory, LCOMM_MEMORY_DEVICE, i);
    expect_place(memory + SIZE - 1, LCOMM_MEMORY_DEVICE, i);
    CHECK(device->use(0));
    expect_place(memory, LCOMM_MEMORY_DEVICE, i);
    CHECK(device->memory.free(memory));
  }
  CHECK(device->memory.pinned_free(pinned));
  free(heap);
}

static void nothing_can_be_allocated_copied_and_freed(void **state) {
  void *memory = &memory, *pinned = &memory;
  (void)state;
  need_device();
  CHECK(device->memory.get(0, &memory));
  CHECK(device->memory.pinned_get(0, &pinned));
  assert_null(memory);
  assert_null(pinned);
  CHECK(device->copy(memory, pinned, 0, NULL));
  CHECK(device->set(memory, 1, 0, NULL));
  CHECK(device->memory.free(memory));
  CHECK(device->memory.pinned_free(pinned));
}

static void memory_is_aligned(void **state) {
  (void)state;
  need_device();
  for (size_t size = 1; size < 5000; size = size * 3 + 1) {
    unsigned char *memory = memory_of(size), *pinned = pinned_of(size);
    assert_int_equal((uintptr_t)memory % 256, 0);
    assert_int_equal((uintptr_t)pinned % 64, 0);
    CHECK(device->memory.free(memory));
    CHECK(device->memory.pinned_free(pinned));
  }
}

/* ------------------------------------------------------------------- copies */

static void copy_through(unsigned char *const *place, size_t from, size_t to, size_t size,
                         void *stream) {
  unsigned char *sent = malloc(size), *got = malloc(size);
  for (size_t i = 0; i < size; i++) {
    sent[i] = pattern(i, (unsigned)(from * 3 + to));
  }
  memset(got, 0, size);
  CHECK(device->copy(place[from] + 1, sent, size, stream));
  CHECK(device->copy(place[to] + 3, place[from] + 1, size, stream));
  CHECK(device->copy(got, place[to] + 3, size, stream));
  CHECK(device->stream.finish(stream));
  assert_memory_equal(got, sent, size);
  free(sent);
  free(got);
}

static void copies_go_from_all_places_to_all(void **state) {
  enum { SIZE = 300001, PLACES = 6 };
  static const size_t sizes[] = {1, 255, 4099, SIZE - 3};
  (void)state;
  need_device();
  void *stream = new_stream();
  unsigned char *place[PLACES] = {malloc(SIZE),    malloc(SIZE),    pinned_of(SIZE),
                                  pinned_of(SIZE), memory_of(SIZE), memory_of(SIZE)};
  for (size_t from = 0; from < PLACES; from += 2) {
    for (size_t to = 1; to < PLACES; to += 2) {
      for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        copy_through(place, from, to, sizes[i], i % 2 ? stream : NULL);
      }
    }
  }
  for (int i = 0; i < 2; i++) {
    free(place[i]);
    CHECK(device->memory.pinned_free(place[2 + i]));
    CHECK(device->memory.free(place[4 + i]));
  }
  CHECK(device->stream.destroy(stream));
}

static void plain_memory_of_the_host_may_be_reused_at_once(void **state) {
  enum { SIZE = 100000 };
  (void)state;
  need_device();
  void *stream = new_stream();
  unsigned char *memory = memory_of(SIZE), *source = malloc(SIZE), *got = malloc(SIZE);
  memset(source, 5, SIZE);
  CHECK(device->copy(memory, source, SIZE, stream));
  memset(source, 6, SIZE);
  CHECK(device->copy(got, memory, SIZE, stream));
  CHECK(device->stream.finish(stream));
  for (size_t i = 0; i < SIZE; i++) {
    assert_int_equal(got[i], 5);
  }
  free(source);
  free(got);
  CHECK(device->memory.free(memory));
  CHECK(device->stream.destroy(stream));
}

static void set_writes_its_bytes_and_no_others(void **state) {
  enum { SIZE = 1000 };
  unsigned char got[SIZE];
  (void)state;
  need_device();
  unsigned char *memory = memory_of(SIZE);
  CHECK(device->set(memory, 0x11, SIZE, NULL));
  CHECK(device->set(memory + 3, 0xfe, 501, NULL));
  CHECK(device->copy(got, memory, SIZE, NULL));
  CHECK(device->stream.finish(NULL));
  for (size_t i = 0; i < SIZE; i++) {
    assert_int_equal(got[i], i >= 3 && i < 504 ? 0xfe : 0x11);
  }
  CHECK(device->memory.free(memory));
}

#define DEVICE_PROPERTIES(TEST)                                                                    \
  TEST(every_device_is_described), TEST(errors_have_sentences),                                    \
      TEST(device_in_use_lasts_until_another_is_used), TEST(device_reaches_itself),                \
      TEST(places_are_told_apart), TEST(nothing_can_be_allocated_copied_and_freed),                \
      TEST(memory_is_aligned), TEST(copies_go_from_all_places_to_all),                             \
      TEST(plain_memory_of_the_host_may_be_reused_at_once),                                        \
      TEST(set_writes_its_bytes_and_no_others)

#endif
