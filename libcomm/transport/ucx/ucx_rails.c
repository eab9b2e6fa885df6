/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/transport/ucx/ucx_rails.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef lcomm_ucx_interfaces interfaces;

/* ------------------------------------------------------------------ asking */

/* Is the name one of the words between the commas? */
static bool names_card(const char *list, const char *name) {
  size_t length = strlen(name);
  for (const char *word = list; *word;) {
    size_t size = strcspn(word, ",");
    if (length > 0 && size == length && memcmp(word, name, size) == 0) {
      return true;
    }
    word += size + (word[size] == ',');
  }
  return false;
}

static bool ask_for_names(const char *list, const lcomm_ucx_names *names, interfaces *own) {
  bool any = false;
  own->unwanted = 0;
  for (uint32_t i = 0; i < lcomm_ucx_interfaces_count(own); i++) {
    bool wanted = names_card(list, names->of[i]);
    own->unwanted |= wanted ? 0 : UINT32_C(1) << i;
    any |= wanted;
  }
  return any;
}

bool lcomm_ucx_rails_ask(const char *asked, const lcomm_ucx_names *names, interfaces *own) {
  own->asked = LCOMM_UCX_RAILS_AUTO;
  if (!asked || strcmp(asked, "auto") == 0) {
    return true;
  }
  if (strcmp(asked, "1") == 0 || strcmp(asked, "all") == 0) {
    own->asked = asked[0] == '1' ? LCOMM_UCX_RAILS_ONE : LCOMM_UCX_RAILS_ALL;
    return true;
  }
  return ask_for_names(asked, names, own);
}

/* ----------------------------------------------------------------- finding */

static int card_without(const interfaces *host, const lcomm_ucx_rail *rail, uint32_t useless) {
  for (uint32_t i = 0; i < lcomm_ucx_interfaces_count(host); i++) {
    bool inside = host->entries[i].mask == rail->mask &&
                  (host->entries[i].address & rail->mask) == rail->network;
    if (inside && (useless >> i & 1) == 0) {
      return (int)i;
    }
  }
  return -1;
}

int lcomm_ucx_rails_card(const interfaces *host, const lcomm_ucx_rail *rail) {
  int usable = lcomm_ucx_rails_card_usable(host, rail);
  return usable >= 0 ? usable : card_without(host, rail, 0);
}

int lcomm_ucx_rails_card_usable(const interfaces *host, const lcomm_ucx_rail *rail) {
  return card_without(host, rail, host->down | host->unwanted | host->broken);
}

/* Is it a rail of all ranks? Its speed becomes that of its slowest card. The address of the first
 * rank's card is compared with all others: bridges for containers have the same on every host. */
static bool is_rail(const interfaces *all, int size, lcomm_ucx_rail *rail) {
  uint32_t first = 0;
  for (int rank = 0; rank < size; rank++) {
    int card = lcomm_ucx_rails_card_usable(&all[rank], rail);
    if (card < 0) {
      return false;
    }
    uint32_t address = all[rank].entries[card].address;
    uint32_t speed_mbit_s = all[rank].entries[card].speed_mbit_s;
    if (rank == 0) {
      first = address;
      rail->speed_mbit_s = speed_mbit_s;
    } else if (address == first && !lcomm_ucx_interfaces_together(all, 0, rank)) {
      return false;
    }
    rail->speed_mbit_s = speed_mbit_s < rail->speed_mbit_s ? speed_mbit_s : rail->speed_mbit_s;
  }
  return true;
}

static bool are_shared_out(const interfaces *all, int size) {
  bool others = false;
  for (int rank = 0; rank < size; rank++) {
    if (all[rank].asked >= LCOMM_UCX_RAILS_NONE) {
      return false;
    }
    others |= !lcomm_ucx_interfaces_together(all, 0, rank);
  }
  return others;
}

static bool is_known(const lcomm_ucx_rails *rails, const lcomm_ucx_rail *rail) {
  for (int i = 0; i < rails->count; i++) {
    if (rails->of[i].network == rail->network && rails->of[i].mask == rail->mask) {
      return true;
    }
  }
  return false;
}

static int in_order(const void *a, const void *b) {
  const lcomm_ucx_rail *x = a, *y = b;
  if (x->speed_mbit_s != y->speed_mbit_s) {
    return x->speed_mbit_s > y->speed_mbit_s ? -1 : 1;
  }
  uint32_t p = ntohl(x->network), q = ntohl(y->network);
  return p != q ? (p < q ? -1 : 1) : (int)(ntohl(x->mask) > ntohl(y->mask));
}

