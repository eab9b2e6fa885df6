/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The emulated devices where streams wait: what waits for a whole device, streams that share
 * queues, the order in which streams are drawn, and how calls are counted. */

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/device/device_objects.h"
#include "tests/support/emulated/emulated_blocks.h"
#include "tests/support/emulated/emulated_device.h"

static void begin(emulated_setup setup) {
  setup.devices = 2;
  device = emulated_begin(&setup);
  CHECK(device->use(0));
}

static void end(void) {
  assert_int_equal(emulated_end(), 0);
}

/* -------------------------------------------------- waiting for a whole device */

static void nothing_kernel(const void *args) {
  (void)args;
}

/* A call of another thread, on what was made before. */
typedef struct late_call {
  int (*make)(struct late_call *call);
  void *memory, *pinned, *made;
  int error;
  atomic_bool is_over;
} late_call;

static int get(late_call *call) {
  return device->memory.get(1, &call->made);
}

static int get_pinned(late_call *call) {
  return device->memory.pinned_get(1, &call->made);
}

static int get_managed(late_call *call) {
  return device->memory.managed_get(1, &call->made);
}

static int give_back(late_call *call) {
  return device->memory.free(call->memory);
}

static int give_pinned_back(late_call *call) {
  return device->memory.pinned_free(call->pinned);
}

static int make_stream(late_call *call) {
  return device->stream.work_create(&call->made);
}

static int load(late_call *call) {
  (void)call;
  return device->load();
}

static int launch(late_call *call) {
  return lcomm_emulated.launch(nothing_kernel, call, sizeof *call, 1, 32, NULL, "nothing");
}

static void *make_call(void *argument) {
  late_call *call = argument;
  call->error = device->use(0);
  call->error = call->error ? call->error : call->make(call);
  atomic_store(&call->is_over, true);
  return NULL;
}

static int set_again(late_call *call) {
  return device->set(call->pinned, 1, 1, call->made);
}

static void free_made(late_call *call) {
  int (*make)(late_call *) = call->make;
  if (make == make_stream) {
    CHECK(device->stream.destroy(call->made));
  } else if (make == get_pinned) {
    CHECK(device->memory.pinned_free(call->made));
  } else if (make == get || make == get_managed) {
    CHECK(device->memory.free(call->made));
  }
  if (make != give_back) {
    CHECK(device->memory.free(call->memory));
  }
  if (make != give_pinned_back) {
    CHECK(device->memory.pinned_free(call->pinned));
  }
}

/* It waits, and so does whoever comes to the device meanwhile. */
static void waits_while_a_stream_is_held(int (*make)(late_call *call)) {
  pthread_t first, second;
  begin((emulated_setup){0});
  void *held = new_work_stream(), *other = new_stream();
  unsigned char *value = pinned_of(4), *byte = pinned_of(1);
  late_call call = {.make = make, .memory = memory_of(4096), .pinned = pinned_of(4)};
  late_call beside = {.make = set_again, .pinned = byte, .made = other};
  hold(held, value, 1);
  assert_int_equal(pthread_create(&first, NULL, make_call, &call), 0);
  while (!emulated_device_is_waited_for() && !atomic_load(&call.is_over)) {
    give_time();
  }
  give_time();
  assert_false(atomic_load(&call.is_over));
  assert_int_equal(pthread_create(&second, NULL, make_call, &beside), 0);
  give_time();
  assert_false(atomic_load(&beside.is_over));
  release(value, 1);
  pthread_join(first, NULL);
  pthread_join(second, NULL);
  assert_int_equal(call.error, 0);
  assert_int_equal(beside.error, 0);
  CHECK(device->stream.finish(other));
  assert_int_equal(byte[0], 1);
  free_made(&call);
  give_all_back((belongings){.streams = {held, other}, .pinned = {value, byte}});
  end();
}

