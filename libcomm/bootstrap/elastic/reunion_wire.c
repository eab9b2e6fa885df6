/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/bootstrap/elastic/reunion_wire.h"

#include <stdlib.h>
#include <string.h>

#include "codecs/little_endian.h"

static void put_real(uint8_t *bytes, double value) {
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof(bits));
  lcomm_le_put(bytes, bits, 8);
}

static double get_real(const uint8_t *bytes) {
  uint64_t bits = lcomm_le_get(bytes, 8);
  double value = 0;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

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

lcomm_status lcomm_reunion_list_make_room(lcomm_reunion_list *list, int seats) {
  if (seats <= list->room) {
    return LCOMM_OK;
  }
  int *bigger = realloc(list->seats, (size_t)seats * sizeof *bigger);
  if (!bigger) {
    return LCOMM_ERR_MEMORY;
  }
  list->seats = bigger;
  list->room = seats;
  return LCOMM_OK;
}

void lcomm_reunion_pack_list(const lcomm_reunion_list *list, uint8_t *bytes) {
  int head[] = {list->survivors, list->dead, list->newcomers, list->world, list->rank, 0};
  for (int i = 0; i < 6; i++) {
    lcomm_le_put(bytes + 4 * i, (uint64_t)head[i], 4);
  }
  for (int i = 0; i < list->survivors + list->dead; i++) {
    lcomm_le_put(bytes + LCOMM_REUNION_LIST_HEAD + 4 * (size_t)i, (uint64_t)list->seats[i], 4);
  }
}

/* Seats of the survivors and of the dead ascend, each for themselves; nobody is both. */
static bool is_sound(const lcomm_reunion_list *list) {
  int all = list->survivors + list->dead, other = list->survivors;
  for (int i = 0; i < all; i++) {
    bool first = i == 0 || i == list->survivors;
    if (list->seats[i] >= list->world || (!first && list->seats[i] <= list->seats[i - 1])) {
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

static bool read_head(const uint8_t *bytes, size_t size, lcomm_reunion_list *list) {
  uint64_t survivors = lcomm_le_get(bytes, 4), dead = lcomm_le_get(bytes + 4, 4);
  uint64_t newcomers = lcomm_le_get(bytes + 8, 4), world = lcomm_le_get(bytes + 12, 4);
  uint64_t rank = lcomm_le_get(bytes + 16, 4);
  if (survivors == 0 || survivors + dead > world || world + newcomers > LCOMM_REUNION_SEATS_MAX ||
      rank >= survivors + newcomers || lcomm_le_get(bytes + 20, 4) != 0 ||
      size != LCOMM_REUNION_LIST_HEAD + 4 * (survivors + dead)) {
    return false;
  }
  list->survivors = (int)survivors;
  list->dead = (int)dead;
  list->newcomers = (int)newcomers;
  list->world = (int)world;
  list->rank = (int)rank;
  return true;
}

lcomm_status lcomm_reunion_read_list(const uint8_t *bytes, size_t size, lcomm_reunion_list *list) {
  if (size < LCOMM_REUNION_LIST_HEAD || !read_head(bytes, size, list)) {
    return LCOMM_ERR_WIRE;
  }
  LCOMM_TRY(lcomm_reunion_list_make_room(list, list->survivors + list->dead));
  for (int i = 0; i < list->survivors + list->dead; i++) {
    uint64_t seat = lcomm_le_get(bytes + LCOMM_REUNION_LIST_HEAD + 4 * (size_t)i, 4);
    list->seats[i] = seat < (uint64_t)list->world ? (int)seat : list->world;
  }
  return is_sound(list) ? LCOMM_OK : LCOMM_ERR_WIRE;
}

/* ----------------------------------------------------------- introductions */

enum {
  AT_TIMEOUT = LCOMM_REUNION_ADDRESS_SIZE,
  AT_PROGRESS = AT_TIMEOUT + 8,
  AT_NODES = AT_PROGRESS + 4,
  AT_RANKS = AT_NODES + 4,
  AT_LEFT = AT_RANKS + 4,
  AT_TRANSPORT = AT_LEFT + 4,
  AT_NAME = AT_TRANSPORT + LCOMM_TRANSPORT_NAMES_MAX,
  AT_POLICY = AT_NAME + LCOMM_COMM_NAME_MAX
};

_Static_assert(AT_POLICY + LCOMM_POLICY_MAX == LCOMM_REUNION_INTRODUCTION_SIZE,
               "the policy is the end");

void lcomm_reunion_pack_introduction(const lcomm_reunion_introduction *it, uint8_t *bytes) {
  lcomm_reunion_pack_address(&it->address, bytes);
  put_real(bytes + AT_TIMEOUT, it->timeout_s);
  lcomm_le_put(bytes + AT_PROGRESS, it->progress, 4);
  lcomm_le_put(bytes + AT_NODES, it->nodes, 4);
  lcomm_le_put(bytes + AT_RANKS, it->ranks_before, 4);
  lcomm_le_put(bytes + AT_LEFT, it->left, 4);
  memcpy(bytes + AT_TRANSPORT, it->transport, sizeof(it->transport));
  memcpy(bytes + AT_NAME, it->name, sizeof(it->name));
  memcpy(bytes + AT_POLICY, it->policy, sizeof(it->policy));
}

/* Text that ends, with zeros behind it, and can be shown. */
static bool take_text(const uint8_t *bytes, char *text, size_t size) {
  memcpy(text, bytes, size);
  size_t length = strnlen(text, size);
  for (size_t i = 0; i < size; i++) {
    bool fits = i < length ? bytes[i] >= 0x20 && bytes[i] != 0x7f : bytes[i] == 0;
    if (!fits) {
      return false;
    }
  }
  return length < size;
}

lcomm_status lcomm_reunion_read_introduction(const uint8_t *bytes, lcomm_reunion_introduction *it) {
  LCOMM_TRY(lcomm_reunion_read_address(bytes, &it->address));
  it->timeout_s = get_real(bytes + AT_TIMEOUT);
  it->progress = (uint32_t)lcomm_le_get(bytes + AT_PROGRESS, 4);
  it->nodes = (uint32_t)lcomm_le_get(bytes + AT_NODES, 4);
  it->ranks_before = (uint32_t)lcomm_le_get(bytes + AT_RANKS, 4);
  it->left = (uint32_t)lcomm_le_get(bytes + AT_LEFT, 4);
  bool numbers = it->timeout_s > 0 && it->timeout_s < 1e9 && it->progress <= LCOMM_PROGRESS_AUTO &&
                 it->nodes <= LCOMM_REUNION_SEATS_MAX &&
                 it->ranks_before <= LCOMM_REUNION_SEATS_MAX && it->left <= it->ranks_before;
  bool texts = take_text(bytes + AT_TRANSPORT, it->transport, sizeof(it->transport)) &&
               take_text(bytes + AT_NAME, it->name, sizeof(it->name)) &&
               take_text(bytes + AT_POLICY, it->policy, sizeof(it->policy));
  return numbers && texts ? LCOMM_OK : LCOMM_ERR_WIRE;
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

enum { COMPLETE = 1, REGROUPING = 2, HOLDS = 4 };

void lcomm_reunion_pack_standing(const lcomm_standing *it, uint8_t *bytes) {
  unsigned flags = it->complete ? COMPLETE : 0;
  flags |= it->regrouping ? REGROUPING : 0;
  flags |= it->holds ? HOLDS : 0;
  lcomm_le_put(bytes, it->steps, 8);
  lcomm_le_put(bytes + 8, it->remembered.kept, 8);
  lcomm_le_put(bytes + 16, it->remembered.all, 8);
  lcomm_le_put(bytes + 24, flags, 4);
  lcomm_le_put(bytes + 28, it->blocks, 4);
  put_real(bytes + 32, it->remembered.squares);
  lcomm_le_put(bytes + 40, it->residuals, 4);
  lcomm_le_put(bytes + 44, 0, 4);
}

lcomm_status lcomm_reunion_read_standing(const uint8_t *bytes, lcomm_standing *it) {
  uint64_t flags = lcomm_le_get(bytes + 24, 4);
  *it = (lcomm_standing){.steps = lcomm_le_get(bytes, 8),
                         .remembered = {.kept = lcomm_le_get(bytes + 8, 8),
                                        .all = lcomm_le_get(bytes + 16, 8),
                                        .squares = get_real(bytes + 32)},
                         .complete = (flags & COMPLETE) != 0,
                         .regrouping = (flags & REGROUPING) != 0,
                         .holds = (flags & HOLDS) != 0,
                         .blocks = (uint32_t)lcomm_le_get(bytes + 28, 4),
                         .residuals = (uint32_t)lcomm_le_get(bytes + 40, 4)};
  bool fits = lcomm_remembered_is_sound(&it->remembered) && it->steps < UINT64_MAX &&
              it->blocks <= LCOMM_REUNION_BLOCKS && it->residuals <= LCOMM_REUNION_RESIDUALS &&
              lcomm_le_get(bytes + 44, 4) == 0;
  return fits && flags <= (COMPLETE | REGROUPING | HOLDS) ? LCOMM_OK : LCOMM_ERR_WIRE;
}

void lcomm_reunion_pack_calls(const lcomm_call_standing *all, size_t count, uint8_t *bytes) {
  for (size_t i = 0; i < count; i++) {
    lcomm_le_put(bytes + i * LCOMM_REUNION_CALLS_SIZE, all[i].number, 8);
    lcomm_le_put(bytes + i * LCOMM_REUNION_CALLS_SIZE + 8, all[i].ended, 8);
  }
}

/* What is behind the last one is nothing. */
static bool follows(const lcomm_call_standing *it, const lcomm_call_standing *before) {
  bool is_there = it->number > 0;
  return is_there ? !before || (before->number > 0 && it->number > before->number) : it->ended == 0;
}

lcomm_status lcomm_reunion_read_calls(const uint8_t *bytes, size_t count,
                                      lcomm_call_standing *all) {
  for (size_t i = 0; i < count; i++) {
    const uint8_t *from = bytes + i * LCOMM_REUNION_CALLS_SIZE;
    all[i] = (lcomm_call_standing){lcomm_le_get(from, 8), lcomm_le_get(from + 8, 8)};
    if (!follows(&all[i], i > 0 ? &all[i - 1] : NULL)) {
      return LCOMM_ERR_WIRE;
    }
  }
  return LCOMM_OK;
}
