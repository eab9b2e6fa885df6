/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* lcomm_topk_encode and lcomm_topk_encode_owner on a device. About fifteen launches,
 * one of which is a pass over the view; the rest have to do with candidates. */

#include <string.h>

#include "kernels/cuda/cuda_grid.cuh"

#include "kernels/cuda/cuda_topk_tables.cuh"

/* A bf16 error needs no other value: collecting leaves it while the value is at
 * hand. An int8 error is known when its block has been written. */
static void set_rest(lcomm_topk_job *job, const lcomm_cuda_topk *topk,
                     const lcomm_cuda_topk_encode *a) {
  if (!a->residual) {
    return;
  }
  if (a->owner) {
    job->rest = LCOMM_TOPK_REST_OWNER;
    return;
  }
  job->accumulated = a->residual;
  job->before = a->before ? a->before : a->residual;
  if (a->hold) {
    return;
  }
  job->early = !topk->int8;
  job->rest = topk->int8 ? LCOMM_TOPK_REST_SENT : LCOMM_TOPK_REST_DONE;
}

extern "C" int lcomm_cuda_run_topk_encode(lcomm_cuda_topk *topk, const lcomm_cuda_topk_encode *a,
                                          void *stream) {
  lcomm_topk_job job;
  memset(&job, 0, sizeof job);
  job.base = a->base;
  job.residual = a->residual;
  job.weight = a->weight;
  job.payload = a->payload;
  job.payload_size = a->payload_size;
  set_rest(&job, topk, a);
  int error = lcomm_cuda_topk_sample(topk, &job, stream);
  if (error == 0) {
    error = lcomm_cuda_topk_collect(topk, &job, stream);
  }
  if (error == 0) {
    error = lcomm_cuda_topk_search(topk, &job, stream);
  }
  if (error == 0) {
    error = lcomm_cuda_topk_choose(topk, &job, stream);
  }
  return error != 0 ? error : lcomm_cuda_topk_write(topk, &job, stream);
}
