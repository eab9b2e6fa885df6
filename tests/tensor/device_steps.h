/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_TENSOR_DEVICE_STEPS_H
#define LCOMM_TESTS_TENSOR_DEVICE_STEPS_H

/* Properties of tensors on a device, and of calls in order with streams. */

#include "tests/engine/on_device.h"

enum { TENSORS = 4, STEPS = 6, LARGEST = 12000 };

static const uint64_t tensor_counts[TENSORS] = {LARGEST, 700, 5000, 33};

typedef struct twin {
  lcomm_comm *comm;
  lcomm_tensor *tensors[TENSORS];
  void *data[TENSORS];
  unsigned frozen; /* a bit for each tensor that takes no part */
} twin;

static inline void make_twin(twin *t, const char *policy, int nodes, lcomm_dtype dtype,
                             bool there) {
  char name[16];
  t->comm = make_comm(policy, nodes);
  t->frozen = 0;
  for (int i = 0; i < TENSORS; i++) {
    size_t size = tensor_counts[i] * lcomm_dtype_size(dtype);
    t->data[i] = there ? on_device(size) : calloc(1, size);
    snprintf(name, sizeof(name), "tensor %d", i);
    require_fine(t->comm, lcomm_tensor_add(t->comm, name, t->data[i], tensor_counts[i], dtype,
                                           LCOMM_AVG, &t->tensors[i]));
    require_fine(t->comm, lcomm_tensor_scale(t->comm, t->tensors[i], i == 1 ? 2.0 : 1.0,
                                             i == 2 ? 0.25 : 1.0));
  }
}

static inline void free_twin(twin *t, bool there) {
  require_fine(NULL, lcomm_destroy(t->comm));
  for (int i = 0; i < TENSORS; i++) {
    if (there) {
      check(device->memory.free(t->data[i]));
    } else {
      free(t->data[i]);
    }
  }
}

/* One step of both; the bits of all tensors and residuals are the same. */
static inline void step_twins(twin *host, twin *other, lcomm_dtype dtype, int step,
                              const char *policy) {
  static float values[LARGEST], kept[LARGEST], kept_there[LARGEST], result[LARGEST];
  size_t element = lcomm_dtype_size(dtype);
  for (int i = 0; i < TENSORS; i++) {
    fill_gradient(values, tensor_counts[i], (uint64_t)(step * 100 + i * 10 + mpi_rank));
    for (uint64_t e = 0; e < tensor_counts[i] && element == 2; e++) {
      ((uint16_t *)(void *)values)[e] = (uint16_t)((int)(values[e] * 1e5f) & 0x3bff);
    }
    memcpy(host->data[i], values, tensor_counts[i] * element);
    to_device(other->data[i], values, tensor_counts[i] * element);
    if (host->frozen >> i & 1) {
      continue;
    }
    require_fine(host->comm, lcomm_tensor_ready(host->comm, host->tensors[i]));
    require_fine(other->comm, lcomm_tensor_ready(other->comm, other->tensors[i]));
  }
  require_fine(host->comm, lcomm_tensors_wait(host->comm));
  require_fine(other->comm, lcomm_tensors_wait(other->comm));
  for (int i = 0; i < TENSORS; i++) {
    from_device(result, other->data[i], tensor_counts[i] * element);
    require(memcmp(result, host->data[i], tensor_counts[i] * element) == 0,
            "'%s', step %d, tensor %d: the device has other bits", policy, step, i);
    require_fine(host->comm, lcomm_tensor_residual(host->comm, host->tensors[i], kept));
    require_fine(other->comm, lcomm_tensor_residual(other->comm, other->tensors[i], kept_there));
    require(memcmp(kept, kept_there, tensor_counts[i] * sizeof(float)) == 0,
            "'%s', step %d, tensor %d: the device keeps another residual", policy, step, i);
  }
  require(lcomm_tensors_not_finite(host->comm) == lcomm_tensors_not_finite(other->comm),
          "'%s', step %d: values that are not finite", policy, step);
}

