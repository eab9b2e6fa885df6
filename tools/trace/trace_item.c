/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tools/trace/trace_item.h"

#include <cjson/cJSON.h>
#include <limits.h>
#include <math.h>
#include <string.h>

static const double WHOLE_MAX = 9007199254740992.0; /* 2^53: every whole number up to it is exact */

/* --------------------------------------------------------------- fields */

static bool get_number(const cJSON *object, const char *key, double least, double most,
                       double *value) {
  const cJSON *field = cJSON_GetObjectItemCaseSensitive(object, key);
  if (!cJSON_IsNumber(field) || !(field->valuedouble >= least && field->valuedouble <= most)) {
    return false;
  }
  *value = field->valuedouble;
  return true;
}

static bool get_whole(const cJSON *object, const char *key, double least, double most,
                      int64_t *value) {
  double number = 0;
  if (!get_number(object, key, least, most, &number) || number != floor(number)) {
    return false;
  }
  *value = (int64_t)number;
  return true;
}

static bool get_int(const cJSON *object, const char *key, int least, int *value) {
  int64_t whole = 0;
  bool good = get_whole(object, key, least, INT_MAX, &whole);
  *value = (int)whole;
  return good;
}

static bool get_u32(const cJSON *object, const char *key, uint32_t *value) {
  int64_t whole = 0;
  bool good = get_whole(object, key, 0, UINT32_MAX, &whole);
  *value = (uint32_t)whole;
  return good;
}

/* Microseconds to nanoseconds. */
static bool get_us(const cJSON *object, const char *key, double least, int64_t *time_ns) {
  double most = 1e6 * (double)LCOMM_TRACE_SECONDS_MAX, value = 0;
  bool good = get_number(object, key, least < 0 ? -most : 0, most, &value);
  *time_ns = (int64_t)llround(value * 1e3);
  return good;
}

static bool get_text(const cJSON *object, const char *key, char *text, size_t size) {
  const char *value = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
  size_t length = value ? strlen(value) : size;
  if (length >= size) {
    return false;
  }
  memcpy(text, value, length + 1);
  return true;
}

/* A text that may be missing. */
static bool get_optional(const cJSON *object, const char *key, char *text, const char **found) {
  *found = NULL;
  if (!cJSON_HasObjectItem(object, key)) {
    return true;
  }
  *found = text;
  return get_text(object, key, text, LCOMM_TRACE_TEXT_MAX);
}

/* -------------------------------------------------------------- metadata */

static bool read_origin(const cJSON *args, lcomm_trace_item *item, const char **why) {
  lcomm_trace_origin *origin = &item->origin;
  int version = 0, communicator = 0;
  int64_t process = 0;
  item->kind = LCOMM_ITEM_ORIGIN;
  *why = "it does not say whose trace this is";
  if (!get_int(args, "libcomm_trace", 0, &version)) {
    return false;
  }
  if (version != LCOMM_TRACE_VERSION) {
    *why = "it is of another version of libcomm";
    return false;
  }
  if (!get_int(args, "rank", 0, &origin->rank) || !get_int(args, "size", 1, &origin->size) ||
      origin->rank >= origin->size || !get_int(args, "communicator", 1, &communicator) ||
      !get_whole(args, "process", 0, WHOLE_MAX, &process) ||
      !get_whole(args, "base_s", 0, (double)LCOMM_TRACE_SECONDS_MAX, &origin->base_s)) {
    return false;
  }
  origin->communicator = (unsigned)communicator;
  origin->process = (long)process;
  return get_text(args, "host", origin->host, sizeof(origin->host));
}

/* 16 hexadecimal digits. */
static bool read_run(const cJSON *args, lcomm_trace_item *item, const char **why) {
  static const char digits[] = "0123456789abcdef";
  char text[17];
  item->kind = LCOMM_ITEM_RUN;
  item->run = 0;
  *why = "it does not say of which run the trace is";
  if (!get_text(args, "run", text, sizeof(text)) || strlen(text) != 16) {
    return false;
  }
  for (int i = 0; i < 16; i++) {
    const char *digit = strchr(digits, text[i]);
    if (!digit) {
      return false;
    }
    item->run = item->run << 4 | (uint64_t)(digit - digits);
  }
  return get_int(args, "node", 0, &item->node);
}

