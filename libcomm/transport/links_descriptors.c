/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Enough file descriptors, or a sentence: before a transport is opened. */

#include <stdio.h>

#include "libcomm/base/descriptors.h"
#include "libcomm/transport/links.h"

/* For what a communicator opens besides: a progress thread, a trace, devices. */
enum { BESIDES = 4 };

static lcomm_status check_rooms(const lcomm_transport_setup *setup,
                                const lcomm_transport_table *table, const lcomm_links_room *rooms,
                                lcomm_why *why) {
  for (int rank = 0; rank < setup->size; rank++) {
    const lcomm_links_room *room = &rooms[rank];
    if (room->needed > 0 && room->left < room->needed) {
      char what[64], text[LCOMM_DESCRIPTORS_TEXT_MAX];
      snprintf(what, sizeof(what), "%.20s among %d ranks", table->name, setup->size);
      return lcomm_why_set(
          why, LCOMM_ERR_SYSTEM, "rank %d (host %.63s) has too few file descriptors: %s", rank,
          setup->identities[rank].host,
          lcomm_descriptors_lack(room->limit, room->left, room->needed, room->needed, what, text));
    }
  }
  return LCOMM_OK;
}

/* What they said is the same on all ranks. */
static bool have_plenty(const lcomm_transport_setup *setup, const lcomm_transport_table *table,
                        int taken) {
  if (!setup->introductions || !table->descriptors_most) {
    return false;
  }
  for (int rank = 0; rank < setup->size; rank++) {
    int64_t left = setup->introductions[rank].descriptors_left;
    if (left - taken < (int64_t)table->descriptors_most(setup->size) + BESIDES) {
      return false;
    }
  }
  return true;
}

lcomm_status lcomm_links_check_descriptors(const lcomm_transport_setup *setup,
                                           const lcomm_transport_table *table, int taken,
                                           lcomm_links_room *rooms, lcomm_why *why) {
  if (!table->descriptors || have_plenty(setup, table, taken)) {
    return LCOMM_OK;
  }
  int needed = table->descriptors(setup);
  lcomm_links_room mine = {.limit = lcomm_descriptors_limit(),
                           .left = lcomm_descriptors_free(),
                           .needed = needed > 0 ? needed + BESIDES : 0};
  if (setup->bootstrap->allgather(setup->bootstrap->context, &mine, rooms, sizeof(mine)) != 0) {
    return lcomm_why_set(why, LCOMM_ERR_TRANSPORT, "the bootstrap failed before links were opened");
  }
  return check_rooms(setup, table, rooms, why);
}
