/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Over the rate of the links: time to accuracy, and speed-up with the break-even. */

#include <math.h>

#include "tools/experiment/experiment_answer.h"
#include "tools/experiment/experiment_picture.h"

typedef double figure(const experiment_group *of);

static double seconds_to_accuracy(const experiment_group *of) {
  return of->to_s;
}

static double seconds_of_epoch(const experiment_group *of) {
  return of->runs > 0 ? of->epoch_s : 0.0;
}

static double speedup(const experiment_group *of) {
  return of->runs > 0 ? of->speedup : 0.0;
}

/* Points of a policy, and its curve. Returns how many there are. */
static size_t put_curve(const experiment_groups *of, const experiment_group *first,
                        const char *policy, figure *value, size_t number, FILE *script) {
  size_t points = 0;
  fprintf(script, "$c%zu << EOD\n", number);
  for (size_t i = 0; i < of->count; i++) {
    const experiment_group *it = &of->groups[i];
    if (experiment_same_place(it, first) && it->policy == policy && value(it) > 0.0) {
      fprintf(script, "%.9g %.9g\n", experiment_rate_bits(it->rate), value(it));
      points++;
    }
  }
  fputs("EOD\n", script);
  return points;
}

/* The measured rates as tics. */
static void put_axis(const experiment_group *first, FILE *script) {
  double least = 0.0, most = 0.0;
  const char *between = "set xtics (";
  for (size_t i = 0; i < first->of->rates.count; i++) {
    double bits = experiment_rate_bits(first->of->rates.words[i]);
    least = i == 0 || bits < least ? bits : least;
    most = bits > most ? bits : most;
    fputs(between, script);
    experiment_canvas_text(first->of->rates.words[i], script);
    fprintf(script, " %.9g", bits);
    between = ", ";
  }
  fprintf(script,
          ")\nset logscale x\nset xrange [%.9g:%.9g]\nset xlabel 'rate of each link'\n"
          "set offsets 0, 0, graph 0.1, graph 0.1\n",
          0.7 * least, 1.4 * most);
  experiment_canvas_decades("y", script);
}

static void put_curves(const experiment_groups *of, const experiment_group *first, figure *value,
                       const char *also, FILE *script) {
  const char *between = "plot ";
  const experiment_words *policies = &first->of->policies;
  bool drawn[EXPERIMENT_LIST_MAX];
  for (size_t p = 0; p < policies->count; p++) {
    drawn[p] = put_curve(of, first, policies->words[p], value, p, script) > 0;
  }
  for (size_t p = 0; p < policies->count; p++) {
    experiment_group as = {.of = first->of, .policy = policies->words[p]};
    if (drawn[p]) {
      fprintf(script, "%s$c%zu using 1:2 with linespoints pt 7 ps 0.7 lw 2 lc rgb '%s' title ",
              between, p, experiment_canvas_colour(&as));
      experiment_canvas_text(experiment_policy_name(policies->words[p]), script);
      between = ", ";
    }
  }
  fprintf(script, "%s\n", between[0] == ',' ? also : "");
}

static void put_table(const experiment_groups *of, const experiment_group *first, FILE *table) {
  fputs("rate\tpolicy\truns\ttime per epoch or operation (s)\ttime to accuracy (s)\tspeed-up\n",
        table);
  for (size_t i = 0; i < of->count; i++) {
    const experiment_group *it = &of->groups[i];
    if (!experiment_same_place(it, first) || it->runs == 0) {
      continue;
    }
    double seconds = it->epoch_s > 0.0 ? it->epoch_s
                     : it->row_count   ? it->rows[it->row_count - 1].median_s
                                       : 0.0;
    fprintf(table, "%s%s\t%s\t%zu\t%.4g\t", it->speedup > 0.0 && it->speedup < 1.0 ? "!" : "",
            it->rate, experiment_policy_name(it->policy), it->runs, seconds);
    fprintf(table, it->to_s > 0.0 ? "%.4g\t" : "-\t", it->to_s);
    fprintf(table, it->speedup > 0.0 ? "%.2f\n" : "-\n", it->speedup);
  }
}

/* Of all policies the lowest; 0: none. */
static double first_break_even(const experiment_groups *of, const experiment_group *first) {
  double least = 0.0;
  for (size_t p = 0; p < first->of->policies.count; p++) {
    double bits = experiment_break_even(of, first, first->of->policies.words[p]);
    least = bits > 0.0 && (least <= 0.0 || bits < least) ? bits : least;
  }
  return least;
}

