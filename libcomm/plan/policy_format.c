/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Texts of policies: the canonical one, and what is wrong with a policy. */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "libcomm/plan/number.h"
#include "libcomm/plan/policy_internal.h"

const lcomm_policy lcomm_policy_default = {
    .net = {.format = {.codec = &lcomm_codec_none}},
    .node = {.format = {.codec = &lcomm_codec_none}},
    .rack = {.format = {.codec = &lcomm_codec_none}},
    .pipe = {.format = {.codec = &lcomm_codec_none}},
    .min_bytes = 64 << 10,
    .bucket_bytes = 25 << 20,
    .scope = LCOMM_SCOPE_TENSOR,
    .algorithm = LCOMM_ALGO_AUTO,
    .quorum = {.late_ms = 10},
};

const char *const lcomm_scope_names[LCOMM_SCOPE_COUNT] = {"tensor", "bucket"};
const char *const lcomm_algorithm_names[LCOMM_ALGORITHM_COUNT] = {
    "auto", "ring", "direct", "gather", "doubling", "halving", "servers"};

const char *lcomm_algorithm_name(lcomm_algorithm algorithm) {
  size_t index = (size_t)algorithm;
  return index < LCOMM_ALGORITHM_COUNT ? lcomm_algorithm_names[index] : "unknown algorithm";
}

/* ------------------------------------------------------------ codec words */

static void write_options(lcomm_writer *w, const lcomm_format *format) {
  const lcomm_codec *codec = format->codec;
  const size_t name_end = w->length;
  char density[LCOMM_DECIMAL_TEXT_MAX];
  if (lcomm_format_is_sparse(format) && format->density > 0) {
    lcomm_format_decimal(format->density, density, sizeof density);
    lcomm_write(w, ":%s", density);
  } else if (lcomm_format_is_sparse(format)) {
    lcomm_write(w, ":k=%llu", (unsigned long long)format->kept);
  }
  if (format->block != codec->blocks[0]) {
    lcomm_write(w, ":block=%u", format->block);
  }
  if (format->stochastic) {
    lcomm_write(w, "%cstochastic", w->length > name_end ? ',' : ':');
  }
  if (codec->id == LCOMM_CODEC_FP16 && format->variant == LCOMM_FP16_BLOCK) {
    lcomm_write(w, ":scale=block");
  }
  if (codec->id == LCOMM_CODEC_FP16 && format->variant == LCOMM_FP16_FIXED) {
    lcomm_write(w, ":scale=2^%d", format->exponent);
  }
  if (lcomm_format_is_sparse(format) && format->variant == LCOMM_TOPK_INT8) {
    lcomm_write(w, ",values=int8");
  }
}

const char *lcomm_codec_spec_format(const lcomm_codec_spec *choice, char *text, size_t size) {
  lcomm_writer w = lcomm_writer_begin(text, size);
  if (choice->automatic) {
    lcomm_write(&w, "auto:%s", lcomm_auto_class_name(choice->automatic));
    return text;
  }
  if (choice->rank > 0) {
    lcomm_policy_write_lowrank(&w, choice);
    return text;
  }
  lcomm_write(&w, "%s", choice->format.codec->name);
  write_options(&w, &choice->format);
  if (choice->error_feedback) {
    lcomm_write(&w, "+ef");
  } else if (choice->format.codec->feeds_back) {
    lcomm_write(&w, "-ef");
  }
  if (choice->format.zstd) {
    lcomm_write(&w, "+zstd");
  }
  return text;
}

bool lcomm_codec_spec_equal(const lcomm_codec_spec *a, const lcomm_codec_spec *b) {
  return lcomm_format_equal(&a->format, &b->format) && a->error_feedback == b->error_feedback &&
         a->automatic == b->automatic && a->rank == b->rank;
}

/* --------------------------------------------------------------- policies */

/* Every word begins with a space; the first one is dropped at the end. */
static void write_codec(lcomm_writer *w, const char *key, const lcomm_codec_spec *choice,
                        const lcomm_codec_spec *standard) {
  char name[LCOMM_CODEC_TEXT_MAX];
  if (!lcomm_codec_spec_equal(choice, standard)) {
    lcomm_write(w, " %s=%s", key, lcomm_codec_spec_format(choice, name, sizeof name));
  }
}

static void write_decimal(lcomm_writer *w, const char *before, double number) {
  char text[LCOMM_DECIMAL_TEXT_MAX];
  lcomm_format_decimal(number, text, sizeof text);
  lcomm_write(w, "%s%s", before, text);
}

