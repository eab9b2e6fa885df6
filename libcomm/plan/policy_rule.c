/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* One rule: read and written. Those of match= are about plain calls; a pattern of net[...] is a
 * rule that may ask for the name of a tensor or residual, too. */

#include "libcomm/base/error.h"
#include "libcomm/include/libcomm_interpose.h"
#include "libcomm/plan/policy_internal.h"

typedef lcomm_span span;

/* Terms with a range come first, the one that only patterns have last. */
enum { SIZE, COUNT, RANKS, DTYPE, OP, CALL, COMM, NAME, TERM_COUNT, RANGE_COUNT = DTYPE };

static const char *const term_names[TERM_COUNT] = {"size", "count", "ranks", "dtype",
                                                   "op",   "call",  "comm",  "name"};
static const char *const term_examples[TERM_COUNT] = {
    "size>=1M&op=sum", "count>=4096",    "ranks>=8",    "dtype=float32",
    "op=avg",          "call=allreduce", "comm=*data*", "name=*.bias"};

static const char *const dtype_names[] = {
#define NAME_OF(name, value, size, text) [value] = text,
    LCOMM_DTYPE_LIST(NAME_OF)
#undef NAME_OF
};
static const char *const op_names[] = {
    [LCOMM_SUM] = "sum", [LCOMM_AVG] = "avg", [LCOMM_MIN] = "min", [LCOMM_MAX] = "max"};
static const char *const call_names[LCOMM_CALL_KINDS] = {
#define NAME_OF(name, text) text,
    LCOMM_CALL_LIST(NAME_OF)
#undef NAME_OF
};

enum {
  DTYPES = sizeof(dtype_names) / sizeof *dtype_names,
  OPS = sizeof(op_names) / sizeof *op_names,
  STANDARD_DTYPES = 1 << LCOMM_FLOAT32 | 1 << LCOMM_FLOAT16 | 1 << LCOMM_BFLOAT16,
  STANDARD_OPS = 1 << LCOMM_SUM | 1 << LCOMM_AVG,
  STANDARD_CALLS = 1 << LCOMM_CALL_ALLREDUCE | 1 << LCOMM_CALL_REDUCE_SCATTER
};

/* Without terms. */
static const lcomm_match_rule standard_rule = {
    .size_bytes = {0, UINT64_MAX},
    .count = {0, UINT64_MAX},
    .ranks = {0, UINT64_MAX},
    .dtypes = STANDARD_DTYPES,
    .ops = STANDARD_OPS,
    .calls = STANDARD_CALLS,
};

/* --------------------------------------------------------------- reading terms */

typedef enum sign { AT_LEAST = 1, AT_MOST = 2, EQUAL = AT_LEAST | AT_MOST } sign;

typedef struct rule_reader {
  lcomm_policy_reader *in;
  lcomm_match_rule *rule;
  int terms;                   /* that there are: all, or those before NAME */
  unsigned bounds[TERM_COUNT]; /* that were given, as signs */
} rule_reader;

static lcomm_status read_range(rule_reader *p, int term, span value, sign bounds) {
  lcomm_bounds *ranges[RANGE_COUNT] = {&p->rule->size_bytes, &p->rule->count, &p->rule->ranks};
  uint64_t number = 0;
  lcomm_status status = LCOMM_OK;
  if (term == SIZE) {
    status = lcomm_policy_read_size(p->in, value, &number);
  } else if (!lcomm_policy_read_whole(value, UINT64_MAX, &number)) {
    status = lcomm_policy_refuse(p->in, "", value, " is no number; expected digits, below 2^64");
  }
  if ((bounds & AT_LEAST) != 0) {
    ranges[term]->least = number;
  }
  if ((bounds & AT_MOST) != 0) {
    ranges[term]->most = number;
  }
  return status;
}

static lcomm_status read_name(rule_reader *p, span value, const char *const *names, int count,
                              unsigned *bits) {
  char list[128], sentence[160];
  int index = lcomm_policy_find_name(value, names, count);
  if (index >= 0) {
    *bits = 1u << index;
    return LCOMM_OK;
  }
  lcomm_writer w = lcomm_writer_begin(list, sizeof list);
  for (int i = 0; i < count; i++) {
    lcomm_write(&w, "%s%s", i == 0 ? "" : i == count - 1 ? " or " : ", ", names[i]);
  }
  w = lcomm_writer_begin(sentence, sizeof sentence);
  lcomm_write(&w, " is not known here; expected %s", list);
  return lcomm_policy_refuse(p->in, "", value, sentence);
}

static lcomm_status read_value(rule_reader *p, int term, span value, sign bounds) {
  lcomm_match_rule *rule = p->rule;
  switch (term) {
  case DTYPE:
    return read_name(p, value, dtype_names, DTYPES, &rule->dtypes);
  case OP:
    return read_name(p, value, op_names, OPS, &rule->ops);
  case CALL:
    return read_name(p, value, call_names, LCOMM_CALL_KINDS, &rule->calls);
  case COMM:
    return lcomm_policy_read_glob(p->in, value, "comm=GLOB", rule->comm);
  case NAME:
    return lcomm_policy_read_glob(p->in, value, "name=GLOB", rule->name);
  default:
    return read_range(p, term, value, bounds);
  }
}

static lcomm_status say_once(rule_reader *p, int term, span text, sign bounds) {
  if ((p->bounds[term] & bounds) != 0) {
    return lcomm_policy_refuse(p->in, "term ", text,
                               " says a second time what its rule has said; expected each bound "
                               "and each name once in a rule");
  }
  p->bounds[term] |= bounds;
  return LCOMM_OK;
}

