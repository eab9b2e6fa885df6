/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_PLAN_COST_H
#define LCOMM_PLAN_COST_H

/* What exchanges and plans cost: which exchange of an exact sum is the cheapest, before there is a
 * plan, and how long an operation of a plan would take, from what links and codecs cost. Both count
 * messages and rounds by the formulas of sched/ALGORITHMS.md.
 *
 * The model. Every link class that the plan uses is a resource that is busy for
 * bytes / bandwidth, the larger one of what is sent and received; between nodes all
 * ranks of a node share one network card. The rank's processor is one more resource: codecs, and
 * each message between nodes that it sends or receives. A plan of k chunks is a pipeline: it
 * takes the busiest resource in full and 1/k of the others, and for each round one latency of the
 * slowest class in it:
 *
 *   time = max(r) + (sum(r) - max(r)) / k + sum over rounds of latency
 *
 * Left out: ranks that are late, processors that the ranks share, and that exact sums
 * inside a node take time besides the bytes' way. So it is close for long vectors, and too short
 * rather than too long. Payloads of unknown size (top-k, the lossless stage) count with their
 * bound. */

#include "libcomm/base/writer.h"
#include "libcomm/plan/plan.h"

/* Of the rank that has most of it, for one span. */
typedef struct lcomm_exchange_cost {
  uint64_t messages; /* sent */
  uint64_t rounds;   /* messages one behind the other, at most */
  uint64_t size;     /* bytes sent */
} lcomm_exchange_cost;

/* size: bytes of the span. Exact stages. */
lcomm_exchange_cost lcomm_exchange_cost_of(lcomm_exchange_kind kind, int ranks, uint64_t size);

/* The exchange of an exact sum over `ranks` hosts that costs a rank least: with every peer (gather,
 * direct), or with log2 of them (doubling, halving). Never a ring, which is for long spans. net:
 * what a message, a round and a byte cost between them, where that was measured. */
lcomm_exchange_kind lcomm_cheapest_exchange(const lcomm_link_cost *net, int ranks, uint64_t size);

/* Does an all-gather of `size` bytes between nodes cost a rank less in log2 steps (Bruck) than
 * straight to all nodes? */
bool lcomm_gathers_by_doubling(const lcomm_topo *topo, uint64_t size);

/* Float32 bytes that one core encodes or decodes in a nanosecond (GB/s), by stage;
 * 0: counts nothing. And what each payload costs besides. */
typedef struct lcomm_codec_speeds {
  double encode_gb_s[LCOMM_STAGE_COUNT], decode_gb_s[LCOMM_STAGE_COUNT];
  double encode_us[LCOMM_STAGE_COUNT], decode_us[LCOMM_STAGE_COUNT];
} lcomm_codec_speeds;

/* What a message costs the processor at either end: as measured, else a share of the latency. */
double lcomm_message_cost_us(const lcomm_link_cost *cost);

typedef struct lcomm_plan_time {
  double link_us[LCOMM_LINK_COUNT]; /* busy with bytes */
  double codec_us, message_us;      /* of the rank's processor */
  double latency_us, total_us;
  bool assumed; /* what one of the links costs is a guess */
} lcomm_plan_time;

/* The time of the plan's rank. speeds: NULL leaves the codecs out. Pure. */
lcomm_plan_time lcomm_plan_predict(const lcomm_plan *plan, const lcomm_topo *topo,
                                   const lcomm_codec_speeds *speeds);

/* In words: "1.93 ms: net 1.72 ms, shm 130 us, codecs 210 us, messages 8 us, latency 40 us; links
 * assumed".
 * Returns text. */
enum { LCOMM_PLAN_TIME_MAX = 256 };
const char *lcomm_plan_time_format(const lcomm_plan_time *time, char text[LCOMM_PLAN_TIME_MAX]);

/* "1.93 ms": three digits and a unit. */
void lcomm_plan_write_us(lcomm_writer *w, double us);

/* The time to show: with these speeds, or, where net=auto chose the plan, that by which it did. */
lcomm_plan_time lcomm_plan_time_by(const lcomm_plan *plan, const lcomm_topo *topo,
                                   const lcomm_codec_speeds *speeds);

/* lcomm_plan_describe() with the time that codecs of these speeds take. */
size_t lcomm_plan_describe_timed(const lcomm_plan *plan, const lcomm_topo *topo,
                                 const lcomm_codec_speeds *speeds, char *text, size_t size);

#endif
