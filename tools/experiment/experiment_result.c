/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/experiment/experiment_result.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/experiment/experiment_folder.h"

/* A finite number that is not negative. */
static double number_of(const cJSON *object, const char *key) {
  const cJSON *found = cJSON_GetObjectItemCaseSensitive(object, key);
  return cJSON_IsNumber(found) && isfinite(found->valuedouble) && found->valuedouble >= 0.0
             ? found->valuedouble
             : 0.0;
}

/* Control characters and quotes do not come out of here. */
static void copy_text(const cJSON *object, const char *key, char *text, size_t size) {
  const cJSON *found = cJSON_GetObjectItemCaseSensitive(object, key);
  if (!cJSON_IsString(found)) {
    return;
  }
  snprintf(text, size, "%s", found->valuestring);
  for (char *c = text; *c != '\0'; c++) {
    *c = (unsigned char)*c < ' ' || *c == 0x7f ? '?' : *c;
  }
}

static void read_origin(const cJSON *object, experiment_result *made) {
  const cJSON *origin = cJSON_GetObjectItemCaseSensitive(object, "origin");
  copy_text(origin, "transport", made->transport, sizeof made->transport);
  copy_text(origin, "interface", made->interface, sizeof made->interface);
}

/* ----------------------------------------------------------------- trainings */

/* Times and bytes of an epoch are its own; they add up. The ranks' times are sums over them. */
static void read_epoch(const cJSON *event, double ranks, double batch, experiment_result *made) {
  if (made->epoch_count == EXPERIMENT_EPOCHS_MAX) {
    return;
  }
  experiment_epoch last = {0};
  if (made->epoch_count > 0) {
    last = made->epochs[made->epoch_count - 1];
  }
  double steps = number_of(event, "steps") - made->steps;
  double samples_per_s = number_of(event, "samples_per_s");
  double seconds = samples_per_s > 0.0 ? steps * ranks * batch / samples_per_s : 0.0;
  const cJSON *sent = cJSON_GetObjectItemCaseSensitive(event, "sent_bytes");
  made->epochs[made->epoch_count++] = (experiment_epoch){
      .seconds = last.seconds + seconds,
      .accuracy = number_of(event, "accuracy"),
      .loss = number_of(event, "loss"),
      .sent_bytes = last.sent_bytes + number_of(sent, "net"),
  };
  made->steps += steps;
  made->encode_s += number_of(event, "encode_s") / ranks;
  made->decode_s += number_of(event, "decode_s") / ranks;
  made->wait_s += number_of(event, "wait_s") / ranks;
  made->wire_s += number_of(event, "wire_s") / ranks;
}

/* From sums over the run to means of a step. */
static void divide_steps(experiment_result *made) {
  if (made->epoch_count == 0 || made->steps < 1.0) {
    return;
  }
  made->step_s = made->epochs[made->epoch_count - 1].seconds / made->steps;
  made->encode_s /= made->steps;
  made->decode_s /= made->steps;
  made->wait_s /= made->steps;
  made->wire_s /= made->steps;
  made->compute_s = fmax(0.0, made->step_s - made->encode_s - made->decode_s - made->wait_s);
}

/* --------------------------------------------------------------- collectives */

static bool read_row(const cJSON *row, experiment_result *made) {
  double median_s = number_of(row, "median_s");
  if (median_s <= 0.0 || made->row_count == EXPERIMENT_ROWS_MAX) {
    return false;
  }
  made->rows[made->row_count++] = (experiment_row){
      number_of(row, "size"), median_s, number_of(row, "busbw_gb_s"), number_of(row, "net_bytes")};
  return true;
}

static bool read_document(const cJSON *document, experiment_result *made) {
  const cJSON *row, *rows = cJSON_GetObjectItemCaseSensitive(document, "results");
  bool any = false;
  if (cJSON_IsArray(rows)) {
    read_origin(document, made);
    cJSON_ArrayForEach(row, rows) {
      any |= read_row(row, made);
    }
    return any;
  }
  return cJSON_IsObject(document) && read_row(document, made);
}

/* ---------------------------------------------------------------------- text */

typedef struct shape {
  double ranks, batch;
} shape;

static bool read_event(const cJSON *event, shape *training, experiment_result *made) {
  char name[16] = "";
  copy_text(event, "event", name, sizeof name);
  if (strcmp(name, "config") == 0) {
    training->ranks = fmax(1.0, number_of(event, "ranks"));
    training->batch = number_of(event, "batch");
    read_origin(event, made);
  } else if (strcmp(name, "epoch") == 0) {
    read_epoch(event, training->ranks, training->batch, made);
    return true;
  }
  return false;
}

bool experiment_result_parse(char *text, experiment_result *made) {
  shape training = {1.0, 1.0};
  cJSON *whole = cJSON_ParseWithOpts(text, NULL, true);
  bool any = whole && read_document(whole, made);
  char *rest = NULL;
  for (char *line = any ? NULL : strtok_r(text, "\n", &rest); line;
       line = strtok_r(NULL, "\n", &rest)) {
    cJSON *object = cJSON_Parse(line);
    any |= read_event(object, &training, made) || read_document(object, made);
    cJSON_Delete(object);
  }
  cJSON_Delete(whole);
  divide_steps(made);
  return any;
}

void experiment_result_read(const char *folder, const char *command, experiment_result *made) {
  char *text = experiment_folder_text(folder, "run.json");
  cJSON *run = text ? cJSON_Parse(text) : NULL;
  char state[16] = "";
  const cJSON *as = cJSON_GetObjectItemCaseSensitive(run, "command");
  memset(made, 0, sizeof *made);
  if (cJSON_IsString(as) && strcmp(as->valuestring, command) == 0) {
    const cJSON *origin = cJSON_GetObjectItemCaseSensitive(run, "origin");
    copy_text(run, "state", state, sizeof state);
    copy_text(run, "why", made->why, sizeof made->why);
    copy_text(origin, "machine", made->machine, sizeof made->machine);
    copy_text(origin, "host", made->host, sizeof made->host);
    copy_text(origin, "commit", made->commit, sizeof made->commit);
    copy_text(origin, "date", made->date, sizeof made->date);
    made->wall_s = number_of(run, "seconds");
    made->interface_bytes = number_of(run, "interface_bytes");
    made->state = strcmp(state, "good") == 0 ? EXPERIMENT_GOOD : EXPERIMENT_FAILED;
  }
  cJSON_Delete(run);
  free(text);
  char *results = made->state == EXPERIMENT_GOOD ? experiment_folder_results(folder) : NULL;
  if (made->state == EXPERIMENT_GOOD && (!results || !experiment_result_parse(results, made))) {
    made->state = EXPERIMENT_FAILED;
    snprintf(made->why, sizeof made->why, "its results cannot be read any more");
  }
  free(results);
}

/* -------------------------------------------------------------------- derived */

double experiment_result_time_to(const experiment_result *of, double accuracy) {
  experiment_epoch before = {0};
  for (size_t i = 0; i < of->epoch_count; i++) {
    experiment_epoch now = of->epochs[i];
    if (now.accuracy >= accuracy) {
      double part = now.accuracy > before.accuracy
                        ? (accuracy - before.accuracy) / (now.accuracy - before.accuracy)
                        : 1.0;
      return before.seconds + fmin(1.0, fmax(0.0, part)) * (now.seconds - before.seconds);
    }
    before = now;
  }
  return 0.0;
}

double experiment_result_epoch_s(const experiment_result *of) {
  return of->epoch_count > 0 ? of->epochs[of->epoch_count - 1].seconds / (double)of->epoch_count
                             : 0.0;
}
