/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/fidelity/fidelity_plot.h"

#include <stdlib.h>

enum { PANEL_WIDTH = 760, PANEL_HEIGHT = 520, PANELS_ABREAST = 2, PATH_SIZE = 4096 };

static const char *const colours[] = {"#444444", "#1f77b4", "#17a2b8", "#d95f02", "#e6ab02",
                                      "#2a9d4e", "#a6761d", "#7a3fb0", "#e7298a", "#c00000",
                                      "#003f5c", "#66a61e", "#ff7f50", "#00b4d8"};

static const char *colour_of(size_t preset) {
  return colours[preset % (sizeof colours / sizeof colours[0])];
}

/* A text of gnuplot in single quotes, which nothing in it can end. */
static void put_text(const char *text, FILE *script) {
  fputc('\'', script);
  for (; *text; text++) {
    fputs(*text == '\'' ? "''" : (char[]){(unsigned char)*text < ' ' ? '?' : *text, '\0'}, script);
  }
  fputc('\'', script);
}

static bool has_results(const fidelity_summary *panel, size_t group) {
  for (size_t i = 0; i < group; i++) {
    if (panel[i].accuracy.count > 0) {
      return true;
    }
  }
  return false;
}

static void begin(const fidelity_summary *all, size_t count, size_t group, const char *path,
                  FILE *script) {
  size_t panels = 0;
  for (size_t at = 0; at < count; at += group) {
    panels += has_results(all + at, group);
  }
  size_t abreast = panels < PANELS_ABREAST ? 1 : PANELS_ABREAST;
  size_t rows = (panels + abreast - 1) / abreast;
  fprintf(script, "set terminal svg size %zu,%zu font 'sans,11' background '#ffffff'\n",
          abreast * PANEL_WIDTH, rows * PANEL_HEIGHT);
  fputs("set encoding utf8\nset output ", script);
  put_text(path, script);
  fprintf(script,
          "\nset multiplot layout %zu,%zu\n"
          "set border lc rgb '#444444'\nset tics nomirror out\n"
          "set grid xtics ytics lc rgb '#dadada' lw 1\n",
          rows, abreast);
}

static void put_title(const fidelity_summary *of, FILE *script) {
  fprintf(script, "set title '%s, %s, %d nodes x %d ranks' noenhanced font ',13'\n", of->of.model,
          fidelity_optimizer_name(of->of.optimizer), of->of.world.nodes, of->of.world.ranks);
}

/* ------------------------------------------------------------------ accuracy */

/* bytes accuracy deviation colour name, one line for each preset */
static void put_points(const fidelity_summary *panel, size_t group, FILE *script) {
  fputs("$points << EOD\n", script);
  for (size_t i = 0; i < group; i++) {
    const fidelity_summary *at = &panel[i];
    if (at->accuracy.count > 0 && at->bytes_per_step > 0.0) {
      fprintf(script, "%.9g %.9g %.9g 0x%s \"%s\"\n", at->bytes_per_step, at->accuracy.mean,
              at->accuracy.deviation, colour_of(i) + 1, at->of.preset->name);
    }
  }
  fputs("EOD\n", script);
}

static void put_accuracy_panel(const fidelity_summary *panel, size_t group, FILE *script) {
  put_title(panel, script);
  put_points(panel, group, script);
  fputs("unset object\nset key off\nset logscale x\nset format x '%.0s %cB'\n"
        "set xlabel 'bytes between nodes in a step, of all nodes'\n"
        "set ylabel 'test accuracy, %, with standard deviation'\n"
        "set offsets graph 0.12, graph 0.12, graph 0.08, graph 0.08\n",
        script);
  if (panel->accuracy.count > 0) {
    fprintf(script,
            "set object 1 rectangle from graph 0,first %.9g to graph 1,first %.9g behind "
            "fc rgb '#e4eef7' fs solid noborder\n",
            panel->accuracy.mean - panel->accuracy.deviation,
            panel->accuracy.mean + panel->accuracy.deviation);
  }
  fputs("plot $points using 1:2:3:4 with yerrorbars pt 7 ps 1.2 lc rgb variable, "
        "$points using 1:2:5:4 with labels left offset 0.8,0.5 noenhanced font ',10' "
        "tc rgb variable\n",
        script);
}

void fidelity_plot_accuracy(const fidelity_summary *all, size_t count, size_t group,
                            const char *path, FILE *script) {
  begin(all, count, group, path, script);
  for (size_t at = 0; at < count; at += group) {
    if (has_results(all + at, group)) {
      put_accuracy_panel(all + at, group, script);
    }
  }
  fputs("unset multiplot\nunset output\n", script);
}

/* ---------------------------------------------------------------------- loss */

static void put_curve(const fidelity_summary *at, size_t number, FILE *script) {
  fprintf(script, "$curve%zu << EOD\n", number);
  for (size_t part = 0; part < at->curve_count; part++) {
    double middle = at->steps * ((double)part + 0.5) / (double)at->curve_count;
    fprintf(script, "%.9g %.9g %.9g\n", middle, (double)at->curve[part],
            (double)at->curve_deviation[part]);
  }
  fputs("EOD\n", script);
}

static void put_loss_panel(const fidelity_summary *panel, size_t group, FILE *script) {
  const char *between = "plot ";
  put_title(panel, script);
  for (size_t i = 0; i < group; i++) {
    put_curve(&panel[i], i, script);
  }
  fputs("set key outside right noenhanced\nset logscale y\nset ytics (0.05, 0.1, 0.2, 0.3, 0.5, "
        "0.7, 1, 1.5, 2, 3, 5)\nset autoscale fix\nset xlabel 'step'\n"
        "set ylabel 'mean loss of the training images'\n",
        script);
  for (size_t i = 0; i < group; i++) {
    if (panel[i].accuracy.count == 0 || panel[i].curve_count == 0) {
      continue;
    }
    fprintf(script,
            "%s$curve%zu using 1:($2-$3):($2+$3) with filledcurves fc rgb '%s' fs transparent "
            "solid 0.15 noborder notitle, $curve%zu using 1:2 with lines lw 1.6 lc rgb '%s' title ",
            between, i, colour_of(i), i, colour_of(i));
    put_text(panel[i].of.preset->name, script);
    between = ", ";
  }
  fputc('\n', script);
}

void fidelity_plot_loss(const fidelity_summary *all, size_t count, size_t group, const char *path,
                        FILE *script) {
  begin(all, count, group, path, script);
  for (size_t at = 0; at < count; at += group) {
    if (has_results(all + at, group)) {
      put_loss_panel(all + at, group, script);
    }
  }
  fputs("unset multiplot\nunset output\n", script);
}

/* ------------------------------------------------------------------- drawing */

typedef void plot_writer(const fidelity_summary *all, size_t count, size_t group, const char *path,
                         FILE *script);

static bool draw(const fidelity_summary *all, size_t count, size_t group, const char *prefix,
                 const char *what, plot_writer *write) {
  char path[PATH_SIZE];
  FILE *gnuplot = popen("gnuplot", "w");
  if (!gnuplot) {
    return false;
  }
  snprintf(path, sizeof path, "%s-%s.svg", prefix, what);
  write(all, count, group, path, gnuplot);
  return pclose(gnuplot) == 0;
}

bool fidelity_plot_draw(const fidelity_summary *all, size_t count, size_t group,
                        const char *prefix) {
  return draw(all, count, group, prefix, "accuracy", fidelity_plot_accuracy) &&
         draw(all, count, group, prefix, "loss", fidelity_plot_loss);
}
