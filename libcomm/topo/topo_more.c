/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What the text form of a topology says after the nodes:
 *
 *   device 0 pci 0000:1b:00.0 uuid 4f3c... index 0 switched 18 ranks 0 1
 *   device 1 pci 0000:43:00.0 cluster 8a01... clique 7 ranks 2
 *   p2p 0 1 2                                 0 with 1, and 0 with 2
 *   nvlink 0 1 links 4
 *   link net latency 20 us bandwidth 3.125 GB/s
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/base/error.h"
#include "libcomm/topo/topo_read.h"

enum { COST_DECIMALS = 6 };

static const int64_t COST_MAX = INT64_C(1000000000000); /* millionths */

static lcomm_status no_memory(const lcomm_topo_reader *r) {
  return lcomm_why_set(
      r->error, LCOMM_ERR_MEMORY,
      "topology, line %d: no memory for the devices; free some memory on this host", r->line);
}

/* ---------------------------------------------------------------- devices */

static lcomm_status load_pci(lcomm_topo_reader *r, lcomm_topo_device *device) {
  LCOMM_TRY(lcomm_topo_expect(r, "pci"));
  lcomm_topo_word w = lcomm_topo_next(r);
  device->pci = lcomm_pci_parse(w.text, w.length);
  return device->pci != 0 ? LCOMM_OK : lcomm_topo_unexpected(r, w, "a PCI id");
}

static lcomm_status load_uuid(lcomm_topo_reader *r, uint8_t uuid[LCOMM_UUID_SIZE]) {
  lcomm_topo_word w = lcomm_topo_next(r);
  if (lcomm_uuid_parse(w.text, w.length, uuid) && !lcomm_uuid_is_zero(uuid)) {
    return LCOMM_OK;
  }
  return lcomm_topo_unexpected(r, w, "a UUID of 32 hexadecimal digits, not all 0,");
}

static lcomm_status load_number(lcomm_topo_reader *r, int lowest, int highest, int *number) {
  char expected[48];
  lcomm_topo_word w = lcomm_topo_next(r);
  *number = lcomm_topo_word_number(w, highest + 1);
  if (*number >= lowest) {
    return LCOMM_OK;
  }
  snprintf(expected, sizeof expected, "a number from %d to %d", lowest, highest);
  return lcomm_topo_unexpected(r, w, expected);
}

/* Cliques use all 32 bits. */
static lcomm_status load_cluster(lcomm_topo_reader *r, lcomm_topo_device *device) {
  LCOMM_TRY(load_uuid(r, device->cluster));
  LCOMM_TRY(lcomm_topo_expect(r, "clique"));
  uint64_t clique = 0;
  lcomm_topo_word w = lcomm_topo_next(r);
  for (size_t i = 0; i < w.length; i++) {
    clique = clique * 10 + (uint64_t)(w.text[i] - '0');
    if (w.text[i] < '0' || w.text[i] > '9' || clique > UINT32_MAX) {
      return lcomm_topo_unexpected(r, w, "a number below 4294967296");
    }
  }
  device->clique = (uint32_t)clique;
  return w.length > 0 ? LCOMM_OK : lcomm_topo_unexpected(r, w, "a number below 4294967296");
}

/* All that may stand between the PCI id and the ranks, in this order. */
static lcomm_status load_facts(lcomm_topo_reader *r, lcomm_topo_device *device) {
  lcomm_topo_word w = lcomm_topo_next(r);
  if (lcomm_topo_word_is(w, "uuid")) {
    LCOMM_TRY(load_uuid(r, device->uuid));
    w = lcomm_topo_next(r);
  }
  if (lcomm_topo_word_is(w, "index")) {
    LCOMM_TRY(load_number(r, 0, LCOMM_DEVICE_INDEX_MAX, &device->index));
    w = lcomm_topo_next(r);
  }
  if (lcomm_topo_word_is(w, "switched")) {
    LCOMM_TRY(load_number(r, 1, LCOMM_NVLINKS_MAX, &device->switched));
    w = lcomm_topo_next(r);
  }
  if (lcomm_topo_word_is(w, "cluster")) {
    LCOMM_TRY(load_cluster(r, device));
    w = lcomm_topo_next(r);
  }
  return lcomm_topo_word_is(w, "ranks") ? LCOMM_OK : lcomm_topo_unexpected(r, w, "'ranks'");
}

static lcomm_status load_device_ranks(lcomm_topo_reader *r, int number, lcomm_topo *topo) {
  for (int count = 0;; count++) {
    lcomm_topo_word w = lcomm_topo_next(r);
    if (w.length == 0 && count > 0) {
      return LCOMM_OK;
    }
    int rank = lcomm_topo_word_number(w, topo->size);
    if (rank < 0) {
      return lcomm_topo_unexpected(r, w, "a rank that is on a node");
    }
    if (topo->device[rank] >= 0) {
      return lcomm_topo_wrong(r, "rank %d already has device %d; list every rank once", rank,
                              topo->device[rank]);
    }
    topo->device[rank] = number;
  }
}

