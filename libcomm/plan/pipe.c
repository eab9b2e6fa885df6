/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/plan/pipe.h"

#include <stdio.h>

static bool is_encoded(lcomm_dtype dtype) {
  return dtype == LCOMM_FLOAT32 || dtype == LCOMM_FLOAT16 || dtype == LCOMM_BFLOAT16;
}

bool lcomm_pipe_is_plain(const lcomm_format *format, lcomm_dtype dtype) {
  lcomm_format exact = lcomm_format_exact(dtype);
  exact.zstd = format->zstd;
  return format->codec->id == LCOMM_CODEC_NONE || lcomm_format_equal(format, &exact);
}

/* pipe=none+zstd leaves elements of 16 bits as they are. */
static lcomm_format format_for(const lcomm_policy *policy, lcomm_dtype dtype) {
  lcomm_format format = policy->pipe.format;
  if (format.codec->id == LCOMM_CODEC_NONE) {
    format = lcomm_format_exact(dtype);
    format.zstd = policy->pipe.format.zstd;
  }
  return format;
}

static bool gains(const lcomm_format *format, lcomm_dtype dtype, uint64_t count) {
  return lcomm_pipe_is_plain(format, dtype)
             ? format->zstd
             : lcomm_payload_size(format, count) < count * lcomm_dtype_size(dtype);
}

lcomm_format lcomm_pipe_format(const lcomm_policy *policy, const lcomm_topo *topo, int from, int to,
                               lcomm_dtype dtype, uint64_t count) {
  uint64_t size = count * lcomm_dtype_size(dtype);
  lcomm_format format = format_for(policy, dtype);
  bool acts = is_encoded(dtype) && topo->node[from] != topo->node[to] &&
              size >= policy->min_bytes && size >= LCOMM_PIPE_LEAST && gains(&format, dtype, count);
  return acts ? format : lcomm_format_of(&lcomm_codec_none);
}

const char *lcomm_pipe_describe(const lcomm_policy *policy, const lcomm_topo *topo, char *text,
                                size_t size) {
  char name[64];
  text[0] = '\0';
  if (policy->pipe.format.codec->id == LCOMM_CODEC_NONE && !policy->pipe.format.zstd) {
    return text;
  }
  lcomm_codec_spec_format(&policy->pipe, name, sizeof name);
  if (topo->nodes < 2) {
    snprintf(text, size, "exact: pipe=%s acts between nodes, and there is one", name);
  } else {
    snprintf(text, size, "%s between nodes, from %llu bytes on", name,
             (unsigned long long)(policy->min_bytes > LCOMM_PIPE_LEAST ? policy->min_bytes
                                                                       : LCOMM_PIPE_LEAST));
  }
  return text;
}
