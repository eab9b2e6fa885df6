#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# Programs on emulated devices while another thread of the program gets and frees memory at random, for
# which CUDA waits until devices are idle: results are the same, and nothing stands still. Programs
# that hold a stream let it go here (hold() in tests/engine/tape_calls.h, mpi_peer_memory_late): the
# thread would wait for the program, and the program, in its next call of CUDA, for the thread. More of
# tests/engine and tests/tensor do it in script_tape_orders.sh, and these by themselves:
# api/mpi_device_calls, engine/mpi_peer_memory, shards/mpi_device_quorum and _steps,
# tensor/mpi_device_residuals and mpi_device_steps. Not here:
#   engine/test_tape_killed, device/test_device_emulated, device/test_device_waits: they hold streams,
#     which is what they are about; the others of device/ are about what the thread does
#   engine/test_stream_call_time, interpose/nccl/mpi_nccl_time: they measure
#   interpose/nccl/test_nccl_one_process, where one thread makes the calls of several ranks: half of a
#     call is in the stream of one of them when that thread begins to wait for it, and the other rank's
#     call, which lets it go on, comes behind the other half
#   kernels/, tools/test_tools_cuda_emulated, trainer/test_train_cuda_*: no rank waits for another one
#   most of trainer/mpi_train_cuda and of tensor/script_elastic_devices.sh, which take minutes
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

# churned SEED PROGRAM RANKS [PROPERTY]: that one runs, or those of such names, and holds. A program of
# unit tests (RANKS -) starts its ranks itself.
churned() {
  local start=()
  [ "$3" = - ] || start=("$launch" "$3")
  CMOCKA_MESSAGE_OUTPUT=tap ELASTIC_ON_DEVICE=1 EMULATED_CHURN="$1" timeout -k 10 "$limit" \
    "${start[@]}" "${wrap[@]}" "$build/tests/$2" ${4:+"$4"} </dev/null >"$work/said" 2>&1
  local failed=$?
  cat "$work/said"
  [ $failed = 0 ] && grep -qE '^(PASS|ok) ' "$work/said"
}

seed=20
while read -r program ranks property; do
  seed=$((seed + 1))
  expect "${program##*/}${property:+_$property}_passes_while_memory_comes_and_goes" \
    churned $seed "$program" "$ranks" "$property"
done <<END
api/mpi_device_pairs 3
api/mpi_device_racks 4
api/mpi_device_step_by_step 2
api/mpi_device_stream_held 2
api/mpi_device_streams 2
engine/mpi_device_failure 2
engine/mpi_device_ucx 2
engine/mpi_pair_graphs_fail 2
engine/mpi_peer_memory_late 3
engine/mpi_tape_cache 2
engine/mpi_tape_calls 2
engine/mpi_tape_calls_feedback 2
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
interpose/nccl/mpi_nccl_control 2
interpose/nccl/mpi_nccl_control_life 2
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
interpose/nccl/mpi_nccl_over_many 2
interpose/nccl/mpi_nccl_over_parts 3
interpose/nccl/mpi_nccl_over_report 2
interpose/nccl/mpi_nccl_over_required 2
interpose/nccl/mpi_nccl_sums 3
interpose/nccl/test_nccl_one_process - ranks_in_threads_work_together
tensor/test_tensor_join - topk_loses_nothing
tensor/test_tensor_regroup - low_rank_loses_nothing
tools/mpi_info_measure 2
tools/test_tools_stream_emulated -
trainer/mpi_train_cuda 2 a_codec_with_error_feedback_works_on_the_device
trainer/test_train_elastic_device -
END
exit $((failures > 0))
