/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_CODEC_CODEC_LABELS_H
#define LCOMM_TOOLS_CODEC_CODEC_LABELS_H

/* Where the names of points go in a plot, so that they can be read: close to
 * their points, not over one another, not over points, not outside. All in
 * pixels of the panel, y upwards. */

#include <stdbool.h>
#include <stddef.h>

typedef struct lcomm_spot {
  double x, y;
} lcomm_spot;

typedef struct lcomm_label {
  lcomm_spot point;     /* what it names */
  double width, height; /* of its text */
  lcomm_spot centre;    /* found: of its text */
  bool leader;          /* found: so far away that a line should lead to it */
} lcomm_label;

/* Places all labels. `points` are what they should leave free, their own ones
 * too. Greedy with some rounds of improvement, so good and not best; the same
 * for the same input. */
void lcomm_labels_place(lcomm_label *labels, size_t count, const lcomm_spot *points,
                        size_t point_count, double panel_width, double panel_height);

#endif
