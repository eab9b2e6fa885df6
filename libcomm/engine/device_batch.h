/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_DEVICE_BATCH_H
#define LCOMM_ENGINE_DEVICE_BATCH_H

/* What the computations of a group (sched/lane_group.h) put on a device, in few calls: payloads
 * that lie side by side, there and in pinned memory, cross as one copy, others in one launch;
 * encodes, decodes and copies are launches for many, and payloads of top-k are read together. While
 * a batch is open, backend_cuda_payloads.c, backend_cuda_topk.c and backend_cuda_vectors.c add to
 * it; it is put into the run's stream in this order: payloads that come from the host or from
 * peers, launches, sums of top-k last, payloads that go to the host. So members are to be
 * independent of each other. */

#include "libcomm/engine/run_device.h"

enum { LCOMM_DEVICE_BATCH_SLOTS = LCOMM_CUDA_SOURCES_MAX };

/* Slots whose payloads cross. */
typedef struct lcomm_device_crossing {
  uint32_t slots[LCOMM_DEVICE_BATCH_SLOTS];
  uint32_t count;
} lcomm_device_crossing;

typedef struct lcomm_device_batch {
  bool is_open;
  lcomm_device_crossing in, out;
  lcomm_cuda_encode encodes[LCOMM_CUDA_LIST_MAX];
  lcomm_cuda_decode decodes[LCOMM_CUDA_LIST_MAX];
  lcomm_cuda_copy copies[LCOMM_CUDA_LIST_MAX];
  lcomm_cuda_fetch fetches[LCOMM_CUDA_LIST_MAX];
  uint32_t encode_count, decode_count, copy_count, fetch_count;
  /* Payloads of top-k: into places of their own, times one factor; to what is at `base`, likewise.
   */
  lcomm_cuda_topk_decode places[LCOMM_CUDA_LIST_MAX];
  lcomm_cuda_sparse summands[LCOMM_CUDA_LIST_MAX];
  uint32_t place_count, summand_count;
  uint32_t payload_count, commit_count; /* of both, those that were sent among them; of places */
  float factor, *base;
} lcomm_device_batch;

static inline bool lcomm_device_batch_is_open(const lcomm_run *run) {
  return run->device->batch && run->device->batch->is_open;
}

/* Of a run that has a batch. SYSTEM: the device refused, and the communicator has failed. */
void lcomm_device_batch_open(lcomm_run *run);
lcomm_status lcomm_device_batch_close(lcomm_run *run);

/* Of an open batch: the payload of a slot comes from the host, or goes there. */
lcomm_status lcomm_device_batch_in(lcomm_run *run, uint32_t slot);
lcomm_status lcomm_device_batch_out(lcomm_run *run, uint32_t slot);

/* Launches of an open batch. */
lcomm_status lcomm_device_batch_encode(lcomm_run *run, const lcomm_cuda_encode *it);
lcomm_status lcomm_device_batch_decode(lcomm_run *run, const lcomm_cuda_decode *it);
lcomm_status lcomm_device_batch_copy(lcomm_run *run, void *to, const void *from, size_t size);
lcomm_status lcomm_device_batch_fetch(lcomm_run *run, const lcomm_cuda_fetch *it);

/* Payloads of top-k, into the view of an array, or added to it. The batch gives them scratch, and
 * positions their place. */
lcomm_status lcomm_device_batch_place(lcomm_run *run, const lcomm_cuda_topk_decode *it,
                                      float factor);
lcomm_status lcomm_device_batch_summand(lcomm_run *run, const lcomm_cuda_sparse *it, float factor,
                                        float *base);

/* What was added so far is put into the stream; nothing where no batch is open. */
lcomm_status lcomm_device_batch_flush(lcomm_run *run);

/* Do the payloads of two slots cross as one, with what lies between? */
bool lcomm_device_batch_is_row(const lcomm_run *run, uint32_t slot, uint32_t next);

#endif
