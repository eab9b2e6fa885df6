/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 4 */

/* Saved states hold the codecs that tensors have fallen to. */

#include "tests/tensor/guard_model.h"
#include "tests/tensor/saved_blocks.h"

enum { FALLS = 4, RUN_ON = 9 };

static void make_steps(model *m, int first, int end) {
  for (int step = first; step < end; step++) {
    fill_model(m, step);
    step_model(m);
  }
}

static const char *const policies[] = {
    "net=topk:0.02+ef guard=1,residual=0.000001",         /* falls in each step */
    "net=topk:0.02+ef guard=2,residual=0.5 momentum=0.9", /* once */
    "net=topk:0.01 net[fc*]=int8 guard=1,limit=0.5",      /* and comes back */
};

static void compare(const char *policy) {
  model straight, restored;
  size_t size = 0;
  int nodes = most_nodes();
  make_model(&straight, policy, nodes, LCOMM_AVG);
  make_steps(&straight, 0, FALLS);
  uint8_t *bytes = write_blocks(straight.comm, &size);
  make_model(&restored, policy, nodes, LCOMM_AVG);
  read_blocks(restored.comm, bytes, size);
  for (int step = FALLS; step < FALLS + RUN_ON; step++) {
    make_steps(&straight, step, step + 1);
    make_steps(&restored, step, step + 1);
    for (int t = 0; t < TENSORS; t++) {
      require(memcmp(straight.data[t], restored.data[t], sizes[t] * sizeof(float)) == 0,
              "'%s', step %d: %s differs", policy, step, names[t]);
      lcomm_guard_figures one = figures_of(&straight, t), other = figures_of(&restored, t);
      require(other.checks == 0 ||
                  (one.error == other.error && strcmp(one.codec, other.codec) == 0 &&
                   strcmp(one.next, other.next) == 0),
              "'%s', step %d, %s: by %s and %s, next %s and %s", policy, step, names[t], one.codec,
              other.codec, one.next, other.next);
    }
  }
  free(bytes);
  free_model(&straight);
  free_model(&restored);
}

static void a_restored_run_goes_on_with_the_codecs_of_the_saved_one(void) {
  for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
    compare(policies[i]);
  }
}

/* Also one that has fallen meanwhile, and under another policy. */
static void other_tensors_begin_with_the_codec_of_the_policy(void) {
  model early, late, other;
  size_t size = 0, fallen_size = 0;
  make_model(&early, policies[0], 2, LCOMM_SUM);
  uint8_t *bytes = write_blocks(early.comm, &size);
  make_model(&late, policies[0], 2, LCOMM_SUM);
  make_steps(&late, 0, 2);
  require(strcmp(codec_after(&late, 0), "int8+ef") == 0, "next is %s", codec_after(&late, 0));
  uint8_t *fallen = write_blocks(late.comm, &fallen_size);
  read_blocks(late.comm, bytes, size);
  make_steps(&late, 0, 1);
  require(strcmp(figures_of(&late, 0).codec, "topk:0.02+ef") == 0, "it travels by %s",
          figures_of(&late, 0).codec);
  make_model(&other, "net=topk:0.02+ef guard=1", 2, LCOMM_SUM);
  read_blocks(other.comm, fallen, fallen_size);
  make_steps(&other, 2, 3);
  require(strcmp(figures_of(&other, 0).codec, "topk:0.02+ef") == 0, "it travels by %s",
          figures_of(&other, 0).codec);
  free(bytes);
  free(fallen);
  free_model(&early);
  free_model(&late);
  free_model(&other);
}

/* Shared out over other nodes, too. */
static void codecs_are_kept_where_residuals_move(void) {
  model before, after;
  size_t size = 0;
  make_model(&before, policies[0], 4, LCOMM_SUM);
  make_steps(&before, 0, 2);
  uint8_t *bytes = write_blocks(before.comm, &size);
  make_model(&after, policies[0], 2, LCOMM_SUM);
  read_blocks(after.comm, bytes, size);
  make_steps(&after, 2, 3);
  require(strcmp(figures_of(&after, 1).codec, "int8+ef") == 0, "it travels by %s",
          figures_of(&after, 1).codec);
  free(bytes);
  free_model(&before);
  free_model(&after);
}

static const mpi_property properties[] = {
    PROPERTY(a_restored_run_goes_on_with_the_codecs_of_the_saved_one),
    PROPERTY_OF(2, other_tensors_begin_with_the_codec_of_the_policy),
    PROPERTY_OF(4, codecs_are_kept_where_residuals_move),
};
RUN_PROPERTIES(mpi_property_main, properties)
