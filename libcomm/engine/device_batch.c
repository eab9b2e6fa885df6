/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/engine/device_batch.h"

/* Between payloads of slots that follow each other lie their headers, and room for short ones. */
enum { GAP_MAX = LCOMM_REMOTE_INLINE_SIZE + 128 };

static lcomm_status check(lcomm_run *run, int error) {
  return lcomm_run_device_check(run, "a computation", error);
}

/* ---------------------------------------------------------------- crossings */

static uint8_t *here(const lcomm_run *run, uint32_t slot) {
  return run->slots[slot].own_payload;
}

static uint8_t *there(const lcomm_run *run, uint32_t slot) {
  return run->device->slots[slot].payload;
}

/* Only slots that follow each other: else what lies between is a payload of another one. */
bool lcomm_device_batch_is_row(const lcomm_run *run, uint32_t slot, uint32_t next) {
  if (next != slot + 1 || here(run, next) < here(run, slot)) {
    return false;
  }
  size_t apart = (size_t)(here(run, next) - here(run, slot));
  size_t size = run->slots[slot].capacity;
  return there(run, slot) + apart == there(run, next) && apart >= size && apart - size <= GAP_MAX;
}

static void sort(lcomm_device_crossing *it) {
  for (uint32_t i = 1; i < it->count; i++) {
    uint32_t slot = it->slots[i], k = i;
    for (; k > 0 && it->slots[k - 1] > slot; k--) {
      it->slots[k] = it->slots[k - 1];
    }
    it->slots[k] = slot;
  }
}

static lcomm_cuda_copy row_of(const lcomm_run *run, uint32_t first, uint32_t last, bool comes) {
  return (lcomm_cuda_copy){.from = comes ? here(run, first) : there(run, first),
                           .to = comes ? there(run, first) : here(run, first),
                           .size = (size_t)(here(run, last) - here(run, first)) +
                                   run->slots[last].payload_size};
}

/* One row is a copy; several, which have other bytes between them, are one launch. */
static int put_rows(const lcomm_run_device *device, const lcomm_cuda_copy *rows, uint32_t count) {
  return count == 1 ? device->table->copy(rows->to, rows->from, rows->size, device->stream)
                    : device->table->kernels->copy_list(rows, count, device->stream);
}

static lcomm_status put_crossing(lcomm_run *run, lcomm_device_crossing *it, bool comes) {
  lcomm_cuda_copy rows[LCOMM_CUDA_LIST_MAX];
  uint32_t count = 0;
  int error = 0;
  sort(it);
  for (uint32_t i = 0; i < it->count && error == 0;) {
    uint32_t first = i++;
    while (i < it->count && lcomm_device_batch_is_row(run, it->slots[i - 1], it->slots[i])) {
      i++;
    }
    rows[count++] = row_of(run, it->slots[first], it->slots[i - 1], comes);
    if (count == LCOMM_CUDA_LIST_MAX || i == it->count) {
      error = put_rows(run->device, rows, count);
      count = 0;
    }
  }
  it->count = 0;
  return lcomm_run_device_check(run, "a copy", error);
}

static lcomm_status add_slot(lcomm_run *run, lcomm_device_crossing *it, uint32_t slot) {
  if (it->count == LCOMM_DEVICE_BATCH_SLOTS) {
    LCOMM_TRY(lcomm_device_batch_flush(run));
  }
  it->slots[it->count++] = slot;
  return LCOMM_OK;
}

lcomm_status lcomm_device_batch_in(lcomm_run *run, uint32_t slot) {
  return add_slot(run, &run->device->batch->in, slot);
}

lcomm_status lcomm_device_batch_out(lcomm_run *run, uint32_t slot) {
  return add_slot(run, &run->device->batch->out, slot);
}

/* ----------------------------------------------------------------- launches */

static bool is_alike(const lcomm_cuda_encode *a, const lcomm_cuda_encode *b) {
  return a->code.kind == b->code.kind && a->feedback == b->feedback;
}

lcomm_status lcomm_device_batch_encode(lcomm_run *run, const lcomm_cuda_encode *it) {
  lcomm_device_batch *batch = run->device->batch;
  if (it->n == 0) {
    return LCOMM_OK;
  }
  if (batch->encode_count == LCOMM_CUDA_LIST_MAX ||
      (batch->encode_count > 0 && !is_alike(&batch->encodes[0], it))) {
    LCOMM_TRY(lcomm_device_batch_flush(run));
  }
  batch->encodes[batch->encode_count++] = *it;
  return LCOMM_OK;
}

lcomm_status lcomm_device_batch_decode(lcomm_run *run, const lcomm_cuda_decode *it) {
  lcomm_device_batch *batch = run->device->batch;
  if (it->n == 0) {
    return LCOMM_OK;
  }
  if (batch->decode_count == LCOMM_CUDA_LIST_MAX ||
      (batch->decode_count > 0 && batch->decodes[0].code.kind != it->code.kind)) {
    LCOMM_TRY(lcomm_device_batch_flush(run));
  }
  batch->decodes[batch->decode_count++] = *it;
  return LCOMM_OK;
}

lcomm_status lcomm_device_batch_copy(lcomm_run *run, void *to, const void *from, size_t size) {
  lcomm_device_batch *batch = run->device->batch;
  if (batch->copy_count == LCOMM_CUDA_LIST_MAX) {
    LCOMM_TRY(lcomm_device_batch_flush(run));
  }
  batch->copies[batch->copy_count++] = (lcomm_cuda_copy){from, to, size};
  return LCOMM_OK;
}

