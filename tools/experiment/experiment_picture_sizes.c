/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Bus bandwidth against size, of collectives; speed against hosts, of either. */

#include "tools/experiment/experiment_picture.h"

/* --------------------------------------------------------------------- sizes */

static bool has_rows(const experiment_group *it, const experiment_group *first, const char *rate) {
  return experiment_same_place(it, first) && it->rate == rate && it->row_count > 0;
}

/* For the same bytes in the simulated time. */
static double simulated_busbw(const experiment_group *it, size_t row) {
  double simulated_s = it->simulated.row_s[row];
  return simulated_s > 0.0 ? it->rows[row].busbw_gb_s * it->rows[row].median_s / simulated_s : 0.0;
}

static void put_sizes(const experiment_groups *of, const experiment_group *it, size_t number,
                      experiment_canvas *canvas) {
  char text[32];
  const experiment_group *exact = experiment_find_exact(of, it);
  fprintf(canvas->script, "$c%zu << EOD\n", number);
  for (size_t r = 0; r < it->row_count; r++) {
    const experiment_row *row = &it->rows[r];
    double speedup = exact && r < exact->row_count ? exact->rows[r].median_s / row->median_s : 0.0;
    fprintf(canvas->script, "%.9g %.9g %s\n", row->size, row->busbw_gb_s,
            experiment_canvas_known(simulated_busbw(it, r), text));
    fprintf(canvas->table, "%s%s\t%.0f\t%.1f\t%.4g\t", speedup > 0.0 && speedup < 0.995 ? "!" : "",
            experiment_policy_name(it->policy), row->size, 1e6 * row->median_s, row->busbw_gb_s);
    fprintf(canvas->table, speedup > 0.0 ? "%.2f\t" : "-\t", speedup);
    experiment_canvas_cell(1e6 * it->simulated.row_s[r], "\n", canvas->table);
  }
  fputs("EOD\n", canvas->script);
}

static void draw_sizes(const experiment_groups *of, const experiment_group *first, const char *rate,
                       experiment_canvas *canvas) {
  const char *between = "plot ";
  bool simulated = false;
  fputs("policy\tsize (B)\ttime (us)\tbus bandwidth (GB/s)\tspeed-up\tsimulated time (us)\n",
        canvas->table);
  experiment_canvas_decades("y", canvas->script);
  fputs("set offsets graph 0.03, graph 0.03, graph 0.05, graph 0.05\n"
        "set logscale x 2\nset format x '%.0b %BB'\nset format y '%g'\n"
        "set xlabel 'size'\nset ylabel 'bus bandwidth, GB/s'\n",
        canvas->script);
  for (size_t i = 0; i < of->count; i++) {
    if (has_rows(&of->groups[i], first, rate)) {
      put_sizes(of, &of->groups[i], i, canvas);
    }
  }
  for (size_t i = 0; i < of->count; i++) {
    const experiment_group *it = &of->groups[i];
    if (has_rows(it, first, rate)) {
      experiment_canvas_curve(it, between, i, simulated_busbw(it, 0) > 0.0, canvas->script);
      simulated |= simulated_busbw(it, 0) > 0.0;
      between = ", ";
    }
  }
  experiment_canvas_end(simulated, canvas->script);
}

static bool any_rows(const experiment_groups *of, const experiment_group *first, const char *rate) {
  for (size_t i = 0; i < of->count; i++) {
    if (has_rows(&of->groups[i], first, rate)) {
      return true;
    }
  }
  return false;
}

void experiment_pictures_sizes(const experiment_groups *of, const experiment_group *first,
                               experiment_pictures *made) {
  char place[EXPERIMENT_TEXT_MAX / 2], title[EXPERIMENT_TEXT_MAX];
  experiment_canvas canvas;
  experiment_place_name(first, place, sizeof place);
  for (size_t r = 0; r < first->of->rates.count; r++) {
    const char *rate = first->of->rates.words[r];
    snprintf(title, sizeof title, "Bus bandwidth against size%s%s. %s", rate[0] ? " at " : "", rate,
             place);
    if (any_rows(of, first, rate) && experiment_canvas_open(made, "busbw", title, &canvas)) {
      draw_sizes(of, first, rate, &canvas);
      experiment_canvas_close(&canvas);
    }
  }
}

/* ------------------------------------------------------------------- scaling */