static void write_ramp(lcomm_writer *w, const lcomm_policy *policy) {
  for (unsigned i = 0; i < policy->ramp.count && i < LCOMM_POLICY_RAMP_MAX; i++) {
    write_decimal(w, i == 0 ? " ramp=" : ",", policy->ramp.stages[i].density);
    lcomm_write(w, "@%llu", (unsigned long long)policy->ramp.stages[i].steps);
  }
}

void lcomm_policy_write_size(lcomm_writer *w, uint64_t bytes) {
  static const char *const units[] = {"", "K", "M", "G"};
  size_t unit = 0;
  for (; unit < 3 && bytes != 0 && bytes % 1024 == 0; unit++) {
    bytes /= 1024;
  }
  lcomm_write(w, "%llu%s", (unsigned long long)bytes, units[unit]);
}

static void write_size(lcomm_writer *w, const char *key, uint64_t bytes, uint64_t standard) {
  if (bytes == standard) {
    return;
  }
  lcomm_write(w, " %s=", key);
  lcomm_policy_write_size(w, bytes);
}

void lcomm_policy_format(const lcomm_policy *policy, char *text) {
  const lcomm_policy *standard = &lcomm_policy_default;
  char buffer[LCOMM_POLICY_MAX + 1] = ""; /* one more for the leading space */
  lcomm_writer w = lcomm_writer_begin(buffer, sizeof buffer);
  lcomm_policy_write_patterns(&w, policy);
  write_codec(&w, "net", &policy->net, &standard->net);
  write_codec(&w, "node", &policy->node, &standard->node);
  write_codec(&w, "rack", &policy->rack, &standard->rack);
  write_codec(&w, "pipe", &policy->pipe, &standard->pipe);
  write_size(&w, "min", policy->min_bytes, standard->min_bytes);
  for (unsigned i = 0; i < policy->exempt_count && i < LCOMM_POLICY_EXEMPT_MAX; i++) {
    lcomm_write(&w, "%s%.*s", i == 0 ? " exempt=" : ",", (int)sizeof policy->exempt[i] - 1,
                policy->exempt[i]);
  }
  if (policy->warmup_steps != standard->warmup_steps) {
    lcomm_write(&w, " warmup=%llu", (unsigned long long)policy->warmup_steps);
  }
  write_ramp(&w, policy);
  if (policy->momentum > 0) {
    write_decimal(&w, " momentum=", policy->momentum);
  }
  lcomm_policy_write_adam(&w, &policy->adam);
  if (policy->clip.norm > 0) {
    write_decimal(&w, " clip=", policy->clip.norm);
    lcomm_write(&w, "%s", policy->clip.scope == LCOMM_CLIP_GLOBAL ? ":global" : "");
  }
  if (policy->undo != standard->undo && !policy->discard_not_finite) {
    lcomm_write(&w, " undo=on");
  }
  if (policy->discard_not_finite != standard->discard_not_finite) {
    lcomm_write(&w, " nonfinite=discard");
  }
  if (policy->scope != standard->scope) {
    lcomm_write(&w, " scope=%s", lcomm_scope_names[policy->scope]);
  }
  write_size(&w, "bucket", policy->bucket_bytes, standard->bucket_bytes);
  if (policy->algorithm != standard->algorithm) {
    lcomm_write(&w, " algo=%s", lcomm_algorithm_name(policy->algorithm));
  }
  if (policy->checksum != standard->checksum) {
    lcomm_write(&w, " check=%s", policy->checksum ? "xxhash" : "none");
  }
  lcomm_policy_write_match(&w, policy);
  if (policy->step_calls != standard->step_calls) {
    lcomm_write(&w, " step=%u", policy->step_calls);
  }
  lcomm_policy_write_guard(&w, &policy->guard);
  lcomm_policy_write_quorum(&w, &policy->quorum);
  lcomm_policy_write_servers(&w, &policy->quorum.servers);
  if (w.length == 0) {
    lcomm_write(&w, " net=%s", standard->net.format.codec->name);
  }
  memcpy(text, buffer + 1, LCOMM_POLICY_MAX); /* cut, what does not fit */
}

/* -------------------------------------------------------------- conflicts */

/* Can the steps before the density of net be counted? */
static bool ramp_ends(const lcomm_policy *policy) {
  uint64_t steps = policy->warmup_steps;
  for (unsigned i = 0; i < policy->ramp.count && i < LCOMM_POLICY_RAMP_MAX; i++) {
    if (policy->ramp.stages[i].steps > UINT64_MAX - steps) {
      return false;
    }
    steps += policy->ramp.stages[i].steps;
  }
  return true;
}

/* Do ranks add to a partial sum and forward it? */
static bool passes_sums_on(lcomm_algorithm algorithm) {
  return algorithm == LCOMM_ALGO_RING || algorithm == LCOMM_ALGO_DOUBLING ||
         algorithm == LCOMM_ALGO_HALVING;
}

