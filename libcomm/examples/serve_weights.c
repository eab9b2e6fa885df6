/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors
 *
 * A parameter server: rank 0 has the weights and steps them by SGD with momentum, the other ranks
 * send it gradients, of 8 bits between nodes, and receive the new weights.
 *   LCOMM_NODES=2 RANK=0 WORLD_SIZE=2 ./serve_weights &
 *   LCOMM_NODES=2 RANK=1 WORLD_SIZE=2 ./serve_weights */
#include <libcomm.h>

#include <stdio.h>

enum { COUNT = 100000, STEPS = 100 };

/* Of a server; it may own a part of the tensor only. */
typedef struct state {
  float weights[COUNT], momentum[COUNT];
} state;

/* What workers receive in place of the average of their gradients. */
static int step_weights(void *context, const lcomm_server_piece *piece) {
  state *mine = context;
  for (uint64_t i = 0; i < piece->count; i++) {
    uint64_t at = piece->first + i;
    mine->momentum[at] = 0.9f * mine->momentum[at] + piece->values[i];
    mine->weights[at] -= 0.02f * mine->momentum[at];
    piece->values[i] = mine->weights[at];
  }
  return 0;
}

/* Of sum_i (w[i] - i % 7)^2. `data` holds weights before and after a step, gradients in it. */
static lcomm_status work(lcomm_comm *comm, lcomm_tensor *tensor, float *data) {
  for (int step = 0; step < STEPS; step++) {
    for (int i = 0; i < COUNT; i++) {
      data[i] = 2.0f * (data[i] - (float)(i % 7));
    }
    lcomm_status status = lcomm_tensor_ready(comm, tensor);
    if (status == LCOMM_OK) {
      status = lcomm_tensors_wait(comm);
    }
    if (status != LCOMM_OK) {
      return status;
    }
  }
  return lcomm_server_end(comm); /* now servers return from lcomm_server_run() */
}

static void report(const float *weights) {
  double sum = 0.0;
  for (int i = 0; i < COUNT; i++) {
    double off = (double)weights[i] - i % 7;
    sum += off * off;
  }
  printf("loss after %d steps %.3f\n", STEPS, sum / COUNT);
}

static lcomm_status train(lcomm_comm *comm) {
  static float data[COUNT]; /* zeros: all begin with the same weights */
  static state served;
  lcomm_tensor *tensor;
  lcomm_status status =
      lcomm_tensor_add(comm, "weights", data, COUNT, LCOMM_FLOAT32, LCOMM_AVG, &tensor);
  if (status != LCOMM_OK) {
    return status;
  }
  if (lcomm_is_server(comm)) {
    return lcomm_server_run(comm, step_weights, &served);
  }
  status = work(comm, tensor, data);
  if (status == LCOMM_OK && lcomm_rank(comm) == 1) {
    report(data);
  }
  return status;
}

int main(void) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.policy = "net=int8+ef algo=servers servers=0";
  lcomm_comm *comm = NULL;
  if (lcomm_create_env(&config, &comm) != LCOMM_OK) {
    fprintf(stderr, "%s\n", lcomm_last_error(NULL));
    return 1;
  }
  lcomm_status status = train(comm);
  if (status != LCOMM_OK) {
    fprintf(stderr, "%s\n", lcomm_last_error(comm));
  }
  lcomm_destroy(comm);
  return status == LCOMM_OK ? 0 : 1;
}
