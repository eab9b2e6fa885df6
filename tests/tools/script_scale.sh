#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# scale_bench: the plan of a machine that is not there as one line of JSON, and what ranks look at
# in sums; what is missing is said.
# shellcheck disable=SC2317 # functions are called by expect
set -u

benchmark=scale
# shellcheck source=tools/bench/common
source tools/bench/common
# shellcheck source=tests/support/expect.sh
source tests/support/expect.sh
tool=$build/tools/scale_bench
export LCOMM_TIMEOUT_S=${LCOMM_TIMEOUT_S:-60}

plan() { "$tool" --nodes 128 --ranks 1024 -p net=int8 | grep -qE "$1"; }

expect a_plan_for_a_thousand_ranks_is_made plan '^\{"nodes": 128, "ranks": 1024, '
expect it_says_how_long_that_took_and_what_it_held plan '"plan_s": [0-9.]+, "plan_bytes": [0-9]+, '
expect its_messages_are_counted plan '"sends": 1374, "far_sends": 254, '
refuses() { "$tool" "$@" 2>&1 | grep -q '^scale_bench: .' && ! "$tool" "$@" >/dev/null 2>&1; }
expect neither_plan_nor_sums_is_refused refuses --nodes 4
expect a_policy_that_is_none_is_refused refuses --ranks 4 -p net=nothing
expect more_nodes_than_ranks_are_refused refuses --nodes 9 --ranks 4

meeting() { "$tool" --meet 40 | grep -qE "$1"; }
expect threads_meet_and_bytes_are_counted meeting '^\{"ranks": 40, "meet_s": [0-9.]+, "root_processor_s": [0-9.]+, "most_bytes": [1-9][0-9]*, "root_bytes": [1-9]'

# ranks N OPTION...: 0 when the tool ended well on all of them
ranks() {
  local rank rc status=0 pids=()
  start_ranks "$1" timeout -k 5 "$limit" "$tool" "${@:2}"
  for rank in "${!pids[@]}"; do
    wait "${pids[$rank]}"
    rc=$?
    [ $rc -eq 0 ] || status=$rc
  done
  return $status
}

sums() { ranks 3 --sums 2 --nodes 3 --count 100000 --transport shm; }
expect ranks_sum_and_tell_what_they_looked_at sums
expect it_is_rank_0_that_tells grep -qE '^\{"nodes": 3, "ranks": 3, "looks": [1-9][0-9]*, "messages": [1-9]' "$work/out.0"
expect what_it_holds_is_counted grep -qE '"links": 2, "maps": [1-9][0-9]*, "descriptors": [1-9][0-9]*, "threads": [1-9].*"made_links": 2, .*"first_links": 2, ' "$work/out.0"

parts() { ranks 4 --sums 1 --count 100 --parts 2 --transport shm; }
expect ranks_split_and_sum_in_parts parts
expect what_that_took_is_told grep -qE '"create_s": [0-9.]+, "sum_s": [0-9.]+, "end_s": [0-9.]+, "split_s": [0-9.]+, "part_s": [0-9.]+\}$' "$work/out.0"
exit $((failures > 0))
