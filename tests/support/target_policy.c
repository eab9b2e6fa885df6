/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/target_policy.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/plan/policy_match.h"
#include "tests/support/fuzz_promise.h"

/* Exactly as long as the text, so that a sanitizer sees one byte too far. */
static char *text_of(const uint8_t *data, size_t size) {
  char *text = calloc(size + 1, 1);
  fuzz_require(text != NULL, "the test machine has memory");
  if (size > 0) {
    memcpy(text, data, size);
  }
  return text;
}

static void check_sentence(const char *error, const char *start) {
  fuzz_require(memchr(error, '\0', LCOMM_WHY_MAX) != NULL, "a sentence ends");
  fuzz_require(strncmp(error, start, strlen(start)) == 0, "a sentence names the column");
  fuzz_require(strstr(error, "; for example ") != NULL, "a sentence has an example");
  for (; *error != '\0'; error++) {
    fuzz_require(*error >= 0x20 && *error < 0x7f, "a sentence is printable");
  }
}

/* ----------------------------------------------------------------- codecs */

static bool is_block_of(const lcomm_codec *codec, uint16_t block) {
  bool any = codec->blocks[0] == 0 && block == 0;
  for (const uint16_t *known = codec->blocks; *known != 0; known++) {
    any = any || *known == block;
  }
  return any;
}

static void check_format(const lcomm_format *format) {
  const lcomm_codec_id id = format->codec->id;
  fuzz_require(lcomm_codec_by_id(id) == format->codec, "a codec is one of the list");
  fuzz_require(is_block_of(format->codec, format->block), "a block is one of the codec's");
  fuzz_require((format->exponent != 0) ==
                   (id == LCOMM_CODEC_FP16 && format->variant == LCOMM_FP16_FIXED),
               "a fixed scale has an exponent, and nothing else has");
  fuzz_require(format->exponent >= -24 && format->exponent <= 24, "an exponent is in its range");
  fuzz_require(format->variant <= (id == LCOMM_CODEC_FP16   ? LCOMM_FP16_BLOCK
                                   : id == LCOMM_CODEC_TOPK ? LCOMM_TOPK_INT8
                                                            : LCOMM_VARIANT_PLAIN),
               "a variant is one of the codec's");
  fuzz_require(!format->stochastic || id == LCOMM_CODEC_FP8E4M3 || id == LCOMM_CODEC_FP8E5M2,
               "only fp8 is rounded stochastically");
  fuzz_require(format->density >= 0 && format->density <= 1 && format->kept <= UINT32_MAX,
               "what top-k keeps is in its range");
  fuzz_require((format->density > 0) + (format->kept > 0) == (id == LCOMM_CODEC_TOPK),
               "top-k keeps a share or a number");
}

static void check_choice(const lcomm_codec_spec *choice) {
  char text[64];
  lcomm_why error;
  lcomm_codec_spec reread;
  check_format(&choice->format);
  fuzz_require(!choice->error_feedback || !lcomm_codec_spec_is_exact(choice),
               "what is exact has no error feedback");
  fuzz_require(choice->rank == 0 || (choice->rank <= LCOMM_RANK_MAX && choice->error_feedback &&
                                     !choice->automatic && !choice->format.zstd &&
                                     !lcomm_format_is_sparse(&choice->format)),
               "a rank is in its range, and has error feedback");
  lcomm_codec_spec_format(choice, text, sizeof text);
  fuzz_require(strlen(text) < sizeof text - 1, "the text of a codec is short");
  if (choice->automatic || choice->rank > 0) { /* a word of policies, no codec */
    fuzz_require(lcomm_format_parse(text, &reread, &error) != LCOMM_OK, "this is no codec alone");
    return;
  }
  fuzz_require(lcomm_format_parse(text, &reread, &error) == LCOMM_OK, "the text of a codec parses");
  fuzz_require(lcomm_codec_spec_equal(choice, &reread), "a codec survives its text");
}

