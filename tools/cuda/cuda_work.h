/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_CUDA_CUDA_WORK_H
#define LCOMM_TOOLS_CUDA_CUDA_WORK_H

/* A case at work on all values of a fixture. */

#include "codecs/block.h"
#include "tools/cuda/cuda_case.h"
#include "tools/cuda/cuda_fixture.h"
#include "tools/cuda/cuda_topk_bench.h"

typedef struct lcomm_gpu_work {
  lcomm_gpu_fixture *fixture;
  const lcomm_gpu_case *what;
  lcomm_gpu_topk *topk; /* NULL: dense */
} lcomm_gpu_work;

/* Bring the inputs into device memory. false: the fixture's `why` says what failed;
 * destroy it all the same. */
bool lcomm_gpu_work_create(lcomm_gpu_work *work, lcomm_gpu_fixture *fixture,
                           const lcomm_gpu_case *what);
void lcomm_gpu_work_destroy(lcomm_gpu_work *work);

/* One launch on all values; 0 or an error number of the device. */
int lcomm_gpu_work_launch(lcomm_gpu_work *work);

/* Launch on poisoned memory, and compare the bytes of the first and of the last
 * values, and of some between them, with what the host's codecs make of them; top-k:
 * of all. Before any other launch.
 * false: the fixture's `why` says what differs, or what failed. */
bool lcomm_gpu_work_check(lcomm_gpu_work *work);

/* After all launches: is what they left as it should be? */
bool lcomm_gpu_work_check_end(lcomm_gpu_work *work);

/* Where a peer's payload is in device memory, and one of four byte planes. */
lcomm_cuda_code lcomm_gpu_code(const lcomm_gpu_work *work, uint32_t peer);

static inline uint8_t *lcomm_gpu_plane(const lcomm_gpu_fixture *fixture, uint32_t plane) {
  return fixture->code + plane * fixture->code_stride;
}

#endif
