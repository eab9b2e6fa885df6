/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tools/trace/trace_report.h"

#include <stdlib.h>
#include <string.h>

#include "tools/common/tool_table.h"
#include "tools/common/tool_units.h"

/* ----------------------------------------------------------------- table */

enum { COLUMNS_MAX = 8 + LCOMM_LINK_COUNT };

static void put_share(tool_table *table, double part_ns, double whole_ns) {
  tool_table_put(table, TOOL_COLOUR_NONE, "%.1f %%", whole_ns > 0 ? 100 * part_ns / whole_ns : 0);
}

static void put_slowest(tool_table *table, const lcomm_trace_survey *survey) {
  char text[TOOL_UNITS_TEXT_MAX];
  if (survey->slowest_ns < 0) {
    tool_table_put(table, TOOL_COLOUR_NONE, "-");
    return;
  }
  tool_table_put(table, TOOL_COLOUR_NONE, "%s #%u%s%.64s, %s",
                 survey->slowest[0] ? survey->slowest : "operation", survey->slowest_sequence,
                 survey->slowest_name[0] ? " " : "", survey->slowest_name,
                 tool_units_seconds((double)survey->slowest_ns * 1e-9, text));
}

static void put_survey(tool_table *table, const lcomm_trace_survey *survey, const bool *links) {
  char text[TOOL_UNITS_TEXT_MAX];
  double span_ns = (double)(survey->last_ns - survey->first_ns);
  const double *kind_ns = survey->kind_ns;
  tool_table_row(table);
  if (survey->origin.communicator == 1) {
    tool_table_put(table, TOOL_COLOUR_NONE, "%d", survey->origin.rank);
  } else {
    tool_table_put(table, TOOL_COLOUR_NONE, "%d of comm %u", survey->origin.rank,
                   survey->origin.communicator);
  }
  tool_table_put(table, TOOL_COLOUR_NONE, "%s", survey->origin.host);
  tool_table_put(table, TOOL_COLOUR_NONE, "%s", tool_units_seconds(span_ns * 1e-9, text));
  put_share(table, kind_ns[LCOMM_TRACE_ENCODE], span_ns);
  put_share(table, (double)survey->wire_ns, span_ns);
  put_share(table, kind_ns[LCOMM_TRACE_DECODE] + kind_ns[LCOMM_TRACE_REDUCE], span_ns);
  put_share(table, kind_ns[LCOMM_TRACE_WAIT], span_ns);
  for (int link = 0; link < LCOMM_LINK_COUNT; link++) {
    if (links[link]) {
      tool_table_put(table, TOOL_COLOUR_NONE, "%s",
                     tool_units_bytes(survey->sent_bytes[link], text));
    }
  }
  put_slowest(table, survey);
}

/* The columns of a table, which has one for each link class in use. */
typedef struct layout {
  const char *columns[COLUMNS_MAX + 1];
  char sides[COLUMNS_MAX + 1];
  char link_names[LCOMM_LINK_COUNT][32];
  bool links[LCOMM_LINK_COUNT];
} layout;

static void make_layout(layout *l, const lcomm_trace_survey *surveys, size_t count) {
  static const char *const before[] = {"rank",         "host",        "time", "encode",
                                       "on the\nwire", "decode\nsum", "wait"};
  size_t used = sizeof(before) / sizeof(before[0]);
  memset(l, 0, sizeof *l);
  memcpy(l->columns, before, sizeof(before));
  for (int link = 0; link < LCOMM_LINK_COUNT; link++) {
    for (size_t i = 0; i < count; i++) {
      l->links[link] |= surveys[i].sent_bytes[link] > 0;
    }
    if (l->links[link]) {
      snprintf(l->link_names[link], sizeof(l->link_names[link]), "sent\n%s",
               lcomm_link_name((lcomm_link)link));
      l->columns[used++] = l->link_names[link];
    }
  }
  l->columns[used++] = "slowest operation";
  memset(l->sides, 'R', used);
  l->sides[0] = l->sides[1] = l->sides[used - 1] = 'L';
}

