#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# A training whose ranks are killed in the middle of it goes on with those that are left: all alike,
# to the accuracy of one that nobody disturbed.
set -u

# shellcheck source=tests/support/train_script.sh
. "$(dirname "$0")/../support/train_script.sh"
export LCOMM_NODES=2 LCOMM_TIMEOUT_S=60

# shellcheck disable=SC2016 # for the ranks
printf 'echo $$ >pid.$RANK\nexec "$@"\n' >rank
options=(--model mlp --images 2560 --epochs 3 --log-every 1)
# Steps of a fast machine take a millisecond; these wait for who is to send a signal at one of them.
paced=(--late pause=40ms:100%)
# elastic RANKS MIN:MAX OPTION... : by launch, not by mpirun
elastic() {
  timeout -k 5 "$limit" "$build/tools/launch" -n "$1" --elastic -- sh "$PWD/rank" "$build/train" --data builtin --log log \
    --elastic "$2" "${options[@]}" "${@:3}" >out 2>&1 </dev/null
}
forget() { rm -f log pid.*; }
anew() { forget && elastic "$@"; }
# when_at STEP RANK...: kill these as soon as the log has that step; together
when_at() {
  local step=$1 rank pids=() end=$((SECONDS + limit))
  shift
  until grep -qs '"event":"step".*"step":'"$step," log || [ $SECONDS -gt $end ]; do sleep 0.02; done
  for rank; do pids+=("$(cat "pid.$rank")"); done
  kill -KILL "${pids[@]}"
}
# broken STEP "RANK..." OPTION... : of 4 ranks these are killed at this step; 2 at least go on
broken() {
  forget
  elastic 4 2:4 "${paced[@]}" "${@:3}" &
  local run=$!
  # shellcheck disable=SC2086 # ranks
  when_at "$1" $2
  wait $run
}
events() { grep -c '^{"event":"'"$1"'"' log; }
# changed NAME: the number with this name in the last record of a change
changed() { sed -nE 's/^[{]"event":"changed".*"'"$1"'":"?([0-9a-fx.e+-]+).*/\1/p' log | tail -n 1; }
# within POINTS A B: accuracies
within() { awk -v p="$1" -v a="$2" -v b="$3" 'BEGIN { d = 100 * (a - b); exit !(a != "" && d <= p && d >= -p) }'; }
said() { grep -qE -- "$1" out; }

# ------------------------------------------------------------------- undisturbed
run 4 "${options[@]}"
plain=$(final weights_hash)
expect an_elastic_training_ends_well anew 4 2:4
expect it_has_the_bits_of_any_other same "$plain" "$(final weights_hash)"
expect nothing_has_changed test "$(events changed)" -eq 0
accuracy=$(final accuracy) loss=$(final loss)

# ------------------------------------------------------------------------ losses
expect a_rank_is_killed_and_the_others_train_to_the_end broken 15 2
expect one_line_says_so test "$(grep -c 'elastic   1 of 4 ranks was lost; 3 go on after' out)" -eq 1
expect three_are_left test "$(changed ranks)" -eq 3 -a "$(changed lost)" -eq 1 -a "$(events changed)" -eq 1
expect the_rate_follows_the_samples_that_cannot_be_spread test "$(changed rate)" = 0.75
expect it_is_said said '96 images a step instead of 128, so the rate is multiplied by 0.75'
expect all_replicas_are_equal said 'replicas +identical on all ranks'
expect the_loss_is_that_of_a_training close "$(final loss)" "$loss" 25

expect rank_0_is_killed_and_the_others_train_to_the_end broken 15 0
expect another_rank_is_0_and_speaks said '^\[1\] .*elastic   1 of 4 ranks was lost; 3 go on'
expect the_log_goes_on test "$(events final)" -eq 1 -a "$(events config)" -eq 1 -a "$(events epoch)" -eq 3
expect replicas_are_equal_without_rank_0 said '^\[1\] .*replicas +identical on all ranks'

expect a_node_is_killed_and_the_other_one_trains_to_the_end broken 15 "2 3"
expect one_node_is_left test "$(changed ranks)" -eq 2 -a "$(changed nodes)" -eq 1
expect a_step_has_the_same_samples_in_more_batches test "$(changed rate)" = 1 -a "$(changed accumulate)" -eq 2
expect as_many_steps_are_made test "$(final steps)" -eq 60
expect and_the_accuracy_is_as_without_the_loss within 0.5 "$(final accuracy)" "$accuracy"

for policy in "net=topk:0.05+ef min=0" "net=int8+ef min=0 guard=5,report"; do
  expect "compressed_by_${policy// /_}_it_goes_on" broken 15 1 --policy "$policy"
  expect "with_equal_replicas_by_${policy// /_}" said 'replicas +identical on all ranks'
done
expect what_is_lost_is_told test -n "$(changed lost_residual)" -a -n "$(changed lost_norm)"
for precision in bf16 fp16; do
  expect "in_${precision}_it_goes_on" broken 15 3 --precision $precision --optimizer adamw
  expect "with_equal_replicas_in_$precision" said 'replicas +identical on all ranks'
