/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/codec/codec_plot_panel.h"

#include <math.h>
#include <string.h>

#include "tools/codec/codec_labels.h"

enum { LINE_STEP = 10, LINE_POINTS_MAX = 100 };
enum { POINTS_MAX = LCOMM_BENCH_CODECS_MAX * (LINE_POINTS_MAX + 2) };

/* Pixels around a panel, of a letter, of a line of text. */
static const double left_margin = 95, right_margin = 25, top_margin = 85, bottom_margin = 70;
static const double letter_width = 8.1, line_height = 15;

/* Marks with a second value stand side by side when they are closer than this. */
static const double side_by_side = 9;

/* The part of the picture that a panel's axes enclose, and what they span. */
typedef struct frame {
  double left, right, bottom, top;   /* of the screen, 0..1 */
  double width, height;              /* in pixels */
  double x_min, x_max, y_min, y_max; /* of the axes */
} frame;

void lcomm_panel_add(lcomm_panel *panel, const lcomm_mark *mark) {
  if (panel->mark_count < LCOMM_BENCH_CODECS_MAX && (mark->y > 0.0 || panel->zero_label)) {
    panel->marks[panel->mark_count++] = *mark;
  }
}

void lcomm_panel_quote(const char *text, FILE *script) {
  fputc('\'', script);
  for (; *text != '\0'; text++) {
    unsigned char byte = (unsigned char)*text;
    if (byte == '\'') {
      fputc('\'', script);
    }
    fputc(byte < ' ' || byte == 0x7f ? '?' : byte, script);
  }
  fputc('\'', script);
}

static void widen(double value, double *min, double *max) {
  if (!(value > 0.0)) {
    return;
  }
  *min = fmin(*min, value);
  *max = fmax(*max, value);
}

/* Room at both ends, a share of the span on the logarithmic axis. */
static void pad(double *min, double *max, double below, double above) {
  double span = fmax(log10(*max / *min), 0.3);
  *min = pow(10.0, log10(*min) - below * span);
  *max = pow(10.0, log10(*max) + above * span);
}

static frame frame_of(const lcomm_panel *panel) {
  double part = panel->canvas_width / (double)panel->panels;
  double begin = part * (double)panel->number;
  frame f = {.left = (begin + left_margin) / panel->canvas_width,
             .right = (begin + part - right_margin) / panel->canvas_width,
             .bottom = bottom_margin / panel->canvas_height,
             .top = 1.0 - top_margin / panel->canvas_height,
             .width = part - left_margin - right_margin,
             .height = panel->canvas_height - top_margin - bottom_margin,
             .x_min = INFINITY,
             .y_min = INFINITY};
  for (size_t i = 0; i < panel->mark_count; i++) {
    widen(panel->marks[i].x, &f.x_min, &f.x_max);
    widen(panel->marks[i].y, &f.y_min, &f.y_max);
    widen(panel->marks[i].second, &f.y_min, &f.y_max);
  }
  if (!(f.y_max > 0.0)) {
    f.y_min = f.y_max = 1e-6; /* nothing but zeros */
  }
  if (!(f.x_max > 0.0)) {
    f.x_min = f.x_max = 1.0;
  }
  pad(&f.x_min, &f.x_max, 0.12, 0.12);
  pad(&f.y_min, &f.y_max, panel->zero_label != NULL ? 0.2 : 0.1, 0.12);
  return f;
}

static double share(double value, double min, double max) {
  return log(value / min) / log(max / min);
}

/* Zeros lie a little above the bottom. */
static double height_of(const frame *f, double y) {
  return y > 0.0 ? share(y, f->y_min, f->y_max) : 0.05;
}

static lcomm_spot pixel_of(const frame *f, double x, double y) {
  return (lcomm_spot){f->width * share(x, f->x_min, f->x_max), f->height * height_of(f, y)};
}

