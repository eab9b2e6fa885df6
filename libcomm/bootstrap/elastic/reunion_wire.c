/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/bootstrap/elastic/reunion_wire.h"

#include "codecs/little_endian.h"

void lcomm_reunion_pack_address(const lcomm_reunion_address *it, uint8_t *bytes) {
  lcomm_store_pack_place(&it->place, bytes);
  lcomm_le_put(bytes + LCOMM_STORE_PLACE_SIZE, it->family, 4);
  lcomm_le_put(bytes + LCOMM_STORE_PLACE_SIZE + 4, 0, 4);
}

lcomm_status lcomm_reunion_read_address(const uint8_t *bytes, lcomm_reunion_address *it) {
  LCOMM_TRY(lcomm_store_read_place(bytes, &it->place));
  it->family = (uint32_t)lcomm_le_get(bytes + LCOMM_STORE_PLACE_SIZE, 4);
  bool is_somewhere = it->place.way >= LCOMM_STORE_WAY_BESIDE;
  bool fits = is_somewhere ? it->family == 4 || it->family == 6
                           : it->place.way == LCOMM_STORE_WAY_STAR && it->family == 0;
  return fits ? LCOMM_OK : LCOMM_ERR_WIRE;
}

/* ------------------------------------------------------------------- lists */

size_t lcomm_reunion_list_size(const lcomm_reunion_list *list) {
  return LCOMM_REUNION_LIST_HEAD + 4 * (size_t)(list->survivors + list->dead);
}

void lcomm_reunion_pack_list(const lcomm_reunion_list *list, uint8_t *bytes) {
  lcomm_le_put(bytes, (uint64_t)list->survivors, 4);
  lcomm_le_put(bytes + 4, (uint64_t)list->dead, 4);
  for (int i = 0; i < list->survivors + list->dead; i++) {
    lcomm_le_put(bytes + LCOMM_REUNION_LIST_HEAD + 4 * (size_t)i, (uint64_t)list->seats[i], 4);
  }
}

/* Seats of the survivors and of the dead ascend, each for themselves; nobody is both. */
static bool is_sound(const lcomm_reunion_list *list, int seats) {
  int all = list->survivors + list->dead, other = list->survivors;
  for (int i = 0; i < all; i++) {
    bool first = i == 0 || i == list->survivors;
    if (list->seats[i] >= seats || (!first && list->seats[i] <= list->seats[i - 1])) {
      return false;
    }
  }
  for (int i = 0; i < list->survivors; i++) {
    while (other < all && list->seats[other] < list->seats[i]) {
      other++;
    }
    if (other < all && list->seats[other] == list->seats[i]) {
      return false;
    }
  }
  return true;
}

lcomm_status lcomm_reunion_read_list(const uint8_t *bytes, size_t size, int seats,
                                     lcomm_reunion_list *list) {
  if (size < LCOMM_REUNION_LIST_HEAD) {
    return LCOMM_ERR_WIRE;
  }
  uint64_t survivors = lcomm_le_get(bytes, 4), dead = lcomm_le_get(bytes + 4, 4);
  if (survivors == 0 || survivors + dead > (uint64_t)seats ||
      size != LCOMM_REUNION_LIST_HEAD + 4 * (survivors + dead)) {
    return LCOMM_ERR_WIRE;
  }
  list->survivors = (int)survivors;
  list->dead = (int)dead;
  for (size_t i = 0; i < survivors + dead; i++) {
    uint64_t seat = lcomm_le_get(bytes + LCOMM_REUNION_LIST_HEAD + 4 * i, 4);
    list->seats[i] = seat < (uint64_t)seats ? (int)seat : seats;
  }
  return is_sound(list, seats) ? LCOMM_OK : LCOMM_ERR_WIRE;
}

/* ------------------------------------------------------------------- votes */

void lcomm_reunion_pack_vote(const lcomm_reunion_vote *it, uint8_t *bytes) {
  lcomm_le_put(bytes, it->confirmed, 4);
  lcomm_le_put(bytes + 4, it->prepared, 4);
  lcomm_le_put(bytes + 8, it->refuses, 4);
  lcomm_le_put(bytes + 12, 0, 4);
}

lcomm_status lcomm_reunion_read_vote(const uint8_t *bytes, lcomm_reunion_vote *it) {
  uint64_t refuses = lcomm_le_get(bytes + 8, 4);
  it->confirmed = (uint32_t)lcomm_le_get(bytes, 4);
  it->prepared = (uint32_t)lcomm_le_get(bytes + 4, 4);
  it->refuses = refuses == 1;
  bool later = it->prepared == 0 || it->prepared > it->confirmed;
  return refuses <= 1 && later && lcomm_le_get(bytes + 12, 4) == 0 ? LCOMM_OK : LCOMM_ERR_WIRE;
}

/* --------------------------------------------------------------- standings */

enum { COMPLETE = 1, REGROUPING = 2 };

void lcomm_reunion_pack_standing(const lcomm_standing *it, uint8_t *bytes) {
  lcomm_le_put(bytes, it->steps, 8);
  lcomm_le_put(bytes + 8, it->kept, 8);
  lcomm_le_put(bytes + 16, it->all, 8);
  lcomm_le_put(bytes + 24, (it->complete ? COMPLETE : 0) | (it->regrouping ? REGROUPING : 0), 4);
  lcomm_le_put(bytes + 28, it->blocks, 4);
}

lcomm_status lcomm_reunion_read_standing(const uint8_t *bytes, lcomm_standing *it) {
  uint64_t flags = lcomm_le_get(bytes + 24, 4);
  *it = (lcomm_standing){.steps = lcomm_le_get(bytes, 8),
                         .kept = lcomm_le_get(bytes + 8, 8),
                         .all = lcomm_le_get(bytes + 16, 8),
                         .complete = (flags & COMPLETE) != 0,
                         .regrouping = (flags & REGROUPING) != 0,
                         .blocks = (uint32_t)lcomm_le_get(bytes + 28, 4)};
  bool fits = it->kept <= it->all && it->steps < UINT64_MAX && it->blocks <= LCOMM_REUNION_BLOCKS;
  return fits && flags <= (COMPLETE | REGROUPING) ? LCOMM_OK : LCOMM_ERR_WIRE;
}
