/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tools/simulation/simulate_options.h"

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
  simulate_link *net = &settings.links[LCOMM_LINK_NET];
  *net = link < o->link_count ? o->links[link].link
                              : simulate_links_of_cost(&topo->cost[LCOMM_LINK_NET]);
  net->latency = o->latency_s >= 0 ? simulate_time_of(o->latency_s) : net->latency;
  net->message = o->message_s >= 0 ? simulate_time_of(o->message_s) : net->message;
  net->processor_ns_byte = o->byte_ns >= 0 ? o->byte_ns : net->processor_ns_byte;
  net->burst_size = o->burst_size;
  return settings;
}
