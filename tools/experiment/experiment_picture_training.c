/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Of trainings on the slowest links of a place: accuracy against bytes, and where the time of a
 * step goes. */

#include "tools/experiment/experiment_picture.h"

/* A training of this place on its slowest links. */
static bool is_shown(const experiment_group *it, const experiment_group *first) {
  return experiment_same_place(it, first) && it->rate == first->rate && it->epoch_count > 0;
}

static size_t count_shown(const experiment_groups *of, const experiment_group *first) {
  size_t count = 0;
  for (size_t i = 0; i < of->count; i++) {
    count += is_shown(&of->groups[i], first);
  }
  return count;
}

/* ------------------------------------------------------------------ accuracy */

static void put_epochs(const experiment_group *it, size_t number, experiment_canvas *canvas) {
  fprintf(canvas->script, "$c%zu << EOD\n", number);
  for (size_t e = 0; e < it->epoch_count; e++) {
    const experiment_epoch *at = &it->epochs[e];
    fprintf(canvas->script, "%.9g %.9g %.9g %.9g\n", at->sent_bytes, 100.0 * at->accuracy,
            100.0 * it->least[e], 100.0 * it->most[e]);
    fprintf(canvas->table, "%s\t%zu\t%.4g\t%.2f\t%.2f to %.2f\t%zu\n",
            experiment_policy_name(it->policy), e + 1, at->sent_bytes / 1e6, 100.0 * at->accuracy,
            100.0 * it->least[e], 100.0 * it->most[e], it->runs);
  }
  fputs("EOD\n", canvas->script);
}

static void draw_accuracy(const experiment_groups *of, const experiment_group *first,
                          experiment_canvas *canvas) {
  const char *between = "plot ";
  fputs("policy\tepoch\tMB sent between nodes\taccuracy (%)\tof all seeds (%)\truns\n",
        canvas->table);
  fputs("set logscale x\nset format x '%.0s %cB'\nset xlabel 'bytes sent between nodes so far "
        "(bands: all seeds)'\n"
        "set ylabel 'test accuracy, %'\n"
        "set offsets graph 0.1, graph 0.1, graph 0.05, graph 0.05\n",
        canvas->script);
  for (size_t i = 0; i < of->count; i++) {
    if (is_shown(&of->groups[i], first)) {
      put_epochs(&of->groups[i], i, canvas);
    }
  }
  for (size_t i = 0; i < of->count; i++) {
    const experiment_group *it = &of->groups[i];
    if (is_shown(it, first)) {
      const char *colour = experiment_canvas_colour(it);
      fprintf(canvas->script,
              "%s$c%zu using 1:3:4 with filledcurves fc rgb '%s' fs transparent solid 0.2 noborder "
              "notitle, $c%zu using 1:2 with linespoints pt 7 ps 0.7 lw 2 lc rgb '%s' title ",
              between, i, colour, i, colour);
      experiment_canvas_text(experiment_policy_name(it->policy), canvas->script);
      between = ", ";
    }
  }
  fputc('\n', canvas->script);
}

/* ---------------------------------------------------------------------- step */

static void draw_step(const experiment_groups *of, const experiment_group *first,
                      experiment_canvas *canvas) {
  static const char *const parts[][2] = {{"computation", "#8a8f98"},
                                         {"encode", "#3aa655"},
                                         {"decode and sum", "#2b8cbe"},
                                         {"wait for the wire", "#d9822b"}};
  char text[32];
  size_t rows = 0;
  bool simulated = false;
  fputs("policy\tstep (ms)\tcomputation\tencode\tdecode and sum\twait for the wire\t"
        "meanwhile, messages on the wire\tsimulated step\n",
        canvas->table);
  fputs("$steps << EOD\n", canvas->script);
  for (size_t i = 0; i < of->count; i++) {
    const experiment_group *it = &of->groups[i];
    if (is_shown(it, first)) {
      fprintf(canvas->script, "\"%s\" %.9g %.9g %.9g %.9g %.9g %s\n",
              experiment_policy_name(it->policy), 1e3 * it->compute_s, 1e3 * it->encode_s,
              1e3 * it->decode_s, 1e3 * it->wait_s, 1e3 * it->wire_s,
              experiment_canvas_known(1e3 * it->simulated.step_s, text));
      fprintf(canvas->table, "%s\t%.3g\t%.3g\t%.3g\t%.3g\t%.3g\t%.3g\t",
              experiment_policy_name(it->policy), 1e3 * it->step_s, 1e3 * it->compute_s,
              1e3 * it->encode_s, 1e3 * it->decode_s, 1e3 * it->wait_s, 1e3 * it->wire_s);
      experiment_canvas_cell(1e3 * it->simulated.step_s, "\n", canvas->table);
      simulated |= it->simulated.step_s > 0.0;
      rows++;
    }
  }
  /* bars that lie: their names need the room beside them */
  fprintf(canvas->script,
          "EOD\nset xlabel 'milliseconds of a step, mean of the ranks'\nset xrange [0:*]\n"
          "set offsets 0, graph 0.04, 0, 0\n"
          "set yrange [%.1f:-0.7]\nset grid noytics xtics lc rgb '#999999' lw 0.4\n"
          "set style fill solid 0.9 noborder\nset tics noenhanced\nset ytics scale 0\nplot ",
          (double)rows - 0.3);
  for (size_t p = 0; p < 4; p++) {
    fprintf(canvas->script, "%s$steps using (0):0:(", p > 0 ? ", " : "");
    for (size_t before = 0; before < p; before++) {
      fprintf(canvas->script, "$%zu+", before + 2);
    }
    fputs("0):(", canvas->script);
    for (size_t before = 0; before <= p; before++) {
      fprintf(canvas->script, "$%zu+", before + 2);
    }
    fprintf(canvas->script, "0):($0-0.35):($0+0.35):ytic(1) with boxxyerror fc rgb '%s' title '%s'",
            parts[p][1], parts[p][0]);
  }
  /* what goes on beside all of that: a thin bar below */
  fputs(", $steps using (0):0:(0):6:($0+0.37):($0+0.45) with boxxyerror fc rgb '#9e5fd0' "
        "title 'meanwhile, messages on the wire'",
        canvas->script);
  fputs(simulated ? ", $steps using 7:0 with points pt 6 ps 1.2 lw 1.5 lc rgb 'black' "
                    "title 'simulated step'\n"
                  : "\n",
        canvas->script);
}

void experiment_pictures_training(const experiment_groups *of, const experiment_group *first,
                                  experiment_pictures *made) {
  char place[EXPERIMENT_TEXT_MAX / 2], title[EXPERIMENT_TEXT_MAX];
  experiment_canvas canvas;
  if (count_shown(of, first) == 0) {
    return;
  }
  experiment_place_name(first, place, sizeof place);
  snprintf(title, sizeof title, "Accuracy against bytes%s%s. %s", first->rate[0] ? " at " : "",
           first->rate, place);
  if (experiment_canvas_open(made, "accuracy", title, &canvas)) {
    draw_accuracy(of, first, &canvas);
    experiment_canvas_close(&canvas);
  }
  snprintf(title, sizeof title, "Where the time of a step goes%s%s. %s",
           first->rate[0] ? " at " : "", first->rate, place);
  if (experiment_canvas_open(made, "step", title, &canvas)) {
    draw_step(of, first, &canvas);
    experiment_canvas_close(&canvas);
  }
}
