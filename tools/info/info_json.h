/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_INFO_INFO_JSON_H
#define LCOMM_TOOLS_INFO_INFO_JSON_H

/* All that libcomm-info finds, for programs: one JSON object on standard output.
 *
 *   version, build {compiler, mpi, ucx}, transports [{name, summary}],
 *   codecs [{name, bits_per_value, summary}], kernels [{name, runs, in_use}],
 *   topology {ranks, nodes, text, links {CLASS: {latency_us, bandwidth_gb_s, measured}}},
 *   policy, plans, environment [{variable, value}] of those that are set
 *
 * where a plan is {collective, count, type, rank, hash, algorithm, chunks, codecs {node, net,
 * result}, links {CLASS: {messages, bytes}}, predicted {total_us, codecs_us, latency_us,
 * links_us {CLASS}, links_measured}, because}. Bytes are payload sent, at most. Of devices it has
 * cuda_calls and cuda_calls_in_a_graph {launches, copies, numbers, events}, payloads_on_peers and
 * gates_in_a_graph, too. With --plan only version, topology, policy and plans.
 *
 * With --matrix the plans are those of the matrix's sums, one or two, and there is
 *   matrix {rows, columns, codec, bytes_between_nodes, exact_bytes_between_nodes},
 * with choice {low_rank, low_rank_us, products_us, one_sum_us, one_sum_codec} where net=auto
 * decides. */

#include "libcomm/plan/plan.h"
#include "tools/info/info_options.h"

/* 0, or INFO_BAD_INPUT when no plan can be made. */
int info_print_json(const info_options *o, const lcomm_policy *policy, const lcomm_topo *topo);

/* What is asked of ranks, and the plan of the o->rank, for the size number `size`. NULL with a
 * sentence in why. Of libcomm-info's own. */
lcomm_plan_request info_request_of(const info_options *o, size_t size);
lcomm_plan *info_plan_of(const info_options *o, size_t size, const lcomm_policy *policy,
                         const lcomm_topo *topo, lcomm_why *why);

#endif
