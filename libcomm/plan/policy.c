/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The policy parser. Every key has one function, in the table `keys`. Nothing
 * here depends on the locale: all ranks must read the same numbers. */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "libcomm/plan/number.h"
#include "libcomm/plan/policy_internal.h"

enum { KEY_COUNT = 9, QUOTE_MAX = 64, SMALLEST_BUCKET = 4096 };

typedef struct span {
  const char *text;
  size_t length;
} span;

typedef struct parser {
  const char *text;
  const char *example; /* that ends an error sentence */
  char *error;
  lcomm_policy *policy;
  const char *word[KEY_COUNT]; /* where each key was given, or NULL */
} parser;

typedef struct key {
  const char *name;
  lcomm_status (*parse)(parser *p, span value);
  const char *example;
} key;

__attribute__((format(printf, 3, 4))) static lcomm_status fail(parser *p, const char *at,
                                                               const char *format, ...) {
  char what[LCOMM_POLICY_ERROR_MAX];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  snprintf(p->error, LCOMM_POLICY_ERROR_MAX, "policy, column %zu: %.400s; for example %s",
           (size_t)(at - p->text) + 1, what, p->example);
  return LCOMM_ERR_POLICY;
}

/* 'text' for an error message: printable ASCII as it is, other bytes as \xNN,
 * long texts cut. Returns `out`, which holds QUOTE_MAX bytes. */
static const char *quote(span s, char *out) {
  size_t used = 0;
  out[used++] = '\'';
  for (size_t i = 0; i < s.length; i++) {
    unsigned char byte = (unsigned char)s.text[i];
    if (used + sizeof "\\xNN...'" > QUOTE_MAX) {
      used += (size_t)snprintf(out + used, QUOTE_MAX - used, "...");
      break;
    }
    if (byte >= 0x20 && byte < 0x7f)
      out[used++] = (char)byte;
    else
      used += (size_t)snprintf(out + used, QUOTE_MAX - used, "\\x%02x", byte);
  }
  out[used++] = '\'';
  out[used] = '\0';
  return out;
}

static bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool span_is(span s, const char *word) {
  return s.length == strlen(word) && memcmp(s.text, word, s.length) == 0;
}

/* Length of the leading part of `s` before the first byte of `stops`. */
static size_t length_before(span s, const char *stops) {
  size_t i = 0;
  while (i < s.length && strchr(stops, s.text[i]) == NULL)
    i++;
  return i;
}

static span span_after(span s, size_t skip) {
  return (span){s.text + skip, s.length - skip};
}

/* ---------------------------------------------------------------- numbers */

static lcomm_status read_size(parser *p, span value, uint64_t *bytes) {
  char quoted[QUOTE_MAX];
  bool overflow;
  unsigned shift = 0;
  uint64_t number;
  size_t digits = lcomm_read_integer(value.text, value.length, &number, &overflow);
  span unit = span_after(value, digits);
  if (unit.length == 1)
    shift = *unit.text == 'K' ? 10 : *unit.text == 'M' ? 20 : *unit.text == 'G' ? 30 : 0;
  if (digits == 0 || unit.length > 1 || (unit.length == 1 && shift == 0))
    return fail(p, value.text, "%s is no size; expected digits, then K, M, G or nothing",
                quote(value, quoted));
  if (overflow || number > UINT64_MAX >> shift)
    return fail(p, value.text, "size %s does not fit into 64 bits; expected fewer bytes",
                quote(value, quoted));
  *bytes = number << shift;
  return LCOMM_OK;
}

/* ----------------------------------------------------------------- values */

/* The codec names as "none, fp16, ..., topk:DENSITY". */
static void list_codecs(char *text, size_t size) {
  size_t used = 0;
  text[0] = '\0';
  for (const lcomm_codec *const *c = lcomm_codec_list; *c != NULL && used < size; c++) {
    int n = snprintf(text + used, size - used, "%s%s%s", used > 0 ? ", " : "", (*c)->name,
                     (*c)->id == LCOMM_CODEC_TOPK ? ":DENSITY" : "");
    used += n > 0 ? (size_t)n : 0;
  }
}

static lcomm_status read_density(parser *p, span after_name, lcomm_codec_choice *choice,
                                 span *rest) {
  char quoted[QUOTE_MAX];
  p->example = "net=topk:0.01+ef";
  if (after_name.length == 0 || *after_name.text != ':')
    return fail(p, after_name.text,
                "topk needs the share of values to send; expected topk:DENSITY with "
                "0 < DENSITY <= 1");
  span text = span_after(after_name, 1);
  size_t length = lcomm_read_decimal(text.text, text.length, &choice->density);
  *rest = span_after(text, length);
  if (length == 0 || (rest->length > 0 && *rest->text != '+'))
    return fail(p, text.text, "%s is no density; expected a decimal number with 0 < DENSITY <= 1",
                quote(text, quoted));
  if (!(choice->density > 0 && choice->density <= 1))
    return fail(p, text.text, "density %s is out of range; expected 0 < DENSITY <= 1",
                quote((span){text.text, length}, quoted));
  return LCOMM_OK;
}

