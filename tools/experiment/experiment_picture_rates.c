/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Over the rate of the links: time to accuracy, and speed-up with the break-even. */

#include <math.h>
#include <string.h>

#include "tools/experiment/experiment_answer.h"
#include "tools/experiment/experiment_picture.h"

typedef double reader(const experiment_group *of);

/* What is shown, as measured and as simulated; 0: not known. */
typedef struct figure {
  reader *measured, *simulated;
} figure;

static double seconds_to_accuracy(const experiment_group *of) {
  return of->to_s;
}

/* The same steps, in the simulated time. */
static double simulated_to_accuracy(const experiment_group *of) {
  return of->to_s * experiment_simulated_share(of);
}

static double seconds_of_epoch(const experiment_group *of) {
  return of->runs > 0 ? of->epoch_s : 0.0;
}

static double simulated_epoch(const experiment_group *of) {
  return of->epoch_s * experiment_simulated_share(of);
}

static double speedup(const experiment_group *of) {
  return of->runs > 0 ? of->speedup : 0.0;
}

static double simulated_speedup(const experiment_group *of) {
  return of->simulated.speedup;
}

static const figure to_accuracy = {seconds_to_accuracy, simulated_to_accuracy},
                    of_epoch = {seconds_of_epoch, simulated_epoch},
                    gain = {speedup, simulated_speedup};

/* Points of a policy, and its curve. Returns how many there are. */
static size_t put_curve(const experiment_groups *of, const experiment_group *first,
                        const char *policy, const figure *value, size_t number, FILE *script) {
  char simulated[32];
  size_t points = 0;
  fprintf(script, "$c%zu << EOD\n", number);
  for (size_t i = 0; i < of->count; i++) {
    const experiment_group *it = &of->groups[i];
    if (experiment_same_place(it, first) && it->policy == policy && value->measured(it) > 0.0) {
      fprintf(script, "%.9g %.9g %s\n", experiment_rate_bits(it->rate), value->measured(it),
              experiment_canvas_known(value->simulated(it), simulated));
      points++;
    }
  }
  fputs("EOD\n", script);
  return points;
}

/* The next rate above `bits`, or NULL. */
static const char *next_rate(const experiment_words *rates, double bits) {
  const char *next = NULL;
  for (size_t i = 0; i < rates->count; i++) {
    double it = experiment_rate_bits(rates->words[i]);
    if (it > bits && (!next || it < experiment_rate_bits(next))) {
      next = rates->words[i];
    }
  }
  return next;
}

static double fastest_rate(const experiment_words *rates) {
  double bits = 0.0;
  for (const char *rate; (rate = next_rate(rates, bits));) {
    bits = experiment_rate_bits(rate);
  }
  return bits;
}

/* The measured rates as tics; those that stand too close to the one before have no words. */
static void put_axis(const experiment_group *first, FILE *script) {
  static const double ROOM = 0.095; /* of the axis */
  const experiment_words *rates = &first->of->rates;
  double least = experiment_rate_bits(next_rate(rates, 0.0)), most = fastest_rate(rates);
  double said = 0.0;
  fputs("set xtics (", script);
  for (const char *rate = next_rate(rates, 0.0); rate;) {
    double bits = experiment_rate_bits(rate);
    bool has_room = said <= 0.0 || log(bits / said) > ROOM * log(2.0 * most / least);
    said = has_room ? bits : said;
    experiment_canvas_text(has_room ? rate : "", script);
    rate = next_rate(rates, bits);
    fprintf(script, " %.9g%s", bits, rate ? ", " : "");
  }
  fprintf(script,
          ")\nset logscale x\nset xrange [%.9g:%.9g]\nset xlabel 'rate of each link'\n"
          "set offsets 0, 0, graph 0.1, graph 0.1\n",
          0.7 * least, 1.4 * most);
  experiment_canvas_decades("y", script);
}

