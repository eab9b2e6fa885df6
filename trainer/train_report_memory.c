/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "trainer/train_report.h"
#include "trainer/train_screen.h"

/* What a rank holds. */

static uint64_t gradient_bytes(const training *of) {
  uint64_t count = of->net.weight_count;
  uint64_t summed = of->chosen->shard == SHARD_GRADIENTS ? of->shard.plan.count : count;
  uint64_t sum = of->sum ? summed * sizeof(float) : 0;
  if (is_sharded(of)) {
    return shard_gradient_bytes(&of->shard) + sum;
  }
  return count * sizeof(float) + (of->gradients.wire ? count * sizeof(uint16_t) : 0) + sum;
}

memory_use memory_now(const training *of) {
  struct rusage usage = {0};
  lcomm_comm *all[TRAINING_COMMS];
  int count = training_comms(of, all);
  uint64_t libcomm = 0;
  getrusage(RUSAGE_SELF, &usage);
  for (int i = 0; i < count; i++) {
    lcomm_stats stats = {0};
    lcomm_stats_get(all[i], &stats);
    libcomm += stats.memory_bytes;
  }
  uint64_t master = of->master ? of->optimizer.count : 0;
  uint64_t weights = of->net.weight_count * of->net.on->element_size;
  return (memory_use){.weights = weights + master * sizeof(float),
                      .gradients = gradient_bytes(of),
                      .optimizer = optimizer_bytes(&of->optimizer),
                      .batch = model_activation_bytes(&of->net),
                      .libcomm = libcomm,
                      .process = (uint64_t)usage.ru_maxrss << 10};
}

void report_memory(const training *of, const char *label) {
  memory_use now = memory_now(of);
  printf("%sMB of a rank: weights %.2f, gradients %.2f, optimiser %.2f, batch %.1f, libcomm %.1f;\n"
         "%*sits process at most %.0f\n",
         label, (double)now.weights / SCREEN_MEGA, (double)now.gradients / SCREEN_MEGA,
         (double)now.optimizer / SCREEN_MEGA, (double)now.batch / SCREEN_MEGA,
         (double)now.libcomm / SCREEN_MEGA, (int)strlen(label), "",
         (double)now.process / SCREEN_MEGA);
}
