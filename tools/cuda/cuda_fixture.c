/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/cuda/cuda_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/codec/codec_synthetic.h"
#include "tools/common/tool_units.h"

enum { PIECE = 4 << 20 }; /* values made and sent at a time */

bool lcomm_gpu_good(lcomm_gpu_bed *bed, int error, const char *doing) {
  if (error == 0) {
    return true;
  }
  snprintf(bed->why, sizeof bed->why, "device %d (%s) failed at %s: %s", bed->device,
           bed->facts.name[0] != '\0' ? bed->facts.name : bed->table->name, doing,
           bed->table->explain(error));
  return false;
}

bool lcomm_gpu_finish(lcomm_gpu_bed *bed) {
  return lcomm_gpu_good(bed, bed->table->stream_finish(bed->stream), "waiting for its work");
}

bool lcomm_gpu_copy(lcomm_gpu_bed *bed, void *destination, const void *source, size_t size) {
  return lcomm_gpu_good(bed, bed->table->copy(destination, source, size, bed->stream), "copying") &&
         lcomm_gpu_finish(bed);
}

bool lcomm_gpu_set(lcomm_gpu_bed *bed, void *memory, int byte, size_t size) {
  return lcomm_gpu_good(bed, bed->table->set(memory, byte, size, bed->stream), "setting memory") &&
         lcomm_gpu_finish(bed);
}

/* ------------------------------------------------------------------ values */

static uint64_t source_count(const lcomm_gpu_bed *bed) {
  return bed->count + LCOMM_GPU_PEERS * LCOMM_GPU_PEER_SHIFT;
}

void lcomm_gpu_bed_values(const lcomm_gpu_bed *bed, uint64_t first, uint64_t n, float *values) {
  lcomm_synthetic normal = {.kind = LCOMM_SYNTHETIC_NORMAL, .seed = 1, .count = source_count(bed)};
  lcomm_synthetic_fill(&normal, 0, normal.count, first, n, values);
}

static bool fill_source(lcomm_gpu_bed *bed) {
  float *values = malloc(PIECE * sizeof *values);
  bool good = values != NULL;
  if (!good) {
    snprintf(bed->why, sizeof bed->why, "the host has no memory for %d values", PIECE);
  }
  uint64_t n = 0;
  for (uint64_t first = 0; good && first < source_count(bed); first += n) {
    n = source_count(bed) - first < PIECE ? source_count(bed) - first : PIECE;
    lcomm_gpu_bed_values(bed, first, n, values);
    good = lcomm_gpu_copy(bed, bed->source + first, values, (size_t)n * sizeof *values);
  }
  free(values);
  return good;
}

/* What is copied are the values, too: a device may move zeros faster. */
static bool fill_copy_source(lcomm_gpu_bed *bed) {
  size_t all = (size_t)source_count(bed) * sizeof(float), size = 0;
  bool good = true;
  for (size_t first = 0; good && first < bed->copy_size; first += size) {
    size = bed->copy_size - first < all ? bed->copy_size - first : all;
    good = lcomm_gpu_copy(bed, bed->copy_source + first, bed->source, size);
  }
  return good;
}

/* ------------------------------------------------------------------ memory */

static bool take(lcomm_gpu_bed *bed, size_t size, void **memory) {
  char asked[LCOMM_UNITS_TEXT_MAX], all[LCOMM_UNITS_TEXT_MAX];
  int error = bed->table->memory_get(size, memory);
  if (error == 0) {
    return true;
  }
  *memory = NULL;
  snprintf(bed->why, sizeof bed->why,
           "device %d (%s, %s) has no %s left: %s; a smaller -n needs less", bed->device,
           bed->facts.name, lcomm_units_bytes(bed->facts.memory_size, all),
           lcomm_units_bytes(size, asked), bed->table->explain(error));
  return false;
}

static bool take_floats(lcomm_gpu_bed *bed, uint64_t count, float **memory) {
  void *taken = NULL;
  bool good = take(bed, (size_t)count * sizeof(float), &taken);
  *memory = taken;
  return good;
}

static bool take_bytes(lcomm_gpu_bed *bed, size_t size, uint8_t **memory) {
  void *taken = NULL;
  bool good = take(bed, size, &taken);
  *memory = taken;
  return good;
}

static bool take_all(lcomm_gpu_bed *bed) {
  /* 8 bits and a float32 for each block of 128, and room for padding */
  bed->code_stride = ((size_t)bed->count + (size_t)bed->count / 32 + 1024) / 256 * 256;
  return take_floats(bed, source_count(bed), &bed->source) &&
         take_floats(bed, bed->count, &bed->residual) &&
         take_floats(bed, bed->count, &bed->destination) &&
         take_bytes(bed, LCOMM_GPU_PEERS * bed->code_stride, &bed->code) &&
         take_bytes(bed, bed->copy_size, &bed->copy_source) &&
         take_bytes(bed, bed->copy_size, &bed->copy_destination);
}

static bool is_device(lcomm_gpu_bed *bed) {
  int devices = 0;
  if (!lcomm_gpu_good(bed, bed->table->count(&devices), "counting devices")) {
    return false;
  }
  if (bed->device < devices) {
    return true;
  }
  snprintf(bed->why, sizeof bed->why, "there is no device %d: %s has %d, counted from 0",
           bed->device, bed->table->name, devices);
  return false;
}

bool lcomm_gpu_bed_open(lcomm_gpu_bed *bed, const lcomm_device_table *table, int device,
                        uint64_t count, size_t copy_size) {
  *bed = (lcomm_gpu_bed){.table = table, .device = device, .count = count, .copy_size = copy_size};
  void *pinned = NULL;
  if (!is_device(bed) || !lcomm_gpu_good(bed, table->facts(device, &bed->facts), "its facts") ||
      !lcomm_gpu_good(bed, table->use(device), "its first use") ||
      !lcomm_gpu_good(bed, table->stream_create(&bed->stream), "making a stream") ||
      !lcomm_gpu_good(bed, table->pinned_get(sizeof *bed->pinned, &pinned), "pinning memory")) {
    return false;
  }
  bed->pinned = pinned;
  return take_all(bed) && fill_source(bed) && fill_copy_source(bed);
}

void lcomm_gpu_bed_close(lcomm_gpu_bed *bed) {
  void *const memory[] = {bed->source, bed->residual,    bed->destination,
                          bed->code,   bed->copy_source, bed->copy_destination};
  for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) {
    if (memory[i]) {
      bed->table->memory_free(memory[i]);
    }
  }
  if (bed->pinned) {
    bed->table->pinned_free(bed->pinned);
  }
  if (bed->stream) {
    bed->table->stream_destroy(bed->stream);
  }
  bed->source = bed->residual = bed->destination = NULL;
  bed->code = bed->copy_source = bed->copy_destination = NULL;
  bed->pinned = NULL;
  bed->stream = NULL;
}
