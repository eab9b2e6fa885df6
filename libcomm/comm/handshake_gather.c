/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The handshakes of all ranks: a short message of each, and the long parts of them only where they
 * differ or where there is something in them. */

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "libcomm/comm/handshake.h"

_Static_assert(sizeof(lcomm_handshake_brief) == 8 + 12 * sizeof(int32_t) + 6 * sizeof(uint64_t) +
                                                    LCOMM_HOST_MAX + LCOMM_RACK_MAX +
                                                    sizeof(lcomm_processors) +
                                                    sizeof(lcomm_transport_introduction),
               "no padding travels");

/* What is gathered, and into what. */
typedef struct gathering {
  const lcomm_bootstrap *base;
  const lcomm_handshake *mine;
  lcomm_handshake *all;
  size_t *failed_size;
} gathering;

/* ------------------------------------------------------------------ this rank */

static void take_texts(const lcomm_handshake *from, lcomm_handshake_texts *texts) {
  memcpy(texts->error, from->error, sizeof(texts->error));
  memcpy(texts->policy, from->policy, sizeof(texts->policy));
  memcpy(texts->transport, from->transport, sizeof(texts->transport));
  memcpy(texts->topo_file, from->topo_file, sizeof(texts->topo_file));
}

/* Of those that must be equal; behind their ends they are zero. */
static uint64_t hash_texts(const lcomm_handshake *it) {
  return XXH3_64bits_withSeed(it->policy, sizeof(it->policy),
                              XXH3_64bits(it->transport, sizeof(it->transport)));
}

static bool has_device(const lcomm_identity *identity) {
  static const lcomm_device_identity none;
  return memcmp(&identity->device, &none, sizeof none) != 0;
}

static void summarize(const lcomm_handshake *it, lcomm_handshake_brief *brief) {
  *brief = (lcomm_handshake_brief){.version = it->version,
                                   .wire_version = it->wire_version,
                                   .status = it->status,
                                   .nodes = it->nodes,
                                   .progress = it->progress,
                                   .mpi = it->mpi,
                                   .traced = it->traced,
                                   .elastic = it->elastic,
                                   .world = it->world,
                                   .has_error = it->error[0] != '\0',
                                   .has_device = has_device(&it->identity),
                                   .number = it->number,
                                   .run_cache_bytes = it->run_cache_bytes,
                                   .texts_hash = hash_texts(it),
                                   .topo_hash = it->topo_hash,
                                   .host_hash = it->identity.host_hash,
                                   .pid = it->identity.pid,
                                   .processors = it->processors,
                                   .introduction = it->introduction};
  memcpy(brief->magic, it->magic, sizeof(brief->magic));
  memcpy(brief->host, it->identity.host, sizeof(brief->host));
  memcpy(brief->rack, it->identity.rack, sizeof(brief->rack));
}

/* ----------------------------------------------------------------- the others */

static void take_brief(const gathering *g, const lcomm_handshake_brief *brief,
                       lcomm_handshake *it) {
  memset(it, 0, sizeof *it);
  memcpy(it->magic, brief->magic, sizeof(it->magic));
  memcpy(it->policy, g->mine->policy, sizeof(it->policy));
  memcpy(it->transport, g->mine->transport, sizeof(it->transport));
  memcpy(it->topo_file, g->mine->topo_file, sizeof(it->topo_file));
  memcpy(it->identity.host, brief->host, sizeof(it->identity.host));
  memcpy(it->identity.rack, brief->rack, sizeof(it->identity.rack));
  it->version = brief->version;
  it->wire_version = brief->wire_version;
  it->status = brief->status;
  it->nodes = brief->nodes;
  it->progress = brief->progress;
  it->mpi = brief->mpi;
  it->traced = brief->traced;
  it->elastic = brief->elastic;
  it->world = brief->world;
  it->number = brief->number;
  it->run_cache_bytes = brief->run_cache_bytes;
  it->topo_hash = brief->topo_hash;
  it->identity.host_hash = brief->host_hash;
  it->identity.pid = brief->pid;
  it->processors = brief->processors;
  it->introduction = brief->introduction;
}

static bool need_texts(const lcomm_handshake_brief *all, int size) {
  for (int rank = 0; rank < size; rank++) {
    const lcomm_handshake_brief *it = &all[rank];
    if (it->has_error || it->status != LCOMM_OK || it->texts_hash != all[0].texts_hash ||
        it->topo_hash != all[0].topo_hash) {
      return true;
    }
  }
  return false;
}

static bool need_devices(const lcomm_handshake_brief *all, int size) {
  for (int rank = 0; rank < size; rank++) {
    if (all[rank].has_device) {
      return true;
    }
  }
  return false;
}

static lcomm_status gather(const gathering *g, const void *mine, void *all, size_t size) {
  *g->failed_size = size;
  bool good = all && g->base->allgather(g->base->context, mine, all, size) == 0;
  return good ? LCOMM_OK : all ? LCOMM_ERR_TRANSPORT : LCOMM_ERR_MEMORY;
}

static lcomm_status gather_texts(const gathering *g) {
  lcomm_handshake_texts mine;
  lcomm_handshake_texts *all = calloc((size_t)g->base->world_size, sizeof *all);
  take_texts(g->mine, &mine);
  lcomm_status status = gather(g, &mine, all, sizeof(mine));
  for (int rank = 0; status == LCOMM_OK && rank < g->base->world_size; rank++) {
    lcomm_handshake *it = &g->all[rank];
    memcpy(it->error, all[rank].error, sizeof(it->error));
    memcpy(it->policy, all[rank].policy, sizeof(it->policy));
    memcpy(it->transport, all[rank].transport, sizeof(it->transport));
    memcpy(it->topo_file, all[rank].topo_file, sizeof(it->topo_file));
  }
  free(all);
  return status;
}

static lcomm_status gather_devices(const gathering *g) {
  lcomm_device_identity *all = calloc((size_t)g->base->world_size, sizeof *all);
  lcomm_status status = gather(g, &g->mine->identity.device, all, sizeof *all);
  for (int rank = 0; status == LCOMM_OK && rank < g->base->world_size; rank++) {
    g->all[rank].identity.device = all[rank];
  }
  free(all);
  return status;
}

static lcomm_status gather_all(const gathering *g, lcomm_handshake_brief *briefs) {
  lcomm_handshake_brief mine;
  int size = g->base->world_size;
  summarize(g->mine, &mine);
  LCOMM_TRY(gather(g, &mine, briefs, sizeof(mine)));
  for (int rank = 0; rank < size; rank++) {
    take_brief(g, &briefs[rank], &g->all[rank]);
  }
  if (need_texts(briefs, size)) {
    LCOMM_TRY(gather_texts(g));
  }
  return need_devices(briefs, size) ? gather_devices(g) : LCOMM_OK;
}

lcomm_status lcomm_handshake_gather(const lcomm_bootstrap *base, const lcomm_handshake *mine,
                                    lcomm_handshake *all, size_t *failed_size) {
  gathering g = {.base = base, .mine = mine, .all = all, .failed_size = failed_size};
  lcomm_handshake_brief *briefs = calloc((size_t)base->world_size, sizeof *briefs);
  lcomm_status status = gather_all(&g, briefs);
  free(briefs);
  return status;
}
