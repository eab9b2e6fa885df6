#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# launch: what ranks find in their environment, what follows when one is lost, where signals go, and
# that no process outlives it; here and over a stand-in for ssh.
set -u

# shellcheck source=tests/support/expect.sh
. "$(dirname "$0")/../support/expect.sh"
show_more() { tail -n 5 out err | sed 's/^/  | /'; }
cd "$work" || exit 2
unset MASTER_PORT LCOMM_TOKEN LCOMM_ELASTIC

# launch OPTION... : to the files out and err
launch() { timeout -k 5 "$limit" "$build/tools/launch" "$@" >out 2>err </dev/null; }
says() { grep -qE -- "$1" err; }
same() { [ -n "$1" ] && [ "$1" = "$2" ]; }

# A rank notes its process, and that of a child, and waits.
cat >waits <<'END'
trap 'echo asked >"asked.$RANK"; exit 0' TERM
sleep 1000 &
echo $! >"child.$RANK"
echo $$ >"pid.$RANK"
wait
END
all_wait() { # RANKS
  local rank
  for ((rank = 0; rank < $1; rank++)); do
    until [ -s "pid.$rank" ]; do sleep 0.02; done
  done
}
# none_left: processes of ranks and their children are gone, or go within some seconds
none_left() {
  local i
  for ((i = 0; i < 200; i++)); do
    # shellcheck disable=SC2046 # numbers
    kill -0 $(cat pid.* child.* 2>/dev/null) 2>/dev/null || return 0
    sleep 0.1
  done
  return 1
}
# start_waiting OPTION... : 3 ranks, in the background, as $launched
start_waiting() {
  rm -f pid.* child.* asked.*
  "$build/tools/launch" -n 3 "$@" >out 2>err </dev/null &
  launched=$!
  all_wait 3
}

# ------------------------------------------------------------------- environment
expect ranks_that_end_well_are_a_job_that_ends_well launch -n 3 -- sh -c \
  'echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $MASTER_ADDR ${#LCOMM_TOKEN} "$MASTER_PORT" "$LCOMM_TOKEN" "$LCOMM_ELASTIC"'
expect each_rank_has_its_number_and_place test \
  "$(cut -d ' ' -f 1-7 out | sort)" = "$(for r in 0 1 2; do echo "[$r] $r 3 $r 3 127.0.0.1 32"; done)"
expect all_have_one_port_and_one_token test "$(cut -d ' ' -f 8- out | sort -u | wc -l)" -eq 1
token=$(awk 'NR == 1 { print $9 }' out)
launch -n 1 -- sh -c 'echo $LCOMM_TOKEN'
expect another_job_has_another_token test "[0] $token" != "$(cat out)"
LCOMM_TOKEN=mine launch -n 1 --elastic --port 21999 -- sh -c 'echo $LCOMM_TOKEN $MASTER_PORT $LCOMM_ELASTIC'
expect what_is_given_is_taken test "$(cat out)" = "[0] mine 21999 on"
if [ -x "$build/tools/allreduce_perf" ]; then
  expect ranks_meet launch -n 2 -- "$build/tools/allreduce_perf" --boot env -b 4K -e 4K -w 0 -n 1
fi

# ------------------------------------------------------------------------ output
# shellcheck disable=SC2016 # for the ranks
launch -n 12 -- sh -c 'for i in 1 2 3 4 5 6 7 8 9; do echo "line $i of rank $RANK"; done; echo trouble >&2; printf rest'
expect lines_are_whole_and_have_their_rank test "$(grep -cE '^\[ *([0-9]+)\] line [1-9] of rank \1$' out)" -eq 108
expect lines_without_an_end_are_passed_on test "$(grep -cE '^\[ *[0-9]+\] rest$' out)" -eq 12
expect standard_error_is_kept_apart test "$(grep -cE '^\[ *[0-9]+\] trouble$' err)" -eq 12
launch -n 1 -- sh -c 'head -c 100000 /dev/zero | tr "\0" x'
expect endless_lines_are_broken test "$(tr -dc x <out | wc -c)" -eq 100000 -a "$(wc -l <out)" -gt 10
expect without_a_reader_the_ranks_end bash -c '"$1" -n 2 -- yes | head -n 1; [ "${PIPESTATUS[0]}" -eq 141 ]' _ "$build/tools/launch"