static void check_codec(const char *text) {
  char *word = calloc(strlen(text) + 5, 1);
  lcomm_why error;
  lcomm_codec_spec choice;
  lcomm_policy policy;
  lcomm_status status = lcomm_format_parse(text, &choice, &error);
  fuzz_require(word != NULL, "the test machine has memory");
  if (status == LCOMM_OK) {
    check_choice(&choice);
    sprintf(word, "net=%s", text);
    status = lcomm_policy_parse(word, &policy, &error);
    fuzz_require(strlen(word) >= LCOMM_POLICY_MAX - 1 || status == LCOMM_OK,
                 "a codec is a word of net");
    fuzz_require(status != LCOMM_OK || lcomm_codec_spec_equal(&choice, &policy.net),
                 "a codec alone is the same as after net=");
  } else {
    fuzz_require(status == LCOMM_ERR_POLICY, "a bad codec is a policy error");
    check_sentence(error.text, "codec, column ");
  }
  free(word);
}

/* ------------------------------------------------------------------ rules */

static bool same_bounds(const lcomm_bounds *a, const lcomm_bounds *b) {
  return a->least == b->least && a->most == b->most;
}

static void check_equal_rule(const lcomm_match_rule *x, const lcomm_match_rule *y) {
  fuzz_require(same_bounds(&x->size_bytes, &y->size_bytes) && same_bounds(&x->count, &y->count) &&
                   same_bounds(&x->ranks, &y->ranks),
               "bounds survive their text");
  fuzz_require(x->dtypes == y->dtypes && x->ops == y->ops && x->calls == y->calls,
               "types, operations and calls survive their text");
  fuzz_require(strcmp(x->comm, y->comm) == 0 && strcmp(x->name, y->name) == 0,
               "globs survive their text");
}

static void check_equal_rules(const lcomm_policy *a, const lcomm_policy *b) {
  fuzz_require(a->rule_count == b->rule_count && a->pattern_count == b->pattern_count,
               "rules and patterns survive their text");
  for (unsigned i = 0; i < a->rule_count; i++) {
    check_equal_rule(&a->rules[i], &b->rules[i]);
  }
  for (unsigned i = 0; i < a->pattern_count; i++) {
    check_equal_rule(&a->patterns[i].rule, &b->patterns[i].rule);
    fuzz_require(lcomm_codec_spec_equal(&a->patterns[i].codec, &b->patterns[i].codec),
                 "the codec of a pattern survives its text");
  }
}

static void check_rule(const lcomm_match_rule *rule, bool named) {
  fuzz_require(rule->size_bytes.least <= rule->size_bytes.most &&
                   rule->count.least <= rule->count.most && rule->ranks.least <= rule->ranks.most,
               "bounds leave numbers between them");
  fuzz_require(rule->dtypes > 0 && rule->dtypes < 1u << 8 && rule->ops > 0 && rule->ops < 1u << 4 &&
                   rule->calls > 0 && rule->calls < 1u << LCOMM_CALL_KINDS,
               "a rule has types, operations and calls");
  fuzz_require(memchr(rule->comm, '\0', sizeof rule->comm) != NULL &&
                   memchr(rule->name, '\0', sizeof rule->name) != NULL,
               "a glob ends");
  fuzz_require(rule->comm[0] != '\0' || named, "without a glob any name fits");
}

