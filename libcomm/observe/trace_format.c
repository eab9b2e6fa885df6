/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Trace events as lines of JSON. */

#include "libcomm/observe/trace_format.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct kind {
  const char *name;
  char lane;
} kinds[LCOMM_TRACE_KIND_COUNT] = {
#define KIND_ROW(id, text, lane) [id] = {text, lane},
    LCOMM_TRACE_KIND_LIST(KIND_ROW)
#undef KIND_ROW
};

const char *lcomm_trace_kind_name(lcomm_trace_kind kind) {
  return (unsigned)kind < LCOMM_TRACE_KIND_COUNT ? kinds[kind].name : "unknown";
}

/* ------------------------------------------------------------------ text */

void lcomm_trace_put(lcomm_trace_line *line, const char *format, ...) {
  size_t room = sizeof(line->text) - line->length;
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(line->text + line->length, room, format, arguments);
  va_end(arguments);
  if (length > 0) {
    line->length += (size_t)length < room ? (size_t)length : room - 1;
  }
}

/* Bytes of the UTF-8 character at `text`, 0 when it is none. The terminator
 * continues no character, so nothing behind it is read. */
static size_t utf8_length(const unsigned char *text) {
  unsigned first = text[0];
  if (first < 0x80) {
    return 1;
  }
  size_t length = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  /* No shorter form, no surrogate, nothing past U+10FFFF. */
  unsigned lowest = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  unsigned highest = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (text[1] < lowest || text[1] > highest) {
    return 0;
  }
  for (size_t i = 2; i < length; i++) {
    if ((text[i] & 0xc0) != 0x80) {
      return 0;
    }
  }
  return length;
}

/* Bytes as they are; what does not fit is cut. */
static void put_bytes(lcomm_trace_line *line, const void *bytes, size_t size) {
  size_t room = sizeof(line->text) - line->length - 1; /* the terminator of lcomm_trace_put */
  size = size < room ? size : room;
  memcpy(line->text + line->length, bytes, size);
  line->length += size;
}

void lcomm_trace_put_quoted(lcomm_trace_line *line, const char *text, size_t size) {
  const unsigned char *bytes = (const unsigned char *)text;
  put_bytes(line, "\"", 1);
  for (size_t i = 0; i < size && bytes[i] != '\0';) {
    size_t length = utf8_length(bytes + i);
    if (length == 0 || length > size - i) {
      put_bytes(line, "\\ufffd", 6);
      length = 1;
    } else if (bytes[i] < 0x20 || bytes[i] == '"' || bytes[i] == '\\' || bytes[i] == 0x7f) {
      lcomm_trace_put(line, "\\u%04x", bytes[i]);
    } else {
      put_bytes(line, bytes + i, length);
    }
    i += length;
  }
  put_bytes(line, "\"", 1);
}

void lcomm_trace_put_us(lcomm_trace_line *line, int64_t time_ns) {
  uint64_t size = time_ns < 0 ? -(uint64_t)time_ns : (uint64_t)time_ns;
  lcomm_trace_put(line, "%s%llu.%03llu", time_ns < 0 ? "-" : "", (unsigned long long)(size / 1000),
                  (unsigned long long)(size % 1000));
}

/* ------------------------------------------------------------------ rows */

static unsigned link_of(const lcomm_trace_event *event) {
  return (unsigned)event->link < LCOMM_LINK_COUNT ? (unsigned)event->link : 0;
}

unsigned lcomm_trace_group(const lcomm_trace_event *event) {
  switch (kinds[event->kind].lane) {
  case 'C':
    return LCOMM_TRACE_GROUP_COMPUTE;
  case 'W':
    return LCOMM_TRACE_GROUP_WAIT;
  case 'M':
    return link_of(event) +
           (event->kind == LCOMM_TRACE_SEND ? LCOMM_TRACE_GROUP_SEND : LCOMM_TRACE_GROUP_RECV);
  default:
    return LCOMM_TRACE_GROUP_OPERATIONS;
  }
}