static bool read_clock(const cJSON *args, lcomm_trace_item *item, const char **why) {
  double most = 1e9 * (double)LCOMM_TRACE_SECONDS_MAX, offset = 0, error = 0;
  item->kind = LCOMM_ITEM_CLOCK;
  *why = "it does not say how the clock goes";
  if (!get_number(args, "clock_offset_ns", -most, most, &offset) ||
      !get_number(args, "clock_error_ns", 0, most, &error)) {
    return false;
  }
  item->offset_ns = (int64_t)offset;
  item->error_ns = (int64_t)error;
  return true;
}

static bool read_metadata(const cJSON *line, const cJSON *args, lcomm_trace_item *item,
                          const char **why) {
  char name[32];
  *why = "it is metadata that libcomm does not write";
  if (!get_text(line, "name", name, sizeof(name)) || !get_u32(line, "tid", &item->row)) {
    return false;
  }
  if (strcmp(name, "process_name") == 0) {
    return get_int(line, "pid", 0, &item->origin.process_rank) && read_origin(args, item, why);
  }
  if (strcmp(name, "process_labels") == 0) {
    return read_run(args, item, why);
  }
  if (strcmp(name, "process_sort_index") == 0) {
    return read_clock(args, item, why);
  }
  item->kind = LCOMM_ITEM_ROW;
  if (strcmp(name, "thread_name") == 0) {
    return get_text(args, "name", item->row_name, sizeof(item->row_name));
  }
  item->kind = LCOMM_ITEM_SORT;
  return strcmp(name, "thread_sort_index") == 0;
}

/* ---------------------------------------------------------------- events */

static bool find_kind(const cJSON *line, lcomm_trace_kind *kind) {
  char category[16], name[LCOMM_TRACE_TEXT_MAX];
  if (!get_text(line, "cat", category, sizeof(category)) ||
      !get_text(line, "name", name, sizeof(name))) {
    return false;
  }
  *kind = LCOMM_TRACE_OPERATION; /* its name is that of the operation */
  if (strcmp(category, "operation") == 0) {
    return true;
  }
  for (int i = 0; i < LCOMM_TRACE_KIND_COUNT; i++) {
    if (i != LCOMM_TRACE_OPERATION &&
        strcmp(name, lcomm_trace_kind_name((lcomm_trace_kind)i)) == 0) {
      *kind = (lcomm_trace_kind)i;
      return true;
    }
  }
  return false;
}

static bool find_link(const cJSON *args, lcomm_link *link) {
  char name[32];
  if (!get_text(args, "link", name, sizeof(name))) {
    return false;
  }
  for (int i = 0; i < LCOMM_LINK_COUNT; i++) {
    *link = (lcomm_link)i;
    if (strcmp(name, lcomm_link_name(*link)) == 0) {
      return true;
    }
  }
  return false;
}

static bool read_message(const cJSON *args, lcomm_trace_event *event) {
  bool needed = event->kind == LCOMM_TRACE_SEND || event->kind == LCOMM_TRACE_RECV;
  if (!cJSON_HasObjectItem(args, "peer")) {
    return !needed;
  }
  return get_int(args, "peer", 0, &event->peer) && get_u32(args, "message", &event->message) &&
         find_link(args, &event->link) && (!needed || event->operation);
}

static bool get_figure(const cJSON *args, const char *key, double *value) {
  const cJSON *found = cJSON_GetObjectItemCaseSensitive(args, key);
  *value = cJSON_IsNumber(found) ? found->valuedouble : NAN;
  return isfinite(*value);
}

