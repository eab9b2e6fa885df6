/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/fidelity/fidelity_store.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/common/tool_origin.h"

/* ------------------------------------------------------------------ writing */

static char *line_of(const fidelity_cell *cell, const fidelity_outcome *outcome, size_t *size) {
  char key[FIDELITY_KEY_MAX], name[FIDELITY_KEY_MAX], *text = NULL;
  tool_json json = tool_json_begin();
  fidelity_cell_key(cell, key);
  fidelity_cell_name(cell, name);
  tool_json_text(&json, json.root, "cell", key);
  tool_json_text(&json, json.root, "name", name);
  tool_json_number(&json, json.root, "accuracy", outcome->accuracy);
  tool_json_number(&json, json.root, "bytes", outcome->bytes);
  tool_json_number(&json, json.root, "steps", outcome->steps);
  tool_json_number(&json, json.root, "seconds", outcome->seconds);
  tool_json_number(&json, json.root, "processor_s", outcome->processor_s);
  tool_origin_put_here(&json, json.root);
  cJSON *curve = tool_json_array(&json, json.root, "curve");
  for (size_t i = 0; i < outcome->curve_count; i++) {
    tool_json_number(&json, curve, NULL, (double)outcome->curve[i]);
  }
  FILE *file = json.broken ? NULL : open_memstream(&text, size);
  if (file) {
    tool_json_put_line(json.root, file);
    fputc('\n', file);
    fclose(file);
  }
  tool_json_drop(&json);
  return text;
}

int fidelity_store_append(const char *path, const fidelity_cell *cell,
                          const fidelity_outcome *outcome, failure *why) {
  size_t size = 0;
  char *line = line_of(cell, outcome, &size);
  if (!line) {
    return failure_set(why, EXIT_SETUP, "no memory for a line of %s", path);
  }
  int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  bool written = file >= 0 && write(file, line, size) == (ssize_t)size;
  int error = errno;
  if (file >= 0 && close(file) != 0) {
    error = errno;
    written = false;
  }
  free(line);
  return written ? 0
                 : failure_set(why, EXIT_SETUP, "%s cannot be written: %s", path, strerror(error));
}

/* ------------------------------------------------------------------ reading */

static double number_of(const cJSON *record, const char *key) {
  const cJSON *found = cJSON_GetObjectItemCaseSensitive(record, key);
  return cJSON_IsNumber(found) ? found->valuedouble : (double)NAN;
}

static bool read_record(const cJSON *from, fidelity_record *record) {
  const cJSON *key = cJSON_GetObjectItemCaseSensitive(from, "cell"), *part = NULL;
  if (!cJSON_IsString(key) || strlen(key->valuestring) >= sizeof record->key) {
    return false;
  }
  memset(record, 0, sizeof *record);
  snprintf(record->key, sizeof record->key, "%s", key->valuestring);
  fidelity_outcome *outcome = &record->outcome;
  outcome->accuracy = number_of(from, "accuracy");
  outcome->bytes = number_of(from, "bytes");
  outcome->steps = number_of(from, "steps");
  outcome->seconds = number_of(from, "seconds");
  outcome->processor_s = number_of(from, "processor_s");
  cJSON_ArrayForEach(part, cJSON_GetObjectItemCaseSensitive(from, "curve")) {
    if (outcome->curve_count < FIDELITY_CURVE_MAX) {
      outcome->curve[outcome->curve_count++] =
          cJSON_IsNumber(part) ? (float)part->valuedouble : NAN;
    }
  }
  return isfinite(outcome->accuracy) && isfinite(outcome->bytes) && isfinite(outcome->steps);
}

static bool make_room(fidelity_store *self) {
  if (self->count < self->room) {
    return true;
  }
  size_t room = 2 * self->room + 64;
  fidelity_record *more = realloc(self->records, room * sizeof *more);
  if (more) {
    self->records = more;
    self->room = room;
  }
  return more != NULL;
}

static bool read_line(const char *line, fidelity_store *self) {
  if (!make_room(self)) {
    return false;
  }
  cJSON *parsed = cJSON_Parse(line);
  self->count += parsed && read_record(parsed, &self->records[self->count]);
  cJSON_Delete(parsed);
  return true;
}

int fidelity_store_read(const char *path, fidelity_store *made, failure *why) {
  char *line = NULL;
  size_t room = 0;
  bool good = true;
  memset(made, 0, sizeof *made);
  FILE *file = fopen(path, "re");
  if (!file) {
    return errno == ENOENT
               ? 0
               : failure_set(why, EXIT_SETUP, "%s cannot be read: %s", path, strerror(errno));
  }
  while (good && getline(&line, &room, file) >= 0) {
    good = read_line(line, made);
  }
  free(line);
  fclose(file);
  if (!good) {
    fidelity_store_free(made);
    return failure_set(why, EXIT_SETUP, "no memory for the results in %s", path);
  }
  return 0;
}

void fidelity_store_free(fidelity_store *self) {
  free(self->records);
  memset(self, 0, sizeof *self);
}

const fidelity_outcome *fidelity_store_find(const fidelity_store *self, const fidelity_cell *cell) {
  char key[FIDELITY_KEY_MAX];
  fidelity_cell_key(cell, key);
  for (size_t i = self->count; i > 0; i--) {
    if (strcmp(self->records[i - 1].key, key) == 0) {
      return &self->records[i - 1].outcome;
    }
  }
  return NULL;
}
