/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOPO_TOPO_FILE_H
#define LCOMM_TOPO_TOPO_FILE_H

/* Topologies in files, such as `libcomm-info --measure` prints, and what a run takes from one. */

#include "libcomm/topo/topo.h"

enum { LCOMM_TOPO_FILE_MAX = 4 << 20 }; /* bytes of a file that is read */

/* Read a text as lcomm_topo_load does. Errors, with a sentence in `error`: SYSTEM where it cannot
 * be read, is no ordinary file or too long, WIRE for what is no topology, MEMORY. On failure
 * *topo is empty. Free with lcomm_topo_free. */
lcomm_status lcomm_topo_file_load(const char *path, lcomm_topo *topo, lcomm_why *error);

/* A hash of all that the text form says: equal for equal topologies. 0 for an empty one, and
 * for one whose text finds no memory. */
uint64_t lcomm_topo_hash(const lcomm_topo *topo);

/* What was taken. */
typedef enum lcomm_topo_taken {
  LCOMM_TOPO_TAKEN_NOTHING,
  LCOMM_TOPO_TAKEN_COSTS, /* the file describes other ranks: what each class of link costs */
  LCOMM_TOPO_TAKEN_LINKS  /* ... and which devices reach each other, which nobody here knew */
} lcomm_topo_taken;

/* Add to a topology that ranks have found what a file knows besides. What links cost holds for
 * any ranks. Pairs of devices are taken where the file has the same ranks on the same nodes with
 * the same devices, and the ranks know of no pair themselves (no NVML): what they have found
 * comes first. Nodes, hosts and devices always are those of the ranks. */
lcomm_topo_taken lcomm_topo_take(lcomm_topo *topo, const lcomm_topo *file);

/* Racks likewise, where the ranks name none: by hosts, so that a file serves any ranks on them. All
 * hosts must be in the file, each in one rack, and all ranks of a node in the same; else nothing is
 * taken. */
bool lcomm_topo_take_racks(lcomm_topo *topo, const lcomm_topo *file);

#endif
