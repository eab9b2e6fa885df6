/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tools/simulation/simulate_options.h"

/* A link between nodes, with what the command line says of all of them. */
static simulate_link between(const simulate_options *o, simulate_link link) {
  link.latency = o->latency_s >= 0 ? simulate_time_of(o->latency_s) : link.latency;
  link.message = o->message_s >= 0 ? simulate_time_of(o->message_s) : link.message;
  link.processor_ns_byte = o->byte_ns >= 0 ? o->byte_ns : link.processor_ns_byte;
  link.burst_size = o->burst_size;
  return link;
}

simulate_settings simulate_options_settings(const simulate_options *o, size_t link,
                                            const lcomm_topo *topo) {
  simulate_settings settings = {.cards = o->cards,
                                .processors = o->processors,
                                .one_machine = o->one_machine,
                                .cache = (double)o->cache_size,
                                .fills = o->fills,
                                .steps = o->steps};
  for (int i = 0; i < LCOMM_LINK_COUNT; i++) {
    settings.links[i] =
        o->inside.name[0] != '\0' ? o->inside.link : simulate_links_of_cost(&topo->cost[i]);
  }
  simulate_link net = link < o->link_count ? o->links[link].link
                                           : simulate_links_of_cost(&topo->cost[LCOMM_LINK_NET]);
  settings.links[LCOMM_LINK_NET] = between(o, net);
  if (o->server_link.name[0] != '\0') {
    settings.served = between(o, o->server_link.link);
  }
  return settings;
}
