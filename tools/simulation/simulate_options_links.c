/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The words of --link, --server-link and --inside. */

#include <stdio.h>
#include <string.h>

#include "tools/common/tool_units.h"
#include "tools/simulation/simulate_options.h"

static bool is_usable(const simulate_link *link) {
  return link->bytes_per_s >= 100 && link->bytes_per_s <= 1e15;
}

bool simulate_options_read_links(tool_command_line *line, const char *value) {
  simulate_options *o = line->options;
  o->link_count = 0;
  do {
    simulate_named_link *it = &o->links[o->link_count];
    if (o->link_count == SIMULATE_LINKS_MAX ||
        !tool_units_next_word(&value, it->name, sizeof it->name) ||
        !simulate_links_between(it->name, &it->link) || !is_usable(&it->link)) {
      return tool_refuse(line,
                         "--link takes up to %d names (--list-links) or rates such as 200mbit",
                         SIMULATE_LINKS_MAX);
    }
    o->link_count++;
  } while (*value != '\0');
  return true;
}

/* What is one name or rate alone. */
static bool read_one(const char *value, bool (*find)(const char *text, simulate_link *link),
                     simulate_named_link *it) {
  if (strlen(value) >= sizeof it->name || !find(value, &it->link) || !is_usable(&it->link)) {
    return false;
  }
  snprintf(it->name, sizeof it->name, "%s", value);
  return true;
}

bool simulate_options_read_server_link(tool_command_line *line, const char *value) {
  simulate_options *o = line->options;
  return read_one(value, simulate_links_between, &o->server_link) ||
         tool_refuse(line, "--server-link takes a name (--list-links) or a rate such as 10gbit");
}

bool simulate_options_read_inside(tool_command_line *line, const char *value) {
  simulate_options *o = line->options;
  return read_one(value, simulate_links_inside, &o->inside) ||
         tool_refuse(line, "--inside takes a name (--list-links) or a rate such as 20GB");
}
