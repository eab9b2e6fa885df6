#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# The programs mpi_interposer_* once more, each under other policies and settings than its
# own. A program tells by its environment what must be exact then.
set -u

# shellcheck source=tests/support/interposer_script.sh
source "$(dirname "$0")/../support/interposer_script.sh"
wrap=()
[ "${SAN:-}" = thread ] && setarch -R true 2>/dev/null && wrap=(setarch -R)

# start RANKS COMMAND...: output in $work/out
start() { launch "$work/out" "$1" "${wrap[@]}" "${@:2}"; }

# all_hold NAME STATUS: all properties hold, and there is one
all_hold() {
  if [ "$2" -ne 0 ]; then
    fail "$1" "exit status $2: $(grep -m 1 '^FAIL ' "$work/out")"
  elif ! grep -q '^PASS ' "$work/out"; then
    fail "$1" "nothing was tried"
  else
    pass "$1"
    return 0
  fi
  return 1
}

# under NAME RANKS PROGRAM SETTING...: its properties hold with these settings
under() {
  local name=$1 ranks=$2 program=$build/tests/interpose/mpi_interposer_$3
  shift 3
  start "$ranks" env "$@" "$program"
  all_hold "$name" $?
}

# The functions of MPI-4 whose counts are MPI_Count do what the others do.
if tools/build/mpi-probe features "${MPI:-}" | grep -qw large; then
  under large_counts_give_the_bits_of_mpi 3 calls TEST_LARGE_COUNTS=1
  under large_counts_are_compressed 3 lossy TEST_LARGE_COUNTS=1
else
  skip large_counts "this MPI has no MPI_Allreduce_c"
fi

# ---------------------------------------------------------- buffers on devices

under sums_on_devices_are_compressed 3 devices LCOMM_POLICY='net=int8 min=0'
under sums_on_devices_have_error_feedback 3 devices LCOMM_POLICY='net=int8+ef min=0'
under over_mpi_sums_on_devices_are_right 3 devices LCOMM_TRANSPORT=mpi

# --------------------------------------------------- the same bits as plain MPI

under without_a_policy_calls_are_those_of_mpi 3 calls LCOMM_POLICY=
under with_an_exact_policy_calls_are_those_of_mpi 3 calls LCOMM_POLICY='net=none min=0'
under with_lossless_compression_calls_are_those_of_mpi 3 calls LCOMM_POLICY='net=none+zstd min=0'
under inside_nodes_calls_are_those_of_mpi 4 calls LCOMM_POLICY='node=none net=none+zstd min=1 check=xxhash'
under switched_off_calls_are_those_of_mpi 3 calls LCOMM_POLICY='net=int8 min=0' LCOMM_INTERPOSE=off
under reports_change_nothing 3 calls LCOMM_POLICY='net=int8 min=0' LCOMM_INTERPOSE=report
under reports_change_no_sum_of_floats 3 exact LCOMM_POLICY='net=int8 min=0' LCOMM_INTERPOSE=report
under without_a_policy_sums_are_exact 2 exact LCOMM_POLICY=
under over_mpi_calls_are_those_of_mpi 3 calls LCOMM_TRANSPORT=mpi
under over_ucx_messages_in_flight_pass 4 in_flight LCOMM_TRANSPORT=ucx
under lossy_calls_let_messages_pass 4 in_flight LCOMM_POLICY='net=int8 min=0'
under reports_let_messages_pass 2 in_flight LCOMM_INTERPOSE=report
under blocking_calls_let_messages_pass 4 in_flight LCOMM_INTERPOSE=blocking
under without_a_policy_messages_pass 2 in_flight LCOMM_POLICY=
under coded_communicators_end_in_any_order 3 free LCOMM_POLICY='net=none+zstd min=0'
under reports_end_in_any_order 3 free LCOMM_INTERPOSE=report
under blocking_communicators_end_in_any_order 3 free LCOMM_INTERPOSE=blocking
under without_a_policy_communicators_end_in_any_order 3 free LCOMM_POLICY=
under blocking_communicators_begin_in_any_order 3 context LCOMM_INTERPOSE=blocking
under switched_off_errors_are_those_of_mpi 2 errors LCOMM_INTERPOSE=off

