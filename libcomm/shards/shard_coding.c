/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* How pieces are encoded, and what that takes. */

#include <stdlib.h>

#include "libcomm/shards/shards_internal.h"

/* Bytes of an entry of top-k, about: a value and a packed position. */
static const double TOPK_ENTRY = 3;

/* Where segments end inside a piece, and which share of each is kept. */
typedef struct segments {
  uint64_t *ends;
  double *densities;
  size_t count;
} segments;

static double density_of(const lcomm_format *format, uint64_t count) {
  double density = format->density > 0 ? format->density : (double)format->kept / (double)count;
  return density < 1 ? density : 1;
}

static void cut_segments(const lcomm_shard_request *request, uint64_t first, uint64_t count,
                         segments *cut) {
  uint64_t begin = 0;
  for (size_t i = 0; i < request->segments; i++) {
    uint64_t end = request->segment_ends[i];
    uint64_t last = end < first + count ? end : first + count;
    bool inside = last > first && begin < first + count && last > begin;
    if (inside) {
      cut->ends[cut->count] = last - first;
      cut->densities[cut->count++] = density_of(&request->format, end - begin);
    }
    begin = end;
  }
}

static lcomm_status make_topk(const lcomm_shard_request *request, uint64_t first,
                              lcomm_shard_coding *coding) {
  segments cut = {.ends = calloc(request->segments, sizeof *cut.ends),
                  .densities = calloc(request->segments, sizeof *cut.densities)};
  lcomm_status status = cut.ends && cut.densities ? LCOMM_OK : LCOMM_ERR_MEMORY;
  if (status == LCOMM_OK) {
    cut_segments(request, request->first + first, coding->count, &cut);
    lcomm_topk_shape shape = {.base_count = coding->count,
                              .parts = 1,
                              .outputs = 1,
                              .format = &coding->format,
                              .segment_ends = cut.ends,
                              .segment_densities = cut.densities,
                              .segments = cut.count};
    status = lcomm_topk_create(&shape, &coding->topk);
  }
  free(cut.ends);
  free(cut.densities);
  coding->room = status == LCOMM_OK ? lcomm_topk_output_bound(coding->topk, 0) : 0;
  return status;
}

lcomm_status lcomm_shard_coding_make(const lcomm_shard_request *request, const lcomm_format *format,
                                     uint64_t first, uint64_t count, lcomm_shard_coding *coding) {
  *coding = (lcomm_shard_coding){.format = *format, .count = count};
  if (lcomm_format_is_sparse(format)) {
    return make_topk(request, first, coding);
  }
  coding->room = lcomm_payload_size(format, count);
  return LCOMM_OK;
}

lcomm_format lcomm_shard_format_between(const lcomm_comm *comm, const lcomm_shard_request *request,
                                        int rank, int owner) {
  const int *node = comm->topo.node;
  return node[rank] == node[owner] ? lcomm_format_exact(LCOMM_FLOAT32) : request->format;
}

lcomm_format lcomm_shard_format_of_results(const lcomm_comm *comm,
                                           const lcomm_shard_request *request) {
  bool exact = comm->topo.nodes == 1 || request->exact_results;
  return exact ? lcomm_format_exact(LCOMM_FLOAT32) : request->format;
}

uint64_t lcomm_shard_bytes(const lcomm_comm *comm, const lcomm_shard_request *request) {
  lcomm_format results = lcomm_shard_format_of_results(comm, request);
  const lcomm_format *formats[2] = {&request->format, &results};
  double bytes = 0;
  for (int i = 0; i < 2; i++) {
    bool sparse = lcomm_format_is_sparse(formats[i]);
    bytes += sparse ? density_of(formats[i], request->count) * TOPK_ENTRY * (double)request->count
                    : (double)lcomm_payload_size(formats[i], request->count);
  }
  return (uint64_t)bytes;
}

void lcomm_shard_decode(const lcomm_comm *comm, const lcomm_format *format, uint64_t count,
                        const uint8_t *payload, float *values) {
  if (lcomm_format_is_sparse(format)) {
    lcomm_topk_decode(format, payload, count, 1, 0, 1.0f, values);
  } else {
    lcomm_decode(format, comm->kernels, payload, lcomm_range_whole(count), 1.0f, values);
  }
}