static lcomm_status read_codec(parser *p, span value, lcomm_codec_choice *choice) {
  char quoted[QUOTE_MAX], names[160];
  span name = {value.text, length_before(value, ":+")};
  span rest = span_after(value, name.length);
  *choice = (lcomm_codec_choice){lcomm_codec_by_name(name.text, name.length), 0, false};
  if (choice->codec == NULL) {
    list_codecs(names, sizeof names);
    return fail(p, name.text, "unknown codec %s; expected one of %s", quote(name, quoted), names);
  }
  if (choice->codec->id == LCOMM_CODEC_TOPK) {
    lcomm_status status = read_density(p, rest, choice, &rest);
    if (status != LCOMM_OK)
      return status;
  } else if (rest.length > 0 && *rest.text == ':') {
    return fail(p, rest.text, "codec %s takes no density; expected %s or %s+ef",
                quote(name, quoted), choice->codec->name, choice->codec->name);
  }
  if (rest.length == 0)
    return LCOMM_OK;
  if (!span_is(rest, "+ef"))
    return fail(p, rest.text, "unknown ending %s of a codec; expected +ef or nothing",
                quote(rest, quoted));
  if (choice->codec->id == LCOMM_CODEC_NONE)
    return fail(p, rest.text,
                "codec none is exact and leaves no error to feed back; expected "
                "none or a lossy codec with +ef");
  choice->error_feedback = true;
  return LCOMM_OK;
}

/* Index of `value` in `names`, or -1. */
static int find_name(span value, const char *const *names, int count) {
  for (int i = 0; i < count; i++) {
    if (span_is(value, names[i]))
      return i;
  }
  return -1;
}

/* ------------------------------------------------------------------- keys */

static lcomm_status parse_net(parser *p, span value) {
  return read_codec(p, value, &p->policy->net);
}

static lcomm_status parse_node(parser *p, span value) {
  static const char why[] = "its error feedback lives on the shard, after the exact reduction "
                            "inside the node; put it on net, and expect here a dense codec "
                            "without +ef";
  lcomm_status status = read_codec(p, value, &p->policy->node);
  if (status != LCOMM_OK)
    return status;
  if (p->policy->node.codec->id == LCOMM_CODEC_TOPK)
    return fail(p, value.text, "topk cannot be used inside a node: %s", why);
  if (p->policy->node.error_feedback)
    return fail(p, value.text, "%s+ef cannot be used inside a node: %s",
                p->policy->node.codec->name, why);
  return LCOMM_OK;
}

static lcomm_status parse_min(parser *p, span value) {
  return read_size(p, value, &p->policy->min_bytes);
}

static lcomm_status parse_exempt(parser *p, span value) {
  char quoted[QUOTE_MAX];
  lcomm_policy *policy = p->policy;
  for (;;) {
    span glob = {value.text, length_before(value, ",")};
    if (glob.length == 0)
      return fail(p, glob.text, "empty pattern; expected GLOB[,GLOB...] without empty parts");
    if (glob.length >= sizeof policy->exempt[0])
      return fail(p, glob.text, "pattern %s has %zu bytes; expected at most %zu",
                  quote(glob, quoted), glob.length, sizeof policy->exempt[0] - 1);
    if (policy->exempt_count == LCOMM_POLICY_EXEMPT_MAX)
      return fail(p, glob.text, "too many patterns; expected at most %d", LCOMM_POLICY_EXEMPT_MAX);
    for (size_t i = 0; i < glob.length; i++) {
      unsigned char byte = (unsigned char)glob.text[i];
      if (byte < 0x20 || byte == 0x7f)
        return fail(p, glob.text + i, "control character in pattern %s; expected printable bytes",
                    quote(glob, quoted));
    }
    memcpy(policy->exempt[policy->exempt_count++], glob.text, glob.length);
    if (glob.length == value.length)
      return LCOMM_OK;
    value = span_after(value, glob.length + 1);
  }
}

static lcomm_status parse_warmup(parser *p, span value) {
  char quoted[QUOTE_MAX];
  bool overflow;
  size_t digits = lcomm_read_integer(value.text, value.length, &p->policy->warmup_steps, &overflow);
  if (digits == 0 || digits < value.length || overflow)
    return fail(p, value.text, "%s is no number of steps; expected digits, below 2^64",
                quote(value, quoted));
  return LCOMM_OK;
}

static lcomm_status parse_scope(parser *p, span value) {
  char quoted[QUOTE_MAX];
  int index = find_name(value, lcomm_scope_names, LCOMM_SCOPE_COUNT);
  if (index < 0)
    return fail(p, value.text, "unknown scope %s; expected tensor or bucket", quote(value, quoted));
  p->policy->scope = (lcomm_scope)index;
  return LCOMM_OK;
}

