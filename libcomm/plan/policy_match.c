/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The rules of match= and the patterns of net[...]: lists of them read and written, and tried on
 * data. */

#include "libcomm/plan/policy_match.h"
#include "libcomm/base/error.h"

#include "libcomm/plan/policy_internal.h"

typedef lcomm_span span;

/* --------------------------------------------------------------------- reading */

lcomm_status lcomm_policy_read_match(lcomm_policy_reader *r, span value, lcomm_policy *policy) {
  for (span rule; lcomm_span_next(&value, ",", &rule);) {
    LCOMM_TRY(
        lcomm_policy_check_room(r, rule, "rules", policy->rule_count, LCOMM_POLICY_RULES_MAX));
    LCOMM_TRY(lcomm_policy_read_rule(r, rule, &policy->rules[policy->rule_count++]));
  }
  return LCOMM_OK;
}

bool lcomm_policy_has_patterns(lcomm_span word) {
  return word.length > strlen("net") && memcmp(word.text, "net[", strlen("net[")) == 0;
}

static lcomm_status read_list(lcomm_policy_reader *r, span list, const lcomm_codec_spec *codec,
                              lcomm_policy *policy) {
  for (span text; lcomm_span_next(&list, ",", &text);) {
    LCOMM_TRY(lcomm_policy_check_room(r, text, "patterns", policy->pattern_count,
                                      LCOMM_POLICY_PATTERNS_MAX));
    lcomm_codec_pattern *pattern = &policy->patterns[policy->pattern_count++];
    pattern->codec = *codec;
    LCOMM_TRY(lcomm_policy_read_pattern(r, text, &pattern->rule));
  }
  return LCOMM_OK;
}

/* The list ends with the first "]=", so names in it may hold brackets. */
lcomm_status lcomm_policy_read_patterns(lcomm_policy_reader *r, lcomm_span word,
                                        lcomm_policy *policy) {
  lcomm_codec_spec codec;
  span list = lcomm_span_after(word, strlen("net[")), value = list;
  r->key = "net[*.bias,size<=64K]";
  r->example = "bf16";
  while (value.length > 1 && memcmp(value.text, "]=", 2) != 0) {
    value = lcomm_span_after(value, 1);
  }
  if (value.length <= 1) {
    return lcomm_policy_refuse(r, "the patterns of ", word,
                               " have no end; expected net[PATTERN,...]=CODEC");
  }
  list.length -= value.length;
  LCOMM_TRY(lcomm_policy_read_codec(r, lcomm_span_after(value, 2), LCOMM_ON_NET, &codec));
  return read_list(r, list, &codec, policy);
}

/* --------------------------------------------------------------------- writing */

void lcomm_policy_write_match(lcomm_writer *w, const lcomm_policy *policy) {
  for (unsigned i = 0; i < policy->rule_count && i < LCOMM_POLICY_RULES_MAX; i++) {
    lcomm_write(w, "%s", i == 0 ? " match=" : ",");
    lcomm_policy_write_rule(w, &policy->rules[i]);
  }
}

/* Neighbours of one codec are one word. */
void lcomm_policy_write_patterns(lcomm_writer *w, const lcomm_policy *policy) {
  char codec[LCOMM_CODEC_TEXT_MAX];
  for (unsigned i = 0; i < policy->pattern_count && i < LCOMM_POLICY_PATTERNS_MAX; i++) {
    const lcomm_codec_pattern *it = &policy->patterns[i];
    bool first = i == 0 || !lcomm_codec_spec_equal(&it[-1].codec, &it->codec);
    bool last = i + 1 == policy->pattern_count || !lcomm_codec_spec_equal(&it->codec, &it[1].codec);
    lcomm_write(w, "%s", first ? " net[" : ",");
    lcomm_policy_write_rule(w, &it->rule);
    if (last) {
      lcomm_write(w, "]=%s", lcomm_codec_spec_format(&it->codec, codec, sizeof codec));
    }
  }
}

/* ---------------------------------------------------------------------- trying */

/* Where the patterns begin in the bits of a name. */
enum { PATTERNS_SHIFT = 32 };

_Static_assert((int)LCOMM_POLICY_RULES_MAX <= (int)PATTERNS_SHIFT &&
                   PATTERNS_SHIFT + (int)LCOMM_POLICY_PATTERNS_MAX <= 64,
               "all rules and patterns have a bit");

static bool allows(const char *glob, const char *name) {
  return glob[0] == '\0' || lcomm_policy_glob_matches(glob, name);
}

uint64_t lcomm_match_named(const lcomm_policy *policy, const char *name) {
  uint64_t named = 0;
  for (unsigned i = 0; i < policy->rule_count; i++) {
    named |= (uint64_t)allows(policy->rules[i].comm, name) << i;
  }
  for (unsigned i = 0; i < policy->pattern_count; i++) {
    named |= (uint64_t)allows(policy->patterns[i].rule.comm, name) << (PATTERNS_SHIFT + i);
  }
  return named;
}

static bool is_within(const lcomm_bounds *range, uint64_t number) {
  return number >= range->least && number <= range->most;
}

static bool fits(const lcomm_match_rule *rule, const lcomm_match_call *call) {
  return (rule->calls >> call->kind & 1) != 0 && (rule->dtypes >> call->dtype & 1) != 0 &&
         (rule->ops >> call->op & 1) != 0 && is_within(&rule->count, call->count) &&
         is_within(&rule->ranks, (uint64_t)call->ranks) &&
         is_within(&rule->size_bytes, call->count * lcomm_dtype_size(call->dtype)) &&
         allows(rule->name, call->name ? call->name : "");
}

bool lcomm_match_fits(const lcomm_policy *policy, uint64_t named, const lcomm_match_call *call) {
  for (unsigned i = 0; i < policy->rule_count; i++) {
    if ((named >> i & 1) != 0 && fits(&policy->rules[i], call)) {
      return true;
    }
  }
  return false;
}

const lcomm_codec_pattern *lcomm_match_pattern(const lcomm_policy *policy, uint64_t named,
                                               const lcomm_match_call *call) {
  for (unsigned i = 0; i < policy->pattern_count; i++) {
    if ((named >> (PATTERNS_SHIFT + i) & 1) != 0 && fits(&policy->patterns[i].rule, call)) {
      return &policy->patterns[i];
    }
  }
  return NULL;
}

bool lcomm_match_uses_names(const lcomm_policy *policy) {
  bool uses = false;
  for (unsigned i = 0; i < policy->rule_count; i++) {
    uses |= policy->rules[i].comm[0] != '\0';
  }
  for (unsigned i = 0; i < policy->pattern_count; i++) {
    uses |= policy->patterns[i].rule.comm[0] != '\0';
  }
  return uses;
}
