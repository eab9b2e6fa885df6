/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/cuda/cuda_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/codec/codec_synthetic.h"
#include "tools/common/tool_units.h"

enum { PIECE = 4 << 20 }; /* values made and sent at a time */

bool lcomm_gpu_good(lcomm_gpu_fixture *fixture, int error, const char *doing) {
  if (error == 0) {
    return true;
  }
  snprintf(fixture->why, sizeof fixture->why, "device %d (%s) failed at %s: %s", fixture->device,
           fixture->facts.name[0] != '\0' ? fixture->facts.name : fixture->table->name, doing,
           fixture->table->explain(error));
  return false;
}

bool lcomm_gpu_finish(lcomm_gpu_fixture *fixture) {
  return lcomm_gpu_good(fixture, fixture->table->stream.finish(fixture->stream),
                        "waiting for its work");
}

bool lcomm_gpu_copy(lcomm_gpu_fixture *fixture, void *destination, const void *source,
                    size_t size) {
  return lcomm_gpu_good(fixture, fixture->table->copy(destination, source, size, fixture->stream),
                        "copying") &&
         lcomm_gpu_finish(fixture);
}

bool lcomm_gpu_set(lcomm_gpu_fixture *fixture, void *memory, int byte, size_t size) {
  return lcomm_gpu_good(fixture, fixture->table->set(memory, byte, size, fixture->stream),
                        "setting memory") &&
         lcomm_gpu_finish(fixture);
}

/* ------------------------------------------------------------------ values */

static uint64_t source_count(const lcomm_gpu_fixture *fixture) {
  return fixture->count + LCOMM_GPU_PEERS * LCOMM_GPU_PEER_SHIFT;
}

void lcomm_gpu_fixture_values(const lcomm_gpu_fixture *fixture, uint64_t first, uint64_t n,
                              float *values) {
  lcomm_synthetic normal = {
      .kind = LCOMM_SYNTHETIC_NORMAL, .seed = 1, .count = source_count(fixture)};
  lcomm_synthetic_fill(&normal, 0, normal.count, first, n, values);
}

static bool fill_source(lcomm_gpu_fixture *fixture) {
  float *values = malloc(PIECE * sizeof *values);
  bool good = values != NULL;
  if (!good) {
    snprintf(fixture->why, sizeof fixture->why, "the host has no memory for %d values", PIECE);
  }
  uint64_t n = 0;
  for (uint64_t first = 0; good && first < source_count(fixture); first += n) {
    n = source_count(fixture) - first < PIECE ? source_count(fixture) - first : PIECE;
    lcomm_gpu_fixture_values(fixture, first, n, values);
    good = lcomm_gpu_copy(fixture, fixture->source + first, values, (size_t)n * sizeof *values);
  }
  free(values);
  return good;
}

/* What is copied are the values, too: a device may move zeros faster. */
static bool fill_copy_source(lcomm_gpu_fixture *fixture) {
  size_t all = (size_t)source_count(fixture) * sizeof(float), size = 0;
  bool good = true;
  for (size_t first = 0; good && first < fixture->copy_size; first += size) {
    size = fixture->copy_size - first < all ? fixture->copy_size - first : all;
    good = lcomm_gpu_copy(fixture, fixture->copy_source + first, fixture->source, size);
  }
  return good;
}

/* ------------------------------------------------------------------ memory */

static bool take(lcomm_gpu_fixture *fixture, size_t size, void **memory) {
  char asked[TOOL_UNITS_TEXT_MAX], all[TOOL_UNITS_TEXT_MAX];
  int error = fixture->table->memory.get(size, memory);
  if (error == 0) {
    return true;
  }
  *memory = NULL;
  snprintf(fixture->why, sizeof fixture->why,
           "device %d (%s, %s) has no %s left: %s; a smaller -n needs less", fixture->device,
           fixture->facts.name, tool_units_bytes(fixture->facts.memory_size, all),
           tool_units_bytes(size, asked), fixture->table->explain(error));
  return false;
}

static bool take_floats(lcomm_gpu_fixture *fixture, uint64_t count, float **memory) {
  void *taken = NULL;
  bool good = take(fixture, (size_t)count * sizeof(float), &taken);
  *memory = taken;
  return good;
}

static bool take_bytes(lcomm_gpu_fixture *fixture, size_t size, uint8_t **memory) {
  void *taken = NULL;
  bool good = take(fixture, size, &taken);
  *memory = taken;
  return good;
}

static bool take_all(lcomm_gpu_fixture *fixture) {
  /* 8 bits and a float32 for each block of 128, and room for padding */
  fixture->code_stride = ((size_t)fixture->count + (size_t)fixture->count / 32 + 1024) / 256 * 256;
  return take_floats(fixture, source_count(fixture), &fixture->source) &&
         take_floats(fixture, fixture->count, &fixture->residual) &&
         take_floats(fixture, fixture->count, &fixture->destination) &&
         take_bytes(fixture, LCOMM_GPU_PEERS * fixture->code_stride, &fixture->code) &&
         take_bytes(fixture, fixture->copy_size, &fixture->copy_source) &&
         take_bytes(fixture, fixture->copy_size, &fixture->copy_destination);
}

static bool is_device(lcomm_gpu_fixture *fixture) {
  int devices = 0;
  if (!lcomm_gpu_good(fixture, fixture->table->count(&devices), "counting devices")) {
    return false;
  }
  if (fixture->device < devices) {
    return true;
  }
  snprintf(fixture->why, sizeof fixture->why, "there is no device %d: %s has %d, counted from 0",
           fixture->device, fixture->table->name, devices);
  return false;
}

bool lcomm_gpu_fixture_open(lcomm_gpu_fixture *fixture, const lcomm_device_table *table, int device,
                            uint64_t count, size_t copy_size) {
  *fixture =
      (lcomm_gpu_fixture){.table = table, .device = device, .count = count, .copy_size = copy_size};
  void *pinned = NULL;
  if (!is_device(fixture) ||
      !lcomm_gpu_good(fixture, table->facts(device, &fixture->facts), "its facts") ||
      !lcomm_gpu_good(fixture, table->use(device), "its first use") ||
      !lcomm_gpu_good(fixture, table->stream.create(&fixture->stream), "making a stream") ||
      !lcomm_gpu_good(fixture, table->memory.pinned_get(sizeof *fixture->pinned, &pinned),
                      "pinning memory")) {
    return false;
  }
  fixture->pinned = pinned;
  return take_all(fixture) && fill_source(fixture) && fill_copy_source(fixture);
}

void lcomm_gpu_fixture_close(lcomm_gpu_fixture *fixture) {
  void *const memory[] = {fixture->source, fixture->residual,    fixture->destination,
                          fixture->code,   fixture->copy_source, fixture->copy_destination};
  for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) {
    if (memory[i]) {
      fixture->table->memory.free(memory[i]);
    }
  }
  if (fixture->pinned) {
    fixture->table->memory.pinned_free(fixture->pinned);
  }
  if (fixture->stream) {
    fixture->table->stream.destroy(fixture->stream);
  }
  fixture->source = fixture->residual = fixture->destination = NULL;
  fixture->code = fixture->copy_source = fixture->copy_destination = NULL;
  fixture->pinned = NULL;
  fixture->stream = NULL;
}
