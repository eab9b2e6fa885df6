#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# fidelity_bench from its command line to its table, on the built-in images.
set -u

# shellcheck source=tests/support/expect.sh
. "$(dirname "$0")/../support/expect.sh"
cd "$work" || exit 2
show_more() { tail -n 5 said; }

# bench OPTION...: trains for a few steps only
bench() {
  timeout -k 5 "$limit" "$build/tools/fidelity_bench" --data builtin --models mlp --optimizers sgd --worlds 2x1 \
    --images 640 --epochs 1 --seeds 2 --jobs 2 --preset int8=net=int8 --csv table.csv "$@" >table 2>said </dev/null
}
trained() { wc -l <fidelity.jsonl; }

expect a_grid_is_trained bench
expect every_training_leaves_a_line test "$(trained)" = 4
expect the_table_has_a_row_for_each_preset test "$(grep -cE '^mlp +sgd +2x1 +(fp32|int8) +2 ' table)" = 2
expect the_csv_has_the_same test "$(grep -cE '^mlp,sgd,2,1,' table.csv)" = 2
tail -n 1 fidelity.jsonl >last
sed -i '$d' fidelity.jsonl
head -c 40 last >>fidelity.jsonl # as a run leaves it that was ended there
echo >>fidelity.jsonl
expect an_interrupted_run_goes_on bench
expect what_is_there_is_not_trained_again test "$(grep -c '"accuracy"' fidelity.jsonl)" = 4
# but for the time that it took
same() { [ "$(sed -E 's/"(seconds|processor_s|date)": [^,]*//g' last)" = "$(tail -n 1 fidelity.jsonl | sed -E 's/"(seconds|processor_s|date)": [^,]*//g')" ]; }
expect a_training_has_the_same_result_again same
bench --overflow 1000 --preset "topk=net=topk:0.05+ef nonfinite=discard" --seeds 1
expect a_step_that_is_lost_is_compared test "$(grep -cE '^mlp +sgd +2x1 +(fp32|int8|topk)[+]inf +1 .* (recovers|does not) *$' table)" = 3
sed -i '/with Inf/d' fidelity.jsonl
sed -i '/nonfinite/d' fidelity.jsonl
bench --no-train --seeds 3
expect no_train_trains_nothing test "$(trained)" = 5 -a -s table
expect a_policy_that_fails_is_named bash -c '! "$@"' _ "$build/tools/fidelity_bench" --data builtin \
  --models mlp --images 640 --epochs 1 --seeds 1 --worlds 2x1 --preset odd=net=int9
"$build/tools/fidelity_bench" --data builtin --models mlp --optimizers sgd --images 640 --epochs 1 --seeds 1 --worlds 2x1 \
  --preset odd=net=int9 >said 2>&1
expect the_sentence_names_the_cell grep -q 'mlp sgd 2x1 odd seed 1: .*int9' said
# Ranks that are processes come to the same accuracy.
if [ -x "$build/train" ]; then
  bench --worlds 4x1 --batch 64 --seeds 1 --preset topk=net=topk:0.05+ef
  simulated=$(sed -nE 's/.* 4x1 topk seed 1.*"accuracy": ([0-9.]+),.*/\1/p' fidelity.jsonl)
  LCOMM_NODES=4 timeout -k 5 "$limit" "$launch" 4 "$build/train" --data builtin --model mlp --images 640 --epochs 1 \
    --batch 16 --policy net=topk:0.05+ef --log train.log >said 2>&1 </dev/null
  real=$(sed -nE 's/.*"event":"final".*"accuracy":([0-9.]+),.*/\1/p' train.log)
  expect a_training_ends_as_on_ranks_that_are_processes test -n "$simulated" -a "$simulated" = "$real"
else
  skip a_training_ends_as_on_ranks_that_are_processes "this build has no train"
fi
if command -v gnuplot >/dev/null; then
  bench --plot picture
  expect pictures_are_drawn test -s picture-accuracy.svg -a -s picture-loss.svg
else
  skip pictures_are_drawn "there is no gnuplot"
fi
exit $((failures > 0))
