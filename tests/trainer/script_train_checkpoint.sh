#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# A training that was saved goes on: to the bit on as many ranks, sensibly on another number; and
# whenever it is killed, what was saved last is whole.
set -u

# shellcheck source=tests/support/expect.sh
. "$(dirname "$0")/../support/expect.sh"
show_more() { tail -n 5 out | sed 's/^/  | /'; }
cd "$work" || exit 2

# Residuals, momentum, the steps of warmup= and moments of the optimiser all have to come back.
export LCOMM_NODES=2
options=(--data builtin --model mlp --images 640 --epochs 3 --optimizer adam --log log
  --policy "net=topk:0.02+ef warmup=5 min=0")

# run RANKS OPTION...
run() {
  timeout -k 5 "$limit" "$launch" "$1" "$build/train" "${options[@]}" "${@:2}" >out 2>&1 </dev/null
}
hash() { sed -nE 's/^[{]"event":"final".*"weights_hash":"(0x[0-9a-f]+)".*/\1/p' log | tail -n 1; }
steps() { sed -nE 's/^[{]"event":"final".*"steps":([0-9]+).*/\1/p' log | tail -n 1; }
same() { [ -n "$1" ] && [ "$1" = "$2" ]; }
events() { grep -c "^[{]\"event\":\"$1\"" log; }
refused() { ! run 2 --log refused "${@:2}" && grep -qE -e "$1" out; }

run 2
whole=$(hash)

# A signal comes during a step, when two checkpoints are there.
printf 'echo $$ >pid.$OMPI_COMM_WORLD_RANK$PMI_RANK\nexec "$@"\n' >rank
: >log
timeout -k 5 "$limit" "$launch" 2 sh rank "$build/train" "${options[@]}" --save kept --save-every 3 >out 2>&1 </dev/null &
run=$!
until [ "$(grep -c '"event":"saved"' log)" -ge 2 ] || ! kill -0 $run 2>/dev/null; do sleep 0.02; done
kill -TERM "$(cat pid.1)"
wait $run
expect a_stopped_training_says_that_it_was_saved grep -q '^train: stopped after a step by a signal.*; saved in kept' out
stopped=$(sed -nE 's/.*"event":"stopped".*"step":([0-9]+).*/\1/p' log)
expect it_is_saved_at_the_step_of_the_signal test -d "kept/step-$(printf %012d "${stopped:-0}")"
# shellcheck disable=SC2012 # names of our own
expect two_checkpoints_are_kept_and_nothing_else test "$(ls -A kept | wc -l)" -eq 2
expect other_runs_do_not_write_among_them refused 'kept holds checkpoints of another run' --save kept
cp -r kept moved
cp -r kept broken

run 2 --save kept --resume kept
expect a_resumed_training_ends_with_the_bits_of_one_that_was_not_stopped same "$whole" "$(hash)"
expect and_with_its_steps test "$(steps)" -eq 30
expect its_log_goes_on test "$(events config) $(events resumed)" = "2 1"

rm log
run 4 --resume moved
expect it_goes_on_on_more_ranks test "$(steps)" -gt "$stopped" -a "$(steps)" -lt 30
rm log
LCOMM_NODES=1 run 1 --resume moved
expect it_goes_on_on_fewer test "$(steps)" -gt 30

expect another_model_is_refused refused 'of a run with --model mlp, this one has cnn' --resume moved --model cnn
expect another_optimizer_is_refused refused '--optimizer adam, this one has sgd' --resume moved --optimizer sgd
expect another_seed_is_refused refused '--seed 1, this one has 2|other data' --resume moved --seed 2
expect a_folder_without_checkpoints_is_refused refused 'none holds no checkpoint' --resume none
for file in broken/*/trainer; do printf x | dd of="$file" bs=1 seek=5000 conv=notrunc status=none; done
expect a_damaged_checkpoint_is_refused_by_name refused 'the checkpoint broken/step-[0-9]+/trainer is damaged' --resume broken

# The last checkpoint is taken away, so that the one before is resumed in the middle of an epoch.
ends_alike() { # OPTION...
  rm -rf taken log
  run 2 "$@" --epochs 2 --save taken --save-every 3 && saved=$(figures)
  rm -rf "$(find taken -name 'step-*' | sort | tail -n 1)"
  run 2 "$@" --epochs 2 --resume taken && same "$saved" "$(figures)"
}
figures() { sed -nE 's/^[{]"event":"final".*("accuracy":[^,]+,"test_loss":[^,]+),.*("weights_hash":[^,]+),.*/\1 \2/p' log | tail -n 1; }
options=(--data builtin --images 256 --log log --policy "net=int8+ef min=0")
expect a_network_with_batch_norm_goes_on_with_its_statistics ends_alike --model resnet
onebit=(--optimizer onebit-adam --model mlp --images 512 --policy "net=sign adam=onebit,refresh=4 warmup=2 min=0")
expect adam_with_a_frozen_variance_goes_on ends_alike "${onebit[@]}"
expect momentum_without_its_optimiser_is_refused refused 'goes with a policy that has adam=' "${onebit[@]}" --optimizer adam
expect its_optimiser_without_momentum_is_refused refused 'goes with a policy that has adam=' "${onebit[@]}" --policy net=sign
expect another_beta_is_refused refused "beta1 of the trainer's Adam is 0.9" "${onebit[@]}" --policy "net=sign adam=onebit,beta1=0.8 warmup=1"
expect shards_of_momentum_are_refused refused 'leave out --shard' "${onebit[@]}" --shard optimizer
expect a_transformer_goes_on ends_alike --model gpt-nano --images 32 --batch 4

# Killed at random moments, each run goes on from the last checkpoint of the one before; every
# second one is killed after a checkpoint of its own, others perhaps before.
options=(--data builtin --model mlp --images 640 --epochs 100000 --log log --policy "net=topk:0.02+ef min=0")
kills=${KILLS:-20} whole=0 before=0
rm log
resume=
for ((i = 0; i < kills; i++)); do
  rm -f pid.*
  : >log
  # shellcheck disable=SC2086 # nothing or two words
  setsid "$launch" 2 sh rank "$build/train" "${options[@]}" --save killed --save-every 1 $resume >out 2>&1 </dev/null &
  run=$!
  began=resumed
  [ $((i % 2)) -ne 0 ] || began=saved
  until grep -qs "\"event\":\"$began\"" log || ! kill -0 $run 2>/dev/null; do sleep 0.02; done
  sleep "0.$((RANDOM % 5))$((RANDOM % 10))"
  # shellcheck disable=SC2046 # two numbers
  kill -KILL $(cat pid.*) 2>/dev/null
  wait $run 2>/dev/null
  # shellcheck disable=SC2012
  last=$(ls killed | tail -n 1)
  step=$((10#${last#step-}))
  grep -qs "\"event\":\"$began\"" log && [ $step -ge $before ] && whole=$((whole + 1))
  before=$step
  resume="--resume killed"
done
expect whenever_it_is_killed_the_last_checkpoint_loads test $whole -eq "$kills"
expect and_the_runs_get_on test $before -ge $((kills / 2))
exit $((failures > 0))
