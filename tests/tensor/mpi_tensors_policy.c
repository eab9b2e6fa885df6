/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 4 */

/* Tensors, and residuals with a name, that have codecs of their own: net[PATTERN,...]=CODEC. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tensor/change_model.h"

enum { STEPS = 4 };

/* ------------------------------------------------------------- bit for bit */

/* One bucket for each tensor; a policy for each tensor as if it were alone. */
#define PATTERNS                                                                                   \
  "net[conv*]=bf16 net[fc.*,nobody]=int8+ef net[size<=30000&e*]=none net=topk:0.05+ef bucket=4K"

static const char *const alone[TENSORS] = {
    "net=topk:0.05+ef min=1 bucket=4K",
    "net=bf16 min=1 bucket=4K",
    "net=int8+ef min=1 bucket=4K",
    "net=none bucket=4K",
};

/* Steps change with the residuals of those that have them. */
static void every_tensor_does_what_its_codec_does_alone(void) {
  for (int t = 0; t < TENSORS; t++) {
    model all, one;
    make_model(&all, PATTERNS, two_nodes(), LCOMM_AVG);
    make_model(&one, alone[t], two_nodes(), LCOMM_AVG);
    for (int step = 0; step < STEPS; step++) {
      fill_model(&all, step);
      fill_model(&one, step);
      require_fine(&all, step_model(&all));
      require_fine(&one, step_model(&one));
      require(memcmp(all.data[t], one.data[t], sizes[t] * sizeof(float)) == 0,
              "step %d: %s differs from '%s'", step, names[t], alone[t]);
    }
    free_model(&all);
    free_model(&one);
  }
}

static void calls_with_a_named_residual_do_what_their_codec_does_alone(void) {
  enum { COUNT = 5000 };
  static float gradient[COUNT], result[2][COUNT];
  static const char *const texts[] = {"net[grad.*]=int8+ef net=topk:0.01+ef", "net=int8+ef min=1"};
  lcomm_comm *comms[2];
  lcomm_residual *residuals[2];
  for (int i = 0; i < 2; i++) {
    comms[i] = make_comm(texts[i], two_nodes());
    require(lcomm_residual_create_named(comms[i], "grad.0", COUNT, LCOMM_SUM, &residuals[i]) ==
                LCOMM_OK,
            "%s", lcomm_last_error(comms[i]));
  }
  for (int step = 0; step < STEPS; step++) {
    fill_gradient(gradient, COUNT, (uint64_t)(step + 100 * mpi_rank));
    for (int i = 0; i < 2; i++) {
      require(lcomm_allreduce_ef(residuals[i], gradient, result[i]) == LCOMM_OK, "%s",
              lcomm_last_error(comms[i]));
    }
    require(memcmp(result[0], result[1], sizeof result[0]) == 0, "step %d differs", step);
  }
  lcomm_destroy(comms[0]);
  lcomm_destroy(comms[1]);
}

/* ------------------------------------------------------------------ buckets */

/* Operations of the second step: the first one compares the tensors. */
static uint64_t buckets_of(const char *policy) {
  model m;
  lcomm_stats before, after;
  make_model(&m, policy, two_nodes(), LCOMM_SUM);
  for (int step = 0; step < 2; step++) {
    lcomm_stats_get(m.comm, &before);
    fill_model(&m, step);
    require_fine(&m, step_model(&m));
    lcomm_stats_get(m.comm, &after);
  }
  free_model(&m);
  return after.operations - before.operations;
}

static void tensors_share_buckets_with_those_of_their_codec_only(void) {
  static const struct {
    const char *policy;
    uint64_t buckets;
  } cases[] = {
      {"net=int8 min=1", 1},
      {"net[conv*]=bf16 net=int8 min=1", 2},
      {"net[conv*]=bf16 net[embed]=fp16 net[head*]=bf16 net=int8 min=1", 3},
      {"net[conv*]=int8 net=int8 min=1", 1}, /* the same codec by another way */
      {"net[conv*]=int8:block=32 net=int8 min=1", 2},
      {"net[conv*]=int8+ef net=int8 min=1", 2},
      {"net[conv*]=none net=int8 min=1 exempt=embed", 2}, /* exact for two reasons */
      {"net[conv*]=none net=int8 node=bf16 min=1 exempt=embed", 3},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint64_t buckets = buckets_of(cases[i].policy);
    require(buckets == cases[i].buckets, "'%s': %d buckets, not %d", cases[i].policy, (int)buckets,
            (int)cases[i].buckets);
  }
}

/* ---------------------------------------------------------------- questions */

static void the_codec_of_a_tensor_is_told(void) {
  static const char *const between[TENSORS] = {"topk:0.05+ef", "bf16", "int8+ef", "none"};
  model m;
  char text[64];
  make_model(&m, PATTERNS " min=1K node=fp16 exempt=embed", 1, LCOMM_AVG);
  for (int t = 0; t < TENSORS; t++) {
    require_fine(&m, lcomm_tensor_codec(m.comm, m.tensors[t], LCOMM_LINK_NET, text, sizeof text));
    require(strcmp(text, between[t]) == 0, "%s: %s", names[t], text);
    require_fine(&m, lcomm_tensor_codec(m.comm, m.tensors[t], LCOMM_LINK_SHM, text, sizeof text));
    require(strcmp(text, t == 3 ? "none" : "fp16") == 0, "%s in a node: %s", names[t], text);
  }
  require_fine(&m, lcomm_tensor_codec(m.comm, m.tensors[0], LCOMM_LINK_NET, text, 5));
  require(strcmp(text, "topk") == 0, "cut to '%s'", text);
  free_model(&m);
}

static void ranks_with_other_patterns_make_no_communicator(void) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  lcomm_comm *comm = NULL;
  config.policy = mpi_rank == 0 ? "net[a*]=bf16 net=int8" : "net[b*]=bf16 net=int8";
  lcomm_status status = lcomm_create_mpi(MPI_COMM_WORLD, &config, &comm);
  const char *said = lcomm_last_error(NULL);
  require(status == LCOMM_ERR_MISMATCH, "%s", lcomm_status_name(status));
  require(strstr(said, "net[a*]=bf16 net=int8") && strstr(said, "net[b*]=bf16 net=int8"), "%s",
          said);
}

static const mpi_property properties[] = {
    PROPERTY(every_tensor_does_what_its_codec_does_alone),
    PROPERTY(calls_with_a_named_residual_do_what_their_codec_does_alone),
    PROPERTY(tensors_share_buckets_with_those_of_their_codec_only),
    PROPERTY(the_codec_of_a_tensor_is_told),
    PROPERTY_OF(2, ranks_with_other_patterns_make_no_communicator),
};
RUN_PROPERTIES(mpi_property_main, properties)
