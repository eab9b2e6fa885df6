/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_SIMULATION_SIMULATE_LINKS_H
#define LCOMM_TOOLS_SIMULATION_SIMULATE_LINKS_H

/* Links by name: what they are expected to do, for worlds that are not there. Rates and packets
 * follow from their standards; latencies, and what messages cost processors, are assumed. */

#include <stdio.h>

#include "libcomm/topo/topo.h"
#include "tools/simulation/simulate_network.h"

enum { SIMULATE_LINK_NAME_MAX = 32 };

/* A link between nodes: a preset's name, or a rate such as 200mbit, which is TCP over Ethernet as
 * tools/cluster shapes it. false: neither. */
bool simulate_links_between(const char *text, simulate_link *link);

/* A link inside a node: a preset's name, or a rate such as 20GB. */
bool simulate_links_inside(const char *text, simulate_link *link);

/* What a topology says of a class of links. */
simulate_link simulate_links_of_cost(const lcomm_link_cost *cost);

/* Names with what they mean, a line each. */
void simulate_links_list(FILE *file);

#endif