/* Not 0, which is a special thread for some viewers. */
uint32_t lcomm_trace_row(unsigned communicator, unsigned group, unsigned row) {
  enum { ROWS_OF_COMMUNICATOR = 4096 };
  _Static_assert(LCOMM_TRACE_GROUPS * LCOMM_TRACE_ROWS_MAX < ROWS_OF_COMMUNICATOR, "rows fit");
  return (communicator - 1) * ROWS_OF_COMMUNICATOR + group * LCOMM_TRACE_ROWS_MAX + row + 1;
}

static void put_metadata(lcomm_trace_line *line, const char *name, int process_rank, uint32_t row) {
  line->length = 0;
  lcomm_trace_put(line, "{\"name\":\"%s\",\"ph\":\"M\",\"pid\":%d,\"tid\":%u,\"args\":{", name,
                  process_rank, row);
}

static void put_group(char *text, size_t size, unsigned group) {
  static const char *const names[] = {"operations", "compute", "wait"};
  if (group < LCOMM_TRACE_GROUP_SEND) {
    snprintf(text, size, "%s", names[group]);
  } else if (group < LCOMM_TRACE_GROUP_RECV) {
    snprintf(text, size, "send %s", lcomm_link_name((lcomm_link)(group - LCOMM_TRACE_GROUP_SEND)));
  } else {
    snprintf(text, size, "recv %s", lcomm_link_name((lcomm_link)(group - LCOMM_TRACE_GROUP_RECV)));
  }
}

void lcomm_trace_format_row(lcomm_trace_line *line, const lcomm_trace_origin *origin,
                            unsigned group, unsigned row) {
  char name[64], number[32] = "", whose[32] = "";
  put_group(name, sizeof(name), group);
  if (row > 0) {
    snprintf(number, sizeof(number), " %u", row + 1);
  }
  if (origin->communicator > 1) {
    snprintf(whose, sizeof(whose), "comm %u: ", origin->communicator);
  }
  put_metadata(line, "thread_name", origin->process_rank,
               lcomm_trace_row(origin->communicator, group, row));
  lcomm_trace_put(line, "\"name\":\"%s%s%s\"}}", whose, name, number);
}

void lcomm_trace_format_sort(lcomm_trace_line *line, int process_rank, uint32_t row) {
  put_metadata(line, "thread_sort_index", process_rank, row);
  lcomm_trace_put(line, "\"sort_index\":%u}}", row);
}

/* -------------------------------------------------------------- metadata */

void lcomm_trace_format_origin(lcomm_trace_line *line, const lcomm_trace_origin *origin) {
  char name[LCOMM_TRACE_HOST_MAX + 32];
  snprintf(name, sizeof(name), "rank %d (host %.*s)", origin->process_rank,
           LCOMM_TRACE_HOST_MAX - 1, origin->host);
  put_metadata(line, "process_name", origin->process_rank, 0);
  lcomm_trace_put(line, "\"name\":");
  lcomm_trace_put_quoted(line, name, sizeof(name));
  lcomm_trace_put(line,
                  ",\"libcomm_trace\":%d,\"rank\":%d,\"size\":%d,\"host\":", LCOMM_TRACE_VERSION,
                  origin->rank, origin->size);
  lcomm_trace_put_quoted(line, origin->host, sizeof(origin->host));
  lcomm_trace_put(line, ",\"communicator\":%u,\"process\":%ld,\"base_s\":%lld}}",
                  origin->communicator, origin->process, (long long)origin->base_s);
}

/* 64 bits do not fit into a number of JSON. */
void lcomm_trace_format_run(lcomm_trace_line *line, const lcomm_trace_origin *origin, uint64_t run,
                            int node) {
  put_metadata(line, "process_labels", origin->process_rank, 0);
  lcomm_trace_put(line, "\"labels\":\"node %d\",\"node\":%d,\"run\":\"%016llx\"}}", node, node,
                  (unsigned long long)run);
}

void lcomm_trace_format_clock(lcomm_trace_line *line, const lcomm_trace_origin *origin,
                              int64_t offset_ns, int64_t error_ns) {
  put_metadata(line, "process_sort_index", origin->process_rank, 0);
  lcomm_trace_put(line, "\"sort_index\":%d,\"clock_offset_ns\":%lld,\"clock_error_ns\":%lld}}",
                  origin->process_rank, (long long)offset_ns, (long long)error_ns);
}

