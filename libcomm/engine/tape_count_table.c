/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* A device that does nothing and counts what is put into its streams. */

#include <stdlib.h>

#include "libcomm/engine/tape_count_internal.h"

/* Where memory of the device would be, and events: nobody reads or writes there. */
static const uintptr_t THERE = (uintptr_t)3 << 44;

/* ------------------------------------------------------------------ kernels */

static int launch(void *stream) {
  ((lcomm_counting_stream *)stream)->calls->launches++;
  return 0;
}

static int encode(const lcomm_cuda_encode *a, void *stream) {
  (void)a;
  return launch(stream);
}

static int sum(const lcomm_cuda_sum *a, void *stream) {
  (void)a;
  return launch(stream);
}

static int combine(const lcomm_cuda_combine *a, void *stream) {
  (void)a;
  return launch(stream);
}

static int encode_list(const lcomm_cuda_encode *list, uint32_t count, void *stream) {
  (void)list;
  return count > 0 ? launch(stream) : 0;
}

static int decode_list(const lcomm_cuda_decode *list, uint32_t count, void *stream) {
  (void)list;
  return count > 0 ? launch(stream) : 0;
}

static int copy_list(const lcomm_cuda_copy *list, uint32_t count, void *stream) {
  (void)list;
  return count > 0 ? launch(stream) : 0;
}

static int fetch_list(const lcomm_cuda_fetch *list, uint32_t count, void *stream) {
  (void)list;
  return count > 0 ? launch(stream) : 0;
}

static int count_launches(void *stream, uint32_t count) {
  ((lcomm_counting_stream *)stream)->calls->launches += count;
  return 0;
}

static void topk_destroy(lcomm_cuda_topk *topk) {
  (void)topk;
}

static size_t topk_scratch(uint64_t entries, uint64_t size) {
  (void)entries, (void)size;
  return 0;
}

/* An encoder is the number of its outputs. */
static int encode_topk(lcomm_cuda_topk *topk, const lcomm_cuda_topk_encode *a, void *stream) {
  (void)a;
  return count_launches(stream, lcomm_cuda_topk_launches((uint32_t)(uintptr_t)topk));
}

static int add_topk(const lcomm_cuda_sparse *a, float factor, float *base, void *stream) {
  (void)factor, (void)base;
  return count_launches(stream, lcomm_cuda_topk_reads(a->size) + 1);
}

static int decode_topk_list(const lcomm_cuda_topk_decode *list, uint32_t count, float factor,
                            void *stream) {
  uint64_t most = 0;
  bool places = false, commits = false;
  (void)factor;
  for (uint32_t i = 0; i < count; i++) {
    uint64_t sent = list[i].residual ? list[i].sent.size : 0;
    most = list[i].payload.size > most ? list[i].payload.size : most;
    most = sent > most ? sent : most;
    places |= list[i].payload.payload != NULL;
    commits |= list[i].residual != NULL;
  }
  return count_launches(stream, lcomm_cuda_topk_reads(most) + 2 * places + commits);
}

static int add_topk_list(const lcomm_cuda_sparse *list, uint32_t count, float factor, float *base,
                         void *stream) {
  uint64_t most = 0;
  (void)factor, (void)base;
  for (uint32_t i = 0; i < count; i++) {
    most = list[i].size > most ? list[i].size : most;
  }
  return count_launches(stream, lcomm_cuda_topk_reads(most) + count);
}

static int decode_topk(const lcomm_cuda_sparse *a, float factor, float *base, void *stream) {
  return launch(stream) + add_topk(a, factor, base, stream);
}

static int commit_topk(const lcomm_cuda_sparse *sent, const lcomm_cuda_sparse *applied,
                       float *residual, void *stream) {
  (void)residual;
  return count_launches(stream, lcomm_cuda_topk_reads(sent->size) + 1 +
                                    (applied ? lcomm_cuda_topk_reads(applied->size) + 1 : 0));
}

