/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The emulated devices: what every device does, and what they do to show errors
 * that a device would show now and then. */

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/device/device_emulated.h"
#include "tests/device/device_order.h"
#include "tests/device/device_sharing.h"
#include "tests/support/emulated/emulated_blocks.h"

static emulated_setup setup = {.devices = 3, .memory_size = 16 << 20};

static const lcomm_device_table *sharing_open(void) {
  return emulated_begin(&setup);
}

static int sharing_close(void) {
  return emulated_end();
}

static int begin(void **state) {
  (void)state;
  return begin_devices(&setup);
}

/* -------------------------------------------------------------------- memory */

static void memory_ends_where_it_should(void **state) {
  (void)state;
  for (size_t size = 1; size < 20000; size = size * 2 + 1) {
    unsigned char *memory = memory_of(size), *pinned = pinned_of(size);
    expect_place(memory - 1, LCOMM_MEMORY_HOST, -1);
    expect_place(memory + size, LCOMM_MEMORY_HOST, -1);
    expect_place(pinned + size, LCOMM_MEMORY_HOST, -1);
    assert_int_not_equal(device->copy(memory, pinned, size + 1, NULL), 0);
    assert_int_not_equal(device->set(memory + 1, 0, size, NULL), 0);
    CHECK(device->memory.free(memory));
    CHECK(device->memory.pinned_free(pinned));
    expect_place(memory, LCOMM_MEMORY_HOST, -1);
  }
}

static void fresh_memory_is_rubbish(void **state) {
  unsigned char got[64], expected[64];
  (void)state;
  unsigned char *memory = memory_of(sizeof(got));
  memset(expected, 0xff, sizeof(expected));
  CHECK(device->copy(got, memory, sizeof(got), NULL));
  assert_memory_equal(got, expected, sizeof(got));
  CHECK(device->memory.free(memory));
}

static void memory_of_other_origin_has_its_kind(void **state) {
  lcomm_device_ipc ipc;
  (void)state;
  CHECK(device->use(2));
  unsigned char *pool = emulated_pool_get(100), *managed = emulated_managed_get(100);
  expect_place(pool, LCOMM_MEMORY_DEVICE, 2);
  expect_place(managed, LCOMM_MEMORY_MANAGED, 2);
  assert_int_not_equal(device->ipc.get(pool, &ipc), 0);
  assert_int_not_equal(device->ipc.get(managed, &ipc), 0);
  CHECK(device->memory.free(pool));
  CHECK(device->memory.free(managed));
}

static void memory_of_a_device_is_limited(void **state) {
  void *more = NULL;
  (void)state;
  unsigned char *memory = memory_of(15 << 20);
  assert_int_not_equal(device->memory.get(2 << 20, &more), 0);
  assert_null(more);
  CHECK(device->use(1));
  CHECK(device->memory.free(memory_of(2 << 20)));
  CHECK(device->use(0));
  CHECK(device->memory.free(memory));
  CHECK(device->memory.free(memory_of(2 << 20)));
}

static void what_was_not_allocated_is_not_freed(void **state) {
  int mine = 0;
  (void)state;
  unsigned char *memory = memory_of(10), *pinned = pinned_of(10);
  assert_int_not_equal(device->memory.free(&mine), 0);
  assert_int_not_equal(device->memory.free(memory + 1), 0);
  assert_int_not_equal(device->memory.free(pinned), 0);
  assert_int_not_equal(device->memory.pinned_free(memory), 0);
  assert_int_not_equal(device->ipc.close(memory), 0);
  CHECK(device->memory.free(memory));
  assert_int_not_equal(device->memory.free(memory), 0);
  CHECK(device->memory.pinned_free(pinned));
}