lcomm_status lcomm_device_batch_fetch(lcomm_run *run, const lcomm_cuda_fetch *it) {
  lcomm_device_batch *batch = run->device->batch;
  if (batch->fetch_count == LCOMM_CUDA_LIST_MAX) {
    LCOMM_TRY(lcomm_device_batch_flush(run));
  }
  batch->fetches[batch->fetch_count++] = *it;
  return LCOMM_OK;
}

/* ------------------------------------------------------------- top-k's launches */

/* Scratch for so many payloads more, and positions of so many that are applied? */
static bool has_room(const lcomm_run *run, uint32_t payloads, uint32_t commits) {
  const lcomm_sparse_scratch *sparse = &run->device->sparse;
  const lcomm_device_batch *batch = run->device->batch;
  return batch->payload_count + payloads <= sparse->count &&
         batch->commit_count + commits <= sparse->commits;
}

static void *take_scratch(const lcomm_run *run) {
  const lcomm_run_device *device = run->device;
  size_t taken = device->batch->payload_count++;
  return (uint8_t *)device->sparse.together[device->lane] + taken * device->sparse.size;
}

static uint32_t *take_positions(const lcomm_run *run) {
  const lcomm_sparse_scratch *sparse = &run->device->sparse;
  size_t taken = run->device->batch->commit_count++;
  return (uint32_t *)(void *)(sparse->positions + taken * sparse->positions_size);
}

static bool has_topk(const lcomm_device_batch *batch) {
  return batch->place_count + batch->summand_count > 0;
}

lcomm_status lcomm_device_batch_place(lcomm_run *run, const lcomm_cuda_topk_decode *it,
                                      float factor) {
  lcomm_device_batch *batch = run->device->batch;
  bool fits = !has_topk(batch) || (batch->factor == factor && batch->summand_count == 0);
  bool applies = it->payload.payload, commits = it->residual;
  fits = fits && has_room(run, (uint32_t)applies + commits, commits);
  LCOMM_TRY(fits ? LCOMM_OK : lcomm_device_batch_flush(run));
  LCOMM_ASSERT(has_room(run, (uint32_t)applies + commits, commits));
  lcomm_cuda_topk_decode *place = &batch->places[batch->place_count++];
  *place = *it;
  place->payload.scratch = applies ? take_scratch(run) : NULL;
  place->sent.scratch = commits ? take_scratch(run) : NULL;
  place->positions = commits ? take_positions(run) : NULL;
  batch->factor = factor;
  return LCOMM_OK;
}

lcomm_status lcomm_device_batch_summand(lcomm_run *run, const lcomm_cuda_sparse *it, float factor,
                                        float *base) {
  lcomm_device_batch *batch = run->device->batch;
  bool fits = !has_topk(batch) ||
              (batch->factor == factor && (batch->summand_count == 0 || batch->base == base));
  LCOMM_TRY(fits && has_room(run, 1, 0) ? LCOMM_OK : lcomm_device_batch_flush(run));
  batch->summands[batch->summand_count] = *it;
  batch->summands[batch->summand_count].scratch = take_scratch(run);
  batch->factor = factor;
  batch->base = base;
  batch->summand_count++;
  return LCOMM_OK;
}

static void empty_topk(lcomm_device_batch *batch) {
  batch->place_count = batch->summand_count = batch->payload_count = batch->commit_count = 0;
}

static lcomm_status launch_topk(lcomm_run *run) {
  const lcomm_run_device *device = run->device;
  const lcomm_cuda_kernels *kernels = device->table->kernels;
  lcomm_device_batch *batch = device->batch;
  uint32_t places = batch->place_count, summands = batch->summand_count;
  empty_topk(batch);
  if (places > 0) {
    LCOMM_TRY(check(
        run, kernels->topk_decode_list(batch->places, places, batch->factor, device->stream)));
  }
  return summands == 0 ? LCOMM_OK
                       : check(run, kernels->topk_add_list(batch->summands, summands, batch->factor,
                                                           batch->base, device->stream));
}

/* --------------------------------------------------------------- all together */

static lcomm_status launch(lcomm_run *run) {
  const lcomm_run_device *device = run->device;
  const lcomm_cuda_kernels *kernels = device->table->kernels;
  lcomm_device_batch *batch = device->batch;
  uint32_t encodes = batch->encode_count, decodes = batch->decode_count, copies = batch->copy_count;
  uint32_t fetches = batch->fetch_count;
  batch->encode_count = batch->decode_count = batch->copy_count = batch->fetch_count = 0;
  LCOMM_TRY(check(run, kernels->fetch_list(batch->fetches, fetches, device->stream)));
  LCOMM_TRY(check(run, kernels->encode_list(batch->encodes, encodes, device->stream)));
  LCOMM_TRY(check(run, kernels->decode_list(batch->decodes, decodes, device->stream)));
  LCOMM_TRY(check(run, kernels->copy_list(batch->copies, copies, device->stream)));
  return launch_topk(run);
}

lcomm_status lcomm_device_batch_flush(lcomm_run *run) {
  if (!lcomm_device_batch_is_open(run)) {
    return LCOMM_OK;
  }
  LCOMM_TRY(put_crossing(run, &run->device->batch->in, true));
  LCOMM_TRY(launch(run));
  return put_crossing(run, &run->device->batch->out, false);
}

/* ------------------------------------------------------------ begin and end */

void lcomm_device_batch_open(lcomm_run *run) {
  lcomm_device_batch *batch = run->device->batch;
  batch->in.count = batch->out.count = 0;
  batch->encode_count = batch->decode_count = batch->copy_count = batch->fetch_count = 0;
  empty_topk(batch);
  batch->is_open = true;
}

lcomm_status lcomm_device_batch_close(lcomm_run *run) {
  lcomm_status status = lcomm_device_batch_flush(run);
  run->device->batch->is_open = false;
  return status;
}
