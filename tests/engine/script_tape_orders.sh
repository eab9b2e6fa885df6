#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# Calls that put all their work into lanes, on emulated devices whose streams share one queue or
# eight, and on some that do one task at a time, of a stream that is drawn: entries of different
# lanes in any order, of one lane in its own; or where kernels wait in place of streams. Results are
# those of the host, nothing stands still.
set -u

# shellcheck source=tests/support/expect.sh
. "$(dirname "$0")/../support/expect.sh"
show_more() { grep -vE '^(PASS|SKIP) ' "$work/why" | head -n 20 | sed 's/^/  | /'; }
wrap=()
# The thread sanitizer of older compilers dislikes strongly randomised addresses.
[ "${SAN:-}" = thread ] && setarch -R true 2>/dev/null && wrap=(setarch -R)

if [ ! -x "$build/tests/engine/mpi_tape" ] || [ ! -x "$build/tests/tensor/mpi_device_buckets" ]; then
  skip tapes_in_any_order "there is no MPI"
  exit 77
fi

# in_order VARIABLE=VALUE PROGRAM RANKS
in_order() {
  timeout -k 10 "$limit" env "$1" "$launch" "$3" "${wrap[@]}" "$build/tests/$2"
}

for queues in 1 8; do
  expect "sums_are_right_in_${queues}_queues" in_order EMULATED_QUEUES=$queues engine/mpi_tape 3
  expect "replays_are_right_in_${queues}_queues" in_order EMULATED_QUEUES=$queues engine/mpi_tape_graphs 3
  expect "replays_inside_a_node_are_right_in_${queues}_queues" in_order EMULATED_QUEUES=$queues engine/mpi_tape_graphs_node 3
  expect "replays_of_messages_are_right_in_${queues}_queues" in_order EMULATED_QUEUES=$queues engine/mpi_pair_graphs 3
  expect "failures_end_in_${queues}_queues" in_order EMULATED_QUEUES=$queues engine/mpi_tape_failure 2
  expect "buckets_are_right_in_${queues}_queues" in_order EMULATED_QUEUES=$queues tensor/mpi_device_buckets 3
  expect "matrices_are_right_in_${queues}_queues" in_order EMULATED_QUEUES=$queues tensor/mpi_device_lowrank 2
  expect "streams_of_all_kinds_have_sums_in_${queues}_queues" in_order EMULATED_QUEUES=$queues engine/mpi_tape_streams 2
  expect "messages_arrive_in_${queues}_queues" in_order EMULATED_QUEUES=$queues api/mpi_device_pairs 3
  expect "payloads_stay_in_${queues}_queues" in_order EMULATED_QUEUES=$queues engine/mpi_peer_memory 3
done
for seed in 3 4 5; do
  expect "sums_are_right_when_streams_take_turns_$seed" in_order EMULATED_TURNS=$seed engine/mpi_tape 2
done
expect buckets_are_right_when_streams_take_turns in_order EMULATED_TURNS=6 tensor/mpi_device_buckets 2
expect matrices_are_right_when_streams_take_turns in_order EMULATED_TURNS=6 tensor/mpi_device_lowrank 2
expect replays_are_right_when_streams_take_turns in_order EMULATED_TURNS=4 engine/mpi_tape_graphs 2
expect replays_are_right_while_memory_comes_and_goes in_order EMULATED_CHURN=8 engine/mpi_tape_graphs 2
expect replays_of_messages_are_right_when_streams_take_turns in_order EMULATED_TURNS=4 engine/mpi_pair_graphs 2
expect replays_of_messages_are_right_while_memory_comes_and_goes in_order EMULATED_CHURN=8 engine/mpi_pair_graphs 2
expect replays_of_messages_are_right_where_kernels_wait in_order EMULATED_WITHOUT_WAITS=1 engine/mpi_pair_graphs 3
expect replays_inside_a_node_are_right_when_streams_take_turns in_order EMULATED_TURNS=4 engine/mpi_tape_graphs_node 2
expect replays_inside_a_node_are_right_while_memory_comes_and_goes in_order EMULATED_CHURN=8 engine/mpi_tape_graphs_node 2
expect replays_inside_a_node_are_right_where_kernels_wait in_order EMULATED_WITHOUT_WAITS=1 engine/mpi_tape_graphs_node 3
expect sums_are_right_while_memory_comes_and_goes in_order EMULATED_CHURN=5 engine/mpi_tape 3
expect failures_end_while_memory_comes_and_goes in_order EMULATED_CHURN=6 engine/mpi_tape_failure 2
expect buckets_are_right_while_memory_comes_and_goes in_order EMULATED_CHURN=7 tensor/mpi_device_buckets 2
expect matrices_are_right_while_memory_comes_and_goes in_order EMULATED_CHURN=7 tensor/mpi_device_lowrank 2
expect matrices_are_right_where_kernels_wait in_order EMULATED_WITHOUT_WAITS=1 tensor/mpi_device_lowrank 2
expect sums_are_right_where_kernels_wait in_order EMULATED_WITHOUT_WAITS=1 engine/mpi_tape 3
expect failures_end_where_kernels_wait in_order EMULATED_WITHOUT_WAITS=1 engine/mpi_tape_failure 2
expect payloads_stay_where_kernels_wait in_order EMULATED_WITHOUT_WAITS=1 engine/mpi_peer_memory 3
exit $((failures > 0))