static bool has_any(const experiment_groups *of, const experiment_group *first, reader *value) {
  for (size_t i = 0; i < of->count; i++) {
    if (experiment_same_place(&of->groups[i], first) && value(&of->groups[i]) > 0.0) {
      return true;
    }
  }
  return false;
}

static void put_curves(const experiment_groups *of, const experiment_group *first,
                       const figure *value, const char *also, FILE *script) {
  const char *between = "plot ";
  const experiment_words *policies = &first->of->policies;
  bool simulated = has_any(of, first, value->simulated);
  bool drawn[EXPERIMENT_LIST_MAX];
  for (size_t p = 0; p < policies->count; p++) {
    drawn[p] = put_curve(of, first, policies->words[p], value, p, script) > 0;
  }
  for (size_t p = 0; p < policies->count; p++) {
    experiment_group as = {.of = first->of, .policy = policies->words[p]};
    if (drawn[p]) {
      experiment_canvas_curve(&as, between, p, simulated, script);
      between = ", ";
    }
  }
  fputs(between[0] == ',' ? also : "", script);
  experiment_canvas_end(simulated, script);
}

static void put_table(const experiment_groups *of, const experiment_group *first, FILE *table) {
  fputs("rate\tpolicy\truns\ttime per epoch or operation (s)\ttime to accuracy (s)\tspeed-up\t"
        "simulated time (s)\tsimulated speed-up\n",
        table);
  for (size_t i = 0; i < of->count; i++) {
    const experiment_group *it = &of->groups[i];
    if (!experiment_same_place(it, first) || it->runs == 0) {
      continue;
    }
    bool trains = it->epoch_s > 0.0;
    size_t last = it->row_count > 0 ? it->row_count - 1 : 0;
    double seconds = trains ? it->epoch_s : it->rows[last].median_s;
    fprintf(table, "%s%s\t%s\t%zu\t%.4g\t", it->speedup > 0.0 && it->speedup < 1.0 ? "!" : "",
            it->rate, experiment_policy_name(it->policy), it->runs, seconds);
    experiment_canvas_cell(it->to_s, "\t", table);
    fprintf(table, it->speedup > 0.0 ? "%.2f\t" : "-\t", it->speedup);
    experiment_canvas_cell(trains ? simulated_epoch(it) : it->simulated.row_s[last], "\t", table);
    fprintf(table, it->simulated.speedup > 0.0 ? "%.2f\n" : "-\n", it->simulated.speedup);
  }
}

/* Of all policies the lowest and the highest; 0: none. */
static void find_marks(const experiment_groups *of, const experiment_group *first, double *least,
                       double *most) {
  *least = *most = 0.0;
  for (size_t p = 0; p < first->of->policies.count; p++) {
    double bits = experiment_break_even(of, first, first->of->policies.words[p]);
    *least = bits > 0.0 && (*least <= 0.0 || bits < *least) ? bits : *least;
    *most = bits > *most ? bits : *most;
  }
}

/* Where labels of marks stand: on the side where there is more room, the first line for a title. */
typedef struct marks {
  double at;
  bool is_left;
  size_t lines;
} marks;

static void put_label(marks *of, const char *text, const char *colour, FILE *script) {
  fputs("set label ", script);
  experiment_canvas_text(text, script);
  fprintf(script, " at %.9g,graph 1 %s offset %d,-%.1f noenhanced font ',12' tc rgb '%s'\n", of->at,
          of->is_left ? "right" : "left", of->is_left ? -1 : 1, 0.9 * (double)++of->lines, colour);
}

/* Lines; their labels stand left of the first of them or right of the last one, one below the
 * other. */
