/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Every target of tests/support/fuzz_targets.h over its corpus and over
 * mutations of it, the same ones in every run. A target that fails aborts. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/fuzz_targets.h"
#include "tests/support/unit_tests.h"

enum { FILES_MAX = 256, INPUT_MAX = 8192, MUTATIONS = 4000 };

typedef struct input {
  size_t size;
  uint8_t *data;
} input;

typedef struct corpus {
  size_t count;
  input inputs[FILES_MAX];
} corpus;

static input load_file(const char *folder, const char *name) {
  static uint8_t buffer[INPUT_MAX];
  char path[512];
  input loaded;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "rb");
  if (!file) {
    print_error("cannot open %s; run the tests from the root of the sources\n", path);
  }
  assert_non_null(file);
  loaded.size = fread(buffer, 1, sizeof buffer, file);
  fclose(file);
  loaded.data = malloc(loaded.size + 1);
  assert_non_null(loaded.data);
  memcpy(loaded.data, buffer, loaded.size);
  return loaded;
}

static int is_input(const struct dirent *entry) {
  return entry->d_name[0] != '.';
}

static int by_bytes(const struct dirent **a, const struct dirent **b) {
  return strcmp((*a)->d_name, (*b)->d_name);
}

static void load_corpus(const char *target, corpus *c) {
  char folder[128];
  struct dirent **names = NULL;
  snprintf(folder, sizeof folder, "tests/fuzz/corpus/%s", target);
  int count = scandir(folder, &names, is_input, by_bytes);
  if (count <= 0) {
    print_error("no corpus in %s; run the tests from the root of the sources\n", folder);
  }
  assert_in_range(count, 1, FILES_MAX);
  c->count = (size_t)count;
  for (int i = 0; i < count; i++) {
    c->inputs[i] = load_file(folder, names[i]->d_name);
    free(names[i]);
  }
  free(names);
}

static uint64_t random_state = 1;

static size_t random_below(size_t bound) {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return bound > 0 ? (size_t)(random_state >> 33) % bound : 0;
}

static uint8_t random_byte(void) {
  static const uint8_t likely[] = {0x00, 0x01, 0x1f, 0x20, 0x21, 0x7f, 0x80, 0xff,
                                   '0',  '9',  ' ',  ',',  '=',  '+',  ':',  '\n'};
  return random_below(2) == 0 ? likely[random_below(sizeof likely)] : (uint8_t)random_below(256);
}

/* Replace `cut` bytes at `at` by `length` bytes of `insert`, if it fits. */
static void splice(uint8_t *data, size_t *size, size_t at, size_t cut, const uint8_t *insert,
                   size_t length) {
  if (*size - cut + length > INPUT_MAX) {
    return;
  }
  memmove(data + at + length, data + at + cut, *size - at - cut);
  memcpy(data + at, insert, length);
  *size += length - cut;
}

static void mutate(uint8_t *data, size_t *size, const input *other) {
  size_t at = random_below(*size), left = *size - at;
  size_t from = random_below(other->size);
  uint8_t byte = random_byte();
  switch (random_below(6)) {
  case 0:
    if (left > 0) {
      data[at] ^= (uint8_t)(1u << random_below(8));
    }
    break;
  case 1:
    splice(data, size, at, left > 0, &byte, 1);
    break;
  case 2:
    splice(data, size, at, 0, &byte, 1);
    break;
  case 3:
    splice(data, size, at, random_below(left + 1), &byte, 0);
    break;
  case 4:
    splice(data, size, at, 0, other->data + from, random_below(other->size - from + 1));
    break;
  default:
    splice(data, size, at, random_below(left + 1), other->data + from,
           random_below(other->size - from + 1));
  }
}