static bool read_guard(const cJSON *args, lcomm_trace_guard *guard) {
  int64_t waited = 0;
  bool good = get_figure(args, "error", &guard->error) &&
              get_figure(args, "cosine", &guard->cosine) &&
              get_figure(args, "residual", &guard->residual) &&
              get_whole(args, "waited", 0, WHOLE_MAX, &waited);
  guard->waited = (uint64_t)waited;
  return good;
}

/* Of an operation; traces of before have none. */
static bool read_factor(const cJSON *args, lcomm_trace_factor *factor) {
  int64_t elements = 0, rows = 0, columns = 0;
  if (!cJSON_HasObjectItem(args, "sum")) {
    return true;
  }
  bool good = get_u32(args, "sum", &factor->sum) && get_u32(args, "rank", &factor->rank) &&
              get_whole(args, "elements", 1, WHOLE_MAX, &elements) &&
              get_whole(args, "rows", 1, (double)elements, &rows) &&
              get_whole(args, "columns", 1, (double)elements, &columns);
  factor->elements = (uint64_t)elements;
  factor->rows = (uint64_t)rows;
  factor->columns = (uint64_t)columns;
  return good && (factor->sum == 1 || factor->sum == 2) && factor->rank > 0;
}

static bool read_args(const cJSON *args, lcomm_trace_item *item) {
  lcomm_trace_event *event = &item->event;
  int64_t bytes = 0;
  if (!get_whole(args, "bytes", 0, WHOLE_MAX, &bytes) ||
      !get_optional(args, "operation", item->operation, &event->operation) ||
      !get_optional(args, "tensor", item->name, &event->name) ||
      !get_optional(args, "codec", item->codec, &event->codec)) {
    return false;
  }
  event->bytes = (uint64_t)bytes;
  if (event->operation &&
      (!get_u32(args, "number", &event->sequence) ||
       (event->kind < LCOMM_TRACE_COPY && !get_u32(args, "step", &event->step)))) {
    return false;
  }
  if (event->kind == LCOMM_TRACE_GUARD && !read_guard(args, &event->guard)) {
    return false;
  }
  if (event->kind == LCOMM_TRACE_OPERATION && !read_factor(args, &event->factor)) {
    return false;
  }
  return read_message(args, event);
}

static bool read_event(const cJSON *line, const cJSON *args, lcomm_trace_item *item,
                       const char **why) {
  lcomm_trace_place *place = &item->place;
  item->kind = LCOMM_ITEM_EVENT;
  item->event = (lcomm_trace_event){.peer = -1};
  *why = "it is an event that libcomm does not write";
  if (!find_kind(line, &item->event.kind)) {
    return false;
  }
  *why = "the times of an event make no sense";
  int64_t duration_ns = 0;
  if (!get_us(line, "ts", -1, &place->begin_ns) || !get_us(line, "dur", 0, &duration_ns)) {
    return false;
  }
  place->end_ns = place->begin_ns + duration_ns;
  *why = "what an event says of itself makes no sense";
  return get_int(line, "pid", 0, &place->process_rank) && get_u32(line, "tid", &place->row) &&
         read_args(args, item);
}

static bool read_line(const cJSON *line, lcomm_trace_item *item, const char **why) {
  char phase[4];
  const cJSON *args = cJSON_GetObjectItemCaseSensitive(line, "args");
  *why = "it is no trace event";
  if (!cJSON_IsObject(line) || !cJSON_IsObject(args) ||
      !get_text(line, "ph", phase, sizeof(phase))) {
    return false;
  }
  if (strcmp(phase, "M") == 0) {
    return read_metadata(line, args, item, why);
  }
  return strcmp(phase, "X") == 0 && read_event(line, args, item, why);
}

bool lcomm_trace_item_read(const char *text, size_t length, lcomm_trace_item *item,
                           const char **why) {
  const char *end = NULL;
  cJSON *line = cJSON_ParseWithLengthOpts(text, length, &end, 0);
  memset(item, 0, sizeof *item);
  *why = "it is no JSON";
  bool good = line && end == text + length && read_line(line, item, why);
  cJSON_Delete(line);
  return good;
}
