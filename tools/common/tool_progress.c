/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/common/tool_progress.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tools/common/tool_timing.h"

enum { BAR = 24, LINE_MAX_BYTES = 512, COLUMNS = 80 };

static size_t terminal_columns(void) {
  struct winsize window = {0};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col == 0) {
    return COLUMNS;
  }
  return window.ws_col;
}

tool_progress tool_progress_begin(uint64_t total) {
  return (tool_progress){
      .shown = isatty(STDERR_FILENO) == 1, .total = total, .begin = tool_now_s()};
}

void tool_progress_line(const tool_progress *progress, double seconds, const char *what,
                        size_t columns, char *line, size_t size) {
  char bar[BAR + 1];
  uint64_t done = progress->done < progress->total ? progress->done : progress->total;
  double share = progress->total > 0 ? (double)done / (double)progress->total : 1.0;
  size_t full = (size_t)(share * BAR);
  for (size_t i = 0; i < BAR; i++) {
    bar[i] = i < full ? '#' : '.';
  }
  bar[BAR] = '\0';
  snprintf(line, size, "[%s] %3.0f %%  %2.0f:%02u  %s", bar, 100.0 * share,
           (double)(uint64_t)(seconds / 60.0), (unsigned)((uint64_t)seconds % 60), what);
  if (columns > 0 && strlen(line) > columns - 1) {
    line[columns - 1] = '\0';
  }
  for (char *c = line; *c != '\0'; c++) {
    if ((unsigned char)*c < ' ' || *c == 0x7f) {
      *c = '?';
    }
  }
}

void tool_progress_next(const tool_progress *progress, const char *what) {
  char line[LINE_MAX_BYTES];
  if (!progress->shown) {
    return;
  }
  tool_progress_line(progress, tool_now_s() - progress->begin, what, terminal_columns(), line,
                     sizeof line);
  fprintf(stderr, "\r%s\033[K", line);
  fflush(stderr);
}

void tool_progress_add(tool_progress *progress, uint64_t units) {
  progress->done += units;
}

void tool_progress_end(const tool_progress *progress) {
  if (progress->shown) {
    fputs("\r\033[K", stderr);
  }
}