static inline void steps_with_error_feedback_have_the_bits_of_the_host(void) {
  static const char *const steps[] = {
      "net=topk:0.02+ef min=1 bucket=24K",
      "net=topk:0.02+ef min=1 bucket=24K warmup=1 ramp=0.25@2 momentum=0.9 algo=direct",
      "net=topk:0.05,values=int8+ef+zstd min=1",
      "net=int8+ef min=1 bucket=24K",
      "net=fp8e4m3+ef min=1 clip=0.5",
      "net=int4 min=1 scope=bucket",
      "net=sign min=1 bucket=24K undo=on exempt=*2 adam=onebit,refresh=1 warmup=1",
      "net=bf16 min=1 exempt=*3",
      "net=topk:0.02+ef min=1 bucket=24K undo=on momentum=0.9 warmup=1",
      "net=int8+ef min=1 undo=on clip=0.5 exempt=*2",
      "net=topk:0.02+ef min=1 bucket=24K clip=0.01:global",
      "net=int8+ef min=1 bucket=24K clip=0.02:global exempt=*2 undo=on",
      "net=fp16+ef min=1 clip=0.01:global",
  };
  for (size_t p = 0; p < sizeof(steps) / sizeof(steps[0]); p++) {
    lcomm_dtype dtype = p % 3 == 2 ? LCOMM_BFLOAT16 : LCOMM_FLOAT32;
    int nodes = 1 + (int)p % (mpi_size < 4 ? mpi_size : 4);
    twin host, other;
    make_twin(&host, steps[p], nodes, dtype, false);
    make_twin(&other, steps[p], nodes, dtype, true);
    for (int step = 0; step < STEPS; step++) {
      step_twins(&host, &other, dtype, step, steps[p]);
      if (step % 2 == 0 && strstr(steps[p], "undo=on")) {
        require_fine(host.comm, lcomm_tensors_discard(host.comm));
        require_fine(other.comm, lcomm_tensors_discard(other.comm));
      }
    }
    free_twin(&host, false);
    free_twin(&other, true);
  }
}

/* ------------------------------------------------------------------ guard */

static inline void require_same_figures(const twin *host, const twin *other, const char *policy,
                                        int step) {
  for (int i = 0; i < TENSORS; i++) {
    lcomm_guard_figures here, there;
    require_fine(host->comm, lcomm_tensor_guard(host->comm, host->tensors[i], &here));
    require_fine(other->comm, lcomm_tensor_guard(other->comm, other->tensors[i], &there));
    require(here.checks == there.checks && here.samples == there.samples &&
                here.fallbacks == there.fallbacks && here.beyond == there.beyond &&
                strcmp(here.codec, there.codec) == 0 && strcmp(here.next, there.next) == 0,
            "'%s', step %d, tensor %d: %llu checks here, %llu there; next %s, %s", policy, step, i,
            (unsigned long long)here.checks, (unsigned long long)there.checks, here.next,
            there.next);
    require(here.error == there.error && here.cosine == there.cosine &&
                here.residual == there.residual,
            "'%s', step %d, tensor %d: error %g, %g, residual %g, %g", policy, step, i, here.error,
            there.error, here.residual, there.residual);
    require(mpi_size < 2 || step == 0 || here.checks > 0 || i == 3, "tensor %d: no check", i);
  }
}

/* The same samples, sums and decisions, and the bits of the codecs that tensors fall to. */
static inline void the_guard_sees_what_it_sees_on_the_host(void) {
  static const char *const guarded[] = {
      "net=topk:0.02+ef min=128 guard=2 bucket=24K",
      "net=topk:0.05+ef min=128 guard=2,residual=0.001 momentum=0.9 algo=direct",
      "net=topk:0.02 min=128 guard=1,limit=0.05 bucket=24K",
      "net=int8+ef min=128 guard=2,residual=0.000001 clip=0.01:global undo=on",
  };
  for (size_t p = 0; p < sizeof(guarded) / sizeof(guarded[0]); p++) {
    int nodes = p % 2 == 0 || mpi_size < 2 ? mpi_size : 2;
    twin host, other;
    make_twin(&host, guarded[p], nodes, LCOMM_FLOAT32, false);
    make_twin(&other, guarded[p], nodes, LCOMM_FLOAT32, true);
    for (int step = 0; step < STEPS; step++) {
      step_twins(&host, &other, LCOMM_FLOAT32, step, guarded[p]);
      require_same_figures(&host, &other, guarded[p], step);
    }
    free_twin(&host, false);
    free_twin(&other, true);
  }
}

