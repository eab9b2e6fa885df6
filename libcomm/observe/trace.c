/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Traces: events in memory, and how they come to the file. */

#include "libcomm/observe/trace.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libcomm/base/clock.h"
#include "libcomm/base/env.h"
#include "libcomm/base/error.h"
#include "libcomm/base/exit_hook.h"
#include "libcomm/observe/trace_file.h"
#include "libcomm/sched/sched.h"

_Static_assert((int)LCOMM_TRACE_ENCODE == (int)LCOMM_STEP_ENCODE &&
                   (int)LCOMM_TRACE_SEND == (int)LCOMM_STEP_SEND &&
                   (int)LCOMM_TRACE_RECV == (int)LCOMM_STEP_RECV &&
                   (int)LCOMM_TRACE_DECODE == (int)LCOMM_STEP_DECODE &&
                   (int)LCOMM_TRACE_REDUCE == (int)LCOMM_STEP_REDUCE,
               "a step's kind is an event's kind");

/* An event with the strings that do not live as long as it does. */
typedef struct record {
  lcomm_trace_event event;
  char name[LCOMM_TRACE_NAME_MAX], codec[LCOMM_TRACE_CODEC_MAX];
} record;

typedef struct row_group {
  unsigned used;
  int64_t end_ns[LCOMM_TRACE_ROWS_MAX]; /* of the last event in each row */
} row_group;

struct lcomm_trace {
  lcomm_exit_hook hook; /* the first member: the hook is the trace */
  lcomm_trace_origin origin;
  lcomm_trace_file file;
  row_group groups[LCOMM_TRACE_GROUPS];
  lcomm_trace_steps steps; /* that are wanted */
  uint64_t next_step;      /* of calls without tensors */
  bool wanted;             /* the step that runs */
  bool speaks;             /* of what is lost, for all ranks of its host */
  double flushed_s;        /* when the file was last brought up to date */
  uint32_t count;
  record records[LCOMM_TRACE_EVENTS_MAX];
};

/* ---------------------------------------------------------------- events */

static int64_t to_ns(double time_s) {
  static const double MOST_S = (double)LCOMM_TRACE_SECONDS_MAX;
  return time_s > -MOST_S && time_s < MOST_S ? (int64_t)llround(time_s * 1e9) : 0;
}

/* The first row of the group that is free; a new one is told to the viewer.
 * When there are too many, the last one has to hold the rest. */
static unsigned find_row(lcomm_trace *trace, unsigned group, int64_t begin_ns) {
  row_group *rows = &trace->groups[group];
  unsigned row = 0;
  while (row < rows->used && rows->end_ns[row] > begin_ns) {
    row++;
  }
  if (row < rows->used) {
    return row;
  }
  if (row == LCOMM_TRACE_ROWS_MAX) {
    return LCOMM_TRACE_ROWS_MAX - 1;
  }
  rows->used++;
  lcomm_trace_line line;
  lcomm_trace_format_row(&line, &trace->origin, group, row);
  lcomm_trace_file_append(&trace->file, &line);
  lcomm_trace_format_sort(&line, trace->origin.process_rank,
                          lcomm_trace_row(trace->origin.communicator, group, row));
  lcomm_trace_file_append(&trace->file, &line);
  return row;
}

static void append_event(lcomm_trace *trace, const lcomm_trace_event *event) {
  unsigned group = lcomm_trace_group(event);
  lcomm_trace_place place = {.process_rank = trace->origin.process_rank,
                             .begin_ns = to_ns(event->begin_s - (double)trace->origin.base_s),
                             .end_ns = to_ns(event->end_s - (double)trace->origin.base_s)};
  unsigned row = find_row(trace, group, place.begin_ns);
  place.row = lcomm_trace_row(trace->origin.communicator, group, row);
  trace->groups[group].end_ns[row] = place.end_ns;
  lcomm_trace_line line;
  lcomm_trace_format_event(&line, event, &place);
  lcomm_trace_file_append(&trace->file, &line);
}

static void complain(const lcomm_trace *trace) {
  char sentence[LCOMM_FILE_PATH_MAX + 256];
  snprintf(sentence, sizeof(sentence),
           "rank %d (host %s): LCOMM_TRACE stops here: the file %s cannot be written: %s",
           trace->origin.rank, trace->origin.host, trace->file.path, strerror(trace->file.error));
  if (trace->speaks) {
    lcomm_trace_lost(sentence);
  } else {
    lcomm_log_error(sentence);
  }
}

