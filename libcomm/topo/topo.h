/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOPO_TOPO_H
#define LCOMM_TOPO_TOPO_H

/* Which rank is where, and which link lies between two ranks. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libcomm/base/error.h"
#include "libcomm/include/libcomm.h"
#include "libcomm/topo/pci.h"

enum {
  LCOMM_HOST_MAX = 64,
  LCOMM_RACK_MAX = 32,         /* name of a rack, with the terminator */
  LCOMM_DEVICE_PEERS_MAX = 31, /* other devices of a host */
  LCOMM_NVLINKS_MAX = 255,
  LCOMM_DEVICE_INDEX_MAX = 65535,
  LCOMM_AUTO_CODECS = 9
};

/* Another device of the host, as seen from a rank's own. */
typedef struct lcomm_device_peer {
  lcomm_pci pci;
  uint32_t nvlinks; /* that end there */
  uint32_t p2p;     /* 1: its memory can be read and written, else 0 */
} lcomm_device_peer;

/* The device that holds a rank's data. */
typedef struct lcomm_device_identity {
  lcomm_pci pci;                    /* 0: no device, the data is in host memory */
  uint8_t uuid[LCOMM_UUID_SIZE];    /* slices of one GPU differ here */
  uint8_t cluster[LCOMM_UUID_SIZE]; /* NVLink domain, which may span hosts; all zero: none */
  uint32_t clique;                  /* part of the domain that is connected */
  int32_t index;                    /* for people; -1: unknown */
  uint32_t switched;                /* NVLinks that end in a switch */
  uint32_t peers;
  lcomm_device_peer peer[LCOMM_DEVICE_PEERS_MAX];
} lcomm_device_identity;

/* What a rank knows of itself before it has met the others; exchanged as
 * plain bytes, so it has no pointers and no padding that is not zeroed. */
typedef struct lcomm_identity {
  char host[LCOMM_HOST_MAX]; /* host name for people, zero-terminated */
  char rack[LCOMM_RACK_MAX]; /* LCOMM_RACK, likewise; "": not known */
  uint64_t host_hash;        /* hostname + boot id + device of /dev/shm, or LCOMM_HOSTID */
  uint64_t pid;
  lcomm_device_identity device;
} lcomm_identity;

/* Find out the identity of this process, without a device. LCOMM_HOSTID
 * replaces the identity of the host and is then also shown as its name. Cannot
 * fail: what cannot be read counts as empty. */
void lcomm_identity_self(lcomm_identity *identity);

/* Add the device that is current in this thread, if the program uses devices and
 * libcomm can; the first call opens NVML. A rank that
 * poses by LCOMM_HOSTID is in no NVLink domain. */
void lcomm_identity_device(lcomm_identity *identity);

/* Add the rack that LCOMM_RACK names; without it the identity has none. ARGUMENT, with a sentence
 * in `error`, for what is no name: it has 1 to 31 visible ASCII characters. */
lcomm_status lcomm_identity_rack(lcomm_identity *identity, lcomm_why *error);

/* Processors that this process may use, at least 1. */
int lcomm_topo_processors(void);

/* What a message of s bytes takes on a link: latency + s / bandwidth. */
typedef struct lcomm_link_cost {
  double latency_us, bandwidth_gb_s; /* the text form has multiples of 0.000001 */
  bool assumed;                      /* of the standard table, not measured */
  double message_us; /* of a processor at either end, for each message; 0: not measured. No text
                      * form has it */
} lcomm_link_cost;

/* Float32 bytes that one core encodes or decodes in a nanosecond (GB/s); 0: not measured. And what
 * each payload costs besides. */
typedef struct lcomm_codec_cost {
  double encode_gb_s, decode_gb_s;
  double encode_us, decode_us;
} lcomm_codec_cost;

/* The standard table. It is a guess at the machines of today, for plans only. */
lcomm_link_cost lcomm_link_cost_assumed(lcomm_link link);

/* A device that holds the data of at least one rank. */
typedef struct lcomm_topo_device {
  lcomm_pci pci;
  uint8_t uuid[LCOMM_UUID_SIZE], cluster[LCOMM_UUID_SIZE];
  uint32_t clique;
  int index; /* -1: unknown */
  int switched;
  int first, ranks; /* of device_members, those that are its ranks */
} lcomm_topo_device;

/* Two devices of one host, first < second, of which something is known. */
typedef struct lcomm_topo_pair {
  int first, second;
  int nvlinks; /* that lead from one to the other */
  bool p2p;    /* each can read and write the other */
} lcomm_topo_pair;

