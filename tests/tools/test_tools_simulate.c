/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The simulator's queue of events, its links and ports, and what it reads. */

/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/unit_tests.h"
#include "tools/common/tool_cache.h"
#include "tools/simulation/simulate_study.h"

/* ----------------------------------------------------------------- events */

static void events_come_by_time_then_by_order(void **state) {
  (void)state;
  enum { COUNT = 5000 };
  simulate_events events = {0};
  simulate_event event, before = {0};
  uint32_t random = 1, seen = 0;
  for (uint32_t i = 0; i < COUNT; i++) {
    random = random * 1664525u + 1013904223u;
    simulate_events_push(&events, (simulate_event){.at = random >> 24, .rank = i});
  }
  while (simulate_events_pop(&events, &event)) {
    assert_true(event.at > before.at || (event.at == before.at && event.order >= before.order));
    before = event;
    seen++;
  }
  assert_int_equal(seen, COUNT);
  assert_false(events.broken);
  simulate_events_free(&events);
}

static void a_queue_gives_back_what_came_first(void **state) {
  (void)state;
  simulate_fifo fifo = {0};
  uint32_t item = 0, next = 0;
  for (uint32_t i = 0; i < 3000; i++) {
    assert_true(simulate_fifo_push(&fifo, i));
    if (i % 3 == 2) {
      assert_true(simulate_fifo_pop(&fifo, &item));
      assert_int_equal(item, next++);
    }
  }
  while (simulate_fifo_pop(&fifo, &item)) {
    assert_int_equal(item, next++);
  }
  assert_int_equal(next, 3000);
  simulate_fifo_free(&fifo);
}

/* ------------------------------------------------------------------ links */

/* 1 GB/s, 1 us: a byte takes 1000 ps. */
static const simulate_link plain = {.latency = 1000000, .bytes_per_s = 1e9};

static void a_message_takes_latency_and_bytes_over_rate(void **state) {
  (void)state;
  simulate_port sender = {0}, receiver = {0};
  simulate_departure left = simulate_port_send(&sender, &plain, 4096, 5000);
  assert_int_equal(left.first, 5000);
  assert_int_equal(left.last, 5000 + 4096 * 1000);
  simulate_time there = simulate_port_receive(&receiver, &plain, 4096, left.first + plain.latency);
  assert_int_equal(there, 5000 + 1000000 + 4096 * 1000);
}

static void senders_share_the_link_of_a_receiver(void **state) {
  (void)state;
  enum { SENDERS = 8, SIZE = 1000 };
  simulate_port senders[SENDERS] = {{0}}, receiver = {0};
  simulate_time last = 0;
  for (int i = 0; i < SENDERS; i++) {
    simulate_departure left = simulate_port_send(&senders[i], &plain, SIZE, 0);
    last = simulate_port_receive(&receiver, &plain, SIZE, left.first + plain.latency);
  }
  assert_int_equal(last, 1000000 + SENDERS * SIZE * 1000);
}

static void a_sender_shares_its_link_among_receivers(void **state) {
  (void)state;
  simulate_port sender = {0};
  assert_int_equal(simulate_port_send(&sender, &plain, 100, 0).last, 100 * 1000);
  simulate_departure second = simulate_port_send(&sender, &plain, 100, 0);
  assert_int_equal(second.first, 100 * 1000);
  assert_int_equal(second.last, 200 * 1000);
  assert_int_equal(sender.messages, 2);
}

static void a_link_is_full_duplex(void **state) {
  (void)state;
  simulate_port port = {0};
  simulate_departure left = simulate_port_send(&port, &plain, 1000, 0);
  assert_int_equal(simulate_port_receive(&port, &plain, 1000, 0), left.last);
}

static void packets_have_headers_on_the_wire(void **state) {
  (void)state;
  simulate_link link = plain;
  link.packet_size = 1448;
  link.packet_extra = 66;
  assert_int_equal(simulate_wire_size(&link, 1), 67);
  assert_int_equal(simulate_wire_size(&link, 1448), 1514);
  assert_int_equal(simulate_wire_size(&link, 1449), 1449 + 2 * 66);
  assert_int_equal(simulate_wire_size(&plain, 1449), 1449);
}

static void a_burst_passes_at_once_after_a_pause(void **state) {
  (void)state;
  simulate_link link = plain;
  link.burst_size = 1000;
  simulate_port port = {0}, fresh = {0};
  simulate_time now = SIMULATE_SECOND;
  assert_int_equal(simulate_port_send(&fresh, &link, 1500, 0).last, 500 * 1000);
  assert_int_equal(simulate_port_send(&port, &link, 1000, now).last, now);
  assert_int_equal(simulate_port_send(&port, &link, 500, now).last, now + 500 * 1000);
  simulate_time later = now + 700 * 1000; /* 200 bytes of the burst are there again */
  assert_int_equal(simulate_port_send(&port, &link, 300, later).last, later + 100 * 1000);
}

