/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The tensors that the log of a training names, as simulate reads them. */

#include <math.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "tools/experiment/experiment_simulation.h"

static const double FORWARD_SHARE = 1.0 / 3.0;

/* Of a matrix; simulate says what is wrong with it. */
static void put_shape(const cJSON *tensor, cJSON *made) {
  static const char *const names[] = {"rows", "columns"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    const cJSON *side = cJSON_GetObjectItemCaseSensitive(tensor, names[i]);
    if (cJSON_IsNumber(side)) {
      cJSON_AddNumberToObject(made, names[i], side->valuedouble);
    }
  }
}

static void put_tensors(const cJSON *tensors, double compute_s, cJSON *made) {
  const cJSON *tensor;
  double sum = 0.0;
  cJSON_ArrayForEach(tensor, tensors) {
    sum += fmax(0.0, cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(tensor, "count")));
  }
  cJSON_AddNumberToObject(made, "forward_us", 1e6 * FORWARD_SHARE * compute_s);
  cJSON *list = cJSON_AddArrayToObject(made, "tensors");
  cJSON_ArrayForEach(tensor, tensors) {
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(tensor, "name");
    double count = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(tensor, "count"));
    cJSON *it = cJSON_CreateObject();
    cJSON_AddStringToObject(it, "name", cJSON_IsString(name) ? name->valuestring : "");
    cJSON_AddNumberToObject(it, "count", count);
    put_shape(tensor, it);
    cJSON_AddNumberToObject(it, "backward_us",
                            1e6 * (1.0 - FORWARD_SHARE) * compute_s * count / fmax(1.0, sum));
    cJSON_AddItemToArray(list, it);
  }
}

char *experiment_simulation_workload(char *log, double compute_s) {
  char *rest = NULL, *text = NULL;
  for (char *line = strtok_r(log, "\n", &rest); line && !text; line = strtok_r(NULL, "\n", &rest)) {
    cJSON *event = cJSON_Parse(line);
    const cJSON *tensors = cJSON_GetObjectItemCaseSensitive(event, "tensors");
    if (cJSON_IsArray(tensors) && cJSON_GetArraySize(tensors) > 0) {
      cJSON *made = cJSON_CreateObject();
      put_tensors(tensors, compute_s, made);
      text = cJSON_Print(made);
      cJSON_Delete(made);
    }
    cJSON_Delete(event);
  }
  return text;
}
