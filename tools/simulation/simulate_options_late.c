/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The words of --late. */

#include <string.h>

#include "tools/common/tool_units.h"
#include "tools/simulation/simulate_options.h"
#include "tools/simulation/simulate_text.h"

static bool read_pause(const char *text, simulate_lateness *late) {
  char time[TOOL_UNITS_TEXT_MAX] = "", share[TOOL_UNITS_TEXT_MAX] = "";
  const char *colon = strchr(text, ':');
  size_t length = colon ? strlen(colon + 1) : 0;
  if (!colon || (size_t)(colon - text) >= sizeof time || length < 2 || length >= sizeof share ||
      colon[length] != '%') {
    return false;
  }
  memcpy(time, text, (size_t)(colon - text));
  memcpy(share, colon + 1, length - 1);
  bool good = simulate_text_time(time, &late->pause_s) &&
              tool_units_read_number(share, 0, &late->share) && late->share <= 100;
  late->share /= 100;
  return good;
}

static bool read_factor(const char *text, simulate_lateness *late) {
  return tool_units_read_number(text, 0, &late->factor) && late->factor <= 1000;
}

bool simulate_late_read(const char *text, simulate_lateness *late) {
  static const char rank[] = "rank=", pause[] = "pause=";
  char digits[TOOL_UNITS_TEXT_MAX] = "";
  *late = (simulate_lateness){.rank = -1, .factor = 1};
  if (strncmp(text, rank, strlen(rank)) == 0) {
    uint64_t number = 0;
    text += strlen(rank);
    size_t length = strcspn(text, ":");
    if (text[length] != ':' || length >= sizeof digits) {
      return false;
    }
    memcpy(digits, text, length);
    if (!tool_units_read_whole(digits, 0, SIMULATE_LATE_RANKS_MAX - 1, &number)) {
      return false;
    }
    late->rank = (int)number;
    text += length + 1;
  }
  if (strncmp(text, pause, strlen(pause)) == 0) {
    return read_pause(text + strlen(pause), late);
  }
  return late->rank >= 0 && text[0] == 'x' && read_factor(text + 1, late);
}

bool simulate_options_read_late(tool_command_line *line, const char *value) {
  simulate_options *o = line->options;
  if (o->late_count == SIMULATE_LATE_MAX || !simulate_late_read(value, &o->late[o->late_count])) {
    return tool_refuse(line,
                       "--late takes up to %d words such as rank=3:x3, pause=200ms:5%% or "
                       "rank=3:pause=200ms:5%%",
                       SIMULATE_LATE_MAX);
  }
  o->late_count++;
  return true;
}

bool simulate_options_check_late(tool_command_line *line, const simulate_options *o) {
  bool computes = o->compute_s > 0 || o->tokens > 0 || o->workload || o->computation;
  if (o->late_count > 0 && !computes) {
    return tool_refuse(line, "--late wants --compute, --tokens, --workload or --computation, which "
                             "says what takes longer");
  }
  for (size_t i = 0; i < o->late_count; i++) {
    for (size_t n = 0; n < o->node_count && !o->topology; n++) {
      if (o->late[i].rank >= o->nodes[n] * o->ranks) {
        return tool_refuse(line, "--late names rank %d, and there are %d", o->late[i].rank,
                           o->nodes[n] * o->ranks);
      }
    }
  }
  return true;
}
