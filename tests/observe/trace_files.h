/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_OBSERVE_TRACE_FILES_H
#define LCOMM_TESTS_OBSERVE_TRACE_FILES_H

/* Traces for tests: a folder that goes away, files read back, events made. */

/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libcomm/observe/trace.h"
#include "tests/support/remove_tree.h"

enum { PATH_SIZE = 256 };

static char folder[PATH_SIZE];

static inline int make_folder(void **state) {
  (void)state;
  snprintf(folder, sizeof(folder), "/tmp/libcomm-trace-XXXXXX");
  return mkdtemp(folder) ? 0 : -1;
}

static inline int remove_folder(void **state) {
  (void)state;
  unsetenv("LCOMM_TRACE");
  return remove_tree(folder);
}

/* "folder/name"; valid until the next but three. */
static inline const char *in_folder(const char *name) {
  static char paths[4][PATH_SIZE + 64];
  static unsigned next;
  char *path = paths[next++ % 4];
  snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
  return path;
}

/* The whole file as text; freed by the caller. */
static inline char *read_text(const char *path) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  assert_int_equal(fseek(file, 0, SEEK_END), 0);
  size_t size = (size_t)ftell(file);
  rewind(file);
  char *text = malloc(size + 3);
  assert_non_null(text);
  assert_int_equal(fread(text, 1, size, file), size);
  text[size] = '\0';
  fclose(file);
  return text;
}

static inline void write_text(const char *path, const char *text) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
  assert_int_equal(fclose(file), 0);
}

/* The events of a file, as a viewer reads them: an open array is closed. */
static inline cJSON *read_events(const char *path) {
  char *text = read_text(path);
  if (strcmp(text + strlen(text) - 3, "\n]\n") != 0) {
    strcat(text, "]");
  }
  cJSON *events = cJSON_ParseWithOpts(text, NULL, true);
  free(text);
  assert_non_null(events);
  assert_true(cJSON_IsArray(events));
  return events;
}

static inline const char *text_of(const cJSON *object, const char *key) {
  const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
  return text ? text : "";
}

static inline double number_of(const cJSON *object, const char *key) {
  const cJSON *number = cJSON_GetObjectItemCaseSensitive(object, key);
  assert_true(cJSON_IsNumber(number));
  return number->valuedouble;
}

static inline const cJSON *args_of(const cJSON *event) {
  return cJSON_GetObjectItemCaseSensitive(event, "args");
}

/* The event number `index` with this name, NULL when there are fewer. */
static inline const cJSON *find_event(const cJSON *events, const char *name, int index) {
  const cJSON *event = NULL;
  cJSON_ArrayForEach(event, events) {
    if (strcmp(text_of(event, "name"), name) == 0 && index-- == 0) {
      return event;
    }
  }
  return NULL;
}

static inline int count_events(const cJSON *events, const char *name) {
  int count = 0;
  while (find_event(events, name, count)) {
    count++;
  }
  return count;
}

/* A trace at `folder/name` of this rank among `size`. */
static inline lcomm_trace *make_trace(const char *name, int rank, int size) {
  lcomm_trace *trace = NULL;
  lcomm_why why = {.text = ""};
  setenv("LCOMM_TRACE", in_folder(name), 1);
  assert_int_equal(lcomm_trace_create(rank, size, "n1", &trace, &why), LCOMM_OK);
  assert_non_null(trace);
  return trace;
}

static inline lcomm_trace_event make_event(lcomm_trace_kind kind, double begin_s, double end_s) {
  lcomm_trace_event event = {.kind = kind,
                             .begin_s = begin_s,
                             .end_s = end_s,
                             .operation = "all-reduce",
                             .sequence = 7,
                             .step = 3,
                             .peer = -1,
                             .bytes = 4096};
  return event;
}

static inline lcomm_trace_event make_message(lcomm_trace_kind kind, int peer, uint32_t message,
                                             double begin_s, double end_s) {
  lcomm_trace_event event = make_event(kind, begin_s, end_s);
  event.peer = peer;
  event.message = message;
  event.link = LCOMM_LINK_NET;
  return event;
}

/* The trace of this name, of whichever communicator of the process. */
static inline const char *find_trace(const char *name) {
  char file[64];
  for (int number = 1; number < 64; number++) {
    snprintf(file, sizeof(file), number == 1 ? "%s.0" : "%s.%d.0", name, number);
    if (access(in_folder(file), R_OK) == 0) {
      return in_folder(file);
    }
  }
  fail_msg("there is no trace %s", name);
  return NULL;
}

static inline cJSON *read_back(const char *name) {
  return read_events(find_trace(name));
}

/* So many events of this name are in the file `folder/name`. */
static inline void expect_events(const char *name, const char *event, int count) {
  cJSON *events = read_back(name);
  assert_int_equal(count_events(events, event), count);
  cJSON_Delete(events);
}

/* What a process does that does not come to its end in order. */
static inline void in_child(void (*run)(void)) {
  fflush(NULL);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    run();
    exit(0);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

/* A test in a folder of its own. */
#define IN_FOLDER(test)                                                                            \
  {                                                                                                \
#test, test, make_folder, remove_folder, NULL                                                  \
  }

#endif
