/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What messages of a communicator travel by, for those who write down where figures come from. */

#include <stdio.h>
#include <string.h>

#include "libcomm/engine/engine.h"
#include "libcomm/include/libcomm_interpose.h"

/* Does this rank reach a peer by it? */
static bool is_used(const lcomm_comm *comm, const lcomm_transport *link) {
  for (int peer = 0; peer < comm->size; peer++) {
    if (peer != comm->rank && comm->links.of[peer] == link) {
      return true;
    }
  }
  return false;
}

static void add_word(char *text, size_t size, const char *word) {
  size_t used = strlen(text);
  if (word[0] != '\0' && used + 1 < size) {
    snprintf(text + used, size - used, "%s%s", used > 0 ? "," : "", word);
  }
}

static const char *name_of(const lcomm_transport *link) {
  return link->table->name;
}

static const char *interface_of(const lcomm_transport *link) {
  return link->table->interface ? link->table->interface(link) : "";
}

/* The words of all transports that are used, separated by commas. */
static const char *list(const lcomm_comm *comm, const char *(*word_of)(const lcomm_transport *),
                        char *text, size_t size) {
  if (!text || size == 0) {
    return "";
  }
  text[0] = '\0';
  for (int i = 0; comm && i < comm->links.count; i++) {
    const lcomm_transport *link = comm->links.open[i];
    add_word(text, size, is_used(comm, link) ? word_of(link) : "");
  }
  return text;
}

const char *lcomm_transports(const lcomm_comm *comm, char *text, size_t size) {
  return list(comm, name_of, text, size);
}

const char *lcomm_interfaces(const lcomm_comm *comm, char *text, size_t size) {
  return list(comm, interface_of, text, size);
}