# ------------------------------------------------------------- other codecs

for codec in bf16 fp8e4m3:stochastic int4-ef int2-ef sign-ef int8+zstd topk:0.01; do
  under "sums_are_right_with_$codec" 3 lossy LCOMM_POLICY="net=$codec min=64K"
done
under sums_are_right_over_mpi 3 lossy LCOMM_TRANSPORT=mpi
under what_is_no_gradient_is_exact_with_topk 3 exact LCOMM_POLICY='net=topk:0.01 min=64K'

# Ranks say themselves on which host they are.
# shellcheck disable=SC2016 # expanded by the shell of the rank
start 4 bash -c 'LCOMM_NODES= LCOMM_HOSTID=host$((${OMPI_COMM_WORLD_RANK:-$PMI_RANK} / 2)) exec "$0"' \
  "$build/tests/interpose/mpi_interposer_lossy"
all_hold hosts_are_nodes $?

# ------------------------------------------------------------ error feedback

under without_feedback_mass_is_lost 2 feedback LCOMM_POLICY='net=topk:0.05 min=1K'
under feedback_works_with_int8 3 feedback LCOMM_POLICY='net=int8+ef min=1K'
under feedback_works_when_the_step_is_given 3 feedback LCOMM_POLICY='net=topk:0.05+ef min=1K step=3'
under feedback_works_with_a_quorum_of_all 3 feedback LCOMM_POLICY='net=topk:0.05+ef min=1K quorum=100%'
under a_late_rank_loses_nothing_with_int8 4 quorum LCOMM_POLICY='net=int8+ef min=1K quorum=2 late=0'
under reports_keep_no_residual 2 feedback LCOMM_POLICY='net=topk:0.05+ef min=1K' LCOMM_INTERPOSE=report

# -------------------------------------------------------------- thread levels

for level in single funneled serialized multiple; do
  start 2 "$build/tests/interpose/mpi_interposer_threads" "$level"
  all_hold "the_thread_level_may_be_$level" $?
done
start 2 env LCOMM_POLICY= "$build/tests/interpose/mpi_interposer_threads" funneled
all_hold without_a_policy_the_thread_level_is_that_of_mpi $?

# ------------------------------------------- what is wrong at the start is said once

# plain NAME WORD: all properties hold, and one line of the interposer says WORD
plain() {
  local lines
  all_hold "$1" "$2" >"$work/verdict" || { cat "$work/verdict"; return; }
  lines=$(grep -c '^libcomm-mpi:' "$work/out")
  if [ "$lines" -ne 1 ] || ! grep '^libcomm-mpi:' "$work/out" | grep -q -- "$3"; then
    fail "$1" "$lines lines of the interposer, and not one with '$3'"
  else
    pass "$1"
  fi
}

exact=("$build/tests/interpose/mpi_interposer_calls" every_size)
start 3 env LCOMM_POLICY=net=nonsense "${exact[@]}"
plain a_policy_that_is_none_is_said_once $? nonsense
start 3 env LCOMM_INTERPOSE=ajar "${exact[@]}"
plain a_mode_that_is_none_is_said_once $? LCOMM_INTERPOSE
start 3 env LCOMM_NODES=7 "${exact[@]}"
plain nodes_without_ranks_are_said_once $? 7
start 3 env LCOMM_TRANSPORT=pigeon "${exact[@]}"
plain a_transport_that_is_none_is_said_once $? pigeon
start 1 env LCOMM_POLICY=net=int8 "${exact[@]}" : -np 2 "${wrap[@]}" env LCOMM_POLICY=net=bf16 "${exact[@]}"
plain policies_that_differ_are_said_once $? net=bf16
start 2 "${exact[@]}" : -np 1 "${wrap[@]}" env LCOMM_INTERPOSE=off "${exact[@]}"
plain interposers_that_differ_are_said_once $? LCOMM_INTERPOSE
start 2 "${exact[@]}" : -np 1 "${wrap[@]}" env LCOMM_POLICY= "${exact[@]}"
plain a_policy_that_is_missing_is_said_once $? LCOMM_POLICY

exit $failed