static void check_rules(const lcomm_policy *policy, const char *name) {
  uint64_t named = lcomm_match_named(policy, name), patterns = named >> 32;
  fuzz_require(policy->rule_count <= LCOMM_POLICY_RULES_MAX, "rules fit into the policy");
  fuzz_require(policy->pattern_count <= LCOMM_POLICY_PATTERNS_MAX, "patterns fit into the policy");
  fuzz_require(policy->step_calls <= LCOMM_POLICY_STEP_MAX, "a step is in its range");
  fuzz_require((named & UINT32_MAX) >> policy->rule_count == 0 &&
                   patterns >> policy->pattern_count == 0,
               "only rules and patterns that are there are named");
  for (unsigned i = 0; i < policy->rule_count; i++) {
    check_rule(&policy->rules[i], named >> i & 1);
    fuzz_require(policy->rules[i].name[0] == '\0', "rules of calls ask for no tensor");
  }
  for (unsigned i = 0; i < policy->pattern_count; i++) {
    check_rule(&policy->patterns[i].rule, patterns >> i & 1);
    check_choice(&policy->patterns[i].codec);
  }
}

/* The first that fits, by both policies. */
static void check_pattern(const lcomm_policy *a, const lcomm_policy *b, const char *name) {
  lcomm_match_call call = {.kind = LCOMM_CALL_ALLREDUCE,
                           .count = strlen(name),
                           .dtype = LCOMM_FLOAT32,
                           .op = LCOMM_SUM,
                           .ranks = 4,
                           .name = name};
  const lcomm_codec_pattern *x = lcomm_match_pattern(a, lcomm_match_named(a, ""), &call);
  const lcomm_codec_pattern *y = lcomm_match_pattern(b, lcomm_match_named(b, ""), &call);
  fuzz_require((x != NULL) == (y != NULL), "a policy from canonical text has the same patterns");
  fuzz_require(!x || x - a->patterns == y - b->patterns, "they have the same order");
}

/* --------------------------------------------------------------- policies */

static void check_equal(const lcomm_policy *a, const lcomm_policy *b) {
  fuzz_require(
      lcomm_codec_spec_equal(&a->net, &b->net) && lcomm_codec_spec_equal(&a->node, &b->node) &&
          lcomm_codec_spec_equal(&a->rack, &b->rack) && lcomm_codec_spec_equal(&a->pipe, &b->pipe),
      "codecs survive their text");
  fuzz_require(a->min_bytes == b->min_bytes && a->warmup_steps == b->warmup_steps &&
                   a->bucket_bytes == b->bucket_bytes,
               "numbers survive their text");
  fuzz_require(!(a->momentum < b->momentum || a->momentum > b->momentum ||
                 a->clip.norm < b->clip.norm || a->clip.norm > b->clip.norm),
               "decimal numbers survive their text");
  fuzz_require(a->adam.onebit == b->adam.onebit && a->adam.refresh == b->adam.refresh &&
                   !(a->adam.beta1 < b->adam.beta1 || a->adam.beta1 > b->adam.beta1),
               "compressed momentum survives its text");
  fuzz_require(a->ramp.count == b->ramp.count, "stages survive their text");
  for (unsigned i = 0; i < a->ramp.count; i++) {
    fuzz_require(memcmp(&a->ramp.stages[i].density, &b->ramp.stages[i].density,
                        sizeof a->ramp.stages[i].density) == 0 &&
                     a->ramp.stages[i].steps == b->ramp.stages[i].steps,
                 "a stage survives its text");
  }
  fuzz_require(a->scope == b->scope && a->algorithm == b->algorithm && a->checksum == b->checksum,
               "choices survive their text");
  fuzz_require(a->exempt_count == b->exempt_count &&
                   memcmp(a->exempt, b->exempt, sizeof a->exempt) == 0,
               "exempt patterns survive their text");
  fuzz_require(a->step_calls == b->step_calls, "the calls of a step survive their text");
  fuzz_require(a->quorum.ranks == b->quorum.ranks && a->quorum.percent == b->quorum.percent &&
                   a->quorum.late_ms == b->quorum.late_ms && a->quorum.stale == b->quorum.stale &&
                   a->quorum.drops == b->quorum.drops,
               "a quorum survives its text");
  fuzz_require(memcmp(&a->quorum.servers, &b->quorum.servers, sizeof a->quorum.servers) == 0,
               "servers survive their text");
  check_equal_rules(a, b);
}

