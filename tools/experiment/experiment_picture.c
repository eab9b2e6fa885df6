/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/experiment/experiment_picture.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/experiment/experiment_folder.h"

/* Middle tones, which can be told apart on white and on black. */
static const char *const colours[] = {"#8a8f98", "#d9822b", "#2b8cbe", "#3aa655",
                                      "#9e5fd0", "#d6455f", "#b59b00", "#17a2a2"};

const char *experiment_canvas_colour(const experiment_group *of) {
  for (size_t i = 0; i < of->of->policies.count; i++) {
    if (of->policy == of->of->policies.words[i]) {
      return colours[i % (sizeof colours / sizeof colours[0])];
    }
  }
  return colours[0];
}

void experiment_canvas_text(const char *text, FILE *script) {
  fputc('\'', script);
  for (; *text; text++) {
    fputs(*text == '\'' ? "''" : (char[]){(unsigned char)*text < ' ' ? '?' : *text, '\0'}, script);
  }
  fputc('\'', script);
}

void experiment_canvas_curve(const experiment_group *of, const char *between, size_t number,
                             bool simulated, FILE *script) {
  const char *colour = experiment_canvas_colour(of);
  fprintf(script, "%s$c%zu using 1:2 with linespoints pt 7 ps 0.7 lw 2 lc rgb '%s' title ", between,
          number, colour);
  experiment_canvas_text(experiment_policy_name(of->policy), script);
  if (simulated) {
    fprintf(script, ", $c%zu using 1:3 with points pt 6 ps 1.2 lw 1.5 lc rgb '%s' notitle", number,
            colour);
  }
}

void experiment_canvas_end(bool simulated, FILE *script) {
  fputs(simulated ? ", keyentry with points pt 6 ps 1.2 lw 1.5 lc rgb '#8a8f98' title 'simulated'\n"
                  : "\n",
        script);
}

const char *experiment_canvas_known(double value, char *text) {
  snprintf(text, 32, value > 0.0 ? "%.9g" : "NaN", value);
  return text;
}

void experiment_canvas_cell(double value, const char *end, FILE *table) {
  fprintf(table, value > 0.0 ? "%.4g" : "-", value);
  fputs(end, table);
}

void experiment_canvas_decades(const char *axis, FILE *script) {
  const char *between = "(";
  fprintf(script, "set logscale %s\nset %stics ", axis, axis);
  for (int decade = -6; decade <= 6; decade++) {
    fprintf(script, "%s1e%d, 2e%d, 5e%d", between, decade, decade, decade);
    between = ", ";
  }
  fputs(")\n", script);
}

bool experiment_canvas_open(experiment_pictures *all, const char *name, const char *title,
                            experiment_canvas *made) {
  if (all->count == EXPERIMENT_PICTURES_MAX) {
    return false;
  }
  experiment_picture *picture = &all->list[all->count];
  *made = (experiment_canvas){.picture = picture};
  snprintf(picture->name, sizeof picture->name, "p%02zu_%.50s", all->count + 1, name);
  snprintf(picture->title, sizeof picture->title, "%s", title);
  made->script = open_memstream(&picture->script, &made->script_size);
  made->table = open_memstream(&picture->table, &made->table_size);
  if (!made->script || !made->table) {
    experiment_canvas_close(made);
    free(picture->script);
    free(picture->table);
    return false;
  }
  all->count++;
  fputs("set encoding utf8\n"
        "set border 3 lc rgb '#999999'\nset tics nomirror out textcolor rgb 'black'\n"
        "set grid ytics lc rgb '#999999' lw 0.4\n"
        "set key outside top center horizontal noenhanced\nset autoscale fix\n",
        made->script);
  return true;
}

void experiment_canvas_close(experiment_canvas *of) {
  if (of->script) {
    fclose(of->script);
  }
  if (of->table) {
    fclose(of->table);
  }
}

/* ------------------------------------------------------------------- drawing */

static void put_script(const experiment_picture *of, const char *svg, FILE *file) {
  fprintf(file, "set terminal svg size 760,440 dynamic font 'sans-serif,14' name '%s'\n", of->name);
  fputs("set output ", file);
  experiment_canvas_text(svg, file);
  fprintf(file, "\n%s", of->script);
}

char *experiment_picture_draw(const experiment_picture *of, const char *folder) {
  char path[EXPERIMENT_PATH_MAX + 80], svg[EXPERIMENT_PATH_MAX + 80], name[80];
  snprintf(path, sizeof path, "%s/%s.gp", folder, of->name);
  snprintf(svg, sizeof svg, "%s/%s.svg", folder, of->name);
  snprintf(name, sizeof name, "%s.svg", of->name);
  mkdir(folder, 0777);
  unlink(svg);
  FILE *script = fopen(path, "we");
  if (script) {
    put_script(of, svg, script);
    fclose(script);
  }
  FILE *gnuplot = popen("gnuplot 2>/dev/null", "we");
  if (!gnuplot) {
    return NULL;
  }
  put_script(of, svg, gnuplot);
  if (pclose(gnuplot) != 0) {
    return NULL;
  }
  char *text = experiment_folder_text(folder, name);
  char *begin = text ? strstr(text, "<svg") : NULL;
  if (begin) {
    memmove(text, begin, strlen(begin) + 1);
  }
  return text;
}

/* ----------------------------------------------------------------------- all */

/* The first group of each place. */
static bool is_first(const experiment_groups *of, size_t i) {
  for (size_t before = 0; before < i; before++) {
    if (experiment_same_place(&of->groups[before], &of->groups[i])) {
      return false;
    }
  }
  return true;
}

bool experiment_pictures_make(const experiment_groups *of, experiment_pictures *made) {
  memset(made, 0, sizeof *made);
  for (size_t i = 0; i < of->count; i++) {
    if (is_first(of, i)) {
      experiment_pictures_rates(of, &of->groups[i], made);
      experiment_pictures_training(of, &of->groups[i], made);
      experiment_pictures_sizes(of, &of->groups[i], made);
      experiment_pictures_scaling(of, &of->groups[i], made);
    }
  }
  experiment_pictures_simulated(of, made);
  return true;
}

void experiment_pictures_free(experiment_pictures *of) {
  for (size_t i = 0; i < of->count; i++) {
    free(of->list[i].script);
    free(of->list[i].table);
  }
  of->count = 0;
}
