/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_TRAINER_CUDA_BACKEND_PAIR_H
#define LCOMM_TESTS_TRAINER_CUDA_BACKEND_PAIR_H

/* The trainer's two back ends side by side, that of CUDA on an emulated device. Included by tests
 * after cmocka.h. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/emulated/emulated_device.h"
#include "tests/support/emulated/emulated_trainer.h"
#include "trainer/train_backend.h"
#include "trainer/train_random.h"

static const backend *cpu, *cuda;

static inline int open_stored(precision_kind stored) {
  static const emulated_setup setup = {.devices = 1, .seed = 3, .pause_us_max = 20};
  const char *why = NULL;
  emulated_begin(&setup);
  cpu = backend_cpu();
  cuda = emulated_trainer_open(5, stored, &why);
  return cuda ? 0 : -1;
}

static inline int open_both(void **state) {
  (void)state;
  return open_stored(PRECISION_FP32);
}

/* All memory but the scratch of the back end was given back. */
static inline int close_both(void **state) {
  (void)state;
  emulated_trainer_close();
  return emulated_end() <= 1 ? 0 : -1;
}

static inline void *there(const void *values, size_t size) {
  void *made = cuda->get(size ? size : 1);
  assert_non_null(made);
  cuda->write(made, values, size);
  return made;
}

static inline element *elements(const float *values, size_t count) {
  element *made = cuda->get(count * cuda->element_size + 1);
  assert_non_null(made);
  cuda->store(made, values, count);
  return made;
}

static inline float *random_values(uint64_t seed, size_t count) {
  float *made = test_malloc((count + 1) * sizeof *made);
  random_stream random = random_begin(seed, 0);
  for (size_t i = 0; i < count; i++) {
    made[i] = random_between(&random, -1.0f, 1.0f);
  }
  return made;
}

static inline void expect_within(const float *values, const float *read, size_t count, double share,
                                 const char *what) {
  double largest = 1e-3;
  for (size_t i = 0; i < count; i++) {
    largest = fmax(largest, fabs((double)values[i]));
  }
  for (size_t i = 0; i < count; i++) {
    if (!(fabs((double)values[i] - (double)read[i]) <= share * largest)) {
      fail_msg("%s: value %zu of %zu is %.9g on the processor, %.9g on the device", what, i, count,
               (double)values[i], (double)read[i]);
    }
  }
}

/* They agree within rounding: `share` of the largest value. */
static inline void expect_close(const float *values, const float *device, size_t count,
                                double share, const char *what) {
  float *read = test_malloc((count + 1) * sizeof *read);
  cuda->read(read, device, count * sizeof *read);
  assert_null(cuda->finish());
  expect_within(values, read, count, share, what);
  test_free(read);
}

static inline void expect_elements(const float *values, const element *device, size_t count,
                                   double share, const char *what) {
  float *read = test_malloc((count + 1) * sizeof *read);
  cuda->load(read, device, count);
  assert_null(cuda->finish());
  expect_within(values, read, count, share, what);
  test_free(read);
}

static inline void expect_equal(const void *values, const void *device, size_t size,
                                const char *what) {
  void *read = test_malloc(size + 1);
  cuda->read(read, device, size);
  assert_null(cuda->finish());
  if (memcmp(values, read, size) != 0) {
    fail_msg("%s: the bits differ", what);
  }
  test_free(read);
}

#endif