static void check_ranges(const lcomm_policy *policy) {
  bool sparse = false, feedback = false, lossy = false, dense_feedback = false;
  for (unsigned i = 0; i < lcomm_policy_net_count(policy); i++) {
    const lcomm_codec_spec *net = lcomm_policy_net_codec(policy, i);
    bool is_sparse = lcomm_format_is_sparse(&net->format);
    sparse |= is_sparse;
    feedback |= net->error_feedback;
    dense_feedback |= net->error_feedback && !is_sparse;
    lossy |= net->format.codec->id != LCOMM_CODEC_NONE || net->format.zstd;
  }
  fuzz_require(!policy->rack.error_feedback && !policy->rack.automatic && policy->rack.rank == 0 &&
                   !policy->rack.format.codec->feeds_back &&
                   !lcomm_format_is_sparse(&policy->rack.format),
               "codecs inside racks leave nothing out");
  uint64_t steps = policy->warmup_steps;
  fuzz_require(policy->ramp.count == 0 || sparse, "only top-k has a ramp");
  fuzz_require(policy->ramp.count <= LCOMM_POLICY_RAMP_MAX, "stages fit into the policy");
  for (unsigned i = 0; i < policy->ramp.count; i++) {
    fuzz_require(policy->ramp.stages[i].density > 0 && policy->ramp.stages[i].density <= 1,
                 "a stage keeps a share");
    fuzz_require(policy->ramp.stages[i].steps > 0 &&
                     policy->ramp.stages[i].steps <= UINT64_MAX - steps,
                 "the steps of all stages can be counted");
    steps += policy->ramp.stages[i].steps;
  }
  fuzz_require(policy->momentum >= 0 && policy->momentum < 1, "momentum is in its range");
  fuzz_require(!policy->adam.onebit || (policy->adam.beta1 > 0 && policy->adam.beta1 < 1 &&
                                        policy->warmup_steps > 0 && dense_feedback && !sparse),
               "momentum is compressed after a warm-up by what makes up for its errors");
  fuzz_require(policy->clip.norm >= 0 && policy->clip.norm <= 1e9, "a norm is in its range");
  fuzz_require(!(policy->momentum > 0) || (sparse && feedback && !dense_feedback),
               "momentum is kept with the residual of top-k");
  fuzz_require(!(policy->clip.norm > 0) || feedback, "clipping needs error feedback");
  fuzz_require(policy->algorithm != LCOMM_ALGO_RING || !lossy,
               "a ring is exact and not compressed");
  fuzz_require(!policy->node.error_feedback && !lcomm_format_is_sparse(&policy->node.format),
               "inside a node there is no error feedback");
}

void lcomm_fuzz_policy(const uint8_t *data, size_t size) {
  char *text = text_of(data, size);
  char canonical[LCOMM_POLICY_MAX], again[LCOMM_POLICY_MAX];
  lcomm_why error;
  lcomm_policy policy, reread;
  lcomm_status status = lcomm_policy_parse(text, &policy, &error);
  if (status == LCOMM_OK) {
    check_choice(&policy.net);
    check_choice(&policy.node);
    check_ranges(&policy);
    check_rules(&policy, text);
    lcomm_policy_format(&policy, canonical);
    fuzz_require(lcomm_policy_parse(canonical, &reread, &error) == LCOMM_OK,
                 "canonical text parses");
    check_equal(&policy, &reread);
    lcomm_policy_format(&reread, again);
    fuzz_require(strcmp(canonical, again) == 0, "canonical text is stable");
    fuzz_require(lcomm_policy_exempts(&policy, text) == lcomm_policy_exempts(&reread, text),
                 "a policy from canonical text exempts the same names");
    check_pattern(&policy, &reread, text);
  } else {
    fuzz_require(status == LCOMM_ERR_POLICY, "a bad policy is a policy error");
    check_sentence(error.text, "policy, column ");
  }
  check_codec(text);
  free(text);
}
