/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What net=auto chose, and why: lines of the plan that libcomm would follow now. */

#include "trainer/train_report.h"

#include <stdio.h>
#include <string.h>

enum { PLAN_SIZE = 4096, BUCKET_BYTES = 25 << 20 /* libcomm fuses up to here by itself */ };

/* The rest of the line that begins with `key`; not terminated. */
static const char *find_line(const char *plan, const char *key, int *length) {
  const char *line = strstr(plan, key);
  line = line ? line + strlen(key) : "";
  line += strspn(line, " ");
  *length = (int)strcspn(line, "\n");
  return line;
}

bool report_auto_acts(const char *policy, int nodes) {
  return nodes > 1 && strstr(policy, "net=auto:") != NULL;
}

void report_auto_words(const char *plan, const char *indent, char *text, size_t size) {
  int algorithm_length, codec_length, why_length;
  const char *algorithm = find_line(plan, "\n  algorithm ", &algorithm_length);
  const char *codec = find_line(plan, "\n  between ", &codec_length);
  const char *why = find_line(plan, "\n  because ", &why_length);
  snprintf(text, size, "auto: %.*s, %.*s\n%s%.*s\n", codec_length, codec, algorithm_length,
           algorithm, indent, why_length, why);
}

void report_auto(const training *of, const char *first, const char *indent) {
  char plan[PLAN_SIZE], text[PLAN_SIZE];
  uint64_t most = BUCKET_BYTES / sizeof(float);
  uint64_t count = of->net.weight_count < most ? of->net.weight_count : most;
  lcomm_comm *comm = gradients_comm(of);
  if (report_auto_acts(lcomm_policy_string(comm), lcomm_nodes(comm)) &&
      lcomm_plan_print(comm, count, LCOMM_FLOAT32, 1, plan, sizeof plan) == LCOMM_OK) {
    report_auto_words(plan, indent, text, sizeof text);
    printf("%s%s", first, text);
  }
}
