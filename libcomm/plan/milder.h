/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_PLAN_MILDER_H
#define LCOMM_PLAN_MILDER_H

/* Which codec is milder than another: where a tensor goes whose results are too far from the exact
 * sums.
 *
 *   topk -> int4 -> int8 -> bf16 -> none     fp8e4m3, fp8e5m2 -> int8     fp16 -> bf16
 *   sign -> int2 -> int4
 *
 * auto:topk, auto:lowrank -> auto:sign -> auto:int2 -> auto:int4 -> auto:int8 -> auto:bf16
 *   -> auto:lossless
 *
 * int2, int4 and int8 take error feedback along where the policy's codec has it, unless momentum=
 * is kept, which goes with that of top-k alone; bf16 and none have none. +zstd goes along to all
 * but none. Blocks and rounding are those that the codec has by itself.
 */

#include <stddef.h>

#include "libcomm/plan/policy.h"

/* The codec `rungs` steps milder than `codec`; rungs 0 is itself. False where the ladder has no
 * such step, and *choice is none then. */
bool lcomm_milder_codec(const lcomm_codec_spec *codec, unsigned rungs, bool momentum,
                        lcomm_codec_spec *choice);

/* "topk:0.01 -> int4-ef -> int8 -> bf16 -> none"; returns text. */
const char *lcomm_milder_text(const lcomm_codec_spec *codec, bool momentum, char *text,
                              size_t size);

/* Of data that has the codec `net` between nodes, by net= or a pattern, and `node` inside them: the
 * one of the farthest links of a job, `net` with several nodes, else `node`. A view. */
const lcomm_codec_spec *lcomm_farthest_codec(const lcomm_codec_spec *net,
                                             const lcomm_codec_spec *node, int nodes);

/* The two codecs of data that travels by `choice` there. With none everything is exact. */
void lcomm_codecs_soften(lcomm_codec_spec *net, lcomm_codec_spec *node, int nodes,
                         const lcomm_codec_spec *choice);

#endif
