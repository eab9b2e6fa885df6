/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tools/info/info_topology.h"

#include <stdio.h>
#include <stdlib.h>

#include "libcomm/base/env.h"
#include "libcomm/topo/machine.h"
#include "libcomm/topo/topo_file.h"
#include "libcomm/transport/links.h"
#include "tools/common/tool_units.h"
#include "tools/info/info_ranks.h"

/* What a run of these ranks would know of its links. */
static lcomm_status take_measured(lcomm_topo *topo, lcomm_why *error) {
  const char *path = lcomm_env_get(LCOMM_ENV_TOPO_FILE);
  lcomm_topo file;
  lcomm_status status = path ? lcomm_topo_file_load(path, &file, error) : LCOMM_OK;
  if (path && status == LCOMM_OK) {
    (void)lcomm_topo_take(topo, &file);
    (void)lcomm_topo_take_racks(topo, &file);
    lcomm_topo_free(&file);
  }
  return status;
}

lcomm_status info_topology_find(const info_options *o, lcomm_topo *topo, lcomm_why *error) {
  int size = info_ranks();
  const char *posed = lcomm_env_get(LCOMM_ENV_NODES);
  uint64_t nodes = (uint64_t)o->nodes;
  if (nodes == 0 && o->ranks == 0 && posed &&
      !tool_units_read_whole(posed, 1, INFO_NUMBER_MAX, &nodes)) {
    return lcomm_why_set(error, LCOMM_ERR_ARGUMENT, "LCOMM_NODES=%.40s is not a number of nodes",
                         posed);
  }
  if (o->topology_file) {
    return lcomm_topo_file_load(o->topology_file, topo, error);
  }
  lcomm_identity mine;
  lcomm_status status = LCOMM_OK;
  lcomm_identity_self(&mine);
  if (o->ranks == 0) {
    lcomm_identity_device(&mine);
    status = lcomm_identity_rack(&mine, error);
  }
  int count = o->ranks > 0 ? o->ranks : size;
  lcomm_identity *all = calloc((size_t)(count > size ? count : size), sizeof *all);
  if (!all) {
    return lcomm_why_set(error, LCOMM_ERR_MEMORY, "out of memory for %d ranks", count);
  }
  info_gather(&mine, all, sizeof(mine));
  for (int i = 0; o->ranks > 0 && i < count; i++) {
    all[i] = mine;
  }
  if (status == LCOMM_OK) {
    status = lcomm_topo_create(all, count, (int)nodes, topo, error);
  }
  free(all);
  return status == LCOMM_OK && o->ranks == 0 ? take_measured(topo, error) : status;
}

/* What a function of the library writes into a buffer of the size it asks for. */
typedef size_t (*printer)(const void *subject, char *text, size_t size);

static void print_text(printer print, const void *subject) {
  size_t length = print(subject, NULL, 0);
  char *text = malloc(length + 1);
  if (text) {
    print(subject, text, length + 1);
    fputs(text, stdout);
  }
  free(text);
}

static size_t print_ranks(const void *topo, char *text, size_t size) {
  return lcomm_topo_print(topo, text, size);
}

static size_t print_links(const void *topo, char *text, size_t size) {
  return lcomm_topo_matrix(topo, text, size);
}

static size_t print_machine(const void *identity, char *text, size_t size) {
  const lcomm_identity *mine = identity;
  return lcomm_machine_print(LCOMM_SYSFS_ROOT, mine->host, lcomm_gpus_here(), text, size);
}

void info_print_machine(void) {
  lcomm_identity mine;
  lcomm_identity_self(&mine);
  print_text(print_machine, &mine);
}

char *info_rails(void) {
  lcomm_transport_introduction mine;
  size_t size = (size_t)info_ranks();
  lcomm_transport_introduction *all = calloc(size, sizeof *all);
  lcomm_links_introduce(&mine);
  if (!all) {
    return NULL;
  }
  info_gather(&mine, all, sizeof(mine));
  size_t room = lcomm_links_rails_print(all, (int)size, info_rank(), NULL, 0) + 1;
  char *text = malloc(room);
  if (text) {
    (void)lcomm_links_rails_print(all, (int)size, info_rank(), text, room);
  }
  free(all);
  return text;
}

void info_print_ranks(const lcomm_topo *topo) {
  print_text(print_ranks, topo);
}

void info_print_links(const lcomm_topo *topo) {
  print_text(print_links, topo);
}
