/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What the device made against what the host makes, byte by byte. */

#include "tools/cuda/cuda_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codecs/codec_sum.h"
#include "tools/cuda/cuda_work.h"

enum { BETWEEN = 6, BETWEEN_SAMPLE = 16 * LCOMM_GPU_PEER_SHIFT };

static uint32_t unit_at(const uint8_t *units, size_t i, size_t size) {
  uint32_t unit = 0;
  memcpy(&unit, units + i * size, size);
  return unit;
}

bool lcomm_gpu_same(lcomm_gpu_fixture *fixture, const char *what, const void *found,
                    const void *wanted, size_t count, size_t size, uint64_t first) {
  uint8_t *fetched = malloc(count * size + 1);
  if (!fetched) {
    snprintf(fixture->why, sizeof fixture->why, "the host has no memory to compare %s", what);
    return false;
  }
  bool good = lcomm_gpu_copy(fixture, fetched, found, count * size);
  if (good && memcmp(fetched, wanted, count * size) != 0) {
    size_t i = 0;
    while (unit_at(fetched, i, size) == unit_at(wanted, i, size)) {
      i++;
    }
    snprintf(fixture->why, sizeof fixture->why, "%s: number %llu is 0x%0*x, by the host 0x%0*x",
             what, (unsigned long long)(first + i), (int)(2 * size), unit_at(fetched, i, size),
             (int)(2 * size), unit_at(wanted, i, size));
    good = false;
  }
  free(fetched);
  return good;
}

/* Some neighbouring values, and what the host makes of them. */
typedef struct sample {
  lcomm_gpu_work *work;
  uint64_t first, n;
  float *values;    /* of the last peer that was encoded */
  float *result;    /* of decoding or summing */
  uint8_t *payload; /* of peers, each of n values */
  size_t stride;
} sample;

static void sample_free(sample *s) {
  free(s->values);
  free(s->result);
  free(s->payload);
}

static bool sample_make(lcomm_gpu_work *work, uint64_t first, uint64_t n, sample *s) {
  size_t stride = ((size_t)n + (size_t)n / 32 + 1024) / 8 * 8;
  *s = (sample){.work = work,
                .first = first,
                .n = n,
                .values = malloc((size_t)n * sizeof *s->values),
                .result = malloc((size_t)n * sizeof *s->result),
                .payload = malloc(LCOMM_GPU_PEERS * stride),
                .stride = stride};
  if (s->values && s->result && s->payload) {
    return true;
  }
  snprintf(work->fixture->why, sizeof work->fixture->why,
           "the host has no memory to check results");
  return false;
}

static void encode_peer(sample *s, const lcomm_format *format, uint32_t peer) {
  lcomm_gpu_fixture_values(s->work->fixture, s->first + peer * (uint64_t)LCOMM_GPU_PEER_SHIFT, s->n,
                           s->values);
  lcomm_encode(format, &lcomm_kernels_scalar, s->values, lcomm_range_whole(s->n), 0,
               s->payload + peer * s->stride);
}

static bool same_code(const sample *s) {
  const lcomm_gpu_work *work = s->work;
  const lcomm_gpu_format *format = work->what->format;
  lcomm_cuda_code code = lcomm_gpu_code(work, 0);
  const uint8_t *codes = s->payload;
  if (format->scale_size > 0) {
    size_t scales = lcomm_block_count(s->n, code.block);
    uint64_t before = s->first / code.block;
    codes += lcomm_block_codes(s->n, code.block, format->scale_size);
    if (!lcomm_gpu_same(work->fixture, "a scale",
                        (uint8_t *)code.scale + before * format->scale_size, s->payload, scales,
                        format->scale_size, before)) {
      return false;
    }
  }
  return lcomm_gpu_same(work->fixture, "a code",
                        (uint8_t *)code.code + (size_t)s->first * format->code_size, codes,
                        (size_t)s->n, format->code_size, s->first);
}

static bool same_result(const sample *s) {
  return lcomm_gpu_same(s->work->fixture, "a result", s->work->fixture->destination + s->first,
                        s->result, (size_t)s->n, sizeof(float), s->first);
}

static bool same_planes(const sample *s) {
  uint8_t *plane[4];
  bool good = true;
  for (size_t i = 0; i < 4; i++) {
    plane[i] = s->payload + i * s->stride;
  }
  lcomm_gpu_fixture_values(s->work->fixture, s->first, s->n, s->values);
  lcomm_kernels_scalar.planes.split4((const uint8_t *)s->values, plane, (size_t)s->n);
  for (uint32_t i = 0; i < 4 && good; i++) {
    good = lcomm_gpu_same(s->work->fixture, "a byte of a plane",
                          lcomm_gpu_plane(s->work->fixture, i) + s->first, plane[i], (size_t)s->n,
                          1, s->first);
  }
  return good;
}

