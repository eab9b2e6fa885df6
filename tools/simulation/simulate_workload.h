/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_SIMULATION_SIMULATE_WORKLOAD_H
#define LCOMM_TOOLS_SIMULATION_SIMULATE_WORKLOAD_H

/* What a training step computes: tensors in the order in which backward makes their gradients,
 * and how long each takes. From a formula, a file, or a trace of a run. */

#include "tools/simulation/simulate_speeds.h"

enum {
  SIMULATE_TENSORS_MAX = 1 << 20,
  SIMULATE_TENSOR_NAME_MAX = 64,
  SIMULATE_WORKLOAD_FILE_MAX = 64 << 20 /* bytes of a file that is read */
};

#define SIMULATE_PARAMETERS_MAX (UINT64_C(1) << 44)

typedef struct simulate_tensor {
  char name[SIMULATE_TENSOR_NAME_MAX];
  uint64_t count;
  uint64_t rows, columns; /* of a matrix, or of several together; 0: it has no shape */
  simulate_time backward; /* until its gradient is there, after that of the one before */
} simulate_tensor;

typedef struct simulate_workload {
  simulate_tensor *tensors; /* at least one */
  size_t count;
  simulate_time forward; /* before the backward pass */
  uint64_t parameters;
  char source[160]; /* for people */
} simulate_workload;

/* `parameters` in tensors of at most `tensor_count`; of `compute_s` a third is the forward pass,
 * the rest is spread over the tensors as their elements are. */
bool simulate_workload_formula(uint64_t parameters, uint64_t tensor_count, double compute_s,
                               simulate_workload *workload);

/* {"forward_us": 1000, "tensors": [{"name": "fc.weight", "count": 1000, "backward_us": 20}, ...]},
 * in the order of backward; those with "rows" and "columns" are matrices. false with a sentence in
 * `why` (SIMULATE_WHY_MAX bytes). */
bool simulate_workload_parse(const char *text, size_t length, simulate_workload *workload,
                             char *why);
bool simulate_workload_read(const char *path, simulate_workload *workload, char *why);

/* From the trace of a rank that trained with tensors (LCOMM_TRACE): each operation of the last
 * whole step is a tensor, made when the operation began; what lies between the end of the step
 * before and the first of them is the forward pass. Both sums of low rank are one tensor, with rows
 * and columns. */
bool simulate_workload_read_trace(const char *path, simulate_workload *workload, char *why);

simulate_time simulate_workload_compute(const simulate_workload *workload);

void simulate_workload_free(simulate_workload *workload);

/* For those who read one: `room` tensors are made room for; false: there is no memory. */
bool simulate_workload_begin(size_t room, simulate_workload *workload);

/* false where the sums of all tensors would be too large. */
bool simulate_workload_add(simulate_workload *workload, const char *name, uint64_t count,
                           double backward_s);

#endif
