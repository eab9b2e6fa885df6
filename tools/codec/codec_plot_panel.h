/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_CODEC_CODEC_PLOT_PANEL_H
#define LCOMM_TOOLS_CODEC_CODEC_PLOT_PANEL_H

/* One panel of a gnuplot picture: named points over two logarithmic axes. */

#include <stdio.h>

#include "tools/codec/codec_options.h"

typedef struct lcomm_mark {
  const char *name, *colour;
  double x, y;   /* x > 0; y 0: drawn at the bottom as `zero_label` */
  double second; /* another y of the same name, drawn open; 0: none */
} lcomm_mark;

typedef struct lcomm_panel {
  const char *title, *x_label, *y_label;
  const char *zero_label;             /* what y 0 means; NULL: it is left out */
  const char *first_key, *second_key; /* what y and second are; NULL: no key */
  size_t number, panels;              /* from the left, of so many */
  double canvas_width, canvas_height; /* pixels of the picture */
  lcomm_mark marks[LCOMM_BENCH_CODECS_MAX];
  size_t mark_count;
} lcomm_panel;

/* One more than LCOMM_BENCH_CODECS_MAX is dropped. */
void lcomm_panel_add(lcomm_panel *panel, const lcomm_mark *mark);

/* Write the commands that draw it. */
void lcomm_panel_draw(const lcomm_panel *panel, FILE *script);

/* `text` as a string of gnuplot that nothing in it can end; control characters
 * become '?'. */
void lcomm_panel_quote(const char *text, FILE *script);

#endif
