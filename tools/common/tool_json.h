/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_COMMON_TOOL_JSON_H
#define LCOMM_TOOLS_COMMON_TOOL_JSON_H

/* JSON documents, as trees of cJSON. A writer remembers whether memory ended, so that its user
 * adds one value after the other and looks at the end. A NULL parent is one that could not be
 * made. Without a key a value is appended to the parent, which is an array. */

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>

#include "tools/common/tool_timing.h"

typedef struct tool_json {
  cJSON *root; /* an object; owned */
  bool broken; /* memory ended */
} tool_json;

tool_json tool_json_begin(void);

/* The object or array that was added. */
cJSON *tool_json_object(tool_json *json, cJSON *parent, const char *key);
cJSON *tool_json_array(tool_json *json, cJSON *parent, const char *key);

/* A number that is not finite becomes null, a NULL text the empty one. */
void tool_json_number(tool_json *json, cJSON *parent, const char *key, double value);
void tool_json_text(tool_json *json, cJSON *parent, const char *key, const char *text);
void tool_json_flag(tool_json *json, cJSON *parent, const char *key, bool value);
void tool_json_null(tool_json *json, cJSON *parent, const char *key);

/* {min, median, max}. */
void tool_json_spread(tool_json *json, cJSON *parent, const char *key, tool_spread spread);

/* Print the document on lines of its own and free it. false when memory ended or the file took
 * not everything. */
bool tool_json_end(tool_json *json, FILE *file);

/* Free it unprinted. */
void tool_json_drop(tool_json *json);

/* A value on one line, such as {"size": 8, "times": [1, 2.5]}, with 9 digits of what is no whole
 * number; the members of an object or array alone, without the brackets. */
void tool_json_put_line(const cJSON *item, FILE *file);
void tool_json_put_members(const cJSON *parent, FILE *file);

#endif
