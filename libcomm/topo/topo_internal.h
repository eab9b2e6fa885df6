/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOPO_TOPO_INTERNAL_H
#define LCOMM_TOPO_TOPO_INTERNAL_H

/* The steps in which every topology is made: reserve, fill in node[] and
 * host[], index, add devices. */

#include "libcomm/base/writer.h"
#include "libcomm/topo/topo.h"

/* Zeroed arrays for `size` ranks and as many nodes, size > 0; no rank has a
 * device, and the costs are assumed. On failure *topo is empty. */
lcomm_status lcomm_topo_reserve(lcomm_topo *topo, int size);

/* Derive all else from size, nodes and node[], which are right: every node
 * below `nodes` has a rank, and nodes are numbered by their lowest rank. */
void lcomm_topo_index(lcomm_topo *topo);

/* The devices of the identities and what they say of each other. Only what both
 * ends say of a pair counts, and an identity that breaks its own limits has no
 * device. posed: ranks pose as nodes. Of two ranks with one device, the lower one
 * is believed. */
lcomm_status lcomm_topo_add_devices(const lcomm_identity *identities, bool posed, lcomm_topo *topo);

/* Derive device_members, and first and ranks of every device, from device[]. */
void lcomm_topo_index_devices(lcomm_topo *topo);

/* The racks of nodes that have these names, one for each node. MEMORY; then there are none. */
lcomm_status lcomm_racks_make(lcomm_racks *racks, const char (*names)[LCOMM_RACK_MAX], int nodes);
void lcomm_racks_free(lcomm_racks *racks);

/* A line for each rack, as topo_racks_text.c reads it. */
void lcomm_topo_print_racks(lcomm_writer *w, const lcomm_racks *racks);

/* The racks that the identities name, once the nodes are known. Names may hold any bytes. Errors as
 * lcomm_topo_create. */
lcomm_status lcomm_topo_add_racks(const lcomm_identity *identities, lcomm_topo *topo,
                                  lcomm_why *error);

/* Copy a name of at most `length` bytes, ended by a zero if it is shorter,
 * that may hold any bytes: what is not visible ASCII becomes '?', what does
 * not fit is cut, and an empty name is "?". */
void lcomm_host_copy(char host[LCOMM_HOST_MAX], const char *name, size_t length);

/* The same of a rack's name, but an empty one stays empty. */
void lcomm_rack_copy(char rack[LCOMM_RACK_MAX], const char *name, size_t length);

#endif
