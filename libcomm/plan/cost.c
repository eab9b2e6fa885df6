/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/plan/cost.h"

#include <math.h>

#include "libcomm/base/writer.h"

/* Where nobody measured it, this share of the latency is the processor's at one of the ends. */
static const double MESSAGE_SHARE = 0.25;

double lcomm_message_cost_us(const lcomm_link_cost *cost) {
  return cost->message_us > 0 ? cost->message_us : MESSAGE_SHARE * cost->latency_us;
}

/* -------------------------------------------------------------- exchanges */

/* What else could be sent in the time that a message, or a round, takes by itself, where nobody
 * has measured it. Over TCP a message costs some 15 us of a processor, which is 2 KiB at 1 Gbit/s
 * and 18 KiB at 10. */
static const double ASSUMED_BYTES = 4 << 10;

/* The same by what was measured: a message costs a processor at both of its ends, and of as many
 * as a rank sends it receives the other end; a round costs the latency. */
typedef struct fixed_costs {
  double message_bytes, round_bytes;
} fixed_costs;

static fixed_costs fixed_costs_of(const lcomm_link_cost *net) {
  if (net->assumed) {
    return (fixed_costs){ASSUMED_BYTES, ASSUMED_BYTES};
  }
  double bytes_per_us = net->bandwidth_gb_s * 1e3;
  return (fixed_costs){2 * lcomm_message_cost_us(net) * bytes_per_us,
                       net->latency_us * bytes_per_us};
}

/* Ranks that are left when others are folded away: the largest power of two. A rank that another
 * one folds into sends it the sum at the end, two rounds later than without. */
static lcomm_exchange_cost halving(uint64_t ranks, uint64_t size, bool halves) {
  uint64_t rounds = 63u - (unsigned)__builtin_clzll(ranks), left = UINT64_C(1) << rounds;
  uint64_t fold = left < ranks ? 1 : 0;
  uint64_t messages = halves ? 2 * rounds : rounds;
  uint64_t exchanged = halves ? 2 * (left - 1) * size / left : rounds * size;
  return (lcomm_exchange_cost){messages + fold, messages + 2 * fold, exchanged + fold * size};
}

lcomm_exchange_cost lcomm_exchange_cost_of(lcomm_exchange_kind kind, int ranks, uint64_t size) {
  uint64_t all = (uint64_t)ranks, peers = all - 1, twice = 2 * peers * size / all;
  switch (kind) {
  case LCOMM_EXCHANGE_GATHER:
    return (lcomm_exchange_cost){peers, 1, peers * size};
  case LCOMM_EXCHANGE_RING:
    return (lcomm_exchange_cost){2 * peers, 2 * peers, twice};
  case LCOMM_EXCHANGE_DOUBLING:
    return halving(all, size, false);
  case LCOMM_EXCHANGE_HALVING:
    return halving(all, size, true);
  default: /* direct and sparse */
    return (lcomm_exchange_cost){2 * peers, 2, twice};
  }
}

/* As Hockney's model has it (1994): a fixed part for each message and round, and one for each
 * byte. */
static double weight_of_cost(lcomm_exchange_cost cost, fixed_costs fixed) {
  return (double)cost.size + fixed.message_bytes * (double)cost.messages +
         fixed.round_bytes * (double)cost.rounds;
}

static double weight_of(lcomm_exchange_kind kind, int ranks, uint64_t size, fixed_costs fixed) {
  return weight_of_cost(lcomm_exchange_cost_of(kind, ranks, size), fixed);
}

lcomm_exchange_kind lcomm_cheapest_exchange(const lcomm_link_cost *net, int ranks, uint64_t size) {
  /* of equal ones the first, which has fewer messages */
  static const lcomm_exchange_kind kinds[] = {LCOMM_EXCHANGE_DOUBLING, LCOMM_EXCHANGE_GATHER,
                                              LCOMM_EXCHANGE_HALVING, LCOMM_EXCHANGE_DIRECT};
  fixed_costs fixed = fixed_costs_of(net);
  lcomm_exchange_kind best = kinds[0];
  for (size_t i = 1; i < sizeof kinds / sizeof *kinds; i++) {
    bool less = weight_of(kinds[i], ranks, size, fixed) < weight_of(best, ranks, size, fixed);
    best = less ? kinds[i] : best;
  }
  return best;
}

