/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Policies as text, and what can be asked of one. */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "libcomm/plan/number.h"
#include "libcomm/plan/policy_internal.h"

const lcomm_policy lcomm_policy_default = {
    .net = {&lcomm_codec_none, 0, false},
    .node = {&lcomm_codec_none, 0, false},
    .min_bytes = 64 << 10,
    .bucket_bytes = 25 << 20,
    .scope = LCOMM_SCOPE_TENSOR,
    .algorithm = LCOMM_ALGO_AUTO,
};

const char *const lcomm_scope_names[LCOMM_SCOPE_COUNT] = {"tensor", "bucket"};
const char *const lcomm_algorithm_names[LCOMM_ALGORITHM_COUNT] = {"auto", "ring", "direct",
                                                                  "gather"};

const char *lcomm_algorithm_name(lcomm_algorithm algorithm) {
  size_t index = (size_t)algorithm;
  return index < LCOMM_ALGORITHM_COUNT ? lcomm_algorithm_names[index] : "unknown algorithm";
}

const char *lcomm_codec_choice_format(const lcomm_codec_choice *choice, char *text, size_t size) {
  char density[48] = "";
  if (choice->codec->id == LCOMM_CODEC_TOPK) {
    density[0] = ':';
    lcomm_format_decimal(choice->density, density + 1, sizeof density - 1);
  }
  snprintf(text, size, "%s%s%s", choice->codec->name, density, choice->error_feedback ? "+ef" : "");
  return text;
}

/* A text that grows; what does not fit is cut. */
typedef struct writer {
  char *text;
  size_t size, length;
} writer;

__attribute__((format(printf, 2, 3))) static void put(writer *w, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int n = vsnprintf(w->text + w->length, w->size - w->length, format, arguments);
  va_end(arguments);
  if (n < 0)
    return;
  w->length += (size_t)n;
  if (w->length >= w->size)
    w->length = w->size - 1;
}

/* Every word begins with a space; the first one is dropped at the end. */
static void put_codec(writer *w, const char *key, const lcomm_codec_choice *choice,
                      const lcomm_codec_choice *standard) {
  char name[64];
  if (choice->codec != standard->codec || choice->density != standard->density ||
      choice->error_feedback != standard->error_feedback)
    put(w, " %s=%s", key, lcomm_codec_choice_format(choice, name, sizeof name));
}

static void put_size(writer *w, const char *key, uint64_t bytes, uint64_t standard) {
  static const char *const units[] = {"", "K", "M", "G"};
  size_t unit = 0;
  if (bytes == standard)
    return;
  for (; unit < 3 && bytes != 0 && bytes % 1024 == 0; unit++)
    bytes /= 1024;
  put(w, " %s=%llu%s", key, (unsigned long long)bytes, units[unit]);
}

void lcomm_policy_format(const lcomm_policy *policy, char *text) {
  const lcomm_policy *standard = &lcomm_policy_default;
  char buffer[LCOMM_POLICY_MAX + 1] = ""; /* one more for the leading space */
  writer w = {buffer, sizeof buffer, 0};

  put_codec(&w, "net", &policy->net, &standard->net);
  put_codec(&w, "node", &policy->node, &standard->node);
  put_size(&w, "min", policy->min_bytes, standard->min_bytes);
  for (unsigned i = 0; i < policy->exempt_count && i < LCOMM_POLICY_EXEMPT_MAX; i++)
    put(&w, "%s%.*s", i == 0 ? " exempt=" : ",", (int)sizeof policy->exempt[i] - 1,
        policy->exempt[i]);
  if (policy->warmup_steps != standard->warmup_steps)
    put(&w, " warmup=%llu", (unsigned long long)policy->warmup_steps);
  if (policy->scope != standard->scope)
    put(&w, " scope=%s", lcomm_scope_names[policy->scope]);
  put_size(&w, "bucket", policy->bucket_bytes, standard->bucket_bytes);
  if (policy->algorithm != standard->algorithm)
    put(&w, " algo=%s", lcomm_algorithm_name(policy->algorithm));
  if (policy->checksum != standard->checksum)
    put(&w, " check=%s", policy->checksum ? "xxhash" : "none");
  if (w.length == 0)
    put(&w, " net=%s", standard->net.codec->name);
  memcpy(text, buffer + 1, w.length);
}

/* Only the last star needs to be tried again: an earlier one could match no
 * text that the last one cannot reach, so the work is pattern times name. */
static bool glob_matches(const char *pattern, const char *name) {
  const char *star = NULL, *star_name = NULL;
  while (*name != '\0') {
    if (*pattern == '*') {
      star = ++pattern;
      star_name = name;
    } else if (*pattern == '?' || *pattern == *name) {
      pattern++;
      name++;
    } else if (star != NULL) {
      pattern = star;
      name = ++star_name;
    } else {
      return false;
    }
  }
  while (*pattern == '*')
    pattern++;
  return *pattern == '\0';
}

bool lcomm_policy_exempts(const lcomm_policy *policy, const char *name) {
  for (unsigned i = 0; i < policy->exempt_count; i++) {
    if (glob_matches(policy->exempt[i], name))
      return true;
  }
  return false;
}