static void a_processor_handles_the_beginning_at_once_and_the_rest_later(void **state) {
  (void)state;
  simulate_link link = plain;
  link.message = 7;
  link.processor_ns_byte = 1;
  simulate_handling small = simulate_handling_of(&link, 100);
  assert_int_equal(small.first, 7 + 100 * 1000);
  assert_int_equal(small.rest, 0);
  simulate_handling large = simulate_handling_of(&link, 1 << 20);
  assert_int_equal(large.first + large.rest, 7 + UINT64_C(1048576) * 1000);
}

static void every_name_of_a_link_is_known(void **state) {
  (void)state;
  static const char *const between[] = {"1g",   "10g",          "25g",   "100g",
                                        "400g", "cross-region", "50mbit"};
  static const char *const inside[] = {"shm",     "pcie4",   "pcie5",   "nvlink2",
                                       "nvlink3", "nvlink4", "nvlink5", "20GB"};
  simulate_link link;
  for (size_t i = 0; i < sizeof between / sizeof *between; i++) {
    assert_true(simulate_links_between(between[i], &link));
    assert_true(link.bytes_per_s > 0);
  }
  for (size_t i = 0; i < sizeof inside / sizeof *inside; i++) {
    assert_true(simulate_links_inside(inside[i], &link));
  }
  assert_false(simulate_links_between("nvlink4", &link));
  assert_false(simulate_links_between("", &link));
  assert_false(simulate_links_between("50", &link));
}

/* ----------------------------------------------------------------- speeds */

static const char speeds_json[] =
    "{\"threads\": 2, \"codecs\": [{\"codec\": \"int8\", \"speed\": ["
    "{\"operation\": \"encode\", \"size_bytes\": 1024, \"gb_s\": {\"median\": 99}},"
    "{\"operation\": \"encode\", \"size_bytes\": 4096, \"gb_s\": {\"median\": 5},"
    " \"memcpy_gb_s\": {\"median\": 8}},"
    "{\"operation\": \"decode\", \"size_bytes\": 4096, \"gb_s\": {\"median\": 6}},"
    "{\"operation\": \"add\", \"size_bytes\": 4096, \"gb_s\": {\"median\": 7}}]}]}";

static void speeds_of_the_largest_size_are_those_in_memory(void **state) {
  (void)state;
  char why[SIMULATE_WHY_MAX];
  lcomm_why error;
  simulate_speeds speeds = simulate_speeds_built_in(SIMULATE_IN_MEMORY);
  lcomm_codec_spec int8, bf16;
  assert_int_equal(lcomm_format_parse("int8", &int8, &error), LCOMM_OK);
  assert_int_equal(lcomm_format_parse("bf16", &bf16, &error), LCOMM_OK);
  double before = simulate_speeds_of(&speeds, &bf16).encode_gb_s;
  assert_true(
      simulate_speeds_parse(speeds_json, strlen(speeds_json), SIMULATE_IN_MEMORY, &speeds, why));
  simulate_speed it = simulate_speeds_of(&speeds, &int8);
  assert_true(it.encode_gb_s == 2.5 && it.decode_gb_s == 3 && it.add_gb_s == 3.5);
  assert_true(speeds.copy_gb_s == 4);
  assert_true(simulate_speeds_of(&speeds, &bf16).encode_gb_s == before);
}

static void speeds_of_the_smallest_size_are_those_in_a_cache(void **state) {
  (void)state;
  static const char text[] =
      "{\"codecs\": [{\"codec\": \"int8\", \"speed\": ["
      "{\"operation\": \"encode\", \"size_bytes\": 4096, \"gb_s\": {\"median\": 5}},"
      "{\"operation\": \"encode\", \"size_bytes\": 1024, \"gb_s\": {\"median\": 20},"
      " \"memcpy_gb_s\": {\"median\": 30}},"
      "{\"operation\": \"encode\", \"size_bytes\": 1024, \"gb_s\": {\"median\": 25},"
      " \"memcpy_gb_s\": {\"median\": 30}},"
      "{\"operation\": \"decode\", \"size_bytes\": 4096, \"gb_s\": {\"median\": 6}}]}]}";
  char why[SIMULATE_WHY_MAX];
  lcomm_why error;
  simulate_speeds speeds = simulate_speeds_built_in(SIMULATE_IN_CACHE);
  lcomm_codec_spec int8;
  assert_int_equal(lcomm_format_parse("int8", &int8, &error), LCOMM_OK);
  assert_true(simulate_speeds_parse(text, strlen(text), SIMULATE_IN_CACHE, &speeds, why));
  simulate_speed it = simulate_speeds_of(&speeds, &int8);
  assert_true(it.encode_gb_s == 25 && it.decode_gb_s == 6 && speeds.copy_gb_s == 30);
}

