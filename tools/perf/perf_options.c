/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/perf/perf_options.h"

#include <ctype.h>
#include <getopt.h>
#include <stdarg.h>
#include <string.h>

#include "tools/perf/perf_values.h"

enum {
  OPTION_AGAINST = 256,
  OPTION_BATCH,
  OPTION_BOOT,
  OPTION_DATA,
  OPTION_IN_PLACE,
  OPTION_INTERFACE,
  OPTION_JSON,
  OPTION_LATE,
  OPTION_MEMORY,
  OPTION_NO_IN_PLACE,
  OPTION_OVERLAP,
  OPTION_PERCENTILES,
  OPTION_PROGRESS,
  OPTION_TENSOR_COUNT,
  OPTION_TENSORS,
  OPTION_THROUGH,
  OPTION_TRANSPORT,
  OPTION_VERSION
};

static const char letters[] = ":b:e:i:f:n:w:o:d:r:p:c::h";
static const struct option names[] = {
    {"minbytes", required_argument, NULL, 'b'},
    {"maxbytes", required_argument, NULL, 'e'},
    {"stepbytes", required_argument, NULL, 'i'},
    {"stepfactor", required_argument, NULL, 'f'},
    {"iters", required_argument, NULL, 'n'},
    {"warmup_iters", required_argument, NULL, 'w'},
    {"op", required_argument, NULL, 'o'},
    {"datatype", required_argument, NULL, 'd'},
    {"root", required_argument, NULL, 'r'},
    {"policy", required_argument, NULL, 'p'},
    {"check", optional_argument, NULL, 'c'},
    {"version", no_argument, NULL, OPTION_VERSION},
    {"help", no_argument, NULL, 'h'},
    {"against", required_argument, NULL, OPTION_AGAINST},
    {"batch", required_argument, NULL, OPTION_BATCH},
    {"boot", required_argument, NULL, OPTION_BOOT},
    {"data", required_argument, NULL, OPTION_DATA},
    {"in-place", no_argument, NULL, OPTION_IN_PLACE},
    {"interface", required_argument, NULL, OPTION_INTERFACE},
    {"json", required_argument, NULL, OPTION_JSON},
    {"late", required_argument, NULL, OPTION_LATE},
    {"memory", required_argument, NULL, OPTION_MEMORY},
    {"no-in-place", no_argument, NULL, OPTION_NO_IN_PLACE},
    {"overlap", required_argument, NULL, OPTION_OVERLAP},
    {"percentiles", no_argument, NULL, OPTION_PERCENTILES},
    {"progress", required_argument, NULL, OPTION_PROGRESS},
    {"tensors", no_argument, NULL, OPTION_TENSORS},
    {"tensors-count", required_argument, NULL, OPTION_TENSOR_COUNT},
    {"through", required_argument, NULL, OPTION_THROUGH},
    {"transport", required_argument, NULL, OPTION_TRANSPORT},
    {NULL, 0, NULL, 0}};

static int set_text(const char **text, const char *value) {
  *text = value;
  return value[0] != '\0';
}

/* One of two words. */
static int read_either(const char *text, const char *first, const char *second, int *is_second) {
  *is_second = strcmp(text, second) == 0;
  return *is_second || strcmp(text, first) == 0;
}

static int add_policy(const char *text, lcomm_perf_options *o) {
  if (o->policy_count == LCOMM_PERF_POLICIES_MAX) {
    return 0;
  }
  o->policies[o->policy_count++] = text;
  return 1;
}

/* -c alone, or as nccl-tests has it, with a number of its own. */
static int read_check(int argc, char **argv, const char *value, lcomm_perf_options *o) {
  int times = 1;
  if (!value && optind < argc && isdigit((unsigned char)argv[optind][0])) {
    value = argv[optind++];
  }
  if (value && !lcomm_perf_read_whole(value, 0, &times)) {
    return 0;
  }
  o->check = times > 0;
  return 1;
}

/* Apply an option with a letter; 0 if its value is unusable. */
static int apply_letter(int option, const char *value, lcomm_perf_options *o) {
  switch (option) {
  case 'b':
    return lcomm_perf_read_size(value, &o->size_min_bytes);
  case 'e':
    return lcomm_perf_read_size(value, &o->size_max_bytes);
  case 'i':
    return lcomm_perf_read_size(value, &o->step_bytes) && o->step_bytes > 0;
  case 'f':
    return lcomm_perf_read_number(value, 1.0, &o->factor);
  case 'n':
    return lcomm_perf_read_whole(value, 1, &o->iterations);
  case 'w':
    return lcomm_perf_read_whole(value, 0, &o->warmups);
  case 'o':
    return lcomm_perf_read_ops(value, o);
  case 'd':
    return lcomm_perf_read_dtypes(value, o);
  case 'r':
    return lcomm_perf_read_root(value, &o->root);
  default: /* 'p' */
    return add_policy(value, o);
  }
}

/* Apply an option that is a word without a value. */
static void apply_flag(int option, lcomm_perf_options *o) {
  switch (option) {
  case OPTION_IN_PLACE:
    o->in_place = 1;
    break;
  case OPTION_NO_IN_PLACE:
    o->in_place = 0;
    break;
  case OPTION_PERCENTILES:
    o->percentiles = 1;
    break;
  default: /* OPTION_TENSORS */
    o->tensors = 1;
    break;
  }
}

