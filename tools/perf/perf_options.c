/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/perf/perf_options.h"

#include <ctype.h>
#include <string.h>

#include "tools/perf/perf_values.h"

static lcomm_perf_options *options_of(const tool_command_line *line) {
  return line->options;
}

/* --------------------------------------------------------- sizes and samples */

static bool read_min(tool_command_line *line, const char *value) {
  return lcomm_perf_read_size(value, &options_of(line)->sizes.min_bytes);
}

static bool read_max(tool_command_line *line, const char *value) {
  return lcomm_perf_read_size(value, &options_of(line)->sizes.max_bytes);
}

static bool read_step(tool_command_line *line, const char *value) {
  uint64_t *step_bytes = &options_of(line)->sizes.step_bytes;
  return lcomm_perf_read_size(value, step_bytes) && *step_bytes > 0;
}

static bool read_factor(tool_command_line *line, const char *value) {
  return tool_units_read_number(value, 1.0, &options_of(line)->sizes.factor);
}

static bool read_late(tool_command_line *line, const char *value) {
  return lcomm_perf_read_time(value, &options_of(line)->sampling.late_s);
}

static bool read_overlap(tool_command_line *line, const char *value) {
  return lcomm_perf_read_overlap(value, &options_of(line)->overlap);
}

/* ---------------------------------------------------------------- what is done */

static bool read_ops(tool_command_line *line, const char *value) {
  return lcomm_perf_read_ops(value, options_of(line));
}

static bool read_dtypes(tool_command_line *line, const char *value) {
  return lcomm_perf_read_dtypes(value, options_of(line));
}

static bool read_root(tool_command_line *line, const char *value) {
  return lcomm_perf_read_root(value, &options_of(line)->root);
}

static bool add_policy(tool_command_line *line, const char *value) {
  lcomm_perf_options *o = options_of(line);
  if (o->policy_count == LCOMM_PERF_POLICIES_MAX) {
    return tool_refuse(line, "more than %d policies are too many, and '%s' is one more",
                       LCOMM_PERF_POLICIES_MAX, value);
  }
  o->policies[o->policy_count++] = value;
  return true;
}

static bool read_tensor_count(tool_command_line *line, const char *value) {
  options_of(line)->tensors = true;
  return lcomm_perf_read_whole(value, 1, &options_of(line)->tensor_count);
}

/* -c alone, or as nccl-tests has it, with a number of its own. */
static bool read_check(tool_command_line *line, const char *value) {
  int times = 1;
  const char *next = tool_next_word(line);
  if (!value && next && isdigit((unsigned char)next[0])) {
    value = next;
    tool_take_word(line);
  }
  if (value && !lcomm_perf_read_whole(value, 0, &times)) {
    return false;
  }
  options_of(line)->check = times > 0;
  return true;
}

/* ------------------------------------------------------------- by what means */

/* One of two words. */
static bool read_either(const char *text, const char *first, const char *second, bool *is_second) {
  *is_second = strcmp(text, second) == 0;
  return *is_second || strcmp(text, first) == 0;
}

static bool read_against(tool_command_line *line, const char *value) {
  options_of(line)->against_mpi = true;
  return strcmp(value, "mpi") == 0;
}

static bool read_boot(tool_command_line *line, const char *value) {
  bool env = false;
  bool good = read_either(value, "mpi", "env", &env);
  options_of(line)->boot = env ? LCOMM_PERF_BOOT_ENV : LCOMM_PERF_BOOT_MPI;
  return good;
}

static bool read_progress(tool_command_line *line, const char *value) {
  bool thread = false;
  bool good = read_either(value, "calls", "thread", &thread);
  options_of(line)->progress = thread ? LCOMM_PROGRESS_THREAD : LCOMM_PROGRESS_CALLS;
  return good;
}

static bool read_memory(tool_command_line *line, const char *value) {
  return read_either(value, "malloc", "libcomm", &options_of(line)->libcomm_memory);
}

static bool read_through(tool_command_line *line, const char *value) {
  return read_either(value, "libcomm", "mpi", &options_of(line)->through_mpi);
}

/* A name, not a path. */
static bool read_interface(tool_command_line *line, const char *value) {
  options_of(line)->interface_name = value;
  return value[0] != '\0' && value[0] != '.' && !strchr(value, '/');
}