static void bad_speeds_are_refused_and_change_nothing(void **state) {
  (void)state;
  static const char *const bad[] = {"",
                                    "[]",
                                    "{}",
                                    "{\"codecs\": 3}",
                                    "{\"codecs\": [{}]}",
                                    "{\"codecs\": [{\"codec\": \"int8\", \"speed\": []}]}"};
  char text[1024], why[SIMULATE_WHY_MAX];
  static simulate_speeds speeds, before;
  memset(&before, 0, sizeof before);
  before = simulate_speeds_built_in(SIMULATE_IN_MEMORY);
  speeds = before;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    why[0] = '\0';
    assert_false(simulate_speeds_parse(bad[i], strlen(bad[i]), SIMULATE_IN_MEMORY, &speeds, why));
    assert_true(why[0] != '\0');
  }
  snprintf(text, sizeof text, "%s", speeds_json);
  memcpy(strstr(text, "int8"), "int9", 4);
  assert_false(simulate_speeds_parse(text, strlen(text), SIMULATE_IN_MEMORY, &speeds, why));
  assert_int_equal(speeds.count, before.count);
  assert_true(speeds.copy_gb_s == before.copy_gb_s);
}

/* --------------------------------------------------------------- workloads */

static void a_formula_spreads_parameters_and_time(void **state) {
  (void)state;
  simulate_workload workload;
  assert_true(simulate_workload_formula(1000003, 1000, 0.3, &workload));
  uint64_t sum = 0;
  for (size_t i = 0; i < workload.count; i++) {
    assert_true(workload.tensors[i].count <= 1000 && workload.tensors[i].count > 0);
    sum += workload.tensors[i].count;
  }
  assert_int_equal(sum, 1000003);
  assert_int_equal(workload.parameters, sum);
  assert_true(simulate_seconds(simulate_workload_compute(&workload)) > 0.2999);
  assert_true(simulate_seconds(simulate_workload_compute(&workload)) < 0.3001);
  assert_true(simulate_seconds(workload.forward) < 0.1001);
  simulate_workload_free(&workload);
  assert_false(simulate_workload_formula(UINT64_C(1) << 40, 1, 0, &workload));
}

static void a_workload_is_read_in_its_order(void **state) {
  (void)state;
  static const char text[] = "{\"forward_us\": 5, \"tensors\": [{\"name\": \"b\", \"count\": 3, "
                             "\"backward_us\": 2}, {\"count\": 4}, {\"count\": 6, \"rows\": 2, "
                             "\"columns\": 3}]}";
  char why[SIMULATE_WHY_MAX];
  simulate_workload workload;
  assert_true(simulate_workload_parse(text, strlen(text), &workload, why));
  assert_int_equal(workload.count, 3);
  assert_string_equal(workload.tensors[0].name, "b");
  assert_int_equal(workload.tensors[0].rows, 0);
  assert_int_equal(workload.tensors[2].rows, 2);
  assert_int_equal(workload.tensors[2].columns, 3);
  assert_int_equal(workload.tensors[1].count, 4);
  assert_int_equal(simulate_workload_compute(&workload), 7000000);
  simulate_workload_free(&workload);
}

static void a_bad_workload_is_refused_with_a_sentence(void **state) {
  (void)state;
  static const char *const bad[] = {
      "",
      "3",
      "{}",
      "{\"tensors\": []}",
      "{\"tensors\": [3]}",
      "{\"tensors\": [{\"count\": 0}]}",
      "{\"tensors\": [{\"count\": 1.5}]}",
      "{\"tensors\": [{\"count\": -4}]}",
      "{\"tensors\": [{\"count\": 1e300}]}",
      "{\"tensors\": [{\"count\": 4, \"backward_us\": -1}]}",
      "{\"tensors\": [{\"count\": 4, \"backward_us\": 1e300}]}",
      "{\"tensors\": [{\"count\": 4, \"name\": 7}]}",
      "{\"tensors\": [{\"count\": 4, \"rows\": 4}]}",
      "{\"tensors\": [{\"count\": 4, \"rows\": 2, \"columns\": 3}]}",
      "{\"tensors\": [{\"count\": 4, \"rows\": -2, \"columns\": -2}]}",
      "{\"tensors\": [{\"count\": 3, \"rows\": 1.5, \"columns\": 2}]}",
      "{\"tensors\": [{\"count\": 4, \"rows\": \"2\", \"columns\": 2}]}",
      "{\"tensors\": [{\"count\": 17592186044416}, {\"count\": 1}]}",
      "{\"forward_us\": \"x\", \"tensors\": [{\"count\": 4}]}"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    char why[SIMULATE_WHY_MAX] = "";
    simulate_workload workload;
    assert_false(simulate_workload_parse(bad[i], strlen(bad[i]), &workload, why));
    assert_true(why[0] != '\0');
  }
}