void lcomm_trace_lost(const char *sentence) {
  static atomic_flag said = ATOMIC_FLAG_INIT;
  if (atomic_flag_test_and_set(&said)) {
    lcomm_log_error(sentence);
  } else {
    lcomm_log_warning(sentence);
  }
}

void lcomm_trace_flush(lcomm_trace *trace) {
  trace->flushed_s = lcomm_clock_s();
  if (trace->file.handle < 0) {
    return;
  }
  for (uint32_t i = 0; i < trace->count && trace->file.handle >= 0; i++) {
    append_event(trace, &trace->records[i].event);
  }
  trace->count = 0;
  lcomm_trace_file_flush(&trace->file);
  if (trace->file.handle < 0) {
    complain(trace);
  }
}

/* A cut never leaves half a character. */
static const char *copy_text(char *to, size_t size, const char *from) {
  if (!from) {
    return NULL;
  }
  size_t length = strnlen(from, size);
  if (length == size) {
    length = size - 1;
    while (length > 0 && ((unsigned char)from[length] & 0xc0) == 0x80) {
      length--;
    }
  }
  memcpy(to, from, length);
  to[length] = '\0';
  return to;
}

static void add_record(lcomm_trace *trace, const lcomm_trace_event *event) {
  record *r = &trace->records[trace->count++];
  r->event = *event;
  r->event.name = copy_text(r->name, sizeof(r->name), event->name);
  r->event.codec = copy_text(r->codec, sizeof(r->codec), event->codec);
}

static bool is_due(const lcomm_trace *trace, double now_s) {
  static const double PERIOD_S = 1.0;
  return trace->count > 0 && now_s - trace->flushed_s >= PERIOD_S;
}

void lcomm_trace_tick(lcomm_trace *trace) {
  if (is_due(trace, lcomm_clock_s())) {
    lcomm_trace_flush(trace);
  }
}

void lcomm_trace_step(lcomm_trace *trace, uint64_t step) {
  trace->wanted = step >= trace->steps.first && step <= trace->steps.last;
}

void lcomm_trace_next_step(lcomm_trace *trace) {
  lcomm_trace_step(trace, trace->next_step++);
}

void lcomm_trace_add(lcomm_trace *trace, const lcomm_trace_event *event) {
  if (!trace->wanted || trace->file.handle < 0 || (unsigned)event->kind >= LCOMM_TRACE_KIND_COUNT) {
    return;
  }
  if (trace->count == LCOMM_TRACE_EVENTS_MAX || is_due(trace, event->end_s)) {
    lcomm_trace_event writing = {.kind = LCOMM_TRACE_WRITE, .peer = -1};
    writing.begin_s = lcomm_clock_s();
    lcomm_trace_flush(trace);
    writing.end_s = lcomm_clock_s();
    add_record(trace, &writing); /* so that the gap is not taken for something else */
  }
  add_record(trace, event);
}

/* -------------------------------------------------------------- metadata */

void lcomm_trace_run(lcomm_trace *trace, uint64_t run, int node) {
  lcomm_trace_line line;
  lcomm_trace_format_run(&line, &trace->origin, run, node);
  lcomm_trace_file_append(&trace->file, &line);
  lcomm_trace_flush(trace);
}

void lcomm_trace_clock(lcomm_trace *trace, double offset_s, double error_s) {
  lcomm_trace_line line;
  lcomm_trace_format_clock(&line, &trace->origin, to_ns(offset_s), to_ns(error_s));
  lcomm_trace_file_append(&trace->file, &line);
  lcomm_trace_flush(trace);
}

/* ---------------------------------------------------------------- making */

/* Which communicator of the process this is, and under which rank the process
 * is known. */
static void number_communicator(lcomm_trace_origin *origin) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static unsigned made;
  static int first_rank;
  pthread_mutex_lock(&lock);
  first_rank = made == 0 ? origin->rank : first_rank;
  origin->communicator = ++made;
  origin->process_rank = first_rank;
  pthread_mutex_unlock(&lock);
}

