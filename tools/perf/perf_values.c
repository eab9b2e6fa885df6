/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/perf/perf_values.h"

#include <string.h>

static const char *const op_names[LCOMM_PERF_OPS_MAX] = {
    [LCOMM_SUM] = "sum", [LCOMM_AVG] = "avg", [LCOMM_MIN] = "min", [LCOMM_MAX] = "max"};

const char *lcomm_perf_op_name(lcomm_op op) {
  return op_names[op];
}

bool lcomm_perf_read_size(const char *text, uint64_t *size_bytes) {
  size_t length = strlen(text);
  return length > 0 && text[length - 1] != 'B' && tool_units_read_size(text, size_bytes);
}

bool lcomm_perf_read_whole(const char *text, int least, int *number) {
  uint64_t value = 0;
  bool good = tool_units_read_whole(text, (uint64_t)least, LCOMM_PERF_NUMBER_MAX, &value);
  *number = good ? (int)value : *number;
  return good;
}

/* `found` of a list that was read; none is a mistake, and then what was kept stays. */
static bool keep(const void *list, size_t size, int found, void *kept, int *count) {
  if (found == 0) {
    return false;
  }
  memcpy(kept, list, size * (size_t)found);
  *count = found;
  return true;
}

bool lcomm_perf_read_ops(const char *text, lcomm_perf_options *options) {
  bool is_all = strcmp(text, "all") == 0;
  int found = 0;
  lcomm_op ops[LCOMM_PERF_OPS_MAX];
  for (int op = 0; op < LCOMM_PERF_OPS_MAX; op++) {
    if (is_all || strcmp(text, op_names[op]) == 0) {
      ops[found++] = (lcomm_op)op;
    }
  }
  return keep(ops, sizeof ops[0], found, options->ops, &options->op_count);
}

/* NCCL's names for types whose name here says the size. */
static const char *library_name(const char *text) {
  static const char *const names[][2] = {
      {"float", "float32"}, {"half", "float16"}, {"double", "float64"}, {"int", "int32"}};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    if (strcmp(text, names[i][0]) == 0) {
      return names[i][1];
    }
  }
  return text;
}

bool lcomm_perf_read_dtypes(const char *text, lcomm_perf_options *options) {
  const char *name = library_name(text);
  bool is_all = strcmp(text, "all") == 0;
  int found = 0;
  lcomm_dtype dtypes[LCOMM_PERF_DTYPES_MAX];
  for (int d = 0; d < LCOMM_PERF_DTYPES_MAX && lcomm_dtype_size((lcomm_dtype)d) > 0; d++) {
    if (is_all || strcmp(name, lcomm_dtype_name((lcomm_dtype)d)) == 0) {
      dtypes[found++] = (lcomm_dtype)d;
    }
  }
  return keep(dtypes, sizeof dtypes[0], found, options->dtypes, &options->dtype_count);
}

bool lcomm_perf_read_time(const char *text, double *seconds) {
  char number[32] = "";
  double ms = 0.0;
  size_t length = strlen(text);
  if (length <= 2 || length >= sizeof number || strcmp(text + length - 2, "ms") != 0) {
    return false;
  }
  memcpy(number, text, length - 2);
  if (!tool_units_read_number(number, 0.0, &ms) || ms > 1e6) {
    return false;
  }
  *seconds = ms * 1e-3;
  return true;
}

bool lcomm_perf_read_overlap(const char *text, lcomm_perf_computation *computation) {
  double share = 0.0, seconds = 0.0;
  if (!lcomm_perf_read_time(text, &seconds) &&
      (!tool_units_read_number(text, 0.0, &share) || share > 1e6)) {
    return false;
  }
  *computation = (lcomm_perf_computation){true, share, seconds};
  return true;
}

bool lcomm_perf_read_root(const char *text, int *root) {
  if (strcmp(text, "all") == 0) {
    *root = LCOMM_PERF_ROOT_ALL;
    return true;
  }
  return lcomm_perf_read_whole(text, 0, root);
}