/* ---------------------------------------------------------------- events */

static const char *category(char lane) {
  return lane == 'C' ? "compute" : lane == 'M' ? "message" : lane == 'W' ? "wait" : "operation";
}

static void put_text(lcomm_trace_line *line, const char *key, const char *text) {
  if (text) {
    lcomm_trace_put(line, ",\"%s\":", key);
    lcomm_trace_put_quoted(line, text, LCOMM_TRACE_TEXT_MAX);
  }
}

/* Numbers of JSON whatever the locale is: figures are finite and not negative, but for a cosine. */
static void put_figure(lcomm_trace_line *line, const char *key, double value) {
  static const double MOST = 1e12;
  double size = value < 0 ? -value : value;
  uint64_t millionths = (uint64_t)(1e6 * (size < MOST ? size : MOST) + 0.5);
  lcomm_trace_put(line, ",\"%s\":%s%llu.%06llu", key, value < 0 ? "-" : "",
                  (unsigned long long)(millionths / 1000000),
                  (unsigned long long)(millionths % 1000000));
}

static void put_guard(lcomm_trace_line *line, const lcomm_trace_guard *guard) {
  put_figure(line, "error", guard->error);
  put_figure(line, "cosine", guard->cosine);
  put_figure(line, "residual", guard->residual);
  lcomm_trace_put(line, ",\"waited\":%llu", (unsigned long long)guard->waited);
}

static void put_factor(lcomm_trace_line *line, const lcomm_trace_factor *factor) {
  lcomm_trace_put(line, ",\"sum\":%u,\"rank\":%u,\"elements\":%llu,\"rows\":%llu,\"columns\":%llu",
                  factor->sum, factor->rank, (unsigned long long)factor->elements,
                  (unsigned long long)factor->rows, (unsigned long long)factor->columns);
}

void lcomm_trace_format_event(lcomm_trace_line *line, const lcomm_trace_event *event,
                              const lcomm_trace_place *place) {
  bool whole = event->kind == LCOMM_TRACE_OPERATION;
  const char *name = whole && event->operation ? event->operation : kinds[event->kind].name;
  line->length = 0;
  lcomm_trace_put(line, "{\"name\":");
  lcomm_trace_put_quoted(line, name, LCOMM_TRACE_TEXT_MAX);
  lcomm_trace_put(line, ",\"cat\":\"%s\",\"ph\":\"X\",\"ts\":", category(kinds[event->kind].lane));
  lcomm_trace_put_us(line, place->begin_ns);
  lcomm_trace_put(line, ",\"dur\":");
  lcomm_trace_put_us(line, place->end_ns > place->begin_ns ? place->end_ns - place->begin_ns : 0);
  lcomm_trace_put(line, ",\"pid\":%d,\"tid\":%u,\"args\":{\"bytes\":%llu", place->process_rank,
                  place->row, (unsigned long long)event->bytes);
  if (event->operation) {
    put_text(line, "operation", event->operation);
    lcomm_trace_put(line, ",\"number\":%u", event->sequence);
    if (event->kind < LCOMM_TRACE_COPY) {
      lcomm_trace_put(line, ",\"step\":%u", event->step);
    }
  }
  if (event->peer >= 0) {
    lcomm_trace_put(line, ",\"peer\":%d,\"message\":%u,\"link\":\"%s\"", event->peer,
                    event->message, lcomm_link_name((lcomm_link)link_of(event)));
  }
  put_text(line, "tensor", event->name);
  put_text(line, "codec", event->codec);
  if (event->waited > 0) {
    lcomm_trace_put(line, ",\"waited\":%llu", (unsigned long long)event->waited);
  }
  if (event->kind == LCOMM_TRACE_GUARD) {
    put_guard(line, &event->guard);
  }
  if (event->factor.sum > 0) {
    put_factor(line, &event->factor);
  }
  lcomm_trace_put(line, "}}");
}
