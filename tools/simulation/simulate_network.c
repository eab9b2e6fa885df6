/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tools/simulation/simulate_network.h"

enum { HANDLED_AT_ONCE = 64 << 10 }; /* bytes: TCP takes and gives so many at a time */

uint64_t simulate_wire_size(const simulate_link *link, uint64_t size) {
  uint64_t packets = link->packet_size > 0 ? (size + link->packet_size - 1) / link->packet_size : 0;
  return size + packets * link->packet_extra;
}

static simulate_time time_on_wire(const simulate_link *link, uint64_t wire_size) {
  return simulate_time_of((double)wire_size / link->bytes_per_s);
}

simulate_time simulate_wire_time(const simulate_link *link, uint64_t size) {
  return time_on_wire(link, simulate_wire_size(link, size));
}

/* The generic cell rate algorithm: a port that was idle for a while, as all are before the first
 * message, is ahead of its rate by a burst at most. *until: when what is queued would be over if it
 * had waited for the burst first. Returns when the last byte passes; *first, when the first one
 * does. */
static simulate_time pass(simulate_time *until, const simulate_link *link, uint64_t size,
                          simulate_time now, simulate_time *first) {
  simulate_time burst = link->burst_size > 0 ? time_on_wire(link, link->burst_size) : 0;
  simulate_time begin = *until > now ? *until : now;
  *first = begin > now + burst ? begin - burst : now;
  *until = begin + simulate_wire_time(link, size);
  *until = *until < SIMULATE_TIME_MAX ? *until : SIMULATE_TIME_MAX;
  return *until > now + burst ? *until - burst : now;
}

simulate_departure simulate_port_send(simulate_port *port, const simulate_link *link, uint64_t size,
                                      simulate_time now) {
  simulate_departure departure;
  departure.last = pass(&port->sends_until, link, size, now, &departure.first);
  port->sent_bytes += simulate_wire_size(link, size);
  port->messages++;
  return departure;
}

simulate_time simulate_port_receive(simulate_port *port, const simulate_link *link, uint64_t size,
                                    simulate_time now) {
  simulate_time first;
  return pass(&port->receives_until, link, size, now, &first);
}

simulate_handling simulate_handling_of(const simulate_link *link, uint64_t size) {
  uint64_t first = size < HANDLED_AT_ONCE ? size : HANDLED_AT_ONCE;
  return (simulate_handling){
      .first = link->message + simulate_time_of((double)first * link->processor_ns_byte * 1e-9),
      .rest = simulate_time_of((double)(size - first) * link->processor_ns_byte * 1e-9)};
}
