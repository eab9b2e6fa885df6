/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tools/simulation/simulate_text.h"

#include <stdlib.h>
#include <string.h>

bool simulate_text_time(const char *text, double *seconds) {
  static const struct {
    const char *name;
    double seconds;
  } units[] = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
  char *rest = NULL;
  double value = strtod(text, &rest);
  if (strspn(text, "0123456789.") == 0 || !(value >= 0 && value <= 1e5)) {
    return false;
  }
  if (value == 0 && *rest == '\0') {
    *seconds = 0;
    return true;
  }
  for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
    if (strcmp(rest, units[i].name) == 0) {
      *seconds = value * units[i].seconds;
      return *seconds <= 1e4;
    }
  }
  return false;
}

bool simulate_text_count(const char *text, double most, uint64_t *count) {
  static const char prefixes[] = "KMGT";
  char *rest = NULL;
  double value = strtod(text, &rest);
  if (strspn(text, "0123456789.") == 0 || !(value > 0)) {
    return false;
  }
  const char *prefix = *rest == '\0' ? NULL : strchr(prefixes, *rest == 'k' ? 'K' : *rest);
  for (int i = 0; prefix && i <= prefix - prefixes; i++) {
    value *= 1000;
  }
  if ((*rest != '\0' && (!prefix || rest[1] != '\0')) || !(value >= 1 && value <= most)) {
    return false;
  }
  *count = (uint64_t)(value + 0.5);
  return true;
}