static lcomm_status parse_bucket(parser *p, span value) {
  char quoted[QUOTE_MAX];
  lcomm_status status = read_size(p, value, &p->policy->bucket_bytes);
  if (status == LCOMM_OK && p->policy->bucket_bytes < SMALLEST_BUCKET)
    return fail(p, value.text, "bucket %s is too small to fuse tensors; expected at least 4K",
                quote(value, quoted));
  return status;
}

static lcomm_status parse_algo(parser *p, span value) {
  char quoted[QUOTE_MAX];
  int index = find_name(value, lcomm_algorithm_names, LCOMM_ALGORITHM_COUNT);
  if (index < 0)
    return fail(p, value.text, "unknown algorithm %s; expected auto, ring, direct or gather",
                quote(value, quoted));
  p->policy->algorithm = (lcomm_algorithm)index;
  return LCOMM_OK;
}

static lcomm_status parse_check(parser *p, span value) {
  static const char *const names[] = {"none", "xxhash"};
  char quoted[QUOTE_MAX];
  int index = find_name(value, names, 2);
  if (index < 0)
    return fail(p, value.text, "unknown checksum %s; expected none or xxhash",
                quote(value, quoted));
  p->policy->checksum = index == 1;
  return LCOMM_OK;
}

enum { KEY_ALGO = 7 };

static const key keys[KEY_COUNT] = {
    {"net", parse_net, "net=int8"},         {"node", parse_node, "node=bf16"},
    {"min", parse_min, "min=64K"},          {"exempt", parse_exempt, "exempt=*.bias,*norm*"},
    {"warmup", parse_warmup, "warmup=100"}, {"scope", parse_scope, "scope=bucket"},
    {"bucket", parse_bucket, "bucket=25M"}, [KEY_ALGO] = {"algo", parse_algo, "algo=direct"},
    {"check", parse_check, "check=xxhash"},
};

static lcomm_status parse_word(parser *p, span word) {
  static const char expected[] = "expected KEY=VALUE with one of the keys net, node, min, exempt, "
                                 "warmup, scope, bucket, algo, check";
  char quoted[QUOTE_MAX];
  span name = {word.text, length_before(word, "=")};
  int index = 0;
  p->example = keys[0].example;
  while (index < KEY_COUNT && !span_is(name, keys[index].name))
    index++;
  if (index == KEY_COUNT)
    return fail(p, word.text, "unknown key %s; %s", quote(name, quoted), expected);
  p->example = keys[index].example;
  if (name.length == word.length)
    return fail(p, word.text, "key %s has no value; %s", quote(name, quoted), expected);
  if (p->word[index] != NULL)
    return fail(p, word.text,
                "key %s is given a second time, first in column %zu; expected each key once",
                quote(name, quoted), (size_t)(p->word[index] - p->text) + 1);
  p->word[index] = word.text;
  return keys[index].parse(p, span_after(word, name.length + 1));
}

/* What no word can see alone. */
static lcomm_status check_whole(parser *p) {
  const lcomm_policy *policy = p->policy;
  char text[LCOMM_POLICY_MAX];
  p->example = keys[KEY_ALGO].example;
  if (policy->algorithm == LCOMM_ALGO_RING && policy->net.codec->id != LCOMM_CODEC_NONE)
    return fail(p, p->word[KEY_ALGO],
                "algo=ring cannot carry the lossy codec net=%s, because a ring would quantise at "
                "every hop; expected algo=auto, direct or gather, or net=none",
                lcomm_codec_choice_format(&policy->net, text, sizeof text));
  /* The canonical text can be a little longer than the one that was given;
   * one that fills its buffer may have been cut. */
  p->example = "exempt=*.bias";
  lcomm_policy_format(policy, text);
  if (strlen(text) == LCOMM_POLICY_MAX - 1)
    return fail(p, p->text + strlen(p->text),
                "the canonical form is too long; expected fewer than %d bytes, so use fewer or "
                "shorter exempt patterns",
                LCOMM_POLICY_MAX - 1);
  return LCOMM_OK;
}

lcomm_status lcomm_policy_parse(const char *text, lcomm_policy *policy, char *error) {
  lcomm_policy parsed = lcomm_policy_default;
  parser p = {.text = text != NULL ? text : "",
              .example = keys[0].example,
              .error = error,
              .policy = &parsed};
  size_t length = strnlen(p.text, LCOMM_POLICY_MAX);
  error[0] = '\0';
  if (length == LCOMM_POLICY_MAX)
    return fail(&p, p.text + LCOMM_POLICY_MAX - 1,
                "the policy is too long; expected fewer than %d bytes", LCOMM_POLICY_MAX);
  for (size_t i = 0; i < length;) {
    size_t end = i;
    while (end < length && !is_space(p.text[end]))
      end++;
    lcomm_status status = LCOMM_OK;
    if (end > i)
      status = parse_word(&p, (span){p.text + i, end - i});
    if (status != LCOMM_OK)
      return status;
    i = end + 1;
  }
  lcomm_status status = check_whole(&p);
  if (status == LCOMM_OK)
    *policy = parsed;
  return status;
}