/* Nodes that tell each other what all their ranks have, or ranks: move_bruck.c. */
static int parties_of(const lcomm_topo *topo) {
  return lcomm_topo_nodes_in_row(topo) ? topo->nodes : topo->size;
}

static lcomm_exchange_cost doubling_gather(int parties, uint64_t size) {
  uint64_t all = (uint64_t)parties, rounds = 0;
  while ((UINT64_C(1) << rounds) < all) {
    rounds++;
  }
  return (lcomm_exchange_cost){rounds, rounds, (all - 1) * (size / all)};
}

bool lcomm_gathers_by_doubling(const lcomm_topo *topo, uint64_t size) {
  uint64_t others = (uint64_t)topo->nodes - 1;
  fixed_costs fixed = fixed_costs_of(&topo->cost[LCOMM_LINK_NET]);
  lcomm_exchange_cost straight = {others, 1, others * (size / (uint64_t)topo->size)};
  return topo->nodes > 1 && weight_of_cost(doubling_gather(parties_of(topo), size), fixed) <
                                weight_of_cost(straight, fixed);
}

/* ------------------------------------------------------------------ bytes */

/* Of the plan's rank, each way. */
typedef struct way {
  double sent[LCOMM_LINK_COUNT], received[LCOMM_LINK_COUNT];
  double messages; /* between nodes, both ways */
} way;

static way count_bytes(const lcomm_plan *plan, const lcomm_topo *topo) {
  const lcomm_schedule *schedule = &plan->schedule;
  way it = {0};
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    const lcomm_step *step = &schedule->steps[i];
    if (step->kind == LCOMM_STEP_SEND || step->kind == LCOMM_STEP_RECV) {
      lcomm_link link = lcomm_topo_link(topo, schedule->rank, step->peer);
      double *bytes = step->kind == LCOMM_STEP_SEND ? it.sent : it.received;
      bytes[link] += (double)plan->slot_sizes[step->slot].share;
      it.messages += link == LCOMM_LINK_NET;
    }
  }
  return it;
}

/* Ranks of this node that use its network card alike: of an all-reduce by shards those that own
 * one. */
