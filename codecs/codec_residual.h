/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_CODECS_CODEC_RESIDUAL_H
#define LCOMM_CODECS_CODEC_RESIDUAL_H

/* Error feedback for dense codecs (Seide et al. 2014; Karimireddy et al. 2019):
 * what a step did not send is added to the next one. Each function is one pass
 * over memory: it works through pieces that stay in the first-level cache.
 *
 * Rule for values that are not finite, so that one bad step cannot poison the
 * residual for ever: where the accumulated value or its decoded form is NaN
 * or Inf, the residual keeps the accumulated value if that is finite and
 * becomes 0 if it is not.
 */

#include "codecs/codec.h"

/* acc = source + residual; payload = Q(acc); residual = acc - decoded.
 * `source` and `residual` point at element range.first. */
void lcomm_residual_encode(const lcomm_format *format, const lcomm_kernels *kernels,
                           const float *source, float *residual, lcomm_range range, uint64_t seed,
                           uint8_t *payload);

/* payload = Q(source); residual += weight * (source - decoded). The owner of a
 * sum keeps the error of its re-quantisation in its own residual; weight
 * undoes a scale that was applied to the sum. */
void lcomm_residual_encode_owner(const lcomm_format *format, const lcomm_kernels *kernels,
                                 const float *source, float *residual, float weight,
                                 lcomm_range range, uint64_t seed, uint8_t *payload);

/* values += residual; residual = 0: the rank that keeps its own part
 * unquantised hands its residual over in full. */
void lcomm_residual_fold(const lcomm_kernels *kernels, float *values, float *residual, uint64_t n);

/* Scale `n` values down to an L2 norm of at most `norm`; NaN and Inf are left
 * as they are. */
void lcomm_residual_clip(const lcomm_kernels *kernels, float *values, uint64_t n, double norm);

#endif
