/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SCHED_COST_FORMULA_H
#define LCOMM_TESTS_SCHED_COST_FORMULA_H

/* The formulas of libcomm/sched/ALGORITHMS.md, evaluated.
 *
 *   sum     = product { (+|-) product }
 *   product = factor { [*|/] factor }            what stands side by side is multiplied
 *   factor  = number | letter | lg(sum) | lgup(sum) | (sum)
 *
 * All operators of a product have one rank, from left to right: 2(P-1)S/P. */

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct cost_formula {
  const char *at;
  double letters[26]; /* NAN: unknown */
  bool is_wrong;
} cost_formula;

static inline double formula_sum(cost_formula *f);

static inline char formula_next(cost_formula *f) {
  while (*f->at == ' ') {
    f->at++;
  }
  return *f->at;
}

static inline bool formula_skip(cost_formula *f, const char *text) {
  formula_next(f);
  if (strncmp(f->at, text, strlen(text)) != 0) {
    return false;
  }
  f->at += strlen(text);
  return true;
}

static inline double formula_in_brackets(cost_formula *f) {
  double value = formula_sum(f);
  f->is_wrong |= !formula_skip(f, ")");
  return value;
}

static inline double formula_factor(cost_formula *f) {
  char next = formula_next(f);
  if (formula_skip(f, "(")) {
    return formula_in_brackets(f);
  }
  if (formula_skip(f, "lgup(")) {
    return ceil(log2(formula_in_brackets(f)));
  }
  if (formula_skip(f, "lg(")) {
    return floor(log2(formula_in_brackets(f)));
  }
  if (isdigit((unsigned char)next)) {
    char *end = NULL;
    double value = strtod(f->at, &end);
    f->at = end;
    return value;
  }
  if (isupper((unsigned char)next)) {
    f->at++;
    return f->letters[next - 'A'];
  }
  f->is_wrong = true;
  return NAN;
}

static inline double formula_product(cost_formula *f) {
  double value = formula_factor(f);
  while (!f->is_wrong) {
    if (formula_skip(f, "/")) {
      value /= formula_factor(f);
    } else if (formula_skip(f, "*") || isalnum((unsigned char)formula_next(f)) || *f->at == '(') {
      value *= formula_factor(f);
    } else {
      break;
    }
  }
  return value;
}

static inline double formula_sum(cost_formula *f) {
  double value = formula_product(f);
  while (!f->is_wrong) {
    if (formula_skip(f, "+")) {
      value += formula_product(f);
    } else if (formula_skip(f, "-")) {
      value -= formula_product(f);
    } else {
      break;
    }
  }
  return value;
}

/* NAN for what is no formula. */
static inline double formula_value(const char *text, const double letters[26]) {
  cost_formula f = {.at = text};
  memcpy(f.letters, letters, sizeof f.letters);
  double value = formula_sum(&f);
  return f.is_wrong || formula_next(&f) != '\0' ? NAN : value;
}

#endif
