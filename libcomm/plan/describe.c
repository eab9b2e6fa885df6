/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* A plan in words. */

#include "libcomm/base/writer.h"
#include "libcomm/plan/auto.h"

static void describe_algorithm(lcomm_writer *w, const lcomm_plan *plan, const lcomm_topo *topo) {
  if (topo->size == 1) {
    lcomm_write(w, "  algorithm   none, one rank\n");
    return;
  }
  if (plan->collective != LCOMM_COLLECTIVE_ALLREDUCE) {
    lcomm_write(w, "  algorithm   %s over %d node%s", lcomm_collective_name(plan->collective),
                topo->nodes, topo->nodes == 1 ? "" : "s");
    if (plan->shape.exchange == LCOMM_EXCHANGE_RING) {
      lcomm_write(w, ", a ring");
    }
    if (plan->shape.exchange == LCOMM_EXCHANGE_DOUBLING) {
      lcomm_write(w, ", in log2 steps");
    }
    if (plan->shape.chunks > 1) {
      lcomm_write(w, ", a %s, %u chunks", topo->nodes > 1 ? "chain" : "tree", plan->shape.chunks);
    }
    lcomm_write(w, "\n");
    return;
  }
  const char *exchange = lcomm_exchange_name(plan->shape.exchange);
  if (plan->shape.by_racks) {
    lcomm_write(w, "  algorithm   racks(%s): %d racks, %d nodes, %d pieces of %d shards, ",
                exchange, topo->racks.count, topo->nodes, lcomm_racks_smallest(&topo->racks),
                lcomm_topo_smallest_node(topo));
  } else if (plan->shape.leaders) {
    lcomm_write(w, "  algorithm   hier(%s): %d nodes, a leader of each, ", exchange, topo->nodes);
  } else if (plan->shape.hierarchical) {
    lcomm_write(w, "  algorithm   hier(%s): %d node%s, %d shard%s, ", exchange, topo->nodes,
                topo->nodes == 1 ? "" : "s", lcomm_topo_smallest_node(topo),
                lcomm_topo_smallest_node(topo) == 1 ? "" : "s");
  } else {
    lcomm_write(w, "  algorithm   %s over all %d ranks, ", exchange, topo->size);
  }
  lcomm_write(w, "%u chunk%s\n", plan->shape.chunks, plan->shape.chunks == 1 ? "" : "s");
}

lcomm_plan_time lcomm_plan_time_by(const lcomm_plan *plan, const lcomm_topo *topo,
                                   const lcomm_codec_speeds *speeds) {
  return plan->automatic.allowed ? lcomm_auto_predict(plan, topo, plan->automatic.candidate)
                                 : lcomm_plan_predict(plan, topo, speeds);
}

static void describe_time(lcomm_writer *w, const lcomm_plan *plan, const lcomm_topo *topo,
                          const lcomm_codec_speeds *speeds) {
  char text[LCOMM_PLAN_TIME_MAX];
  lcomm_plan_time time = lcomm_plan_time_by(plan, topo, speeds);
  bool silent = speeds || plan->plain || plan->automatic.allowed;
  lcomm_write(w, "  predicted   %s%s\n", lcomm_plan_time_format(&time, text),
              silent ? "" : ", codecs not counted");
}

size_t lcomm_plan_describe_timed(const lcomm_plan *plan, const lcomm_topo *topo,
                                 const lcomm_codec_speeds *speeds, char *text, size_t size) {
  static const char *const stage_names[LCOMM_STAGE_COUNT] = {[LCOMM_STAGE_NODE] = "inside node",
                                                             [LCOMM_STAGE_NET] = "between",
                                                             [LCOMM_STAGE_RESULT] = "result",
                                                             [LCOMM_STAGE_RACK] = "inside rack"};
  lcomm_plan_traffic traffic;
  char name[64];
  lcomm_writer w = lcomm_writer_begin(text, size);
  lcomm_write(&w, "%s of %llu %s%s\n", lcomm_collective_name(plan->collective),
              (unsigned long long)plan->count, lcomm_dtype_name(plan->dtype),
              plan->op == LCOMM_MIN   ? ", smallest"
              : plan->op == LCOMM_MAX ? ", largest"
                                      : "");
  describe_algorithm(&w, plan, topo);
  for (int i = 0; i < LCOMM_STAGE_COUNT - !plan->shape.by_racks; i++) {
    lcomm_write(&w, "  %-12s%s\n", stage_names[i],
                lcomm_codec_spec_format(&plan->stages[i], name, sizeof(name)));
  }
  lcomm_plan_count(plan, topo, &traffic);
  for (int i = 0; i < LCOMM_LINK_COUNT; i++) {
    if (traffic.messages[i] > 0) {
      lcomm_write(&w, "  %-12s%llu messages, at most %llu payload bytes sent by rank %d\n",
                  lcomm_link_name((lcomm_link)i), (unsigned long long)traffic.messages[i],
                  (unsigned long long)traffic.bytes[i], plan->schedule.rank);
    }
  }
  if (topo->racks.count > 1) {
    lcomm_write(&w, "  in the rack %llu messages, at most %llu payload bytes of these\n",
                (unsigned long long)traffic.rack_messages, (unsigned long long)traffic.rack_bytes);
  }
  if (topo->size > 1) {
    describe_time(&w, plan, topo, speeds);
  }
  lcomm_write(&w, "  because     %s\n", plan->reason);
  return w.length;
}

size_t lcomm_plan_describe(const lcomm_plan *plan, const lcomm_topo *topo, char *text,
                           size_t size) {
  return lcomm_plan_describe_timed(plan, topo, NULL, text, size);
}
