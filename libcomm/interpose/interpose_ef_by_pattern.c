/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Call sites and the residuals that they carry.
 *
 * An epoch ends when the pattern breaks. A current call site has had a call in this epoch, a former
 * one has not. Calls of the same shape flush what former call sites carry, in the
 * order in which the broken pattern would have continued. A former call site that carries nothing
 * is reused for a new position.
 */

#include "libcomm/interpose/interpose_ef_by_pattern.h"

#include <stdlib.h>
#include <string.h>

#include "libcomm/interpose/interpose_pattern.h"

enum { CAPACITY_MIN = 16 };

/* What calls have in common that may share a residual. */
typedef struct shape {
  lcomm_call_kind kind;
  lcomm_op op;
  uint64_t count;
} shape;

typedef struct call_site {
  uint32_t position;
  shape shape;
  uint64_t epoch; /* of the last call with error feedback */
  bool carries;   /* a residual that no call has flushed */
  lcomm_residual *residual;
  lcomm_interpose_alias *alias; /* NULL: not needed yet, or no memory */
} call_site;

struct lcomm_interpose_ef {
  lcomm_interpose_pattern pattern;
  uint64_t epoch;
  bool suspended;
  call_site *sites;
  uint32_t count, capacity; /* of `sites` */
  uint32_t carrying;        /* call sites that carry a residual */
  uint32_t former_carrying; /* the former ones of them */
  uint32_t next_flush;      /* the position that is flushed first */
  uint32_t *current;        /* by position: index of the current call site + 1; 0: none */
  uint32_t positions;       /* length of `current` */
  uint32_t last;            /* index of the call site of the last answer */
  uint32_t unwatched;       /* index + 1 of the last answer's call site if it is EF, else 0 */
  bool aliased;
};

lcomm_interpose_ef *lcomm_interpose_ef_create(uint32_t step_calls) {
  lcomm_interpose_ef *ef = calloc(1, sizeof *ef);
  if (!ef) {
    return NULL;
  }
  ef->positions = step_calls > 0 ? step_calls : LCOMM_INTERPOSE_PERIOD_MAX;
  ef->current = calloc(ef->positions, sizeof *ef->current);
  if (!lcomm_interpose_pattern_init(&ef->pattern, step_calls) || !ef->current) {
    lcomm_interpose_ef_destroy(ef);
    return NULL;
  }
  return ef;
}

void lcomm_interpose_ef_destroy(lcomm_interpose_ef *ef) {
  if (!ef) {
    return;
  }
  for (uint32_t i = 0; i < ef->count; i++) {
    if (ef->sites[i].residual) {
      lcomm_residual_destroy(ef->sites[i].residual);
    }
    free(ef->sites[i].alias);
  }
  free(ef->sites);
  free(ef->current);
  lcomm_interpose_pattern_free(&ef->pattern);
  free(ef);
}

/* ------------------------------------------------------------------- epochs */

/* All call sites become former ones. */
static void begin_epoch(lcomm_interpose_ef *ef, uint32_t next_flush) {
  ef->epoch++;
  ef->former_carrying = ef->carrying;
  ef->next_flush = next_flush;
  memset(ef->current, 0, ef->positions * sizeof *ef->current);
}

/* The position of the call; -1: no pattern is known. */
static int find_position(lcomm_interpose_ef *ef, const shape *it) {
  uint64_t signature = it->count << 3 | (uint64_t)it->op << 1 | (it->kind != LCOMM_CALL_ALLREDUCE);
  bool known = ef->pattern.period > 0;
  uint32_t expected = ef->pattern.position;
  int position = lcomm_interpose_pattern_next(&ef->pattern, signature);
  if (known && position < 0) {
    begin_epoch(ef, expected);
  }
  return position;
}

void lcomm_interpose_ef_suspend(lcomm_interpose_ef *ef) {
  if (ef->pattern.period > 0) {
    begin_epoch(ef, ef->pattern.position);
  }
  lcomm_interpose_pattern_break(&ef->pattern);
  ef->suspended = true;
}

void lcomm_interpose_ef_resume(lcomm_interpose_ef *ef) {
  ef->suspended = false;
}

/* --------------------------------------------------------------- call sites */

static bool fits(const call_site *site, const shape *it) {
  return site->shape.count == it->count && site->shape.op == it->op && site->shape.kind == it->kind;
}

/* The former call site that such a call flushes; NULL: none. */
static call_site *find_to_flush(const lcomm_interpose_ef *ef, const shape *it) {
  call_site *found = NULL;
  uint32_t least = UINT32_MAX;
  for (uint32_t i = 0; ef->former_carrying > 0 && i < ef->count; i++) {
    call_site *site = &ef->sites[i];
    if (!site->carries || site->epoch == ef->epoch || !fits(site, it)) {
      continue;
    }
    /* Positions before next_flush come after the others. */
    uint32_t turn =
        site->position - ef->next_flush + (site->position < ef->next_flush ? ef->positions : 0);
    if (!found || turn < least) {
      found = site;
      least = turn;
    }
  }
  return found;
}

/* The former call site of this position, else one that carries nothing; NULL: none. */
static call_site *find_former(const lcomm_interpose_ef *ef, uint32_t position, const shape *it) {
  call_site *idle = NULL;
  for (uint32_t i = 0; i < ef->count; i++) {
    call_site *site = &ef->sites[i];
    if (site->epoch == ef->epoch || !fits(site, it)) {
      continue;
    }
    if (site->position == position) {
      return site;
    }
    if (!site->carries && !idle) {
      idle = site;
    }
  }
  return idle;
}

