/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/train_data.h"

#include <math.h>
#include <stdlib.h>

#include "trainer/train_random.h"

/* Each shape is a signed distance function: the distance of a point from the
 * shape, negative inside it. Only + - * / and sqrt are used, which all
 * processors round alike. */

typedef struct point {
  float x, y;
} point;

/* Where a shape is and how it looks; shapes are about as large as 1. */
typedef struct pose {
  point centre;
  point turn; /* unit vector */
  float scale;
  float thickness; /* half the width of a stroke */
} pose;

static float smaller(float a, float b) {
  return a < b ? a : b;
}

static float larger(float a, float b) {
  return a > b ? a : b;
}

static float length_of(float x, float y) {
  return sqrtf(x * x + y * y);
}

static float to_segment(point p, point from, point to) {
  float x = to.x - from.x, y = to.y - from.y;
  float along = ((p.x - from.x) * x + (p.y - from.y) * y) / (x * x + y * y);
  along = smaller(larger(along, 0.0f), 1.0f);
  return length_of(p.x - from.x - along * x, p.y - from.y - along * y);
}

static float to_square(point p, float half) {
  return larger(fabsf(p.x), fabsf(p.y)) - half;
}

/* Distance to the middle of a stroke, before its thickness is taken off, or
 * to the border of an area. */
static float disc(point p) {
  return length_of(p.x, p.y) - 0.8f;
}

static float ring(point p) {
  return fabsf(disc(p));
}

static float square(point p) {
  return to_square(p, 0.7f);
}

static float frame(point p) {
  return fabsf(to_square(p, 0.75f));
}

static float triangle(point p) {
  float slope = 0.894427f * fabsf(p.x) + 0.447214f * p.y - 0.45f;
  return larger(slope, -p.y - 0.7f);
}

static float cross(point p) {
  return smaller(to_segment(p, (point){-0.9f, 0}, (point){0.9f, 0}),
                 to_segment(p, (point){0, -0.9f}, (point){0, 0.9f}));
}

static float stroke(point p) {
  return to_segment(p, (point){-1, 0}, (point){1, 0});
}

static float rails(point p) {
  return smaller(to_segment(p, (point){-0.9f, 0.45f}, (point){0.9f, 0.45f}),
                 to_segment(p, (point){-0.9f, -0.45f}, (point){0.9f, -0.45f}));
}

static float corner(point p) {
  return smaller(to_segment(p, (point){-0.6f, -0.7f}, (point){-0.6f, 0.8f}),
                 to_segment(p, (point){-0.6f, -0.7f}, (point){0.9f, -0.7f}));
}

static float tee(point p) {
  return smaller(to_segment(p, (point){-0.9f, 0.7f}, (point){0.9f, 0.7f}),
                 to_segment(p, (point){0, 0.7f}, (point){0, -0.9f}));
}

static const struct {
  float (*distance)(point p);
  float stroke; /* 1: add the thickness, 0: an area */
} kinds[SHAPES_CLASSES] = {
    {disc, 0},  {ring, 1},   {square, 0}, {frame, 1},  {triangle, 0},
    {cross, 1}, {stroke, 1}, {rails, 1},  {corner, 1}, {tee, 1},
};

/* A direction without sin and cos: a point of the unit disc, pushed outwards. */
static point draw_direction(random_stream *random) {
  for (;;) {
    point p = {random_between(random, -1, 1), random_between(random, -1, 1)};
    float length = length_of(p.x, p.y);
    if (length > 0.1f && length <= 1.0f) {
      return (point){p.x / length, p.y / length};
    }
  }
}

static pose draw_pose(random_stream *random) {
  pose made;
  made.turn = draw_direction(random);
  made.scale = random_between(random, 5.0f, 9.5f);
  made.thickness = random_between(random, 0.7f, 1.6f);
  float margin = made.scale + 1.0f;
  made.centre.x = random_between(random, margin, SHAPES_SIDE - margin);
  made.centre.y = random_between(random, margin, SHAPES_SIDE - margin);
  return made;
}

static float coverage_at(int label, const pose *at, int column, int row) {
  float x = ((float)column + 0.5f - at->centre.x) / at->scale;
  float y = ((float)row + 0.5f - at->centre.y) / at->scale;
  point p = {x * at->turn.x + y * at->turn.y, y * at->turn.x - x * at->turn.y};
  float distance = kinds[label].distance(p) * at->scale - kinds[label].stroke * at->thickness;
  return smaller(larger(0.5f - distance, 0.0f), 1.0f);
}

int shapes_draw(uint64_t seed, uint64_t index, uint8_t *pixels) {
  random_stream random = random_begin(seed, index);
  int label = (int)(index % SHAPES_CLASSES);
  pose at = draw_pose(&random);
  pose distractor = draw_pose(&random); /* a thin line that means nothing */
  distractor.thickness = 0.4f;
  float background = random_between(&random, 10, 70);
  float contrast = random_between(&random, 60, 180);
  float noise = random_between(&random, 10, 60);
  for (int row = 0; row < SHAPES_SIDE; row++) {
    for (int column = 0; column < SHAPES_SIDE; column++) {
      float coverage = coverage_at(label, &at, column, row);
      coverage = larger(coverage, 0.7f * coverage_at(6, &distractor, column, row));
      float value = background + contrast * coverage + noise * random_between(&random, -1, 1);
      pixels[row * SHAPES_SIDE + column] = (uint8_t)smaller(larger(value, 0.0f), 255.0f);
    }
  }
  return label;
}

int shapes_draw_set(uint64_t seed, uint64_t first, uint32_t count, image_set *made, failure *why) {
  size_t image_size = SHAPES_SIDE * SHAPES_SIDE;
  made->count = count;
  made->height = made->width = SHAPES_SIDE;
  made->pixels = malloc(count * image_size);
  made->labels = malloc(count);
  if (!made->pixels || !made->labels) {
    return failure_set(why, EXIT_SETUP, "no memory for %u built-in images", count);
  }
  for (uint32_t i = 0; i < count; i++) {
    made->labels[i] = (uint8_t)shapes_draw(seed, first + i, made->pixels + i * image_size);
  }
  return 0;
}
