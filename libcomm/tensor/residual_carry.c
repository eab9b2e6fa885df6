/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/tensor/residual_carry.h"

#include <stdlib.h>

#include "libcomm/engine/entry.h"
#include "libcomm/engine/handles.h"
#include "libcomm/tensor/residual_guard.h"

/* ---------------------------------------------------------------- standing */

uint32_t lcomm_residuals_count(const lcomm_comm *comm) {
  uint32_t count = 0;
  for (const lcomm_residual *it = comm->residuals->first; it; it = it->next) {
    count++;
  }
  return count;
}

/* The newest is the first one. */
void lcomm_residuals_stand(const lcomm_comm *comm, lcomm_call_standing *mine) {
  size_t at = lcomm_residuals_count(comm);
  for (const lcomm_residual *it = comm->residuals->first; it; it = it->next) {
    mine[--at] = (lcomm_call_standing){it->number, it->ended};
  }
}

/* That of a residual on a rank; NULL: it has none. */
static const lcomm_call_standing *find(const lcomm_call_standing *of_rank, size_t each,
                                       uint64_t number) {
  size_t low = 0, high = each;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    uint64_t here = of_rank[middle].number;
    if (here == number) {
      return &of_rank[middle];
    }
    if (here > 0 && here < number) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return NULL;
}

static lcomm_status settle(lcomm_residual *residual, uint64_t least, uint64_t most) {
  bool is_ahead = residual->ended > least;
  if (most - least > 1 || (is_ahead && !lcomm_residual_undo(residual))) {
    return lcomm_error_thread(LCOMM_ERR_MISMATCH,
                              "some survivors have finished %llu calls with residual %llu, others "
                              "%llu, and the last one cannot be undone; all ranks make the same "
                              "calls with a residual",
                              (unsigned long long)most, (unsigned long long)residual->number,
                              (unsigned long long)least);
  }
  return LCOMM_OK;
}

lcomm_status lcomm_residuals_settle(lcomm_comm *comm, const lcomm_call_standing *all, size_t each,
                                    int ranks) {
  for (lcomm_residual *it = comm->residuals->first; it; it = it->next) {
    uint64_t least = it->ended, most = least;
    it->apart = false;
    for (int rank = 0; rank < ranks; rank++) {
      const lcomm_call_standing *there = find(all + (size_t)rank * each, each, it->number);
      it->apart |= !there;
      least = there && there->ended < least ? there->ended : least;
      most = there && there->ended > most ? there->ended : most;
    }
    LCOMM_TRY(it->apart ? LCOMM_OK : settle(it, least, most));
  }
  return LCOMM_OK;
}

/* ------------------------------------------------------------------ moving */

/* What a residual was where it comes from. */
typedef struct lcomm_residual_row {
  lcomm_residual *residual;
  lcomm_residual_left *left; /* there */
  uint64_t *part_counts;     /* where it goes; NULL for an all-reduce */
  lcomm_guarded guarded;
  uint64_t calls, revisions;
} row;

static void free_rows(lcomm_carry *it) {
  free(it->residuals);
  it->residuals = NULL;
  it->residual_count = 0;
}

static uint64_t *share_evenly(uint64_t count, int ranks) {
  uint64_t *parts = malloc((size_t)ranks * sizeof *parts);
  for (int rank = 0; parts && rank < ranks; rank++) {
    parts[rank] = count / (uint64_t)ranks + ((uint64_t)rank < count % (uint64_t)ranks);
  }
  return parts;
}

/* All memory, before anything is moved. */
static bool make_rows(lcomm_carry *it) {
  it->residuals = calloc((size_t)lcomm_residuals_count(it->from) + 1, sizeof *it->residuals);
  bool whole = it->residuals != NULL;
  for (lcomm_residual *from = it->from->residuals->first; whole && from; from = from->next) {
    row *made = &it->residuals[it->residual_count++];
    made->residual = from;
    made->left = calloc(1, sizeof *made->left);
    if (from->part_counts) {
      made->part_counts = share_evenly(from->ef.request.count, it->to->size);
    }
    whole = made->left && (made->part_counts || !from->part_counts);
  }
  for (size_t i = 0; !whole && i < it->residual_count; i++) {
    free(it->residuals[i].left);
    free(it->residuals[i].part_counts);
  }
  return whole;
}

/* What it works with stays, with the runs that requests of the program still name. */
static void leave(lcomm_residual *residual, lcomm_residual_left *left) {
  lcomm_residual_set *set = residual->ef.comm->residuals;
  *left = (lcomm_residual_left){
      .ef = residual->ef, .part_counts = residual->part_counts, .next = set->left};
  set->left = left;
}

static void move(const lcomm_carry *it, row *was) {
  lcomm_residual *residual = was->residual;
  lcomm_residual_guard_free(residual); /* its samples are of calls that are over */
  was->guarded = residual->guarded;
  was->calls = residual->calls;
  was->revisions = residual->revisions;
  leave(residual, was->left);
  lcomm_residual_place(residual, it->to, was->part_counts);
  lcomm_guarded_forget(&residual->guarded);
  residual->revisions = 0;
  residual->counted = residual->discarded = false;
}