# ------------------------------------------------------------------------ losses
expect the_status_of_a_lost_rank_is_that_of_the_job ends_with 7 launch -n 3 -- sh -c \
  '[ $RANK -eq 1 ] && exit 7; exec sleep 1000'
expect a_sentence_names_rank_host_and_status says \
  "^launch: rank 1 \(host $(uname -n)\) ended with status 7; the others are ended$"
expect and_no_other_sentence_does test "$(wc -l <err)" -eq 1
expect so_does_a_signal ends_with 137 launch -n 3 -- sh -c '[ $RANK -eq 2 ] && kill -9 $$; exec sleep 1000'
expect it_is_named says '^launch: rank 2 \(host .*\) was ended by signal 9 \(Killed\)'
expect a_program_that_is_not_there_is_named ends_with 127 launch -n 2 -- ./no_such_program
expect by_its_name says 'cannot run \./no_such_program: No such file'
expect the_others_go_on_where_asked launch -n 3 --keep-going -- sh -c \
  '[ $RANK -eq 0 ] && exit 3; sleep 1; echo alive'
expect it_is_said says 'rank 0 \(host .*\) ended with status 3; the others go on'
expect they_did test "$(grep -c alive out)" -eq 2
expect likewise_with_elastic launch -n 2 --elastic -- sh -c '[ $RANK -eq 0 ] && exit 3; sleep 1'
expect if_the_last_one_fails_the_job_fails ends_with 4 launch -n 2 --keep-going -- sh -c \
  '[ $RANK -eq 0 ] && exit 3; sleep 1; exit 4'

# shellcheck disable=SC2016
anew='[ -z "$LCOMM_JOIN" ] && [ $RANK -eq 1 ] && exit 3; sleep 1; echo "$RANK joins ${LCOMM_JOIN:-not} at $MASTER_ADDR, elastic is $LCOMM_ELASTIC"'
expect a_lost_rank_is_started_anew_where_asked launch -n 3 --restarts 2 -- sh -c "$anew"
expect this_is_said says 'rank 1 \(host .*\) ended with status 3; it is started anew$'
expect it_joins_the_others test "$(sort out)" = "$(for r in 0 1 2; do
  echo "[$r] $r joins $([ $r -eq 1 ] && echo on || echo not) at 127.0.0.1, elastic is on"; done)"
expect it_is_started_anew_so_often_only launch -n 2 --restarts 3 -- sh -c '[ $RANK -eq 1 ] && exit 3; sleep 2'
expect then_the_others_go_on_without_it test "$(grep -c 'it is started anew' err)" -eq 3 -a "$(grep -c 'the others go on' err)" -eq 1
expect who_joins_in_vain_does_not_keep_the_job launch -n 2 --restarts 1 -- sh -c \
  '[ $RANK -eq 1 ] && [ -z "$LCOMM_JOIN" ] && exit 3; [ $RANK -eq 1 ] && exec sleep 1000; sleep 1'

