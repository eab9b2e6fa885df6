/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/cuda/cuda_topk_bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codecs/codec_topk.h"
#include "tools/cuda/cuda_check.h"

enum { STEPS = 3, STEPS_OF_ALL = 2 };
#define HOST_COUNT_MAX ((uint64_t)1 << 28) /* the host's copies take 13 bytes a value */

struct lcomm_gpu_topk {
  lcomm_gpu_fixture *fixture;
  lcomm_cuda_topk *encoder;
  void *memory; /* of the encoder */
  uint64_t count, kept;
  size_t bound; /* of the payload */
};

static lcomm_format format_of(void) {
  return lcomm_format_of(&lcomm_codec_topk);
}

static bool create_encoder(lcomm_gpu_topk *topk) {
  lcomm_gpu_fixture *fixture = topk->fixture;
  const lcomm_cuda_kernels *kernels = fixture->table->kernels;
  lcomm_cuda_topk_shape shape = {.base_count = topk->count,
                                 .parts = 1,
                                 .outputs = 1,
                                 .segments = 1,
                                 .segment_count = &topk->count,
                                 .segment_kept = &topk->kept,
                                 .output_capacity = &topk->kept};
  if (!lcomm_gpu_good(fixture,
                      fixture->table->memory.get(kernels->topk_size(&shape), &topk->memory),
                      "taking memory for top-k")) {
    return false;
  }
  topk->encoder = kernels->topk_create(&shape, topk->memory, fixture->stream);
  if (!topk->encoder) {
    snprintf(fixture->why, sizeof fixture->why,
             "device %d could not make an encoder for top-k of %llu", fixture->device,
             (unsigned long long)topk->count);
  }
  return topk->encoder != NULL;
}

bool lcomm_gpu_topk_create(lcomm_gpu_fixture *fixture, uint64_t count, lcomm_gpu_topk **topk) {
  lcomm_format format = format_of();
  *topk = NULL;
  lcomm_gpu_topk *made = calloc(1, sizeof *made);
  if (!made) {
    snprintf(fixture->why, sizeof fixture->why, "the host has no memory left");
    return false;
  }
  uint64_t kept = lcomm_topk_entries(format.density, count);
  *made = (lcomm_gpu_topk){.fixture = fixture,
                           .count = count,
                           .kept = kept,
                           .bound = lcomm_topk_bound(&format, kept, count)};
  if (create_encoder(made) && lcomm_gpu_set(fixture, fixture->residual, 0,
                                            (size_t)fixture->count * sizeof *fixture->residual)) {
    *topk = made;
    return true;
  }
  lcomm_gpu_topk_destroy(made);
  return false;
}

void lcomm_gpu_topk_destroy(lcomm_gpu_topk *topk) {
  if (!topk) {
    return;
  }
  if (topk->encoder) {
    topk->fixture->table->kernels->topk_destroy(topk->encoder);
  }
  if (topk->memory) {
    topk->fixture->table->memory.free(topk->memory);
  }
  free(topk);
}

int lcomm_gpu_topk_launch(lcomm_gpu_topk *topk) {
  lcomm_gpu_fixture *fixture = topk->fixture;
  uint8_t *const payload[] = {fixture->code};
  lcomm_cuda_topk_encode encode = {.base = fixture->source,
                                   .residual = fixture->residual,
                                   .payload = payload,
                                   .payload_size = fixture->pinned};
  return fixture->table->kernels->topk_encode(topk->encoder, &encode, fixture->stream);
}

/* ------------------------------------------------------------------ checks */

/* What the host makes of the same values. */
typedef struct twin {
  lcomm_topk *topk;
  float *values, *residual;
  uint8_t *payload;
  size_t size;
} twin;

static void twin_free(twin *t) {
  lcomm_topk_destroy(t->topk);
  free(t->values);
  free(t->residual);
  free(t->payload);
}

