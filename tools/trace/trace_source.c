/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tools/trace/trace_source.h"

#include <errno.h>
#include <string.h>

bool lcomm_trace_source_open(lcomm_trace_source *source, const char *path, char *why) {
  memset(source, 0, sizeof *source);
  source->path = path;
  source->file = fopen(path, "rb");
  if (!source->file) {
    snprintf(why, LCOMM_TRACE_WHY_MAX, "%.300s cannot be opened: %s", path, strerror(errno));
  }
  return source->file != NULL;
}

void lcomm_trace_source_close(lcomm_trace_source *source) {
  if (source->file) {
    fclose(source->file);
    source->file = NULL;
  }
}

/* ----------------------------------------------------------------- lines */

typedef enum line_end { LINE_WHOLE, LINE_LAST, LINE_TOO_LONG, LINE_NONE } line_end;

/* The next line without its end. LAST: the file ends in the middle of it. */
static line_end read_line(lcomm_trace_source *source, size_t *length) {
  *length = 0;
  for (int c = getc_unlocked(source->file); c != EOF; c = getc_unlocked(source->file)) {
    if (c == '\n') {
      source->lines++;
      return LINE_WHOLE;
    }
    if (*length == sizeof(source->line)) {
      source->lines++;
      return LINE_TOO_LONG;
    }
    source->line[(*length)++] = (char)c;
  }
  source->lines += *length > 0;
  return *length > 0 ? LINE_LAST : LINE_NONE;
}

static lcomm_trace_next refuse(const lcomm_trace_source *source, const char *what, char *why) {
  snprintf(why, LCOMM_TRACE_WHY_MAX,
           "%.300s, line %llu: %s; only files that LCOMM_TRACE made can be read", source->path,
           (unsigned long long)source->lines, what);
  return LCOMM_NEXT_BAD;
}

/* Nothing comes after the array, and no line is missing. */
static lcomm_trace_next finish(lcomm_trace_source *source, char *why) {
  size_t length = 0;
  if (source->closed && read_line(source, &length) != LINE_NONE) {
    return refuse(source, "something follows the end of the trace", why);
  }
  if (ferror(source->file)) {
    return refuse(source, strerror(errno), why);
  }
  return source->lines < (source->closed ? 3 : 2)
             ? refuse(source, "the file ends before it begins", why)
             : LCOMM_NEXT_END;
}

static bool is_line(const lcomm_trace_source *source, size_t length, const char *text) {
  return length == strlen(text) && memcmp(source->line, text, length) == 0;
}

/* ----------------------------------------------------------------- items */

lcomm_trace_next lcomm_trace_source_next(lcomm_trace_source *source, lcomm_trace_item *item,
                                         char *why) {
  const char *what = NULL;
  size_t length = 0;
  line_end end = read_line(source, &length);
  if (source->lines == 1 && end == LINE_WHOLE) {
    if (!is_line(source, length, "[")) {
      return refuse(source, "it does not begin with [ alone", why);
    }
    end = read_line(source, &length);
  }
  if (end == LINE_NONE) {
    return finish(source, why);
  }
  if (end == LINE_TOO_LONG) {
    return refuse(source, "it is too long", why);
  }
  source->closed = is_line(source, length, "]");
  if (source->closed) {
    return finish(source, why);
  }
  length -= length > 0 && source->line[length - 1] == ',';
  if (!lcomm_trace_item_read(source->line, length, item, &what)) {
    source->cut = end == LINE_LAST && source->lines > 2;
    return source->cut ? finish(source, why) : refuse(source, what, why);
  }
  if ((item->kind == LCOMM_ITEM_ORIGIN) != (source->lines == 2)) {
    return refuse(source, "it is not its second line alone that says whose trace this is", why);
  }
  return LCOMM_NEXT_ITEM;
}
