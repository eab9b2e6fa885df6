/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_CODECS_CODEC_RESIDUAL_H
#define LCOMM_CODECS_CODEC_RESIDUAL_H

/* Error feedback for dense codecs (Seide et al. 2014; Karimireddy et al. 2019):
 * what a step did not send is added to the next one. Each function is one pass
 * over memory: it works through pieces that stay in the first-level cache.
 *
 * Rule for values that are not finite, so that one bad step cannot poison the
 * residual for ever: it becomes 0 where the accumulated value is NaN or Inf, and
 * where its decoded form is Inf, since what overflows once would overflow in every
 * later step; where the decoded form is NaN, because another value of the block is not
 * finite, it keeps the accumulated value in full.
 */

#include "codecs/codec.h"

/* acc = source + before; payload = Q(acc); residual = acc - decoded. `before` is the residual of
 * the step before: the same array, or another one, which stays as it is.
 * `source`, `before` and `residual` point at element range.first. */
void lcomm_residual_encode(const lcomm_format *format, const lcomm_kernels *kernels,
                           const float *source, const float *before, float *residual,
                           lcomm_range range, uint64_t seed, uint8_t *payload);

/* payload = Q(source); residual += weight * (source - decoded). The owner of a
 * sum keeps the error of its re-quantisation in its own residual; weight
 * undoes a scale that was applied to the sum. */
void lcomm_residual_encode_owner(const lcomm_format *format, const lcomm_kernels *kernels,
                                 const float *source, float *residual, float weight,
                                 lcomm_range range, uint64_t seed, uint8_t *payload);

/* values += before; residual = 0: the rank that keeps its own part
 * unquantised hands its residual over in full. `before` as above. */
void lcomm_residual_fold(const lcomm_kernels *kernels, float *values, const float *before,
                         float *residual, uint64_t n);

#endif
