#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# A training that is stopped by a signal ends in order on all ranks, with statistics,
# log and traces, also when the signal comes to one of them only.
set -u

# shellcheck source=tests/support/expect.sh
. "$(dirname "$0")/../support/expect.sh"
show_more() { tail -n 20 out | sed 's/^/  | /'; }
cd "$work" || exit 2

# Each rank says which process it is, and becomes the training.
printf 'echo $$ >pid.${OMPI_COMM_WORLD_RANK:-$PMI_RANK}\nexec "$@"\n' >rank
LCOMM_STATS=exit LCOMM_TRACE=trace timeout -k 5 "$limit" "$launch" 3 sh rank \
  "$build/train" --model mlp --images 300 --epochs 100000 --log log >out 2>&1 </dev/null &
run=$!
until grep -qs '"event":"epoch"' log || ! kill -0 $run 2>/dev/null; do sleep 0.1; done
kill -TERM "$(cat pid.1)"
wait $run
expect a_stopped_training_ends_with_the_number_of_the_signal test $? -eq 143
expect it_says_why_once test "$(grep -c '^train: stopped after a step by a signal' out)" -eq 1
expect its_log_says_so grep -qE '^[{]"event":"stopped",.*"exit_code":143' log
expect it_shows_statistics grep -q 'statistics of rank 0' out
for rank in 0 1 2; do
  expect "rank_${rank}_leaves_a_whole_trace" test "$(tail -n 1 "trace.$rank")" = "]"
done

# The terminal sends Ctrl-C to mpirun, which asks all ranks to end, during a step or a test.
rm -f log
setsid "$launch" 3 "$build/train" --model mlp --images 300 --epochs 100000 --log log >out 2>&1 </dev/null &
run=$! # leads a process group of its own
{ timeout "$limit" tail -f --pid="$run" /dev/null || kill -KILL -- "-$run"; } >/dev/null 2>&1 &
until [ "$(grep -cs '"event":"epoch"' log)" -ge 3 ] || ! kill -0 $run 2>/dev/null; do sleep 0.1; done
kill -INT -- "-$run"
wait $run
expect interrupted_by_the_terminal_it_does_not_succeed test $? -ne 0
last() { tail -n 1 log; }
expect its_last_record_says_when_and_where \
  grep -qE '^[{]"event":"stopped","time":"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]{3}Z","epoch":[0-9]+,"step":[1-9][0-9]*,"exit_code":1(30|43),' <(last)
expect every_record_has_a_time test "$(grep -cvE '^[{]"event":"[a-z]+","time":"[0-9T:.-]+Z",' log)" -eq 0
steps=$(sed -nE 's/^[{]"event":"step".*"step":([0-9]+),.*/\1/p' log)
expect steps_are_in_the_log_in_order test -n "$steps" -a "$steps" = "$(sort -n <<<"$steps")"
exit $((failures > 0))
