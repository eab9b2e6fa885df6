/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_TOOLS_CPU_DEVICE_H
#define LCOMM_TESTS_TOOLS_CPU_DEVICE_H

/* A device table for tests of tools that measure devices: memory is the host's, all
 * is done at once, and kernels are the codecs' own; only what cuda_bench calls is
 * there. It can be made to fail. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "codecs/codec_topk.h"
#include "libcomm/device/device.h"

/* What goes wrong; 0: nothing. */
typedef struct cpu_device_trouble {
  size_t flip;        /* encode changes this byte of its codes, counted from 1 */
  bool hangs;         /* encode has no end */
  bool lost;          /* with launch_error: nothing works from then on */
  size_t memory_left; /* bytes that memory_get still gives; SIZE_MAX: any */
  int launch_error;   /* of encode, after so many good calls: */
  size_t good_launches;
  size_t short_topk; /* entries that top-k leaves out */
} cpu_device_trouble;

static cpu_device_trouble cpu_trouble;
static bool cpu_is_lost;
static size_t cpu_blocks; /* of memory that are not given back */

static int cpu_count(int *count) {
  *count = 1;
  return 0;
}

static const char *cpu_explain(int error) {
  return error == 2 ? "out of memory" : "the test wants it so";
}

static int cpu_facts(int device, lcomm_device_facts *facts) {
  (void)device;
  *facts = (lcomm_device_facts){.name = "a processor", .major = 9, .memory_size = 1 << 30};
  return 0;
}

static int cpu_version(int *driver, int *runtime) {
  *driver = *runtime = 13000;
  return 0;
}

static int cpu_use(int device) {
  return device == 0 ? 0 : 101;
}

static int cpu_memory_get(size_t size, void **memory) {
  if (size > cpu_trouble.memory_left) {
    return 2;
  }
  if (cpu_trouble.memory_left != SIZE_MAX) {
    cpu_trouble.memory_left -= size;
  }
  *memory = aligned_alloc(256, (size + 255) / 256 * 256);
  cpu_blocks++;
  return 0;
}

static int cpu_memory_free(void *memory) {
  free(memory);
  cpu_blocks--;
  return 0;
}

static int cpu_stream_create(void **stream) {
  *stream = NULL;
  return 0;
}

static int cpu_stream(void *stream) {
  (void)stream;
  return 0;
}

static int cpu_copy(void *destination, const void *source, size_t size, void *stream) {
  (void)stream;
  memcpy(destination, source, size);
  return 0;
}

static int cpu_set(void *memory, int byte, size_t size, void *stream) {
  (void)stream;
  if (cpu_is_lost) {
    return cpu_trouble.launch_error;
  }
  memset(memory, byte, size);
  return 0;
}

/* ----------------------------------------------------------------- kernels */

static int cpu_encode(const lcomm_cuda_encode *a, void *stream) {
  const lcomm_kernels *k = &lcomm_kernels_scalar;
  const lcomm_cuda_code *c = &a->code;
  (void)stream;
  if (a->parts != 1 || a->feedback != LCOMM_CUDA_FEEDBACK_NONE) {
    return 1;
  }
  if (c->kind == LCOMM_CUDA_F16) {
    k->half.f32_to_f16(a->source, 1.0f, c->code, a->n);
  } else if (c->kind == LCOMM_CUDA_BF16) {
    k->half.f32_to_bf16(a->source, c->code, a->n);
  } else if (c->kind == LCOMM_CUDA_E4M3) {
    k->f32_to_fp8[LCOMM_E4M3](a->source, c->block, c->code, c->scale, a->n);
  } else if (c->kind == LCOMM_CUDA_INT8) {
    k->f32_to_int8(a->source, c->block, c->code, c->scale, a->n);
  } else {
    return 1;
  }
  if (cpu_trouble.flip > 0 && cpu_trouble.flip <= a->n) {
    ((uint8_t *)c->code)[cpu_trouble.flip - 1] ^= 1;
  }
  if (cpu_trouble.good_launches > 0) {
    cpu_trouble.good_launches--;
    return 0;
  }
  cpu_is_lost = cpu_trouble.lost;
  while (cpu_trouble.hangs) {
    pause();
  }
  return cpu_trouble.launch_error;
}

