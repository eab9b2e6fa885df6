/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/plan/eligibility.h"

static bool sums(lcomm_collective collective) {
  return collective == LCOMM_COLLECTIVE_ALLREDUCE || lcomm_collective_scatters(collective);
}

/* As rules count: of one rank's part where there are parts, of uneven ones of their mean,
 * rounded up; an uneven all-gather counts all of its parts. */
static uint64_t count_of(const lcomm_plan_request *request, int ranks) {
  uint64_t all = request->count, size = (uint64_t)ranks;
  bool mean = request->collective == LCOMM_COLLECTIVE_REDUCE_SCATTERV;
  return mean ? all / size + (all % size > 0) : all;
}

static uint64_t size_bytes(const lcomm_plan_request *request, int ranks) {
  return count_of(request, ranks) * lcomm_dtype_size(request->dtype);
}

/* ----------------------------------------------------------------- rules */

/* The kind of a collective; LCOMM_CALL_KINDS for those that no rule speaks of. */
static lcomm_call_kind kind_of(lcomm_collective collective) {
  switch (collective) {
  case LCOMM_COLLECTIVE_ALLREDUCE:
    return LCOMM_CALL_ALLREDUCE;
  case LCOMM_COLLECTIVE_REDUCE_SCATTER:
  case LCOMM_COLLECTIVE_REDUCE_SCATTERV:
    return LCOMM_CALL_REDUCE_SCATTER;
  case LCOMM_COLLECTIVE_ALLGATHER:
  case LCOMM_COLLECTIVE_ALLGATHERV:
    return LCOMM_CALL_ALLGATHER;
  case LCOMM_COLLECTIVE_BROADCAST:
    return LCOMM_CALL_BROADCAST;
  default:
    return LCOMM_CALL_KINDS;
  }
}

/* As rules see the request with the operation `op`. */
static lcomm_match_call call_of(const lcomm_plan_request *request, lcomm_op op, int ranks) {
  return (lcomm_match_call){.kind = kind_of(request->collective),
                            .count = count_of(request, ranks),
                            .dtype = request->dtype,
                            .op = op,
                            .ranks = ranks};
}

static const char *why_unmatched(const lcomm_plan_request *request, lcomm_op op,
                                 const lcomm_policy *policy, int ranks, uint64_t named) {
  lcomm_match_call call = call_of(request, op, ranks);
  if (policy->rule_count == 0 || request->error_feedback ||
      lcomm_match_fits(policy, named, &call)) {
    return NULL;
  }
  return "no rule of the policy's match fits";
}

/* The pattern that a call fits by itself; NULL where the owner of its data has asked, or none. */
static const lcomm_codec_pattern *pattern_of(const lcomm_plan_request *request, lcomm_op op,
                                             const lcomm_policy *policy, int ranks,
                                             uint64_t named) {
  lcomm_match_call call = call_of(request, op, ranks);
  return request->net.format.codec ? NULL : lcomm_match_pattern(policy, named, &call);
}

lcomm_eligibility lcomm_eligibility_begin(const lcomm_plan_request *request,
                                          const lcomm_policy *policy, int ranks, uint64_t named) {
  const lcomm_codec_pattern *pattern = pattern_of(request, request->op, policy, ranks, named);
  const lcomm_codec_spec *standard = request->net.format.codec ? &request->net : &policy->net;
  return (lcomm_eligibility){
      .request = request,
      .policy = policy,
      .ranks = ranks,
      .net = pattern ? pattern->codec : *standard,
      .pattern = pattern,
      .unmatched = why_unmatched(request, request->op, policy, ranks, named),
  };
}

/* Averages are sums to a plan, unless a rule or pattern tells them apart. */
unsigned lcomm_eligibility_equal_ops(const lcomm_plan_request *request, const lcomm_policy *policy,
                                     int ranks, uint64_t named) {
  if (lcomm_plan_op(request->op) != LCOMM_SUM) {
    return 1u << request->op;
  }
  bool sum = !why_unmatched(request, LCOMM_SUM, policy, ranks, named);
  bool average = !why_unmatched(request, LCOMM_AVG, policy, ranks, named);
  bool same = pattern_of(request, LCOMM_SUM, policy, ranks, named) ==
              pattern_of(request, LCOMM_AVG, policy, ranks, named);
  return same && sum == average ? 1u << LCOMM_SUM | 1u << LCOMM_AVG : 1u << request->op;
}

/* ------------------------------------------------------- tensors, residuals */

static bool asks_for_nothing(const lcomm_codec_spec *choice) {
  return lcomm_codec_spec_is_exact(choice) && !choice->format.zstd;
}

