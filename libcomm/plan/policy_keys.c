/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The keys of a policy: one function for each, which reads its value. Nothing here depends on the
 * locale: all ranks must read the same numbers. */

#include "libcomm/plan/policy_keys.h"

#include "libcomm/base/error.h"
#include "libcomm/plan/number.h"

enum { SMALLEST_BUCKET = 4096 };

typedef lcomm_span span;
typedef lcomm_policy_parser parser;

/* ----------------------------------------------------- shared by all that reads */

lcomm_status lcomm_policy_read_size(lcomm_policy_reader *r, lcomm_span value, uint64_t *bytes) {
  bool overflow;
  size_t length = lcomm_read_size(value.text, value.length, bytes, &overflow);
  if (length == 0 || length < value.length) {
    return lcomm_policy_refuse(r, "", value,
                               " is no size; expected digits, then K, M, G or nothing");
  }
  if (overflow) {
    return lcomm_policy_refuse(r, "size ", value,
                               " does not fit into 64 bits; expected fewer bytes");
  }
  return LCOMM_OK;
}

lcomm_status lcomm_policy_check_room(lcomm_policy_reader *r, lcomm_span piece, const char *things,
                                     unsigned count, unsigned most) {
  if (count < most) {
    return LCOMM_OK;
  }
  return lcomm_policy_fail(r, piece.text, "too many %s; expected at most %u", things, most);
}

/* The whole of `value` as a decimal number, or -1. */
static double read_decimal(span value) {
  double number;
  size_t length = lcomm_read_decimal(value.text, value.length, &number);
  return length > 0 && length == value.length ? number : -1;
}

int lcomm_policy_find_name(lcomm_span value, const char *const *names, int count) {
  for (int i = 0; i < count; i++) {
    if (lcomm_span_is(value, names[i])) {
      return i;
    }
  }
  return -1;
}

/* ------------------------------------------------------------------- keys */

static lcomm_status parse_net(parser *p, span value) {
  p->preset = lcomm_policy_find_preset(value);
  if (p->preset) {
    return LCOMM_OK;
  }
  return lcomm_policy_read_codec(&p->in, value, LCOMM_ON_NET, &p->policy->net);
}

static lcomm_status parse_node(parser *p, span value) {
  return lcomm_policy_read_codec(&p->in, value, LCOMM_IN_NODE, &p->policy->node);
}

static lcomm_status parse_rack(parser *p, span value) {
  return lcomm_policy_read_codec(&p->in, value, LCOMM_IN_RACK, &p->policy->rack);
}

static lcomm_status parse_pipe(parser *p, span value) {
  return lcomm_policy_read_codec(&p->in, value, LCOMM_ON_PIPE, &p->policy->pipe);
}

static lcomm_status parse_min(parser *p, span value) {
  return lcomm_policy_read_size(&p->in, value, &p->policy->min_bytes);
}

static lcomm_status parse_exempt(parser *p, span value) {
  lcomm_policy *policy = p->policy;
  for (span glob; lcomm_span_next(&value, ",", &glob);) {
    LCOMM_TRY(lcomm_policy_check_room(&p->in, glob, "patterns", policy->exempt_count,
                                      LCOMM_POLICY_EXEMPT_MAX));
    LCOMM_TRY(lcomm_policy_read_glob(&p->in, glob, "GLOB[,GLOB...]",
                                     policy->exempt[policy->exempt_count++]));
  }
  return LCOMM_OK;
}

static lcomm_status parse_warmup(parser *p, span value) {
  if (!lcomm_policy_read_whole(value, UINT64_MAX, &p->policy->warmup_steps)) {
    return lcomm_policy_refuse(&p->in, "", value,
                               " is no number of steps; expected digits, below 2^64");
  }
  return LCOMM_OK;
}