/* Three steps of two buckets: the third begins 30 us after the second ended. */
static const char trace_text[] =
    "[\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":0,\"tid\":0,\"args\":{\"name\":\"rank 0\","
    "\"libcomm_trace\":1,\"rank\":0,\"size\":2,\"host\":\"h\",\"communicator\":1,\"process\":5,"
    "\"base_s\":3}},\n%s\n]\n";

static void put_sum(char *text, size_t size, int number, double ts, double dur, const char *name,
                    const char *more) {
  size_t used = strlen(text);
  snprintf(text + used, size - used,
           "%s{\"name\":\"all-reduce\",\"cat\":\"operation\",\"ph\":\"X\",\"ts\":%.3f,\"dur\":%.3f,"
           "\"pid\":0,\"tid\":1,\"args\":{\"bytes\":4000,\"operation\":\"all-reduce\","
           "\"number\":%d,\"tensor\":\"%s\"%s}}",
           used > 0 ? ",\n" : "", ts, dur, number, name, more);
}

static void put_operation(char *text, size_t size, int number, double ts, double dur,
                          const char *name) {
  put_sum(text, size, number, ts, dur, name, "");
}

static bool read_lines(const char *lines, simulate_workload *workload, char *why) {
  char path[] = "/tmp/simulate-trace-XXXXXX";
  int handle = mkstemp(path);
  FILE *file = fdopen(handle, "w");
  assert_non_null(file);
  fprintf(file, trace_text, lines);
  fclose(file);
  bool good = simulate_workload_read_trace(path, workload, why);
  unlink(path);
  return good;
}

static void a_trace_says_when_gradients_were_made(void **state) {
  (void)state;
  char lines[4096] = "", why[SIMULATE_WHY_MAX] = "";
  for (int step = 0; step < 3; step++) {
    put_operation(lines, sizeof lines, 4 * step + 1, 100 * step + 30, 10, "a");
    put_operation(lines, sizeof lines, 4 * step + 3, 100 * step + 50, 50, "b");
  }
  simulate_workload workload;
  if (!read_lines(lines, &workload, why)) {
    fail_msg("%s", why);
  }
  assert_int_equal(workload.count, 2);
  assert_int_equal(workload.tensors[0].count, 1000);
  assert_int_equal(workload.forward, 30 * UINT64_C(1000000));
  assert_int_equal(workload.tensors[0].backward, 0);
  assert_int_equal(workload.tensors[1].backward, 20 * UINT64_C(1000000));
  simulate_workload_free(&workload);
}

/* Two sums of factors of 1000 x 200, between others. */
static void both_sums_of_low_rank_are_one_tensor_with_a_shape(void **state) {
  (void)state;
  char lines[8192] = "", more[128], why[SIMULATE_WHY_MAX] = "";
  for (int step = 0; step < 3; step++) {
    put_operation(lines, sizeof lines, 8 * step + 1, 100 * step + 30, 10, "a");
    for (int sum = 1; sum <= 2; sum++) {
      snprintf(more, sizeof more,
               ",\"sum\":%d,\"rank\":4,\"elements\":200000,\"rows\":1000,\"columns\":200", sum);
      put_sum(lines, sizeof lines, 8 * step + 1 + 2 * sum, 100 * step + 40 + 10 * sum, 8,
              sum == 1 ? "w" : "w, second sum", more);
    }
    put_operation(lines, sizeof lines, 8 * step + 7, 100 * step + 70, 10, "b");
  }
  simulate_workload workload;
  if (!read_lines(lines, &workload, why)) {
    fail_msg("%s", why);
  }
  assert_int_equal(workload.count, 3);
  assert_string_equal(workload.tensors[1].name, "w");
  assert_int_equal(workload.tensors[1].count, 200000);
  assert_int_equal(workload.tensors[1].rows, 1000);
  assert_int_equal(workload.tensors[1].columns, 200);
  assert_int_equal(workload.tensors[1].backward, 20 * UINT64_C(1000000));
  assert_int_equal(workload.tensors[2].rows, 0);
  assert_int_equal(workload.tensors[2].backward, 20 * UINT64_C(1000000));
  simulate_workload_free(&workload);
}