static int fold(float *values, const float *before, float *residual, uint64_t n, void *stream) {
  (void)values, (void)before, (void)residual, (void)n;
  return launch(stream);
}

static int momentum(float factor, const float *before, float *momentum, float *gradient, uint64_t n,
                    void *stream) {
  (void)factor, (void)before, (void)momentum, (void)gradient, (void)n;
  return launch(stream);
}

static int count_floats(const float *source, uint64_t n, uint64_t *found, void *stream) {
  (void)source, (void)n, (void)found;
  return launch(stream);
}

static int count_doubles(const double *source, uint64_t n, uint64_t *found, void *stream) {
  (void)source, (void)n, (void)found;
  return launch(stream);
}

/* ------------------------------------------------------------------ streams */

static int copy(void *destination, const void *source, size_t size, void *stream) {
  (void)destination, (void)source, (void)size;
  ((lcomm_counting_stream *)stream)->calls->copies++;
  return 0;
}

static int set(void *memory, int byte, size_t size, void *stream) {
  (void)memory, (void)byte, (void)size;
  ((lcomm_counting_stream *)stream)->calls->copies++;
  return 0;
}

static int record(void *event, void *stream) {
  (void)event;
  ((lcomm_counting_stream *)stream)->calls->events++;
  return 0;
}

static int wait(void *stream, void *event) {
  (void)event;
  ((lcomm_counting_stream *)stream)->calls->events++;
  return 0;
}

static int numbers(void *stream, const lcomm_device_number *list, uint32_t count) {
  (void)list, (void)count;
  ((lcomm_counting_stream *)stream)->calls->numbers++;
  return 0;
}

static int gates(void *stream, const lcomm_device_gate *list, uint32_t count) {
  (void)list, (void)count;
  ((lcomm_counting_stream *)stream)->calls->numbers++;
  return 0;
}

static int finish(void *stream) {
  (void)stream;
  return 0;
}

/* ------------------------------------------------------------ what runs own */

static int get(size_t size, void **memory) {
  (void)size;
  *memory = (void *)THERE;
  return 0;
}

static int leave(void *memory) {
  (void)memory;
  return 0;
}

static int pinned_get(size_t size, void **memory) {
  *memory = calloc(1, size);
  return *memory ? 0 : -1;
}

static int pinned_free(void *memory) {
  free(memory);
  return 0;
}

static int create_event(bool for_processes, void **event) {
  (void)for_processes;
  *event = (void *)THERE;
  return 0;
}

static int current(int *device) {
  *device = 0;
  return 0;
}

static int use(int device) {
  (void)device;
  return 0;
}

static const char *explain(int error) {
  (void)error;
  return "no memory";
}

static const lcomm_cuda_kernels kernels = {.encode = encode,
                                           .sum = sum,
                                           .combine = combine,
                                           .encode_list = encode_list,
                                           .decode_list = decode_list,
                                           .copy_list = copy_list,
                                           .fetch_list = fetch_list,
                                           .fold = fold,
                                           .momentum = momentum,
                                           .topk_destroy = topk_destroy,
                                           .topk_scratch = topk_scratch,
                                           .topk_encode = encode_topk,
                                           .topk_decode = decode_topk,
                                           .topk_add = add_topk,
                                           .topk_decode_list = decode_topk_list,
                                           .topk_add_list = add_topk_list,
                                           .topk_commit = commit_topk,
                                           .topk_mask = commit_topk,
                                           .count_not_finite = count_floats,
                                           .count_not_finite_f64 = count_doubles};

const lcomm_device_table lcomm_counting_table = {
    .name = "counting",
    .kernels = &kernels,
    .explain = explain,
    .current = current,
    .use = use,
    .memory = {.get = get, .free = leave, .pinned_get = pinned_get, .pinned_free = pinned_free},
    .stream =
        {.destroy = leave, .finish = finish, .wait = wait, .numbers = numbers, .gates = gates},
    .event = {.create = create_event, .destroy = leave, .record = record},
    .copy = copy,
    .set = set,
};
