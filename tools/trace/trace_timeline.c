/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tools/trace/trace_timeline.h"

#include <errno.h>
#include <string.h>

/* ------------------------------------------------------------- processes */

static bool same_process(const lcomm_trace_survey *a, const lcomm_trace_survey *b) {
  return a->origin.process == b->origin.process &&
         a->origin.process_rank == b->origin.process_rank &&
         a->origin.communicator != b->origin.communicator &&
         strcmp(a->origin.host, b->origin.host) == 0;
}

static bool is_taken(const lcomm_trace_survey *surveys, size_t count, int number) {
  for (size_t i = 0; i < count; i++) {
    if (surveys[i].viewer_process == number) {
      return true;
    }
  }
  return false;
}

void lcomm_trace_merge_processes(lcomm_trace_survey *surveys, size_t count) {
  for (size_t i = 0; i < count; i++) {
    int number = surveys[i].origin.process_rank;
    size_t twin = 0;
    while (twin < i && !same_process(&surveys[twin], &surveys[i])) {
      twin++;
    }
    if (twin < i) {
      surveys[i].viewer_process = surveys[twin].viewer_process;
      continue;
    }
    if (is_taken(surveys, i, number)) { /* one of the first numbers is free */
      for (number = 0; is_taken(surveys, i, number);) {
        number++;
      }
    }
    surveys[i].viewer_process = number;
  }
}

/* --------------------------------------------------------------- writing */

typedef struct output {
  FILE *file;
  uint64_t lines;
  int64_t base_ns; /* where the merged time begins */
} output;

static void write_line(output *out, const lcomm_trace_line *line) {
  fputs(out->lines++ > 0 ? ",\n" : "[\n", out->file);
  fwrite(line->text, 1, line->length, out->file);
}

static void put_metadata(lcomm_trace_line *line, const char *name, int process, uint32_t row) {
  line->length = 0;
  lcomm_trace_put(line, "{\"name\":\"%s\",\"ph\":\"M\",\"pid\":%d,\"tid\":%u,\"args\":{", name,
                  process, row);
}

/* Without what a rank's own trace says of itself, so that a merged file is not
 * taken for one. */
static void write_process(output *out, const lcomm_trace_survey *survey) {
  lcomm_trace_line line;
  char name[LCOMM_TRACE_HOST_MAX + 32];
  int process = survey->viewer_process;
  snprintf(name, sizeof(name), "rank %d (host %s)", survey->origin.process_rank,
           survey->origin.host);
  put_metadata(&line, "process_name", process, 0);
  lcomm_trace_put(&line, "\"name\":");
  lcomm_trace_put_quoted(&line, name, sizeof(name));
  lcomm_trace_put(&line, "}}");
  write_line(out, &line);
  put_metadata(&line, "process_sort_index", process, 0);
  lcomm_trace_put(&line, "\"sort_index\":%d}}", process);
  write_line(out, &line);
  if (survey->has_run) {
    put_metadata(&line, "process_labels", process, 0);
    lcomm_trace_put(&line, "\"labels\":\"node %d\"}}", survey->node);
    write_line(out, &line);
  }
}

static void write_item(output *out, const lcomm_trace_survey *survey,
                       const lcomm_trace_item *item) {
  lcomm_trace_line line;
  lcomm_trace_place place = item->place;
  int64_t shift_ns = lcomm_trace_survey_base(survey) - out->base_ns;
  switch (item->kind) {
  case LCOMM_ITEM_ROW:
    put_metadata(&line, "thread_name", survey->viewer_process, item->row);
    lcomm_trace_put(&line, "\"name\":");
    lcomm_trace_put_quoted(&line, item->row_name, sizeof(item->row_name));
    lcomm_trace_put(&line, "}}");
    break;
  case LCOMM_ITEM_SORT:
    lcomm_trace_format_sort(&line, survey->viewer_process, item->row);
    break;
  case LCOMM_ITEM_EVENT:
    place.process_rank = survey->viewer_process;
    place.begin_ns += shift_ns;
    place.end_ns += shift_ns;
    lcomm_trace_format_event(&line, &item->event, &place);
    break;
  default:
    return; /* said once for the process */
  }
  write_line(out, &line);
}

static bool write_file(output *out, const lcomm_trace_survey *survey, char *why) {
  lcomm_trace_source source;
  lcomm_trace_item item;
  if (!lcomm_trace_source_open(&source, survey->path, why)) {
    return false;
  }
  lcomm_trace_next next = lcomm_trace_source_next(&source, &item, why);
  for (; next == LCOMM_NEXT_ITEM; next = lcomm_trace_source_next(&source, &item, why)) {
    write_item(out, survey, &item);
  }
  lcomm_trace_source_close(&source);
  return next == LCOMM_NEXT_END;
}

/* An end of an arrow. It is bound to the event that lies around its time. */
static void write_arrow_end(output *out, const lcomm_trace_survey *survey,
                            const lcomm_trace_message *message, uint64_t number) {
  lcomm_trace_line line = {.length = 0};
  int64_t time_ns = message->begin_ns + lcomm_trace_survey_base(survey) - out->base_ns;
  if (message->received && message->end_ns > message->begin_ns) {
    time_ns += message->end_ns - message->begin_ns - 1;
  }
  lcomm_trace_put(&line,
                  "{\"name\":\"message\",\"cat\":\"arrow\",\"ph\":\"%s\",\"id\":%llu,\"ts\":",
                  message->received ? "f\",\"bp\":\"e" : "s", (unsigned long long)number);
  lcomm_trace_put_us(&line, time_ns);
  lcomm_trace_put(&line, ",\"pid\":%d,\"tid\":%u}", survey->viewer_process, message->row);
  write_line(out, &line);
}

static bool is_first_of_process(const lcomm_trace_survey *surveys, size_t index) {
  return !is_taken(surveys, index, surveys[index].viewer_process);
}

bool lcomm_trace_merge_write(const lcomm_trace_survey *surveys, size_t count,
                             const lcomm_trace_match *match, FILE *file, char *why) {
  output out = {.file = file, .base_ns = INT64_MAX};
  for (size_t i = 0; i < count; i++) {
    int64_t base_ns = lcomm_trace_survey_base(&surveys[i]);
    out.base_ns = base_ns < out.base_ns ? base_ns : out.base_ns;
  }
  for (size_t i = 0; i < count; i++) {
    if (is_first_of_process(surveys, i)) {
      write_process(&out, &surveys[i]);
    }
    if (!write_file(&out, &surveys[i], why)) {
      return false;
    }
  }
  for (size_t i = 0; i < match->pair_count; i++) {
    const lcomm_trace_pair *pair = &match->pairs[i];
    write_arrow_end(&out, &surveys[pair->send->survey], pair->send, i + 1);
    write_arrow_end(&out, &surveys[pair->receive->survey], pair->receive, i + 1);
  }
  fputs("\n]\n", file);
  if (fflush(file) != 0 || ferror(file)) {
    snprintf(why, LCOMM_TRACE_WHY_MAX, "the merged trace cannot be written: %s", strerror(errno));
    return false;
  }
  return true;
}