bool lcomm_trace_report_table(const lcomm_trace_survey *surveys, size_t count,
                              const lcomm_trace_match *match, FILE *file) {
  layout l;
  make_layout(&l, surveys, count);
  tool_table table = {.columns = l.columns, .sides = l.sides};
  uint64_t events = 0;
  for (size_t i = 0; i < count; i++) {
    put_survey(&table, &surveys[i], l.links);
    events += surveys[i].events;
  }
  bool good = tool_table_print(&table, file, tool_table_colours(file));
  fprintf(file, "%llu events, %zu messages with both ends\n", (unsigned long long)events,
          match->pair_count);
  return good;
}

/* -------------------------------------------------------------- oddities */

static size_t report_runs(const lcomm_trace_survey *surveys, size_t count, FILE *file) {
  const lcomm_trace_survey *first = NULL;
  size_t found = 0;
  for (size_t i = 0; i < count; i++) {
    const lcomm_trace_survey *survey = &surveys[i];
    if (survey->origin.communicator != 1 || !survey->has_run) {
      continue; /* parts of a split communicator differ */
    }
    first = first ? first : survey;
    if (survey->run != first->run) {
      fprintf(file, "%s is of another run than %s; their times have nothing in common\n",
              survey->path, first->path);
      found++;
    }
  }
  return found;
}

static size_t report_twins(const lcomm_trace_survey *surveys, size_t count, FILE *file) {
  size_t found = 0;
  for (size_t i = 0; i < count; i++) {
    for (size_t j = 0; j < i; j++) {
      if (surveys[i].has_run && surveys[j].has_run && surveys[i].run == surveys[j].run &&
          surveys[i].origin.rank == surveys[j].origin.rank) {
        fprintf(file, "%s and %s are of the same rank\n", surveys[j].path, surveys[i].path);
        found++;
      }
    }
  }
  return found;
}

static bool is_here(const lcomm_trace_survey *surveys, size_t count, uint64_t run, int rank) {
  for (size_t i = 0; i < count; i++) {
    if (surveys[i].has_run && surveys[i].run == run && surveys[i].origin.rank == rank) {
      return true;
    }
  }
  return false;
}

/* Of the first communicators; a file says how many ranks there were. */
static size_t report_missing(const lcomm_trace_survey *surveys, size_t count, FILE *file) {
  const lcomm_trace_survey *first = NULL;
  for (size_t i = 0; i < count && !first; i++) {
    first = surveys[i].origin.communicator == 1 && surveys[i].has_run ? &surveys[i] : NULL;
  }
  int missing = 0, lowest = -1;
  for (int rank = 0; first && rank < first->origin.size; rank++) {
    if (!is_here(surveys, count, first->run, rank)) {
      missing++;
      lowest = lowest < 0 ? rank : lowest;
    }
  }
  if (missing > 0) {
    fprintf(file, "of %d ranks, %d trace%s missing; the first one is that of rank %d\n",
            first->origin.size, missing, missing == 1 ? " is" : "s are", lowest);
  }
  return missing > 0;
}

static size_t report_ends(const lcomm_trace_survey *surveys, size_t count, FILE *file) {
  size_t found = 0;
  for (size_t i = 0; i < count; i++) {
    if (!surveys[i].closed) {
      fprintf(file, "%s ends early%s: its process did not come to the end, or the disk was full\n",
              surveys[i].path, surveys[i].cut ? ", in the middle of a line" : "");
      found++;
    }
  }
  return found;
}

static size_t report_messages(const lcomm_trace_survey *surveys, const lcomm_trace_match *match,
                              FILE *file) {
  size_t found = 0;
  const lcomm_trace_message *lone = match->first_lone;
  if (lone) {
    fprintf(file,
            "%zu sends and %zu receives have no partner; one is the %s of rank %d, operation #%u, "
            "message %u from rank %d to rank %d\n",
            match->lone_sends, match->lone_receives, lone->received ? "receive" : "send",
            surveys[lone->survey].origin.rank, lone->sequence, lone->message, lone->from, lone->to);
    found++;
  }
  if (match->backward > 0) {
    fprintf(file,
            "%zu messages arrive before they are sent, by up to %.1f us: the clocks of the hosts "
            "are not known better\n",
            match->backward, (double)match->backward_ns * 1e-3);
    found++;
  }
  return found;
}

size_t lcomm_trace_report_oddities(const lcomm_trace_survey *surveys, size_t count,
                                   const lcomm_trace_match *match, FILE *file) {
  return report_runs(surveys, count, file) + report_twins(surveys, count, file) +
         report_missing(surveys, count, file) + report_ends(surveys, count, file) +
         report_messages(surveys, match, file);
}
