#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# Trainings whose gradients servers average: the workers end with equal replicas, and servers with them.
set -u

# shellcheck source=tests/support/train_script.sh
. "$(dirname "$0")/../support/train_script.sh"
export LCOMM_NODES=2

# train RANKS POLICY [OPTION...]: 40 steps of 4 workers with --images 2560, 80 of 2
train() { run "$1" --model mlp --images 2560 --epochs 1 --batch 16 --policy "${@:2}"; }
has() { grep -qE -- "$1" out; }

expect a_training_of_four_ranks_ends train 4 "net=none"
loss=$(final loss)
expect four_workers_and_two_servers_end train 6 "net=none algo=servers servers=0,5"
expect with_the_same_loss close "$loss" "$(final loss)" 1
expect their_replicas_are_equal has '^  replicas +identical on all ranks'
expect the_first_screen_counts_servers has '2 servers beside them average the gradients'
expect only_workers_train has '4 ranks on 2 nodes'
expect servers_step_weights train 6 "net=none algo=servers servers=0,5" --serve weights
expect with_that_loss_too close "$loss" "$(final loss)" 1
expect their_replicas_are_equal_too has '^  replicas +identical on all ranks'
expect the_first_screen_says_what_they_send has '2 servers beside them step the weights'
expect servers_step_weights_by_int8 train 6 "net=int8+ef min=1 algo=servers servers=0,5" --serve weights
expect with_nearly_that_loss close "$loss" "$(final loss)" 5
expect a_server_of_int8_gradients_ends train 5 "net=int8+ef min=1 algo=servers servers=0"
expect its_workers_have_nearly_that_loss close "$loss" "$(final loss)" 5
expect its_bytes_are_counted has '^  between nodes +[0-9.]+ MB sent, float32 would have sent [0-9.]+ MB: 3\.[0-9] times less'
expect servers_of_a_quorum_end train 6 "net=none algo=servers servers=nodes:1 quorum=2"
expect workers_that_go_on_for_two_steps_end train 6 "net=int8+ef min=1 algo=servers servers=0,5 stale=2 late=0" --lr 0.02 --late pause=20ms:5%
expect replicas_of_those_are_equal has '^  replicas +identical on all ranks'
expect it_says_how_old_gradients_were has '^  staleness +gradients were [0-9.]+ steps old on average, [0-2] at most'
expect servers_step_weights_of_workers_that_go_on train 6 "net=none algo=servers servers=0,5 stale=2 late=0" --lr 0.02 --serve weights --late pause=20ms:5%
expect replicas_of_these_are_equal has '^  replicas +identical on all ranks'
expect workers_that_wait_for_each_step_end train 6 "net=none algo=servers servers=0,5 stale=2 late=3600000" --serve weights
expect with_the_loss_of_all close "$loss" "$(final loss)" 1
expect transformers_are_served run 4 --model gpt-nano --images 320 --batch 2 --epochs 1 --policy "net=none algo=servers servers=3"
expect its_replicas_are_equal has '^  replicas +identical on all ranks'
expect weights_without_servers_are_refused test "$(train 2 "net=none" --serve weights; grep -c 'serve weights needs servers' out)" -ge 1
expect weights_by_adam_are_refused test "$(train 2 "algo=servers servers=0" --serve weights --optimizer adam; grep -c 'goes with --optimizer sgd' out)" -ge 1
expect shards_are_refused test "$(train 4 "algo=servers servers=0" --shard optimizer; grep -c 'algo=servers does not go with --shard' out)" -ge 1
expect checkpoints_are_refused test "$(train 4 "algo=servers servers=0" --save there; grep -c 'algo=servers does not go with --save' out)" -ge 1
exit $((failures > 0))
