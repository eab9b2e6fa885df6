/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 4 */

/* The guard beside net=auto: a tensor is checked against the codec that auto has chosen. */

#include "libcomm/tensor/bucket.h"
#include "tests/tensor/guard_model.h"

enum { NODES = 2 };

/* The link is said to pass 10 KB in a second, so that the coarsest codec of the class pays. */
static void make_slow(model *m, const char *policy) {
  make_model(m, policy, NODES, LCOMM_AVG);
  m->comm->topo.cost[LCOMM_LINK_NET].bandwidth_gb_s = 1e-5;
}

static void step_once(model *m, int step) {
  fill_model(m, step);
  step_model(m);
}

static void require_codecs(const model *m, int step, const char *codec, const char *next) {
  lcomm_guard_figures it = figures_of(m, 0);
  require(strcmp(it.codec, codec) == 0 && strcmp(it.next, next) == 0,
          "step %d: by %s, next %s, instead of %s, %s", step, it.codec, it.next, codec, next);
}

/* Results of top-k are far from the sums of their step; what it keeps is what counts. */
static void top_k_is_judged_by_its_residual(void) {
  model m;
  make_slow(&m, "net=auto:topk guard=1,limit=0.1,residual=50");
  for (int step = 0; step < 3; step++) {
    step_once(&m, step);
    lcomm_guard_figures it = figures_of(&m, 0);
    require(it.error > 0.5 && it.residual > 0.5 && !it.beyond, "error %g, residual %g", it.error,
            it.residual);
    require_codecs(&m, step, "topk:0.01+ef", "auto:topk");
  }
  free_model(&m);
}

static void a_dense_codec_is_judged_by_its_error(void) {
  static const char *const by[] = {"int8", "bf16"}, *const next[] = {"auto:bf16", "auto:lossless"};
  model m;
  make_slow(&m, "net=auto:int8 guard=1,limit=0.0001,residual=1000");
  for (int step = 0; step < 2; step++) {
    step_once(&m, step);
    require(figures_of(&m, 0).residual == 0, "a residual without error feedback");
    require_codecs(&m, step, by[step], next[step]);
  }
  step_once(&m, 2);
  require(figures_of(&m, 0).checks == 2, "exact sums were checked");
  free_model(&m);
}

/* With the class of top-k auto may have chosen a dense codec: it goes below that one. */
static void it_goes_below_the_codec_that_was_chosen(void) {
  model m;
  make_slow(&m, "net=auto:topk guard=1,residual=0.000001,limit=0.0001");
  step_once(&m, 0);
  require_codecs(&m, 0, "topk:0.01+ef", "auto:sign");
  step_once(&m, 1);
  require_codecs(&m, 1, "sign+ef", "auto:int2");
  free_model(&m);
  make_model(&m, "net=auto:topk guard=1,limit=0.0001", NODES, LCOMM_AVG);
  m.comm->topo.cost[LCOMM_LINK_NET].bandwidth_gb_s = 1e-5;
  for (int i = LCOMM_AUTO_INT4; i <= LCOMM_AUTO_TOPK; i++) { /* slow encoders */
    m.comm->topo.codec_cost[i] = (lcomm_codec_cost){.encode_gb_s = 1e-9, .decode_gb_s = 1e-9};
  }
  step_once(&m, 0);
  require_codecs(&m, 0, "int8", "auto:bf16");
  free_model(&m);
}

static const mpi_property properties[] = {
    PROPERTY(top_k_is_judged_by_its_residual),
    PROPERTY(a_dense_codec_is_judged_by_its_error),
    PROPERTY(it_goes_below_the_codec_that_was_chosen),
};
RUN_PROPERTIES(mpi_property_main, properties)
