/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_SIMULATION_SIMULATE_NETWORK_H
#define LCOMM_TOOLS_SIMULATION_SIMULATE_NETWORK_H

/* Links and ports. A port is where a network card, or a rank inside a node, is joined to all
 * others: full duplex, one queue each way, served in the order of arrival. A message occupies the
 * sending port for size / rate; its first byte arrives one latency later; from then on it occupies
 * the receiving port for size / rate, behind what arrived before it. So one message alone takes
 * latency + size / rate, and messages of many senders share the receiver's rate. Switches have
 * all the memory that this takes and are never the bottleneck.
 *
 * A port may let a burst pass at once after a pause, as a token bucket does. */

#include "tools/simulation/simulate_events.h"

typedef struct simulate_link {
  simulate_time latency;    /* of the first byte */
  double bytes_per_s;       /* on the wire, each way */
  uint32_t packet_size;     /* bytes of a message in a packet; 0: no packets */
  uint32_t packet_extra;    /* headers of a packet, on the wire */
  uint64_t burst_size;      /* bytes on the wire that pass at once after a pause */
  simulate_time message;    /* of a processor, for a message at each end */
  double processor_ns_byte; /* of a processor, for a byte at each end */
  uint64_t rendezvous_size; /* longer messages wait until the receiver has answered; 0: none */
} simulate_link;

typedef struct simulate_port {
  simulate_time sends_until, receives_until; /* when what is queued would be over, had it waited for
                                                the time of a burst first */
  uint64_t sent_bytes;                       /* with packet headers */
  uint64_t messages;                         /* sent */
} simulate_port;

/* Bytes on the wire of a message. */
uint64_t simulate_wire_size(const simulate_link *link, uint64_t size);

/* Time of a message on a wire alone, without latency. */
simulate_time simulate_wire_time(const simulate_link *link, uint64_t size);

/* When the first and the last byte of a message leave that is sent now. */
typedef struct simulate_departure {
  simulate_time first, last;
} simulate_departure;

simulate_departure simulate_port_send(simulate_port *port, const simulate_link *link, uint64_t size,
                                      simulate_time now);

/* When the last byte is there of a message whose first byte arrives now. */
simulate_time simulate_port_receive(simulate_port *port, const simulate_link *link, uint64_t size,
                                    simulate_time now);

/* What a processor does at one end of a message: at once, and while the bytes flow. */
typedef struct simulate_handling {
  simulate_time first, rest;
} simulate_handling;

simulate_handling simulate_handling_of(const simulate_link *link, uint64_t size);

#endif
