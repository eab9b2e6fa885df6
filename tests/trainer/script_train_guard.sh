#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# What the guard finds in a training is in its log and on its last screen; steps that are skipped
# are undone without being asked for, where the policy has error feedback.
set -u

# shellcheck source=tests/support/expect.sh
. "$(dirname "$0")/../support/expect.sh"
show_more() { tail -n 20 out | sed 's/^/  | /'; }
cd "$work" || exit 2

# train POLICY: on 2 nodes, ten steps
train() {
  rm -f log
  LCOMM_NODES=2 timeout -k 5 "$limit" "$launch" 2 "$build/train" --data builtin --model mlp --images 640 --epochs 1 \
    --batch 32 --policy "$1" --log log >out 2>&1 </dev/null
}
# checks TEXT: records of the guard in the log that hold it
checks() { grep '^{"event":"guard",' log | grep -c -- "$1"; }
has() { grep -qE -- "$1" out; }

expect a_guarded_training_ends train "net=topk:0.01+ef guard=5,report"
expect the_log_has_each_tensor_of_each_check test "$(checks '"tensor":"dense1.weight"')" = 2 -a "$(checks '"step":10,')" -ge 2
expect a_record_has_all_figures test "$(checks '"codec":"topk:0.01+ef","next":"topk:0.01+ef","samples":[0-9]*,"error":[0-9.e-]*,"cosine":[0-9.e-]*,"residual":[0-9.e-]*,"waited":0,"fallbacks":0,"beyond":0')" -ge 2
expect the_last_screen_says_how_often has '^  guard +results were compared with exact sums 2 times, at last:$'
expect and_what_was_found_last has '^ +dense1\.weight by topk:0\.01\+ef: error [0-9.e-]+, cosine [0-9.e-]+, residual [0-9.]+ gradients$'
expect a_codec_that_is_too_coarse_ends_too train "net=topk:0.0001 guard=5"
expect the_log_has_the_milder_codec test "$(checks '"step":5,.*"tensor":"dense1.weight","codec":"topk:0.0001","next":"int4-ef".*"fallbacks":1')" = 1
expect one_sentence_of_all_ranks_says_so test "$(grep -c '^libcomm: guard, step 4: tensor dense[12]\.weight, by topk:0\.0001, .* from here on it travels by int4-ef; so for 1 more' out)" = 1
expect the_last_screen_has_it_too has '^ +dense1\.weight by int4-ef: .*; fell back 1 time, goes on by int4-ef$'
expect a_training_without_a_guard_ends train "net=topk:0.01+ef"
expect nothing_is_said_without_a_guard test "$(checks '')" = 0 -a -z "$(grep -E '^  guard' out)"

# config KEY: of the log
policy() { sed -nE 's/^[{]"event":"config",.*"policy":"([^"]*)".*/\1/p' log; }
expect the_trainer_discards_what_is_not_finite grep -q 'nonfinite=discard' <(policy)
train "net=int8"
expect there_is_nothing_to_discard_without_feedback test "$(policy)" = net=int8
exit $((failures > 0))