/* Of auto a matrix may go so, if its class and momentum= allow it. */
static unsigned auto_rank(const lcomm_policy *policy, const lcomm_codec_spec *net,
                          const lcomm_match_call *call) {
  bool allowed = net->automatic >= LCOMM_AUTO_LOWRANK && !(policy->momentum > 0);
  return allowed && lcomm_lowrank_gains(LCOMM_AUTO_RANK, call->rows, call->columns)
             ? LCOMM_AUTO_RANK
             : 0;
}

/* What low rank does not act on stays exact between nodes. */
static void find_matrix(const lcomm_policy *policy, const lcomm_match_call *call,
                        lcomm_named_data *data) {
  if (data->net.automatic != LCOMM_AUTO_NONE) {
    data->net.rank = (uint16_t)auto_rank(policy, &data->net, call);
    return;
  }
  if (data->net.rank > 0 && !lcomm_lowrank_gains(data->net.rank, call->rows, call->columns)) {
    data->net = (lcomm_codec_spec){.format = lcomm_format_of(&lcomm_codec_none)};
    data->exact |= asks_for_nothing(&policy->node);
  }
}

lcomm_named_data lcomm_eligibility_of_name(const lcomm_policy *policy, uint64_t named,
                                           const lcomm_match_call *call) {
  lcomm_named_data data = {.net = policy->net};
  uint64_t bytes = call->count * lcomm_dtype_size(call->dtype);
  if (lcomm_sum_stays_exact(call->dtype, call->op) || lcomm_policy_exempts(policy, call->name)) {
    data.exact = true;
    return data;
  }
  const lcomm_codec_pattern *pattern = lcomm_match_pattern(policy, named, call);
  if (pattern) {
    data.net = pattern->codec;
    data.exact = asks_for_nothing(&data.net) && asks_for_nothing(&policy->node);
  } else {
    data.exact = bytes < policy->min_bytes;
  }
  find_matrix(policy, call, &data);
  return data;
}

/* ---------------------------------------------------------------- codecs */

/* Why no policy compresses such calls; NULL if one may. */
static const char *why_never(const lcomm_plan_request *request) {
  if (!sums(request->collective)) {
    return "only sums are compressed";
  }
  if (lcomm_plan_op(request->op) != LCOMM_SUM) {
    return "minima and maxima are never compressed";
  }
  if (lcomm_sum_stays_exact(request->dtype, request->op)) {
    return "only float32 and the 16-bit types are compressed";
  }
  return NULL;
}

/* What top-k leaves out of a reduce-scatter is lost without a residual, which tensors are not
 * for; positions are said in 32 bits. */
static const char *why_not_sparse(const lcomm_plan_request *request) {
  if (lcomm_collective_scatters(request->collective) && !request->error_feedback) {
    return "top-k applies to reduce-scatters with a residual only";
  }
  return request->count >= UINT32_MAX ? "top-k positions are 32-bit" : NULL;
}

/* Is it smaller than min=? The owner of data with a name has asked that himself. */
static bool is_small(const lcomm_eligibility *eligibility) {
  const lcomm_plan_request *request = eligibility->request;
  return !request->net.format.codec &&
         size_bytes(request, eligibility->ranks) < eligibility->policy->min_bytes;
}

const char *lcomm_eligibility_why_exact(const lcomm_eligibility *eligibility,
                                        const lcomm_codec_spec *choice) {
  const lcomm_plan_request *request = eligibility->request;
  const char *never = why_never(request);
  if (asks_for_nothing(choice)) {
    return "the policy asks for no codec";
  }
  if (never) {
    return never;
  }
  if (request->exact) {
    return "exact by exemption or warm-up";
  }
  if (is_small(eligibility)) {
    return "smaller than the policy's min";
  }
  if (eligibility->unmatched) {
    return eligibility->unmatched;
  }
  if (choice->rank > 0) {
    return "low rank acts on tensors with a shape, each matrix by sums of its two factors";
  }
  if (choice->error_feedback && !request->error_feedback) {
    return "error feedback needs a tensor or a residual, this is a plain call";
  }
  return lcomm_format_is_sparse(&choice->format) ? why_not_sparse(request) : NULL;
}

const char *lcomm_eligibility_why_plan_exact(const lcomm_eligibility *eligibility,
                                             const lcomm_topo *topo) {
  const lcomm_codec_spec *node = &eligibility->policy->node;
  if (topo->nodes > 1 || asks_for_nothing(&eligibility->net) || !asks_for_nothing(node)) {
    return lcomm_eligibility_why_exact(eligibility, topo->nodes > 1 ? &eligibility->net : node);
  }
  return topo->size < 2 ? "a rank alone sends nothing"
                        : "there is no link between nodes for net= to act on: all ranks are on one "
                          "node (LCOMM_NODES=2 poses as two)";
}

