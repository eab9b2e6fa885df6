/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The text of the report's cells. */

#include "libcomm/interpose/interpose_report.h"

#include <stdio.h>

enum { NAME_SHOWN = 24 };

static const char *const titles[LCOMM_INTERPOSE_COLUMNS] = {
    [LCOMM_INTERPOSE_COLUMN_CALL] = "call",
    [LCOMM_INTERPOSE_COLUMN_TYPE] = "type",
    [LCOMM_INTERPOSE_COLUMN_OP] = "op",
    [LCOMM_INTERPOSE_COLUMN_COMM] = "communicator",
    [LCOMM_INTERPOSE_COLUMN_RANKS] = "ranks",
    [LCOMM_INTERPOSE_COLUMN_MEMBERS] = "world ranks",
    [LCOMM_INTERPOSE_COLUMN_ELEMENTS] = "elements",
    [LCOMM_INTERPOSE_COLUMN_CALLS] = "calls",
    [LCOMM_INTERPOSE_COLUMN_DATA] = "data",
    [LCOMM_INTERPOSE_COLUMN_SENT] = "sent",
    [LCOMM_INTERPOSE_COLUMN_EXACT] = "exact",
    [LCOMM_INTERPOSE_COLUMN_RATIO] = "ratio",
};

const char *lcomm_interpose_column_title(lcomm_interpose_column column) {
  return titles[column];
}

bool lcomm_interpose_column_is_text(lcomm_interpose_column column) {
  return column <= LCOMM_INTERPOSE_COLUMN_COMM;
}

const char *lcomm_interpose_bytes_text(uint64_t bytes, char text[LCOMM_INTERPOSE_CELL_MAX]) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = (double)bytes;
  unsigned unit = 0;
  while (value >= 1024 && unit < sizeof(units) / sizeof(units[0]) - 1) {
    value /= 1024;
    unit++;
  }
  snprintf(text, LCOMM_INTERPOSE_CELL_MAX, "%.*f %s", unit == 0 || value >= 99.95 ? 0 : 1, value,
           units[unit]);
  return text;
}

/* The program's names, without control characters and not longer than this. */
static void name_text(const char *name, char text[LCOMM_INTERPOSE_CELL_MAX]) {
  snprintf(text, LCOMM_INTERPOSE_CELL_MAX, "%.*s", NAME_SHOWN, name[0] ? name : "-");
  for (char *c = text; *c; c++) {
    *c = (unsigned char)*c < ' ' || *c == 0x7f ? '?' : *c;
  }
}

static void ranks_text(const lcomm_interpose_class *class, char text[LCOMM_INTERPOSE_CELL_MAX]) {
  if (class->ranks == 0) {
    snprintf(text, LCOMM_INTERPOSE_CELL_MAX, "various");
  } else if (class->nodes == 0) {
    snprintf(text, LCOMM_INTERPOSE_CELL_MAX, "%d", class->ranks);
  } else {
    snprintf(text, LCOMM_INTERPOSE_CELL_MAX, "%d on %d", class->ranks, class->nodes);
  }
}

static void elements_text(const lcomm_interpose_class *class, char text[LCOMM_INTERPOSE_CELL_MAX]) {
  unsigned long long least = class->count_min, most = class->count_max;
  if (least == most) {
    snprintf(text, LCOMM_INTERPOSE_CELL_MAX, "%llu", least);
  } else {
    snprintf(text, LCOMM_INTERPOSE_CELL_MAX, "%llu..%llu", least, most);
  }
}

static void ratio_text(const lcomm_interpose_class *class, char text[LCOMM_INTERPOSE_CELL_MAX]) {
  if (class->sent_bytes == 0) {
    snprintf(text, LCOMM_INTERPOSE_CELL_MAX, "-");
  } else {
    snprintf(text, LCOMM_INTERPOSE_CELL_MAX, "%.2f",
             (double)class->exact_bytes / (double)class->sent_bytes);
  }
}

static void sent_text(const lcomm_interpose_class *class, uint64_t bytes,
                      char text[LCOMM_INTERPOSE_CELL_MAX]) {
  if (class->no_bytes) {
    snprintf(text, LCOMM_INTERPOSE_CELL_MAX, "-");
  } else {
    lcomm_interpose_bytes_text(bytes, text);
  }
}

const char *lcomm_interpose_cell(const lcomm_interpose_class *class, lcomm_interpose_column column,
                                 char text[LCOMM_INTERPOSE_CELL_MAX]) {
  bool various = !class->function;
  switch (column) {
  case LCOMM_INTERPOSE_COLUMN_CALL:
    name_text(various ? "others" : class->function, text);
    break;
  case LCOMM_INTERPOSE_COLUMN_TYPE:
    name_text(class->type, text);
    break;
  case LCOMM_INTERPOSE_COLUMN_OP:
    name_text(various ? "" : class->op, text);
    break;
  case LCOMM_INTERPOSE_COLUMN_COMM:
    name_text(class->comm, text);
    break;
  case LCOMM_INTERPOSE_COLUMN_RANKS:
    ranks_text(class, text);
    break;
  case LCOMM_INTERPOSE_COLUMN_MEMBERS:
    name_text(class->members, text);
    break;
  case LCOMM_INTERPOSE_COLUMN_ELEMENTS:
    elements_text(class, text);
    break;
  case LCOMM_INTERPOSE_COLUMN_CALLS:
    snprintf(text, LCOMM_INTERPOSE_CELL_MAX, "%llu", (unsigned long long)class->calls);
    break;
  case LCOMM_INTERPOSE_COLUMN_DATA:
    if (class->size_bytes == 0 && class->count_max > 0) {
      snprintf(text, LCOMM_INTERPOSE_CELL_MAX, "-"); /* the size of the type is not known */
      break;
    }
    lcomm_interpose_bytes_text(class->size_bytes, text);
    break;
  case LCOMM_INTERPOSE_COLUMN_SENT:
    sent_text(class, class->sent_bytes, text);
    break;
  case LCOMM_INTERPOSE_COLUMN_EXACT:
    sent_text(class, class->exact_bytes, text);
    break;
  default:
    ratio_text(class, text);
  }
  return text;
}
