/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/topo/machine.h"

#include <stdio.h>
#include <stdlib.h>

#include "libcomm/base/writer.h"

/* A column of the matrix is as wide as its widest cell. */
enum { CELL_WIDTH = 10, COLUMNS_MAX = 24 };

typedef struct machine {
  const lcomm_gpus *gpus;
  lcomm_pci_place gpu_place[LCOMM_GPUS_MAX];
  lcomm_nic nics[LCOMM_NICS_MAX];
  int nic_count;
} machine;

static const char *plural(int count) {
  return count == 1 ? "" : "s";
}

static void write_place(lcomm_writer *w, lcomm_pci pci, const lcomm_pci_place *place) {
  char text[LCOMM_PCI_TEXT_MAX];
  if (pci != 0) {
    lcomm_write(w, ", %s", lcomm_pci_format(pci, text));
  }
  if (place->numa_node >= 0) {
    lcomm_write(w, ", NUMA node %d", place->numa_node);
  }
}

static int count_direct_links(const lcomm_gpus *gpus, const lcomm_gpu *gpu) {
  int links = 0;
  for (int i = 0; i < gpus->count; i++) {
    links += gpu->nvlinks[i];
  }
  return links;
}

static void write_gpu(lcomm_writer *w, const machine *m, int i) {
  const lcomm_gpu *gpu = &m->gpus->gpu[i];
  char cluster[LCOMM_UUID_TEXT_MAX];
  int direct = count_direct_links(m->gpus, gpu);
  lcomm_write(w, "# gpu%-8d %s", gpu->index, gpu->name[0] ? gpu->name : "unnamed");
  write_place(w, gpu->pci, &m->gpu_place[i]);
  if (gpu->switched > 0) {
    lcomm_write(w, ", %d NVLink%s to switches", gpu->switched, plural(gpu->switched));
  }
  if (direct > 0) {
    lcomm_write(w, ", %d NVLink%s to GPUs", direct, plural(direct));
  }
  if (!lcomm_uuid_is_zero(gpu->cluster)) {
    lcomm_write(w, ", NVLink domain %s clique %u", lcomm_uuid_format(gpu->cluster, cluster),
                gpu->clique);
  }
  lcomm_write(w, "\n");
}

static void write_nic(lcomm_writer *w, const lcomm_nic *nic) {
  lcomm_write(w, "# %-11s ", nic->name);
  if (nic->speed_mbit_s >= 0) {
    lcomm_write(w, "%lld Mbit/s", (long long)nic->speed_mbit_s);
  } else {
    lcomm_write(w, "speed unknown");
  }
  lcomm_write(w, "%s%s", nic->infiniband ? ", InfiniBand" : "",
              nic->pci == 0 ? ", not on PCI" : "");
  write_place(w, nic->pci, &nic->place);
  lcomm_write(w, "\n");
}

/* ----------------------------------------------------------------- matrix */

/* Rows and columns are the GPUs, then the interfaces that are on PCI. */
typedef struct endpoint {
  char name[LCOMM_NIC_NAME_MAX];
  int gpu; /* -1: an interface */
  const lcomm_pci_place *place;
} endpoint;

static int list_endpoints(const machine *m, endpoint *ends) {
  int count = 0;
  for (int i = 0; i < m->gpus->count && count < COLUMNS_MAX; i++, count++) {
    ends[count] = (endpoint){.gpu = i, .place = &m->gpu_place[i]};
    snprintf(ends[count].name, sizeof(ends[count].name), "gpu%d", m->gpus->gpu[i].index);
  }
  for (int i = 0; i < m->nic_count && count < COLUMNS_MAX; i++) {
    if (m->nics[i].pci == 0) {
      continue;
    }
    ends[count] = (endpoint){.gpu = -1, .place = &m->nics[i].place};
    snprintf(ends[count].name, sizeof(ends[count].name), "%s", m->nics[i].name);
    count++;
  }
  return count;
}

/* NVLinks in number, where two GPUs may use them; else the way over PCIe, with
 * a '!' where GPUs may not reach each other. */
static void describe_way(const machine *m, const endpoint *a, const endpoint *b, char *cell,
                         size_t size) {
  const char *distance = lcomm_pci_distance_name(lcomm_pci_distance_between(a->place, b->place));
  if (a == b) {
    snprintf(cell, size, "-");
  } else if (a->gpu < 0 || b->gpu < 0) {
    snprintf(cell, size, "%s", distance);
  } else if (lcomm_gpus_nvlink(m->gpus, a->gpu, b->gpu)) {
    const lcomm_gpu *gpu = &m->gpus->gpu[a->gpu];
    snprintf(cell, size, "nvlink*%d",
             gpu->nvlinks[b->gpu] > 0 ? gpu->nvlinks[b->gpu] : gpu->switched);
  } else {
    bool reach = m->gpus->gpu[a->gpu].p2p[b->gpu] && m->gpus->gpu[b->gpu].p2p[a->gpu];
    snprintf(cell, size, "%s%s", distance, reach ? "" : "!");
  }
}

static void write_matrix(lcomm_writer *w, const machine *m) {
  endpoint ends[COLUMNS_MAX];
  char cell[40];
  int count = list_endpoints(m, ends);
  if (count < 2) {
    return;
  }
  lcomm_write(w, "# %-11s", "");
  for (int i = 0; i < count; i++) {
    lcomm_write(w, " %*s", CELL_WIDTH, ends[i].name);
  }
  for (int i = 0; i < count; i++) {
    lcomm_write(w, "\n# %-11s", ends[i].name);
    for (int j = 0; j < count; j++) {
      describe_way(m, &ends[i], &ends[j], cell, sizeof(cell));
      lcomm_write(w, " %*s", CELL_WIDTH, cell);
    }
  }
  lcomm_write(w, "\n# nvlink*N: N NVLinks from here; else the way over PCIe: switch, root complex, "
                 "socket, system;\n# '!': the driver lets these GPUs not read and write each "
                 "other\n");
}

size_t lcomm_machine_print(const char *sysfs_root, const char *host, const lcomm_gpus *gpus,
                           char *text, size_t size) {
  lcomm_writer w = lcomm_writer_begin(text, size);
  machine *m = calloc(1, sizeof *m);
  if (!m) {
    return w.length;
  }
  m->gpus = gpus;
  m->nic_count = lcomm_sysfs_nics(sysfs_root, m->nics);
  for (int i = 0; i < gpus->count; i++) {
    lcomm_sysfs_place(sysfs_root, gpus->gpu[i].pci, &m->gpu_place[i]);
  }
  int processors = lcomm_topo_processors(), numa_nodes = lcomm_sysfs_numa_nodes(sysfs_root);
  lcomm_write(&w, "# host        %s, %d processor%s, %d NUMA node%s\n", host, processors,
              plural(processors), numa_nodes, plural(numa_nodes));
  if (gpus->count == 0) {
    lcomm_write(&w, "# no GPU      %s\n", gpus->why.text);
  }
  for (int i = 0; i < gpus->count; i++) {
    write_gpu(&w, m, i);
  }
  for (int i = 0; i < m->nic_count; i++) {
    write_nic(&w, &m->nics[i]);
  }
  write_matrix(&w, m);
  free(m);
  return w.length;
}
