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
  fuzz_require(memchr(error, '\0', LCOMM_POLICY_ERROR_MAX) != NULL, "a sentence ends");
  fuzz_require(strncmp(error, start, strlen(start)) == 0, "a sentence names the column");
  fuzz_require(strstr(error, "; for example ") != NULL, "a sentence has an example");
  for (; *error != '\0'; error++) {
    fuzz_require(*error >= 0x20 && *error < 0x7f, "a sentence is printable");
  }
}

/* ----------------------------------------------------------------- codecs */

static bool same_choice(const lcomm_codec_choice *a, const lcomm_codec_choice *b) {
  return lcomm_format_equal(&a->format, &b->format) && a->error_feedback == b->error_feedback;
}

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

static void check_choice(const lcomm_codec_choice *choice) {
  char text[64], error[LCOMM_POLICY_ERROR_MAX];
  lcomm_codec_choice reread;
  check_format(&choice->format);
  fuzz_require(!choice->error_feedback || choice->format.codec->id != LCOMM_CODEC_NONE,
               "what is exact has no error feedback");
  lcomm_codec_choice_format(choice, text, sizeof text);
  fuzz_require(strlen(text) < sizeof text - 1, "the text of a codec is short");
  fuzz_require(lcomm_format_parse(text, &reread, error) == LCOMM_OK, "the text of a codec parses");
  fuzz_require(same_choice(choice, &reread), "a codec survives its text");
}

static void check_codec(const char *text) {
  char error[LCOMM_POLICY_ERROR_MAX], *word = calloc(strlen(text) + 5, 1);
  lcomm_codec_choice choice;
  lcomm_policy policy;
  lcomm_status status = lcomm_format_parse(text, &choice, error);
  fuzz_require(word != NULL, "the test machine has memory");
  if (status == LCOMM_OK) {
    check_choice(&choice);
    sprintf(word, "net=%s", text);
    status = lcomm_policy_parse(word, &policy, error);
    fuzz_require(strlen(word) >= LCOMM_POLICY_MAX - 1 || status == LCOMM_OK,
                 "a codec is a word of net");
    fuzz_require(status != LCOMM_OK || same_choice(&choice, &policy.net),
                 "a codec alone is the same as after net=");
  } else {
    fuzz_require(status == LCOMM_ERR_POLICY, "a bad codec is a policy error");
    check_sentence(error, "codec, column ");
  }
  free(word);
}

/* ------------------------------------------------------------------ rules */

static bool same_bounds(const lcomm_bounds *a, const lcomm_bounds *b) {
  return a->least == b->least && a->most == b->most;
}

static void check_equal_rules(const lcomm_policy *a, const lcomm_policy *b) {
  fuzz_require(a->rule_count == b->rule_count, "rules survive their text");
  for (unsigned i = 0; i < a->rule_count; i++) {
    const lcomm_match_rule *x = &a->rules[i], *y = &b->rules[i];
    fuzz_require(same_bounds(&x->size_bytes, &y->size_bytes) && same_bounds(&x->count, &y->count) &&
                     same_bounds(&x->ranks, &y->ranks),
                 "bounds survive their text");
    fuzz_require(x->dtypes == y->dtypes && x->ops == y->ops && x->calls == y->calls,
                 "types, operations and calls survive their text");
    fuzz_require(strcmp(x->comm, y->comm) == 0, "a pattern survives its text");
  }
}

static void check_rules(const lcomm_policy *policy, const char *name) {
  uint32_t named = lcomm_match_named(policy, name);
  fuzz_require(policy->rule_count <= LCOMM_POLICY_RULES_MAX, "rules fit into the policy");
  fuzz_require(policy->step_calls <= LCOMM_POLICY_STEP_MAX, "a step is in its range");
  fuzz_require(named >> policy->rule_count == 0, "only rules that are there are named");
  for (unsigned i = 0; i < policy->rule_count; i++) {
    const lcomm_match_rule *rule = &policy->rules[i];
    fuzz_require(rule->size_bytes.least <= rule->size_bytes.most &&
                     rule->count.least <= rule->count.most && rule->ranks.least <= rule->ranks.most,
                 "bounds leave numbers between them");
    fuzz_require(rule->dtypes > 0 && rule->dtypes < 1u << 6 && rule->ops > 0 &&
                     rule->ops < 1u << 4 && rule->calls > 0 && rule->calls < 1u << LCOMM_CALL_KINDS,
                 "a rule has types, operations and calls");
    fuzz_require(memchr(rule->comm, '\0', sizeof rule->comm) != NULL, "a pattern ends");
    fuzz_require(rule->comm[0] != '\0' || (named >> i & 1) != 0, "without a pattern any name fits");
  }
}