#define MEMBER(member) offsetof(lcomm_perf_options, member)
static const tool_option known[] = {
    TOOL_READ('b', "minbytes", read_min),
    TOOL_READ('e', "maxbytes", read_max),
    TOOL_READ('i', "stepbytes", read_step),
    TOOL_READ('f', "stepfactor", read_factor),
    TOOL_INT('n', "iters", MEMBER(sampling.iterations), 1, LCOMM_PERF_NUMBER_MAX),
    TOOL_INT('w', "warmup_iters", MEMBER(sampling.warmups), 0, LCOMM_PERF_NUMBER_MAX),
    TOOL_READ('o', "op", read_ops),
    TOOL_READ('d', "datatype", read_dtypes),
    TOOL_READ('r', "root", read_root),
    TOOL_READ('p', "policy", add_policy),
    TOOL_MAY_READ('c', "check", read_check),
    TOOL_READ(0, "against", read_against),
    TOOL_INT(0, "batch", MEMBER(sampling.batch), 1, LCOMM_PERF_NUMBER_MAX),
    TOOL_READ(0, "boot", read_boot),
    TOOL_NAME(0, "csv", MEMBER(csv_path)),
    TOOL_NAME(0, "data", MEMBER(data_path)),
    TOOL_FLAG(0, "in-place", MEMBER(in_place), true),
    TOOL_READ(0, "interface", read_interface),
    TOOL_NAME(0, "json", MEMBER(json_path)),
    TOOL_READ(0, "late", read_late),
    TOOL_READ(0, "memory", read_memory),
    TOOL_FLAG(0, "no-in-place", MEMBER(in_place), false),
    TOOL_READ(0, "overlap", read_overlap),
    TOOL_FLAG(0, "percentiles", MEMBER(percentiles), true),
    TOOL_READ(0, "progress", read_progress),
    TOOL_FLAG(0, "tensors", MEMBER(tensors), true),
    TOOL_READ(0, "tensors-count", read_tensor_count),
    TOOL_READ(0, "through", read_through),
    TOOL_NAME(0, "transport", MEMBER(transport)),
    {0}};

static tool_parse finish(tool_command_line *line) {
  lcomm_perf_options *o = options_of(line);
  const char *conflict = lcomm_perf_options_conflict(o);
  if (conflict) {
    tool_refuse(line, "%s", conflict);
    return TOOL_USAGE;
  }
  if (o->policy_count == 0 && !o->through_mpi) {
    o->policies[o->policy_count++] = "";
  }
  if (o->sizes.max_bytes < o->sizes.min_bytes) {
    o->sizes.max_bytes = o->sizes.min_bytes;
  }
  if (o->sizes.step_bytes == 0 && o->sizes.factor <= 0.0) {
    o->sizes.factor = 2.0;
  }
  if (!o->collective->reduces) {
    o->op_count = 1; /* one round of measurements, whatever was asked for */
  }
  return TOOL_RUN;
}

tool_parse lcomm_perf_options_parse(int argc, char **argv, const lcomm_perf_collective *collective,
                                    lcomm_perf_options *o, char *error) {
  tool_command_line line = {.argc = argc, .argv = argv, .options = o, .error = error};
  *o = (lcomm_perf_options){.collective = collective,
                            .sizes.min_bytes = UINT64_C(1) << 20,
                            .sampling.iterations = 5,
                            .sampling.warmups = 1,
                            .ops = {LCOMM_SUM},
                            .op_count = 1,
                            .dtypes = {LCOMM_FLOAT32},
                            .dtype_count = 1,
                            .in_place = collective->is_in_place,
                            .tensor_count = 1};
  tool_parse parse = tool_options_parse(&line, known);
  if (parse != TOOL_RUN) {
    return parse;
  }
  return tool_refuse_operands(&line) ? finish(&line) : TOOL_USAGE;
}

uint64_t lcomm_perf_next_size(const lcomm_perf_options *options, uint64_t size_bytes) {
  if (options->sizes.step_bytes > 0) {
    return size_bytes + options->sizes.step_bytes;
  }
  double next = (double)size_bytes * options->sizes.factor;
  if (next >= 0x1p63) {
    return UINT64_MAX;
  }
  return (uint64_t)next > size_bytes ? (uint64_t)next : size_bytes + 1;
}
