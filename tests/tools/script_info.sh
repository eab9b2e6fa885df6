#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# What libcomm-info prints for people and for programs, and the version of every program.
set -u

# shellcheck source=tests/support/info.sh
. "$(dirname "$0")/../support/info.sh"

# -------------------------------------------------------------------- plans
expect plans_stand_alone info --plan --policy net=int8 --ranks 8 --nodes 2 --size 1M,4M
expect nothing_stands_around_plans test "$(grep -cE '^(all-reduce of|  |$)' "$work/out")" -eq "$(wc -l <"$work/out")"
expect one_plan_for_each_size test "$(grep -c '^all-reduce of' "$work/out")" -eq 2
expect a_plan_says_how_long_it_would_take has '^  predicted   [0-9.]+ (us|ms|s): net .*codecs .*latency .*; links assumed$'
printf 'node 0 host a ranks 0 1\nnode 1 host b ranks 2 3\nlink shm latency 1 us bandwidth 4 GB/s\nlink net latency 50 us bandwidth 0.125 GB/s\n' >"$work/slow.topo"
expect measured_links_make_the_prediction info --plan --policy net=none --load "$work/slow.topo" --size 64M
# 64 MiB between two nodes at 0.125 GB/s: 0.537 s, and the latency
expect it_is_the_limit_of_the_wire_and_little_more has '^  predicted   (537|538|539|54[0-9]) ms: net 537 ms, .*; links measured$'
expect a_guarded_policy_is_taken info --policy "net=topk:0.01+ef guard=50" --ranks 4 --nodes 2
expect the_ladder_of_the_guard_is_told has '^guard  +every 50 steps; .*: topk:0.01\+ef -> int4\+ef -> int8\+ef -> bf16 -> none$'
expect a_guarded_policy_with_patterns_is_taken info --policy "net[b*,c*]=int8 net=topk:0.01+ef guard=50" --ranks 4 --nodes 2
expect the_ladder_of_a_pattern_is_told_once has '^ +or int8 -> bf16 -> none$'
expect no_link_between_nodes_is_said info --plan --policy net=int8 --ranks 8 --size 1M
expect the_reason_names_it has '^  because +there is no link between nodes for net= to act on'

# ----------------------------------------------------------------- matrices
expect a_matrix_is_planned info --matrix 4096x1024 --policy net=lowrank:4 --ranks 8 --nodes 4
expect it_is_two_sums has '^  two sums, of 16384 and 4096 values$'
expect both_have_a_plan test "$(grep -c '^\(first\|second\) sum, of [PQ] = ' "$work/out")" -eq 2
expect it_sends_so_much_less has '^between nodes  rank 0 sends at most 81920 bytes, 153\.6 times less than the 12582912 of an exact sum$'
expect factors_may_be_coded info --matrix 4096x1024 --policy net=lowrank:4,values=int8 --ranks 8 --nodes 4
expect then_it_sends_less_still has ' bytes, [3-9][0-9][0-9](\.[0-9])? times less than the '
expect a_matrix_that_does_not_gain_is_planned info --matrix 8x8 --policy 'net=lowrank:4 min=1' --ranks 4 --nodes 2
expect it_is_one_exact_sum has '^matrix 8 x 8, between nodes by none$'
expect another_codec_is_planned info --matrix 4096x1024 --policy net=int8 --ranks 4 --nodes 2
expect it_is_one_sum_by_that has '^matrix 4096 x 1024, between nodes by int8$'
for bad in 4096 x 0x4 4x0 4x 4x4x4 1048576x1048576; do
  expect "matrix_${bad}_is_refused" eval '! info --matrix '"$bad"
done
expect a_matrix_of_devices_is_refused refuses '--matrix is for the plans of one tensor' --device --matrix 4x4

# ------------------------------------------------------------------ devices
expect plans_of_devices_are_made info --plan --device --policy net=int8 --ranks 32 --nodes 4 --size 100000000
expect their_chunks_are_longer has ' 8 shards, 3 chunks$'
expect they_say_what_the_caller_calls has '^  on devices  [0-9]{1,2} calls of CUDA: [0-9]+ launches, [0-9]+ copies, [0-9]+ of numbers, [0-9]+ of events$'
expect they_say_what_a_graph_of_it_calls has '^  in a graph  [0-9]{1,2} calls of CUDA: [0-9]+ launches, [0-9]+ copies, [0-9]+ of numbers, [0-9]+ of events$'
expect nothing_is_read_on_peers_that_are_not_reached eval '! has "on peers"'
{
  echo 'node 0 host a ranks 0 1 2 3'
  for rank in 0 1 2 3; do
    echo "device $rank pci 0000:1$rank:00.0 switched 18 ranks $rank"
  done
  printf 'p2p 0 1 2 3\np2p 1 2 3\np2p 2 3\n'
} >"$work/near.topo"
expect a_node_of_devices_is_planned info --plan --load "$work/near.topo" --policy net=none --size 16M
expect what_is_read_on_peers_is_told has '^  on peers    6 payloads are read where peers have made them, 6 of them by gates in a graph$'
expect payloads_of_unknown_size_are_planned info --plan --device --policy net=topk:0.01 --ranks 4 --nodes 2 --size 1M
expect at_most_so_many_are_counted has '^  on devices  [0-9]+ calls of CUDA: [0-9]+ launches, [0-9]+ copies, [0-9]+ of numbers, [0-9]+ of events$'
expect other_plans_are_made info --plan --policy net=int8 --ranks 32 --nodes 4 --size 100000000
expect they_say_nothing_of_devices eval '! has "on devices"'