static double sharers(const lcomm_plan *plan, const lcomm_topo *topo, lcomm_link link) {
  int size = topo->node_size[topo->node[plan->schedule.rank]];
  if (link != LCOMM_LINK_NET || plan->shape.leaders) {
    return 1;
  }
  return plan->shape.hierarchical ? lcomm_topo_smallest_node(topo) : size;
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

/* Rounds of messages of the exchange that is farthest; by racks one inside each before it, and one
 * behind. */
static double net_rounds(const lcomm_plan *plan, const lcomm_topo *topo) {
  int parties = plan->shape.hierarchical ? topo->nodes : topo->size;
  if (plan->collective == LCOMM_COLLECTIVE_ALLREDUCE) {
    parties = plan->shape.by_racks ? topo->racks.count : parties;
    return (double)lcomm_exchange_cost_of(plan->shape.exchange, parties, 0).rounds +
           (plan->shape.by_racks ? 2 : 0);
  }
  if (plan->shape.exchange == LCOMM_EXCHANGE_DOUBLING) {
    return (double)doubling_gather(parties_of(topo), 0).rounds;
  }
  bool around = plan->shape.exchange == LCOMM_EXCHANGE_RING || plan->shape.chunks > 1;
  return around && topo->nodes > 1 ? topo->nodes - 1 : 1;
}

static void add_latency(const lcomm_plan *plan, const lcomm_topo *topo, const way *it,
                        lcomm_plan_time *time) {
  double net_us = 0, node_us = 0;
  for (int link = 0; link < LCOMM_LINK_COUNT; link++) {
    if (is_used(it, (lcomm_link)link)) {
      double *us = link == LCOMM_LINK_NET || !plan->shape.hierarchical ? &net_us : &node_us;
      *us = fmax(*us, topo->cost[link].latency_us);
    }
  }
  time->latency_us = net_us * net_rounds(plan, topo) + node_us * 2;
}

/* ----------------------------------------------------------------- codecs */

static double codec_us(uint64_t count, double gb_s, double each_us) {
  return gb_s > 0 && count > 0 ? (double)count * sizeof(float) / gb_s / 1e3 + each_us : 0;
}

static double decode_us(uint64_t count, lcomm_stage stage, const lcomm_codec_speeds *speeds) {
  return codec_us(count, speeds->decode_gb_s[stage], speeds->decode_us[stage]);
}

static double step_us(const lcomm_plan *plan, const lcomm_step *step,
                      const lcomm_codec_speeds *speeds) {
  const lcomm_schedule *schedule = &plan->schedule;
  double us = 0;
  if (step->kind == LCOMM_STEP_ENCODE || step->kind == LCOMM_STEP_DECODE) {
    const lcomm_slot *slot = &schedule->slots[step->slot];
    uint64_t count = lcomm_span_count(step->span);
    us = step->kind == LCOMM_STEP_ENCODE
             ? codec_us(count, speeds->encode_gb_s[slot->stage], speeds->encode_us[slot->stage])
             : decode_us(count, slot->stage, speeds);
    return slot->alias.count > 0 ? 0 : us;
  }
  for (uint32_t i = 0; step->kind == LCOMM_STEP_REDUCE && i < step->slot_count; i++) {
    uint32_t source = schedule->sources[step->sources + i];
    if (source != LCOMM_SOURCE_SELF) {
      us += decode_us(lcomm_span_count(step->span), schedule->slots[source].stage, speeds);
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
  time.message_us = it.messages * lcomm_message_cost_us(&topo->cost[LCOMM_LINK_NET]);
  double processor_us = time.codec_us + time.message_us;
  double longest = 0, sum = processor_us;
  for (int link = 0; link < LCOMM_LINK_COUNT; link++) {
    longest = fmax(longest, time.link_us[link]);
    sum += time.link_us[link];
  }
  longest = fmax(longest, processor_us);
  double chunks = plan->shape.chunks > 0 ? plan->shape.chunks : 1;
  time.total_us = longest + (sum - longest) / chunks + time.latency_us;
  return time;
}

void lcomm_plan_write_us(lcomm_writer *w, double us) {
  double shown = us >= 1e6 ? us / 1e6 : us >= 1e3 ? us / 1e3 : us;
  double step = shown >= 100 ? 1 : shown >= 10 ? 0.1 : shown >= 1 ? 0.01 : 0.001;
  lcomm_write_decimal(w, floor(shown / step + 0.5) * step);
  lcomm_write(w, us >= 1e6 ? " s" : us >= 1e3 ? " ms" : " us");
}

const char *lcomm_plan_time_format(const lcomm_plan_time *time, char text[LCOMM_PLAN_TIME_MAX]) {
  const char *separator = ": ";
  lcomm_writer w = lcomm_writer_begin(text, LCOMM_PLAN_TIME_MAX);
  lcomm_plan_write_us(&w, time->total_us);
  for (int link = LCOMM_LINK_COUNT - 1; link >= 0; link--) {
    if (time->link_us[link] > 0) {
      lcomm_write(&w, "%s%s ", separator, lcomm_link_name((lcomm_link)link));
      lcomm_plan_write_us(&w, time->link_us[link]);
      separator = ", ";
    }
  }
  if (time->codec_us > 0) {
    lcomm_write(&w, "%scodecs ", separator);
    lcomm_plan_write_us(&w, time->codec_us);
    separator = ", ";
  }
  if (time->message_us > 0) {
    lcomm_write(&w, "%smessages ", separator);
    lcomm_plan_write_us(&w, time->message_us);
    separator = ", ";
  }
  lcomm_write(&w, "%slatency ", separator);
  lcomm_plan_write_us(&w, time->latency_us);
  lcomm_write(&w, "; links %s", time->assumed ? "assumed" : "measured");
  return text;
}