/* Racks: nodes with a fast network among them, such as one switch. */
typedef struct lcomm_racks {
  int count;    /* racks, numbered by their lowest node; 0: not known, and no arrays */
  int *of;      /* rack of each node */
  int *place;   /* of each node in its rack, in the order of nodes */
  int *members; /* nodes sorted by rack, then node */
  int *first;   /* index into members of each rack's first node; count + 1 entries */
  char (*name)[LCOMM_RACK_MAX]; /* of each rack */
} lcomm_racks;

typedef struct lcomm_topo {
  int size;       /* ranks */
  int nodes;      /* nodes, numbered by their lowest rank */
  int *node;      /* node of each rank */
  int *local;     /* local rank of each rank, in rank order inside the node */
  int *node_size; /* ranks of each node */
  int *members;   /* ranks sorted by node, then rank */
  int *first;     /* index into members of each node's first rank; nodes + 1 entries */
  char (*host)[LCOMM_HOST_MAX]; /* host name of each rank */
  lcomm_racks racks;
  int *device;           /* device of each rank, -1 for none */
  bool all_have_devices; /* chunks of plans are as long as devices like them */
  int *device_members;   /* ranks with a device, sorted by device, then rank */
  int devices;
  lcomm_topo_device *device_list;
  int pairs;
  lcomm_topo_pair *pair_list; /* sorted */
  lcomm_link_cost cost[LCOMM_LINK_COUNT];
  lcomm_codec_cost codec_cost[LCOMM_AUTO_CODECS]; /* of the candidates of net=auto (policy.h) */
  int hidden_from; /* the first candidate that hides behind the computation: no coarser one is
                    * needed; LCOMM_AUTO_CODECS: not known */
} lcomm_topo;

/* Group the identities of all ranks, and their nodes by racks where they name any. forced_nodes > 0
 * poses as that many nodes instead: ranks are cut into that many runs of equal length, the first
 * size % forced_nodes of them one longer. Errors, with a sentence in `error`:
 * ARGUMENT if a node would have no rank, if ranks of one node name different racks, or only some
 * ranks name one; MEMORY. Free with lcomm_topo_free. */
lcomm_status lcomm_topo_create(const lcomm_identity *identities, int size, int forced_nodes,
                               lcomm_topo *topo, lcomm_why *error);
void lcomm_topo_free(lcomm_topo *topo);

/* Link class between two ranks, the same from both ends. Inside a node, by
 * their devices: same-device; nvlink, directly or through switches, where they
 * can read and write each other; pcie where they can without NVLink; else, and
 * without devices, shm. Between nodes: nvlink in one part of an NVLink domain,
 * else net. Ranks that pose as nodes are always net. */
lcomm_link lcomm_topo_link(const lcomm_topo *topo, int a, int b);

/* Rank number `local` of node `node`. */
int lcomm_topo_rank(const lcomm_topo *topo, int node, int local);

/* Nodes of a rack, of the smallest and of the largest one; 0 where there are no racks. */
static inline int lcomm_rack_size(const lcomm_racks *racks, int rack) {
  return racks->first[rack + 1] - racks->first[rack];
}
int lcomm_racks_smallest(const lcomm_racks *racks);
int lcomm_racks_largest(const lcomm_racks *racks);

/* Are two ranks of different nodes in one rack? */
bool lcomm_topo_shares_rack(const lcomm_topo *topo, int a, int b);

/* A group: an ordered list of ranks and my place in it. Views, owns nothing. */
typedef struct lcomm_group {
  const int *ranks; /* size entries */
  int size;
  int me; /* my index, or -1 when I am not in it */
} lcomm_group;

/* The ranks of one node, in rank order. */
lcomm_group lcomm_topo_node_group(const lcomm_topo *topo, int node, int rank);

/* Text form, a line for each node, device and known link (README.md has the
 * grammar); loads back into an equal topology. print returns the length needed
 * without the terminator and writes at most size bytes. load: WIRE for any
 * malformed text (with a sentence in error), MEMORY. */
size_t lcomm_topo_print(const lcomm_topo *topo, char *text, size_t size);
lcomm_status lcomm_topo_load(const char *text, lcomm_topo *topo, lcomm_why *error);

/* For people: the link class of every two ranks (of few ranks; of many, how
 * often each class occurs), and what the links cost. Every line begins with
 * '#', so that it may stand in a text to load. As lcomm_topo_print. */
size_t lcomm_topo_matrix(const lcomm_topo *topo, char *text, size_t size);

#endif
