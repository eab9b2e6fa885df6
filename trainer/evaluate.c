/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/evaluate.h"

#include "trainer/loss.h"
#include "trainer/stop_signal.h"

static int count_batch(session *of, uint32_t first, int batch) {
  /* The order of the training images is drawn anew before each epoch. */
  uint32_t *picked = of->order;
  for (int i = 0; i < batch; i++) {
    picked[i] = first + (uint32_t)i;
  }
  dataset_batch(&of->data, &of->data.test, picked, batch, model_input(&of->net), of->labels);
  const float *logits = model_forward(&of->net, batch);
  return loss_count_correct(logits, of->labels, batch, DATASET_CLASSES);
}

static uint32_t begin_of_part(const session *of, int rank) {
  return (uint32_t)((uint64_t)of->data.test.count * (uint64_t)rank / (uint64_t)of->ranks.size);
}

int evaluate(session *of, double *accuracy, failure *why) {
  uint64_t correct = 0;
  uint32_t end = begin_of_part(of, of->ranks.rank + 1);
  uint32_t batch = (uint32_t)of->chosen->batch;
  for (uint32_t first = begin_of_part(of, of->ranks.rank); first < end && !stop_signal_noted();
       first += batch) {
    correct += (uint64_t)count_batch(of, first, (int)(end - first < batch ? end - first : batch));
  }
  if (peers_sum(&of->ranks, &correct, 1, why)) {
    return -1;
  }
  *accuracy = (double)correct / of->data.test.count;
  return 0;
}
