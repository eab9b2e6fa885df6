#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# Trainings whose steps do not wait for all ranks: they end with equal replicas, whoever was late.
set -u

# shellcheck source=tests/support/train_script.sh
. "$(dirname "$0")/../support/train_script.sh"
export LCOMM_NODES=2

# train POLICY [OPTION...]: four ranks, 40 steps
train() { run 4 --model mlp --images 2560 --epochs 1 --batch 16 --policy "$@"; }
has() { grep -qE -- "$1" out; }

expect a_training_that_waits_for_three_of_four_ends train "net=int8+ef min=1 quorum=3 late=0"
expect its_replicas_are_equal has '^  replicas +identical on all ranks'
expect the_first_screen_says_for_whom_a_step_waits has 'a step waits for 3 of the ranks, and 0 ms for the others'
expect its_bytes_are_counted has '^  between nodes +[0-9.]+ MB sent, float32 would have sent [0-9.]+ MB: 3\.[0-9] times less'
expect a_training_that_waits_for_all_ends train "net=none quorum=100%"
loss=$(final loss)
expect an_exact_one_ends train "net=none"
expect both_have_the_same_loss close "$loss" "$(final loss)" 1
expect shards_are_refused test "$(train "net=none quorum=3" --shard optimizer; grep -c 'quorum= does not go with --shard' out)" -ge 1
expect stages_are_refused test "$(run 4 --model gpt-nano --pipeline 2 --accumulate 2 --policy "net=none quorum=3"; grep -c 'quorum= does not go with --pipeline' out)" -ge 1
exit $((failures > 0))
