#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# What `make run` runs: emulated hosts with a comparison where they can be made, ranks that pose as
# nodes elsewhere, and why.
set -u

# shellcheck source=tests/support/expect.sh
. "$(dirname "$0")/../support/expect.sh"
if [ ! -x "$build/train" ]; then
  skip run "this build has no train"
  exit 0
fi
small=(--data builtin --model mlp --images 1280 --epochs 1 --log "$work/log")
run() { timeout -k 5 "$limit" tools/build/run "$build" "${small[@]}" >"$work/said" 2>&1 </dev/null; }
export POLICY=net=topk:0.01+ef NP=2 HOSTS=2 RATE=50mbit NODES=''

RATE=fast expect a_rate_that_is_none_is_refused ends_with 2 run
expect the_rate_is_named grep -q "RATE is 'fast'" "$work/said"
HOSTS=0 expect no_hosts_are_refused ends_with 2 run
NODES=2 expect nodes_are_posed_where_asked run
expect it_says_why_it_poses grep -q 'pose as 2 nodes (NODES=2 asks for it)' "$work/said"
expect a_log_says_where_it_comes_from grep -q '"origin":{"version":"[0-9.]*","commit":"[^"]*","machine":"[0-9]* x .*"rate":null' \
  "$work/log"
NP=3 expect ranks_that_do_not_fit_pose run
expect it_says_that_they_do_not_fit grep -q '3 ranks cannot be split evenly over 2 hosts' "$work/said"

run
status=$?
if grep -q 'ranks pose as' "$work/said"; then
  skip hosts_are_emulated "$(head -n 1 "$work/said")"
else
  expect a_training_over_emulated_hosts_ends_well test $status -eq 0
  expect the_closing_lines_compare_with_exact grep -qE 'exact sums would have taken [0-9.]+ s at 50mbit' "$work/said"
  expect exact_was_measured grep -qE '[0-9.]+ times as long \(measured on 30 steps before this run\)' "$work/said"
  expect the_log_has_the_rate_and_the_hosts grep -qE '"rate":"50mbit","delay_ms":0,"transport":"[a-z,]+","hosts":2' "$work/log"
  expect nothing_is_left_behind bash -c '! ip netns list | grep -q "lcomm-run$1"' _ $$
fi
exit $((failures > 0))
