/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/observe/capture.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codecs/little_endian.h"
#include "libcomm/base/env.h"
#include "libcomm/base/error.h"
#include "libcomm/base/file.h"
#include "libcomm/plan/number.h"

enum {
  VERSION = 2,
  ALIGNMENT = 64,
  NAME_MAX_SIZE = 128,
  TENSORS_MAX = 1 << 16,
  STEPS_MAX = 256,
  SHAPES_MAX = 64,
  CALLS_FIRST = 900 /* bucket number of the first shape of plain calls */
};

typedef struct call_shape {
  lcomm_collective collective;
  lcomm_dtype dtype;
  uint64_t count, calls;
} call_shape;

typedef struct step_list {
  uint64_t at[STEPS_MAX];
  size_t count;
} step_list;

struct lcomm_capture {
  char *folder;
  step_list steps;
  call_shape shapes[SHAPES_MAX];
  unsigned shape_count;
  int rank, ranks, nodes;
  char who[96];
  bool speaks;
  bool stopped;
};

/* -------------------------------------------------------------- settings */

static bool parse_steps(const char *text, step_list *steps) {
  for (;;) {
    uint64_t step = 0;
    bool overflow = false;
    size_t digits = lcomm_read_integer(text, strlen(text), &step, &overflow);
    if (digits == 0 || overflow || steps->count == STEPS_MAX) {
      return false;
    }
    steps->at[steps->count++] = step;
    text += digits;
    if (*text == '\0') {
      return true;
    }
    if (*text++ != ',') {
      return false;
    }
  }
}

lcomm_status lcomm_capture_create(lcomm_capture **capture, lcomm_why *why) {
  const char *folder = lcomm_env_get(LCOMM_ENV_CAPTURE);
  const char *text = lcomm_env_get(LCOMM_ENV_CAPTURE_STEPS);
  step_list steps = {.count = 0};
  *capture = NULL;
  text = text ? text : lcomm_env_table[LCOMM_ENV_CAPTURE_STEPS].standard;
  if (!parse_steps(text, &steps)) { /* said without LCOMM_CAPTURE, too */
    return lcomm_why_set(
        why, LCOMM_ERR_ARGUMENT,
        "LCOMM_CAPTURE_STEPS=%.40s is not a list of at most %d step numbers; for example "
        "0,10,100",
        text, (int)STEPS_MAX);
  }
  if (!folder) {
    return LCOMM_OK;
  }
  lcomm_capture *made = calloc(1, sizeof *made);
  if (!made || !(made->folder = strdup(folder))) {
    free(made);
    return lcomm_why_set(why, LCOMM_ERR_MEMORY, "out of memory for LCOMM_CAPTURE");
  }
  made->steps = steps;
  *capture = made;
  return LCOMM_OK;
}

void lcomm_capture_describe(lcomm_capture *capture, int rank, int ranks, int nodes, const char *who,
                            bool speaks) {
  capture->rank = rank;
  capture->ranks = ranks;
  capture->nodes = nodes;
  snprintf(capture->who, sizeof(capture->who), "%s", who);
  capture->speaks = speaks;
}

void lcomm_capture_free(lcomm_capture *capture) {
  if (!capture) {
    return;
  }
  free(capture->folder);
  free(capture);
}

static bool wants(const lcomm_capture *capture, uint64_t step) {
  for (size_t i = 0; !capture->stopped && i < capture->steps.count; i++) {
    if (capture->steps.at[i] == step) {
      return true;
    }
  }
  return false;
}

/* --------------------------------------------------------------- writing */

/* What a file says of itself. */
typedef struct caption {
  uint64_t step;
  unsigned bucket;
  uint32_t tensors;
} caption;

typedef struct writer {
  lcomm_file file;
  uint64_t size; /* so far */
} writer;

static void write_bytes(writer *w, const void *bytes, uint64_t size) {
  lcomm_file_write(&w->file, bytes, (size_t)size);
  w->size += size;
}

static void write_number(writer *w, uint64_t value, int size) {
  uint8_t bytes[8];
  lcomm_le_put(bytes, value, size);
  write_bytes(w, bytes, (uint64_t)size);
}

static void write_tensor(writer *w, const lcomm_captured_tensor *tensor) {
  write_number(w, strlen(tensor->name), 4);
  write_bytes(w, tensor->name, strlen(tensor->name));
  write_number(w, tensor->count, 8);
  write_number(w, tensor->rows, 8);
  write_number(w, tensor->columns, 8);
}

static void write_padding(writer *w) {
  static const uint8_t zeros[ALIGNMENT];
  write_bytes(w, zeros, (ALIGNMENT - w->size % ALIGNMENT) % ALIGNMENT);
}