/* false when it is too long. */
static bool make_path(lcomm_trace *trace, const char *pattern) {
  const lcomm_trace_origin *origin = &trace->origin;
  char number[64], *path = trace->file.path;
  if (origin->communicator == 1) {
    snprintf(number, sizeof(number), "%d", origin->process_rank);
  } else {
    snprintf(number, sizeof(number), "%u.%d", origin->communicator, origin->process_rank);
  }
  const char *mark = strstr(pattern, "%d");
  int length = mark ? snprintf(path, LCOMM_FILE_PATH_MAX, "%.*s%s%s", (int)(mark - pattern),
                               pattern, number, mark + 2)
                    : snprintf(path, LCOMM_FILE_PATH_MAX, "%s.%s", pattern, number);
  return length >= 0 && length < LCOMM_FILE_PATH_MAX;
}

/* With the first lines, so that a file that cannot be written is known now. */
static lcomm_status open_file(lcomm_trace *trace, const char *pattern, lcomm_why *why) {
  if (!make_path(trace, pattern)) {
    return lcomm_why_set(why, LCOMM_ERR_ARGUMENT,
                         "LCOMM_TRACE=%.60s... is too long for the name of a file", pattern);
  }
  if (lcomm_trace_file_open(&trace->file) == LCOMM_OK) {
    lcomm_trace_line line;
    lcomm_trace_format_origin(&line, &trace->origin);
    lcomm_trace_file_append(&trace->file, &line);
    lcomm_trace_format_clock(&line, &trace->origin, 0, 0);
    lcomm_trace_file_append(&trace->file, &line);
    lcomm_trace_file_flush(&trace->file);
  }
  if (trace->file.handle >= 0) {
    return LCOMM_OK;
  }
  return lcomm_why_set(
      why, LCOMM_ERR_SYSTEM,
      "LCOMM_TRACE: the file %.300s cannot be written: %s; name a file in a folder that "
      "exists and has room, or leave it unset",
      trace->file.path, strerror(trace->file.error));
}

lcomm_status lcomm_trace_create(int rank, int size, const char *host, lcomm_trace **trace,
                                lcomm_why *why) {
  const char *pattern = lcomm_env_get(LCOMM_ENV_TRACE);
  *trace = NULL;
  if (!pattern) {
    return LCOMM_OK;
  }
  lcomm_trace_steps steps;
  LCOMM_TRY(lcomm_trace_steps_parse(lcomm_env_get(LCOMM_ENV_TRACE_STEPS), &steps, why));
  lcomm_trace *made = calloc(1, sizeof *made);
  if (!made) {
    return lcomm_why_set(why, LCOMM_ERR_MEMORY, "out of memory for LCOMM_TRACE");
  }
  made->origin = (lcomm_trace_origin){
      .rank = rank, .size = size, .process = (long)getpid(), .base_s = (int64_t)lcomm_clock_s()};
  snprintf(made->origin.host, sizeof(made->origin.host), "%s", host);
  for (uint32_t i = 0; i < LCOMM_TRACE_EVENTS_MAX; i++) {
    made->records[i].event.peer = -1; /* the system gives the memory now, not on the data path */
  }
  made->steps = steps;
  lcomm_trace_step(made, 0);
  number_communicator(&made->origin);
  lcomm_status status = open_file(made, pattern, why);
  if (status != LCOMM_OK) {
    free(made);
    return status;
  }
  made->flushed_s = lcomm_clock_s();
  *trace = made;
  return LCOMM_OK;
}

void lcomm_trace_speak(lcomm_trace *trace) {
  trace->speaks = true;
}

/* Closed, since nothing is added after the exit. */
static void at_exit(lcomm_exit_hook *hook) {
  lcomm_trace *trace = (lcomm_trace *)hook;
  lcomm_trace_flush(trace);
  lcomm_trace_file_close(&trace->file);
}

void lcomm_trace_watch(lcomm_trace *trace, pthread_mutex_t *guard) {
  trace->hook.run = at_exit;
  trace->hook.guard = guard;
  lcomm_exit_hook_add(&trace->hook);
}

void lcomm_trace_destroy(lcomm_trace *trace) {
  if (!trace) {
    return;
  }
  lcomm_exit_hook_remove(&trace->hook);
  lcomm_trace_flush(trace);
  bool open = trace->file.handle >= 0;
  lcomm_trace_file_close(&trace->file);
  if (open && trace->file.error) {
    complain(trace);
  }
  free(trace);
}