/* Lines; their labels stand left of the first of them, one below the other. */
static void mark_break_even(const experiment_groups *of, const experiment_group *first,
                            FILE *script) {
  char rate[64], text[EXPERIMENT_WORD_MAX + 96];
  size_t marks = 0;
  double left = first_break_even(of, first);
  for (size_t p = 0; p < first->of->policies.count; p++) {
    const char *policy = first->of->policies.words[p];
    double bits = experiment_break_even(of, first, policy);
    experiment_group as = {.of = first->of, .policy = policy};
    if (bits <= 0.0) {
      continue;
    }
    marks++;
    snprintf(text, sizeof text, "%s: break-even near %s ", experiment_policy_name(policy),
             experiment_show_rate(bits, rate, sizeof rate));
    fprintf(script, "set arrow from %.9g,graph 0 to %.9g,graph 1 nohead dt 2 lc rgb '%s'\n", bits,
            bits, experiment_canvas_colour(&as));
    fputs("set label ", script);
    experiment_canvas_text(text, script);
    fprintf(script, " at %.9g,graph %.3f right offset -1,0 noenhanced font ',12' tc rgb '%s'\n",
            left, 1.0 - 0.06 * (double)marks, experiment_canvas_colour(&as));
  }
}

/* Where links have one rate: a bar for each policy. They lie, for the sake of the names. */
static void draw_bars(const experiment_groups *of, const experiment_group *first, figure *value,
                      FILE *script) {
  size_t bars = 0;
  fputs("$bars << EOD\n", script);
  for (size_t i = 0; i < of->count; i++) {
    const experiment_group *it = &of->groups[i];
    if (experiment_same_place(it, first) && value(it) > 0.0) {
      fprintf(script, "\"%s\" %.9g 0x%s\n", experiment_policy_name(it->policy), value(it),
              experiment_canvas_colour(it) + 1);
      bars++;
    }
  }
  fprintf(
      script,
      "EOD\nset key off\nset xlabel 'seconds'\nset xrange [0:*]\nset offsets 0, graph 0.04, 0, 0\n"
      "set yrange [%.1f:-0.7]\nset grid noytics xtics lc rgb '#999999' lw 0.4\n"
      "set style fill solid 0.9 noborder\nset tics noenhanced\nset ytics scale 0\n"
      "plot $bars using (0):0:(0):2:($0-0.35):($0+0.35):3:ytic(1) with boxxyerror "
      "fc rgb variable\n",
      (double)bars - 0.3);
}

static bool has_any(const experiment_groups *of, const experiment_group *first, figure *value) {
  for (size_t i = 0; i < of->count; i++) {
    if (experiment_same_place(&of->groups[i], first) && value(&of->groups[i]) > 0.0) {
      return true;
    }
  }
  return false;
}

void experiment_pictures_rates(const experiment_groups *of, const experiment_group *first,
                               experiment_pictures *made) {
  char place[EXPERIMENT_TEXT_MAX / 2], title[EXPERIMENT_TEXT_MAX];
  experiment_canvas canvas;
  double target = of->of->file.accuracy;
  figure *time = target > 0.0 && has_any(of, first, seconds_to_accuracy) ? seconds_to_accuracy
                                                                         : seconds_of_epoch;
  experiment_place_name(first, place, sizeof place);
  snprintf(title, sizeof title, "Time to an accuracy of %.0f %% by rate of the links. %s",
           100.0 * target, place);
  if (time == seconds_of_epoch) {
    snprintf(title, sizeof title, "Time of an epoch by rate of the links. %s", place);
  }
  if (first->of->rates.count == 1) {
    snprintf(title, sizeof title,
             time == seconds_of_epoch ? "Time of an epoch%s%s. %s" : "Time to the accuracy%s%s. %s",
             first->rate[0] ? " at " : "", first->rate, place);
  }
  if (has_any(of, first, time) && experiment_canvas_open(made, "time", title, &canvas)) {
    if (first->of->rates.count > 1) {
      put_axis(first, canvas.script);
      fprintf(canvas.script, "set ylabel 'seconds'\nset format y '%%g'\n");
      put_curves(of, first, time, "", canvas.script);
    } else {
      draw_bars(of, first, time, canvas.script);
    }
    put_table(of, first, canvas.table);
    experiment_canvas_close(&canvas);
  }
  snprintf(title, sizeof title, "Speed-up against exact by rate of the links. %s", place);
  if (first->of->rates.count > 1 && has_any(of, first, speedup) &&
      experiment_canvas_open(made, "speedup", title, &canvas)) {
    put_axis(first, canvas.script);
    fprintf(canvas.script, "set ylabel 'times as fast as exact'\nset format y '%%gx'\n");
    mark_break_even(of, first, canvas.script);
    put_curves(of, first, speedup, ", 1 with lines lw 1 dt 3 lc rgb '#d6455f' title 'no gain'",
               canvas.script);
    put_table(of, first, canvas.table);
    experiment_canvas_close(&canvas);
  }
}