/* ... that is a word with one; 0 if it is unusable. */
static int apply_word(int option, const char *value, lcomm_perf_options *o) {
  int is_second = 0;
  switch (option) {
  case OPTION_AGAINST:
    o->against_mpi = 1;
    return strcmp(value, "mpi") == 0;
  case OPTION_BATCH:
    return lcomm_perf_read_whole(value, 1, &o->batch);
  case OPTION_BOOT:
    if (!read_either(value, "mpi", "env", &is_second)) {
      return 0;
    }
    o->boot = is_second ? LCOMM_PERF_BOOT_ENV : LCOMM_PERF_BOOT_MPI;
    return 1;
  case OPTION_DATA:
    return set_text(&o->data_path, value);
  case OPTION_INTERFACE: /* a name, not a path */
    return set_text(&o->interface_name, value) && !strchr(value, '/') && value[0] != '.';
  case OPTION_JSON:
    return set_text(&o->json_path, value);
  case OPTION_LATE:
    return lcomm_perf_read_time(value, &o->late_s);
  case OPTION_MEMORY:
    return read_either(value, "malloc", "libcomm", &o->libcomm_memory);
  case OPTION_OVERLAP:
    return lcomm_perf_read_overlap(value, o);
  case OPTION_PROGRESS:
    if (!read_either(value, "calls", "thread", &is_second)) {
      return 0;
    }
    o->progress = is_second ? LCOMM_PROGRESS_THREAD : LCOMM_PROGRESS_CALLS;
    return 1;
  case OPTION_TENSOR_COUNT:
    o->tensors = 1;
    return lcomm_perf_read_whole(value, 1, &o->tensor_count);
  case OPTION_THROUGH:
    return read_either(value, "libcomm", "mpi", &o->through_mpi);
  default: /* OPTION_TRANSPORT */
    return set_text(&o->transport, value);
  }
}

/* Apply any option; 0 if its value is unusable. */
static int apply(int option, int argc, char **argv, lcomm_perf_options *o) {
  if (option == 'c') {
    return read_check(argc, argv, optarg, o);
  }
  if (option < OPTION_AGAINST) {
    return apply_letter(option, optarg, o);
  }
  if (!optarg) {
    apply_flag(option, o);
    return 1;
  }
  return apply_word(option, optarg, o);
}

__attribute__((format(printf, 3, 4))) static lcomm_perf_parse refuse(char *error, size_t error_size,
                                                                     const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(error, error_size, format, arguments);
  va_end(arguments);
  return LCOMM_PERF_USAGE;
}

/* An unknown letter may stand among others in one word. */
static lcomm_perf_parse refuse_form(int trouble, char **argv, char *error, size_t error_size) {
  if (trouble == ':') {
    return refuse(error, error_size, "%s wants a value", argv[optind - 1]);
  }
  if (optopt > 0 && optopt < OPTION_AGAINST) {
    return refuse(error, error_size, "-%c is no option, or of the wrong form", optopt);
  }
  return refuse(error, error_size, "%s is no option, or of the wrong form", argv[optind - 1]);
}

static lcomm_perf_parse finish(lcomm_perf_options *o, char *error, size_t error_size) {
  const char *conflict = lcomm_perf_options_conflict(o);
  if (conflict) {
    return refuse(error, error_size, "%s", conflict);
  }
  if (o->policy_count == 0 && !o->through_mpi) {
    add_policy("", o);
  }
  if (o->size_max_bytes < o->size_min_bytes) {
    o->size_max_bytes = o->size_min_bytes;
  }
  if (o->step_bytes == 0 && o->factor <= 0.0) {
    o->factor = 2.0;
  }
  if (!o->collective->reduces) {
    o->op_count = 1; /* one round of measurements, whatever was asked for */
  }
  return LCOMM_PERF_RUN;
}

lcomm_perf_parse lcomm_perf_options_parse(int argc, char **argv,
                                          const lcomm_perf_collective *collective,
                                          lcomm_perf_options *o, char *error, size_t error_size) {
  *o = (lcomm_perf_options){.collective = collective,
                            .size_min_bytes = UINT64_C(1) << 20,
                            .iterations = 5,
                            .warmups = 1,
                            .ops = {LCOMM_SUM},
                            .op_count = 1,
                            .dtypes = {LCOMM_FLOAT32},
                            .dtype_count = 1,
                            .in_place = collective->is_in_place,
                            .tensor_count = 1};
  opterr = 0; /* one sentence from rank 0 instead of one from each rank */
  optind = 0; /* from the beginning */
  for (int c; (c = getopt_long(argc, argv, letters, names, NULL)) != -1;) {
    if (c == 'h') {
      return LCOMM_PERF_HELP;
    }
    if (c == OPTION_VERSION) {
      return LCOMM_PERF_VERSION;
    }
    if (c == '?' || c == ':') {
      return refuse_form(c, argv, error, error_size);
    }
    if (!apply(c, argc, argv, o)) {
      const char *value = optarg ? optarg : argv[optind - 1];
      return refuse(error, error_size, "'%s' is no usable value for %s", value,
                    argv[optind - (value == argv[optind - 1] ? 2 : 1)]);
    }
  }
  if (optind < argc) {
    return refuse(error, error_size, "'%s' is no option", argv[optind]);
  }
  return finish(o, error, error_size);
}

uint64_t lcomm_perf_next_size(const lcomm_perf_options *options, uint64_t size_bytes) {
  if (options->step_bytes > 0) {
    return size_bytes + options->step_bytes;
  }
  double next = (double)size_bytes * options->factor;
  if (next >= 0x1p63) {
    return UINT64_MAX;
  }
  return (uint64_t)next > size_bytes ? (uint64_t)next : size_bytes + 1;
}
