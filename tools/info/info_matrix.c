/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tools/info/info_matrix.h"

#include <stdio.h>

#include "libcomm/plan/eligibility.h"
#include "tools/info/info_speeds.h"

typedef unsigned long long whole;

typedef struct asking {
  const info_options *o;
  const lcomm_policy *policy;
  const lcomm_topo *topo;
} asking;

/* One sum of a tensor: its plan in words, unless `title` is NULL, and its bytes. */
static int add_sum(const asking *it, lcomm_plan_request request, const char *title,
                   uint64_t *bytes) {
  char text[4096];
  lcomm_plan *plan = NULL;
  lcomm_why why;
  request.collective = LCOMM_COLLECTIVE_ALLREDUCE;
  request.error_feedback = true;
  if (lcomm_plan_create(&request, it->policy, it->topo, it->o->rank, &plan, &why) != LCOMM_OK) {
    return info_complain("no plan:", why.text);
  }
  if (title) {
    lcomm_codec_speeds speeds = info_codec_speeds(plan);
    lcomm_plan_describe_timed(plan, it->topo, &speeds, text, sizeof text);
    printf("\n%s\n%s", title, text);
  }
  *bytes += lcomm_plan_bytes_between_nodes(plan, it->topo);
  lcomm_plan_destroy(plan);
  return 0;
}

static lcomm_named_data policy_of(const asking *it) {
  lcomm_match_call call = {.kind = LCOMM_CALL_ALLREDUCE,
                           .count = it->o->rows * it->o->columns,
                           .dtype = it->o->dtype,
                           .op = LCOMM_SUM,
                           .ranks = it->topo->size,
                           .name = "",
                           .rows = it->o->rows,
                           .columns = it->o->columns};
  return lcomm_eligibility_of_name(it->policy, lcomm_match_named(it->policy, ""), &call);
}

static int add_factors(const asking *it, const lcomm_codec_spec *net, uint64_t *bytes) {
  uint64_t left = net->rank * it->o->rows, right = net->rank * it->o->columns;
  lcomm_plan_request request = {.dtype = LCOMM_FLOAT32, .net = {.format = net->format}};
  printf("  two sums, of %llu and %llu values\n", (whole)left, (whole)right);
  request.count = left;
  int result = add_sum(it, request, "first sum, of P = M Q", bytes);
  request.count = right;
  return result == 0 ? add_sum(it, request, "second sum, of Q = M' P", bytes) : result;
}

static int add_whole(const asking *it, const lcomm_named_data *data, const char *title,
                     uint64_t *bytes) {
  lcomm_plan_request request = {.count = it->o->rows * it->o->columns,
                                .dtype = it->o->dtype,
                                .exact = data->exact,
                                .net = data->net};
  return add_sum(it, request, title, bytes);
}

int info_print_matrix(const info_options *o, const lcomm_policy *policy, const lcomm_topo *topo) {
  asking it = {o, policy, topo};
  lcomm_named_data data = policy_of(&it), exact = {.exact = true};
  bool factored = !data.exact && data.net.rank > 0 && topo->nodes > 1;
  uint64_t bytes = 0, exact_bytes = 0;
  char codec[LCOMM_POLICY_MAX] = "none";
  if (!data.exact) {
    lcomm_codec_spec_format(&data.net, codec, sizeof codec);
  }
  printf("matrix %llu x %llu, between nodes by %s\n", (whole)o->rows, (whole)o->columns, codec);
  int result =
      factored ? add_factors(&it, &data.net, &bytes) : add_whole(&it, &data, "one sum", &bytes);
  if (result == 0) {
    result = add_whole(&it, &exact, NULL, &exact_bytes);
  }
  if (result == 0 && bytes > 0) {
    printf("\nbetween nodes  rank %d sends at most %llu bytes, %.4g times less than the %llu of an "
           "exact sum\n",
           o->rank, (whole)bytes, (double)exact_bytes / (double)bytes, (whole)exact_bytes);
  }
  return result;
}
