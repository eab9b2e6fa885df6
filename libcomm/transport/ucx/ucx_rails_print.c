/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Rails as text for people. */

#include <arpa/inet.h>
#include <stdlib.h>

#include "libcomm/base/writer.h"
#include "libcomm/transport/ucx/ucx_internal.h"
#include "libcomm/transport/ucx/ucx_lost.h"

enum { RANKS_SHOWN = 16 };

static void write_network(lcomm_writer *w, const lcomm_ucx_rail *rail) {
  char text[INET_ADDRSTRLEN] = "?";
  (void)inet_ntop(AF_INET, &rail->network, text, sizeof(text));
  lcomm_write(w, "%s/%d", text, __builtin_popcount(rail->mask));
}

static void write_ranks(lcomm_writer *w, const lcomm_ucx_cards *cards, uint32_t used, int rail) {
  int count = 0;
  for (int rank = 0; rank < cards->size; rank++) {
    uint32_t mine = lcomm_ucx_rails_of(cards->all, cards->size, rank, &cards->rails, used);
    bool on = (mine >> rail & 1) != 0;
    if (on && count < RANKS_SHOWN) {
      lcomm_write(w, "%s %d", count == 0 ? ": ranks" : ",", rank);
    }
    count += on;
  }
  if (count > RANKS_SHOWN) {
    lcomm_write(w, " and %d more", count - RANKS_SHOWN);
  }
}

static void write_rail(lcomm_writer *w, const lcomm_ucx_cards *cards, uint32_t used, int i) {
  const lcomm_ucx_rail *rail = &cards->rails.of[i];
  int card = lcomm_ucx_rails_card_usable(&cards->all[cards->rank], rail);
  lcomm_write(w, "# rail %-6d ", i);
  write_network(w, rail);
  lcomm_write(w, ", here %s", card >= 0 ? cards->names.of[card] : "?");
  if (rail->speed_mbit_s > 0) {
    lcomm_write(w, ", %lu Mbit/s", (unsigned long)rail->speed_mbit_s);
  }
  if ((used >> i & 1) != 0) {
    write_ranks(w, cards, used, i);
  } else {
    lcomm_write(w, ": slower, used where the others fail");
  }
  lcomm_write(w, "\n");
}

static void write_lost(lcomm_writer *w, const lcomm_ucx_cards *cards) {
  lcomm_ucx_lost lost;
  lcomm_ucx_lost_find(cards, &lost);
  for (int i = 0; i < lost.count; i++) {
    lcomm_write(w, "# left out    ");
    write_network(w, &lost.of[i].rail);
    lcomm_write(w, ": the card of rank %d's host is down or has no carrier\n", lost.of[i].rank);
  }
}

size_t lcomm_ucx_rails_print(const lcomm_transport_introduction *all, int size, int rank,
                             char *text, size_t room) {
  lcomm_ucx_cards cards;
  const lcomm_transport_setup setup = {.rank = rank, .size = size, .introductions = all};
  lcomm_writer w = lcomm_writer_begin(text, room);
  lcomm_ucx_cards_find(&setup, &cards);
  uint32_t used = lcomm_ucx_rails_fastest(&cards.rails, lcomm_ucx_rails_every(&cards.rails));
  for (int i = 0; i < cards.rails.count; i++) {
    write_rail(&w, &cards, used, i);
  }
  if (cards.rails.count > 0) {
    write_lost(&w, &cards);
  } else {
    lcomm_write(&w, "# rails       none: one host, or no network in which each host has a card, "
                    "or UCX's own choice\n");
  }
  lcomm_ucx_cards_free(&cards);
  return w.length;
}
