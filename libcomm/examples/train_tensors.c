/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors
 *
 * Tensors with error feedback: gradient descent on sum_i (w[i] - i % 7)^2, where between nodes
 * only one value in a hundred is sent in a step. What a step leaves out is added to the next.
 *   LCOMM_NODES=2 RANK=0 WORLD_SIZE=2 ./train_tensors &
 *   LCOMM_NODES=2 RANK=1 WORLD_SIZE=2 ./train_tensors */
#include <libcomm.h>

#include <stdio.h>

enum { LAYERS = 2, COUNT = 100000, STEPS = 400 };
static float weights[LAYERS][COUNT], gradients[LAYERS][COUNT];

/* Each rank sees the target through noise of its own, which the average over the ranks cancels. */
static void backward(int layer, int rank, int size) {
  for (int i = 0; i < COUNT; i++) {
    float noise = 0.5f * ((float)rank - 0.5f * (float)(size - 1));
    gradients[layer][i] = 2.0f * (weights[layer][i] - (float)(i % 7)) + noise;
  }
}

static double loss(void) {
  double sum = 0.0;
  for (int i = 0; i < COUNT; i++) {
    double off = (double)weights[0][i] - i % 7;
    sum += off * off;
  }
  return sum / COUNT;
}

static lcomm_status train(lcomm_comm *comm) {
  static const char *const names[LAYERS] = {"first.weight", "second.weight"};
  lcomm_tensor *tensors[LAYERS];
  /* In the order in which backward makes them: from the last layer to the first. */
  for (int layer = LAYERS - 1; layer >= 0; layer--) {
    lcomm_status status = lcomm_tensor_add(comm, names[layer], gradients[layer], COUNT,
                                           LCOMM_FLOAT32, LCOMM_AVG, &tensors[layer]);
    if (status != LCOMM_OK) {
      return status;
    }
  }
  for (int step = 0; step < STEPS; step++) {
    for (int layer = LAYERS - 1; layer >= 0; layer--) {
      backward(layer, lcomm_rank(comm), lcomm_size(comm));
      lcomm_status status = lcomm_tensor_ready(comm, tensors[layer]); /* the library's from here */
      if (status != LCOMM_OK) {
        return status;
      }
    }
    lcomm_status status = lcomm_tensors_wait(comm); /* all gradients are averages now */
    if (status != LCOMM_OK) {
      return status;
    }
    for (int layer = 0; layer < LAYERS; layer++) {
      for (int i = 0; i < COUNT; i++) {
        weights[layer][i] -= 0.005f * gradients[layer][i];
      }
    }
  }
  return LCOMM_OK;
}

int main(void) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.policy = "net=topk:0.01+ef";
  lcomm_comm *comm = NULL;
  if (lcomm_create_env(&config, &comm) != LCOMM_OK) {
    fprintf(stderr, "%s\n", lcomm_last_error(NULL));
    return 1;
  }
  double before = loss();
  lcomm_status status = train(comm);
  lcomm_stats stats;
  if (status != LCOMM_OK) {
    fprintf(stderr, "%s\n", lcomm_last_error(comm));
  } else if (lcomm_rank(comm) == 0 && lcomm_stats_get(comm, &stats) == LCOMM_OK) {
    printf("loss %.3f, after %d steps %.3f\n", before, STEPS, loss());
    printf("sent between nodes: %.2f MB, exact it would be %.2f MB\n",
           (double)stats.sent_bytes[LCOMM_LINK_NET] / 1e6,
           (double)stats.exact_bytes[LCOMM_LINK_NET] / 1e6);
  }
  lcomm_destroy(comm);
  return status == LCOMM_OK ? 0 : 1;
}