/* What the codecs between nodes have in common, and what only some have. */
typedef struct net_codecs {
  bool lossy, zstd, sparse, ramps, feedback, sparse_feedback, dense_feedback;
} net_codecs;

static net_codecs look_at_codecs(const lcomm_policy *policy) {
  net_codecs any = {0};
  for (unsigned i = 0; i < lcomm_policy_net_count(policy); i++) {
    const lcomm_codec_spec *it = lcomm_policy_net_codec(policy, i);
    bool sparse = lcomm_format_is_sparse(&it->format);
    any.lossy |= it->format.codec->id != LCOMM_CODEC_NONE;
    any.zstd |= it->format.zstd;
    any.sparse |= sparse;
    any.ramps |= sparse && !it->automatic;
    any.feedback |= it->error_feedback;
    any.sparse_feedback |= sparse && it->error_feedback;
    any.dense_feedback |= !sparse && it->error_feedback;
  }
  return any;
}

const char *lcomm_policy_conflict(const lcomm_policy *policy, const char **key) {
  net_codecs net = look_at_codecs(policy);
  *key = "algo";
  if (passes_sums_on(policy->algorithm) && net.lossy) {
    return "algo=ring, doubling and halving cannot carry the lossy codec of net, because they "
           "would quantise at every hop; expected algo=auto, direct or gather, or net=none";
  }
  if (passes_sums_on(policy->algorithm) && net.zstd) {
    return "algo=ring, doubling and halving cannot carry net=none+zstd, because they must know the "
           "size of their payloads in advance; expected algo=auto, direct or gather, or net=none";
  }
  *key = "ramp";
  if (policy->ramp.count > 0 && !net.ramps) {
    return "ramp changes the density of top-k, and net is another codec; expected net=topk:DENSITY";
  }
  if (!ramp_ends(policy)) {
    return "the steps of warmup and ramp together do not fit into 64 bits; expected fewer steps";
  }
  *key = "momentum";
  if (policy->momentum > 0 && !net.sparse_feedback) {
    return "momentum is kept together with what top-k has not sent yet; expected "
           "net=topk:DENSITY+ef";
  }
  if (policy->momentum > 0 && net.dense_feedback) {
    return "momentum is kept with what top-k has not sent yet, or apart from exact sums, and one "
           "of the codecs of net is dense with +ef, or lowrank; expected that without +ef, or topk";
  }
  *key = "adam";
  const char *adam = lcomm_policy_adam_conflict(policy);
  if (adam) {
    return adam;
  }
  *key = "clip";
  if (policy->clip.norm > 0 && !net.feedback) {
    return "gradients are clipped where they join what was not sent yet; expected a codec of net "
           "with +ef";
  }
  const char *servers = lcomm_policy_servers_conflict(policy, key);
  if (servers) {
    return servers;
  }
  *key = lcomm_policy_owners_key(policy);
  return lcomm_policy_quorum_conflict(policy);
}

/* -------------------------------------------------------------- sentences */

lcomm_status lcomm_policy_fail(lcomm_policy_reader *r, const char *at, const char *format, ...) {
  char what[LCOMM_WHY_MAX];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  return lcomm_why_set(r->error, LCOMM_ERR_POLICY, "%s, column %zu: %.400s; for example %s%s%s",
                       r->key ? "policy" : "codec", (size_t)(at - r->text) + 1, what,
                       r->key ? r->key : "", r->key != NULL ? "=" : "", r->example);
}

const char *lcomm_policy_quote(lcomm_span s, char *out) {
  size_t used = 0;
  out[used++] = '\'';
  for (size_t i = 0; i < s.length; i++) {
    unsigned char byte = (unsigned char)s.text[i];
    if (used + sizeof "\\xNN...'" > LCOMM_QUOTE_MAX) {
      used += (size_t)snprintf(out + used, LCOMM_QUOTE_MAX - used, "...");
      break;
    }
    if (byte >= 0x20 && byte < 0x7f) {
      out[used++] = (char)byte;
    } else {
      used += (size_t)snprintf(out + used, LCOMM_QUOTE_MAX - used, "\\x%02x", byte);
    }
  }
  out[used++] = '\'';
  out[used] = '\0';
  return out;
}

lcomm_status lcomm_policy_refuse(lcomm_policy_reader *r, const char *before, lcomm_span piece,
                                 const char *after) {
  char quoted[LCOMM_QUOTE_MAX];
  return lcomm_policy_fail(r, piece.text, "%s%s%s", before, lcomm_policy_quote(piece, quoted),
                           after);
}