done

# --------------------------------------------------------------- one after another
forget
elastic 4 1:4 "${paced[@]}" &
run=$!
when_at 10 3
when_at 20 0
when_at 30 1
wait $run
expect down_to_one_rank_it_goes_on test $? -eq 0 -a "$(final steps)" -ge 60
expect each_loss_is_told test "$(events changed)" -eq 3 -a "$(changed ranks)" -eq 1

forget
elastic 4 3:4 "${paced[@]}" --save kept &
run=$!
when_at 30 1 2
wait $run
expect with_too_few_ranks_it_ends test $? -eq 3
expect with_one_sentence test "$(grep -c '^\[[0-9]\] train: 2 of the ranks are left, too few for --elastic 3:4; stopped after step [0-9]*; saved in kept$' out)" -eq 1
stopped=$(sed -nE 's/.*stopped after step ([0-9]+).*/\1/p' out)
expect and_a_checkpoint test -d "kept/step-$(printf %012d "${stopped:-0}")"
expect that_others_go_on_from anew 2 1:2 --resume kept
expect to_the_end test "$(final steps)" -gt "${stopped:-1000}"

# ------------------------------------------------------------- leaving and joining
# till EVENT COUNT: the log has so many of these
till() {
  local end=$((SECONDS + limit))
  until [ "$(cat log 2>/dev/null | grep -cE "$1")" -ge "$2" ] || [ $SECONDS -gt $end ]; do sleep 0.02; done
}
for leaver in 2 0; do
  forget
  elastic 4 2:4 "${paced[@]}" --policy "net=topk:0.05+ef min=0" &
  run=$!
  till '"step":15,' 1
  kill -TERM "$(cat pid.$leaver)"
  wait $run
  expect "rank_${leaver}_leaves_and_the_others_train_to_the_end" test $? -eq 0 -a "$(events final)" -eq 1
  expect "one_line_says_that_rank_${leaver}_left" said 'elastic   1 of 4 ranks has left in order; 3 go on'
  expect "rank_${leaver}_has_ended_well" test "$(grep -c '^launch:' out)" -eq 0
  expect "nothing_is_lost_with_rank_$leaver" test "$(changed lost_residual)" = 0 -a "$(changed left)" -eq 1
done

forget
"$build/tools/launch" -n 4 --restarts 2 -- sh "$PWD/rank" "$build/train" --data builtin --log log --elastic 2:4 "${options[@]}" \
  --epochs 100000 --save left --policy "net=int8+ef min=0" >out 2>&1 </dev/null &
run=$!
till '"step":15,' 1
kill -KILL "$(cat pid.2)"
till '"event":"changed".*"joined":1,"ranks":4' 1
expect a_lost_rank_is_started_anew_and_joins said 'elastic   1 rank has joined 3; 4 go on after'
kill -KILL "$(cat pid.0)"
till '"event":"changed".*"joined":1,"ranks":4' 2
expect so_does_rank_0_as_another_one said '^\[[12]\] .*elastic   1 rank has joined 3; 4 go on after'
till '"event":"epoch"' $(($(events epoch) + 1))
kill -TERM $run
wait $run
expect when_all_are_to_leave_all_stop test $? -eq 143 -a "$(grep -c 'stopped after a step by a signal.*saved in left' out)" -eq 1
expect nobody_is_said_to_be_lost_then test "$(grep -c '^launch:' out)" -eq 2

# -------------------------------------------------------------- other transports
# over TRANSPORT COMMAND... : tcp is UCX's, of nothing else
over() {
  case $1 in
    tcp) LCOMM_TRANSPORT=ucx UCX_TLS=tcp,self "${@:2}" ;;
    *) LCOMM_TRANSPORT=$1 "${@:2}" ;;
  esac
}
transports=()
LCOMM_NODES='' "$build/tools/libcomm-info" | grep -qE '^  ucx +UCX: ' && transports=(ucx tcp)
[ ${#transports[@]} -gt 0 ] || skip trainings_go_on_over_ucx "libcomm was built without UCX"
for transport in "${transports[@]}"; do
  expect "over_${transport}_the_others_train_to_the_end" over "$transport" broken 15 2 --policy "net=int8+ef min=0"
  expect "over_${transport}_replicas_are_equal" said 'replicas +identical on all ranks'
done

# ----------------------------------------------------------------------- refused
refused() { ! anew "${@:2}" && grep -qE -- "$1" out; }
expect too_few_at_the_start_are_refused refused 'there are 2 ranks, and --elastic 3:4 asks for 3 to 4' 2 3:4
expect too_many_likewise refused 'there are 3 ranks, and --elastic 1:2 asks for 1 to 2' 3 1:2
expect mpirun_is_refused bash -c '! "$@" >out 2>&1 && [ "$(grep -c "does not go with mpirun" out)" -eq 1 ]' _ \
  "$launch" 2 "$build/train" --elastic 1:2
exit $((failures > 0))
