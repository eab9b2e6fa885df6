#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# LCOMM_TRACE, trace_merge and LCOMM_STATS from end to end, on four ranks.
set -u

build=${BUILD:?the folder of the programs}
case $build in /*) ;; *) build=$PWD/$build ;; esac
launch=$PWD/tools/build/launch
limit=${TEST_PART_S:-600} # seconds for a program
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2

# expect NAME COMMAND...: a property, and a command that holds if it does
expect() {
  local name=$1
  shift
  if "$@" >"$work/why" 2>&1; then
    echo "PASS $name"
  else
    echo "FAIL $name: $(tail -n 1 "$work/why" | head -c 300)"
  fi
}
# perf VARIABLE=VALUE...: an all-reduce on 2 nodes of 2 ranks, then on 4 nodes, which has a DECODE and copies
perf() {
  env LCOMM_NODES=2 "$@" timeout -k 5 "$limit" "$launch" 4 "$build/tools/allreduce_perf" \
    -b 256K -n 2 -p net=int8 --tensors >>out 2>>err </dev/null &&
    env LCOMM_NODES=4 "$@" timeout -k 5 "$limit" "$launch" 4 "$build/tools/allreduce_perf" \
      -b 256K -n 2 -d float16 -p net=topk:0.01 >>out 2>>err </dev/null
}
merge() { timeout -k 5 "$limit" "$build/tools/trace_merge" "$@"; }
# events NAME FILE: how many there are
events() { grep -c "^{\"name\":\"$1\"" "$2"; }

mkdir traces
expect a_traced_run_succeeds perf LCOMM_TRACE=traces/t LCOMM_TIMEOUT_S=60
# the files of the second run have taken the place of those of the first
expect every_rank_writes_a_file test -s traces/t.0 -a -s traces/t.1 -a -s traces/t.2 -a -s traces/t.3
merge merged.json traces/t.* >table 2>odd
expect traces_can_be_merged test -s merged.json
expect nothing_is_odd_about_a_good_run test ! -s odd
for kind in encode send recv decode reduce copy all-reduce; do
  expect "${kind}_is_traced" test "$(events "$kind" merged.json)" -gt 0
done
pairs=$(sed -nE 's/.*events, ([0-9]+) messages with both ends/\1/p' table)
expect every_send_has_a_receive test "$(events send merged.json)" = "$pairs"
expect every_receive_has_a_send test "$(events recv merged.json)" = "$pairs"
expect the_table_has_a_row_for_each_rank test "$(grep -cE '^[0-3] .*%' table)" -ge 4
if command -v python3 >/dev/null; then
  expect every_file_is_json python3 - merged.json traces/t.* <<'PYTHON'
import collections, json, sys
for name in sys.argv[1:]:
    rows = collections.defaultdict(list)
    for event in json.load(open(name, encoding="utf-8")):
        if event["ph"] == "X":
            begin = round(event["ts"] * 1000)
            rows[event["pid"], event["tid"]].append((begin, begin + round(event["dur"] * 1000)))
    assert name == "merged.json" or len({pid for pid, tid in rows}) == 1, name
    for row, spans in rows.items():
        spans.sort()
        for one, next in zip(spans, spans[1:]):
            assert one[1] <= next[0], (name, row, one, next)
PYTHON
else
  echo "SKIP every_file_is_json: there is no python3"
fi

# refused NAME WORD COMMAND...: it fails, and says the word
refused() {
  local name=$1 word=$2
  shift 2
  : >err
  if "$@" >out 2>>err; then
    echo "FAIL $name: it did not fail"
  elif grep -q -- "$word" err; then
    echo "PASS $name"
  else
    echo "FAIL $name: $(tail -n 1 err | head -c 300)"
  fi
}
refused a_forgotten_output_destroys_no_trace "first argument is the output" merge traces/t.0 traces/t.1
refused a_merged_file_is_not_merged_again "whose trace" merge again.json merged.json
refused a_missing_trace_is_named "traces/t.77 cannot be opened" merge again.json traces/t.77
refused a_trace_that_cannot_be_written_stops_the_start "no/such/t.0 cannot be written" \
  perf LCOMM_TRACE=no/such/t
refused an_unknown_kind_of_statistics_is_named "LCOMM_STATS=often" perf LCOMM_STATS=often

: >err
perf LCOMM_STATS=exit
expect statistics_are_shown_by_rank_0 test "$(grep -c 'statistics of rank 0 ' err)" -ge 2
expect statistics_are_shown_by_no_other_rank test "$(grep -c 'statistics of rank [1-3] ' err)" -eq 0
expect tensors_have_their_row grep -q '^  tensors ' err
expect fewer_bytes_than_exact_are_shown grep -qE 'Between nodes 3\.[0-9]+ times fewer bytes than exact' err
: >err
perf LCOMM_STATS=exit:all
expect all_ranks_show_statistics test "$(grep -oE 'statistics of rank [0-3] ' err | sort -u | wc -l)" -eq 4
