/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors
 *
 * What codecs do to a sum of your numbers: the same all-reduce under several policies, on one
 * communicator each, split from the first.
 *   LCOMM_NODES=2 RANK=0 WORLD_SIZE=2 ./choose_codec &
 *   LCOMM_NODES=2 RANK=1 WORLD_SIZE=2 ./choose_codec */
#include <libcomm.h>

#include <math.h>
#include <stdio.h>

enum { COUNT = 1 << 18 };
static float mine[COUNT], exact[COUNT], sum[COUNT];

static void fill(int rank) {
  for (int i = 0; i < COUNT; i++) {
    mine[i] = sinf(0.001f * (float)i * (float)(rank + 1)) * expf(-(float)(i % 100) / 20.0f);
  }
}

/* Mean squared error over mean square. */
static double error(void) {
  double off = 0.0, all = 0.0;
  for (int i = 0; i < COUNT; i++) {
    off += ((double)sum[i] - exact[i]) * ((double)sum[i] - exact[i]);
    all += (double)exact[i] * exact[i];
  }
  return off / all;
}

static lcomm_status sum_by(lcomm_comm *world, const char *policy) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.policy = policy;
  lcomm_comm *comm = NULL;
  lcomm_stats stats;
  lcomm_status status = lcomm_split(world, 0, 0, &config, &comm);
  if (status != LCOMM_OK) {
    fprintf(stderr, "%s\n", lcomm_last_error(world));
    return status;
  }
  status = lcomm_allreduce(comm, mine, sum, COUNT, LCOMM_FLOAT32, LCOMM_SUM);
  if (status == LCOMM_OK) {
    status = lcomm_stats_get(comm, &stats);
  }
  if (status != LCOMM_OK) {
    fprintf(stderr, "%s\n", lcomm_last_error(comm));
  } else if (lcomm_rank(comm) == 0) {
    printf("%-14s error %.1e, sent between nodes %8llu bytes\n", lcomm_policy_string(comm), error(),
           (unsigned long long)stats.sent_bytes[LCOMM_LINK_NET]);
  }
  lcomm_destroy(comm);
  return status;
}

int main(void) {
  static const char *const policies[] = {"net=bf16", "net=fp8e4m3", "net=int8", "net=int4-ef"};
  lcomm_comm *world = NULL;
  if (lcomm_create_env(NULL, &world) != LCOMM_OK) {
    fprintf(stderr, "%s\n", lcomm_last_error(NULL));
    return 1;
  }
  fill(lcomm_rank(world));
  lcomm_status status = lcomm_allreduce(world, mine, exact, COUNT, LCOMM_FLOAT32, LCOMM_SUM);
  for (size_t i = 0; i < sizeof policies / sizeof *policies && status == LCOMM_OK; i++) {
    status = sum_by(world, policies[i]);
  }
  lcomm_destroy(world);
  return status == LCOMM_OK ? 0 : 1;
}
