/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/train_plot.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct point {
  uint64_t step;
  double value;
} point;

typedef struct curve {
  size_t count, capacity;
  point *points;
} curve;

struct run_plot {
  const char *path, *figure;
  curve loss, test;
  uint64_t done; /* of the epoch, when the last point was made */
  double mean;   /* of these */
};

static bool have_gnuplot(void) {
  return system("command -v gnuplot >/dev/null 2>&1") == 0;
}

int plot_open(const char *path, const char *figure, run_plot **made, failure *why) {
  *made = NULL;
  if (!path) {
    return 0;
  }
  if (!have_gnuplot()) {
    return failure_set(why, EXIT_SETUP,
                       "--plot needs gnuplot, which is not in PATH (Debian: gnuplot-nox)");
  }
  FILE *file = fopen(path, "w");
  if (!file) {
    return failure_set(why, EXIT_SETUP, "cannot write the plot %s: %s; give --plot another file",
                       path, strerror(errno));
  }
  fclose(file);
  *made = calloc(1, sizeof **made);
  if (!*made) {
    return failure_set(why, EXIT_SETUP, "no memory for the plot %s", path);
  }
  (*made)->path = path;
  (*made)->figure = figure;
  return 0;
}

static bool has_room(curve *to) {
  if (to->count < to->capacity) {
    return true;
  }
  size_t capacity = to->capacity ? 2 * to->capacity : 64;
  point *points = realloc(to->points, capacity * sizeof *points);
  if (!points) {
    return false;
  }
  to->points = points;
  to->capacity = capacity;
  return true;
}

/* A point that finds no memory, or is no number, is left out. */
static void add_point(curve *to, uint64_t step, double value) {
  if (isfinite(value) && has_room(to)) {
    to->points[to->count++] = (point){step, value};
  }
}

void plot_loss(run_plot *self, uint64_t step, uint64_t done, double mean) {
  if (!self) {
    return;
  }
  if (done <= self->done) { /* another epoch */
    self->done = 0;
    self->mean = 0.0;
  }
  double sum = mean * (double)done - self->mean * (double)self->done;
  add_point(&self->loss, step, sum / (double)(done - self->done));
  self->done = done;
  self->mean = mean;
}

void plot_test(run_plot *self, uint64_t step, double figure) {
  if (self) {
    add_point(&self->test, step, figure);
  }
}

/* -------------------------------------------------------------------- drawing */

/* In gnuplot's single quotes, in which only these have a meaning. */
static void put_quoted(const char *text, FILE *script) {
  fputc('\'', script);
  for (; *text; text++) {
    fputs(*text == '\'' ? "''" : (char[]){*text, '\0'}, script);
  }
  fputc('\'', script);
}

static void put_curve(const char *name, const curve *of, FILE *script) {
  fprintf(script, "$%s << END\n", name);
  for (size_t i = 0; i < of->count; i++) {
    fprintf(script, "%" PRIu64 " %.9g\n", of->points[i].step, of->points[i].value);
  }
  fputs("END\n", script);
}

void plot_script(const run_plot *self, FILE *script) {
  if (!self || self->loss.count + self->test.count == 0) {
    return;
  }
  fputs("set terminal svg size 900,480 font 'sans,13' noenhanced background '#ffffff'\n"
        "set encoding utf8\nset output ",
        script);
  put_quoted(self->path, script);
  fputs("\nset xlabel 'step'\nset ylabel 'loss'\nset xrange [0:*]\nset grid\nset key above\n",
        script);
  put_curve("loss", &self->loss, script);
  put_curve("test", &self->test, script);
  if (self->test.count > 0) {
    fputs("set ytics nomirror\nset y2tics\nset y2label ", script);
    put_quoted(self->figure, script);
  }
  fputs("\nplot ", script);
  if (self->loss.count > 0) {
    fputs("$loss with lines linewidth 2 linecolor '#1f77b4' title 'loss'", script);
  }
  if (self->test.count > 0) {
    fputs(self->loss.count > 0 ? ", " : "", script);
    fputs("$test axes x1y2 with linespoints linewidth 2 linecolor '#d95f02' title ", script);
    put_quoted(self->figure, script);
  }
  fputs("\nunset output\n", script);
}

static int draw(const run_plot *self) {
  void (*before)(int) = signal(SIGPIPE, SIG_IGN); /* gnuplot may go away */
  FILE *gnuplot = popen("gnuplot", "w");
  int result = -1;
  if (gnuplot) {
    plot_script(self, gnuplot);
    result = pclose(gnuplot);
  }
  signal(SIGPIPE, before);
  return result;
}

int plot_close(run_plot *self, failure *why) {
  if (!self) {
    return 0;
  }
  int result = draw(self);
  if (result) {
    failure_set(why, EXIT_SETUP, "gnuplot could not draw %s; is the disk full?", self->path);
  }
  free(self->loss.points);
  free(self->test.points);
  free(self);
  return result ? -1 : 0;
}