static void mark_break_even(const experiment_groups *of, const experiment_group *first,
                            FILE *script) {
  enum { NAME = 26 }; /* letters of a policy that there is room for */
  char rate[64], text[NAME + 80];
  double least, most, slowest = experiment_rate_bits(next_rate(&first->of->rates, 0.0)), fastest;
  find_marks(of, first, &least, &most);
  fastest = fastest_rate(&first->of->rates);
  marks labels = {.is_left = least / slowest > fastest / most};
  labels.at = labels.is_left ? least : most;
  for (size_t p = 0; p < first->of->policies.count; p++) {
    const char *policy = first->of->policies.words[p], *name = experiment_policy_name(policy);
    double bits = experiment_break_even(of, first, policy);
    experiment_group as = {.of = first->of, .policy = policy};
    if (bits <= 0.0) {
      continue;
    }
    if (labels.lines == 0) {
      put_label(&labels, "break-even near", "#8a8f98", script);
    }
    snprintf(text, sizeof text, "%.*s%s: %s", NAME, name, strlen(name) > NAME ? "..." : "",
             experiment_show_rate(bits, rate, sizeof rate));
    fprintf(script, "set arrow from %.9g,graph 0 to %.9g,graph 1 nohead dt 2 lc rgb '%s'\n", bits,
            bits, experiment_canvas_colour(&as));
    put_label(&labels, text, experiment_canvas_colour(&as), script);
  }
}

/* Where links have one rate: a bar for each policy. They lie, for the sake of the names. */
static void draw_bars(const experiment_groups *of, const experiment_group *first,
                      const figure *value, FILE *script) {
  char text[32];
  size_t bars = 0;
  bool simulated = has_any(of, first, value->simulated);
  fputs("$bars << EOD\n", script);
  for (size_t i = 0; i < of->count; i++) {
    const experiment_group *it = &of->groups[i];
    if (experiment_same_place(it, first) && value->measured(it) > 0.0) {
      fprintf(script, "\"%s\" %.9g 0x%s %s\n", experiment_policy_name(it->policy),
              value->measured(it), experiment_canvas_colour(it) + 1,
              experiment_canvas_known(value->simulated(it), text));
      bars++;
    }
  }
  fprintf(script,
          "EOD\nset xlabel 'seconds'\nset xrange [0:*]\nset offsets 0, graph 0.04, 0, 0\n"
          "set yrange [%.1f:-0.7]\nset grid noytics xtics lc rgb '#999999' lw 0.4\n"
          "set style fill solid 0.9 noborder\nset tics noenhanced\nset ytics scale 0\n"
          "plot $bars using (0):0:(0):2:($0-0.35):($0+0.35):3:ytic(1) with boxxyerror "
          "fc rgb variable notitle",
          (double)bars - 0.3);
  if (simulated) {
    fputs(", $bars using 4:0 with points pt 6 ps 1.2 lw 1.5 lc rgb 'black' title 'simulated'",
          script);
  }
  fputc('\n', script);
}

void experiment_pictures_rates(const experiment_groups *of, const experiment_group *first,
                               experiment_pictures *made) {
  char place[EXPERIMENT_TEXT_MAX / 2], title[EXPERIMENT_TEXT_MAX];
  experiment_canvas canvas;
  double target = of->of->file.accuracy;
  const figure *time =
      target > 0.0 && has_any(of, first, seconds_to_accuracy) ? &to_accuracy : &of_epoch;
  experiment_place_name(first, place, sizeof place);
  snprintf(title, sizeof title, "Time to an accuracy of %.0f %% by rate of the links. %s",
           100.0 * target, place);
  if (time == &of_epoch) {
    snprintf(title, sizeof title, "Time of an epoch by rate of the links. %s", place);
  }
  if (first->of->rates.count == 1) {
    snprintf(title, sizeof title,
             time == &of_epoch ? "Time of an epoch%s%s. %s" : "Time to the accuracy%s%s. %s",
             first->rate[0] ? " at " : "", first->rate, place);
  }
  if (has_any(of, first, time->measured) && experiment_canvas_open(made, "time", title, &canvas)) {
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
    put_curves(of, first, &gain, ", 1 with lines lw 1 dt 3 lc rgb '#d6455f' title 'no gain'",
               canvas.script);
    put_table(of, first, canvas.table);
    experiment_canvas_close(&canvas);
  }
}