static void stop(lcomm_capture *capture, const char *why) {
  char sentence[LCOMM_WHY_MAX + 192];
  static atomic_flag said = ATOMIC_FLAG_INIT;
  capture->stopped = true;
  snprintf(sentence, sizeof(sentence), "%s: LCOMM_CAPTURE stops here: %s", capture->who, why);
  if (capture->speaks && !atomic_flag_test_and_set(&said)) {
    lcomm_log_warning(sentence);
  } else {
    lcomm_log_error(sentence);
  }
}

/* The header; false when capturing has stopped. */
static bool begin(lcomm_capture *capture, const caption *it, writer *w) {
  char name[96];
  lcomm_why why;
  snprintf(name, sizeof(name), "step%06llu-bucket%03u-rank%04d.lcg", (unsigned long long)it->step,
           it->bucket, capture->rank);
  lcomm_status status = lcomm_folder_make(capture->folder, &why);
  if (status == LCOMM_OK) {
    status = lcomm_file_begin(&w->file, capture->folder, name, &why);
  }
  if (status != LCOMM_OK) {
    stop(capture, why.text);
    return false;
  }
  w->size = 0;
  write_bytes(w, "LCMG", 4);
  write_number(w, VERSION, 4);
  write_number(w, it->step, 8);
  write_number(w, (uint64_t)capture->rank, 4);
  write_number(w, (uint64_t)capture->ranks, 4);
  write_number(w, (uint64_t)capture->nodes, 4);
  write_number(w, it->tensors, 4);
  return true;
}

/* float32 as it is in memory: every machine libcomm runs on is little-endian. */
static void finish(lcomm_capture *capture, writer *w, const void *values, uint64_t count) {
  lcomm_why why;
  write_padding(w);
  write_bytes(w, values, count * sizeof(float));
  if (lcomm_file_finish(&w->file, &why) != LCOMM_OK) {
    stop(capture, why.text);
  }
}

/* --------------------------------------------------------------- buckets */

void lcomm_capture_bucket(lcomm_capture *capture, const lcomm_captured_bucket *it) {
  writer w;
  if (!wants(capture, it->step) || it->count == 0 || it->number >= CALLS_FIRST ||
      lcomm_sum_stays_exact(it->dtype, it->op)) {
    return;
  }
  if (it->tensor_count > TENSORS_MAX) {
    stop(capture, "a bucket has more than 65536 tensors");
    return;
  }
  caption said = {it->step, (unsigned)it->number, (uint32_t)it->tensor_count};
  const void *values = it->values(it->owner);
  if (!values || !begin(capture, &said, &w)) {
    return;
  }
  for (size_t i = 0; i < it->tensor_count; i++) {
    lcomm_captured_tensor tensor = it->tensor(it->bucket, i);
    write_tensor(&w, &tensor);
  }
  finish(capture, &w, values, it->count);
}

/* ----------------------------------------------------------- plain calls */

/* The shape of a call; NULL when there are too many. */
static call_shape *find_shape(lcomm_capture *capture, const lcomm_plan *plan) {
  for (unsigned i = 0; i < capture->shape_count; i++) {
    call_shape *shape = &capture->shapes[i];
    if (shape->collective == plan->collective && shape->dtype == plan->dtype &&
        shape->count == plan->count) {
      return shape;
    }
  }
  if (capture->shape_count == SHAPES_MAX) {
    return NULL;
  }
  call_shape *made = &capture->shapes[capture->shape_count++];
  *made = (call_shape){plan->collective, plan->dtype, plan->count, 0};
  return made;
}

void lcomm_capture_call(lcomm_capture *capture, const lcomm_plan *plan, uint64_t min_bytes,
                        lcomm_captured_values values, void *owner) {
  uint64_t bytes = plan->vector_count * lcomm_dtype_size(plan->dtype);
  bool all = plan->collective == LCOMM_COLLECTIVE_ALLREDUCE;
  if ((!all && !lcomm_collective_scatters(plan->collective)) || capture->stopped ||
      plan->vector_count == 0 || bytes < min_bytes ||
      lcomm_sum_stays_exact(plan->dtype, plan->op)) {
    return;
  }
  call_shape *shape = find_shape(capture, plan);
  uint64_t step = shape ? shape->calls++ : 0;
  writer w;
  if (!shape || !wants(capture, step)) {
    return;
  }
  caption it = {step, CALLS_FIRST + (unsigned)(shape - capture->shapes), 1};
  const void *vector = values(owner);
  if (!vector || !begin(capture, &it, &w)) {
    return;
  }
  char name[NAME_MAX_SIZE];
  snprintf(name, sizeof(name), "%s-%llu", all ? "allreduce" : "reduce-scatter",
           (unsigned long long)plan->count);
  write_tensor(&w, &(lcomm_captured_tensor){.name = name, .count = plan->vector_count});
  finish(capture, &w, vector, plan->vector_count);
}
