/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/transport/ucx/ucx_cards.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/base/env.h"
#include "libcomm/base/writer.h"
#include "libcomm/transport/ucx/ucx_api.h"
#include "libcomm/transport/ucx/ucx_lost.h"

_Static_assert((size_t)LCOMM_UCX_INTERFACES_SIZE <= LCOMM_INTRODUCTION_MAX, "it fits");

/* May UCX use something else than TCP here? Then it chooses. */
static bool has_other_devices(void) {
  const char *tls = lcomm_env_get(LCOMM_ENV_UCX_TLS);
  return (!tls || strcmp(tls, "tcp") != 0) && lcomm_ucx_count_entries(LCOMM_UCX_RDMA_DEVICES) > 0;
}

static void find_own(lcomm_ucx_interfaces *own, lcomm_ucx_names *names) {
  memset(own, 0, sizeof *own);
  lcomm_ucx_interfaces_own(own, names);
  (void)lcomm_ucx_rails_ask(lcomm_env_get(LCOMM_ENV_RAILS), names, own);
  if (lcomm_env_get(LCOMM_ENV_UCX_NET_DEVICES) || has_other_devices()) {
    own->asked = LCOMM_UCX_RAILS_NONE;
  }
  lcomm_ucx_lost_recall(own);
}

void lcomm_ucx_introduce(unsigned char *bytes) {
  lcomm_ucx_interfaces own;
  lcomm_ucx_names names;
  find_own(&own, &names);
  lcomm_ucx_interfaces_pack(&own, bytes);
}

/* The names of cards as they were introduced: some may have come or gone since. */
static void match_names(const lcomm_ucx_interfaces *said, const lcomm_ucx_interfaces *now,
                        const lcomm_ucx_names *names_now, lcomm_ucx_names *names) {
  memset(names, 0, sizeof *names);
  for (uint32_t i = 0; i < lcomm_ucx_interfaces_count(said); i++) {
    for (uint32_t k = 0; k < lcomm_ucx_interfaces_count(now); k++) {
      if (said->entries[i].address == now->entries[k].address) {
        memcpy(names->of[i], names_now->of[k], sizeof(names->of[i]));
        break;
      }
    }
  }
}

/* What each rank says, packed: as it was introduced, or by an allgather. */
static bool gather(const lcomm_transport_setup *setup, const lcomm_ucx_interfaces *own,
                   lcomm_ucx_interfaces *all) {
  unsigned char mine[LCOMM_UCX_INTERFACES_SIZE];
  unsigned char *said = calloc((size_t)setup->size, sizeof(mine));
  const lcomm_bootstrap *bootstrap = setup->bootstrap;
  lcomm_ucx_interfaces_pack(own, mine);
  bool done = all && said &&
              (setup->introductions ||
               bootstrap->allgather(bootstrap->context, mine, said, sizeof(mine)) == 0);
  for (int rank = 0; done && rank < setup->size; rank++) {
    lcomm_ucx_interfaces_unpack(setup->introductions ? setup->introductions[rank].bytes
                                                     : said + (size_t)rank * sizeof(mine),
                                &all[rank]);
  }
  free(said);
  return done;
}

void lcomm_ucx_cards_find(const lcomm_transport_setup *setup, lcomm_ucx_cards *cards) {
  lcomm_ucx_interfaces own;
  lcomm_ucx_names names;
  lcomm_ucx_interfaces *all = calloc((size_t)setup->size, sizeof *all);
  memset(cards, 0, sizeof *cards);
  cards->size = setup->size;
  cards->rank = setup->rank;
  find_own(&own, &names);
  if (!gather(setup, &own, all)) {
    free(all);
    return;
  }
  match_names(&all[setup->rank], &own, &names, &cards->names);
  cards->all = all;
  lcomm_ucx_rails_find(all, setup->size, &cards->rails);
}

void lcomm_ucx_cards_free(lcomm_ucx_cards *cards) {
  free(cards->all);
  cards->all = NULL;
}

lcomm_status lcomm_ucx_cards_check(const lcomm_ucx_cards *cards, lcomm_why *why) {
  const char *asked = lcomm_env_get(LCOMM_ENV_RAILS);
  lcomm_ucx_interfaces own;
  char have[256] = "";
  if (!cards->all || cards->all[cards->rank].asked == LCOMM_UCX_RAILS_NONE) {
    return LCOMM_OK;
  }
  own = cards->all[cards->rank];
  if (own.count == 0 || lcomm_ucx_rails_ask(asked, &cards->names, &own)) {
    return LCOMM_OK;
  }
  lcomm_writer w = lcomm_writer_begin(have, sizeof(have));
  for (uint32_t i = 0; i < lcomm_ucx_interfaces_count(&own); i++) {
    lcomm_write(&w, "%s%s", i > 0 ? ", " : "", cards->names.of[i]);
  }
  return lcomm_why_set(why, LCOMM_ERR_TRANSPORT,
                       "LCOMM_RAILS=%.60s is neither auto, 1 nor all, and names no card of this "
                       "host, which has %.100s",
                       asked, have);
}

void lcomm_ucx_cards_devices(const lcomm_ucx_cards *cards, uint32_t used, char *devices) {
  devices[0] = '\0';
  if (used != 0) {
    uint32_t mine = lcomm_ucx_rails_of(cards->all, cards->size, cards->rank, &cards->rails, used);
    lcomm_ucx_rails_devices(&cards->all[cards->rank], &cards->names, &cards->rails, mine, devices);
  } else if (cards->all) {
    lcomm_ucx_devices_select(cards->all, cards->size, cards->rank, &cards->names, devices);
  }
}
