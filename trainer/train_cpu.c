/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/train_cpu.h"

#include <cblas.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/train_model.h"
#include "trainer/train_optimizer.h"

/* The back end of processors: memory of the host, products by OpenBLAS, and its table. */

/* -------------------------------------------------------------------- memory */

static void *get(size_t size) {
  return calloc(1, size + 1);
}

/* Ranks of a host read it where it is. */
static void *get_sent(size_t size) {
  void *made = NULL;
  return lcomm_memory_alloc(size, &made) == LCOMM_OK ? made : NULL;
}

static void free_sent(void *memory) {
  lcomm_memory_free(memory);
}

static void copy(void *to, const void *from, size_t size) {
  if (size > 0 && to != from) {
    memcpy(to, from, size);
  }
}

static void clear(void *memory, size_t size) {
  memset(memory, 0, size);
}

static void store(float *to, const float *from, size_t count) {
  copy(to, from, count * sizeof *to);
}

static const char *finish(void) {
  return NULL;
}

static void *stream(void) {
  return NULL;
}

static void mark(int number) {
  (void)number;
}

/* ------------------------------------------------------------------- products */

static CBLAS_TRANSPOSE turn_of(matrix of) {
  return of.transposed ? CblasTrans : CblasNoTrans;
}

static void multiply(const product *of) {
  for (int i = 0; i < of->count; i++) {
    size_t at = (size_t)i;
    cblas_sgemm(CblasRowMajor, turn_of(of->a), turn_of(of->b), of->rows, of->columns, of->depth,
                of->scale, of->a.values + at * of->a.next, of->a.step,
                of->b.values + at * of->b.next, of->b.step, of->keep, of->out + at * of->next,
                of->step);
  }
}

static double loss(const float *logits, const uint8_t *labels, int rows, int classes, float scale,
                   float *delta) {
  double sum = loss_cross_entropy(logits, labels, rows, classes, delta);
  if (delta) {
    cpu_scale(delta, scale, (size_t)rows * (size_t)classes);
  }
  return sum;
}

/* ---------------------------------------------------------------------- table */

static const backend table = {
    .name = "cpu",
    .is_host = true,
    .heads_at_once = 1,
    .stored = PRECISION_FP32,
    .element_size = sizeof(float),
    .get = get,
    .get_sent = get_sent,
    .free = free,
    .free_sent = free_sent,
    .write = copy,
    .read = copy,
    .copy = copy,
    .clear = clear,
    .store = store,
    .load = store,
    .finish = finish,
    .stream = stream,
    .beside = stream,
    .mark = mark,
    .await = mark,
    .multiply = multiply,
    .fill_rows = cpu_fill_rows,
    .sum_rows = cpu_sum_rows,
    .add = cpu_add,
    .accumulate = cpu_accumulate,
    .mean = cpu_mean,
    .scale = cpu_scale,
    .finite = cpu_finite,
    .relu = cpu_relu,
    .relu_back = cpu_relu_back,
    .gelu = cpu_gelu,
    .gelu_back = cpu_gelu_back,
    .round = precision_round,
    .encode = precision_encode,
    .decode = precision_decode,
    .gather_columns = cpu_gather_columns,
    .add_columns = cpu_add_columns,
    .fill_channels = cpu_fill_channels,
    .sum_channels = cpu_sum_channels,
    .pool = cpu_pool,
    .pool_back = cpu_pool_back,
    .average = cpu_average,
    .average_back = cpu_average_back,
    .flatten = cpu_flatten,
    .flatten_back = cpu_flatten_back,
    .batch_norm = cpu_batch_norm,
    .batch_norm_infer = cpu_batch_norm_infer,
    .batch_norm_back = cpu_batch_norm_back,
    .embed = cpu_embed,
    .embed_back = cpu_embed_back,
    .layer_norm = cpu_layer_norm,
    .layer_norm_back = cpu_layer_norm_back,
    .softmax = cpu_softmax,
    .softmax_back = cpu_softmax_back,
    .loss = loss,
    .correct = loss_count_correct,
    .step = {[OPTIMIZER_SGD] = cpu_step_sgd,
             [OPTIMIZER_ADAM] = cpu_step_adam,
             [OPTIMIZER_ADAMW] = cpu_step_adamw,
             [OPTIMIZER_LARS] = cpu_step_lars,
             [OPTIMIZER_LAMB] = cpu_step_lamb,
             [OPTIMIZER_ONEBIT_ADAM] = cpu_step_adamw},
    .step_frozen = cpu_step_frozen,
    .lamb_moments = cpu_lamb_moments,
    .squares = cpu_squares,
    .lamb_squares = cpu_lamb_squares,
};

const backend *backend_cpu(void) {
  return &table;
}
