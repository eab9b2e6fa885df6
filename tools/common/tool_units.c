/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/common/tool_units.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const uint64_t size_max = UINT64_C(1) << 50;

/* The digits at *text, behind which it moves. false: none, or more than 64 bits. */
static bool read_digits(const char **text, uint64_t *number) {
  char *end = NULL;
  if (!isdigit((unsigned char)**text)) {
    return false;
  }
  errno = 0;
  *number = strtoull(*text, &end, 10);
  *text = end;
  return errno == 0;
}

bool tool_units_read_size(const char *text, uint64_t *size) {
  static const char units[] = "KMG";
  uint64_t value = 0;
  if (!read_digits(&text, &value)) {
    return false;
  }
  const char *unit = *text != '\0' ? strchr(units, toupper((unsigned char)*text)) : NULL;
  unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
  if (unit) {
    text++;
    text += strcmp(text, "iB") == 0 ? 2 : strcmp(text, "B") == 0;
  }
  if (*text != '\0' || value > size_max >> shift) {
    return false;
  }
  *size = value << shift;
  return true;
}

bool tool_units_read_whole(const char *text, uint64_t least, uint64_t most, uint64_t *number) {
  uint64_t value = 0;
  if (!read_digits(&text, &value) || *text != '\0' || value < least || value > most) {
    return false;
  }
  *number = value;
  return true;
}

bool tool_units_read_number(const char *text, double above, double *number) {
  char *end = NULL;
  double value = strtod(text, &end);
  if (end == text || *end != '\0' || !isfinite(value) || value <= above) {
    return false;
  }
  *number = value;
  return true;
}

bool tool_units_next_word(const char **list, char *word, size_t size) {
  size_t length = strcspn(*list, ",");
  bool last = (*list)[length] == '\0';
  if (length == 0 || length >= size || (!last && (*list)[length + 1] == '\0')) {
    return false;
  }
  memcpy(word, *list, length);
  word[length] = '\0';
  *list += length + !last;
  return true;
}

bool tool_units_read_sizes(const char *list, uint64_t *sizes, size_t most, size_t *count) {
  char word[TOOL_UNITS_TEXT_MAX];
  *count = 0;
  do {
    if (*count == most || !tool_units_next_word(&list, word, sizeof word) ||
        !tool_units_read_size(word, &sizes[*count])) {
      return false;
    }
    ++*count;
  } while (*list != '\0');
  return true;
}

bool tool_units_read_bandwidth(const char *text, double *bytes_per_s) {
  static const char prefixes[] = "KMGT";
  char *rest = NULL;
  double value = strtod(text, &rest), unit = 1.0;
  if (strspn(text, "0123456789.") == 0 || !isfinite(value) || value <= 0.0) {
    return false;
  }
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

/* The number with the unit that leaves it below `step`. */
static const char *put_scaled(double value, double step, const char *const *units, int digits,
                              char *text) {
  for (; value >= step && units[1]; units++) {
    value /= step;
  }
  snprintf(text, TOOL_UNITS_TEXT_MAX, "%.*g %s", digits, value, *units);
  return text;
}

const char *tool_units_bytes(uint64_t size, char text[TOOL_UNITS_TEXT_MAX]) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", NULL};
  return put_scaled((double)size, 1024.0, units, 4, text);
}

const char *tool_units_bandwidth(double bytes_per_s, char text[TOOL_UNITS_TEXT_MAX]) {
  static const char *const units[] = {"bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s", NULL};
  return put_scaled(8.0 * bytes_per_s, 1000.0, units, 3, text);
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