static lcomm_status read_stage(parser *p, span text, lcomm_ramp_stage *stage) {
  span share = lcomm_span_before(text, "@"), steps = {text.text + text.length, 0};
  if (share.length < text.length) {
    steps = lcomm_span_after(text, share.length + 1);
  }
  stage->density = read_decimal(share);
  if (!(stage->density > 0 && stage->density <= 1)) {
    return lcomm_policy_refuse(
        &p->in, "", share, " is no share of a stage; expected DENSITY@STEPS with 0 < DENSITY <= 1");
  }
  if (!lcomm_policy_read_whole(steps, UINT64_MAX, &stage->steps) || stage->steps == 0) {
    return lcomm_policy_refuse(
        &p->in, "", steps,
        " is no number of steps of a stage; expected DENSITY@STEPS with 1 <= STEPS < 2^64");
  }
  return LCOMM_OK;
}

static lcomm_status parse_ramp(parser *p, span value) {
  lcomm_policy *policy = p->policy;
  for (span stage; lcomm_span_next(&value, ",", &stage);) {
    LCOMM_TRY(lcomm_policy_check_room(&p->in, stage, "stages", policy->ramp.count,
                                      LCOMM_POLICY_RAMP_MAX));
    LCOMM_TRY(read_stage(p, stage, &policy->ramp.stages[policy->ramp.count++]));
  }
  return LCOMM_OK;
}

static lcomm_status parse_momentum(parser *p, span value) {
  double momentum = read_decimal(value);
  if (!(momentum > 0 && momentum < 1)) {
    return lcomm_policy_refuse(&p->in, "", value,
                               " is no momentum; expected a decimal number with 0 < M < 1");
  }
  p->policy->momentum = momentum;
  return LCOMM_OK;
}

static lcomm_status parse_adam(parser *p, span value) {
  return lcomm_policy_read_adam(&p->in, value, &p->policy->adam);
}

static lcomm_status parse_clip(parser *p, span value) {
  static const char *const names[] = {"tensor", "global"};
  span norm = lcomm_span_before(value, ":");
  double clip = read_decimal(norm);
  if (!(clip > 0 && clip <= LCOMM_DECIMAL_MAX)) {
    return lcomm_policy_refuse(&p->in, "", norm,
                               " is no norm; expected a decimal number with 0 < NORM <= 1e9");
  }
  p->policy->clip.norm = clip;
  if (norm.length == value.length) {
    return LCOMM_OK;
  }
  span scope = lcomm_span_after(value, norm.length + 1);
  int index = lcomm_policy_find_name(scope, names, 2);
  if (index < 0) {
    return lcomm_policy_refuse(&p->in, "unknown scope of a norm ", scope,
                               "; expected NORM, NORM:tensor or NORM:global");
  }
  p->policy->clip.scope = (lcomm_clip_scope)index;
  return LCOMM_OK;
}

/* One of `count` names: its index. The sentence of another value is `before` 'value' `after`. */
static lcomm_status read_name(parser *p, span value, const char *const *names, int count,
                              const char *before, const char *after, int *index) {
  *index = lcomm_policy_find_name(value, names, count);
  return *index < 0 ? lcomm_policy_refuse(&p->in, before, value, after) : LCOMM_OK;
}

/* One of two names, the second of which is true. */
static lcomm_status read_either(parser *p, span value, const char *const names[2],
                                const char *before, const char *after, bool *second) {
  int index;
  LCOMM_TRY(read_name(p, value, names, 2, before, after, &index));
  *second = index == 1;
  return LCOMM_OK;
}

static lcomm_status parse_undo(parser *p, span value) {
  static const char *const names[] = {"off", "on"};
  return read_either(p, value, names, "", " is no answer; expected on or off", &p->policy->undo);
}

static lcomm_status parse_nonfinite(parser *p, span value) {
  static const char *const names[] = {"report", "discard"};
  return read_either(p, value, names, "",
                     " is nothing to do with NaN and Inf; expected report or discard",
                     &p->policy->discard_not_finite);
}

static lcomm_status parse_scope(parser *p, span value) {
  bool whole_bucket;
  LCOMM_TRY(read_either(p, value, lcomm_scope_names, "unknown scope ",
                        "; expected tensor or bucket", &whole_bucket));
  p->policy->scope = whole_bucket ? LCOMM_SCOPE_BUCKET : LCOMM_SCOPE_TENSOR;
  return LCOMM_OK;
}

