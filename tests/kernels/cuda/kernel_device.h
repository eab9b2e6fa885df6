/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_KERNELS_CUDA_KERNEL_DEVICE_H
#define LCOMM_TESTS_KERNELS_CUDA_KERNEL_DEVICE_H

/* Memory of a device for the properties of its kernels: every piece lies between
 * two guards, which are looked at when it is given back, because nothing else
 * notices what a real device writes beside it. The test that includes this says
 * how its device is opened. */

#include "tests/kernels/cuda/sum_cases.h"

#include "libcomm/device/device.h"
#include "tests/kernels/cuda/recorded_gradients.h"

enum { GUARD = 256, GUARD_BYTE = 0xa7, PIECES_MAX = 512 };

static const lcomm_device_table *device;
/* Where all work goes; a test may put another one here. */
static void *stream;
/* Elements of a long array: as many as this device is quick with. */
static uint64_t long_count;

static const lcomm_kernels *const scalar = &lcomm_kernels_scalar;
static lcomm_format formats[FORMATS_MAX];
static size_t format_count;

/* Gradients: real ones where there are any, else made. */
static float *pool[FILES];

#define CHECK(call) check(call, #call)

static inline void check(int error, const char *what) {
  if (error != 0) {
    fail_msg("%s: %s", what, device->explain(error));
  }
}

typedef struct piece {
  uint8_t *memory;
  size_t before, size;
} piece;

static piece pieces[PIECES_MAX];
static size_t piece_count;

/* Memory on the device, `shift` bytes behind a multiple of 256: a copy of `bytes`,
 * or ones where that is NULL. */
static inline void *there(const void *bytes, size_t size, size_t shift) {
  piece p = {NULL, GUARD + shift, size};
  void *memory = NULL;
  uint8_t *image = sample_memory(p.before + size + GUARD);
  memset(image, GUARD_BYTE, p.before + size + GUARD);
  if (bytes) {
    memcpy(image + p.before, bytes, size);
  } else {
    memset(image + p.before, 0xff, size);
  }
  CHECK(device->memory.get(p.before + size + GUARD, &memory));
  CHECK(device->copy(memory, image, p.before + size + GUARD, stream));
  free(image);
  p.memory = memory;
  assert_true(piece_count < PIECES_MAX);
  pieces[piece_count++] = p;
  return p.memory + p.before;
}

/* Other bytes in a piece, behind what is in the stream. */
static inline void put(void *address, const void *bytes, size_t size) {
  CHECK(device->copy(address, bytes, size, stream));
}

/* What lies on the device when all work of the stream is over. */
static inline void get(void *bytes, const void *address, size_t size) {
  CHECK(device->stream.finish(stream));
  CHECK(device->copy(bytes, address, size, stream));
  CHECK(device->stream.finish(stream));
}

static inline void expect_there(const void *address, const void *expected, size_t size,
                                const char *what) {
  void *found = sample_memory(size);
  get(found, address, size);
  if (memcmp(found, expected, size) != 0) {
    printf("%s: %zu bytes differ somewhere\n", what, size);
  }
  assert_memory_equal(found, expected, size);
  free(found);
}

/* All pieces, when nothing is to be done with them any more. */
static inline void give_back(void) {
  uint8_t guard[2 * GUARD];
  while (piece_count > 0) {
    piece p = pieces[--piece_count];
    get(guard, p.memory + p.before - GUARD, GUARD);
    get(guard + GUARD, p.memory + p.before + p.size, GUARD);
    CHECK(device->memory.free(p.memory));
    for (int i = 0; i < 2 * GUARD; i++) {
      if (guard[i] != GUARD_BYTE) {
        fail_msg("a kernel wrote %d bytes %s its memory of %zu",
                 i < GUARD ? GUARD - i : i - GUARD + 1, i < GUARD ? "before" : "behind", p.size);
      }
    }
  }
}

/* ---------------------------------------------------------------- gradients */

static inline int prepare_kernels(void **state) {
  uint64_t random = 3;
  (void)state;
  format_count = dense_formats(formats);
  for (int p = 0; p < FILES; p++) {
    pool[p] = sample_memory(POOL * sizeof **pool);
  }
  if (find_gradients(pool)) {
    return 0;
  }
  puts("# made gradients: no gradients/*/step100_worker[01].f32 below LCOMM_DATA, data or "
       "../shared/data");
  for (int p = 0; p < FILES; p++) {
    make_values(KIND_GRADIENT, pool[p], POOL, &random);
  }
  return 0;
}

static inline int forget_kernels(void **state) {
  (void)state;
  for (int p = 0; p < FILES; p++) {
    free(pool[p]);
  }
  return 0;
}

/* `n` of them, others for every turn. */
static inline const float *gradient(size_t turn, uint64_t n) {
  return pool[turn % FILES] + turn * 577 % (POOL - n);
}

static inline size_t base_size(const view *v) {
  return (size_t)v->base * sizeof(float);
}

static inline int open_stream(void **state) {
  (void)state;
  piece_count = 0;
  return device->stream.create(&stream);
}

static inline int close_stream(void **state) {
  (void)state;
  return device->stream.destroy(stream);
}

#endif