# ----------------------------------------------------------------------- signals
# what_ends_it NAME
what_ends_it() {
  start_waiting "${options[@]}" -- sh "$PWD/waits"
  kill -TERM $launched
  wait $launched
  expect "a_signal_goes_to_all_ranks_$1" test $? -eq 0 -a "$(cat asked.* | wc -l)" -eq 3
  expect "then_none_is_left_$1" none_left
  for signal in HUP KILL; do
    start_waiting "${options[@]}" -- sh "$PWD/waits"
    kill -$signal $launched
    wait $launched 2>/dev/null
    # what ranks of this host have started outlives a launcher that cannot kill it
    children=()
    if [ $signal = KILL ] && [ ${#options[@]} -eq 0 ]; then
      mapfile -t children < <(cat child.*)
      rm child.*
    fi
    expect "after_${signal}_none_is_left_$1" none_left
    [ ${#children[@]} -eq 0 ] || kill "${children[@]}"
  done
  start_waiting "${options[@]}" -- sh -c 'trap "" TERM; sleep 1000 & echo $! >child.$RANK; echo $$ >pid.$RANK; while :; do sleep 1; done'
  kill -TERM $launched
  sleep 0.5
  kill -TERM $launched
  wait $launched
  expect "a_second_signal_kills_$1" test $? -eq 143
  expect "all_of_them_$1" none_left
}
options=()
what_ends_it here

# ------------------------------------------------------------------- other hosts
# The stand-in for ssh: what it was called with, then the command as the user's shell would run it.
cat >agent <<'END'
#!/bin/sh
echo "$*" >>calls
cd / && HOST=$2 exec env -i PATH="$PATH" HOST="$2" sh -c "$3"
END
chmod +x agent
export LCOMM_LAUNCH_SSH="$PWD/agent -x"
printf '# two hosts\nuser@red\n\nblue\n' >hosts
# shellcheck disable=SC2016
expect ranks_are_started_on_hosts launch -n 4 --hosts hosts -- sh -c \
  'echo $HOST $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $MASTER_ADDR $PWD "$1"' sh "it's \"one\"  word \$HOME"
expect adjacent_and_evenly test "$(cut -d ' ' -f 1-7 out | sort -k 3)" = "[0] user@red 0 4 0 2 red
[1] user@red 1 4 1 2 red
[2] blue 2 4 0 2 red
[3] blue 3 4 1 2 red"
expect in_this_folder_with_these_words test "$(grep -cF " $PWD it's \"one\"  word \$HOME" out)" -eq 4
LCOMM_TOKEN=secret LCOMM_POLICY="net=int8 min=0" launch -n 2 --hosts hosts -- sh -c 'echo $LCOMM_TOKEN $LCOMM_POLICY'
expect the_environment_travels test "$(sort -u -k 2 out | cut -d ' ' -f 2-)" = "secret net=int8 min=0"
expect the_token_is_in_no_command test -s calls -a "$(grep -c secret calls)" -eq 0
printf 'red\nblue slots=3\n' >hosts
launch -n 4 --hosts hosts -- sh -c 'echo $HOST'
expect slots_are_filled test "$(sort -k 1 out)" = "$(printf '[0] red\n[1] blue\n[2] blue\n[3] blue')"
expect too_few_slots_are_refused ends_with 2 launch -n 5 --hosts hosts -- true
expect with_their_number says 'slots for 4 ranks, 5 are asked for'
for line in "-oProxyCommand=x" "red slots=0" "red slots=two" "red blue"; do
  echo "$line" >bad
  expect "no_host_is_${line// /_}" ends_with 2 launch -n 1 --hosts bad -- true
done
expect a_list_that_is_not_there_is_refused ends_with 2 launch -n 1 --hosts none -- true
launch -n 4 --hosts hosts --restarts 1 -- sh -c "$anew"
expect on_other_hosts_it_joins_at_all_of_them test "$(grep -c '^\[1\] 1 joins on at red,blue, elastic is on$' out)" -eq 1
expect a_loss_on_another_host_is_told ends_with 137 launch -n 4 --hosts hosts -- sh -c \
  '[ $RANK -eq 2 ] && kill -9 $$; exec sleep 1000'
expect with_its_host says 'rank 2 \(host blue\) was ended by signal 9 \(Killed\); the others are ended'
printf '#!/bin/sh\nexit 255\n' >unreachable
chmod +x unreachable
LCOMM_LAUNCH_SSH=$PWD/unreachable expect a_host_that_is_not_reached_ends_the_job ends_with 255 launch -n 1 --hosts hosts -- true
expect and_it_is_said says 'rank 0 \(host red\) ended with status 255, as ssh does when it does not reach a host'
options=(--hosts hosts)
what_ends_it on_hosts

expect no_number_of_ranks_is_refused ends_with 2 launch -- true
expect no_program_is_refused ends_with 2 launch -n 2
exit $((failures > 0))
