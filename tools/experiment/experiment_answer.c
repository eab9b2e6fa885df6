/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/experiment/experiment_answer.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

__attribute__((format(printf, 2, 3))) static void say(char *sentence, const char *format, ...) {
  size_t used = strlen(sentence);
  va_list values;
  va_start(values, format);
  vsnprintf(sentence + used, EXPERIMENT_SENTENCE_MAX - used, format, values);
  va_end(values);
}

const char *experiment_show_rate(double bits_per_s, char *text, size_t size) {
  if (bits_per_s >= 1e9) {
    snprintf(text, size, "%.3g Gbit/s", bits_per_s / 1e9);
  } else {
    snprintf(text, size, "%.3g Mbit/s", bits_per_s / 1e6);
  }
  return text;
}

double experiment_break_even(const experiment_groups *all, const experiment_group *of,
                             const char *policy) {
  const experiment_group *before = NULL;
  for (size_t i = 0; i < all->count; i++) {
    const experiment_group *now = &all->groups[i];
    if (!experiment_same_place(now, of) || now->policy != policy || now->speedup <= 0.0) {
      continue;
    }
    if (before && before->speedup >= 1.0 && now->speedup < 1.0) {
      double x0 = log(experiment_rate_bits(before->rate)),
             x1 = log(experiment_rate_bits(now->rate));
      double y0 = log(before->speedup), y1 = log(now->speedup);
      return exp(x0 + (x1 - x0) * y0 / (y0 - y1));
    }
    before = now;
  }
  return 0.0;
}

/* By the time to the accuracy that is asked for, which some do not reach; else by a step's. */
static bool is_faster(const experiment_group *it, const experiment_group *than) {
  if (it->to_s > 0.0 && than->to_s > 0.0) {
    return it->to_s < than->to_s;
  }
  return it->to_s != than->to_s ? it->to_s > 0.0 : it->speedup > than->speedup;
}

/* Where most can be won: of the groups that are compared with exact, the slowest link of the
 * largest world, and there the fastest policy. */
static const experiment_group *find_best(const experiment_groups *of) {
  const experiment_group *best = NULL;
  for (size_t i = 0; i < of->count; i++) {
    const experiment_group *it = &of->groups[i];
    if (it->speedup <= 0.0 || experiment_group_is_exact(it)) {
      continue;
    }
    double slower = best ? experiment_rate_bits(best->rate) - experiment_rate_bits(it->rate) : 1.0;
    int larger = best ? it->world.hosts - best->world.hosts : 1;
    bool same = best && it->of == best->of && fabs(slower) < 1.0 && larger == 0;
    if (!best || (it->of == best->of && (slower > 0.5 || (fabs(slower) < 1.0 && larger > 0))) ||
        (same && is_faster(it, best))) {
      best = it;
    }
  }
  return best;
}

/* find_best() takes only what is compared with exact, so there is one. */
static const experiment_group *find_exact(const experiment_groups *of, const experiment_group *as) {
  const experiment_group *exact = experiment_find_exact(of, as);
  return exact ? exact : as;
}

static void say_gain(const experiment_groups *of, const experiment_group *best, char *sentence) {
  char place[EXPERIMENT_TEXT_MAX];
  const experiment_group *exact = find_exact(of, best);
  double target = of->of->file.accuracy;
  bool reached = target > 0.0 && best->to_s > 0.0 && exact->to_s > 0.0;
  say(sentence, "At %s (%s), %s ", best->rate[0] ? best->rate : "this place",
      experiment_place_name(best, place, sizeof place), best->policy);
  if (reached) {
    say(sentence, "reaches %.0f %% in %.2g of the time of exact (%.3g s instead of %.3g s)",
        100.0 * target, best->to_s / exact->to_s, best->to_s, exact->to_s);
  } else if (best->epoch_s > 0.0) {
    say(sentence, "takes %.2g of the time of exact for an epoch (%.3g s instead of %.3g s)",
        1.0 / best->speedup, best->epoch_s, exact->epoch_s);
  } else {
    say(sentence, "takes %.2g of the time of exact for %.3g MB", 1.0 / best->speedup,
        best->rows[best->row_count - 1].size / 1e6);
  }
  say(sentence, "%s", best->speedup < 1.0 ? ": it does not pay." : ".");
}