/* In a process of its own: it must die, but not too early. */
static void freed_memory_cannot_be_read(void **state) {
  int status = 0;
  (void)state;
  pid_t child = fork();
  if (child == 0) {
    signal(SIGSEGV, _exit);
    device = emulated_begin(&setup);
    volatile unsigned char *memory = memory_of(10);
    CHECK(device->memory.free((void *)(uintptr_t)memory));
    (void)memory_of(10); /* elsewhere */
    signal(SIGSEGV, SIG_DFL);
    _exit(memory[0] & 1);
  }
  waitpid(child, &status, 0);
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

/* --------------------------------------------------------------------- order */

static void pinned_memory_is_read_when_the_stream_comes_to_it(void **state) {
  unsigned char got = 0;
  (void)state;
  void *stream = new_work_stream();
  unsigned char *memory = memory_of(1), *pinned = pinned_of(1), *value = pinned_of(4);
  hold(stream, value, 1);
  CHECK(device->copy(memory, pinned, 1, stream));
  give_time();
  pinned[0] = 9; /* too early, for a program */
  release(value, 1);
  CHECK(device->copy(&got, memory, 1, stream));
  assert_int_equal(got, 9);
  give_all_back((belongings){.streams = {stream}, .memory = {memory}, .pinned = {pinned, value}});
}

static void destroyed_stream_still_does_its_work(void **state) {
  (void)state;
  void *stream = new_work_stream(), *event = new_event();
  unsigned char *pinned = pinned_of(1), *value = pinned_of(4);
  hold(stream, value, 1);
  CHECK(device->set(pinned, 3, 1, stream));
  CHECK(device->event.record(event, stream));
  CHECK(device->stream.destroy(stream));
  assert_int_not_equal(device->stream.finish(stream), 0);
  release(value, 1);
  CHECK(device->stream.wait(NULL, event));
  CHECK(device->stream.finish(NULL));
  assert_int_equal(pinned[0], 3);
  give_all_back((belongings){.events = {event}, .pinned = {pinned, value}});
}

static void things_of_two_devices_are_told_apart(void **state) {
  (void)state;
  void *stream = new_stream(), *event = new_event();
  CHECK(device->use(1));
  void *other = new_stream();
  assert_int_not_equal(device->event.record(event, other), 0);
  assert_int_not_equal(device->event.record(event, NULL), 0);
  CHECK(device->event.record(event, stream));
  CHECK(device->stream.wait(other, event));
  CHECK(device->stream.finish(other));
  assert_int_not_equal(device->event.record(stream, stream), 0);
  assert_int_not_equal(device->stream.finish(event), 0);
  CHECK(device->event.destroy(event));
  assert_int_not_equal(device->event.destroy(event), 0);
  CHECK(device->stream.destroy(stream));
  CHECK(device->stream.destroy(other));
}

/* ------------------------------------------------------------------- kernels */

typedef struct add_args {
  uint32_t *values;
  uint32_t add;
} add_args;

static void add_kernel(const void *args) {
  const add_args *a = args;
  uint32_t i = lcomm_emulated_here.block * lcomm_emulated_here.threads + lcomm_emulated_here.thread;
  a->values[i] = a->values[i] * 10 + a->add;
}

static void kernels_run_in_the_order_of_their_stream(void **state) {
  enum { BLOCKS = 3, THREADS = 64, COUNT = BLOCKS * THREADS };
  uint32_t got[COUNT];
  (void)state;
  void *stream = new_work_stream();
  uint32_t *values = (uint32_t *)(void *)memory_of(sizeof(got));
  unsigned char *value = pinned_of(4);
  add_args args = {values, 0};
  CHECK(device->load());
  hold(stream, value, 1);
  CHECK(lcomm_emulated.set(values, sizeof(got), stream));
  for (args.add = 1; args.add < 5; args.add++) {
    CHECK(lcomm_emulated.launch(add_kernel, &args, sizeof(args), BLOCKS, THREADS, stream, "add"));
  }
  memset(&args, 0, sizeof(args));
  CHECK(device->use(1));
  assert_int_not_equal(lcomm_emulated.launch(add_kernel, &args, sizeof(args), 1, 32, stream, "add"),
                       0);
  release(value, 1);
  CHECK(device->copy(got, values, sizeof(got), stream));
  for (int i = 0; i < COUNT; i++) {
    assert_int_equal(got[i], 1234);
  }
  CHECK(lcomm_emulated.copy_in(values, got, 4, stream));
  got[0] = 0;
  CHECK(device->copy(got, values, 4, stream));
  assert_int_equal(got[0], 1234);
  give_all_back((belongings){.streams = {stream}, .memory = {values}, .pinned = {value}});
}

/* ------------------------------------------------------------------- barred */

static int ask_count(void) {
  int count = 0;
  return device->count(&count);
}

static int ask_facts(void) {
  lcomm_device_facts facts;
  return device->facts(0, &facts);
}

static int ask_version(void) {
  int driver = 0, runtime = 0;
  return device->version(&driver, &runtime);
}

static int ask_text(void) {
  return device->explain(0) ? 0 : -1;
}

static int finish_all(void) {
  return device->stream.finish(NULL);
}

static int end_of_barred(int (*call)(void)) {
  int status = 0;
  pid_t child = fork();
  if (child == 0) {
    (void)!freopen("/dev/null", "w", stderr);
    signal(SIGABRT, SIG_DFL);
    device = emulated_begin(&setup);
    bool before = lcomm_device_bar();
    CHECK(call());
    lcomm_device_unbar(before);
    CHECK(finish_all());
    _exit(0);
  }
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

static void a_thread_that_is_barred_calls_no_device(void **state) {
  (void)state;
  static int (*const calls[])(void) = {finish_all, ask_count, ask_facts, ask_version};
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    assert_int_equal(end_of_barred(calls[i]), SIGABRT);
  }
  assert_int_equal(end_of_barred(ask_text), 0);
}

/* ------------------------------------------------------------------- refused */

static void what_is_switched_off_is_refused(void **state) {
  lcomm_device_ipc ipc;
  bool possible = true;
  emulated_setup poor = {
      .devices = 2, .without_waits = true, .without_sharing = true, .without_peers = true};
  (void)state;
  assert_int_equal(emulated_end(), 0);
  (void)emulated_begin(&poor);
  lcomm_device_facts facts = facts_of(1);
  assert_false(facts.waits_for_values || facts.shares_memory);
  unsigned char *memory = memory_of(4);
  assert_int_not_equal(device->ipc.get(memory, &ipc), 0);
  CHECK(device->ipc.peer_access(0, 1, &possible));
  assert_false(possible);
  CHECK(device->memory.free(memory));
}

static void numbers_lie_in_pinned_memory(void **state) {
  uint32_t mine = 1;
  (void)state;
  unsigned char *memory = memory_of(4), *pinned = pinned_of(8);
  void *stream = new_work_stream();
  void *elsewhere[] = {&mine, memory, pinned + 6};
  lcomm_device_number number = {.number = 1};
  for (int i = 0; i < 3; i++) {
    number.place = elsewhere[i];
    number.task = LCOMM_DEVICE_AWAIT;
    assert_int_not_equal(device->stream.numbers(stream, &number, 1), 0);
    number.task = LCOMM_DEVICE_WRITE;
    assert_int_not_equal(device->stream.numbers(stream, &number, 1), 0);
  }
  number.place = (uint32_t *)(void *)pinned;
  assert_int_not_equal(device->stream.numbers(NULL, &number, 1), 0); /* one of the program */
  CHECK(device->stream.numbers(stream, &number, 1));
  CHECK(device->stream.finish(stream));
  give_all_back((belongings){.streams = {stream}, .memory = {memory}, .pinned = {pinned}});
}

static void bytes_that_are_no_handle_are_refused(void **state) {
  lcomm_device_ipc ipc, bad;
  void *opened = NULL;
  (void)state;
  unsigned char *memory = memory_of(100);
  CHECK(device->ipc.get(memory, &ipc));
  assert_int_not_equal(device->ipc.open(&ipc, &opened), 0); /* of this process */
  for (size_t i = 0; i < sizeof(bad.handle); i++) {
    bad = ipc;
    bad.handle[i] ^= 0x41;
    assert_int_not_equal(device->ipc.open(&bad, &opened), 0);
    assert_int_not_equal(device->ipc.event_open(bad.handle, &opened), 0);
  }
  memset(&bad, 0, sizeof(bad));
  assert_int_not_equal(device->ipc.open(&bad, &opened), 0);
  assert_null(opened);
  CHECK(device->memory.free(memory));
}

static void memory_is_opened_once_and_while_it_is_there(forked *self) {
  lcomm_device_ipc ipc;
  void *memory = NULL, *opened = NULL, *again = NULL;
  enter(self);
  if (self->rank == 0) {
    REQUIRE(device->memory.get(100, &memory));
    REQUIRE(device->ipc.get(memory, &ipc));
    memcpy(self->shared, &ipc, sizeof(ipc));
  }
  forked_barrier(self);
  if (self->rank == 1) {
    memcpy(&ipc, self->shared, sizeof(ipc));
    ipc.size += 1 << 20;
    forked_require(self, device->ipc.open(&ipc, &opened) != 0, "more than there is");
    ipc.size -= 1 << 20;
    REQUIRE(device->ipc.open(&ipc, &opened));
    forked_require(self, device->ipc.open(&ipc, &again) != 0, "a second time");
    forked_require(self, device->memory.free(opened) != 0, "freed instead of closed");
    REQUIRE(device->ipc.close(opened));
  }
  forked_barrier(self);
  if (self->rank == 0) {
    REQUIRE(device->memory.free(memory));
    REQUIRE(device->memory.get(100, &memory)); /* gets the number of the file, too */
  }
  forked_barrier(self);
  if (self->rank == 1) {
    forked_require(self, device->ipc.open(&ipc, &opened) != 0, "memory that is gone");
  }
  forked_barrier(self);
  REQUIRE(device->memory.free(memory));
  leave(self);
}

static void what_is_left_is_counted(void **state) {
  (void)state;
  unsigned char *value = pinned_of(4);
  void *stream = new_work_stream();
  (void)memory_of(1);
  (void)new_event();
  hold(stream, value, 1); /* for ever */
  CHECK(device->event.record(new_event(), stream));
  assert_int_equal(emulated_end(), 5);
  device = emulated_begin(&setup);
}

#define ON_DEVICE(test) cmocka_unit_test_setup_teardown(test, begin, end_devices)

int main(void) {
  const struct CMUnitTest tests[] = {
      DEVICE_SHARING,
      SHARED_TEST(memory_is_opened_once_and_while_it_is_there, 2),
      cmocka_unit_test(freed_memory_cannot_be_read),
      cmocka_unit_test(a_thread_that_is_barred_calls_no_device),
      DEVICE_PROPERTIES(ON_DEVICE),
      DEVICE_ORDER(ON_DEVICE),
      ON_DEVICE(memory_ends_where_it_should),
      ON_DEVICE(fresh_memory_is_rubbish),
      ON_DEVICE(memory_of_other_origin_has_its_kind),
      ON_DEVICE(memory_of_a_device_is_limited),
      ON_DEVICE(what_was_not_allocated_is_not_freed),
      ON_DEVICE(pinned_memory_is_read_when_the_stream_comes_to_it),
      ON_DEVICE(destroyed_stream_still_does_its_work),
      ON_DEVICE(things_of_two_devices_are_told_apart),
      ON_DEVICE(kernels_run_in_the_order_of_their_stream),
      ON_DEVICE(what_is_switched_off_is_refused),
      ON_DEVICE(numbers_lie_in_pinned_memory),
      ON_DEVICE(bytes_that_are_no_handle_are_refused),
      ON_DEVICE(what_is_left_is_counted),
  };
  int failed = cmocka_run_group_tests_name("in no hurry", tests, NULL, NULL);
  setup.seed = 20;
  return failed + cmocka_run_group_tests_name("with pauses", tests, NULL, NULL);
}
