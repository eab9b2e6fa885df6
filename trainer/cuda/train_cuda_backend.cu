/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The device in use, its memory, and the table of the back end. */

#include <string.h>

#include "trainer/cuda/train_cuda_internal.cuh"
#include "trainer/cuda/train_cuda_table.cuh"

train_cuda_state train_cuda;

/* --------------------------------------------------------------------- memory */

static void *get(size_t size) {
  void *memory = NULL;
  if (train_cuda.calls->get(size, &memory) != 0 || !memory) {
    return NULL;
  }
  train_cuda_clear(memory, size);
  return memory;
}

static void release(void *memory) {
  if (memory) {
    train_cuda_note(train_cuda.calls->free(memory));
  }
}

static void copy(void *to, const void *from, size_t size) {
  if (size > 0) {
    train_cuda_note(train_cuda.calls->copy(to, from, size, train_cuda.stream));
  }
}

static void wait(void) {
  train_cuda_note(train_cuda.calls->finish(train_cuda.stream));
}

void train_cuda_write(void *memory, const void *host, size_t size) {
  copy(memory, host, size);
}

void train_cuda_read(void *host, const void *memory, size_t size) {
  copy(host, memory, size);
  wait();
}

void train_cuda_clear(void *memory, size_t size) {
  if (size > 0) {
    train_cuda_note(train_cuda.calls->clear(memory, size, train_cuda.stream));
  }
}

static const char *finish(void) {
  wait();
  return train_cuda.error ? train_cuda.calls->explain(train_cuda.error) : NULL;
}

static void *stream(void) {
  return train_cuda.stream;
}

static void *beside(void) {
  const train_cuda_calls *calls = train_cuda.calls;
  if (!train_cuda.beside) {
    train_cuda_note(calls->fork(&train_cuda.beside));
  }
  train_cuda_note(calls->record(&train_cuda.asked, train_cuda.stream));
  train_cuda_note(calls->follow(train_cuda.beside, train_cuda.asked));
  return train_cuda.beside;
}

static void mark(int number) {
  void **event = &train_cuda.marks[number % BACKEND_MARKS];
  train_cuda_note(train_cuda.calls->record(event, train_cuda.beside));
}

static void await(int number) {
  train_cuda_note(
      train_cuda.calls->follow(train_cuda.stream, train_cuda.marks[number % BACKEND_MARKS]));
}

/* What is larger replaces it, once all that uses it is over. */
void *train_cuda_scratch(size_t size) {
  if (size > train_cuda.scratch_size) {
    wait();
    release(train_cuda.scratch);
    train_cuda.scratch = get(size);
    train_cuda.scratch_size = train_cuda.scratch ? size : 0;
  }
  if (!train_cuda.scratch) {
    enum { OUT_OF_MEMORY = 2 }; /* cudaErrorMemoryAllocation */
    train_cuda_note(OUT_OF_MEMORY);
  }
  return train_cuda.scratch;
}

/* ---------------------------------------------------------------------- table */

static const backend table = {
    .name = "cuda",
    .is_host = false,
    .heads_at_once = 64,
    .stored = PRECISION_FP32, /* and as was asked for, see train_cuda_open() */
    .element_size = sizeof(float),
    .get = get,
    .get_sent = get,
    .free = release,
    .free_sent = release,
    .write = train_cuda_write,
    .read = train_cuda_read,
    .copy = copy,
    .clear = train_cuda_clear,
    .store = train_cuda_store,
    .load = train_cuda_load,
    .finish = finish,
    .stream = stream,
    .beside = beside,
    .mark = mark,
    .await = await,
    .multiply = train_cuda_multiply,
    .fill_rows = train_cuda_fill_rows,
    .sum_rows = train_cuda_sum_rows,
    .add = train_cuda_add,
    .accumulate = train_cuda_accumulate,
    .mean = train_cuda_mean,
    .scale = train_cuda_scale,
    .finite = train_cuda_finite,
    .relu = train_cuda_relu,
    .relu_back = train_cuda_relu_back,
    .gelu = train_cuda_gelu,
    .gelu_back = train_cuda_gelu_back,
    .round = train_cuda_round,
    .encode = train_cuda_encode,
    .decode = train_cuda_decode,
    .gather_columns = train_cuda_gather_columns,
    .add_columns = train_cuda_add_columns,
    .fill_channels = train_cuda_fill_channels,
    .sum_channels = train_cuda_sum_channels,
    .pool = train_cuda_pool,
    .pool_back = train_cuda_pool_back,
    .average = train_cuda_average,
    .average_back = train_cuda_average_back,
    .flatten = train_cuda_flatten,
    .flatten_back = train_cuda_flatten_back,
    .batch_norm = train_cuda_batch_norm,
    .batch_norm_infer = train_cuda_batch_norm_infer,
    .batch_norm_back = train_cuda_batch_norm_back,
    .embed = train_cuda_embed,
    .embed_back = train_cuda_embed_back,
    .layer_norm = train_cuda_layer_norm,
    .layer_norm_back = train_cuda_layer_norm_back,
    .softmax = train_cuda_softmax,
    .softmax_back = train_cuda_softmax_back,
    .loss = train_cuda_loss,
    .correct = train_cuda_correct,
    .step = {train_cuda_step_sgd, train_cuda_step_adam, train_cuda_step_adamw, train_cuda_step_lars,
             train_cuda_step_lamb, train_cuda_step_adamw}, /* by optimizer_kind */
    .step_frozen = train_cuda_step_frozen,
    .lamb_moments = train_cuda_lamb_moments,
    .squares = train_cuda_squares,
    .lamb_squares = train_cuda_lamb_squares,
};

const backend *train_cuda_open(const train_cuda_calls *calls, int number, precision_kind stored,
                               const char **why) {
  static backend opened;
  int devices = 0;
  memset(&train_cuda, 0, sizeof train_cuda);
  train_cuda.calls = calls;
  train_cuda.stored = stored;
  opened = table;
  opened.stored = stored;
  opened.element_size = train_cuda_element_size();
  int error = calls->count(&devices);
  if (error == 0 && devices == 0) {
    *why = "this machine has no CUDA device";
    return NULL;
  }
  error = error ? error : calls->open(number % devices, &train_cuda.stream);
  *why = error ? calls->explain(error) : NULL;
  return error ? NULL : &opened;
}
