#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# Programs on emulated devices while another thread of the program gets and frees memory at random, for
# which CUDA waits until devices are idle: results are the same, and nothing stands still. Those that
# hold a stream themselves, or wait for a time-out, are not among them: there the thread would wait for
# the program, and the program for the thread. The others of tests/engine do it in
# script_tape_orders.sh, and some by themselves.
set -u

# shellcheck source=tests/support/expect.sh
. "$(dirname "$0")/../support/expect.sh"
show_more() { grep -vE '^(PASS|SKIP) ' "$work/why" | head -n 20 | sed 's/^/  | /'; }
wrap=()
# The thread sanitizer of older compilers dislikes strongly randomised addresses.
[ "${SAN:-}" = thread ] && setarch -R true 2>/dev/null && wrap=(setarch -R)

if [ ! -x "$build/tests/engine/mpi_tape_streams" ]; then
  skip devices_whose_memory_comes_and_goes "there is no MPI"
  exit 77
fi

# churned SEED PROGRAM RANKS
churned() {
  timeout -k 10 "$limit" env EMULATED_CHURN="$1" "$launch" "$3" "${wrap[@]}" "$build/tests/$2" </dev/null
}

seed=20
while read -r program ranks; do
  seed=$((seed + 1))
  expect "${program##*/}_passes_while_memory_comes_and_goes" churned $seed "$program" "$ranks"
done <<END
api/mpi_device_pairs 3
api/mpi_device_racks 4
api/mpi_device_step_by_step 2
api/mpi_device_streams 2
engine/mpi_pair_graphs_fail 2
engine/mpi_tape_cache 2
engine/mpi_tape_calls 2
engine/mpi_tape_graphs_fail 2
engine/mpi_tape_long 2
engine/mpi_tape_streams 2
observe/mpi_capture_device 2
interpose/mpi_interposer_devices 3
interpose/nccl/mpi_nccl_abort 2
interpose/nccl/mpi_nccl_alone 2
interpose/nccl/mpi_nccl_capture 2
interpose/nccl/mpi_nccl_choices 2
interpose/nccl/mpi_nccl_choices_report 2
interpose/nccl/mpi_nccl_comms 2
interpose/nccl/mpi_nccl_config 2
interpose/nccl/mpi_nccl_factors 2
interpose/nccl/mpi_nccl_gathered 2
interpose/nccl/mpi_nccl_groups 2
interpose/nccl/mpi_nccl_life 2
interpose/nccl/mpi_nccl_moves 3
interpose/nccl/mpi_nccl_over 3
interpose/nccl/mpi_nccl_over_abort 2
interpose/nccl/mpi_nccl_over_comms 3
interpose/nccl/mpi_nccl_over_control 2
interpose/nccl/mpi_nccl_over_devices 2
interpose/nccl/mpi_nccl_over_feedback 2
interpose/nccl/mpi_nccl_over_parts 3
interpose/nccl/mpi_nccl_over_report 2
interpose/nccl/mpi_nccl_sums 3
END
exit $((failures > 0))
