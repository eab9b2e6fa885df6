/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/codec/codec_labels.h"

#include <math.h>

enum { DIRECTIONS = 16, RINGS = 7, ROUNDS = 6 };

/* Pixels around a point that belong to its mark, and between texts. */
static const double mark = 6.0, gap = 3.0;
static const double ring_step = 13.0, leader_from = 20.0;

typedef struct box {
  double left, right, bottom, top;
} box;

static box box_of(const lcomm_label *label, lcomm_spot centre) {
  double half = 0.5 * (label->width + gap), high = 0.5 * (label->height + gap);
  return (box){centre.x - half, centre.x + half, centre.y - high, centre.y + high};
}

static double overlap(box a, box b) {
  double width = fmin(a.right, b.right) - fmax(a.left, b.left);
  double height = fmin(a.top, b.top) - fmax(a.bottom, b.bottom);
  return width > 0.0 && height > 0.0 ? width * height : 0.0;
}

/* How far the box sticks out. */
static double outside(box b, double width, double height) {
  return fmax(-b.left, 0.0) + fmax(b.right - width, 0.0) + fmax(-b.bottom, 0.0) +
         fmax(b.top - height, 0.0);
}

/* A label at `number` of the candidates: rings of directions around the point. */
static lcomm_spot candidate(const lcomm_label *label, size_t number) {
  double angle = 2.0 * 3.14159265358979 * (double)(number % DIRECTIONS) / DIRECTIONS;
  double away = mark + 4.0 + ring_step * (double)(number / DIRECTIONS);
  return (lcomm_spot){label->point.x + cos(angle) * (away + 0.5 * label->width),
                      label->point.y + sin(angle) * (away + 0.5 * label->height)};
}

/* From the point to the nearest place of the text. */
static double distance(const lcomm_label *label, lcomm_spot centre) {
  double x = fmax(fabs(centre.x - label->point.x) - 0.5 * label->width, 0.0);
  double y = fmax(fabs(centre.y - label->point.y) - 0.5 * label->height, 0.0);
  return hypot(x, y);
}

typedef struct panel {
  const lcomm_label *labels;
  size_t count, placed; /* so many have a centre */
  const lcomm_spot *points;
  size_t point_count;
  double width, height;
} panel;

/* The lower the better. */
static double cost(const panel *p, size_t number, lcomm_spot centre) {
  const lcomm_label *label = &p->labels[number];
  box own = box_of(label, centre);
  double sum = distance(label, centre) + 100.0 * outside(own, p->width, p->height);
  for (size_t i = 0; i < p->placed; i++) {
    if (i != number) {
      sum += 4.0 * overlap(own, box_of(&p->labels[i], p->labels[i].centre));
    }
  }
  for (size_t i = 0; i < p->point_count; i++) {
    lcomm_spot at = p->points[i];
    sum += 3.0 * overlap(own, (box){at.x - mark, at.x + mark, at.y - mark, at.y + mark});
  }
  return sum;
}

static lcomm_spot best_centre(const panel *p, size_t number) {
  lcomm_spot best = candidate(&p->labels[number], 0);
  double lowest = cost(p, number, best);
  for (size_t i = 1; i < DIRECTIONS * RINGS; i++) {
    lcomm_spot centre = candidate(&p->labels[number], i);
    double own = cost(p, number, centre);
    if (own < lowest) {
      lowest = own;
      best = centre;
    }
  }
  return best;
}

void lcomm_labels_place(lcomm_label *labels, size_t count, const lcomm_spot *points,
                        size_t point_count, double panel_width, double panel_height) {
  panel p = {labels, count, 0, points, point_count, panel_width, panel_height};
  for (size_t round = 0; round < ROUNDS; round++) {
    for (size_t i = 0; i < count; i++) {
      labels[i].centre = best_centre(&p, i);
      p.placed = p.placed > i ? p.placed : i + 1;
    }
  }
  for (size_t i = 0; i < count; i++) {
    labels[i].leader = distance(&labels[i], labels[i].centre) > leader_from;
  }
}