/* The same with any number of hosts, on the slowest links. */
static bool is_scaled(const experiment_group *it, const experiment_group *first,
                      const char *policy) {
  experiment_group as = *first;
  as.world.hosts = it->world.hosts;
  return experiment_same_place(it, &as) && it->rate == first->rate && it->policy == policy &&
         it->runs > 0 && (it->epoch_s > 0.0 || it->row_count > 0);
}

/* Epochs in an hour, or operations in a second. */
static double speed_of(const experiment_group *it) {
  return it->epoch_s > 0.0 ? 3600.0 / it->epoch_s : 1.0 / it->rows[it->row_count - 1].median_s;
}

/* Likewise, as simulated; 0: not known. */
static double simulated_speed(const experiment_group *it) {
  double share = experiment_simulated_share(it),
         row_s = it->row_count > 0 ? it->simulated.row_s[it->row_count - 1] : 0.0;
  return share > 0.0 ? speed_of(it) / share : row_s > 0.0 ? 1.0 / row_s : 0.0;
}

/* *simulated: some of them are. */
static size_t put_hosts(const experiment_groups *of, const experiment_group *first, size_t policy,
                        experiment_canvas *canvas, bool *simulated) {
  const char *word = first->of->policies.words[policy];
  char text[32];
  size_t points = 0;
  fprintf(canvas->script, "$c%zu << EOD\n", policy);
  for (size_t i = 0; i < of->count; i++) {
    const experiment_group *it = &of->groups[i];
    if (is_scaled(it, first, word)) {
      fprintf(canvas->script, "%d %.9g %s\n", it->world.hosts, speed_of(it),
              experiment_canvas_known(simulated_speed(it), text));
      fprintf(canvas->table, "%s%s\t%d\t%.4g\t", it->speedup > 0.0 && it->speedup < 1.0 ? "!" : "",
              experiment_policy_name(word), it->world.hosts, speed_of(it));
      experiment_canvas_cell(it->speedup, "\t", canvas->table);
      experiment_canvas_cell(simulated_speed(it), "\t", canvas->table);
      experiment_canvas_cell(it->simulated.speedup, "\n", canvas->table);
      *simulated |= simulated_speed(it) > 0.0;
      points++;
    }
  }
  fputs("EOD\n", canvas->script);
  return points;
}

static void draw_scaling(const experiment_groups *of, const experiment_group *first,
                         experiment_canvas *canvas) {
  const char *between = "plot ",
             *what = first->epoch_s > 0.0 ? "epochs in an hour" : "operations in a second";
  bool drawn[EXPERIMENT_LIST_MAX], simulated = false;
  fprintf(canvas->table, "policy\thosts\t%s\tspeed-up\tsimulated\tsimulated speed-up\n", what);
  fprintf(canvas->script, "set logscale x 2\nset xlabel 'hosts'\nset ylabel '%s'\n", what);
  experiment_canvas_decades("y", canvas->script);
  fputs("set format y '%g'\nset offsets graph 0.05, graph 0.05, graph 0.05, graph 0.05\n",
        canvas->script);
  for (size_t p = 0; p < first->of->policies.count; p++) {
    drawn[p] = put_hosts(of, first, p, canvas, &simulated) > 0;
  }
  for (size_t p = 0; p < first->of->policies.count; p++) {
    experiment_group as = {.of = first->of, .policy = first->of->policies.words[p]};
    if (drawn[p]) {
      experiment_canvas_curve(&as, between, p, simulated, canvas->script);
      between = ", ";
    }
  }
  experiment_canvas_end(simulated, canvas->script);
}

void experiment_pictures_scaling(const experiment_groups *of, const experiment_group *first,
                                 experiment_pictures *made) {
  char title[EXPERIMENT_TEXT_MAX];
  experiment_canvas canvas;
  size_t others = 0;
  for (size_t i = 0; i < of->count; i++) {
    bool same = is_scaled(&of->groups[i], first, first->policy);
    others += same;
    if (same && others == 1 && of->groups[i].world.hosts != first->world.hosts) {
      return; /* drawn with the first of them */
    }
  }
  snprintf(title, sizeof title, "Scaling with hosts%s%s. %s, ranks on each: %d%s%s",
           first->rate[0] ? " at " : "", first->rate, first->of->name, first->world.ranks,
           first->model[0] ? ", " : "", first->model);
  if (others > 1 && experiment_canvas_open(made, "scaling", title, &canvas)) {
    draw_scaling(of, first, &canvas);
    experiment_canvas_close(&canvas);
  }
}
