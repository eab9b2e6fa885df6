#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# How the MPI interposer starts where not all is as it should be: ranks without the preload
# or without a policy, LCOMM_INTERPOSE=require, programs that pass it by. The programs of
# tests/clients know nothing of libcomm.
set -u

# shellcheck source=tests/support/interposer_script.sh
source "$(dirname "$0")/../support/interposer_script.sh"
needs_no_sanitizers interposer_start
export LCOMM_NODES=2
interposer=$build/libcomm-mpi.so
messages=$build/tests/clients/any_source
looked_up=$build/tests/clients/looked_up

# start RANKS COMMAND...: output in $work/out
start() { launch "$work/out" "$@"; }

lines() { grep -c '^libcomm-mpi: ' "$work/out"; }

# Every rank but SPARED runs with the preload, every one but POOR with a policy.
cat >"$work/on_some" <<'EOF'
[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = "${SPARED:-none}" ] || export LD_PRELOAD="$INTERPOSER"
[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = "${POOR:-none}" ] || export LCOMM_POLICY=net=int8
exec "$@"
EOF
export INTERPOSER=$interposer

# ------------------------------------------------- messages of a mixed program

# all_come NAME STATUS WORD: messages are as they were sent, and WORD is in what is said
all_come() {
  if [ "$2" -ne 0 ] || ! grep -q '^all have come' "$work/out" || grep -q '^wrong' "$work/out"; then
    fail "$1" "exit status $2, or a message is not as it was sent"
  elif [ -n "$3" ] && ! grep -q "^libcomm-mpi: .*$3" "$work/out"; then
    fail "$1" "nothing is said of '$3'"
  elif [ -z "$3" ] && [ "$(lines)" -ne 0 ]; then
    fail "$1" "something is said"
  else
    pass "$1"
  fi
}

for rank in 0 1 3; do
  SPARED=$rank start 4 sh "$work/on_some" "$messages"
  all_come "messages_are_right_when_rank_${rank}_has_no_preload" $? "rank $rank does not take part"
done
POOR=2 start 4 sh "$work/on_some" "$messages"
all_come messages_are_right_when_a_rank_has_no_policy $? "rank 2 does not take part.*LCOMM_POLICY"
start 4 sh "$work/on_some" "$messages"
all_come messages_are_right_when_all_take_part $? ""
start 3 env LD_PRELOAD="$interposer" "$messages" : -np 1 "$messages"
all_come without_a_policy_nobody_is_missed $? ""

# ------------------------------------------------------------- misspelt variables

# warned NAME STATUS: once, with the name that is meant; what else is said is not looked at
warned() {
  if [ "$2" -ne 0 ] || ! grep -q '^all have come' "$work/out"; then
    fail "$1" "exit status $2"
  elif [ "$(grep -c '^libcomm: .*LCOMM_POLCY (is LCOMM_POLICY meant?)' "$work/out")" -ne 1 ]; then
    fail "$1" "not one warning"
  else
    pass "$1"
  fi
}
LCOMM_POLCY=net=int8 start 3 env LD_PRELOAD="$interposer" "$messages"
warned a_misspelt_policy_is_said_once_where_there_is_none $?
LCOMM_POLCY=net=int8 start 3 sh "$work/on_some" "$messages"
warned a_misspelt_variable_is_said_once_beside_a_policy $?
LCOMM_POLCY=net=int8 start 3 sh "$work/on_some" env LCOMM_POLICY=net=int9 "$messages"
warned a_misspelt_variable_is_said_once_where_libcomm_does_not_start $?

# ------------------------------------------------------------- LCOMM_INTERPOSE=require

# refused NAME STATUS RANKS WORD: nothing ran, and so many ranks at least say why: the first
# that is done ends the job, so others may come too late on a busy machine
refused() {
  if [ "$2" -eq 0 ] || grep -q '^all have come' "$work/out"; then
    fail "$1" "the program ran, exit status $2"
  elif [ "$(grep -c "^libcomm-mpi: rank [0-9]*: .*$4.*require" "$work/out")" -lt "$3" ]; then
    fail "$1" "not $3 ranks say '$4'"
  else
    pass "$1"
  fi
}

export LCOMM_INTERPOSE=require
start 3 sh "$work/on_some" "$messages"
all_come what_is_required_and_there_runs $? ""
start 2 env LD_PRELOAD="$interposer" "$messages"
refused without_a_policy_what_is_required_is_missing $? 2 LCOMM_POLICY
LCOMM_NODES='' start 2 sh "$work/on_some" "$messages"
refused on_one_host_what_is_required_is_missing $? 2 'one host'
start 2 env LD_PRELOAD="$interposer" LCOMM_POLICY=net=int9 "$messages"
refused with_a_bad_policy_what_is_required_is_missing $? 2 int9
SPARED=1 start 3 sh "$work/on_some" "$messages"
refused without_a_preload_what_is_required_is_missing $? 1 'rank 1 does not take part'
SPARED=0 start 3 sh "$work/on_some" "$messages"
refused without_the_first_preload_what_is_required_is_missing $? 1 'rank 0 does not take part'
start 2 sh "$work/on_some" env LCOMM_INTERPOSE=on "$messages" : -np 1 sh "$work/on_some" "$messages"
refused what_one_rank_requires_the_others_must $? 1 'LCOMM_INTERPOSE is on on rank 0 and require on rank 2'
unset LCOMM_INTERPOSE

# ------------------------------------------------------------ programs that pass by

# told NAME STATUS COUNT: so many lines that the preload was passed by
told() {
  if [ "$2" -eq 77 ]; then
    skip "$1" "no MPI library to look up"
  elif [ "$2" -ne 0 ] || [ "$(lines)" -ne "$3" ] || [ "$(grep -c 'past the preload' "$work/out")" -ne "$3" ]; then
    fail "$1" "exit status $2, $(lines) lines"
  else
    pass "$1"
  fi
}

mpi=$(ldd "$interposer" | awk '$1 ~ /^libmpi(ch)?\.so/ { print $3; exit }')
start 2 sh "$work/on_some" "$looked_up" "$mpi"
told a_program_that_passes_the_preload_is_told_once $? 1
start 2 env LD_PRELOAD="$interposer" "$looked_up" "$mpi"
told without_a_policy_it_is_not_told $? 0
start 2 sh "$work/on_some" "$looked_up" "$interposer"
told what_is_looked_up_in_the_interposer_is_taken $? 0

exit $failed
