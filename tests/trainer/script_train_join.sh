#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# A training that one rank begins, and others join: they are told all that they need, only as many as
# there may be, and of the same command line; the one that began may go.
set -u

# shellcheck source=tests/support/train_script.sh
. "$(dirname "$0")/../support/train_script.sh"
export LCOMM_TIMEOUT_S=60
unset LCOMM_NODES

# shellcheck disable=SC2016 # for the rank
printf 'echo $$ >pid\necho $MASTER_PORT $LCOMM_TOKEN >door\nexec "$@"\n' >rank
options=(--model mlp --data builtin --images 2560 --epochs 100000 --log-every 1 --elastic 1:3)
options+=(--optimizer adamw --precision fp16 --policy "net=int8+ef min=0" --save kept)
# begin: one rank
begin() {
  rm -f log another door
  timeout -k 5 "$limit" "$build/tools/launch" -n 1 --elastic -- sh "$PWD/rank" "$build/train" "${options[@]}" --log log \
    >out 2>&1 </dev/null &
}
# joins NAME OPTION... : another rank, in the background; it says what it says in the file NAME
joins() {
  local port token
  read -r port token <door
  LCOMM_JOIN=on MASTER_ADDR=127.0.0.1 MASTER_PORT=$port LCOMM_TOKEN=$token timeout -k 5 "$limit" "$build/train" \
    "${options[@]}" --log another "${@:2}" >"$1" 2>&1 </dev/null &
}
# till FILE EVENT [COUNT]: so many of these are in the log, or no training goes on
till() {
  local end=$((SECONDS + limit))
  until [ "$(cat "$1" 2>/dev/null | grep -cE "$2")" -ge "${3:-1}" ] || [ $SECONDS -gt $end ] || [ -z "$(jobs -r)" ]; do
    sleep 0.02
  done
}
says() { grep -qE -- "$2" "$1"; }
show_more() { tail -n 5 out second third 2>/dev/null | sed 's/^/  | /'; }

begin
until [ -s door ] || [ -z "$(jobs -r)" ]; do sleep 0.02; done
till log '"step":10,'
joins stranger --batch 16
stranger=$!
till log '"event":"changed".*"lost":1'
expect who_has_another_command_line_is_refused ends_with 2 wait $stranger
expect with_one_sentence says stranger 'this rank has other options, or other data, than the training that it joins'
expect the_others_go_on_without_it says out 'elastic   1 of 1 ranks was lost, 1 rank has joined 1; 1 goes on after'

joins second
second=$!
till log '"event":"changed".*"joined":1,"ranks":2'
expect a_newcomer_joins_one_rank says out 'elastic   1 rank has joined 1; 2 go on after'
joins third
third=$!
till log '"event":"changed".*"joined":1,"ranks":3'
expect and_another_one_two says out 'elastic   1 rank has joined 2; 3 go on after'

LCOMM_TIMEOUT_S=5 joins fourth
expect more_than_there_may_be_are_not_let_in ends_with 2 wait $!
expect they_say_so says fourth 'cannot join the job .*the others call lcomm_regroup\(\) for that'
expect and_nothing_has_changed test "$(grep -c '"joined":1,"ranks":4' log)" -eq 0

kill -KILL "$(cat pid)"
till another '"event":"changed".*"lost":1'
expect the_rank_that_began_may_go says second 'elastic   1 of 3 ranks was lost; 2 go on'
till another '"event":"epoch"' 2
kill -TERM $second $third
wait $second $third
cat second third >both # one of them leaves in order where the signals come in two steps
expect all_stop_when_all_are_to_leave says both 'stopped after a step by a signal.*saved in kept'
wait
expect no_replica_has_drifted test "$(cat out second third | grep -c 'replicas differ\|please report')" -eq 0
exit $((failures > 0))