static void what_waits_for_a_device_waits_for_all_streams(void **state) {
  (void)state;
  waits_while_a_stream_is_held(get);
  waits_while_a_stream_is_held(get_pinned);
  waits_while_a_stream_is_held(get_managed);
  waits_while_a_stream_is_held(give_back);
  waits_while_a_stream_is_held(give_pinned_back);
  waits_while_a_stream_is_held(make_stream);
  waits_while_a_stream_is_held(load);
  waits_while_a_stream_is_held(launch);
}

/* What comes into streams later is not waited for, or a busy program would wait for ever. */
static void what_waits_for_a_device_does_not_wait_for_what_comes_later(void **state) {
  (void)state;
  begin((emulated_setup){.churn = 5});
  void *stream = new_stream();
  unsigned char *memory = memory_of(100), *got = pinned_of(100);
  for (int i = 0; i < 300; i++) {
    CHECK(device->set(memory, i, 100, stream));
    CHECK(device->copy(got, memory, 100, stream));
  }
  CHECK(device->stream.finish(stream));
  assert_int_equal(got[99], (unsigned char)299);
  while (emulated_calls(EMULATED_CALL_FREE) < 5) { /* not of this thread */
    give_time();
  }
  give_all_back((belongings){.streams = {stream}, .memory = {memory}, .pinned = {got}});
  end();
}

/* Hold a stream for ever, let another one wait for it, free memory. */
static void wait_for_ever(int words) {
  (void)dup2(words, STDERR_FILENO);
  signal(SIGABRT, SIG_DFL); /* cmocka would report it */
  begin((emulated_setup){.queues = 2, .patience_s = 0.3});
  void *held = new_work_stream(), *other = new_stream(), *behind = new_work_stream();
  void *event = new_event();
  unsigned char *value = pinned_of(4), *memory = memory_of(1);
  hold(held, value, 7);
  CHECK(device->event.record(event, held));
  CHECK(device->stream.wait(other, event));
  CHECK(device->set(memory, 1, 1, behind));
  CHECK(device->memory.free(memory));
  _exit(0);
}

static void deadlock_is_told_with_names(void **state) {
  static const char *const said[] = {"nothing has moved for 0.3 s", " in memory.free waits for all",
                                     "is 7, it is 0", "waits for an event of stream",
                                     "stands in queue"};
  char text[2048] = "";
  int ends[2], status = 0;
  (void)state;
  assert_int_equal(pipe(ends), 0);
  pid_t child = fork();
  if (child == 0) {
    wait_for_ever(ends[1]);
  }
  close(ends[1]);
  for (ssize_t got = 1, at = 0; got > 0; at += got) {
    got = read(ends[0], text + at, sizeof(text) - 1 - (size_t)at);
  }
  close(ends[0]);
  waitpid(child, &status, 0);
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
  for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
    if (!strstr(text, said[i])) {
      fail_msg("'%s' is not in: %s", said[i], text);
    }
  }
}

/* ------------------------------------------------------------------- queues */

enum { STREAMS = 17 };

typedef struct in_queues {
  void *holder, *held; /* a stream of the library's, and the event that the first one waits for */
  void *stream[STREAMS], *event[STREAMS];
  unsigned char *value, *memory;
} in_queues;

/* The first stream is held, then all get something to do. */
static void hold_first(in_queues *it) {
  it->holder = new_work_stream();
  it->held = new_event();
  it->value = pinned_of(4);
  it->memory = memory_of(STREAMS);
  for (int i = 0; i < STREAMS; i++) {
    it->stream[i] = new_stream();
    it->event[i] = new_event();
  }
  hold(it->holder, it->value, 1);
  CHECK(device->event.record(it->held, it->holder));
  CHECK(device->stream.wait(it->stream[0], it->held));
  for (int i = 0; i < STREAMS; i++) {
    CHECK(device->set(it->memory + i, i, 1, it->stream[i]));
    CHECK(device->event.record(it->event[i], it->stream[i]));
  }
}

