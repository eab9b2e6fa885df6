/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_BOOTSTRAP_REUNION_WIRE_H
#define LCOMM_BOOTSTRAP_REUNION_WIRE_H

/* What ranks of an elastic communicator tell each other, besides the frames of a store. All numbers
 * are little-endian. Readers take any bytes: they return a status, and read nothing outside of what
 * they were given.
 *
 *   address  0 place (24 bytes, as in store_wire.h)   24 family u32, 4 or 6; 0: nowhere
 *           28 zero u32
 *   list     0 survivors u32    4 dead u32   8 newcomers u32   12 seats that there were u32
 *           16 rank of the reader u32   20 zero u32
 *           24 seats of the survivors, u32 each, ascending, then those of the dead, likewise
 *   introduction  0 address   32 time-out in seconds f64   40 progress u32   44 nodes u32
 *           48 ranks before u32   52 of them have left u32   56 transports, zeros behind (64 bytes)
 *          120 name, likewise (128 bytes)   248 policy, likewise (1024 bytes)
 *   vote     0 confirmed u32    4 prepared u32   8 refuses u32   12 zero u32
 *   standing 0 steps u64   8 kept u64   16 all u64
 *           24 flags u32: bit 0 complete, 1 regrouping, 2 holds   28 blocks u32
 *           32 squares f64, finite, not below 0   40 residuals u32   44 zero u32
 *   calls    of each residual: 0 number u64, ascending, from 1   8 ended u64
 *           zeros behind the last one
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libcomm/bootstrap/store/store_wire.h"
#include "libcomm/tensor/residual_carry.h"

enum {
  LCOMM_REUNION_ADDRESS_SIZE = 32,
  LCOMM_REUNION_VOTE_SIZE = 16,
  LCOMM_REUNION_STANDING_SIZE = 48,
  LCOMM_REUNION_CALLS_SIZE = 16,
  LCOMM_REUNION_LIST_HEAD = 24,
  LCOMM_REUNION_INTRODUCTION_SIZE = LCOMM_REUNION_ADDRESS_SIZE + 24 + LCOMM_TRANSPORT_NAMES_MAX +
                                    LCOMM_COMM_NAME_MAX + LCOMM_POLICY_MAX,
  LCOMM_REUNION_SEATS_MAX = 1 << 20,
  LCOMM_REUNION_BLOCKS = 1 << 16,   /* that a rank brings at most */
  LCOMM_REUNION_RESIDUALS = 1 << 16 /* that it has at most */
};

/* Where a rank can be met after a loss. */
typedef struct lcomm_reunion_address {
  lcomm_store_place place; /* WAY_STAR, WAY_BESIDE, WAY_IPV4 or WAY_IPV6 */
  uint32_t family;         /* of the address at which it listens: 4 or 6 */
} lcomm_reunion_address;

void lcomm_reunion_pack_address(const lcomm_reunion_address *it, uint8_t *bytes);
lcomm_status lcomm_reunion_read_address(const uint8_t *bytes, lcomm_reunion_address *it);

/* Who survives, of whom it is known that they do not, and how many join. Newcomers are the ranks
 * behind the survivors, and have the seats behind those that there were. */
typedef struct lcomm_reunion_list {
  int survivors, dead, newcomers;
  int world;  /* seats that there were */
  int rank;   /* of the reader, in what is being made */
  int *seats; /* of the survivors, then of the dead; owned */
  int room;
} lcomm_reunion_list;

/* Room for so many seats; what is there stays. MEMORY. */
lcomm_status lcomm_reunion_list_make_room(lcomm_reunion_list *list, int seats);

size_t lcomm_reunion_list_size(const lcomm_reunion_list *list);
void lcomm_reunion_pack_list(const lcomm_reunion_list *list, uint8_t *bytes);

/* WIRE for what is no list: it has a survivor, each seat is there once at most, and the reader is a
 * survivor or a newcomer. MEMORY. */
lcomm_status lcomm_reunion_read_list(const uint8_t *bytes, size_t size, lcomm_reunion_list *list);

/* What ranks tell each other where there are newcomers: of rank 0 all of it counts, of the others
 * the address. */
typedef struct lcomm_reunion_introduction {
  lcomm_reunion_address address;
  double timeout_s;
  uint32_t progress, nodes, ranks_before, left;
  char transport[LCOMM_TRANSPORT_NAMES_MAX], name[LCOMM_COMM_NAME_MAX], policy[LCOMM_POLICY_MAX];
} lcomm_reunion_introduction;

void lcomm_reunion_pack_introduction(const lcomm_reunion_introduction *it, uint8_t *bytes);
lcomm_status lcomm_reunion_read_introduction(const uint8_t *bytes, lcomm_reunion_introduction *it);

/* What a survivor says of itself. */
typedef struct lcomm_reunion_vote {
  uint32_t confirmed; /* the generation of its communicator */
  uint32_t prepared;  /* a later one, of which it does not know whether it was confirmed; or 0 */
  bool refuses;       /* others may have gone on with that one */
} lcomm_reunion_vote;

void lcomm_reunion_pack_vote(const lcomm_reunion_vote *it, uint8_t *bytes);
lcomm_status lcomm_reunion_read_vote(const uint8_t *bytes, lcomm_reunion_vote *it);

/* Where its tensors stand. Reading: WIRE for what cannot be, such as more elements here than on all
 * ranks. */
void lcomm_reunion_pack_standing(const lcomm_standing *it, uint8_t *bytes);
lcomm_status lcomm_reunion_read_standing(const uint8_t *bytes, lcomm_standing *it);

/* Where calls with residuals stand, `count` of them, those that are there first. */
void lcomm_reunion_pack_calls(const lcomm_call_standing *all, size_t count, uint8_t *bytes);
lcomm_status lcomm_reunion_read_calls(const uint8_t *bytes, size_t count, lcomm_call_standing *all);

#endif
