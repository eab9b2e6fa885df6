/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_CODEC_CODEC_COMPARE_H
#define LCOMM_TOOLS_CODEC_CODEC_COMPARE_H

#include "tools/codec/codec_results.h"
#include "tools/codec/codec_workers.h"

/* What the options ask to be measured against another way of doing it, for the
 * codec that the workers have, in turns:
 *   --peers      dense codecs: the sum of so many payloads in one pass, against
 *                decoding the first one and adding the others one by one
 *   --baselines  top-k: encoding, against quickselect, which with error feedback
 *                also adds to a residual and takes out what it kept, but packs
 *                nothing; +zstd on none, fp16 and bf16: the exponent plane of
 *                the values by the lossless stage, against zstd level 1 in one
 *                piece (once, at the largest size)
 * MEMORY, SYSTEM. */
lcomm_status lcomm_compare_run(const lcomm_results *results, lcomm_workers *workers,
                               lcomm_result *result);

/* The lossless stage against zstd level 1, for lcomm_compare_run(); nothing for codecs whose codes
 * have no exponent plane. MEMORY, SYSTEM. */
lcomm_status lcomm_compare_zstd(const lcomm_results *results, lcomm_workers *workers,
                                lcomm_result *result);

#endif
