/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/common/tool_units.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "libcomm/plan/number.h"

static const uint64_t size_max = UINT64_C(1) << 50;

bool tool_units_read_size(const char *text, uint64_t *size) {
  bool overflow = false;
  uint64_t bytes = 0;
  size_t length = lcomm_read_size(text, strlen(text), &bytes, &overflow);
  if (length == 0 || overflow || bytes > size_max) {
    return false;
  }
  bool has_unit = isalpha((unsigned char)text[length - 1]);
  const char *rest = text + length;
  if (*rest != '\0' && !(has_unit && (strcmp(rest, "iB") == 0 || strcmp(rest, "B") == 0))) {
    return false;
  }
  *size = bytes;
  return true;
}

bool tool_units_read_whole(const char *text, uint64_t least, uint64_t most, uint64_t *number) {
  bool overflow = false;
  uint64_t value = 0;
  size_t length = lcomm_read_integer(text, strlen(text), &value, &overflow);
  if (length == 0 || text[length] != '\0' || overflow || value < least || value > most) {
    return false;
  }
  *number = value;
  return true;
}

bool tool_units_read_bandwidth(const char *text, double *bytes_per_s) {
  static const char prefixes[] = "KMGT";
  double value = 0.0, unit = 1.0;
  size_t length = lcomm_read_decimal(text, strlen(text), &value);
  if (length == 0 || !isfinite(value) || value <= 0.0) {
    return false;
  }
  const char *rest = text + length;
  const char *prefix = *rest != '\0' ? strchr(prefixes, toupper((unsigned char)*rest)) : NULL;
  if (prefix) {
    unit = pow(1000.0, (double)(prefix - prefixes + 1));
    rest++;
  }
  bool bits = strncasecmp(rest, "bit", 3) == 0;
  if (!bits && *rest != 'B') {
    return false;
  }
  rest += bits ? 3 : 1;
  if (*rest != '\0' && strcmp(rest, "/s") != 0) {
    return false;
  }
  *bytes_per_s = value * unit / (bits ? 8.0 : 1.0);
  return true;
}

const char *tool_units_bytes(uint64_t size, char text[TOOL_UNITS_TEXT_MAX]) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = (double)size;
  size_t unit = 0;
  for (; value >= 1024.0 && unit + 1 < sizeof units / sizeof *units; unit++) {
    value /= 1024.0;
  }
  snprintf(text, TOOL_UNITS_TEXT_MAX, "%.4g %s", value, units[unit]);
  return text;
}

const char *tool_units_bandwidth(double bytes_per_s, char text[TOOL_UNITS_TEXT_MAX]) {
  static const char *const units[] = {"bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"};
  double value = 8.0 * bytes_per_s;
  size_t unit = 0;
  for (; value >= 1000.0 && unit + 1 < sizeof units / sizeof *units; unit++) {
    value /= 1000.0;
  }
  snprintf(text, TOOL_UNITS_TEXT_MAX, "%.3g %s", value, units[unit]);
  return text;
}

const char *tool_units_seconds(double seconds, char text[TOOL_UNITS_TEXT_MAX]) {
  if (seconds >= 0.9995) {
    snprintf(text, TOOL_UNITS_TEXT_MAX, seconds < 999.5 ? "%.3g s" : "%.0f s", seconds);
  } else if (seconds >= 0.9995e-3) {
    snprintf(text, TOOL_UNITS_TEXT_MAX, "%.3g ms", 1e3 * seconds);
  } else {
    snprintf(text, TOOL_UNITS_TEXT_MAX, "%.3g us", 1e6 * seconds);
  }
  return text;
}