/* --------------------------------------------------------------- policies */

static void check_equal(const lcomm_policy *a, const lcomm_policy *b) {
  fuzz_require(same_choice(&a->net, &b->net) && same_choice(&a->node, &b->node),
               "codecs survive their text");
  fuzz_require(a->min_bytes == b->min_bytes && a->warmup_steps == b->warmup_steps &&
                   a->bucket_bytes == b->bucket_bytes,
               "numbers survive their text");
  fuzz_require(!(a->momentum < b->momentum || a->momentum > b->momentum || a->clip < b->clip ||
                 a->clip > b->clip),
               "decimal numbers survive their text");
  fuzz_require(a->ramp_count == b->ramp_count, "stages survive their text");
  for (unsigned i = 0; i < a->ramp_count; i++) {
    fuzz_require(memcmp(&a->ramp[i].density, &b->ramp[i].density, sizeof a->ramp[i].density) == 0 &&
                     a->ramp[i].steps == b->ramp[i].steps,
                 "a stage survives its text");
  }
  fuzz_require(a->scope == b->scope && a->algorithm == b->algorithm && a->checksum == b->checksum,
               "choices survive their text");
  fuzz_require(a->exempt_count == b->exempt_count &&
                   memcmp(a->exempt, b->exempt, sizeof a->exempt) == 0,
               "exempt patterns survive their text");
  fuzz_require(a->step_calls == b->step_calls, "the calls of a step survive their text");
  check_equal_rules(a, b);
}

static void check_ranges(const lcomm_policy *policy) {
  bool sparse = lcomm_format_is_sparse(&policy->net.format);
  uint64_t steps = policy->warmup_steps;
  fuzz_require(policy->ramp_count == 0 || sparse, "only top-k has a ramp");
  fuzz_require(policy->ramp_count <= LCOMM_POLICY_RAMP_MAX, "stages fit into the policy");
  for (unsigned i = 0; i < policy->ramp_count; i++) {
    fuzz_require(policy->ramp[i].density > 0 && policy->ramp[i].density <= 1,
                 "a stage keeps a share");
    fuzz_require(policy->ramp[i].steps > 0 && policy->ramp[i].steps <= UINT64_MAX - steps,
                 "the steps of all stages can be counted");
    steps += policy->ramp[i].steps;
  }
  fuzz_require(policy->momentum >= 0 && policy->momentum < 1, "momentum is in its range");
  fuzz_require(policy->clip >= 0 && policy->clip <= 1e9, "a norm is in its range");
  fuzz_require(!(policy->momentum > 0) || (sparse && policy->net.error_feedback),
               "momentum is kept with the residual of top-k");
  fuzz_require(!(policy->clip > 0) || policy->net.error_feedback, "clipping needs error feedback");
  fuzz_require(policy->algorithm != LCOMM_ALGO_RING ||
                   (policy->net.format.codec->id == LCOMM_CODEC_NONE && !policy->net.format.zstd),
               "a ring is exact and not compressed");
  fuzz_require(!policy->node.error_feedback && !lcomm_format_is_sparse(&policy->node.format),
               "inside a node there is no error feedback");
}

void lcomm_fuzz_policy(const uint8_t *data, size_t size) {
  char *text = text_of(data, size);
  char error[LCOMM_POLICY_ERROR_MAX], canonical[LCOMM_POLICY_MAX], again[LCOMM_POLICY_MAX];
  lcomm_policy policy, reread;
  lcomm_status status = lcomm_policy_parse(text, &policy, error);
  if (status == LCOMM_OK) {
    check_choice(&policy.net);
    check_choice(&policy.node);
    check_ranges(&policy);
    check_rules(&policy, text);
    lcomm_policy_format(&policy, canonical);
    fuzz_require(lcomm_policy_parse(canonical, &reread, error) == LCOMM_OK,
                 "canonical text parses");
    check_equal(&policy, &reread);
    lcomm_policy_format(&reread, again);
    fuzz_require(strcmp(canonical, again) == 0, "canonical text is stable");
    fuzz_require(lcomm_policy_exempts(&policy, text) == lcomm_policy_exempts(&reread, text),
                 "a policy from canonical text exempts the same names");
  } else {
    fuzz_require(status == LCOMM_ERR_POLICY, "a bad policy is a policy error");
    check_sentence(error, "policy, column ");
  }
  check_codec(text);
  free(text);
}