static bool grow(lcomm_interpose_ef *ef) {
  if (ef->count < ef->capacity) {
    return true;
  }
  uint32_t capacity = ef->capacity > 0 ? 2 * ef->capacity : CAPACITY_MIN;
  call_site *larger = realloc(ef->sites, capacity * sizeof *larger);
  if (!larger) {
    return false;
  }
  ef->sites = larger;
  ef->capacity = capacity;
  return true;
}

/* NULL: no memory. */
static call_site *create_site(lcomm_interpose_ef *ef, const shape *it) {
  if (!grow(ef)) {
    return NULL;
  }
  call_site *site = &ef->sites[ef->count++];
  *site = (call_site){.shape = *it};
  return site;
}

/* The call site of the position's first call in this epoch. NULL: no memory. */
static call_site *assign_site(lcomm_interpose_ef *ef, uint32_t position, const shape *it) {
  call_site *site = find_former(ef, position, it);
  if (!site) {
    site = create_site(ef, it);
  }
  if (!site) {
    return NULL;
  }
  ef->former_carrying -= site->carries;
  site->position = position;
  site->epoch = ef->epoch;
  if (site->alias) {
    memset(site->alias, 0, sizeof *site->alias);
  }
  ef->current[position] = (uint32_t)(site - ef->sites) + 1;
  return site;
}

/* ----------------------------------------------------------------- the call */

static lcomm_interpose_feedback flush(lcomm_interpose_ef *ef, call_site *site) {
  site->carries = false;
  ef->carrying--;
  ef->former_carrying--;
  ef->next_flush = (site->position + 1) % ef->positions;
  ef->last = (uint32_t)(site - ef->sites);
  return LCOMM_INTERPOSE_FLUSH;
}

static lcomm_interpose_feedback carry(lcomm_interpose_ef *ef, call_site *site) {
  ef->carrying += !site->carries;
  site->carries = true;
  ef->last = (uint32_t)(site - ef->sites);
  ef->unwatched = ef->last + 1;
  return LCOMM_INTERPOSE_EF;
}

lcomm_interpose_feedback lcomm_interpose_ef_next(lcomm_interpose_ef *ef, lcomm_call_kind kind,
                                                 uint64_t count, lcomm_op op,
                                                 lcomm_status *status) {
  const shape it = {kind, op, count};
  *status = LCOMM_OK;
  ef->unwatched = 0;
  int position = ef->suspended ? -1 : find_position(ef, &it);
  /* In the first round of a pattern former call sites return to their positions. From the second
   * round on, calls flush those that did not. */
  bool first_round = position >= 0 && ef->current[position] == 0;
  call_site *former = first_round ? NULL : find_to_flush(ef, &it);
  if (former) {
    return flush(ef, former);
  }
  if (position < 0) {
    return LCOMM_INTERPOSE_PLAIN;
  }
  call_site *site = first_round ? assign_site(ef, (uint32_t)position, &it)
                                : &ef->sites[ef->current[position] - 1];
  if (!site) {
    *status = LCOMM_ERR_MEMORY;
    return LCOMM_INTERPOSE_PLAIN;
  }
  return carry(ef, site);
}

uint32_t lcomm_interpose_ef_site(const lcomm_interpose_ef *ef) {
  return ef->last;
}

static lcomm_status create_scatter_residual(lcomm_comm *comm, const shape *it,
                                            lcomm_residual **residual) {
  size_t ranks = (size_t)lcomm_size(comm);
  uint64_t *counts = malloc(ranks * sizeof *counts);
  if (!counts) {
    return LCOMM_ERR_MEMORY;
  }
  for (size_t i = 0; i < ranks; i++) {
    counts[i] = it->count;
  }
  lcomm_status status = lcomm_residual_create_scatter(comm, NULL, counts, it->op, residual);
  free(counts);
  return status;
}

lcomm_status lcomm_interpose_ef_residual(lcomm_interpose_ef *ef, uint32_t site, lcomm_comm *comm,
                                         lcomm_residual **residual) {
  call_site *it = &ef->sites[site];
  lcomm_status status = LCOMM_OK;
  if (!it->residual) {
    status = it->shape.kind == LCOMM_CALL_ALLREDUCE
                 ? lcomm_residual_create(comm, it->shape.count, it->shape.op, &it->residual)
                 : create_scatter_residual(comm, &it->shape, &it->residual);
  }
  *residual = it->residual;
  return status;
}

/* ------------------------------------------------------------------ queries */

unsigned lcomm_interpose_ef_carrying(const lcomm_interpose_ef *ef) {
  return ef->carrying;
}

unsigned lcomm_interpose_ef_sites(const lcomm_interpose_ef *ef) {
  return ef->count;
}

unsigned lcomm_interpose_ef_period(const lcomm_interpose_ef *ef) {
  return ef->pattern.period;
}

bool lcomm_interpose_ef_aliased(lcomm_interpose_ef *ef, const void *buffer) {
  if (ef->aliased || ef->unwatched == 0) {
    return false;
  }
  call_site *site = &ef->sites[ef->unwatched - 1];
  ef->unwatched = 0;
  if (!site->alias) {
    site->alias = calloc(1, sizeof *site->alias);
  }
  ef->aliased = site->alias && lcomm_interpose_alias_see(site->alias, buffer);
  return ef->aliased;
}
