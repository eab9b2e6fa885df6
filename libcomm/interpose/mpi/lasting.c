/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Buffers by the place of their calls in the pattern, and what they owe.
 *
 * A time is what lies between two breaks of the pattern. Identities of the present time
 * have had a call since the pattern was found; the others are from before. Those owe
 * what calls of the same count and operation pay, in the order in which the pattern that
 * broke would have gone on; or they have paid, and serve for new positions.
 */

#include "libcomm/interpose/mpi/lasting.h"

#include <stdlib.h>
#include <string.h>

#include "libcomm/interpose/mpi/pattern.h"
#include "libcomm/interpose/mpi/watch.h"

enum { ROOM_MIN = 16 };

typedef struct identity {
  uint32_t position;
  lcomm_op op;
  uint64_t count;
  uint64_t time; /* of its last call with error feedback */
  bool owes;
  lcomm_residual *residual;
  lcomm_interpose_watch *watch; /* NULL: not yet, or no memory */
} identity;

struct lcomm_interpose_lasting {
  lcomm_comm *made;
  lcomm_interpose_pattern pattern;
  uint64_t time;
  bool ended;
  identity *identities;
  uint32_t count, room;
  uint32_t owing;      /* identities that owe */
  uint32_t leftover;   /* those of them that are from before */
  uint32_t next_payer; /* the position whose debts are paid first */
  uint32_t *owners;    /* of each position at this time: index of its identity + 1; 0: not known */
  uint32_t periods;    /* length of owners */
  uint32_t answered;   /* index of the identity of the last answer */
  uint32_t spoken_of;  /* index + 1 of the identity that the last call lasts for, else 0 */
  bool suspected;
};

lcomm_interpose_lasting *lcomm_interpose_lasting_create(lcomm_comm *made, uint32_t step_calls) {
  lcomm_interpose_lasting *lasting = calloc(1, sizeof *lasting);
  if (!lasting) {
    return NULL;
  }
  lasting->made = made;
  lasting->periods = step_calls > 0 ? step_calls : LCOMM_INTERPOSE_PERIOD_MAX;
  lasting->owners = calloc(lasting->periods, sizeof *lasting->owners);
  if (!lcomm_interpose_pattern_init(&lasting->pattern, step_calls) || !lasting->owners) {
    lcomm_interpose_lasting_destroy(lasting);
    return NULL;
  }
  return lasting;
}

void lcomm_interpose_lasting_destroy(lcomm_interpose_lasting *lasting) {
  if (!lasting) {
    return;
  }
  for (uint32_t i = 0; i < lasting->count; i++) {
    if (lasting->identities[i].residual) {
      lcomm_residual_destroy(lasting->identities[i].residual);
    }
    free(lasting->identities[i].watch);
  }
  free(lasting->identities);
  free(lasting->owners);
  lcomm_interpose_pattern_free(&lasting->pattern);
  free(lasting);
}

/* ------------------------------------------------------------------- times */

/* Another time begins: no position has an owner, and all debts are from before. */
static void begin_time(lcomm_interpose_lasting *lasting, uint32_t next_payer) {
  lasting->time++;
  lasting->leftover = lasting->owing;
  lasting->next_payer = next_payer;
  memset(lasting->owners, 0, lasting->periods * sizeof *lasting->owners);
}

/* Position of the call; -1 while no pattern is known. */
static int follow(lcomm_interpose_lasting *lasting, uint64_t count, lcomm_op op) {
  bool known = lasting->pattern.period > 0;
  uint32_t expected = lasting->pattern.position;
  int position = lcomm_interpose_pattern_next(&lasting->pattern, count << 2 | (uint64_t)op);
  if (known && position < 0) {
    begin_time(lasting, expected);
  }
  return position;
}

void lcomm_interpose_lasting_end(lcomm_interpose_lasting *lasting) {
  if (lasting->pattern.period > 0) {
    begin_time(lasting, lasting->pattern.position);
  }
  lcomm_interpose_pattern_break(&lasting->pattern);
  lasting->ended = true;
}

void lcomm_interpose_lasting_resume(lcomm_interpose_lasting *lasting) {
  lasting->ended = false;
}

/* --------------------------------------------------------------- identities */

static bool is_same(const identity *one, uint64_t count, lcomm_op op) {
  return one->count == count && one->op == op;
}

/* Whose debt from before such a call pays; NULL: nobody's. */
static identity *find_debtor(const lcomm_interpose_lasting *lasting, uint64_t count, lcomm_op op) {
  identity *first = NULL;
  uint32_t least = UINT32_MAX;
  for (uint32_t i = 0; lasting->leftover > 0 && i < lasting->count; i++) {
    identity *one = &lasting->identities[i];
    if (!one->owes || one->time == lasting->time || !is_same(one, count, op)) {
      continue;
    }
    /* Positions before the next payer's have their turn after the others. */
    uint32_t turn = one->position - lasting->next_payer +
                    (one->position < lasting->next_payer ? lasting->periods : 0);
    if (!first || turn < least) {
      first = one;
      least = turn;
    }
  }
  return first;
}

static lcomm_interpose_feedback pay(lcomm_interpose_lasting *lasting, identity *debtor,
                                    lcomm_residual **residual) {
  debtor->owes = false;
  lasting->owing--;
  lasting->leftover--;
  lasting->next_payer = (debtor->position + 1) % lasting->periods;
  lasting->answered = (uint32_t)(debtor - lasting->identities);
  *residual = debtor->residual;
  return LCOMM_INTERPOSE_FLUSHES;
}