static bool twin_make(const lcomm_gpu_topk *topk, twin *t) {
  lcomm_format format = format_of();
  lcomm_topk_shape shape = {.base_count = topk->count,
                            .parts = 1,
                            .outputs = 1,
                            .format = &format,
                            .segment_ends = &topk->count,
                            .segments = 1};
  *t = (twin){.values = malloc((size_t)topk->count * sizeof *t->values),
              .residual = calloc((size_t)topk->count, sizeof *t->residual),
              .payload = malloc(topk->bound)};
  if (!t->values || !t->residual || !t->payload ||
      lcomm_topk_create(&shape, &t->topk) != LCOMM_OK) {
    snprintf(topk->fixture->why, sizeof topk->fixture->why,
             "the host has no memory for a second top-k");
    return false;
  }
  lcomm_gpu_fixture_values(topk->fixture, 0, topk->count, t->values);
  return true;
}

static bool same_step(lcomm_gpu_topk *topk, twin *t) {
  lcomm_gpu_fixture *fixture = topk->fixture;
  *fixture->pinned = 0;
  if (!lcomm_gpu_set(fixture, fixture->code, 0xff, topk->bound) ||
      !lcomm_gpu_good(fixture, lcomm_gpu_topk_launch(topk), "top-k") ||
      !lcomm_gpu_finish(fixture)) {
    return false;
  }
  lcomm_topk_encode(t->topk, &lcomm_kernels_scalar, t->values, t->residual, t->residual,
                    LCOMM_TOPK_RELEASE, &t->payload, &t->size);
  if (*fixture->pinned != t->size) {
    snprintf(fixture->why, sizeof fixture->why, "top-k: a payload of %llu bytes, by the host %zu",
             (unsigned long long)*fixture->pinned, t->size);
    return false;
  }
  return lcomm_gpu_same(fixture, "the payload of top-k", fixture->code, t->payload, t->size, 1,
                        0) &&
         lcomm_gpu_same(fixture, "the residual of top-k", fixture->residual, t->residual,
                        (size_t)topk->count, sizeof(float), 0);
}

static bool same_steps(lcomm_gpu_topk *topk, int steps) {
  lcomm_gpu_fixture *fixture = topk->fixture;
  twin t = {0};
  bool good = twin_make(topk, &t);
  for (int step = 0; step < steps && good; step++) {
    good = same_step(topk, &t);
  }
  twin_free(&t);
  return good && lcomm_gpu_set(fixture, fixture->residual, 0,
                               (size_t)topk->count * sizeof *fixture->residual);
}

bool lcomm_gpu_topk_check(lcomm_gpu_topk *topk) {
  lcomm_gpu_topk *first = NULL;
  if (topk->count <= LCOMM_GPU_SAMPLE) {
    return same_steps(topk, STEPS);
  }
  bool good = lcomm_gpu_topk_create(topk->fixture, LCOMM_GPU_SAMPLE, &first) &&
              same_steps(first, STEPS) &&
              (topk->count > HOST_COUNT_MAX || same_steps(topk, STEPS_OF_ALL));
  lcomm_gpu_topk_destroy(first);
  return good;
}

bool lcomm_gpu_topk_check_payload(lcomm_gpu_topk *topk) {
  lcomm_gpu_fixture *fixture = topk->fixture;
  lcomm_format format = format_of();
  uint64_t size = *fixture->pinned, entries = 0;
  uint8_t *payload = size <= topk->bound ? malloc((size_t)size + 1) : NULL;
  bool good = payload != NULL && lcomm_gpu_copy(fixture, payload, fixture->code, (size_t)size);
  if (good &&
      (lcomm_topk_check(&format, payload, (size_t)size, topk->count, &entries) != LCOMM_OK ||
       entries != topk->kept)) {
    good = false;
  }
  if (!good && fixture->why[0] == '\0') {
    snprintf(fixture->why, sizeof fixture->why,
             "top-k: after all launches no payload of %llu entries but %llu bytes with %llu",
             (unsigned long long)topk->kept, (unsigned long long)size, (unsigned long long)entries);
  }
  free(payload);
  return good;
}
