/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_CODEC_CODEC_OWNERS_H
#define LCOMM_TOOLS_CODEC_CODEC_OWNERS_H

/* What a rank computes in a sum by top-k whose vector several ranks own in parts: with error
 * feedback it encodes one payload for each owner, without it encodes each part as its owner does;
 * it decodes and adds the payloads of all parts. One thread at a time, in the standard
 * floating-point environment. */

#include "libcomm/plan/policy.h"

enum { LCOMM_OWNERS_MAX = 64 };

typedef struct lcomm_owners lcomm_owners;

/* ARGUMENT when the codec is not sparse, has a lossless stage or cannot work on so many values, or
 * when there are more than LCOMM_OWNERS_MAX; MEMORY. Free with lcomm_owners_destroy (NULL ok). */
lcomm_status lcomm_owners_create(const lcomm_codec_spec *choice, uint64_t count, uint32_t parts,
                                 lcomm_owners **owners);
void lcomm_owners_destroy(lcomm_owners *owners);

/* These allocate nothing. */
void lcomm_owners_encode(lcomm_owners *owners, const lcomm_kernels *kernels, const float *source);

/* What was encoded last: destination = value, or destination += value. */
void lcomm_owners_decode(const lcomm_owners *owners, float *destination);
void lcomm_owners_add(const lcomm_owners *owners, float *destination);

#endif
