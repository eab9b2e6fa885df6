/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* A switch of Ethernet interfaces that holds every frame for a time, for tools/cluster on
 * kernels without netem: long links, on one machine.
 *
 * It takes frames from the interfaces by packet sockets and gives each to the interface that its
 * destination was last heard on, or to all others. Frames come and go as TCP hands them over, up
 * to 64 KiB with a virtio-net header, so that a byte costs two copies and few system calls. All
 * wait equally long, so one queue in order of arrival holds them. */

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tools/common/tool_options.h"
#include "tools/common/tool_units.h"

enum {
  PORTS_MAX = 66,
  FRAME_MAX = (1 << 16) + 128, /* with both headers */
  HELD_MAX = 256 << 20,        /* bytes; more are lost, as in any switch */
  SOCKET_BUFFER = 32 << 20,
  FRAMES_IN_A_ROW = 64,
  DELAY_MAX_MS = 10000
};

static const char usage[] =
    "usage: cluster_delay --delay MS INTERFACE...\n"
    "Join interfaces of this network namespace to a switch that holds every frame for so long,\n"
    "which `cluster up --delay` starts. Returns when it works; it ends when it is killed.\n"
    "  --delay MS      milliseconds, 0 to 10000, such as 20 or 0.5\n"
    "  --prompt NAME   frames from and to this interface are not held\n"
    "  --version       print the version\n"
    "  --help          this text\n";

typedef struct port {
  int handle;
  bool prompt;
} port;

/* Where an address was last heard. */
typedef struct station {
  uint8_t address[ETH_ALEN];
  int port;
} station;

typedef struct frame {
  struct frame *next;
  int64_t due_ns;
  int from, to; /* ports; to -1: all others */
  size_t size;
  uint8_t bytes[]; /* a virtio_net_hdr, then Ethernet */
} frame;

typedef struct relay {
  int64_t delay_ns;
  int ports;
  port port[PORTS_MAX];
  int stations;
  station station[4 * PORTS_MAX];
  frame *first, **end;
  size_t held_bytes;
} relay;

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* --------------------------------------------------------------- stations */

static int find_station(const relay *r, const uint8_t *address) {
  for (int i = 0; i < r->stations; i++) {
    if (memcmp(r->station[i].address, address, ETH_ALEN) == 0) {
      return i;
    }
  }
  return -1;
}

static void learn(relay *r, const uint8_t *address, int from) {
  int at = find_station(r, address);
  if (at < 0 && r->stations < (int)(sizeof(r->station) / sizeof(r->station[0]))) {
    at = r->stations++;
    memcpy(r->station[at].address, address, ETH_ALEN);
  }
  if (at >= 0) {
    r->station[at].port = from;
  }
}

/* -1: to all others. */
static int destination(const relay *r, const uint8_t *address) {
  int at = (address[0] & 1) ? -1 : find_station(r, address);
  return at < 0 ? -1 : r->station[at].port;
}

/* ----------------------------------------------------------------- frames */

/* What does not fit into the queue of an interface is lost, as on any link. */
static void give(const relay *r, const frame *f) {
  for (int i = 0; i < r->ports; i++) {
    if (i != f->from && (f->to < 0 || f->to == i)) {
      ssize_t sent = send(r->port[i].handle, f->bytes, f->size, MSG_DONTWAIT);
      (void)sent;
    }
  }
}

static bool is_prompt(const relay *r, const frame *f) {
  return r->delay_ns == 0 || r->port[f->from].prompt || (f->to >= 0 && r->port[f->to].prompt);
}

static void hold(relay *r, const frame *f) {
  size_t size = sizeof *f + f->size;
  frame *held = r->held_bytes + size <= HELD_MAX ? malloc(size) : NULL;
  if (!held) {
    return;
  }
  memcpy(held, f, size);
  held->next = NULL;
  held->due_ns = now_ns() + r->delay_ns;
  r->held_bytes += size;
  *r->end = held;
  r->end = &held->next;
}

/* Some frames of one interface. */
static void take(relay *r, int from) {
  static union {
    frame head;
    uint8_t room[sizeof(frame) + FRAME_MAX];
  } one;
  const uint8_t *ethernet = one.head.bytes + sizeof(struct virtio_net_hdr);
  for (int i = 0; i < FRAMES_IN_A_ROW; i++) {
    ssize_t size = recv(r->port[from].handle, one.head.bytes, FRAME_MAX, MSG_DONTWAIT | MSG_TRUNC);
    if (size < 0) {
      return;
    }
    if (size > FRAME_MAX || (size_t)size < sizeof(struct virtio_net_hdr) + ETH_HLEN) {
      continue;
    }
    learn(r, ethernet + ETH_ALEN, from);
    one.head.from = from;
    one.head.to = destination(r, ethernet);
    one.head.size = (size_t)size;
    if (is_prompt(r, &one.head)) {
      give(r, &one.head);
    } else if (one.head.to != from) {
      hold(r, &one.head);
    }
  }
}

