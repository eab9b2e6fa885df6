/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/comm/measure.h"

#include <stdio.h>
#include <string.h>

#include "libcomm/base/clock.h"
#include "libcomm/call/call_watch.h"
#include "libcomm/comm/measure_codecs.h"
#include "libcomm/comm/measure_links.h"
#include "libcomm/comm/measure_lowrank.h"

static const lcomm_measure_budget usual = {.links_s = 40e-3, .codecs_s = 15e-3};

static lcomm_status measure_links(lcomm_comm *comm, double within_s, lcomm_auto_figures *it) {
  lcomm_sum_times times = {0};
  LCOMM_TRY(lcomm_links_time(comm, within_s, &times));
  return lcomm_links_fit(comm, &times, it);
}

/* Of all codecs, whatever the class: another policy may come. All ranks do this together,
 * because they will encode together. What a codec leaves of its share of the time is for the
 * next ones. */
static void measure_codecs(const lcomm_comm *comm, double within_s, lcomm_auto_figures *it) {
  double begun_s = lcomm_clock_s();
  for (int i = 0; i < LCOMM_AUTO_CODECS; i++) {
    lcomm_codec_spec choice = lcomm_auto_candidate(i);
    double until_s = begun_s + within_s * (i + 1) / LCOMM_AUTO_CODECS;
    double left_s = until_s - lcomm_clock_s();
    it->codec[i] = choice.rank > 0
                       ? lcomm_lowrank_cost_measure(comm->kernels, choice.rank, left_s)
                       : lcomm_codec_cost_measure(comm->kernels, &choice.format, left_s);
  }
}

static lcomm_status take(lcomm_comm *comm, const lcomm_auto_figures *it) {
  char figures[LCOMM_AUTO_FIGURES_TEXT_MAX], text[LCOMM_AUTO_FIGURES_TEXT_MAX + 64];
  if (!lcomm_auto_figures_are_possible(it)) {
    return lcomm_fail_peer(comm, LCOMM_ERR_WIRE, 0,
                           "measuring for net=auto: rank 0 tells figures that cannot be");
  }
  lcomm_auto_figures_put(it, &comm->topo);
  if (comm->rank == 0) {
    snprintf(text, sizeof(text), "net=auto: between nodes were measured %s",
             lcomm_auto_figures_format(&comm->topo, figures));
    lcomm_log_info(text);
  }
  return LCOMM_OK;
}

static lcomm_status measure(lcomm_comm *comm, const lcomm_measure_budget *budget) {
  lcomm_auto_figures it = lcomm_auto_figures_of(&comm->topo);
  lcomm_status status = LCOMM_OK;
  if (comm->topo.cost[LCOMM_LINK_NET].assumed) {
    status = measure_links(comm, budget->links_s, &it);
  }
  measure_codecs(comm, budget->codecs_s, &it);
  if (status == LCOMM_OK) {
    status = lcomm_measure_tell(comm, &it, sizeof it);
  }
  lcomm_run_cache_clear(&comm->runs.cache);
  LCOMM_TRY(status);
  return take(comm, &it);
}

lcomm_status lcomm_costs_measure_within(lcomm_comm *comm, const lcomm_measure_budget *budget) {
  bool acts = comm->topo.nodes > 1 && lcomm_policy_is_automatic(&comm->settings.policy);
  bool known = comm->topo.codec_cost[LCOMM_AUTO_INT8].encode_gb_s > 0;
  LCOMM_TRY(acts && !known ? measure(comm, budget) : LCOMM_OK);
  return lcomm_call_watch_renew(comm);
}

lcomm_status lcomm_costs_measure(lcomm_comm *comm) {
  return lcomm_costs_measure_within(comm, &usual);
}

void lcomm_costs_inherit(lcomm_comm *part, const lcomm_comm *whole) {
  const lcomm_topo *topo = lcomm_topo_of_calls(whole);
  memcpy(part->topo.cost, topo->cost, sizeof(part->topo.cost));
  memcpy(part->topo.codec_cost, topo->codec_cost, sizeof(part->topo.codec_cost));
  (void)lcomm_call_watch_renew(part); /* sticky */
}