static bool same_sum(sample *s, const lcomm_format *format) {
  lcomm_summand summands[LCOMM_GPU_PEERS];
  for (uint32_t peer = 0; peer < LCOMM_GPU_PEERS; peer++) {
    encode_peer(s, format, peer);
    summands[peer] = (lcomm_summand){.format = format, .payload = s->payload + peer * s->stride};
  }
  lcomm_sum(&lcomm_kernels_scalar, summands, LCOMM_GPU_PEERS, lcomm_range_whole(s->n), 1.0f,
            s->result);
  return same_result(s);
}

static bool same_dense(sample *s) {
  lcomm_format format = lcomm_format_of(s->work->what->format->codec);
  lcomm_range all = lcomm_range_whole(s->n);
  if (s->work->what->operation == LCOMM_GPU_SUM) {
    return same_sum(s, &format);
  }
  encode_peer(s, &format, 0);
  if (s->work->what->operation == LCOMM_GPU_ENCODE) {
    return same_code(s);
  }
  if (s->work->what->operation == LCOMM_GPU_DECODE) {
    lcomm_decode(&format, &lcomm_kernels_scalar, s->payload, all, 1.0f, s->result);
    return same_result(s);
  }
  memcpy(s->result, s->values, (size_t)s->n * sizeof *s->result);
  lcomm_accumulate(&format, &lcomm_kernels_scalar, s->payload, all, 1.0f, s->result);
  return same_result(s);
}

static bool check_sample(lcomm_gpu_work *work, uint64_t first, uint64_t n) {
  sample s = {0};
  bool good = sample_make(work, first, n, &s);
  if (good) {
    good = work->what->operation == LCOMM_GPU_SPLIT ? same_planes(&s) : same_dense(&s);
  }
  sample_free(&s);
  return good;
}

/* What a launch writes gets other bytes first; a sum in place begins with the source. */
static bool poison(lcomm_gpu_work *work) {
  lcomm_gpu_fixture *fixture = work->fixture;
  size_t size = (size_t)fixture->count * sizeof(float);
  switch (work->what->operation) {
  case LCOMM_GPU_DECODE:
  case LCOMM_GPU_SUM:
    return lcomm_gpu_set(fixture, fixture->destination, 0xff, size);
  case LCOMM_GPU_ADD:
    return lcomm_gpu_copy(fixture, fixture->destination, fixture->source, size);
  default:
    return lcomm_gpu_set(fixture, fixture->code, 0xff, LCOMM_GPU_PEERS * fixture->code_stride);
  }
}

/* Some values here and there between `first` and `last`. */
static bool check_between(lcomm_gpu_work *work, uint64_t first, uint64_t last) {
  uint64_t room = last > first ? last - first : 0;
  uint64_t stride = room / (BETWEEN + 1) / LCOMM_GPU_PEER_SHIFT * LCOMM_GPU_PEER_SHIFT;
  bool good = true;
  for (uint64_t i = 1; i <= BETWEEN && stride >= BETWEEN_SAMPLE && good; i++) {
    good = check_sample(work, first + i * stride, BETWEEN_SAMPLE);
  }
  return good;
}

bool lcomm_gpu_work_check(lcomm_gpu_work *work) {
  lcomm_gpu_fixture *fixture = work->fixture;
  uint64_t n = fixture->count < LCOMM_GPU_SAMPLE ? fixture->count : LCOMM_GPU_SAMPLE;
  uint64_t last = (fixture->count - n) / LCOMM_GPU_PEER_SHIFT * LCOMM_GPU_PEER_SHIFT;
  if (work->topk) {
    return lcomm_gpu_topk_check(work->topk);
  }
  return poison(work) && lcomm_gpu_good(fixture, lcomm_gpu_work_launch(work), "its launch") &&
         lcomm_gpu_finish(fixture) && check_sample(work, 0, n) &&
         (last == 0 || (check_sample(work, last, fixture->count - last) &&
                        check_between(work, LCOMM_GPU_SAMPLE, last)));
}

bool lcomm_gpu_work_check_end(lcomm_gpu_work *work) {
  return !work->topk || lcomm_gpu_topk_check_payload(work->topk);
}