static lcomm_status fail_term(rule_reader *p, span name) {
  return lcomm_policy_refuse(
      p->in, "unknown term ", name,
      p->terms > NAME
          ? " of a pattern; expected a name of tensors such as *.bias, or size, count, ranks, "
            "dtype, op, call, comm or name"
          : " of a rule; expected size, count, ranks, dtype, op, call or comm");
}

static lcomm_status read_term(rule_reader *p, span text) {
  span name = lcomm_span_before(text, "<>="), rest = lcomm_span_after(text, name.length);
  int term = lcomm_policy_find_name(name, term_names, p->terms);
  char first = rest.length > 0 ? *rest.text : '\0', second = rest.length > 1 ? rest.text[1] : '\0';
  if (p->terms > NAME && rest.length == 0) { /* a name alone */
    LCOMM_TRY(read_value(p, NAME, text, EQUAL));
    return say_once(p, NAME, text, EQUAL);
  }
  if (term < 0) {
    return fail_term(p, name);
  }
  if (p->terms <= NAME) {
    p->in->example = term_examples[term];
  }
  if (first != '=' && second != '=') {
    return lcomm_policy_refuse(
        p->in, "term ", text,
        " does not compare; expected its name, then =, >= or <=, and a value");
  }
  if (first != '=' && term >= RANGE_COUNT) {
    return lcomm_policy_refuse(p->in, "term ", text,
                               " asks for an order that names do not have; expected = and a name");
  }
  sign bounds = first == '=' ? EQUAL : first == '>' ? AT_LEAST : AT_MOST;
  LCOMM_TRY(say_once(p, term, text, bounds));
  return read_value(p, term, lcomm_span_after(rest, first == '=' ? 1 : 2), bounds);
}

/* --------------------------------------------------------------- reading rules */

static bool is_empty(const lcomm_bounds *range) {
  return range->least > range->most;
}

/* A rule that fits no call is a mistake. */
static lcomm_status check_rule(rule_reader *p, span text) {
  const lcomm_match_rule *rule = p->rule;
  if (is_empty(&rule->size_bytes) || is_empty(&rule->count) || is_empty(&rule->ranks)) {
    return lcomm_policy_refuse(p->in, "no number is within both bounds of rule ", text,
                               "; expected the smaller one after >=");
  }
  if (p->bounds[OP] != 0 && (rule->calls & STANDARD_CALLS) == 0) {
    return lcomm_policy_refuse(p->in, "rule ", text,
                               " asks for an operation of calls that only move data; expected no "
                               "op, or call=allreduce or reduce-scatter");
  }
  return LCOMM_OK;
}

static lcomm_status read_terms(rule_reader *p, span text) {
  *p->rule = standard_rule;
  for (span rest = text, term; lcomm_span_next(&rest, "&", &term);) {
    LCOMM_TRY(read_term(p, term));
  }
  return check_rule(p, text);
}

lcomm_status lcomm_policy_read_rule(lcomm_policy_reader *r, lcomm_span text,
                                    lcomm_match_rule *rule) {
  return read_terms(&(rule_reader){.in = r, .rule = rule, .terms = NAME}, text);
}

lcomm_status lcomm_policy_read_pattern(lcomm_policy_reader *r, lcomm_span text,
                                       lcomm_match_rule *rule) {
  return read_terms(&(rule_reader){.in = r, .rule = rule, .terms = TERM_COUNT}, text);
}

/* --------------------------------------------------------------------- writing */

/* Begin a term of the rule that begins at `start` of the text. */
static void write_term(lcomm_writer *w, size_t start, int term, const char *sign_text) {
  lcomm_write(w, "%s%s%s", w->length > start ? "&" : "", term_names[term], sign_text);
}

static void write_number(lcomm_writer *w, int term, uint64_t number) {
  if (term == SIZE) {
    lcomm_policy_write_size(w, number);
  } else {
    lcomm_write(w, "%llu", (unsigned long long)number);
  }
}

static void write_range(lcomm_writer *w, size_t start, int term, const lcomm_bounds *range) {
  bool equal = range->least == range->most;
  if (equal || range->least > 0) {
    write_term(w, start, term, equal ? "=" : ">=");
    write_number(w, term, range->least);
  }
  if (!equal && range->most < UINT64_MAX) {
    write_term(w, start, term, "<=");
    write_number(w, term, range->most);
  }
}

static void write_name(lcomm_writer *w, size_t start, int term, const char *const *names,
                       unsigned bits) {
  int index = 0;
  while (bits >> index > 1) {
    index++;
  }
  write_term(w, start, term, "=");
  lcomm_write(w, "%s", names[index]);
}

void lcomm_policy_write_rule(lcomm_writer *w, const lcomm_match_rule *rule) {
  size_t start = w->length;
  if (rule->name[0] != '\0') {
    lcomm_write(w, "%s%s", strpbrk(rule->name, "<>=") ? "name=" : "", rule->name);
  }
  write_range(w, start, SIZE, &rule->size_bytes);
  write_range(w, start, COUNT, &rule->count);
  write_range(w, start, RANKS, &rule->ranks);
  if (rule->dtypes != STANDARD_DTYPES) {
    write_name(w, start, DTYPE, dtype_names, rule->dtypes);
  }
  if (rule->ops != STANDARD_OPS) {
    write_name(w, start, OP, op_names, rule->ops);
  }
  if (rule->calls != STANDARD_CALLS) {
    write_name(w, start, CALL, call_names, rule->calls);
  }
  if (rule->comm[0] != '\0') {
    write_term(w, start, COMM, "=");
    lcomm_write(w, "%s", rule->comm);
  }
  if (w->length == start) { /* any text for one that asks for nothing */
    lcomm_write(w, "size>=0");
  }
}
