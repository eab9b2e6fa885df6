/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The report as text: a table of libcomm's calls and one of those of the other library. Both have
 * the same columns, which are as wide as their widest cell. */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/interpose/interpose_report.h"

typedef struct writer {
  char *text;
  size_t size, used;
} writer;

__attribute__((format(printf, 2, 3))) static void put(writer *w, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  size_t room = w->used < w->size ? w->size - w->used : 0;
  int length = vsnprintf(room ? w->text + w->used : NULL, room, format, arguments);
  va_end(arguments);
  w->used += length > 0 ? (size_t)length : 0;
}

/* ----------------------------------------------------------------------- table */

typedef struct table {
  writer w;
  const lcomm_interpose_report_about *about;
  const lcomm_interpose_policies *policies;
  lcomm_interpose_class **classes;
  unsigned chosen, count;
  int widths[LCOMM_INTERPOSE_COLUMNS]; /* 0: the heading has it instead */
} table;

static void measure(table *t) {
  char text[LCOMM_INTERPOSE_CELL_MAX];
  for (int c = 0; c < LCOMM_INTERPOSE_COLUMNS; c++) {
    t->widths[c] = (int)strlen(lcomm_interpose_column_title((lcomm_interpose_column)c));
    for (unsigned i = 0; i < (c < LCOMM_INTERPOSE_COLUMNS_OF_OTHER ? t->count : t->chosen); i++) {
      int width = (int)strlen(lcomm_interpose_cell(t->classes[i], (lcomm_interpose_column)c, text));
      t->widths[c] = width > t->widths[c] ? width : t->widths[c];
    }
  }
}

/* Without any there is no column. */
static bool knows_members(const table *t) {
  bool known = false;
  for (unsigned i = 0; i < t->count; i++) {
    known |= t->classes[i]->members[0] != '\0';
  }
  return known;
}

/* A single communicator is in the heading instead of in columns. */
static bool is_one_comm(const table *t) {
  for (unsigned i = 0; i < t->count; i++) {
    const lcomm_interpose_class *class = t->classes[i], *first = t->classes[0];
    if (strcmp(class->comm, first->comm) != 0 || strcmp(class->members, first->members) != 0 ||
        class->ranks != first->ranks || class->nodes != first->nodes) {
      return false;
    }
  }
  return true;
}

static void put_cell(table *t, lcomm_interpose_column column, const char *text) {
  if (t->widths[column] > 0) {
    put(&t->w, lcomm_interpose_column_is_text(column) ? "  %-*s" : "  %*s", t->widths[column],
        text);
  }
}

static void put_titles(table *t, int columns) {
  for (int c = 0; c < columns; c++) {
    put_cell(t, (lcomm_interpose_column)c, lcomm_interpose_column_title((lcomm_interpose_column)c));
  }
}

static void put_row(table *t, const lcomm_interpose_class *class, int columns) {
  char text[LCOMM_INTERPOSE_CELL_MAX];
  for (int c = 0; c < columns; c++) {
    put_cell(t, (lcomm_interpose_column)c,
             lcomm_interpose_cell(class, (lcomm_interpose_column)c, text));
  }
}

static const char *why_text(const lcomm_interpose_class *class) {
  if (!class->function) {
    return "too many kinds to tell apart";
  }
  return class->why[0] ? class->why : "not said";
}

static const char *how_text(const lcomm_interpose_class *class) {
  static const char *const texts[] = {[LCOMM_SELECT_NONE] = "left",
                                      [LCOMM_SELECT_EXACT] = "exact",
                                      [LCOMM_SELECT_LOSSY] = "lossy",
                                      [LCOMM_SELECT_EF] = "lossy+ef"};
  return class->function ? texts[class->choice] : "various";
}

/* An interposer that makes all calls by itself has no other library to leave them to. */
static const char *chosen_title(const table *t) {
  bool would = t->about->report_only;
  return t->about->other ? (would ? "would be libcomm's" : "libcomm's")
                         : (would ? "the policy would choose" : "the policy chose");
}

