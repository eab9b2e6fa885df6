/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_BACKEND_CUDA_PAYLOADS_H
#define LCOMM_ENGINE_BACKEND_CUDA_PAYLOADS_H

/* What the two files of lcomm_backend_cuda_payloads offer to each other; each function is a member
 * of that table (backend.h). */

#include "libcomm/engine/exec_internal.h"
#include "libcomm/engine/run_device.h"

lcomm_status lcomm_device_read_payload(lcomm_run *run, uint32_t slot, uint8_t **payload);

/* backend_cuda_topk.c */
lcomm_status lcomm_device_topk_encode(lcomm_run *run, const lcomm_encoding *it);
void lcomm_device_topk_sizes(lcomm_run *run, const lcomm_step *step);
lcomm_status lcomm_device_topk_decode(lcomm_run *run, uint32_t slot, lcomm_span span, float factor,
                                      float *destination);
lcomm_status lcomm_device_topk_add(lcomm_run *run, uint32_t slot, lcomm_span span, float factor,
                                   float *destination);
lcomm_status lcomm_device_topk_apply(lcomm_run *run, const lcomm_applying *it);
lcomm_status lcomm_device_topk_mask(lcomm_run *run, uint32_t sent, lcomm_span span,
                                    float *momentum);

#endif