static void cpu_add(const lcomm_cuda_code *c, float *destination, uint64_t n) {
  const lcomm_kernels *k = &lcomm_kernels_scalar;
  if (c->kind == LCOMM_CUDA_F16) {
    k->half.f16_add(c->code, 1.0f, destination, n);
  } else if (c->kind == LCOMM_CUDA_BF16) {
    k->half.bf16_add(c->code, 1.0f, destination, n);
  } else if (c->kind == LCOMM_CUDA_E4M3) {
    k->fp8_add[LCOMM_E4M3](c->code, c->scale, c->block, 1.0f, destination, n);
  } else {
    k->int8_add(c->code, c->scale, c->block, 1.0f, destination, n);
  }
}

static void cpu_decode(const lcomm_cuda_code *c, float *destination, uint64_t n) {
  const lcomm_kernels *k = &lcomm_kernels_scalar;
  if (c->kind == LCOMM_CUDA_F32) {
    memmove(destination, c->code, n * sizeof(float));
  } else if (c->kind == LCOMM_CUDA_F16) {
    k->half.f16_to_f32(c->code, 1.0f, destination, n);
  } else if (c->kind == LCOMM_CUDA_BF16) {
    k->half.bf16_to_f32(c->code, 1.0f, destination, n);
  } else if (c->kind == LCOMM_CUDA_E4M3) {
    k->fp8_to_f32[LCOMM_E4M3](c->code, c->scale, c->block, 1.0f, destination, n);
  } else {
    k->int8_to_f32(c->code, c->scale, c->block, 1.0f, destination, n);
  }
}

static int cpu_sum(const lcomm_cuda_sum *a, void *stream) {
  (void)stream;
  cpu_decode(&a->sources[0], a->destination, a->n);
  for (uint32_t i = 1; i < a->count; i++) {
    cpu_add(&a->sources[i], a->destination, a->n);
  }
  return 0;
}

static int cpu_split(unsigned width, const uint8_t *source, uint8_t *const *plane, uint64_t n,
                     void *stream) {
  (void)stream;
  if (width != 4) {
    return 1;
  }
  lcomm_kernels_scalar.planes.split4(source, plane, n);
  return 0;
}

/* ------------------------------------------------------------------- top-k */

struct lcomm_cuda_topk {
  lcomm_topk *topk;
};

static size_t cpu_topk_size(const lcomm_cuda_topk_shape *shape) {
  return shape->base_count;
}

static lcomm_cuda_topk *cpu_topk_create(const lcomm_cuda_topk_shape *shape, void *memory,
                                        void *stream) {
  lcomm_format format = lcomm_format_of(&lcomm_codec_topk);
  uint64_t kept = shape->segment_kept[0] - cpu_trouble.short_topk;
  double density = (double)kept / (double)shape->segment_count[0];
  lcomm_topk_shape made = {.base_count = shape->base_count,
                           .parts = shape->parts,
                           .part = shape->part,
                           .outputs = shape->outputs,
                           .format = &format,
                           .segment_ends = &shape->base_count,
                           .segment_densities = &density,
                           .segments = 1};
  lcomm_cuda_topk *topk = malloc(sizeof *topk);
  (void)memory;
  (void)stream;
  if (topk && lcomm_topk_create(&made, &topk->topk) == LCOMM_OK) {
    return topk;
  }
  free(topk);
  return NULL;
}

static void cpu_topk_destroy(lcomm_cuda_topk *topk) {
  lcomm_topk_destroy(topk->topk);
  free(topk);
}

static int cpu_topk_encode(lcomm_cuda_topk *topk, const lcomm_cuda_topk_encode *a, void *stream) {
  size_t size = 0;
  (void)stream;
  lcomm_topk_encode(topk->topk, &lcomm_kernels_scalar, a->base, a->residual, a->residual,
                    LCOMM_TOPK_RELEASE, a->payload, &size);
  a->payload_size[0] = size;
  return 0;
}

static const lcomm_cuda_kernels cpu_kernels = {.encode = cpu_encode,
                                               .sum = cpu_sum,
                                               .split = cpu_split,
                                               .topk_size = cpu_topk_size,
                                               .topk_create = cpu_topk_create,
                                               .topk_destroy = cpu_topk_destroy,
                                               .topk_encode = cpu_topk_encode};

static const lcomm_device_table cpu_device = {
    .name = "cpu",
    .kernels = &cpu_kernels,
    .count = cpu_count,
    .explain = cpu_explain,
    .facts = cpu_facts,
    .version = cpu_version,
    .use = cpu_use,
    .memory = {.get = cpu_memory_get,
               .free = cpu_memory_free,
               .pinned_get = cpu_memory_get,
               .pinned_free = cpu_memory_free},
    .stream = {.create = cpu_stream_create, .destroy = cpu_stream, .finish = cpu_stream},
    .copy = cpu_copy,
    .set = cpu_set};

#endif
