/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Simulated against measured times, with the commands that simulate them. */

#include <math.h>
#include <string.h>

#include "tools/experiment/experiment_picture.h"

/* One point: a training step, or an operation of a size. */
typedef struct point {
  const experiment_group *of;
  char what[32];
  double measured_s, simulated_s;
} point;

static size_t count_points(const experiment_group *it) {
  return !it->simulated.tried ? 0 : it->epoch_count > 0 ? 1 : it->row_count;
}

static point point_of(const experiment_group *it, size_t i) {
  if (it->epoch_count > 0) {
    return (point){it, "step", it->step_s, it->simulated.step_s};
  }
  point made = {it, "", it->rows[i].median_s, it->simulated.row_s[i]};
  snprintf(made.what, sizeof made.what, "%.0f B", it->rows[i].size);
  return made;
}

static void put_row(const point *it, bool is_last, FILE *table) {
  char place[EXPERIMENT_TEXT_MAX / 2];
  fprintf(table, "%s\t%s\t%s\t%s\t%.4g\t", experiment_place_name(it->of, place, sizeof place),
          it->of->rate, experiment_policy_name(it->of->policy), it->what, 1e3 * it->measured_s);
  if (it->simulated_s > 0.0) {
    fprintf(table, "%.4g\t%+.0f\t%s", 1e3 * it->simulated_s,
            100.0 * (it->simulated_s / it->measured_s - 1.0),
            is_last ? it->of->simulated.command : "likewise, of this size");
    if (it->of->simulated.exact_share > 0.0) {
      fprintf(table, ", and %.3g %% exact steps", 100.0 * it->of->simulated.exact_share);
    }
    fputc('\n', table);
  } else {
    fprintf(table, "-\t-\tnot simulated: %s\n", it->of->simulated.why);
  }
}

/* The points of a policy, by the place of the policy in its workload. */
static bool put_block(const experiment_groups *of, const experiment_workload *run, size_t policy,
                      size_t number, FILE *script) {
  bool any = false;
  fprintf(script, "$c%zu << EOD\n", number);
  for (size_t i = 0; i < of->count; i++) {
    const experiment_group *it = &of->groups[i];
    for (size_t p = 0;
         it->of == run && it->policy == run->policies.words[policy] && p < count_points(it); p++) {
      point at = point_of(it, p);
      if (at.simulated_s > 0.0) {
        fprintf(script, "%.9g %.9g\n", 1e3 * at.measured_s, 1e3 * at.simulated_s);
        any = true;
      }
    }
  }
  fputs("EOD\n", script);
  return any;
}

static void draw(const experiment_groups *of, FILE *script) {
  enum { BLOCKS = EXPERIMENT_WORKLOADS_MAX * EXPERIMENT_LIST_MAX };
  bool drawn[BLOCKS] = {false}, any = false;
  for (size_t b = 0; b < BLOCKS; b++) {
    const experiment_workload *run = &of->of->file.workloads[b / EXPERIMENT_LIST_MAX];
    size_t policy = b % EXPERIMENT_LIST_MAX;
    drawn[b] = b / EXPERIMENT_LIST_MAX < of->of->file.workload_count &&
               policy < run->policies.count && put_block(of, run, policy, b, script);
    any |= drawn[b];
  }
  experiment_canvas_decades("x", script);
  experiment_canvas_decades("y", script);
  fputs("set offsets graph 0.1, graph 0.1, graph 0.1, graph 0.1\nset format x '%g'\n"
        "set format y '%g'\nset xlabel 'measured, ms'\nset ylabel 'simulated, ms'\n",
        script);
  fputs(any ? "plot " : "plot [1:1000] ", script);
  fputs("x with lines lw 1 dt 3 lc rgb '#999999' title 'as measured'", script);
  for (size_t b = 0; b < BLOCKS; b++) {
    const experiment_workload *run = &of->of->file.workloads[b / EXPERIMENT_LIST_MAX];
    if (drawn[b]) {
      experiment_group as = {.of = run, .policy = run->policies.words[b % EXPERIMENT_LIST_MAX]};
      char title[EXPERIMENT_NAME_MAX + EXPERIMENT_WORD_MAX + 8];
      snprintf(title, sizeof title, "%s: %s", run->name, experiment_policy_name(as.policy));
      fprintf(script, ", $c%zu using 1:2 with points pt 6 ps 1.2 lw 1.5 lc rgb '%s' title ", b,
              experiment_canvas_colour(&as));
      experiment_canvas_text(of->of->file.workload_count > 1 ? title : strchr(title, ' ') + 1,
                             script);
    }
  }
  fputc('\n', script);
}

void experiment_pictures_simulated(const experiment_groups *of, experiment_pictures *made) {
  experiment_canvas canvas;
  size_t tried = 0;
  for (size_t i = 0; i < of->count; i++) {
    tried += count_points(&of->groups[i]);
  }
  if (tried == 0 ||
      !experiment_canvas_open(made, "simulated", "Simulated against measured times", &canvas)) {
    return;
  }
  fputs("place\trate\tpolicy\twhat\tmeasured (ms)\tsimulated (ms)\tdifference (%)\tcommand\n",
        canvas.table);
  for (size_t i = 0; i < of->count; i++) {
    for (size_t p = 0; p < count_points(&of->groups[i]); p++) {
      point at = point_of(&of->groups[i], p);
      put_row(&at, p + 1 == count_points(&of->groups[i]), canvas.table);
    }
  }
  draw(of, canvas.script);
  experiment_canvas_close(&canvas);
}
