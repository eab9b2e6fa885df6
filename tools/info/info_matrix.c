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

/* ----------------------------------------------------------------- making */

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

static lcomm_plan_request whole_of(const asking *it, const lcomm_named_data *data) {
  return (lcomm_plan_request){.collective = LCOMM_COLLECTIVE_ALLREDUCE,
                              .count = it->o->rows * it->o->columns,
                              .dtype = it->o->dtype,
                              .error_feedback = true,
                              .exact = data->exact,
                              .net = data->net};
}

static int plan(const asking *it, const lcomm_plan_request *request, lcomm_plan **made) {
  lcomm_why why;
  bool good = lcomm_plan_create(request, it->policy, it->topo, it->o->rank, made, &why) == LCOMM_OK;
  return good ? 0 : info_complain("no plan:", why.text);
}

/* By what its factors travel; of rank 0 where it is summed as it is. */
static int choose(const asking *it, const lcomm_named_data *data, info_matrix *matrix,
                  lcomm_codec_spec *by) {
  lcomm_plan_request request = whole_of(it, data);
  lcomm_lowrank_sizes sizes = {0};
  lcomm_why why;
  bool may = !data->exact && data->net.rank > 0 && it->topo->nodes > 1;
  *by = may ? data->net : lcomm_auto_candidate(LCOMM_AUTO_NONE);
  matrix->rated = may && data->net.automatic != LCOMM_AUTO_NONE;
  if (!matrix->rated) {
    return 0;
  }
  lcomm_lowrank_sizes_add(&sizes, it->o->rows, it->o->columns);
  if (lcomm_lowrank_rate(&request, it->policy, it->topo, &sizes, &matrix->rating, &why) !=
      LCOMM_OK) {
    return info_complain("no plan:", why.text);
  }
  *by = lcomm_auto_candidate(matrix->rating.taken ? LCOMM_AUTO_LOWRANK : LCOMM_AUTO_NONE);
  return 0;
}

static int add_sum(const asking *it, lcomm_plan_request request, info_matrix *matrix) {
  lcomm_plan **made = &matrix->plans[matrix->sums];
  int result = plan(it, &request, made);
  if (result == 0) {
    matrix->requests[matrix->sums++] = request;
    matrix->bytes += lcomm_plan_bytes_between_nodes(*made, it->topo);
  }
  return result;
}

static int add_factors(const asking *it, const lcomm_codec_spec *by, info_matrix *matrix) {
  lcomm_plan_request vector = {.op = LCOMM_SUM};
  int result = add_sum(it, lcomm_lowrank_request(&vector, by, by->rank * it->o->rows), matrix);
  return result == 0
             ? add_sum(it, lcomm_lowrank_request(&vector, by, by->rank * it->o->columns), matrix)
             : result;
}

static int count_exact(const asking *it, info_matrix *matrix) {
  lcomm_named_data exact = {.exact = true};
  lcomm_plan_request request = whole_of(it, &exact);
  lcomm_plan *made = NULL;
  int result = plan(it, &request, &made);
  matrix->exact_bytes = result == 0 ? lcomm_plan_bytes_between_nodes(made, it->topo) : 0;
  lcomm_plan_destroy(made);
  return result;
}

int info_matrix_make(const info_options *o, const lcomm_policy *policy, const lcomm_topo *topo,
                     info_matrix *matrix) {
  asking it = {o, policy, topo};
  lcomm_named_data data = policy_of(&it);
  lcomm_codec_spec by;
  *matrix = (info_matrix){.codec = "none"};
  if (!data.exact) {
    lcomm_codec_spec_format(&data.net, matrix->codec, sizeof matrix->codec);
  }
  int result = choose(&it, &data, matrix, &by);
  if (result == 0) {
    result =
        by.rank > 0 ? add_factors(&it, &by, matrix) : add_sum(&it, whole_of(&it, &data), matrix);
  }
  return result == 0 ? count_exact(&it, matrix) : result;
}

void info_matrix_free(info_matrix *matrix) {
  for (int i = 0; i < INFO_SUMS_MAX; i++) {
    lcomm_plan_destroy(matrix->plans[i]);
  }
}

/* ------------------------------------------------------------------ words */

static void print_sum(const info_matrix *matrix, int sum, const lcomm_topo *topo) {
  static const char *const titles[] = {"first sum, of P = M Q", "second sum, of Q = M' P"};
  char text[4096];
  lcomm_codec_speeds speeds = info_codec_speeds(matrix->plans[sum]);
  lcomm_plan_describe_timed(matrix->plans[sum], topo, &speeds, text, sizeof text);
  printf("\n%s\n%s", matrix->sums == 1 ? "one sum" : titles[sum], text);
}

static void print_choice(const info_options *o, const info_matrix *matrix) {
  char text[LCOMM_LOWRANK_RATING_TEXT_MAX];
  printf("matrix %llu x %llu, between nodes by %s\n", (whole)o->rows, (whole)o->columns,
         matrix->codec);
  if (matrix->rated) {
    printf("  taken is %s\n", lcomm_lowrank_rating_format(&matrix->rating, text));
  }
  if (matrix->sums > 1) {
    printf("  two sums, of %llu and %llu values\n", (whole)matrix->requests[0].count,
           (whole)matrix->requests[1].count);
  }
}

static void print(const info_options *o, const info_matrix *matrix, const lcomm_topo *topo) {
  print_choice(o, matrix);
  for (int i = 0; i < matrix->sums; i++) {
    print_sum(matrix, i, topo);
  }
  if (matrix->bytes > 0) {
    printf("\nbetween nodes  rank %d sends at most %llu bytes, %.4g times less than the %llu of an "
           "exact sum\n",
           o->rank, (whole)matrix->bytes, (double)matrix->exact_bytes / (double)matrix->bytes,
           (whole)matrix->exact_bytes);
  }
}

int info_print_matrix(const info_options *o, const lcomm_policy *policy, const lcomm_topo *topo) {
  info_matrix matrix;
  int result = info_matrix_make(o, policy, topo, &matrix);
  if (result == 0) {
    print(o, &matrix, topo);
  }
  info_matrix_free(&matrix);
  return result;
}
