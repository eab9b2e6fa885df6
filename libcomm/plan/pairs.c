/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The cost of an exchange as Hockney's model has it (1994): a fixed part for each message
 * that a rank sends and for each round, and one for each byte. */

#include "libcomm/plan/pairs.h"

#include <stddef.h>

/* What else could be sent in the time that a message, or a round, takes by itself. Over TCP
 * a message costs some 15 us of a processor, which is 2 KiB at 1 Gbit/s and 18 KiB at 10. */
enum { MESSAGE_BYTES = 4 << 10 };

typedef struct cost {
  uint64_t messages, rounds, size; /* of one rank */
} cost;

static uint64_t log2_of(int ranks) {
  return 31u - (unsigned)__builtin_clz((unsigned)ranks);
}

static bool is_power_of_two(int ranks) {
  return (ranks & (ranks - 1)) == 0;
}

static cost gather(int ranks, uint64_t size) {
  uint64_t peers = (uint64_t)ranks - 1;
  return (cost){peers, 1, peers * size};
}

static cost direct(int ranks, uint64_t size) {
  uint64_t peers = (uint64_t)ranks - 1;
  return (cost){2 * peers, 2, 2 * peers * size / (uint64_t)ranks};
}

/* Two rounds more where ranks are folded away first and told at the end. */
static cost doubling(int ranks, uint64_t size) {
  uint64_t rounds = log2_of(ranks) + (is_power_of_two(ranks) ? 0 : 2);
  return (cost){rounds, rounds, rounds * size};
}

static cost halving(int ranks, uint64_t size) {
  cost whole = direct(ranks, size);
  uint64_t fold = is_power_of_two(ranks) ? 0 : 2, rounds = 2 * log2_of(ranks) + fold;
  return (cost){rounds, rounds, whole.size + fold * size};
}

static uint64_t total(cost c) {
  return c.size + MESSAGE_BYTES * (c.messages + c.rounds);
}

lcomm_exchange_kind lcomm_cheapest_exchange(int ranks, uint64_t size) {
  static const struct {
    lcomm_exchange_kind kind;
    cost (*cost)(int ranks, uint64_t size);
  } kinds[] = {/* of equal ones the first, which has fewer messages */
               {LCOMM_EXCHANGE_DOUBLING, doubling},
               {LCOMM_EXCHANGE_GATHER, gather},
               {LCOMM_EXCHANGE_HALVING, halving},
               {LCOMM_EXCHANGE_DIRECT, direct}};
  size_t best = 0;
  for (size_t i = 1; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
    best = total(kinds[i].cost(ranks, size)) < total(kinds[best].cost(ranks, size)) ? i : best;
  }
  return kinds[best].kind;
}