static void put_left_title(table *t, const char *why) {
  bool would = t->about->report_only;
  if (t->about->other) {
    put(&t->w, "\n  %s to %s: %s\n", would ? "would be left" : "left", t->about->other, why);
  } else {
    put(&t->w, "\n  %s: %s\n", would ? "would stay exact" : "exact", why);
  }
}

static void put_chosen(table *t) {
  put(&t->w, "\n  %s\n", chosen_title(t));
  put_titles(t, LCOMM_INTERPOSE_COLUMNS);
  put(&t->w, "  how\n");
  for (unsigned i = 0; i < t->chosen; i++) {
    const lcomm_interpose_class *class = t->classes[i];
    bool says_why = class->function && class->choice == LCOMM_SELECT_EXACT && class->why[0];
    put_row(t, class, LCOMM_INTERPOSE_COLUMNS);
    put(&t->w, "  %s", how_text(class));
    if (t->policies->count > 1 && class->function) {
      put(&t->w, ", policy %u", class->policy + 1);
    }
    put(&t->w, "%s%s\n", says_why ? ": " : "", says_why ? class->why : "");
  }
}

/* Grouped by reason. */
static void put_left(table *t) {
  const char *why = "";
  for (unsigned i = t->chosen; i < t->count; i++) {
    const lcomm_interpose_class *class = t->classes[i];
    if (strcmp(why_text(class), why) != 0) {
      why = why_text(class);
      put_left_title(t, why);
    }
    if (i == 0) { /* there is no table above with titles */
      put_titles(t, LCOMM_INTERPOSE_COLUMNS_OF_OTHER);
      put(&t->w, "\n");
    }
    put_row(t, class, LCOMM_INTERPOSE_COLUMNS_OF_OTHER);
    put(&t->w, "\n");
  }
}

/* In the heading instead of in columns. */
static void put_comm(table *t, const lcomm_interpose_class *class) {
  char name[LCOMM_INTERPOSE_CELL_MAX];
  put(&t->w, "  on      %s", lcomm_interpose_cell(class, LCOMM_INTERPOSE_COLUMN_COMM, name));
  if (class->ranks > 0) {
    put(&t->w, ", %d rank%s", class->ranks, class->ranks == 1 ? "" : "s");
  }
  if (class->nodes > 0) {
    put(&t->w, " on %d node%s", class->nodes, class->nodes == 1 ? "" : "s");
  }
  put(&t->w, "\n");
  t->widths[LCOMM_INTERPOSE_COLUMN_COMM] = t->widths[LCOMM_INTERPOSE_COLUMN_RANKS] = 0;
  t->widths[LCOMM_INTERPOSE_COLUMN_MEMBERS] = 0;
}

/* All policies that were in force, numbered where there are several. */
static void put_policies(table *t) {
  const lcomm_interpose_policies *all = t->policies;
  const char *first = t->about->policy;
  if (all->count < 2) {
    put(&t->w, "  policy  %s\n", first[0] ? first : "exact");
    return;
  }
  for (unsigned i = 0; i < all->count; i++) {
    put(&t->w, "  %s  %u: %s\n", i == 0 ? "policy" : "      ", i + 1,
        all->text[i][0] ? all->text[i] : "exact");
  }
}

static void put_heading(table *t) {
  const lcomm_interpose_report_about *about = t->about;
  put(&t->w, "%s: what %s of the calls of rank %d (host %s) of %d rank%s", about->library,
      about->report_only ? "would become" : "became", about->rank, about->host, about->ranks,
      about->ranks == 1 ? "" : "s");
  if (about->nodes > 0) {
    put(&t->w, " on %d node%s", about->nodes, about->nodes == 1 ? "" : "s");
  }
  put(&t->w, "\n");
  put_policies(t);
  if (about->report_only && about->other) {
    put(&t->w, "  LCOMM_INTERPOSE=report: nothing was changed, all calls were %s's\n",
        about->other);
  } else if (about->report_only) {
    put(&t->w, "  LCOMM_INTERPOSE=report: nothing was compressed, all sums were exact\n");
  }
  if (t->count > 0 && is_one_comm(t)) {
    put_comm(t, t->classes[0]);
  }
}