static void pass_list(lcomm_comm *from, lcomm_comm *to) {
  to->residuals->first = from->residuals->first;
  to->residuals->made = from->residuals->made;
  from->residuals->first = NULL;
  for (lcomm_residual *it = to->residuals->first; it; it = it->next) {
    lcomm_handle_pass(it, to);
  }
}

lcomm_status lcomm_residuals_move(lcomm_carry *it) {
  if (!make_rows(it)) {
    free_rows(it);
    return LCOMM_ERR_MEMORY;
  }
  for (size_t i = 0; i < it->residual_count; i++) {
    move(it, &it->residuals[i]);
  }
  pass_list(it->from, it->to);
  return LCOMM_OK;
}

static void take_back(lcomm_residual_set *set, const row *was) {
  lcomm_residual *residual = was->residual;
  lcomm_residual_left **link = &set->left;
  while (*link != was->left) {
    link = &(*link)->next;
  }
  *link = was->left->next;
  residual->ef = was->left->ef;
  residual->part_counts = was->left->part_counts;
  residual->guarded = was->guarded;
  residual->guarded.share = NULL;
  residual->calls = was->calls;
  residual->revisions = was->revisions;
  free(was->left);
}

void lcomm_residuals_undo(lcomm_carry *it) {
  for (size_t i = 0; i < it->residual_count; i++) {
    const row *was = &it->residuals[i];
    lcomm_residual_guard_free(was->residual);
    lcomm_ef_free(&was->residual->ef);
    free(was->part_counts);
    take_back(it->from->residuals, was);
  }
  pass_list(it->to, it->from);
  free_rows(it);
}

void lcomm_residuals_finish(lcomm_carry *it) {
  for (size_t i = 0; i < it->residual_count; i++) {
    it->residuals[i].residual->apart = false;
  }
  free_rows(it);
}

/* --------------------------------------------------------------- numbering */

static void take_numbers(lcomm_comm *comm, const lcomm_call_standing *of_first, size_t count) {
  for (lcomm_residual *it = comm->residuals->first; it; it = it->next) {
    count--;
    lcomm_residual_set_number(it, of_first[count].number);
    it->ended = of_first[count].ended;
    it->apart = false;
  }
}

static lcomm_status receive_numbers(lcomm_comm *comm, size_t count) {
  lcomm_call_standing *of_first = calloc(count + 1, sizeof *of_first);
  if (!of_first) {
    return lcomm_fail(comm, LCOMM_ERR_MEMORY, "out of memory for %zu residuals", count);
  }
  lcomm_residuals_stand(comm, of_first);
  lcomm_status status = lcomm_call_broadcast_bytes(comm, of_first, count * sizeof *of_first, 0);
  if (status == LCOMM_OK) {
    take_numbers(comm, of_first, count);
  }
  free(of_first);
  return status;
}

/* Rank 0 has been there before. */
lcomm_status lcomm_residuals_number(lcomm_comm *comm) {
  uint64_t count = lcomm_residuals_count(comm);
  uint64_t told[] = {count, comm->residuals->made};
  LCOMM_TRY(lcomm_call_broadcast_bytes(comm, told, sizeof(told), 0));
  if (told[0] != count) {
    return lcomm_fail(comm, LCOMM_ERR_MISMATCH,
                      "newcomers have joined, and there are %llu residuals here, but %llu on rank "
                      "0; newcomers make the same residuals in the same order, before tensors or "
                      "residuals are used",
                      (unsigned long long)count, (unsigned long long)told[0]);
  }
  comm->residuals->made = told[1];
  return count > 0 ? receive_numbers(comm, (size_t)count) : LCOMM_OK;
}

/* ------------------------------------------------------------- breaking off */

/* Its request stays with the program, and so does the run that it names. */
static lcomm_status keep_run(lcomm_residual *residual) {
  lcomm_residual_set *set = residual->ef.comm->residuals;
  lcomm_residual_left *left = calloc(1, sizeof *left);
  if (!left) {
    return LCOMM_ERR_MEMORY;
  }
  *left = (lcomm_residual_left){.ef = {.comm = residual->ef.comm, .run = residual->ef.run},
                                .next = set->left};
  set->left = left;
  residual->ef.run = NULL;
  return LCOMM_OK;
}

lcomm_status lcomm_residuals_break_off(lcomm_comm *comm) {
  for (lcomm_residual *it = comm->residuals->first; it; it = it->next) {
    if (it->operation && keep_run(it) != LCOMM_OK) {
      return lcomm_refuse(comm, LCOMM_ERR_MEMORY, "out of memory for a residual");
    }
    lcomm_residual_break_off(it);
  }
  return LCOMM_OK;
}
