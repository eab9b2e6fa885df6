/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tools/simulation/simulate_workload.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/simulation/simulate_file.h"

static const double FORWARD_SHARE = 1.0 / 3, SECONDS_MAX = 1e5;

bool simulate_workload_begin(size_t room, simulate_workload *workload) {
  *workload = (simulate_workload){.tensors = calloc(room, sizeof *workload->tensors)};
  return workload->tensors != NULL;
}

void simulate_workload_free(simulate_workload *workload) {
  free(workload->tensors);
  *workload = (simulate_workload){0};
}

bool simulate_workload_add(simulate_workload *workload, const char *name, uint64_t count,
                           double backward_s) {
  simulate_tensor *it = &workload->tensors[workload->count];
  if (count == 0 || count > SIMULATE_PARAMETERS_MAX - workload->parameters ||
      !(backward_s >= 0 && backward_s <= SECONDS_MAX) ||
      simulate_seconds(simulate_workload_compute(workload)) > SECONDS_MAX) {
    return false;
  }
  snprintf(it->name, sizeof it->name, "%s", name);
  it->count = count;
  it->backward = simulate_time_of(backward_s);
  workload->parameters += count;
  workload->count++;
  return true;
}

simulate_time simulate_workload_compute(const simulate_workload *workload) {
  simulate_time sum = workload->forward;
  for (size_t i = 0; i < workload->count; i++) {
    sum += workload->tensors[i].backward;
  }
  return sum;
}

/* ---------------------------------------------------------------- formula */

bool simulate_workload_formula(uint64_t parameters, uint64_t tensor_count, double compute_s,
                               simulate_workload *workload) {
  uint64_t tensors = (parameters + tensor_count - 1) / tensor_count, done = 0;
  if (parameters == 0 || tensors > SIMULATE_TENSORS_MAX ||
      !simulate_workload_begin(tensors, workload)) {
    return false;
  }
  double backward_s = compute_s * (1 - FORWARD_SHARE) / (double)parameters;
  workload->forward = simulate_time_of(compute_s * FORWARD_SHARE);
  for (uint64_t i = 0; i < tensors; i++) {
    char name[SIMULATE_TENSOR_NAME_MAX];
    uint64_t count = parameters / tensors + (i < parameters % tensors);
    workload->tensors[i].count = count;
    workload->tensors[i].backward = simulate_time_of((double)count * backward_s);
    snprintf(name, sizeof name, "tensor%llu", (unsigned long long)i);
    memcpy(workload->tensors[i].name, name, sizeof name);
    done += count;
  }
  workload->count = tensors;
  workload->parameters = done;
  snprintf(workload->source, sizeof workload->source, "%llu parameters in %llu equal tensors",
           (unsigned long long)parameters, (unsigned long long)tensors);
  return true;
}

/* ------------------------------------------------------------------- file */

static bool read_number(const cJSON *object, const char *key, double most, double *value) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
  *value = cJSON_IsNumber(item) ? item->valuedouble : 0;
  return (!item || cJSON_IsNumber(item)) && *value >= 0 && *value <= most;
}

/* Of the tensor that was added last; a matrix has all of its elements. */
static bool add_shape(const cJSON *item, simulate_workload *workload, char *why) {
  simulate_tensor *it = &workload->tensors[workload->count - 1];
  double rows = 0, columns = 0, most = (double)SIMULATE_PARAMETERS_MAX;
  bool read =
      read_number(item, "rows", most, &rows) && read_number(item, "columns", most, &columns);
  bool none = !(rows > 0) && !(columns > 0);
  if (!read || rows != floor(rows) || (!none && rows * columns != (double)it->count)) {
    snprintf(why, SIMULATE_WHY_MAX,
             "tensor %zu wants \"rows\" and \"columns\" whose product is its \"count\", or neither",
             workload->count - 1);
    return false;
  }
  it->rows = (uint64_t)rows;
  it->columns = (uint64_t)columns;
  return true;
}

static bool add_tensor(const cJSON *item, simulate_workload *workload, char *why) {
  const cJSON *name = cJSON_GetObjectItemCaseSensitive(item, "name");
  double count = 0, backward_us = 0;
  bool good = read_number(item, "count", (double)SIMULATE_PARAMETERS_MAX, &count) &&
              read_number(item, "backward_us", SECONDS_MAX * 1e6, &backward_us) && count >= 1 &&
              count == floor(count) && (!name || cJSON_IsString(name));
  if (!good || !simulate_workload_add(workload, name ? name->valuestring : "", (uint64_t)count,
                                      backward_us * 1e-6)) {
    snprintf(why, SIMULATE_WHY_MAX,
             "tensor %zu wants a \"count\" that is a whole number above 0 and a \"backward_us\" "
             "that is no less than 0, together up to 2^44 and 10^5 s",
             workload->count);
    return false;
  }
  return add_shape(item, workload, why);
}

static bool take(const cJSON *root, simulate_workload *workload, char *why) {
  const cJSON *tensors = cJSON_GetObjectItemCaseSensitive(root, "tensors"), *item;
  int count = cJSON_IsArray(tensors) ? cJSON_GetArraySize(tensors) : 0;
  double forward_us = 0;
  if (count < 1 || count > SIMULATE_TENSORS_MAX) {
    snprintf(why, SIMULATE_WHY_MAX, "it wants an array \"tensors\" of 1 to %d objects",
             SIMULATE_TENSORS_MAX);
    return false;
  }
  if (!read_number(root, "forward_us", SECONDS_MAX * 1e6, &forward_us)) {
    snprintf(why, SIMULATE_WHY_MAX, "\"forward_us\" is not a number of microseconds");
    return false;
  }
  if (!simulate_workload_begin((size_t)count, workload)) {
    snprintf(why, SIMULATE_WHY_MAX, "out of memory for %d tensors", count);
    return false;
  }
  workload->forward = simulate_time_of(forward_us * 1e-6);
  cJSON_ArrayForEach(item, tensors) {
    if (!add_tensor(item, workload, why)) {
      simulate_workload_free(workload);
      return false;
    }
  }
  return true;
}

bool simulate_workload_parse(const char *text, size_t length, simulate_workload *workload,
                             char *why) {
  cJSON *root = cJSON_ParseWithLength(text, length);
  bool good = cJSON_IsObject(root);
  if (!good) {
    snprintf(why, SIMULATE_WHY_MAX, "it is no JSON object");
  }
  good = good && take(root, workload, why);
  cJSON_Delete(root);
  return good;
}

bool simulate_workload_read(const char *path, simulate_workload *workload, char *why) {
  size_t length = 0;
  char *text = simulate_file_read(path, SIMULATE_WORKLOAD_FILE_MAX, &length, why);
  bool good = text && simulate_workload_parse(text, length, workload, why);
  if (good) {
    snprintf(workload->source, sizeof workload->source, "%.120s, %zu tensors", path,
             workload->count);
  }
  free(text);
  return good;
}