static double x_of(const frame *f, double pixel) {
  return f->x_min * pow(f->x_max / f->x_min, pixel / f->width);
}

static double y_of(const frame *f, double pixel) {
  return f->y_min * pow(f->y_max / f->y_min, pixel / f->height);
}

/* Pixels that a mark is moved to the right, so that lines at one place can be
 * told apart: marks are taken from left to right, those of one place around it. */
static double shift_of(const lcomm_panel *panel, const frame *f, size_t number) {
  const lcomm_mark *mark = &panel->marks[number];
  double own = pixel_of(f, mark->x, mark->y).x, before = 0.0, together = 0.0;
  if (!(mark->second > 0.0)) {
    return 0.0;
  }
  for (size_t i = 0; i < panel->mark_count; i++) {
    double other = pixel_of(f, panel->marks[i].x, panel->marks[i].y).x;
    if (fabs(other - own) >= side_by_side) {
      continue;
    }
    together += 1.0;
    before += other < own || (i < number && other <= own);
  }
  return side_by_side * (before - 0.5 * (together - 1.0));
}

static lcomm_spot spot_of(const lcomm_panel *panel, const frame *f, size_t number, double y) {
  lcomm_spot spot = pixel_of(f, panel->marks[number].x, y);
  spot.x += shift_of(panel, f, number);
  return spot;
}

/* "8 (exact)" for a point whose y is 0. */
static void text_of(const lcomm_panel *panel, const lcomm_mark *mark, char *text, size_t size) {
  if (mark->y > 0.0) {
    snprintf(text, size, "%s", mark->name);
  } else {
    snprintf(text, size, "%s (%s)", mark->name, panel->zero_label);
  }
}

static void put_axes(const lcomm_panel *panel, const frame *f, FILE *script) {
  fprintf(script,
          "reset\nset lmargin at screen %.5f\nset rmargin at screen %.5f\n"
          "set bmargin at screen %.5f\nset tmargin at screen %.5f\n",
          f->left, f->right, f->bottom, f->top);
  fputs("set title ", script);
  lcomm_panel_quote(panel->title, script);
  fputs(" font ',13' noenhanced\nset xlabel ", script);
  lcomm_panel_quote(panel->x_label, script);
  fputs(" noenhanced\nset ylabel ", script);
  lcomm_panel_quote(panel->y_label, script);
  fprintf(
      script,
      " noenhanced offset 1,0\nset logscale xy\nset xrange [%.9g:%.9g]\nset yrange [%.9g:%.9g]\n"
      "set border lc rgb '#444444'\nset tics nomirror out\n"
      "set grid xtics ytics lc rgb '#dadada' lw 1\nset mxtics default\n",
      f->x_min, f->x_max, f->y_min, f->y_max);
  fputs(
      "set xtics (0.004,0.008,0.015,0.03,0.06,0.12,0.25,0.5,1,2,4,8,16,32,64,128,256,512,1024,2048,"
      "4096)\n",
      script);
  if (f->y_max / f->y_min < 1e4) {
    fputs("set ytics (0.01,0.02,0.05,0.1,0.2,0.5,1,2,5,10,20,50,100,200,500,1000)\n", script);
  } else {
    fputs("set format y '10^{%L}'\n", script);
  }
}

/* What labels keep clear of: both points of a mark and the line between them. */
static size_t put_obstacles(lcomm_spot from, lcomm_spot to, lcomm_spot *points, size_t count) {
  size_t steps = (size_t)(fabs(to.y - from.y) / LINE_STEP);
  points[count++] = from;
  for (size_t i = 1; i <= steps && i < LINE_POINTS_MAX; i++) {
    double part = (double)i / (double)(steps + 1);
    points[count++] = (lcomm_spot){from.x, from.y + part * (to.y - from.y)};
  }
  if (steps > 0) {
    points[count++] = to;
  }
  return count;
}