static void let_first_go(in_queues *it) {
  release(it->value, 1);
  for (int i = 0; i < STREAMS; i++) {
    CHECK(device->stream.finish(it->stream[i]));
    CHECK(device->stream.destroy(it->stream[i]));
    CHECK(device->event.destroy(it->event[i]));
  }
  give_all_back((belongings){.events = {it->held},
                             .streams = {it->holder},
                             .memory = {it->memory},
                             .pinned = {it->value}});
}

/* Streams that share the queue of the first one stand still, and only they. */
static void stands_with_the_first(int queues) {
  in_queues it;
  begin((emulated_setup){.queues = queues});
  hold_first(&it);
  for (int i = 0; i < STREAMS; i++) {
    bool shares = i == 0 || (queues > 0 && i % queues == 0);
    if (!shares) {
      CHECK(device->stream.finish(it.stream[i]));
    }
  }
  give_time();
  for (int i = 0; i < STREAMS; i++) {
    bool shares = i == 0 || (queues > 0 && i % queues == 0);
    assert_int_equal(is_over(it.event[i]), !shares);
  }
  let_first_go(&it);
  end();
}

static void held_stream_stops_those_of_its_queue(void **state) {
  (void)state;
  stands_with_the_first(1);
  stands_with_the_first(8);
  stands_with_the_first(0);
}

static void streams_for_work_have_other_queues(void **state) {
  in_queues it;
  (void)state;
  begin((emulated_setup){.queues = 2}); /* for the streams of each kind */
  unsigned char *memory = memory_of(1);
  void *work = new_work_stream();
  hold_first(&it);
  CHECK(device->set(memory, 1, 1, work));
  CHECK(device->stream.finish(work));
  let_first_go(&it);
  CHECK(device->stream.destroy(work));
  CHECK(device->memory.free(memory));
  end();
}

/* What stands in front need not be over for the next stream to begin. */
static void late_kernel(const void *args) {
  uint32_t *const *value = args;
  while (__atomic_load_n(*value, __ATOMIC_ACQUIRE) == 0) {
    give_time();
  }
}

static void streams_of_one_queue_work_side_by_side(void **state) {
  (void)state;
  begin((emulated_setup){.queues = 1});
  void *first = new_stream(), *second = new_stream();
  uint32_t *value = (uint32_t *)(void *)pinned_of(8);
  CHECK(device->load());
  CHECK(lcomm_emulated.launch(late_kernel, &value, sizeof(value), 1, 32, first, "late"));
  CHECK(device->set(value + 1, 1, sizeof *value, second));
  CHECK(device->stream.finish(second));
  release(value, 1);
  CHECK(device->stream.finish(first));
  give_all_back((belongings){.streams = {first, second}, .pinned = {value}});
  end();
}

/* --------------------------------------------------------------------- turns */

enum { TASKS = 12, LANES = 3, SEEDS = 6 };

typedef struct note {
  unsigned char *book, *at;
  unsigned char stream, number;
} note;

static void write_note(const void *args) {
  const note *n = args;
  if (lcomm_emulated_here.thread > 0) {
    return;
  }
  int line = __atomic_fetch_add(n->at, 1, __ATOMIC_RELAXED); /* nothing else orders streams */
  n->book[2 * line] = n->stream;
  n->book[2 * line + 1] = n->number;
}

/* In which order three streams did what they were given while they were stopped. */
static void book_of(uint64_t turns, unsigned char *copy) {
  void *stream[LANES];
  begin((emulated_setup){.turns = turns});
  unsigned char *book = pinned_of(2 * LANES * TASKS), *at = pinned_of(1);
  CHECK(device->load());
  for (int i = 0; i < LANES; i++) {
    stream[i] = new_stream();
  }
  emulated_streams_stop(true);
  for (int i = 0; i < LANES * TASKS; i++) {
    note n = {book, at, (unsigned char)(i % LANES), (unsigned char)(i / LANES)};
    CHECK(lcomm_emulated.launch(write_note, &n, sizeof(n), 1, 32, stream[i % LANES], "note"));
  }
  emulated_streams_stop(false);
  for (int i = 0; i < LANES; i++) {
    CHECK(device->stream.finish(stream[i]));
    CHECK(device->stream.destroy(stream[i]));
  }
  assert_int_equal(*at, LANES * TASKS);
  memcpy(copy, book, 2 * LANES * TASKS);
  CHECK(device->memory.pinned_free(book));
  CHECK(device->memory.pinned_free(at));
  end();
}