/* ---------------------------------------------------------------- options */

static tool_parse parse(const char *const *words, simulate_options *made, char *error) {
  char *argv[16] = {"simulate"};
  int argc = 1;
  for (; words[argc - 1]; argc++) {
    argv[argc] = (char *)words[argc - 1];
  }
  return simulate_options_parse(argc, argv, made, error);
}

static void a_sweep_doubles(void **state) {
  (void)state;
  static simulate_options o;
  char error[TOOL_ERROR_MAX];
  static const int expected[] = {2, 4, 8, 11, 64};
  assert_int_equal(parse((const char *const[]){"--sweep", "2-11,64", NULL}, &o, error), TOOL_RUN);
  assert_int_equal(o.node_count, 5);
  assert_memory_equal(o.nodes, expected, sizeof expected);
  assert_int_equal(o.policy_count, 3);
}

static void a_cache_here_is_that_of_this_machine(void **state) {
  (void)state;
  static simulate_options o;
  char error[TOOL_ERROR_MAX];
  static const char *const words[] = {"--cache", "here", "--processors", "2", NULL};
  assert_int_equal(parse(words, &o, error), TOOL_RUN);
  assert_int_equal(o.cache_size, tool_cache_size(TOOL_CACHE_FOLDER));
}

static void bad_options_are_refused_with_a_sentence(void **state) {
  (void)state;
  static const char *const bad[][5] = {{"--nodes", "0"},
                                       {"--nodes", "100000"},
                                       {"--sweep", "8-2"},
                                       {"--sweep", "2,,4"},
                                       {"--link", "fast"},
                                       {"--link", "1e-9bit"},
                                       {"--inside", "1g "},
                                       {"--latency", "5"},
                                       {"--latency", "-5us"},
                                       {"--latency", "nan"},
                                       {"--parameters", "0"},
                                       {"--parameters", "1e30"},
                                       {"--policy", "net=int9"},
                                       {"--type", "int32"},
                                       {"--symmetry", "maybe"},
                                       {"--tokens", "5"},
                                       {"--one-machine"},
                                       {"--cache", "32M"},
                                       {"--cache", "much", "--processors", "2"},
                                       {"--fill", "--compute", "5ms"},
                                       {"--trace", "x"},
                                       {"--workload", "a", "--computation", "b"},
                                       {"word"},
                                       {"--nodes", "8192", "--ranks", "1024"}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    static simulate_options o;
    char error[TOOL_ERROR_MAX] = "";
    assert_int_equal(parse(bad[i], &o, error), TOOL_USAGE);
    assert_true(error[0] != '\0');
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(events_come_by_time_then_by_order),
    cmocka_unit_test(a_queue_gives_back_what_came_first),
    cmocka_unit_test(a_message_takes_latency_and_bytes_over_rate),
    cmocka_unit_test(senders_share_the_link_of_a_receiver),
    cmocka_unit_test(a_sender_shares_its_link_among_receivers),
    cmocka_unit_test(a_link_is_full_duplex),
    cmocka_unit_test(packets_have_headers_on_the_wire),
    cmocka_unit_test(a_burst_passes_at_once_after_a_pause),
    cmocka_unit_test(a_processor_handles_the_beginning_at_once_and_the_rest_later),
    cmocka_unit_test(every_name_of_a_link_is_known),
    cmocka_unit_test(speeds_of_the_largest_size_are_those_in_memory),
    cmocka_unit_test(speeds_of_the_smallest_size_are_those_in_a_cache),
    cmocka_unit_test(bad_speeds_are_refused_and_change_nothing),
    cmocka_unit_test(a_formula_spreads_parameters_and_time),
    cmocka_unit_test(a_workload_is_read_in_its_order),
    cmocka_unit_test(a_bad_workload_is_refused_with_a_sentence),
    cmocka_unit_test(a_trace_says_when_gradients_were_made),
    cmocka_unit_test(both_sums_of_low_rank_are_one_tensor_with_a_shape),
    cmocka_unit_test(a_sweep_doubles),
    cmocka_unit_test(a_cache_here_is_that_of_this_machine),
    cmocka_unit_test(bad_options_are_refused_with_a_sentence),
};
RUN_TESTS(tests)