# --------------------------------------------------------------------- JSON
json() { # EXPRESSION: of the object `it`
  python3 -c 'import json, sys
it = json.load(open(sys.argv[1]))
sys.exit(not eval(sys.argv[2]))' "$work/out" "$1"
}
if command -v python3 >/dev/null 2>&1; then
  LCOMM_TOKEN=hidden LCOMM_LOG=none info --json --policy net=int8 --ranks 8 --nodes 2
  expect all_of_it_is_json json 'len(it["plans"]) == 4 and it["topology"]["nodes"] == 2 and it["policy"] == "net=int8"'
  expect it_has_the_version json 'it["version"].count(".") == 2 and it["build"]["mpi"] != "" and len(it["codecs"]) > 5'
  expect one_table_of_kernels_is_in_use json 'sum(k["in_use"] for k in it["kernels"]) == 1'
  expect a_plan_has_bytes_and_time json 'it["plans"][2]["links"]["net"]["bytes"] > 0 and it["plans"][2]["predicted"]["total_us"] > 0'
  expect longer_vectors_are_predicted_to_take_longer json 'it["plans"][3]["predicted"]["total_us"] > it["plans"][1]["predicted"]["total_us"]'
  expect variables_that_are_set_are_in_it json '{"variable": "LCOMM_LOG", "value": "none"} in it["environment"]'
  expect a_secret_is_not_printed json 'all(v["value"] != "hidden" for v in it["environment"])'
  info --json --plan --matrix 4096x1024 --policy net=lowrank:4 --ranks 8 --nodes 4
  expect a_matrix_has_two_plans json '[p["count"] for p in it["plans"]] == [16384, 4096] and "codecs" not in it'
  expect and_its_bytes json 'it["matrix"] == {"rows": 4096, "columns": 1024, "codec": "lowrank:4", "bytes_between_nodes": 81920, "exact_bytes_between_nodes": 12582912}'
  info --json --plan --matrix 8x8 --policy net=lowrank:4 --ranks 8 --nodes 4
  expect one_that_does_not_gain_has_one json 'it["matrix"]["codec"] == "none" and [p["count"] for p in it["plans"]] == [64]'
  info --json --plan --device --ranks 4 --nodes 2 --size 1M
  expect calls_of_devices_are_numbers json '0 < sum(it["plans"][0]["cuda_calls"].values()) < sum(it["plans"][0]["cuda_calls_in_a_graph"].values()) < 100'
  info --json --plan --load "$work/near.topo" --size 16M
  expect what_is_read_on_peers_is_a_number json '[it["plans"][0][name] for name in ("payloads_on_peers", "gates_in_a_graph")] == [6, 6]'
  info --json --plan --load "$work/slow.topo" --size 1M
  expect plans_alone_are_json_too json '"codecs" not in it and it["topology"]["links"]["net"] == {"latency_us": 50, "bandwidth_gb_s": 0.125, "measured": True}'
else
  for name in all_of_it_is_json it_has_the_version one_table_of_kernels_is_in_use a_plan_has_bytes_and_time \
    longer_vectors_are_predicted_to_take_longer variables_that_are_set_are_in_it a_secret_is_not_printed \
    a_matrix_has_two_plans and_its_bytes one_that_does_not_gain_has_one \
    calls_of_devices_are_numbers what_is_read_on_peers_is_a_number plans_alone_are_json_too; do
    echo "SKIP $name: no Python here"
  done
fi
expect json_of_what_has_none_is_refused refuses '--json is for' --json --env

# ------------------------------------------------------------- of the system
expect what_is_there_is_told info
windows=$(cat /proc/sys/net/ipv4/tcp_slow_start_after_idle 2>/dev/null)
expect idle_connections_are_warned_of_where_tcp_forgets_them \
  test "$(grep -c '^  TCP .*tcp_slow_start_after_idle=0' "$work/out")" -eq "$([ "$windows" = 1 ] && echo 1 || echo 0)"

# ----------------------------------------------------------------- versions
version=$("$info" --version)
says_version() { # NAME COMMAND...: the name, and the version of the library, without MPI or a device
  local name=$1
  shift
  timeout -k 5 "$limit" "$@" --version >"$work/out" 2>&1 &&
    [ "$(cat "$work/out")" = "$name ${version#libcomm-info }" ]
}
for program in libcomm-info libcomm-experiment allreduce_perf reduce_scatter_perf allgather_perf broadcast_perf alltoall_perf \
  codec_bench cuda_bench soak_bench stream_bench trace_merge cluster_delay; do
  expect "version_of_$program" says_version $program "$build/tools/$program"
done
expect version_of_train says_version train "$build/train"
for script in cluster gpu_check bundle; do
  expect "version_of_$script" says_version $script "tools/$script"
done
exit $((failures > 0))