static void streams_take_turns_in_an_order_that_is_drawn(void **state) {
  unsigned char book[SEEDS][2 * LANES * TASKS];
  int different = 0;
  (void)state;
  for (int seed = 0; seed < SEEDS; seed++) {
    unsigned char next[LANES] = {0};
    book_of((uint64_t)seed + 1, book[seed]);
    for (int i = 0; i < LANES * TASKS; i++) {
      assert_int_equal(book[seed][2 * i + 1], next[book[seed][2 * i]]++);
    }
    different += memcmp(book[seed], book[0], sizeof(book[0])) != 0;
  }
  assert_int_equal(different, SEEDS - 1);
}

/* ------------------------------------------------------------------ counting */

static void calls_are_counted_by_kind(void **state) {
  (void)state;
  begin((emulated_setup){0});
  void *stream = new_stream(), *event = new_event();
  unsigned char *memory = memory_of(8), *pinned = pinned_of(8);
  CHECK(device->load());
  emulated_calls_reset();
  for (int i = 0; i < 3; i++) {
    CHECK(device->copy(memory, pinned, 8, stream));
    CHECK(device->event.record(event, stream));
  }
  CHECK(device->set(memory, 1, 8, stream));
  CHECK(lcomm_emulated.launch(nothing_kernel, "", 0, 1, 32, stream, "nothing"));
  CHECK(device->stream.finish(stream));
  assert_true(is_over(event));
  assert_int_equal(emulated_calls(EMULATED_CALL_COPY), 3);
  assert_int_equal(emulated_calls(EMULATED_CALL_EVENT_RECORD), 3);
  assert_int_equal(emulated_calls(EMULATED_CALL_EVENT_QUERY), 1);
  assert_int_equal(emulated_calls(EMULATED_CALL_STREAM_FINISH), 1);
  assert_int_equal(emulated_calls(EMULATED_CALL_LOCATE), 0);
  assert_int_equal(emulated_calls_enqueuing(), 8);
  for (int i = 0; i < EMULATED_CALL_COUNT; i++) {
    assert_non_null(emulated_call_name((emulated_call)i));
  }
  give_all_back(
      (belongings){.events = {event}, .streams = {stream}, .memory = {memory}, .pinned = {pinned}});
  end();
}

static void stopped_streams_do_nothing_until_they_go_on(void **state) {
  (void)state;
  begin((emulated_setup){0});
  void *stream = new_stream(), *event = new_event();
  unsigned char *pinned = pinned_of(1);
  emulated_streams_stop(true);
  CHECK(device->set(pinned, 1, 1, stream));
  CHECK(device->event.record(event, stream));
  give_time();
  assert_false(is_over(event));
  assert_int_equal(pinned[0], 0);
  emulated_streams_stop(false);
  CHECK(device->stream.finish(stream));
  assert_int_equal(pinned[0], 1);
  give_all_back((belongings){.events = {event}, .streams = {stream}, .pinned = {pinned}});
  end();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(deadlock_is_told_with_names), /* forks before there are threads */
      cmocka_unit_test(what_waits_for_a_device_waits_for_all_streams),
      cmocka_unit_test(what_waits_for_a_device_does_not_wait_for_what_comes_later),
      cmocka_unit_test(held_stream_stops_those_of_its_queue),
      cmocka_unit_test(streams_for_work_have_other_queues),
      cmocka_unit_test(streams_of_one_queue_work_side_by_side),
      cmocka_unit_test(streams_take_turns_in_an_order_that_is_drawn),
      cmocka_unit_test(calls_are_counted_by_kind),
      cmocka_unit_test(stopped_streams_do_nothing_until_they_go_on),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