/* A line from the point to the edge of the text. */
static void put_leader(const frame *f, const lcomm_label *label, FILE *script) {
  double x = fmin(fmax(label->point.x, label->centre.x - 0.5 * label->width),
                  label->centre.x + 0.5 * label->width);
  double y = fmin(fmax(label->point.y, label->centre.y - 0.5 * label->height),
                  label->centre.y + 0.5 * label->height);
  fprintf(script, "set arrow from %.9g,%.9g to %.9g,%.9g nohead lc rgb '#999999' lw 1 back\n",
          x_of(f, label->point.x), y_of(f, label->point.y), x_of(f, x), y_of(f, y));
}

static void put_labels(const lcomm_panel *panel, const frame *f, FILE *script) {
  lcomm_label labels[LCOMM_BENCH_CODECS_MAX];
  lcomm_spot points[POINTS_MAX];
  char text[LCOMM_BENCH_CODEC_TEXT_MAX + 32];
  size_t point_count = 0;
  for (size_t i = 0; i < panel->mark_count; i++) {
    const lcomm_mark *mark = &panel->marks[i];
    text_of(panel, mark, text, sizeof text);
    labels[i] = (lcomm_label){.point = spot_of(panel, f, i, mark->y),
                              .width = letter_width * (double)strlen(text),
                              .height = line_height};
    point_count = put_obstacles(labels[i].point,
                                spot_of(panel, f, i, mark->second > 0.0 ? mark->second : mark->y),
                                points, point_count);
  }
  lcomm_labels_place(labels, panel->mark_count, points, point_count, f->width, f->height);
  for (size_t i = 0; i < panel->mark_count; i++) {
    const lcomm_label *label = &labels[i];
    double x = x_of(f, label->centre.x), y = y_of(f, label->centre.y);
    text_of(panel, &panel->marks[i], text, sizeof text);
    if (label->leader) {
      put_leader(f, label, script);
    }
    fputs("set label ", script);
    lcomm_panel_quote(text, script);
    fprintf(script, " at %.9g,%.9g center noenhanced front tc rgb '%s'\n", x, y,
            panel->marks[i].colour);
  }
}

static void put_data(const lcomm_panel *panel, const frame *f, FILE *script) {
  fputs("$points << EOD\n", script);
  for (size_t i = 0; i < panel->mark_count; i++) {
    const lcomm_mark *mark = &panel->marks[i];
    lcomm_spot spot = spot_of(panel, f, i, mark->y);
    double y = y_of(f, spot.y);
    fprintf(script, "%.9g %.9g %.9g 0x%s\n", x_of(f, spot.x), y,
            mark->second > 0.0 ? mark->second : y, mark->colour + 1);
  }
  fputs("EOD\n", script);
}

static void put_plot(const lcomm_panel *panel, FILE *script) {
  if (!panel->second_key) {
    fputs("set key off\nplot $points using 1:2:4 with points pt 7 ps 1.3 lc rgb variable\n",
          script);
    return;
  }
  fputs("set key top right samplen 1\n"
        "plot $points using 1:2:(0):($3-$2):4 with vectors nohead lw 1 lc rgb variable notitle, "
        "$points using 1:2:4 with points pt 7 ps 1.3 lc rgb variable notitle, "
        "$points using 1:3:4 with points pt 6 ps 1.3 lw 1.6 lc rgb variable notitle, "
        "NaN with points pt 7 ps 1.3 lc rgb '#333333' title ",
        script);
  lcomm_panel_quote(panel->first_key, script);
  fputs(", NaN with points pt 6 ps 1.3 lw 1.6 lc rgb '#333333' title ", script);
  lcomm_panel_quote(panel->second_key, script);
  fputc('\n', script);
}

void lcomm_panel_draw(const lcomm_panel *panel, FILE *script) {
  frame f = frame_of(panel);
  put_axes(panel, &f, script);
  put_labels(panel, &f, script);
  put_data(panel, &f, script);
  put_plot(panel, script);
}
