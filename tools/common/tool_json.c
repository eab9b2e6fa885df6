/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/common/tool_json.h"

#include <math.h>

tool_json tool_json_begin(void) {
  cJSON *root = cJSON_CreateObject();
  return (tool_json){root, !root};
}

static cJSON *add(tool_json *json, cJSON *parent, const char *key, cJSON *item) {
  bool added =
      parent && item &&
      (key ? cJSON_AddItemToObject(parent, key, item) : cJSON_AddItemToArray(parent, item));
  if (added) {
    return item;
  }
  cJSON_Delete(item);
  json->broken = true;
  return NULL;
}

cJSON *tool_json_object(tool_json *json, cJSON *parent, const char *key) {
  return add(json, parent, key, cJSON_CreateObject());
}

cJSON *tool_json_array(tool_json *json, cJSON *parent, const char *key) {
  return add(json, parent, key, cJSON_CreateArray());
}

void tool_json_number(tool_json *json, cJSON *parent, const char *key, double value) {
  add(json, parent, key, cJSON_CreateNumber(value));
}

void tool_json_text(tool_json *json, cJSON *parent, const char *key, const char *text) {
  add(json, parent, key, cJSON_CreateString(text ? text : ""));
}

void tool_json_flag(tool_json *json, cJSON *parent, const char *key, bool value) {
  add(json, parent, key, cJSON_CreateBool(value));
}

void tool_json_null(tool_json *json, cJSON *parent, const char *key) {
  add(json, parent, key, cJSON_CreateNull());
}

void tool_json_spread(tool_json *json, cJSON *parent, const char *key, tool_spread spread) {
  cJSON *inner = tool_json_object(json, parent, key);
  tool_json_number(json, inner, "min", spread.min);
  tool_json_number(json, inner, "median", spread.median);
  tool_json_number(json, inner, "max", spread.max);
}

bool tool_json_end(tool_json *json, FILE *file) {
  char *text = json->broken ? NULL : cJSON_Print(json->root);
  bool good = text != NULL && fputs(text, file) >= 0 && fputc('\n', file) != EOF;
  cJSON_free(text);
  tool_json_drop(json);
  return fflush(file) == 0 && good && !ferror(file);
}

void tool_json_drop(tool_json *json) {
  cJSON_Delete(json->root);
  json->root = NULL;
}

static void put_number(double value, FILE *file) {
  if (!isfinite(value)) {
    fputs("null", file);
  } else if (value == trunc(value) && fabs(value) < 0x1p53) {
    fprintf(file, "%.0f", value);
  } else {
    fprintf(file, "%.9g", value);
  }
}

void tool_json_put_members(const cJSON *parent, FILE *file) {
  const cJSON *child;
  cJSON_ArrayForEach(child, parent) {
    fputs(child != parent->child ? ", " : "", file);
    if (child->string) {
      fprintf(file, "\"%s\": ", child->string);
    }
    tool_json_put_line(child, file);
  }
}

void tool_json_put_line(const cJSON *item, FILE *file) {
  if (cJSON_IsObject(item) || cJSON_IsArray(item)) {
    fputc(cJSON_IsObject(item) ? '{' : '[', file);
    tool_json_put_members(item, file);
    fputc(cJSON_IsObject(item) ? '}' : ']', file);
  } else if (cJSON_IsNumber(item)) {
    put_number(item->valuedouble, file);
  } else {
    char *text = cJSON_PrintUnformatted(item);
    fputs(text ? text : "null", file);
    cJSON_free(text);
  }
}