/* Is it one of the policies that are compared in the place of `best`? */
static bool is_compared(const experiment_group *it, const experiment_group *best) {
  return experiment_same_place(it, best) && !experiment_group_is_exact(it) && it->speedup > 0.0;
}

/* Groups stand from slow links to fast ones. *pays: the fastest where anything pays; *lost: the
 * next one, where nothing does; NULL: there is none. */
static void find_limit(const experiment_groups *of, const experiment_group *best, const char **pays,
                       const char **lost) {
  *pays = *lost = NULL;
  for (size_t i = 0; i < of->count; i++) {
    const experiment_group *it = &of->groups[i];
    if (!is_compared(it, best)) {
      continue;
    }
    if (it->speedup > 1.0) {
      *pays = it->rate;
      *lost = NULL;
    } else if (!*lost && *pays != it->rate) {
      *lost = it->rate;
    }
  }
}

/* ", but not net=int8, which takes 1.2 times as long as exact there" */
static void say_losers(const experiment_groups *of, const experiment_group *best, const char *rate,
                       char *sentence) {
  size_t losers = 0;
  for (size_t i = 0; i < of->count; i++) {
    const experiment_group *it = &of->groups[i];
    if (is_compared(it, best) && it->rate == rate && it->speedup <= 1.0) {
      say(sentence, "%s%s (%.3g of the speed of exact)", losers++ > 0 ? ", " : ", but not with ",
          it->policy, it->speedup);
    }
  }
  say(sentence, "%s", losers > 0 ? "" : " with every policy");
}

static void say_break_evens(const experiment_groups *of, const experiment_group *best,
                            char *sentence) {
  char text[64];
  size_t said = 0;
  for (size_t p = 0; p < best->of->policies.count; p++) {
    const char *policy = best->of->policies.words[p];
    double bits = experiment_break_even(of, best, policy);
    if (bits > 0.0) {
      say(sentence, "%s%s breaks even near %s", said++ > 0 ? ", " : "; ", policy,
          experiment_show_rate(bits, text, sizeof text));
    }
  }
}

/* From which rate on nothing pays, and what does not pay before. */
static void say_limit(const experiment_groups *of, const experiment_group *best, char *sentence) {
  const char *pays, *lost;
  find_limit(of, best, &pays, &lost);
  if (!pays) {
    say(sentence, "Nothing pays at any rate that was measured");
  } else if (lost) {
    say(sentence, "From %s on nothing pays", lost);
  } else if (pays[0] != '\0') {
    say(sentence, "Up to the fastest link measured, %s, compression pays", pays);
    say_losers(of, best, pays, sentence);
  } else {
    return;
  }
  say_break_evens(of, best, sentence);
  say(sentence, ".");
}

static void say_accuracy(const experiment_groups *of, const experiment_group *best,
                         char *sentence) {
  const experiment_group *exact = find_exact(of, best), *worst = NULL;
  if (exact->epoch_count == 0) {
    say(sentence, "The figures are of single collectives: they say nothing about accuracy.");
    return;
  }
  for (size_t i = 0; i < of->count; i++) {
    const experiment_group *it = &of->groups[i];
    if (experiment_same_place(it, best) && it->rate == best->rate && it->runs > 0 && it != exact &&
        (!worst || it->accuracy < worst->accuracy)) {
      worst = it;
    }
  }
  say(sentence, "After %zu epoch%s exact has %.2f %%", exact->epoch_count,
      exact->epoch_count == 1 ? "" : "s", 100.0 * exact->accuracy);
  if (exact->runs > 1) {
    say(sentence, " (%.2f to %.2f over %zu runs)", 100.0 * exact->accuracy_least,
        100.0 * exact->accuracy_most, exact->runs);
  }
  if (worst) {
    say(sentence, ", and %s, the %s of the others, %.2f %%", worst->policy,
        best->of->policies.count > 2 ? "worst" : "only one", 100.0 * worst->accuracy);
  }
  say(sentence, " accuracy.");
}

void experiment_answer_make(const experiment_groups *of, experiment_answer *made) {
  memset(made, 0, sizeof *made);
  const experiment_group *best = find_best(of);
  if (!best) {
    say(made->sentences[0],
        "There is nothing to compare yet: no policy has results beside exact in "
        "the same place.");
    return;
  }
  say_gain(of, best, made->sentences[0]);
  say_limit(of, best, made->sentences[1]);
  say_accuracy(of, best, made->sentences[2]);
}