static lcomm_status load_device(lcomm_topo_reader *r, lcomm_topo *topo) {
  int number;
  r->example = "device 0 pci 0000:3b:00.0 ranks 0 1";
  if (!topo->device_list) { /* every device has a rank of its own */
    topo->device_list = calloc((size_t)topo->size, sizeof *topo->device_list);
  }
  if (!topo->device_list) {
    return no_memory(r);
  }
  LCOMM_TRY(load_number(r, 0, LCOMM_TOPO_RANKS_MAX - 1, &number));
  if (number != topo->devices) {
    return lcomm_topo_wrong(r,
                            "device %d where device %d is expected; number devices from 0, in "
                            "order, each with a rank",
                            number, topo->devices);
  }
  if (number == topo->size) {
    return lcomm_topo_wrong(r, "device %d, but there are only %d ranks; list devices with ranks",
                            number, topo->size);
  }
  lcomm_topo_device device = {.index = -1};
  LCOMM_TRY(load_pci(r, &device));
  LCOMM_TRY(load_facts(r, &device));
  LCOMM_TRY(load_device_ranks(r, number, topo));
  topo->device_list[topo->devices++] = device;
  return LCOMM_OK;
}

/* ------------------------------------------------------------------ pairs */

static lcomm_status say(lcomm_topo_reader *r, lcomm_topo_pair pair) {
  if (r->said_count == r->said_room) {
    int room = r->said_room > 0 ? 2 * r->said_room : 64;
    lcomm_topo_said *grown = realloc(r->said, (size_t)room * sizeof *grown);
    if (!grown) {
      return no_memory(r);
    }
    r->said = grown;
    r->said_room = room;
  }
  int a = pair.first, b = pair.second;
  pair.first = a < b ? a : b;
  pair.second = a < b ? b : a;
  r->said[r->said_count++] = (lcomm_topo_said){pair, r->line};
  return LCOMM_OK;
}

/* The word is the number of a device other than `first`, which is -1 when this
 * is the first one. */
static lcomm_status take_device(const lcomm_topo_reader *r, lcomm_topo_word w, int first,
                                const lcomm_topo *topo, int *device) {
  *device = lcomm_topo_word_number(w, topo->devices);
  if (*device < 0) {
    return lcomm_topo_unexpected(r, w, "a device that was listed");
  }
  if (*device == first) {
    return lcomm_topo_wrong(r, "device %d is paired with itself; name two devices", first);
  }
  return LCOMM_OK;
}

static lcomm_status load_p2p(lcomm_topo_reader *r, lcomm_topo *topo) {
  int first, second;
  r->example = "p2p 0 1 2";
  LCOMM_TRY(take_device(r, lcomm_topo_next(r), -1, topo, &first));
  for (int count = 0;; count++) {
    lcomm_topo_word w = lcomm_topo_next(r);
    if (w.length == 0 && count > 0) {
      return LCOMM_OK;
    }
    LCOMM_TRY(take_device(r, w, first, topo, &second));
    LCOMM_TRY(say(r, (lcomm_topo_pair){.first = first, .second = second, .p2p = true}));
  }
}

static lcomm_status load_nvlink(lcomm_topo_reader *r, lcomm_topo *topo) {
  int first, second, links;
  r->example = "nvlink 0 1 links 4";
  LCOMM_TRY(take_device(r, lcomm_topo_next(r), -1, topo, &first));
  LCOMM_TRY(take_device(r, lcomm_topo_next(r), first, topo, &second));
  LCOMM_TRY(lcomm_topo_expect(r, "links"));
  LCOMM_TRY(load_number(r, 1, LCOMM_NVLINKS_MAX, &links));
  return say(r, (lcomm_topo_pair){.first = first, .second = second, .nvlinks = links});
}

static int by_pair_kind_and_line(const void *left, const void *right) {
  const lcomm_topo_said *a = left, *b = right;
  if (a->pair.first != b->pair.first) {
    return a->pair.first < b->pair.first ? -1 : 1;
  }
  if (a->pair.second != b->pair.second) {
    return a->pair.second < b->pair.second ? -1 : 1;
  }
  if (a->pair.p2p != b->pair.p2p) {
    return a->pair.p2p ? -1 : 1;
  }
  return (a->line > b->line) - (a->line < b->line);
}

