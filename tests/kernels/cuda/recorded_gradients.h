/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_KERNELS_CUDA_RECORDED_GRADIENTS_H
#define LCOMM_TESTS_KERNELS_CUDA_RECORDED_GRADIENTS_H

/* Gradients that two networks had in training, of two workers each, where their files
 * are found below LCOMM_DATA, data or ../shared/data. */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { FILES = 4, POOL = 1 << 16 };

static inline bool read_gradients(const char *folder, const char *model, int worker, float *value) {
  char path[4096];
  snprintf(path, sizeof path, "%s/gradients/%s/step100_worker%d.f32", folder, model, worker);
  FILE *file = fopen(path, "rb");
  if (!file) {
    return false;
  }
  /* Behind the embeddings, most of which are 0. */
  bool read =
      fseek(file, 4 * 400000, SEEK_SET) == 0 && fread(value, sizeof *value, POOL, file) == POOL;
  fclose(file);
  return read;
}

/* Fill arrays of POOL values each. False where not all files are there; the arrays hold
 * anything then. */
static inline bool find_gradients(float *const pool[FILES]) {
  const char *folders[] = {getenv("LCOMM_DATA"), "data", "../shared/data"};
  for (size_t f = 0; f < sizeof(folders) / sizeof(folders[0]); f++) {
    bool all = folders[f] != NULL;
    for (int p = 0; all && p < FILES; p++) {
      all = read_gradients(folders[f], p < 2 ? "gpt" : "cnn", p % 2, pool[p]);
    }
    if (all) {
      return true;
    }
  }
  return false;
}

#endif
