#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# Trainings whose steps go on without the newest averages: after each epoch replicas are equal,
# whoever was late.
set -u

# shellcheck source=tests/support/train_script.sh
. "$(dirname "$0")/../support/train_script.sh"
export LCOMM_NODES=2

# train POLICY [OPTION...]: four ranks, two epochs of 20 steps
train() { run 4 --model mlp --images 1280 --epochs 2 --batch 16 --lr 0.02 --policy "$@"; }
has() { grep -qE -- "$1" out; }
less() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a != "" && a < b) }'; }
refuses() { train "${@:2}" || grep -q -- "stale= does not go with $1" out; }

expect a_training_that_does_not_wait_for_its_steps_ends train "net=none stale=2 late=0" --late rank=1:x3 --late pause=20ms:5%
expect its_replicas_are_equal has '^  replicas +identical on all ranks'
expect it_learns less "$(final loss)" 2.29
expect it_says_how_old_gradients_were has '^  staleness +gradients were [0-9.]+ steps old on average, [12] at most'
expect a_training_that_drops_what_is_too_late_ends train "net=int8+ef min=1 stale=1:drop late=0"
expect the_first_screen_says_what_a_step_waits_for has 'a step waits 0 ms for its averages, and goes on for up to 1 step without the newest'
expect its_replicas_are_equal_too has '^  replicas +identical on all ranks'
expect a_training_that_waits_for_each_step_ends train "net=none stale=2 late=3600000"
waited=$(final weights_hash)
expect a_training_of_a_quorum_of_all_ends train "net=none quorum=100%"
expect both_have_the_same_weights same "$waited" "$(final weights_hash)"
expect a_training_that_saves_on_its_way_ends train "net=int8+ef min=1 stale=3 late=0" --optimizer adam --save saved --save-every 13
expect a_training_goes_on_from_there train "net=int8+ef min=1 stale=3 late=0" --optimizer adam --resume saved --epochs 3
expect its_replicas_are_equal_as_well has '^  replicas +identical on all ranks'
expect shards_are_refused refuses --shard "net=none stale=2" --shard optimizer
expect fp16_is_refused refuses --precision "net=none stale=2" --precision fp16
expect stages_are_refused test "$(run 4 --model gpt-nano --pipeline 2 --accumulate 2 --policy "net=none stale=2"; grep -c 'stale= does not go with --pipeline' out)" -ge 1
exit $((failures > 0))
