/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Waiting for numbers in pinned memory, and writing them, where streams themselves cannot, or where
 * the number itself is known later than the launch: a kernel in which one thread does it. What
 * waits takes hardly anything from other kernels, and it ends, because whoever writes the number
 * needs nothing for that which stands behind it. */

#include "kernels/cuda/cuda_grid.cuh"

#include "kernels/cuda/cuda_dense.h"
#include "kernels/cuda/cuda_hardware.cuh"

typedef struct numbers_args {
  lcomm_cuda_number task[LCOMM_CUDA_NUMBERS_MAX];
  uint32_t count;
} numbers_args;

typedef struct gates_args {
  lcomm_cuda_gate task[LCOMM_CUDA_NUMBERS_MAX];
  uint32_t count;
} gates_args;

LCOMM_DEVICE bool is_reached(const uint32_t *place, uint32_t number) {
  return (int32_t)(lcomm_load_of_host(place) - number) >= 0;
}

LCOMM_DEVICE void do_task(const lcomm_cuda_number *task) {
  if (!task->is_awaited) {
    lcomm_store_for_host(task->place, task->number);
    return;
  }
  while (!is_reached(task->place, task->number)) {
    lcomm_pause();
  }
}

LCOMM_DEVICE void do_gate(const lcomm_cuda_gate *task) {
  uint32_t number = lcomm_load_of_host(task->number);
  if (!task->is_awaited) {
    lcomm_store_for_host(task->place, number);
    return;
  }
  while (!is_reached(task->place, number) && lcomm_load_of_host(task->passed) == 0) {
    lcomm_pause();
  }
}

LCOMM_KERNEL(numbers, numbers_args) {
  LCOMM_ROLLED for (uint32_t i = 0; lcomm_thread() == 0 && i < a.count; i++) {
    do_task(&a.task[i]);
  }
}

LCOMM_KERNEL(gates, gates_args) {
  LCOMM_ROLLED for (uint32_t i = 0; lcomm_thread() == 0 && i < a.count; i++) {
    do_gate(&a.task[i]);
  }
}

extern "C" int lcomm_cuda_run_numbers(const lcomm_cuda_number *list, uint32_t count, void *stream) {
  int error = 0;
  for (uint32_t done = 0; done < count && error == 0;) {
    numbers_args args = {};
    for (; args.count < LCOMM_CUDA_NUMBERS_MAX && done < count; args.count++) {
      args.task[args.count] = list[done++];
    }
    error = LCOMM_LAUNCH(numbers, 1, LCOMM_WARP, stream, args);
  }
  return error;
}

extern "C" int lcomm_cuda_run_gates(const lcomm_cuda_gate *list, uint32_t count, void *stream) {
  int error = 0;
  for (uint32_t done = 0; done < count && error == 0;) {
    gates_args args = {};
    for (; args.count < LCOMM_CUDA_NUMBERS_MAX && done < count; args.count++) {
      args.task[args.count] = list[done++];
    }
    error = LCOMM_LAUNCH(gates, 1, LCOMM_WARP, stream, args);
  }
  return error;
}