/* The total as a sentence. */
static void put_verdict(table *t) {
  char sent_text[LCOMM_INTERPOSE_CELL_MAX], exact_text[LCOMM_INTERPOSE_CELL_MAX];
  char saved_text[LCOMM_INTERPOSE_CELL_MAX];
  uint64_t sent = 0, exact = 0;
  bool would = t->about->report_only;
  for (unsigned i = 0; i < t->chosen; i++) {
    sent += t->classes[i]->sent_bytes;
    exact += t->classes[i]->exact_bytes;
  }
  if (sent == 0 && exact == 0) {
    put(&t->w, "  Nothing %s%s between nodes%s.\n",
        t->about->other ? "" : "that the policy chooses ", would ? "would go" : "went",
        t->about->other ? " through libcomm" : "");
    return;
  }
  lcomm_interpose_bytes_text(sent, sent_text);
  lcomm_interpose_bytes_text(exact, exact_text);
  put(&t->w, "  Between nodes this rank %s %s instead of %s", would ? "would send" : "sent",
      sent_text, exact_text);
  if (sent < exact) {
    lcomm_interpose_bytes_text(exact - sent, saved_text);
    put(&t->w, ": %s (%.0f %%) saved", saved_text, 100 * (double)(exact - sent) / (double)exact);
  }
  put(&t->w, ".\n");
}

/* ---------------------------------------------------------------------- order */

static int64_t saved(const lcomm_interpose_class *class) {
  return (int64_t)(class->exact_bytes - class->sent_bytes);
}

static int compare(uint64_t a, uint64_t b) {
  return (a < b) - (a > b);
}

/* First libcomm's by the bytes saved, then the others by reason; equal ones by size. */
static int by_weight(const void *a, const void *b) {
  const lcomm_interpose_class *one = *(lcomm_interpose_class *const *)a;
  const lcomm_interpose_class *other = *(lcomm_interpose_class *const *)b;
  if (one->chosen != other->chosen) {
    return one->chosen ? -1 : 1;
  }
  if (one->chosen && saved(one) != saved(other)) {
    return saved(one) > saved(other) ? -1 : 1;
  }
  int order = one->chosen ? 0 : strcmp(why_text(one), why_text(other));
  order = order ? order : compare(one->size_bytes, other->size_bytes);
  return order ? order : compare(one->calls, other->calls);
}

size_t lcomm_interpose_report_format(const lcomm_interpose_report_about *about,
                                     const lcomm_interpose_policies *policies,
                                     lcomm_interpose_class **classes, unsigned count, char *text,
                                     size_t size) {
  table t = {.w = {text, size, 0},
             .about = about,
             .policies = policies,
             .classes = classes,
             .count = count};
  if (count > 1) {
    qsort(classes, count, sizeof *classes, by_weight);
  }
  while (t.chosen < count && classes[t.chosen]->chosen) {
    t.chosen++;
  }
  measure(&t);
  t.widths[LCOMM_INTERPOSE_COLUMN_MEMBERS] =
      knows_members(&t) ? t.widths[LCOMM_INTERPOSE_COLUMN_MEMBERS] : 0;
  put_heading(&t);
  if (count == 0) {
    put(&t.w, t.about->other ? "  No collective call was made that could be libcomm's.\n"
                             : "  No sum was made.\n");
    return t.w.used;
  }
  if (t.chosen > 0) {
    put_chosen(&t);
  }
  put_left(&t);
  put(&t.w, "\n");
  put_verdict(&t);
  return t.w.used;
}
