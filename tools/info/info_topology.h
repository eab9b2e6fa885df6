/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_INFO_INFO_TOPOLOGY_H
#define LCOMM_TOOLS_INFO_INFO_TOPOLOGY_H

/* The topology that libcomm-info is asked about, and how it is shown: all but the
 * lines of the topology itself is for people and begins with '#'. */

#include "libcomm/topo/topo.h"
#include "tools/info/info_options.h"

/* Of the real ranks, of supposed ones, or of a file. Collective over
 * MPI_COMM_WORLD. On failure a sentence is written into error. */
lcomm_status info_topology_find(const info_options *o, lcomm_topo *topo, lcomm_why *error);

/* This host. */
void info_print_machine(void);

/* Which network cards the ranks would use, as text to free; NULL without memory. All ranks call it.
 */
char *info_rails(void);

/* The topology as text that loads back; all its links, and what they cost. */
void info_print_ranks(const lcomm_topo *topo);
void info_print_links(const lcomm_topo *topo);

#endif
