/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_CUDA_CUDA_TOPK_BENCH_H
#define LCOMM_TOOLS_CUDA_CUDA_TOPK_BENCH_H

/* The largest 1 % of a fixture's first values with error feedback, as bf16, in one
 * payload at the begin of the fixture's codes. */

#include "tools/cuda/cuda_fixture.h"

typedef struct lcomm_gpu_topk lcomm_gpu_topk;

/* The residual becomes 0. false: the fixture's `why` says what failed, *topk is NULL. */
bool lcomm_gpu_topk_create(lcomm_gpu_fixture *fixture, uint64_t count, lcomm_gpu_topk **topk);
void lcomm_gpu_topk_destroy(lcomm_gpu_topk *topk); /* NULL ok */

/* One step; 0 or an error number of the device. */
int lcomm_gpu_topk_launch(lcomm_gpu_topk *topk);

/* Some steps of the first values, then of all where these are not more than the
 * host can be asked to hold, byte by byte against the host's: payloads and residuals.
 * The residual is 0 afterwards. */
bool lcomm_gpu_topk_check(lcomm_gpu_topk *topk);

/* Is the payload of the last step one of all values, with as many entries as were
 * to be kept? */
bool lcomm_gpu_topk_check_payload(lcomm_gpu_topk *topk);

#endif
