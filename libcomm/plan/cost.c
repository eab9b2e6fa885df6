/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/plan/cost.h"

#include <math.h>

#include "libcomm/base/writer.h"

/* ------------------------------------------------------------------ bytes */

/* Of the plan's rank, each way. */
typedef struct way {
  double sent[LCOMM_LINK_COUNT], received[LCOMM_LINK_COUNT];
} way;

static way count_bytes(const lcomm_plan *plan, const lcomm_topo *topo) {
  const lcomm_schedule *schedule = &plan->schedule;
  way it = {0};
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    const lcomm_step *step = &schedule->steps[i];
    if (step->kind == LCOMM_STEP_SEND || step->kind == LCOMM_STEP_RECV) {
      lcomm_link link = lcomm_topo_link(topo, schedule->rank, step->peer);
      double *bytes = step->kind == LCOMM_STEP_SEND ? it.sent : it.received;
      bytes[link] += (double)plan->slot_bounds[step->slot];
    }
  }
  return it;
}

/* Ranks of this node that use its network card alike. */
static double sharers(const lcomm_plan *plan, const lcomm_topo *topo, lcomm_link link) {
  int size = topo->node_size[topo->node[plan->schedule.rank]];
  return link == LCOMM_LINK_NET && !plan->shape.leaders ? size : 1;
}

static bool is_used(const way *it, lcomm_link link) {
  return it->sent[link] + it->received[link] > 0;
}

static void add_links(const lcomm_plan *plan, const lcomm_topo *topo, const way *it,
                      lcomm_plan_time *time) {
  for (int link = 0; link < LCOMM_LINK_COUNT; link++) {
    if (is_used(it, (lcomm_link)link)) {
      const lcomm_link_cost *cost = &topo->cost[link];
      double bytes = fmax(it->sent[link], it->received[link]);
      time->link_us[link] =
          bytes * sharers(plan, topo, (lcomm_link)link) / cost->bandwidth_gb_s / 1e3;
      time->assumed |= cost->assumed;
    }
  }
}

/* ----------------------------------------------------------------- rounds */

/* Rounds of messages of the exchange that is farthest. */
static int far_rounds(const lcomm_plan *plan, const lcomm_topo *topo) {
  int parties = plan->shape.hierarchical ? topo->nodes : topo->size;
  if (plan->collective != LCOMM_COLLECTIVE_ALLREDUCE) {
    return 1;
  }
  switch (plan->shape.exchange) {
  case LCOMM_EXCHANGE_GATHER:
    return 1;
  case LCOMM_EXCHANGE_RING:
    return 2 * (parties - 1);
  default:
    return 2;
  }
}

static void add_latency(const lcomm_plan *plan, const lcomm_topo *topo, const way *it,
                        lcomm_plan_time *time) {
  double far_us = 0, near_us = 0;
  for (int link = 0; link < LCOMM_LINK_COUNT; link++) {
    if (is_used(it, (lcomm_link)link)) {
      double *us = link == LCOMM_LINK_NET || !plan->shape.hierarchical ? &far_us : &near_us;
      *us = fmax(*us, topo->cost[link].latency_us);
    }
  }
  time->latency_us = far_us * far_rounds(plan, topo) + near_us * 2;
}

/* ----------------------------------------------------------------- codecs */

static double codec_us(double count, double gb_s) {
  return gb_s > 0 ? count * sizeof(float) / gb_s / 1e3 : 0;
}

static double step_us(const lcomm_plan *plan, const lcomm_step *step,
                      const lcomm_codec_speeds *speeds) {
  const lcomm_schedule *schedule = &plan->schedule;
  double us = 0;
  if (step->kind == LCOMM_STEP_ENCODE || step->kind == LCOMM_STEP_DECODE) {
    const lcomm_slot *slot = &schedule->slots[step->slot];
    bool encodes = step->kind == LCOMM_STEP_ENCODE;
    double gb_s = encodes ? speeds->encode_gb_s[slot->stage] : speeds->decode_gb_s[slot->stage];
    return slot->alias.count > 0 ? 0 : codec_us((double)lcomm_span_count(step->span), gb_s);
  }
  for (uint32_t i = 0; step->kind == LCOMM_STEP_REDUCE && i < step->slot_count; i++) {
    uint32_t source = schedule->sources[step->sources + i];
    if (source != LCOMM_SOURCE_SELF) {
      us += codec_us((double)lcomm_span_count(step->span),
                     speeds->decode_gb_s[schedule->slots[source].stage]);
    }
  }
  return us;
}

static void add_codecs(const lcomm_plan *plan, const lcomm_codec_speeds *speeds,
                       lcomm_plan_time *time) {
  for (uint32_t i = 0; i < plan->schedule.step_count; i++) {
    time->codec_us += step_us(plan, &plan->schedule.steps[i], speeds);
  }
}

/* -------------------------------------------------------------------- all */

lcomm_plan_time lcomm_plan_predict(const lcomm_plan *plan, const lcomm_topo *topo,
                                   const lcomm_codec_speeds *speeds) {
  lcomm_plan_time time = {0};
  way it = count_bytes(plan, topo);
  add_links(plan, topo, &it, &time);
  add_latency(plan, topo, &it, &time);
  if (speeds) {
    add_codecs(plan, speeds, &time);
  }
  double longest = 0, sum = time.codec_us;
  for (int link = 0; link < LCOMM_LINK_COUNT; link++) {
    longest = fmax(longest, time.link_us[link]);
    sum += time.link_us[link];
  }
  longest = fmax(longest, time.codec_us);
  double chunks = plan->shape.chunks > 0 ? plan->shape.chunks : 1;
  time.total_us = longest + (sum - longest) / chunks + time.latency_us;
  return time;
}

static void write_time(lcomm_writer *w, const char *before, double us) {
  double shown = us >= 1e6 ? us / 1e6 : us >= 1e3 ? us / 1e3 : us;
  double step = shown >= 100 ? 1 : shown >= 10 ? 0.1 : shown >= 1 ? 0.01 : 0.001;
  lcomm_write(w, "%s", before);
  lcomm_write_decimal(w, floor(shown / step + 0.5) * step);
  lcomm_write(w, us >= 1e6 ? " s" : us >= 1e3 ? " ms" : " us");
}

const char *lcomm_plan_time_format(const lcomm_plan_time *time, char text[LCOMM_PLAN_TIME_MAX]) {
  const char *separator = ": ";
  lcomm_writer w = lcomm_writer_begin(text, LCOMM_PLAN_TIME_MAX);
  write_time(&w, "", time->total_us);
  for (int link = LCOMM_LINK_COUNT - 1; link >= 0; link--) {
    if (time->link_us[link] > 0) {
      lcomm_write(&w, "%s%s", separator, lcomm_link_name((lcomm_link)link));
      write_time(&w, " ", time->link_us[link]);
      separator = ", ";
    }
  }
  if (time->codec_us > 0) {
    lcomm_write(&w, "%scodecs", separator);
    write_time(&w, " ", time->codec_us);
    separator = ", ";
  }
  lcomm_write(&w, "%slatency", separator);
  write_time(&w, " ", time->latency_us);
  lcomm_write(&w, "; links %s", time->assumed ? "assumed" : "measured");
  return text;
}
