/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Traffic: what a plan sends over which links. */

#include <stdio.h>
#include <stdlib.h>

#include "libcomm/base/error.h"
#include "libcomm/base/writer.h"
#include "libcomm/plan/plan.h"

enum { LISTED_RANKS_MAX = 16, PLANNED_RANKS_MAX = 256 };

void lcomm_plan_count(const lcomm_plan *plan, const lcomm_topo *topo, lcomm_plan_traffic *traffic) {
  const lcomm_schedule *schedule = &plan->schedule;
  *traffic = (lcomm_plan_traffic){0};
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    const lcomm_step *step = &schedule->steps[i];
    if (step->kind == LCOMM_STEP_SEND) {
      lcomm_link link = lcomm_topo_link(topo, schedule->rank, step->peer);
      traffic->messages[link]++;
      traffic->bytes[link] += plan->slot_sizes[step->slot].share;
      bool in_rack = lcomm_topo_shares_rack(topo, schedule->rank, step->peer);
      traffic->rack_messages += in_rack;
      traffic->rack_bytes += in_rack ? plan->slot_sizes[step->slot].share : 0;
    }
  }
}

uint64_t lcomm_plan_bytes_between_nodes(const lcomm_plan *plan, const lcomm_topo *topo) {
  const lcomm_schedule *schedule = &plan->schedule;
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    const lcomm_step *step = &schedule->steps[i];
    if (step->kind == LCOMM_STEP_SEND && topo->node[step->peer] != topo->node[schedule->rank]) {
      bytes += plan->slot_sizes[step->slot].share;
    }
  }
  return bytes;
}

/* ------------------------------------------------------------------ print */

/* What all ranks send; row `size` is their sum. */
static lcomm_status count_all(const lcomm_plan_request *request, const lcomm_policy *policy,
                              const lcomm_topo *topo, lcomm_plan_traffic *rows, lcomm_why *why) {
  lcomm_plan_traffic *sum = &rows[topo->size];
  for (int rank = 0; rank < topo->size; rank++) {
    lcomm_plan *plan = NULL;
    LCOMM_TRY(lcomm_plan_create(request, policy, topo, rank, &plan, why));
    lcomm_plan_count(plan, topo, &rows[rank]);
    lcomm_plan_destroy(plan);
    for (int link = 0; link < LCOMM_LINK_COUNT; link++) {
      sum->messages[link] += rows[rank].messages[link];
      sum->bytes[link] += rows[rank].bytes[link];
    }
    sum->rack_messages += rows[rank].rack_messages;
    sum->rack_bytes += rows[rank].rack_bytes;
  }
  return LCOMM_OK;
}

static void write_row(lcomm_writer *w, const char *name, const lcomm_plan_traffic *row,
                      const lcomm_plan_traffic *sum) {
  lcomm_write(w, "# %-7s", name);
  for (int link = 0; link < LCOMM_LINK_COUNT; link++) {
    if (sum->messages[link] > 0) {
      lcomm_write(w, " %16llu", (unsigned long long)row->bytes[link]);
    }
  }
  if (sum->rack_messages > 0) {
    lcomm_write(w, " %16llu", (unsigned long long)row->rack_bytes);
  }
  lcomm_write(w, "\n");
}

static void write_table(lcomm_writer *w, const lcomm_plan_request *request,
                        const lcomm_plan_traffic *rows, int size) {
  const lcomm_plan_traffic *sum = &rows[size];
  char name[16];
  lcomm_write(w, "# %s of %llu %s: payload bytes sent, at most\n# rank   ",
              lcomm_collective_name(request->collective), (unsigned long long)request->count,
              lcomm_dtype_name(request->dtype));
  for (int link = 0; link < LCOMM_LINK_COUNT; link++) {
    if (sum->messages[link] > 0) {
      lcomm_write(w, " %16s", lcomm_link_name((lcomm_link)link));
    }
  }
  if (sum->rack_messages > 0) {
    lcomm_write(w, " %16s", "of it in racks");
  }
  lcomm_write(w, "\n");
  for (int rank = 0; size <= LISTED_RANKS_MAX && rank < size; rank++) {
    snprintf(name, sizeof(name), "%d", rank);
    write_row(w, name, &rows[rank], sum);
  }
  write_row(w, "all", sum, sum);
}

lcomm_status lcomm_plan_traffic_print(const lcomm_plan_request *request, const lcomm_policy *policy,
                                      const lcomm_topo *topo, char *text, size_t size,
                                      lcomm_why *why) {
  lcomm_writer w = lcomm_writer_begin(text, size);
  if (topo->size > PLANNED_RANKS_MAX) {
    lcomm_write(&w, "# %d ranks, too many to plan for all of them\n", topo->size);
    return LCOMM_OK;
  }
  lcomm_plan_traffic *rows = calloc((size_t)topo->size + 1, sizeof *rows);
  if (!rows) {
    return lcomm_why_set(why, LCOMM_ERR_MEMORY, "no memory for the traffic of %d ranks",
                         topo->size);
  }
  lcomm_status status = count_all(request, policy, topo, rows, why);
  if (status == LCOMM_OK) {
    write_table(&w, request, rows, topo->size);
  }
  free(rows);
  return status;
}