lcomm_codec_spec lcomm_eligibility_codec(const lcomm_eligibility *eligibility,
                                         const lcomm_codec_spec *choice) {
  lcomm_codec_spec made = *choice;
  lcomm_format exact = lcomm_format_exact(eligibility->request->dtype);
  if (lcomm_eligibility_why_exact(eligibility, choice)) {
    return (lcomm_codec_spec){.format = exact};
  }
  if (lcomm_format_is_sparse(&made.format) && eligibility->request->density > 0) {
    made.format.density = eligibility->request->density;
    made.format.kept = 0;
  }
  if (made.format.codec->id == LCOMM_CODEC_NONE) {
    /* 16-bit numbers travel as they are, with or without the lossless stage */
    exact.zstd = made.format.zstd;
    made.format = exact;
  }
  return made;
}

bool lcomm_eligibility_is_exact(const lcomm_format *format, lcomm_dtype dtype) {
  lcomm_format exact = lcomm_format_exact(dtype);
  bool wide = format->codec->id == LCOMM_CODEC_NONE; /* float32 holds all of a 16-bit type */
  return wide || (format->codec == exact.codec && format->variant == exact.variant);
}

/* --------------------------------------------------------------- choosing */

/* Why the policy does not choose a call; NULL when it does. */
static const char *why_left(const lcomm_plan_request *request, const lcomm_policy *policy,
                            const lcomm_topo *topo, uint64_t named) {
  if (topo->size < 2) {
    return "a rank alone sends nothing";
  }
  if (topo->nodes < 2 && policy->node.format.codec->id == LCOMM_CODEC_NONE) {
    return "its ranks are on one node, where the policy asks for no codec";
  }
  if (request->count <= LCOMM_VECTOR_SIZE_MAX &&
      size_bytes(request, topo->size) < policy->min_bytes) {
    return "smaller than the policy's min";
  }
  if (!lcomm_plan_fits_memory(request, topo->size)) {
    return "more elements than fit into memory";
  }
  if (policy->rule_count == 0) {
    return why_never(request);
  }
  return why_unmatched(request, request->op, policy, topo->size, named);
}

/* Does a codec of the policy act on the call, and lose something? */
static bool loses(const lcomm_eligibility *eligibility, const lcomm_codec_spec *choice) {
  return choice->format.codec->id != LCOMM_CODEC_NONE &&
         !lcomm_eligibility_is_exact(&choice->format, eligibility->request->dtype) &&
         !lcomm_eligibility_why_exact(eligibility, choice);
}

/* The same of all codecs. */
static bool is_lossy(const lcomm_eligibility *eligibility, const lcomm_topo *topo) {
  return loses(eligibility, &eligibility->policy->node) ||
         (topo->nodes > 1 && loses(eligibility, &eligibility->net));
}

/* Why a call that is chosen is exact, with a residual, too, if it may have one: that matters
 * to codecs with error feedback alone. */
static const char *why_chosen_exact(const lcomm_eligibility *plain,
                                    const lcomm_eligibility *error_feedback,
                                    const lcomm_topo *topo) {
  const lcomm_codec_spec *outer = topo->nodes > 1 ? &plain->net : &plain->policy->node;
  const char *why =
      lcomm_eligibility_why_exact(outer->error_feedback ? error_feedback : plain, outer);
  if (why) {
    return why;
  }
  return outer->error_feedback ? "error feedback of plain calls is for sums of float32 only"
                               : "the policy's codec carries such elements as they are";
}

/* All-reduces of float32, and reduce-scatters where the codec says +ef: some lose something with a
 * residual only, which nobody has asked for. */
static bool may_have_residual(const lcomm_plan_request *request,
                              const lcomm_eligibility *error_feedback) {
  bool scatters = request->collective == LCOMM_COLLECTIVE_REDUCE_SCATTER;
  return request->dtype == LCOMM_FLOAT32 && (request->collective == LCOMM_COLLECTIVE_ALLREDUCE ||
                                             (scatters && error_feedback->net.error_feedback));
}

lcomm_selection lcomm_eligibility_select(const lcomm_plan_request *request,
                                         const lcomm_policy *policy, const lcomm_topo *topo,
                                         uint64_t named, const char **why) {
  *why = why_left(request, policy, topo, named);
  if (*why) {
    return LCOMM_SELECT_NONE;
  }
  *why = "";
  lcomm_eligibility plain = lcomm_eligibility_begin(request, policy, topo->size, named);
  if (is_lossy(&plain, topo)) {
    return LCOMM_SELECT_LOSSY;
  }
  lcomm_plan_request with_residual = *request;
  with_residual.error_feedback = true;
  lcomm_eligibility error_feedback =
      lcomm_eligibility_begin(&with_residual, policy, topo->size, named);
  if (may_have_residual(request, &error_feedback) && is_lossy(&error_feedback, topo)) {
    return LCOMM_SELECT_EF;
  }
  *why = why_chosen_exact(&plain, &error_feedback, topo);
  return LCOMM_SELECT_EXACT;
}
