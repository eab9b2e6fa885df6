/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/codec/codec_owners.h"

#include <stdlib.h>

#include "codecs/codec_topk.h"
#include "tools/common/tool_pages.h"

struct lcomm_owners {
  lcomm_format format;
  uint64_t count;
  uint32_t parts;
  lcomm_topk *whole;                  /* with error feedback: of one rank, for all owners */
  lcomm_topk *view[LCOMM_OWNERS_MAX]; /* without: of each owner */
  float *residual;                    /* NULL: none */
  uint8_t *payload[LCOMM_OWNERS_MAX];
  size_t bound[LCOMM_OWNERS_MAX], size[LCOMM_OWNERS_MAX];
};

static lcomm_status make(lcomm_owners *it, uint32_t outputs, uint32_t part, lcomm_topk **topk) {
  lcomm_topk_shape shape = {.base_count = it->count,
                            .parts = outputs > 1 ? 1 : it->parts,
                            .part = part,
                            .outputs = outputs,
                            .format = &it->format,
                            .segment_ends = &it->count,
                            .segments = 1};
  return lcomm_topk_create(&shape, topk);
}

static lcomm_status make_encoders(lcomm_owners *it, bool feeds_back) {
  lcomm_status status = LCOMM_OK;
  if (feeds_back) {
    it->residual = tool_pages_alloc((size_t)it->count * sizeof *it->residual);
    return it->residual ? make(it, it->parts, 0, &it->whole) : LCOMM_ERR_MEMORY;
  }
  for (uint32_t i = 0; status == LCOMM_OK && i < it->parts; i++) {
    status = make(it, 1, i, &it->view[i]);
  }
  return status;
}

static lcomm_status make_payloads(lcomm_owners *it) {
  for (uint32_t i = 0; i < it->parts; i++) {
    it->bound[i] =
        it->whole ? lcomm_topk_output_bound(it->whole, i) : lcomm_topk_output_bound(it->view[i], 0);
    it->payload[i] = tool_pages_alloc(it->bound[i]);
    if (!it->payload[i]) {
      return LCOMM_ERR_MEMORY;
    }
  }
  return LCOMM_OK;
}

static lcomm_status make_parts(lcomm_owners *it, bool feeds_back) {
  lcomm_status status = make_encoders(it, feeds_back);
  return status == LCOMM_OK ? make_payloads(it) : status;
}

lcomm_status lcomm_owners_create(const lcomm_codec_spec *choice, uint64_t count, uint32_t parts,
                                 lcomm_owners **owners) {
  *owners = NULL;
  if (!lcomm_format_is_sparse(&choice->format) || choice->format.zstd || parts < 2 ||
      parts > LCOMM_OWNERS_MAX || count == 0 || count > SIZE_MAX / 16) {
    return LCOMM_ERR_ARGUMENT;
  }
  lcomm_owners *made = calloc(1, sizeof *made);
  if (!made) {
    return LCOMM_ERR_MEMORY;
  }
  made->format = choice->format;
  made->count = count;
  made->parts = parts;
  lcomm_status status = make_parts(made, choice->error_feedback);
  if (status == LCOMM_OK) {
    *owners = made;
  } else {
    lcomm_owners_destroy(made);
  }
  return status;
}

void lcomm_owners_destroy(lcomm_owners *owners) {
  if (!owners) {
    return;
  }
  for (uint32_t i = 0; i < owners->parts; i++) {
    lcomm_topk_destroy(owners->view[i]);
    tool_pages_free(owners->payload[i], owners->bound[i]);
  }
  lcomm_topk_destroy(owners->whole);
  tool_pages_free(owners->residual, (size_t)owners->count * sizeof *owners->residual);
  free(owners);
}

void lcomm_owners_encode(lcomm_owners *owners, const lcomm_kernels *kernels, const float *source) {
  if (owners->whole) {
    lcomm_topk_encode(owners->whole, kernels, source, owners->residual, owners->residual,
                      LCOMM_TOPK_HOLD, owners->payload, owners->size);
    return;
  }
  for (uint32_t i = 0; i < owners->parts; i++) {
    lcomm_topk_encode_owner(owners->view[i], kernels, source, NULL, 1.0f, owners->payload[i],
                            &owners->size[i]);
  }
}

void lcomm_owners_decode(const lcomm_owners *owners, float *destination) {
  for (uint32_t i = 0; i < owners->parts; i++) {
    lcomm_topk_decode(&owners->format, owners->payload[i], owners->count, owners->parts, i, 1.0f,
                      destination);
  }
}

void lcomm_owners_add(const lcomm_owners *owners, float *destination) {
  for (uint32_t i = 0; i < owners->parts; i++) {
    lcomm_topk_add(&owners->format, owners->payload[i], owners->parts, i, 1.0f, destination);
  }
}
