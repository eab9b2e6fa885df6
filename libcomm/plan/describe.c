/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* A plan in words. */

#include <stdarg.h>
#include <stdio.h>

#include "libcomm/plan/plan.h"

typedef struct writer {
  char *text;
  size_t size, used;
} writer;

__attribute__((format(printf, 2, 3))) static void write_text(writer *w, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  size_t room = w->used < w->size ? w->size - w->used : 0;
  int length = vsnprintf(room ? w->text + w->used : NULL, room, format, arguments);
  va_end(arguments);
  w->used += length > 0 ? (size_t)length : 0;
}

static void describe_algorithm(writer *w, const lcomm_plan *plan, const lcomm_topo *topo) {
  if (topo->size == 1) {
    write_text(w, "  algorithm   none, one rank\n");
    return;
  }
  if (plan->collective != LCOMM_COLLECTIVE_ALLREDUCE) {
    write_text(w, "  algorithm   %s over %d node%s\n", lcomm_collective_name(plan->collective),
               topo->nodes, topo->nodes == 1 ? "" : "s");
    return;
  }
  const char *exchange = lcomm_exchange_name(plan->shape.exchange);
  if (plan->shape.leaders) {
    write_text(w, "  algorithm   hier(%s): %d nodes, a leader of each, ", exchange, topo->nodes);
  } else if (plan->shape.hierarchical) {
    write_text(w, "  algorithm   hier(%s): %d node%s, %d shard%s, ", exchange, topo->nodes,
               topo->nodes == 1 ? "" : "s", lcomm_topo_smallest_node(topo),
               lcomm_topo_smallest_node(topo) == 1 ? "" : "s");
  } else {
    write_text(w, "  algorithm   %s over all %d ranks, ", exchange, topo->size);
  }
  write_text(w, "%u chunk%s\n", plan->shape.chunks, plan->shape.chunks == 1 ? "" : "s");
}

size_t lcomm_plan_describe(const lcomm_plan *plan, const lcomm_topo *topo, char *text,
                           size_t size) {
  static const char *const stage_names[] = {"inside node", "between", "result"};
  lcomm_plan_traffic traffic;
  char name[64];
  writer w = {text, size, 0};
  write_text(&w, "%s of %llu %s%s\n", lcomm_collective_name(plan->collective),
             (unsigned long long)plan->count, lcomm_dtype_name(plan->dtype),
             plan->op == LCOMM_MIN   ? ", smallest"
             : plan->op == LCOMM_MAX ? ", largest"
                                     : "");
  describe_algorithm(&w, plan, topo);
  for (int i = 0; i < LCOMM_STAGE_COUNT; i++) {
    write_text(&w, "  %-12s%s\n", stage_names[i],
               lcomm_codec_choice_format(&plan->stages[i], name, sizeof(name)));
  }
  lcomm_plan_count(plan, topo, &traffic);
  for (int i = 0; i < LCOMM_LINK_COUNT; i++) {
    if (traffic.messages[i] > 0) {
      write_text(&w, "  %-12s%llu messages, at most %llu payload bytes sent by rank %d\n",
                 lcomm_link_name((lcomm_link)i), (unsigned long long)traffic.messages[i],
                 (unsigned long long)traffic.bytes[i], plan->schedule.rank);
    }
  }
  write_text(&w, "  because     %s\n", plan->reason);
  return w.used;
}
