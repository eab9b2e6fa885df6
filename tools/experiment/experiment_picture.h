/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_EXPERIMENT_EXPERIMENT_PICTURE_H
#define LCOMM_TOOLS_EXPERIMENT_EXPERIMENT_PICTURE_H

/* The pictures of a report: what gnuplot draws, and the numbers beside it. */

#include <stdio.h>

#include "tools/experiment/experiment_group.h"

enum { EXPERIMENT_PICTURES_MAX = 64 };

typedef struct experiment_picture {
  char name[64];                   /* of its files in pictures/ */
  char title[EXPERIMENT_TEXT_MAX]; /* what one sees */
  char *script;                    /* for gnuplot, without terminal and output; owned */
  char *table;                     /* rows with tabs between the cells, the first has the titles; a
                                      row that begins with ! shows a loss; owned */
} experiment_picture;

typedef struct experiment_pictures {
  size_t count;
  experiment_picture list[EXPERIMENT_PICTURES_MAX];
} experiment_pictures;

/* All that there are figures for. false: no memory. */
bool experiment_pictures_make(const experiment_groups *of, experiment_pictures *made);
void experiment_pictures_free(experiment_pictures *of);

/* Draw it: the text of an SVG, without what comes before <svg, or NULL when gnuplot is not there or
 * fails. To be freed. Leaves NAME.gp and NAME.svg in the folder. */
char *experiment_picture_draw(const experiment_picture *of, const char *folder);

/* For the writers of pictures: the next one with its two streams, or false. Close with _close. */
typedef struct experiment_canvas {
  experiment_picture *picture;
  FILE *script, *table;
  size_t script_size, table_size;
} experiment_canvas;

bool experiment_canvas_open(experiment_pictures *all, const char *name, const char *title,
                            experiment_canvas *made);
void experiment_canvas_close(experiment_canvas *of);

/* A text in single quotes, which nothing in it can end. */
void experiment_canvas_text(const char *text, FILE *script);

/* A logarithmic axis ("x" or "y") with a tic at 1, 2 and 5 of each decade. */
void experiment_canvas_decades(const char *axis, FILE *script);

/* A plot of block $cNUMBER: what was measured in columns 1 and 2 as a curve with points, and, where
 * `simulated`, column 3 as hollow marks in the same colour. between: "plot " or ", ". */
void experiment_canvas_curve(const experiment_group *of, const char *between, size_t number,
                             bool simulated, FILE *script);

/* The end of the plots; hollow marks are explained. */
void experiment_canvas_end(bool simulated, FILE *script);

/* A number for a block, NaN for 0, which is not known. Returns text (32 bytes). */
const char *experiment_canvas_known(double value, char *text);

/* A cell of a table, - for 0, and what ends it. */
void experiment_canvas_cell(double value, const char *end, FILE *table);

/* The colour of a policy, by its place among those of the workload. */
const char *experiment_canvas_colour(const experiment_group *of);

/* Pictures of trainings and of collectives in the place of `first`. */
void experiment_pictures_rates(const experiment_groups *of, const experiment_group *first,
                               experiment_pictures *made);
void experiment_pictures_training(const experiment_groups *of, const experiment_group *first,
                                  experiment_pictures *made);
void experiment_pictures_sizes(const experiment_groups *of, const experiment_group *first,
                               experiment_pictures *made);
void experiment_pictures_simulated(const experiment_groups *of, experiment_pictures *made);
void experiment_pictures_scaling(const experiment_groups *of, const experiment_group *first,
                                 experiment_pictures *made);

#endif
