/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/cuda/cuda_work.h"

#include "kernels/stripe.h"

_Static_assert((int)LCOMM_GPU_PEER_SHIFT % (int)LCOMM_TILE == 0, "peers begin as views do");

/* ---------------------------------------------------------------- launches */

lcomm_cuda_code lcomm_gpu_code(const lcomm_gpu_work *work, uint32_t peer) {
  const lcomm_gpu_format *format = work->what->format;
  uint8_t *payload = work->fixture->code + peer * work->fixture->code_stride;
  lcomm_cuda_code code = {.kind = format->kind, .code = payload};
  if (format->scale_size > 0) {
    code.block = lcomm_format_of(format->codec).block;
    code.scale = payload;
    code.code = payload + lcomm_block_codes(work->fixture->count, code.block, format->scale_size);
  }
  return code;
}

static int launch_encode(lcomm_gpu_work *work, uint32_t peer) {
  lcomm_gpu_fixture *fixture = work->fixture;
  lcomm_cuda_encode encode = {.source = fixture->source + peer * (uint64_t)LCOMM_GPU_PEER_SHIFT,
                              .n = fixture->count,
                              .parts = 1,
                              .code = lcomm_gpu_code(work, peer)};
  return fixture->table->kernels->encode(&encode, fixture->stream);
}

static int launch_sum(lcomm_gpu_work *work, const lcomm_cuda_code *sources, uint32_t count) {
  lcomm_gpu_fixture *fixture = work->fixture;
  lcomm_cuda_sum sum = {.sources = sources,
                        .count = count,
                        .op = LCOMM_CUDA_SUM,
                        .factor = 1.0f,
                        .destination = fixture->destination,
                        .n = fixture->count,
                        .parts = 1};
  return fixture->table->kernels->sum(&sum, fixture->stream);
}

static int launch_add(lcomm_gpu_work *work) {
  const lcomm_cuda_code sources[] = {{.kind = LCOMM_CUDA_F32, .code = work->fixture->destination},
                                     lcomm_gpu_code(work, 0)};
  return launch_sum(work, sources, 2);
}

static int launch_peers(lcomm_gpu_work *work) {
  lcomm_cuda_code sources[LCOMM_GPU_PEERS];
  for (uint32_t peer = 0; peer < LCOMM_GPU_PEERS; peer++) {
    sources[peer] = lcomm_gpu_code(work, peer);
  }
  return launch_sum(work, sources, LCOMM_GPU_PEERS);
}

static int launch_split(lcomm_gpu_work *work) {
  lcomm_gpu_fixture *fixture = work->fixture;
  uint8_t *const planes[] = {lcomm_gpu_plane(fixture, 0), lcomm_gpu_plane(fixture, 1),
                             lcomm_gpu_plane(fixture, 2), lcomm_gpu_plane(fixture, 3)};
  return fixture->table->kernels->split(4, (const uint8_t *)fixture->source, planes, fixture->count,
                                        fixture->stream);
}

int lcomm_gpu_work_launch(lcomm_gpu_work *work) {
  lcomm_cuda_code code;
  switch (work->what->operation) {
  case LCOMM_GPU_ENCODE:
    return launch_encode(work, 0);
  case LCOMM_GPU_DECODE:
    code = lcomm_gpu_code(work, 0);
    return launch_sum(work, &code, 1);
  case LCOMM_GPU_ADD:
    return launch_add(work);
  case LCOMM_GPU_SUM:
    return launch_peers(work);
  case LCOMM_GPU_TOPK:
    return lcomm_gpu_topk_launch(work->topk);
  default: /* LCOMM_GPU_SPLIT */
    return launch_split(work);
  }
}

/* ------------------------------------------------------------------ inputs */

static bool prepare(lcomm_gpu_work *work) {
  uint32_t peers = 0;
  if (work->what->operation == LCOMM_GPU_TOPK) {
    return lcomm_gpu_topk_create(work->fixture, work->fixture->count, &work->topk);
  }
  if (work->what->operation == LCOMM_GPU_SUM) {
    peers = LCOMM_GPU_PEERS;
  } else if (work->what->operation == LCOMM_GPU_DECODE || work->what->operation == LCOMM_GPU_ADD) {
    peers = 1;
  }
  for (uint32_t peer = 0; peer < peers; peer++) {
    if (!lcomm_gpu_good(work->fixture, launch_encode(work, peer), "encoding its input")) {
      return false;
    }
  }
  return lcomm_gpu_finish(work->fixture);
}

bool lcomm_gpu_work_create(lcomm_gpu_work *work, lcomm_gpu_fixture *fixture,
                           const lcomm_gpu_case *what) {
  *work = (lcomm_gpu_work){.fixture = fixture, .what = what};
  return prepare(work);
}

void lcomm_gpu_work_destroy(lcomm_gpu_work *work) {
  lcomm_gpu_topk_destroy(work->topk);
  work->topk = NULL;
}