static lcomm_status parse_bucket(parser *p, span value) {
  lcomm_status status = lcomm_policy_read_size(&p->in, value, &p->policy->bucket_bytes);
  if (status == LCOMM_OK && p->policy->bucket_bytes < SMALLEST_BUCKET) {
    return lcomm_policy_refuse(&p->in, "bucket ", value,
                               " is too small to fuse tensors; expected at least 4K");
  }
  return status;
}

static lcomm_status parse_algo(parser *p, span value) {
  int index;
  LCOMM_TRY(read_name(p, value, lcomm_algorithm_names, LCOMM_ALGORITHM_COUNT, "unknown algorithm ",
                      "; expected auto, ring, direct, gather, doubling, halving or servers",
                      &index));
  p->policy->algorithm = (lcomm_algorithm)index;
  return LCOMM_OK;
}

static lcomm_status parse_check(parser *p, span value) {
  static const char *const names[] = {"none", "xxhash"};
  return read_either(p, value, names, "unknown checksum ", "; expected none or xxhash",
                     &p->policy->checksum);
}

static lcomm_status parse_match(parser *p, span value) {
  return lcomm_policy_read_match(&p->in, value, p->policy);
}

static lcomm_status parse_step(parser *p, span value) {
  uint64_t calls = 0;
  if (!lcomm_policy_read_whole(value, LCOMM_POLICY_STEP_MAX, &calls) || calls == 0) {
    return lcomm_policy_refuse(&p->in, "", value,
                               " is no number of calls of a step; expected digits, from 1 to 4096");
  }
  p->policy->step_calls = (uint32_t)calls;
  return LCOMM_OK;
}

static lcomm_status parse_guard(parser *p, span value) {
  return lcomm_policy_read_guard(&p->in, value, &p->policy->guard);
}

static lcomm_status parse_quorum(parser *p, span value) {
  return lcomm_policy_read_quorum(&p->in, value, &p->policy->quorum);
}

static lcomm_status parse_stale(parser *p, span value) {
  return lcomm_policy_read_stale(&p->in, value, &p->policy->quorum);
}

static lcomm_status parse_late(parser *p, span value) {
  return lcomm_policy_read_late(&p->in, value, &p->policy->quorum);
}

static lcomm_status parse_servers(parser *p, span value) {
  return lcomm_policy_read_servers(&p->in, value, &p->policy->quorum.servers);
}

const lcomm_policy_key lcomm_policy_keys[LCOMM_POLICY_KEYS] = {
    {"net", parse_net, "int8"},
    {"node", parse_node, "bf16"},
    {"rack", parse_rack, "bf16"},
    {"pipe", parse_pipe, "fp8e4m3"},
    {"min", parse_min, "64K"},
    {"exempt", parse_exempt, "*.bias,*norm*"},
    {"warmup", parse_warmup, "100"},
    {"ramp", parse_ramp, "0.25@100,0.0625@100 net=topk:0.01+ef"},
    {"momentum", parse_momentum, "0.9 net=topk:0.01+ef"},
    {"adam", parse_adam, "onebit net=sign warmup=1000"},
    {"clip", parse_clip, "1 net=topk:0.01+ef"},
    {"undo", parse_undo, "on"},
    {"nonfinite", parse_nonfinite, "discard"},
    {"scope", parse_scope, "bucket"},
    {"bucket", parse_bucket, "25M"},
    {"algo", parse_algo, "direct"},
    {"check", parse_check, "xxhash"},
    {"match", parse_match, "size>=1M&op=sum"},
    {"step", parse_step, "12"},
    {"guard", parse_guard, "100,limit=0.5"},
    {"quorum", parse_quorum, "90%"},
    {"stale", parse_stale, "2"},
    {"late", parse_late, "20 quorum=90%"},
    {"servers", parse_servers, "0,1 algo=servers"},
};