/* ---------------------------------------------------------------- changes */

static inline void freeze(twin *t, unsigned frozen) {
  for (int i = 0; i < TENSORS; i++) {
    require_fine(t->comm, frozen >> i & 1 ? lcomm_tensor_freeze(t->comm, t->tensors[i])
                                          : lcomm_tensor_unfreeze(t->comm, t->tensors[i]));
  }
  t->frozen = frozen;
}

static inline void renew_on_device(twin *t, int i) {
  check(device->memory.free(t->data[i]));
  t->data[i] = on_device(tensor_counts[i] * sizeof(float));
  require_fine(t->comm, lcomm_tensor_data_set(t->comm, t->tensors[i], t->data[i]));
}

/* Other buffers, frozen tensors and another policy; host memory for a tensor of a device is
 * refused. */
static inline void changes_between_steps_have_the_bits_of_the_host(void) {
  static const unsigned frozen[STEPS] = {0, 2, 9, 0, 4, 0};
  static const char *const all[] = {"net=topk:0.02+ef min=1 bucket=24K momentum=0.9",
                                    "net=int8+ef min=1 bucket=24K"};
  static float here[LARGEST];
  for (int nodes = 1; nodes <= mpi_size && nodes <= 2; nodes++) {
    twin host, other;
    make_twin(&host, all[0], nodes, LCOMM_FLOAT32, false);
    make_twin(&other, all[0], nodes, LCOMM_FLOAT32, true);
    require(lcomm_tensor_data_set(other.comm, other.tensors[0], here) == LCOMM_ERR_ARGUMENT,
            "host memory was taken for a tensor on a device");
    for (int step = 0; step < STEPS; step++) {
      freeze(&host, frozen[step]);
      freeze(&other, frozen[step]);
      renew_on_device(&other, step % TENSORS);
      step_twins(&host, &other, LCOMM_FLOAT32, step, all[step / 3]);
      if (step % 3 == 2) {
        require_fine(host.comm, lcomm_policy_set(host.comm, all[1]));
        require_fine(other.comm, lcomm_policy_set(other.comm, all[1]));
      }
    }
    free_twin(&host, false);
    free_twin(&other, true);
  }
}

/* ---------------------------------------------------------------- streams */

/* Each call's data is made in the stream before it, and taken out after it. */
static inline void calls_are_in_order_with_their_stream(void) {
  enum { COUNT = 5000, CALLS = 12 };
  static const lcomm_progress_mode modes[] = {LCOMM_PROGRESS_THREAD, LCOMM_PROGRESS_CALLS};
  size_t size = COUNT * sizeof(float);
  for (int m = 0; m < 2; m++) {
    lcomm_comm *comm = make_driven("net=bf16 min=1", mpi_size > 1 ? 2 : 1, modes[m]);
    void *stream = NULL, *pinned = NULL;
    float *buffer = on_device(size);
    check(device->stream.create(&stream));
    check(device->memory.pinned_get(2 * CALLS * size, &pinned));
    float *before = pinned, *after = before + (size_t)CALLS * COUNT;
    for (size_t i = 0; i < (size_t)CALLS * COUNT; i++) {
      before[i] = (float)(i / COUNT + (size_t)mpi_rank);
    }
    for (int i = 0; comm && i < CALLS; i++) {
      check(device->copy(buffer, before + (size_t)i * COUNT, size, stream));
      require_fine(comm, lcomm_allreduce_on_stream(comm, buffer, buffer, COUNT, LCOMM_FLOAT32,
                                                   LCOMM_SUM, stream));
      check(device->copy(after + (size_t)i * COUNT, buffer, size, stream));
    }
    check(device->stream.finish(stream));
    for (size_t i = 0; comm && i < (size_t)CALLS * COUNT; i++) {
      int call = (int)(i / COUNT), sum = call * mpi_size + mpi_size * (mpi_size - 1) / 2;
      require(after[i] == (float)sum, "call %d: %g, not %d", call, after[i], sum);
    }
    require_fine(NULL, lcomm_destroy(comm));
    check(device->stream.destroy(stream));
    check(device->memory.free(buffer));
    check(device->memory.pinned_free(pinned));
  }
}

