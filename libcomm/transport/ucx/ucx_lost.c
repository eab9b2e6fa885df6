/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/transport/ucx/ucx_lost.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/base/log.h"
#include "libcomm/base/writer.h"
#include "libcomm/topo/sysfs_text.h"

/* ------------------------------------------------------------------ memory */

/* Addresses of cards, of all communicators of the process. */
typedef struct memory {
  uint32_t count, of[64];
} memory;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static memory broken, told;

static bool has(const memory *cards, uint32_t address) {
  for (uint32_t i = 0; i < cards->count; i++) {
    if (cards->of[i] == address) {
      return true;
    }
  }
  return false;
}

/* True when it is new. */
static bool remember(memory *cards, uint32_t address) {
  pthread_mutex_lock(&lock);
  bool known = has(cards, address);
  if (!known && cards->count < sizeof(cards->of) / sizeof(cards->of[0])) {
    cards->of[cards->count++] = address;
  }
  pthread_mutex_unlock(&lock);
  return !known;
}

void lcomm_ucx_lost_recall(lcomm_ucx_interfaces *own) {
  pthread_mutex_lock(&lock);
  for (uint32_t i = 0; i < lcomm_ucx_interfaces_count(own); i++) {
    own->broken |= has(&broken, own->entries[i].address) ? UINT32_C(1) << i : 0;
  }
  pthread_mutex_unlock(&lock);
}

/* ----------------------------------------------------------------- finding */

static void add(lcomm_ucx_lost *lost, lcomm_ucx_loss loss) {
  if (lost->count < (int)(sizeof(lost->of) / sizeof(lost->of[0]))) {
    lost->of[lost->count++] = loss;
  }
}

static bool is_rail(const lcomm_ucx_rails *rails, const lcomm_ucx_rail *rail) {
  for (int i = 0; i < rails->count; i++) {
    if (rails->of[i].network == rail->network && rails->of[i].mask == rail->mask) {
      return true;
    }
  }
  return false;
}

/* The first rank whose card is why a network is no rail. */
static int rank_without(const lcomm_ucx_cards *cards, const lcomm_ucx_rail *rail) {
  for (int rank = 0; rank < cards->size; rank++) {
    if (lcomm_ucx_rails_card_usable(&cards->all[rank], rail) < 0) {
      return rank;
    }
  }
  return 0;
}

/* A network in which no host has a card that works is nobody's loss. */
static bool is_used_by_somebody(const lcomm_ucx_cards *cards, const lcomm_ucx_rail *rail) {
  for (int rank = 0; rank < cards->size; rank++) {
    if (lcomm_ucx_rails_card_usable(&cards->all[rank], rail) >= 0) {
      return true;
    }
  }
  return false;
}

void lcomm_ucx_lost_find(const lcomm_ucx_cards *cards, lcomm_ucx_lost *lost) {
  lcomm_ucx_rails whole;
  lost->count = 0;
  if (cards->rails.count == 0) {
    return;
  }
  lcomm_ucx_interfaces *all = malloc((size_t)cards->size * sizeof *all);
  for (int rank = 0; all && rank < cards->size; rank++) {
    all[rank] = cards->all[rank];
    all[rank].down = all[rank].broken = 0;
  }
  whole.count = 0;
  if (all) {
    lcomm_ucx_rails_find(all, cards->size, &whole);
  }
  for (int i = 0; i < whole.count; i++) {
    const lcomm_ucx_rail *rail = &whole.of[i];
    if (!is_rail(&cards->rails, rail) && is_used_by_somebody(cards, rail)) {
      add(lost, (lcomm_ucx_loss){
                    .rail = *rail, .rank = rank_without(cards, rail), .other = -1, .known = true});
    }
  }
  free(all);
}

/* ----------------------------------------------------------------- judging */

typedef struct trial {
  const lcomm_ucx_cards *cards;
  const uint32_t *rails; /* of each rank */
  const unsigned char *reached;
} trial;

static bool failed_over(const trial *t, int a, int b, uint32_t rail) {
  size_t size = (size_t)t->cards->size, x = (size_t)a, y = (size_t)b;
  bool alone = t->rails[a] == rail && t->rails[b] == rail;
  return alone && (t->reached[x * size + y] != 1 || t->reached[y * size + x] != 1) &&
         !lcomm_ucx_interfaces_together(t->cards->all, a, b);
}

/* Is every pair that failed over a rail one of this rank's host? */
static bool explains(const trial *t, uint32_t rail, int host) {
  const lcomm_ucx_interfaces *all = t->cards->all;
  for (int a = 0; a < t->cards->size; a++) {
    for (int b = a + 1; b < t->cards->size; b++) {
      if (failed_over(t, a, b, rail) && !lcomm_ucx_interfaces_together(all, a, host) &&
          !lcomm_ucx_interfaces_together(all, b, host)) {
        return false;
      }
    }
  }
  return true;
}

static lcomm_ucx_loss blame(const trial *t, int rail, int a, int b) {
  bool a_alone = explains(t, UINT32_C(1) << rail, a);
  bool b_alone = explains(t, UINT32_C(1) << rail, b);
  lcomm_ucx_loss loss = {.rail = t->cards->rails.of[rail], .rank = a, .other = b};
  if (a_alone != b_alone) {
    loss.rank = a_alone ? a : b;
    loss.other = -1;
  }
  return loss;
}

static bool judge_rail(const trial *t, int rail, lcomm_ucx_lost *lost) {
  for (int a = 0; a < t->cards->size; a++) {
    for (int b = a + 1; b < t->cards->size; b++) {
      if (failed_over(t, a, b, UINT32_C(1) << rail)) {
        add(lost, blame(t, rail, a, b));
        return true;
      }
    }
  }
  return false;
}

