/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tools/simulation/simulate_links.h"

#include <string.h>

#include "tools/common/tool_units.h"

/* TCP over Ethernet: 1448 bytes of data in a frame of 1514; a wire adds 24 for preamble, checksum
 * and gap, which a token bucket does not count. RDMA over Ethernet: 4096 in 4178. */
enum { TCP_DATA = 1448, TCP_HEADERS = 66, TCP_ON_WIRE = 90, RDMA_DATA = 4096, RDMA_ON_WIRE = 82 };

enum { TCP_RENDEZVOUS = 64 << 10 };

static const double TCP_MESSAGE_S = 15e-6, TCP_NS_BYTE = 0.4, RDMA_MESSAGE_S = 1e-6;

typedef struct preset {
  const char *name, *what;
  double latency_s, bytes_per_s;
  enum { TCP, RDMA, MEMORY } kind;
} preset;

static const preset between[] = {
    {"1g", "1 Gbit/s Ethernet, TCP, 30 us", 30e-6, 125e6, TCP},
    {"10g", "10 Gbit/s Ethernet, TCP, 20 us", 20e-6, 1.25e9, TCP},
    {"25g", "25 Gbit/s Ethernet, TCP, 20 us", 20e-6, 3.125e9, TCP},
    {"100g", "100 Gbit/s Ethernet, RDMA, 3 us", 3e-6, 12.5e9, RDMA},
    {"400g", "400 Gbit/s Ethernet, RDMA, 3 us", 3e-6, 50e9, RDMA},
    {"cross-region", "1 Gbit/s, TCP, 20 ms", 20e-3, 125e6, TCP},
};

static const preset inside[] = {
    {"shm", "shared memory, 8 GB/s, 0.5 us", 0.5e-6, 8e9, MEMORY},
    {"pcie4", "PCIe 4.0 x16, 25 GB/s, 8 us", 8e-6, 25e9, MEMORY},
    {"pcie5", "PCIe 5.0 x16, 50 GB/s, 8 us", 8e-6, 50e9, MEMORY},
    {"nvlink2", "NVLink of V100, 150 GB/s each way, 5 us", 5e-6, 150e9, MEMORY},
    {"nvlink3", "NVLink of A100, 300 GB/s each way, 5 us", 5e-6, 300e9, MEMORY},
    {"nvlink4", "NVLink of H100, 450 GB/s each way, 5 us", 5e-6, 450e9, MEMORY},
    {"nvlink5", "NVLink of B200, 900 GB/s each way, 5 us", 5e-6, 900e9, MEMORY},
};

enum { BETWEEN = sizeof between / sizeof *between, INSIDE = sizeof inside / sizeof *inside };

static simulate_link make(double latency_s, double bytes_per_s) {
  return (simulate_link){.latency = simulate_time_of(latency_s), .bytes_per_s = bytes_per_s};
}

static simulate_link make_tcp(double latency_s, double bytes_per_s, uint32_t headers) {
  simulate_link link = make(latency_s, bytes_per_s);
  link.packet_size = TCP_DATA;
  link.packet_extra = headers;
  link.message = simulate_time_of(TCP_MESSAGE_S);
  link.processor_ns_byte = TCP_NS_BYTE;
  link.rendezvous_size = TCP_RENDEZVOUS;
  return link;
}

static simulate_link of_preset(const preset *it) {
  if (it->kind == TCP) {
    return make_tcp(it->latency_s, it->bytes_per_s, TCP_ON_WIRE);
  }
  simulate_link link = make(it->latency_s, it->bytes_per_s);
  if (it->kind == RDMA) {
    link.packet_size = RDMA_DATA;
    link.packet_extra = RDMA_ON_WIRE;
    link.message = simulate_time_of(RDMA_MESSAGE_S);
  }
  return link;
}

/* The name of a preset, or a bandwidth, which `of_bandwidth` makes a link of. */
static bool read_link(const char *text, const preset *list, size_t count,
                      simulate_link (*of_bandwidth)(double bytes_per_s), simulate_link *link) {
  for (size_t i = 0; i < count; i++) {
    if (strcmp(text, list[i].name) == 0) {
      *link = of_preset(&list[i]);
      return true;
    }
  }
  double bytes_per_s = 0;
  if (!tool_units_read_bandwidth(text, &bytes_per_s)) {
    return false;
  }
  *link = of_bandwidth(bytes_per_s);
  return true;
}

static simulate_link tcp_of(double bytes_per_s) {
  return make_tcp(30e-6, bytes_per_s, TCP_HEADERS);
}

bool simulate_links_between(const char *text, simulate_link *link) {
  return read_link(text, between, BETWEEN, tcp_of, link);
}

static simulate_link memory_of(double bytes_per_s) {
  return make(0.5e-6, bytes_per_s);
}

bool simulate_links_inside(const char *text, simulate_link *link) {
  return read_link(text, inside, INSIDE, memory_of, link);
}

simulate_link simulate_links_of_cost(const lcomm_link_cost *cost) {
  return make(cost->latency_us * 1e-6, cost->bandwidth_gb_s * 1e9);
}

void simulate_links_list(FILE *file) {
  fputs("Between nodes, for --link:\n", file);
  for (size_t i = 0; i < BETWEEN; i++) {
    fprintf(file, "  %-13s %s\n", between[i].name, between[i].what);
  }
  fputs("Inside nodes, for --inside:\n", file);
  for (size_t i = 0; i < INSIDE; i++) {
    fprintf(file, "  %-13s %s\n", inside[i].name, inside[i].what);
  }
}