/* More shapes than are kept for the next call. The second time the last ones are
 * in flight at once, and the others have to wait for them: what they need cannot be
 * made while streams are held. */
static inline void calls_of_many_shapes_may_be_in_flight(void) {
  enum { SHAPES = 14, LONGEST_CALL = 6000 };
  static float values[SHAPES][LONGEST_CALL];
  lcomm_comm *comm = make_driven("net=none", mpi_size > 1 ? 2 : 1, LCOMM_PROGRESS_THREAD);
  void *streams[SHAPES];
  float *buffers[SHAPES];
  for (int i = 0; i < SHAPES; i++) {
    check(device->stream.create(&streams[i]));
    buffers[i] = on_device(LONGEST_CALL * sizeof(float));
  }
  for (int round = 0; round < 2; round++) {
    for (int k = 0; k < SHAPES; k++) {
      int i = round == 0 ? k : SHAPES - 1 - k;
      uint64_t count = (uint64_t)(LONGEST_CALL - 300 * i);
      for (uint64_t e = 0; e < count; e++) {
        values[i][e] = (float)(i + mpi_rank);
      }
      check(device->copy(buffers[i], values[i], count * sizeof(float), streams[i]));
      require_fine(comm, lcomm_allreduce_on_stream(comm, buffers[i], buffers[i], count,
                                                   LCOMM_FLOAT32, LCOMM_SUM, streams[i]));
    }
    for (int i = 0; i < SHAPES; i++) {
      uint64_t count = (uint64_t)(LONGEST_CALL - 300 * i);
      int sum = i * mpi_size + mpi_size * (mpi_size - 1) / 2;
      check(device->stream.finish(streams[i]));
      from_device(values[i], buffers[i], count * sizeof(float));
      for (uint64_t e = 0; e < count; e++) {
        require(values[i][e] == (float)sum, "shape %d: %g, not %d", i, values[i][e], sum);
      }
    }
  }
  for (int i = 0; i < SHAPES; i++) {
    check(device->stream.destroy(streams[i]));
    check(device->memory.free(buffers[i]));
  }
  require_fine(NULL, lcomm_destroy(comm));
}

static inline void gradients_may_be_made_by_a_stream(void) {
  enum { COUNT = 9000 };
  size_t size = COUNT * sizeof(float);
  lcomm_comm *comm = make_driven("net=none", 1, LCOMM_PROGRESS_THREAD);
  void *stream = NULL, *pinned = NULL;
  float *buffer = on_device(size), result[COUNT];
  lcomm_tensor *tensor = NULL;
  check(device->stream.create(&stream));
  check(device->memory.pinned_get(size, &pinned));
  require_fine(comm, lcomm_tensor_add(comm, "g", buffer, COUNT, LCOMM_FLOAT32, LCOMM_SUM, &tensor));
  for (int step = 0; step < 5; step++) {
    for (int i = 0; i < COUNT; i++) {
      ((float *)pinned)[i] = (float)(step + i % 100);
    }
    check(device->copy(buffer, pinned, size, stream));
    require_fine(comm, lcomm_tensor_ready_on_stream(comm, tensor, stream));
    require_fine(comm, lcomm_tensors_wait(comm));
    from_device(result, buffer, size);
    for (int i = 0; i < COUNT; i++) {
      require(result[i] == (float)(mpi_size * (step + i % 100)), "step %d: %g", step, result[i]);
    }
  }
  require_fine(NULL, lcomm_destroy(comm));
  check(device->stream.destroy(stream));
  check(device->memory.free(buffer));
  check(device->memory.pinned_free(pinned));
}

#define STEP_PROPERTIES                                                                            \
  PROPERTY(steps_with_error_feedback_have_the_bits_of_the_host),                                   \
      PROPERTY(the_guard_sees_what_it_sees_on_the_host),                                           \
      PROPERTY(changes_between_steps_have_the_bits_of_the_host),                                   \
      PROPERTY(calls_are_in_order_with_their_stream),                                              \
      PROPERTY(calls_of_many_shapes_may_be_in_flight), PROPERTY(gradients_may_be_made_by_a_stream)

#endif