static void run_target(const char *name) {
  static corpus c;
  static uint8_t data[INPUT_MAX];
  const lcomm_fuzz_target *target = lcomm_fuzz_targets;
  while (target->name && strcmp(target->name, name) != 0) {
    target++;
  }
  assert_non_null(target->name);
  load_corpus(name, &c);
  random_state = 1;

  target->run(NULL, 0);
  for (size_t i = 0; i < c.count; i++) {
    for (size_t size = 0; size <= c.inputs[i].size && size <= 256; size++) {
      target->run(c.inputs[i].data, size);
    }
    target->run(c.inputs[i].data, c.inputs[i].size);
  }
  for (int i = 0; i < MUTATIONS; i++) {
    const input *seed = &c.inputs[random_below(c.count)];
    size_t size = seed->size;
    memcpy(data, seed->data, size);
    for (size_t times = 1 + random_below(4); times > 0; times--) {
      mutate(data, &size, &c.inputs[random_below(c.count)]);
    }
    target->run(data, size);
  }
  for (size_t i = 0; i < c.count; i++) {
    free(c.inputs[i].data);
  }
}

static void run(void **state) {
  run_target(*state);
}

/* A property, and the target that tries to break it. */
#define PROPERTY(name, target)                                                                     \
  { name, run, NULL, NULL, (void *)(uintptr_t)target }

static const struct CMUnitTest tests[] = {
    PROPERTY("any_policy_is_read_or_refused", "policy"),
    PROPERTY("any_topology_is_read_or_refused", "topo"),
    PROPERTY("any_wire_header_is_read_or_refused", "wire"),
    PROPERTY("any_dense_payload_decodes_and_any_numbers_encode", "dense"),
    PROPERTY("all_tables_of_kernels_agree_on_any_bytes", "kernels"),
    PROPERTY("any_topk_payload_is_read_or_refused", "topk"),
    PROPERTY("any_numbers_are_encoded_as_valid_topk_payloads", "topk_encode"),
    PROPERTY("any_lossless_stream_is_read_or_refused", "lossless"),
    PROPERTY("any_saved_state_is_read_or_refused", "state"),
    PROPERTY("any_idx_file_is_read_or_refused", "idx"),
    PROPERTY("any_text_file_is_read_or_refused", "text"),
    PROPERTY("any_checkpoint_is_read_or_refused", "checkpoint"),
    PROPERTY("any_npy_file_is_read_or_refused", "npy"),
    PROPERTY("any_npz_file_is_read_or_refused", "npz"),
    PROPERTY("any_safetensors_file_is_read_or_refused", "safetensors"),
    PROPERTY("any_list_of_layers_is_read_or_refused", "meta"),
    PROPERTY("any_capture_is_read_or_refused", "capture"),
    PROPERTY("any_trace_is_read_or_refused", "trace"),
    PROPERTY("any_message_of_a_store_is_read_or_refused", "store"),
    PROPERTY("any_addresses_of_ucx_are_found_whole_or_not_at_all", "ucx_addresses"),
    PROPERTY("any_control_message_of_a_peer_is_heard_or_refused", "control"),
    PROPERTY("any_greeting_is_judged_alike_by_all_ranks", "handshake"),
    PROPERTY("any_meeting_of_a_split_comes_to_an_end", "split"),
    PROPERTY("any_process_that_shares_memory_is_believed_or_refused", "shm"),
    PROPERTY("any_handle_of_device_memory_is_believed_or_refused", "memory_handle"),
    PROPERTY("any_id_of_a_communicator_is_a_place_or_refused", "nccl_id"),
    PROPERTY("any_piece_of_a_message_between_two_ranks_is_read_or_refused", "pair_frame"),
    PROPERTY("any_header_of_a_message_between_two_ranks_is_one_or_refused", "pair_header"),
    PROPERTY("any_header_of_a_piece_is_one_or_refused", "shard_header"),
    PROPERTY("any_handshake_and_control_file_of_the_mpi_interposer_is_read_or_refused",
             "interposer"),
    PROPERTY("any_text_in_sysfs_is_read_or_nothing", "sysfs"),
    PROPERTY("any_answers_of_nvml_are_read_or_nothing", "nvml"),
    PROPERTY("any_variables_of_a_launcher_are_read_or_refused", "launcher"),
    PROPERTY("any_dialogue_with_a_store_comes_to_an_end", "dialogue"),
    PROPERTY("any_variables_of_libcomm_are_read_or_refused", "settings"),
    PROPERTY("any_file_for_the_simulator_is_read_or_refused", "simulate"),
    PROPERTY("any_experiment_is_read_or_refused_with_its_line", "experiment"),
};
RUN_TESTS(tests)