/* The one of this position from before, else one that owes nothing. NULL: none. */
static identity *find_former(const lcomm_interpose_lasting *lasting, uint32_t position,
                             uint64_t count, lcomm_op op) {
  identity *idle = NULL;
  for (uint32_t i = 0; i < lasting->count; i++) {
    identity *one = &lasting->identities[i];
    if (one->time == lasting->time || !is_same(one, count, op)) {
      continue;
    }
    if (one->position == position) {
      return one;
    }
    if (!one->owes && !idle) {
      idle = one;
    }
  }
  return idle;
}

static bool make_room(lcomm_interpose_lasting *lasting) {
  if (lasting->count < lasting->room) {
    return true;
  }
  uint32_t room = lasting->room > 0 ? 2 * lasting->room : ROOM_MIN;
  identity *larger = realloc(lasting->identities, room * sizeof *larger);
  if (!larger) {
    return false;
  }
  lasting->identities = larger;
  lasting->room = room;
  return true;
}

/* NULL with the reason in *status. */
static identity *make(lcomm_interpose_lasting *lasting, uint64_t count, lcomm_op op,
                      lcomm_status *status) {
  if (!make_room(lasting)) {
    *status = LCOMM_ERR_MEMORY;
    return NULL;
  }
  identity *one = &lasting->identities[lasting->count];
  *one = (identity){.op = op, .count = count};
  if (lasting->made) {
    *status = lcomm_residual_create(lasting->made, count, op, &one->residual);
  }
  if (*status != LCOMM_OK) {
    return NULL;
  }
  lasting->count++;
  return one;
}

/* The position's first call at this time: whose is it? NULL with the reason in *status. */
static identity *find_owner(lcomm_interpose_lasting *lasting, uint32_t position, uint64_t count,
                            lcomm_op op, lcomm_status *status) {
  identity *owner = find_former(lasting, position, count, op);
  if (!owner) {
    owner = make(lasting, count, op, status);
  }
  if (!owner) {
    return NULL;
  }
  lasting->leftover -= owner->owes;
  owner->position = position;
  owner->time = lasting->time;
  if (owner->watch) {
    memset(owner->watch, 0, sizeof *owner->watch);
  }
  lasting->owners[position] = (uint32_t)(owner - lasting->identities) + 1;
  return owner;
}

/* ----------------------------------------------------------------- the call */

static lcomm_interpose_feedback keep(lcomm_interpose_lasting *lasting, identity *owner,
                                     lcomm_residual **residual) {
  lasting->owing += !owner->owes;
  owner->owes = true;
  lasting->answered = (uint32_t)(owner - lasting->identities);
  lasting->spoken_of = lasting->answered + 1;
  *residual = owner->residual;
  return LCOMM_INTERPOSE_LASTS;
}

lcomm_interpose_feedback lcomm_interpose_lasting_next(lcomm_interpose_lasting *lasting,
                                                      uint64_t count, lcomm_op op,
                                                      lcomm_residual **residual,
                                                      lcomm_status *status) {
  *residual = NULL;
  *status = LCOMM_OK;
  lasting->spoken_of = 0;
  int position = lasting->ended ? -1 : follow(lasting, count, op);
  /* In the first round of a pattern the identities from before find their positions
   * again; what is left over then is paid like any other debt. */
  bool first_round = position >= 0 && lasting->owners[position] == 0;
  identity *debtor = first_round ? NULL : find_debtor(lasting, count, op);
  if (debtor) {
    return pay(lasting, debtor, residual);
  }
  if (position < 0) {
    return LCOMM_INTERPOSE_PLAIN;
  }
  identity *owner = first_round ? find_owner(lasting, (uint32_t)position, count, op, status)
                                : &lasting->identities[lasting->owners[position] - 1];
  return owner ? keep(lasting, owner, residual) : LCOMM_INTERPOSE_PLAIN;
}

uint32_t lcomm_interpose_lasting_identity(const lcomm_interpose_lasting *lasting) {
  return lasting->answered;
}

lcomm_status lcomm_interpose_lasting_residual(lcomm_interpose_lasting *lasting,
                                              uint32_t identity_index, lcomm_comm *made,
                                              lcomm_residual **residual) {
  identity *one = &lasting->identities[identity_index];
  lcomm_status status =
      one->residual ? LCOMM_OK : lcomm_residual_create(made, one->count, one->op, &one->residual);
  *residual = one->residual;
  return status;
}

/* ------------------------------------------------------------------- looking */

unsigned lcomm_interpose_lasting_owing(const lcomm_interpose_lasting *lasting) {
  return lasting->owing;
}

unsigned lcomm_interpose_lasting_count(const lcomm_interpose_lasting *lasting) {
  return lasting->count;
}

unsigned lcomm_interpose_lasting_period(const lcomm_interpose_lasting *lasting) {
  return lasting->pattern.period;
}

bool lcomm_interpose_lasting_suspects(lcomm_interpose_lasting *lasting, const void *buffer) {
  if (lasting->suspected || lasting->spoken_of == 0) {
    return false;
  }
  identity *one = &lasting->identities[lasting->spoken_of - 1];
  lasting->spoken_of = 0;
  if (!one->watch) {
    one->watch = calloc(1, sizeof *one->watch);
  }
  lasting->suspected = one->watch && lcomm_interpose_watch_see(one->watch, buffer);
  return lasting->suspected;
}