uint32_t lcomm_ucx_lost_judge(const lcomm_ucx_cards *cards, uint32_t used,
                              const unsigned char *reached, lcomm_ucx_lost *lost) {
  uint32_t bad = 0, *rails = malloc((size_t)cards->size * sizeof *rails);
  trial t = {.cards = cards, .rails = rails, .reached = reached};
  for (int rank = 0; rails && rank < cards->size; rank++) {
    rails[rank] = lcomm_ucx_rails_of(cards->all, cards->size, rank, &cards->rails, used);
  }
  for (int rail = 0; rails && rail < cards->rails.count; rail++) {
    bad |= judge_rail(&t, rail, lost) ? UINT32_C(1) << rail : 0;
  }
  free(rails);
  return bad;
}

/* ------------------------------------------------------------------ saying */

enum { NAME_SIZE = LCOMM_NIC_NAME_MAX, SENTENCE_MAX = 640 };

typedef struct telling {
  const lcomm_ucx_cards *cards;
  const lcomm_transport_setup *setup;
  char (*names)[NAME_SIZE]; /* of each rank, for each loss */
  int losses;
} telling;

/* "eth1 (10.77.1.2) of host alpha" */
static void write_card(lcomm_writer *w, const telling *t, int loss, const lcomm_ucx_rail *rail,
                       int rank) {
  const lcomm_ucx_interfaces *host = &t->cards->all[rank];
  int card = lcomm_ucx_rails_card(host, rail);
  char address[INET_ADDRSTRLEN] = "no address", name[LCOMM_NIC_NAME_MAX];
  if (card >= 0) {
    (void)inet_ntop(AF_INET, &host->entries[card].address, address, sizeof(address));
  }
  lcomm_sysfs_name(t->names[(size_t)rank * (size_t)t->losses + (size_t)loss], name);
  lcomm_write(w, "%s (%s) of host %.63s", name, address, t->setup->identities[rank].host);
}

static const char *what_is_wrong(const lcomm_ucx_cards *cards, const lcomm_ucx_loss *loss) {
  const lcomm_ucx_interfaces *host = &cards->all[loss->rank];
  int card = lcomm_ucx_rails_card(host, &loss->rail);
  if (!loss->known) {
    return "leads nowhere: no other host was reached over it";
  }
  return card >= 0 && (host->down >> card & 1) != 0 ? "is down or has no carrier"
                                                    : "led nowhere when it was used before";
}

static void write_sentence(const telling *t, int i, const lcomm_ucx_loss *loss, char *text) {
  char rail[INET_ADDRSTRLEN] = "?";
  lcomm_writer w = lcomm_writer_begin(text, SENTENCE_MAX);
  (void)inet_ntop(AF_INET, &loss->rail.network, rail, sizeof(rail));
  lcomm_write(&w, loss->other < 0 ? "network card " : "network cards ");
  write_card(&w, t, i, &loss->rail, loss->rank);
  if (loss->other < 0) {
    lcomm_write(&w, " %s", what_is_wrong(t->cards, loss));
  } else {
    lcomm_write(&w, " and ");
    write_card(&w, t, i, &loss->rail, loss->other);
    lcomm_write(&w, " do not reach each other");
  }
  lcomm_write(&w,
              "; all ranks go on without %s/%d, over the other cards. See `ip addr` and `ip route` "
              "there, or name the cards to use in LCOMM_RAILS",
              rail, __builtin_popcount(loss->rail.mask));
}

static void say(const telling *t, int i, const lcomm_ucx_loss *loss) {
  char sentence[SENTENCE_MAX];
  const lcomm_ucx_interfaces *host = &t->cards->all[loss->rank];
  int card = lcomm_ucx_rails_card(host, &loss->rail);
  bool is_new = remember(&told, card >= 0 ? host->entries[card].address : loss->rail.network);
  write_sentence(t, i, loss, sentence);
  lcomm_log(t->cards->rank == 0 && is_new ? LCOMM_LOG_WARN : LCOMM_LOG_INFO, sentence);
}

/* A card that leads nowhere takes all others of its rail with it. */
static void remember_own(const lcomm_ucx_cards *cards, const lcomm_ucx_loss *loss) {
  const lcomm_ucx_interfaces *own = &cards->all[cards->rank];
  int card = lcomm_ucx_rails_card(own, &loss->rail);
  if (!loss->known && card >= 0) {
    (void)remember(&broken, own->entries[card].address);
  }
}

void lcomm_ucx_lost_tell(const lcomm_ucx_cards *cards, const lcomm_transport_setup *setup,
                         const lcomm_ucx_lost *lost) {
  size_t row = (size_t)lost->count * NAME_SIZE;
  if (lost->count == 0) {
    return;
  }
  char(*mine)[NAME_SIZE] = calloc((size_t)lost->count, NAME_SIZE);
  telling t = {.cards = cards,
               .setup = setup,
               .names = calloc((size_t)cards->size, row),
               .losses = lost->count};
  for (int i = 0; mine && i < lost->count; i++) {
    int card = lcomm_ucx_rails_card(&cards->all[cards->rank], &lost->of[i].rail);
    snprintf(mine[i], NAME_SIZE, "%.31s", card >= 0 ? cards->names.of[card] : "?");
  }
  bool done = mine && t.names &&
              setup->bootstrap->allgather(setup->bootstrap->context, mine, t.names, row) == 0;
  for (int i = 0; i < lost->count; i++) {
    if (done) {
      say(&t, i, &lost->of[i]);
    }
    remember_own(cards, &lost->of[i]);
  }
  free(mine);
  free(t.names);
}
