/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The policy parser: words, presets, and what no word can see alone. Nothing here depends on the
 * locale: all ranks must read the same numbers. */

#include <string.h>

#include "libcomm/plan/policy_keys.h"

typedef lcomm_span span;
typedef lcomm_policy_parser parser;

static bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Sentences of this parser end with the example of this key. */
static void use_key(parser *p, const lcomm_policy_key *k) {
  p->in.key = k->name;
  p->in.example = k->example;
}

/* Index of a key, or LCOMM_POLICY_KEYS. */
static int find_key(span name) {
  int index = 0;
  while (index < LCOMM_POLICY_KEYS && !lcomm_span_is(name, lcomm_policy_keys[index].name)) {
    index++;
  }
  return index;
}

static lcomm_status parse_word(parser *p, span word) {
  static const char expected[] =
      "expected KEY=VALUE with one of the keys net, net[PATTERN,...], node, rack, pipe, min, "
      "exempt, "
      "warmup, ramp, momentum, adam, clip, undo, nonfinite, scope, bucket, algo, check, match, "
      "step, guard, quorum, stale, late, servers";
  char quoted[LCOMM_QUOTE_MAX];
  span name = lcomm_span_before(word, "=");
  int index = find_key(name);
  if (lcomm_policy_has_patterns(word)) {
    return lcomm_policy_read_patterns(&p->in, word, p->policy);
  }
  use_key(p, &lcomm_policy_keys[0]);
  if (index == LCOMM_POLICY_KEYS) {
    return lcomm_policy_fail(&p->in, word.text, "unknown key %s; %s",
                             lcomm_policy_quote(name, quoted), expected);
  }
  use_key(p, &lcomm_policy_keys[index]);
  if (name.length == word.length) {
    return lcomm_policy_fail(&p->in, word.text, "key %s has no value; %s",
                             lcomm_policy_quote(name, quoted), expected);
  }
  if (p->word[index]) {
    return lcomm_policy_fail(
        &p->in, word.text,
        "key %s is given a second time, first in column %zu; expected each key once",
        lcomm_policy_quote(name, quoted), (size_t)(p->word[index] - p->in.text) + 1);
  }
  p->word[index] = word.text;
  return lcomm_policy_keys[index].parse(p, lcomm_span_after(word, name.length + 1));
}

/* A word of the preset is at fault where net= names it. */
static lcomm_status add_word(parser *p, span word) {
  const char *net = p->word[find_key((span){"net", 3})];
  if (lcomm_policy_has_patterns(word)) {
    return lcomm_policy_read_patterns(&p->in, word, p->policy);
  }
  span name = lcomm_span_before(word, "=");
  int index = find_key(name);
  if (p->word[index] && p->word[index] != net) {
    return LCOMM_OK;
  }
  p->word[index] = net;
  return lcomm_policy_keys[index].parse(p, lcomm_span_after(word, name.length + 1));
}

/* What the policy does not say itself. Of these words only patterns can be refused. */
static lcomm_status add_preset(parser *p) {
  const lcomm_policy_preset *preset = p->preset;
  const char *net = p->word[find_key((span){"net", 3})];
  for (int i = 0; i < LCOMM_PRESET_WORDS_MAX && preset->words[i]; i++) {
    const char *word = preset->words[i];
    if (add_word(p, (span){word, strlen(word)}) != LCOMM_OK) {
      use_key(p, &lcomm_policy_keys[0]);
      return lcomm_policy_fail(&p->in, net,
                               "preset %s has patterns of its own, and there are too many with "
                               "them; expected fewer net[PATTERN,...]",
                               preset->name);
    }
  }
  return LCOMM_OK;
}

/* What no word can see alone. */
static lcomm_status check_whole(parser *p) {
  char text[LCOMM_POLICY_MAX];
  int undo = find_key((span){"undo", 4});
  const char *name, *why = lcomm_policy_conflict(p->policy, &name);
  if (p->policy->discard_not_finite && !p->policy->undo && p->word[undo]) {
    use_key(p, &lcomm_policy_keys[undo]);
    return lcomm_policy_fail(&p->in, p->word[undo],
                             "nonfinite=discard undoes steps; expected undo=on, or no undo=");
  }
  p->policy->undo |= p->policy->discard_not_finite;
  int late = find_key((span){"late", 4});
  if (p->word[late] && !lcomm_policy_has_quorum(p->policy) && p->policy->quorum.stale == 0) {
    use_key(p, &lcomm_policy_keys[late]);
    return lcomm_policy_fail(&p->in, p->word[late],
                             "late says how long a quorum waits for the others, or a step for its "
                             "result; expected quorum= or stale=, too");
  }
  if (why) {
    int index = find_key((span){name, strlen(name)});
    use_key(p, &lcomm_policy_keys[index]);
    return lcomm_policy_fail(&p->in, p->word[index], "%s", why);
  }
  /* The canonical text can be a little longer than the one that was given;
   * one that fills its buffer may have been cut. */
  lcomm_policy_format(p->policy, text);
  if (strlen(text) < LCOMM_POLICY_MAX - 1) {
    return LCOMM_OK;
  }
  p->in.key = "exempt";
  p->in.example = "*.bias";
  return lcomm_policy_fail(&p->in, p->in.text + strlen(p->in.text),
                           "the canonical form is too long; expected fewer than %d bytes, so use "
                           "fewer or shorter patterns and rules",
                           LCOMM_POLICY_MAX - 1);
}

static lcomm_status parse_words(parser *p, size_t length) {
  lcomm_status status = LCOMM_OK;
  for (size_t i = 0; i < length && status == LCOMM_OK;) {
    size_t end = i;
    while (end < length && !is_space(p->in.text[end])) {
      end++;
    }
    if (end > i) {
      status = parse_word(p, (span){p->in.text + i, end - i});
    }
    i = end + 1;
  }
  return status;
}

lcomm_status lcomm_policy_parse(const char *text, lcomm_policy *policy, lcomm_why *error) {
  lcomm_policy parsed = lcomm_policy_default;
  parser p = {.in = {.text = text ? text : "", .error = error}, .policy = &parsed};
  size_t length = strnlen(p.in.text, LCOMM_POLICY_MAX);
  error->text[0] = '\0';
  use_key(&p, &lcomm_policy_keys[0]);
  if (length == LCOMM_POLICY_MAX) {
    return lcomm_policy_fail(&p.in, p.in.text + LCOMM_POLICY_MAX - 1,
                             "the policy is too long; expected fewer than %d bytes",
                             LCOMM_POLICY_MAX);
  }
  lcomm_status status = parse_words(&p, length);
  if (status == LCOMM_OK && p.preset) {
    status = add_preset(&p);
  }
  if (status == LCOMM_OK) {
    status = check_whole(&p);
  }
  if (status == LCOMM_OK) {
    *policy = parsed;
  }
  return status;
}