lcomm_status lcomm_topo_take_pairs(lcomm_topo_reader *r, lcomm_topo *topo) {
  lcomm_topo_index_devices(topo);
  if (r->said_count == 0) {
    return LCOMM_OK;
  }
  topo->pair_list = calloc((size_t)r->said_count, sizeof *topo->pair_list);
  if (!topo->pair_list) {
    return no_memory(r);
  }
  qsort(r->said, (size_t)r->said_count, sizeof *r->said, by_pair_kind_and_line);
  for (int i = 0; i < r->said_count; i++) {
    const lcomm_topo_pair *pair = &r->said[i].pair;
    lcomm_topo_pair *last = topo->pairs > 0 ? &topo->pair_list[topo->pairs - 1] : NULL;
    if (!last || last->first != pair->first || last->second != pair->second) {
      topo->pair_list[topo->pairs++] = *pair;
      continue;
    }
    if (pair->p2p || last->nvlinks > 0) {
      r->line = r->said[i].line;
      return lcomm_topo_wrong(r, "this was already said of devices %d and %d; say it once",
                              pair->first, pair->second);
    }
    last->nvlinks = pair->nvlinks;
  }
  return LCOMM_OK;
}

/* ------------------------------------------------------------------ costs */

/* A number of millionths: digits, and at most six after a point. */
static lcomm_status load_decimal(lcomm_topo_reader *r, const char *unit, double *value) {
  lcomm_topo_word w = lcomm_topo_next(r);
  int64_t millionths = 0;
  size_t whole = 0, point = w.length;
  for (size_t i = 0; i < w.length; i++) {
    bool digit = w.text[i] >= '0' && w.text[i] <= '9', inside = i > 0 && i + 1 < w.length;
    if (w.text[i] == '.' && point == w.length && inside && w.length - i <= COST_DECIMALS + 1) {
      point = i;
    } else if (!digit || millionths > COST_MAX) {
      return lcomm_topo_unexpected(r, w, "a number such as 2.5");
    } else {
      millionths = millionths * 10 + (w.text[i] - '0');
      whole++;
    }
  }
  size_t decimals = point < w.length ? w.length - point - 1 : 0;
  for (; decimals < COST_DECIMALS && millionths <= COST_MAX; decimals++) {
    millionths *= 10;
  }
  if (whole == 0 || millionths > COST_MAX) {
    return lcomm_topo_unexpected(r, w, "a number of at most 1000000");
  }
  *value = (double)millionths / 1e6;
  return lcomm_topo_expect(r, unit);
}

static lcomm_status load_cost(lcomm_topo_reader *r, lcomm_topo *topo) {
  r->example = "link net latency 20 us bandwidth 3.125 GB/s";
  lcomm_topo_word w = lcomm_topo_next(r);
  int link = 0;
  while (link < LCOMM_LINK_COUNT && !lcomm_topo_word_is(w, lcomm_link_name((lcomm_link)link))) {
    link++;
  }
  if (link == LCOMM_LINK_COUNT) {
    return lcomm_topo_unexpected(r, w, "a link class");
  }
  if (!topo->cost[link].assumed) {
    return lcomm_topo_wrong(r, "what %s links cost was already said; say it once",
                            lcomm_link_name((lcomm_link)link));
  }
  lcomm_link_cost cost = {0};
  LCOMM_TRY(lcomm_topo_expect(r, "latency"));
  LCOMM_TRY(load_decimal(r, "us", &cost.latency_us));
  LCOMM_TRY(lcomm_topo_expect(r, "bandwidth"));
  LCOMM_TRY(load_decimal(r, "GB/s", &cost.bandwidth_gb_s));
  if (cost.bandwidth_gb_s <= 0) {
    return lcomm_topo_wrong(r, "a bandwidth of 0 moves nothing; use at least 0.000001 GB/s");
  }
  topo->cost[link] = cost;
  return LCOMM_OK;
}

/* ------------------------------------------------------------------ lines */

lcomm_status lcomm_topo_load_more(lcomm_topo_reader *r, lcomm_topo_word kind, lcomm_topo *topo) {
  static const struct {
    const char *name;
    lcomm_status (*load)(lcomm_topo_reader *r, lcomm_topo *topo);
  } kinds[] = {{"rack", lcomm_topo_load_rack},
               {"device", load_device},
               {"p2p", load_p2p},
               {"nvlink", load_nvlink},
               {"link", load_cost}};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    if (!lcomm_topo_word_is(kind, kinds[i].name)) {
      continue;
    }
    LCOMM_TRY(kinds[i].load(r, topo));
    lcomm_topo_word rest = lcomm_topo_next(r);
    return rest.length == 0 ? LCOMM_OK : lcomm_topo_unexpected(r, rest, "the end of the line");
  }
  if (lcomm_topo_word_is(kind, "node")) {
    return lcomm_topo_wrong(r, "a node after racks, devices or links; list all nodes first");
  }
  r->example = "device 0 pci 0000:3b:00.0 ranks 0 1";
  return lcomm_topo_unexpected(r, kind, "'node', 'rack', 'device', 'p2p', 'nvlink' or 'link'");
}