static void give_what_is_due(relay *r) {
  int64_t now = now_ns();
  while (r->first && r->first->due_ns <= now) {
    frame *f = r->first;
    give(r, f);
    r->first = f->next;
    r->held_bytes -= sizeof *f + f->size;
    free(f);
  }
  if (!r->first) {
    r->end = &r->first;
  }
}

/* -------------------------------------------------------------------- run */

static void run(relay *r) {
  struct pollfd watched[PORTS_MAX];
  for (int i = 0; i < r->ports; i++) {
    watched[i] = (struct pollfd){.fd = r->port[i].handle, .events = POLLIN};
  }
  for (;;) {
    int64_t left_ns = r->first ? r->first->due_ns - now_ns() : 0;
    left_ns = left_ns > 0 ? left_ns : 0;
    struct timespec wait = {left_ns / 1000000000, left_ns % 1000000000};
    if (ppoll(watched, (nfds_t)r->ports, r->first ? &wait : NULL, NULL) < 0 && errno != EINTR) {
      return;
    }
    for (int i = 0; i < r->ports; i++) {
      if (watched[i].revents) {
        take(r, i);
      }
    }
    give_what_is_due(r);
  }
}

static int trouble(const char *name) {
  fprintf(stderr, "cluster_delay: %s: %s\n", name, strerror(errno));
  return -1;
}

/* All frames that arrive at the interface, none that leave it. */
static int open_port(const char *name) {
  const int on = 1, room = SOCKET_BUFFER;
  struct sockaddr_ll where = {.sll_family = AF_PACKET,
                              .sll_protocol = htons(ETH_P_ALL),
                              .sll_ifindex = (int)if_nametoindex(name)};
  int handle = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
  if (where.sll_ifindex == 0 || handle < 0 ||
      setsockopt(handle, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)) != 0 ||
      setsockopt(handle, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on)) != 0 ||
      setsockopt(handle, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) != 0 ||
      setsockopt(handle, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)) != 0 ||
      bind(handle, (struct sockaddr *)&where, sizeof(where)) != 0) {
    return trouble(name);
  }
  return handle;
}

static bool add_port(relay *r, const char *name, bool prompt) {
  if (r->ports == PORTS_MAX) {
    fprintf(stderr, "cluster_delay: more than %d interfaces\n", PORTS_MAX);
    return false;
  }
  r->port[r->ports] = (port){open_port(name), prompt};
  return r->port[r->ports++].handle >= 0;
}

static bool read_delay(tool_command_line *line, const char *value) {
  relay *r = line->options;
  double ms = 0;
  bool good = tool_units_read_number(value, -1, &ms) && ms >= 0 && ms <= DELAY_MAX_MS;
  r->delay_ns = (int64_t)(ms * 1e6);
  return good;
}

static bool read_prompt(tool_command_line *line, const char *value) {
  return add_port(line->options, value, true);
}

static void help(void) {
  fputs(usage, stdout);
}

static tool_parse read_options(tool_command_line *line) {
  static const tool_option known[] = {
      TOOL_READ(0, "delay", read_delay), TOOL_READ(0, "prompt", read_prompt), {0}};
  relay *r = line->options;
  r->delay_ns = -1;
  tool_parse parse = tool_options_parse(line, known);
  if (parse == TOOL_RUN && (r->delay_ns < 0 || line->operand_count == 0)) {
    tool_refuse(line, "a delay of 0 to %d ms and interfaces are needed", DELAY_MAX_MS);
    return TOOL_USAGE;
  }
  return parse;
}

int main(int argc, char **argv) {
  static relay r;
  char error[TOOL_ERROR_MAX];
  tool_command_line line = {.argc = argc, .argv = argv, .options = &r, .error = error};
  r.end = &r.first;
  tool_parse parse = read_options(&line);
  if (parse != TOOL_RUN) {
    return tool_answer("cluster_delay", parse, help, error);
  }
  for (size_t i = 0; i < line.operand_count; i++) {
    if (!add_port(&r, line.operands[i], false)) {
      return 1;
    }
  }
  if (daemon(0, 0) != 0) {
    (void)trouble("it cannot go to the background");
    return 1;
  }
  run(&r);
  return 1;
}