void lcomm_ucx_rails_find(const interfaces *all, int size, lcomm_ucx_rails *rails) {
  memset(rails, 0, sizeof *rails);
  if (!are_shared_out(all, size)) {
    return;
  }
  for (uint32_t i = 0; i < lcomm_ucx_interfaces_count(&all[0]); i++) {
    uint32_t mask = all[0].entries[i].mask;
    lcomm_ucx_rail rail = {.network = all[0].entries[i].address & mask, .mask = mask};
    if (rails->count < LCOMM_UCX_RAILS_MAX && !is_known(rails, &rail) &&
        is_rail(all, size, &rail)) {
      rails->of[rails->count++] = rail;
    }
  }
  qsort(rails->of, (size_t)rails->count, sizeof(rails->of[0]), in_order);
}

/* ------------------------------------------------------------- sharing out */

uint32_t lcomm_ucx_rails_every(const lcomm_ucx_rails *rails) {
  return (UINT32_C(1) << rails->count) - 1;
}

uint32_t lcomm_ucx_rails_first(uint32_t set) {
  return set & (~set + 1);
}

uint32_t lcomm_ucx_rails_fastest(const lcomm_ucx_rails *rails, uint32_t left) {
  uint32_t found = 0, speed_mbit_s = 0;
  for (int i = 0; i < rails->count; i++) {
    bool is_left = (left >> i & 1) != 0;
    if (is_left && found == 0) {
      speed_mbit_s = rails->of[i].speed_mbit_s;
    }
    found |= is_left && rails->of[i].speed_mbit_s == speed_mbit_s ? UINT32_C(1) << i : 0;
  }
  return found;
}

/* The rail for the next rank of a host: of those that have room the nearest, of those the one with
 * the fewest ranks. */
static int take(const interfaces *rank, const lcomm_ucx_rails *rails, uint32_t used, int room,
                const int *ranks) {
  int best = -1;
  bool best_near = false;
  for (int i = 0; i < rails->count; i++) {
    if ((used >> i & 1) == 0 || ranks[i] >= room) {
      continue;
    }
    int card = lcomm_ucx_rails_card_usable(rank, &rails->of[i]);
    bool near = card >= 0 && (rank->near >> card & 1) != 0;
    if (best < 0 || (near && !best_near) || (near == best_near && ranks[i] < ranks[best])) {
      best = i;
      best_near = near;
    }
  }
  return best;
}

static int count_of_host(const interfaces *all, int size, int rank) {
  int count = 0;
  for (int other = 0; other < size; other++) {
    count += lcomm_ucx_interfaces_together(all, rank, other);
  }
  return count;
}

static int rail_in_turn(const interfaces *all, int size, int rank, const lcomm_ucx_rails *rails,
                        uint32_t used) {
  int ranks[LCOMM_UCX_RAILS_MAX] = {0}, ways = __builtin_popcount(used), taken = -1;
  int room = (count_of_host(all, size, rank) + ways - 1) / ways;
  for (int other = 0; other <= rank; other++) {
    if (lcomm_ucx_interfaces_together(all, rank, other)) {
      taken = take(&all[other], rails, used, room, ranks);
      ranks[taken]++;
    }
  }
  return taken;
}

uint32_t lcomm_ucx_rails_of(const interfaces *all, int size, int rank, const lcomm_ucx_rails *rails,
                            uint32_t used) {
  if (all[rank].asked == LCOMM_UCX_RAILS_ALL) {
    return used;
  }
  if (all[rank].asked == LCOMM_UCX_RAILS_ONE) {
    return lcomm_ucx_rails_first(used);
  }
  return UINT32_C(1) << rail_in_turn(all, size, rank, rails, used);
}

void lcomm_ucx_rails_devices(const interfaces *host, const lcomm_ucx_names *names,
                             const lcomm_ucx_rails *rails, uint32_t mine, char *devices) {
  size_t used = 0;
  devices[0] = '\0';
  for (int i = 0; i < rails->count; i++) {
    int card = lcomm_ucx_rails_card_usable(host, &rails->of[i]);
    if ((mine >> i & 1) != 0 && card >= 0 && used + 64 < LCOMM_UCX_DEVICES_MAX) {
      used +=
          (size_t)snprintf(devices + used, LCOMM_UCX_DEVICES_MAX - used, "%s,", names->of[card]);
    }
  }
  snprintf(devices + used, LCOMM_UCX_DEVICES_MAX - used, "lo");
}
