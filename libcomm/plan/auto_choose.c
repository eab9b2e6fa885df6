/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/plan/auto_choose.h"

#include <stdio.h>
#include <string.h>

#include "libcomm/base/error.h"
#include "libcomm/base/writer.h"
#include "libcomm/plan/auto.h"
#include "libcomm/plan/auto_shapes.h"
#include "libcomm/plan/eligibility.h"
#include "libcomm/plan/plan_make.h"

/* Of plans with more steps only that of the rules is predicted: planning must stay short. */
enum { STEPS_MOST = 1 << 12 };

typedef struct choosing {
  const lcomm_plan_request *request;
  const lcomm_policy *policy;
  const lcomm_topo *topo;
  lcomm_why *why;
} choosing;

/* One candidate, and the best shape found for it. */
typedef struct rated_codec {
  bool acts; /* its codec is another one than exact */
  double us; /* in the best shape */
  double ruled_us;
  lcomm_allreduce_shape ruled, shape;
  int compared; /* other shapes */
} rated_codec;

/* ------------------------------------------------------------- prediction */

/* Is it another plan than the exact one? */
static bool compresses(const lcomm_plan *plan) {
  const lcomm_format *net = &plan->stages[LCOMM_STAGE_NET].format;
  return net->zstd || !lcomm_eligibility_is_exact(net, plan->dtype);
}

static lcomm_status outline(const choosing *c, const lcomm_allreduce_shape *shape, int candidate,
                            lcomm_plan **plan) {
  lcomm_plan_request request = *c->request;
  request.shape = shape;
  return lcomm_plan_outline(&request, c->policy, c->topo, 0, candidate, plan, c->why);
}

/* Take the fastest of these shapes, where it gains enough over the best so far. */
static lcomm_status compare(const choosing *c, const lcomm_auto_shapes *shapes, int candidate,
                            rated_codec *best) {
  for (int i = 0; i < shapes->count; i++) {
    lcomm_plan *plan = NULL;
    LCOMM_TRY(outline(c, &shapes->list[i], candidate, &plan));
    double us = lcomm_auto_predict_us(plan, c->topo, candidate);
    lcomm_plan_destroy(plan);
    best->compared++;
    if (lcomm_auto_shape_pays(us, best->ruled_us) && us < best->us) {
      best->us = us;
      best->shape = shapes->list[i];
    }
  }
  return LCOMM_OK;
}

static lcomm_status compare_shapes(const choosing *c, const lcomm_plan *ruled, int candidate,
                                   rated_codec *best) {
  if (ruled->collective != LCOMM_COLLECTIVE_ALLREDUCE || c->policy->algorithm != LCOMM_ALGO_AUTO ||
      c->topo->nodes < 2 || ruled->schedule.step_count > STEPS_MOST) {
    return LCOMM_OK;
  }
  lcomm_auto_shapes shapes = lcomm_auto_exchanges(ruled, c->topo);
  LCOMM_TRY(compare(c, &shapes, candidate, best));
  lcomm_allreduce_shape shape = best->shape;
  shapes = lcomm_auto_chunkings(ruled, c->topo, &shape);
  return compare(c, &shapes, candidate, best);
}

static lcomm_status rate(const choosing *c, int candidate, rated_codec *it) {
  lcomm_plan *ruled = NULL;
  LCOMM_TRY(outline(c, NULL, candidate, &ruled));
  *it = (rated_codec){.acts = candidate == 0 || compresses(ruled),
                      .ruled = ruled->shape,
                      .shape = ruled->shape,
                      .us = lcomm_auto_predict_us(ruled, c->topo, candidate)};
  it->ruled_us = it->us;
  lcomm_status status = it->acts ? compare_shapes(c, ruled, candidate, it) : LCOMM_OK;
  lcomm_plan_destroy(ruled);
  return status;
}

/* ------------------------------------------------------------------ words */

/* Is the best shape another one than that of the rules? */
static bool is_reshaped(const rated_codec *it) {
  return it->us != it->ruled_us;
}

static void write_times(lcomm_writer *w, const rated_codec *all, int last) {
  const char *separator = "predicted ";
  char name[64];
  for (int i = 0; i <= last; i++) {
    if (all[i].acts) {
      lcomm_codec_spec choice = lcomm_auto_candidate(i);
      lcomm_write(w, "%s%s ", separator, lcomm_codec_spec_format(&choice, name, sizeof(name)));
      lcomm_plan_write_us(w, all[i].us);
      separator = ", ";
    }
  }
}

static void write_shape(lcomm_writer *w, const rated_codec *it) {
  char shape[LCOMM_AUTO_SHAPE_TEXT_MAX];
  if (is_reshaped(it)) {
    lcomm_write(w, "; %s, for ", lcomm_auto_shape_format(&it->shape, shape));
    lcomm_write(w, "%s would take ", lcomm_auto_shape_format(&it->ruled, shape));
    lcomm_plan_write_us(w, it->ruled_us);
  } else if (it->compared > 0) {
    lcomm_write(w, "; none of %d other ways is a tenth faster", it->compared);
  }
}

/* Put the times before the reason of the plan, and the shape behind it. */
static void explain(lcomm_plan *plan, const rated_codec *all, int last, int best) {
  char text[sizeof(plan->reason)];
  lcomm_writer w = lcomm_writer_begin(text, sizeof(text));
  write_times(&w, all, last);
  lcomm_write(&w, "; %s", plan->reason);
  write_shape(&w, &all[best]);
  snprintf(plan->reason, sizeof(plan->reason), "%s", text);
}

/* -------------------------------------------------------------------- all */

lcomm_status lcomm_auto_choose(const lcomm_plan_request *request, const lcomm_policy *policy,
                               const lcomm_topo *topo, int rank, lcomm_plan **plan,
                               lcomm_why *why) {
  choosing c = {.request = request, .policy = policy, .topo = topo, .why = why};
  rated_codec all[LCOMM_AUTO_CODECS] = {{0}};
  int best = 0, last = (int)(*plan)->automatic.allowed;
  last = topo->hidden_from < last ? topo->hidden_from : last;
  for (int i = 0; i <= last; i++) {
    bool is_codec = lcomm_auto_candidate(i).rank == 0; /* low rank is no plan of one sum */
    LCOMM_TRY(is_codec ? rate(&c, i, &all[i]) : LCOMM_OK);
    best = all[i].acts && lcomm_auto_pays(all[i].us, all[best].us) ? i : best;
  }
  if (best > 0 || is_reshaped(&all[best])) {
    lcomm_plan *chosen = NULL;
    lcomm_plan_request shaped = *request;
    shaped.shape = is_reshaped(&all[best]) ? &all[best].shape : NULL;
    LCOMM_TRY(lcomm_plan_make(&shaped, policy, topo, rank, best, &chosen, why));
    lcomm_plan_destroy(*plan);
    *plan = chosen;
  }
  explain(*plan, all, last, best);
  return LCOMM_OK;
}
