#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# What libcomm-info says of net=auto: which codec it chooses on measured links, and why.
set -u

# shellcheck source=tests/support/info.sh
. "$(dirname "$0")/../support/info.sh"

# links GB_S: of two hosts with two ranks each
links() {
  printf 'node 0 host a ranks 0 1\nnode 1 host b ranks 2 3\n'
  printf 'link shm latency 1 us bandwidth 4 GB/s\nlink net latency 20 us bandwidth %s GB/s\n' "$1"
}
links 0.00125 >"$work/slow.topo" # 10 Mbit/s, so that codecs count little, however slow
links 50 >"$work/fast.topo"

plan() { info --plan --load "$work/$1.topo" --size 16M --policy "${@:2}"; }

expect a_plan_on_a_slow_link plan slow net=auto:int8
expect the_coarsest_codec_of_the_class_is_taken_there has '^  between +int8'
expect the_reason_has_the_times_of_all has '^  because +predicted none [0-9.]+ m?s, none\+zstd [0-9.]+ m?s, bf16 [0-9.]+ m?s, int8 [0-9.]+ m?s;'
expect a_plan_of_tensors_on_a_slow_link plan slow net=auto:sign --tensor
expect a_bit_for_a_value_is_taken_there has '^  between +sign\+ef'
expect the_reason_has_the_times_of_one_two_and_four_bits has '^  because +predicted none .*, int4\+ef [0-9.]+ m?s, int2\+ef [0-9.]+ m?s, sign\+ef [0-9.]+ m?s;'
expect a_plan_of_plain_calls_of_that_class plan slow net=auto:sign
expect nothing_with_error_feedback_is_looked_at has '^  because +predicted none .*, int8 [0-9.]+ m?s;'
expect a_plan_on_a_link_as_fast_as_memory plan fast net=auto:int8
expect it_stays_exact_there has '^  between +none'
expect and_says_why has '^  because +predicted none [0-9.]+ m?s, .*int8 [0-9.]+ m?s;'
expect a_plan_of_a_stricter_class plan slow net=auto:bf16
expect nothing_coarser_is_taken has '^  between +bf16'
expect nor_looked_at has '^  because +predicted none [0-9.]+ m?s, none\+zstd [0-9.]+ m?s, bf16 [0-9.]+ m?s;'
expect a_matrix_on_a_slow_link info --matrix 4096x1024 --load "$work/slow.topo" --policy net=auto:lowrank
expect it_goes_as_two_sums has '^  two sums, of 16384 and 4096 values$'
expect and_the_times_of_both_ways_are_told has '^  taken is lowrank:4, for two sums by lowrank:4 are predicted to take [0-9.]+ m?s, [0-9.]+ [um]s of it for products, one by sign\+ef [0-9.]+ m?s$'
expect a_matrix_on_a_fast_link info --matrix 4096x1024 --load "$work/fast.topo" --policy net=auto:lowrank
expect it_is_one_sum_there has '^  taken is none, for two sums by lowrank:4 are predicted to take '
expect a_matrix_of_a_class_without_low_rank info --matrix 4096x1024 --load "$work/slow.topo" --policy net=auto:sign
expect nothing_is_said_of_it eval '! has "two sums"'
if command -v python3 >/dev/null 2>&1; then
  info --json --plan --matrix 4096x1024 --load "$work/slow.topo" --policy net=auto:lowrank
  expect programs_are_told_the_same python3 -c 'import json, sys
why = json.load(open(sys.argv[1]))["matrix"]["choice"]
sys.exit(not (why["low_rank"] and 0 < why["products_us"] < why["low_rank_us"] < why["one_sum_us"]))' "$work/out"
else
  skip programs_are_told_the_same python3
fi
exit $((failures > 0))
