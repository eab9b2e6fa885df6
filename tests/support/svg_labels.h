/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SVG_LABELS_H
#define LCOMM_TESTS_SVG_LABELS_H

/* Where the words of a picture lie that gnuplot has drawn, by their place, their size and the
 * number of their letters, as fonts without serifs have them. */

#include <stdbool.h>
#include <stddef.h>

enum { SVG_LABELS_MAX = 256, SVG_LABEL_TEXT_MAX = 160 };

typedef struct svg_label {
  char text[SVG_LABEL_TEXT_MAX];
  double left, top, right, bottom;
} svg_label;

typedef struct svg_labels {
  double width, height; /* of the picture */
  size_t count;
  svg_label list[SVG_LABELS_MAX];
} svg_labels;

/* false: it is no SVG, or has more labels than there is room for. */
bool svg_labels_read(const char *svg, svg_labels *made);

/* How many pairs of labels cover each other, and labels are cut by the border of the picture.
 * `what`, of `size` bytes, is told the first. */
size_t svg_labels_collide(const svg_labels *of, char *what, size_t size);

#endif
