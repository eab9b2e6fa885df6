#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# LCOMM_TRACE, trace_merge and LCOMM_STATS from end to end, on four ranks.
set -u

# shellcheck source=tests/support/expect.sh
. "$(dirname "$0")/../support/expect.sh"
cd "$work" || exit 2

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
    fail "$name" "it did not fail"
  elif grep -q -- "$word" err; then
    pass "$name"
  else
    fail "$name" "$(tail -n 1 err | head -c 300)"
  fi
}
refused a_forgotten_output_destroys_no_trace "first argument is the output" merge traces/t.0 traces/t.1
refused a_merged_file_is_not_merged_again "whose trace" merge again.json merged.json
refused a_missing_trace_is_named "traces/t.77 cannot be opened" merge again.json traces/t.77
refused an_unknown_kind_of_statistics_is_named "LCOMM_STATS=often" perf LCOMM_STATS=often

# What cannot be written is said once, by default, and the run goes on.
# said NAME WORDS VARIABLE=VALUE...
said() {
  local name=$1 words=$2
  : >err
  if perf "${@:3}" && [ "$(grep -c "^libcomm: rank 0 .*$words" err)" -eq 2 ] && [ "$(grep -c '^libcomm: ' err)" -eq 2 ]; then
    pass "$name" # twice: perf is two runs
  else
    fail "$name" "$(grep -c '^libcomm: ' err) lines: $(tail -n 1 err | head -c 300)"
  fi
}
for rank in 0 1 2 3; do ln -s /dev/full "full.$rank"; done
said a_trace_in_an_impossible_folder_is_said_once "no/such/t.0 cannot be written: No such file" LCOMM_TRACE=no/such/t
said a_trace_on_a_full_disk_is_said_once "full.0 cannot be written: No space left" LCOMM_TRACE=full
said a_capture_in_an_impossible_folder_is_said_once "LCOMM_CAPTURE stops here: /dev/null/c" LCOMM_CAPTURE=/dev/null/c
rm full.0
: >err
expect a_trace_of_another_rank_is_no_more_needed perf LCOMM_TRACE=full
expect a_trace_that_another_rank_cannot_write_is_said_by_rank_0 test \
  "$(grep -c '^libcomm: rank 1 .*without the traces of 3 of 4 ranks' err) $(grep -c '^libcomm: ' err)" = "2 2"
: >err
expect a_run_that_shall_say_nothing_goes_on perf LCOMM_TRACE=no/such/t LCOMM_LOG=none
expect a_run_that_shall_say_nothing_says_nothing test "$(grep -c '^libcomm: ' err)" -eq 0
# A run that is killed: its traces can be read, also when the last line is cut.
next_port
for rank in 0 1; do
  RANK=$rank WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port LCOMM_TRACE=killed \
    "$build/tools/allreduce_perf" --boot env -n 1000000 -b 1M >/dev/null 2>&1 &
  ranks[rank]=$!
done
until [[ $(grep -cs '"all-reduce"' killed.3.1) -gt 0 ]] || ! kill -0 "${ranks[1]}"; do sleep 0.1; done
kill -KILL "${ranks[@]}"
wait "${ranks[@]}" 2>/dev/null
expect traces_of_a_killed_run_can_be_merged merge killed.json killed.3.0 killed.3.1
head -c -20 killed.3.0 >cut.3.0
expect a_cut_line_is_left_out merge killed.json cut.3.0 killed.3.1
expect what_was_done_is_in_them test "$(events all-reduce killed.json)" -gt 0

: >err
perf LCOMM_STATS=exit
expect statistics_are_shown_by_rank_0 test "$(grep -c 'statistics of rank 0 ' err)" -ge 2
expect statistics_are_shown_by_no_other_rank test "$(grep -c 'statistics of rank [1-3] ' err)" -eq 0
expect tensors_have_their_row grep -q '^  tensors ' err
expect fewer_bytes_than_exact_are_shown grep -qE 'Between nodes 3\.[0-9]+ times fewer bytes than exact' err
: >err
perf LCOMM_STATS=exit:all
expect all_ranks_show_statistics test "$(grep -oE 'statistics of rank [0-3] ' err | sort -u | wc -l)" -eq 4
