#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# The soak in a short form: some thousand random operations on 5 ranks with progress
# threads, and on 3 without, nothing wrong, no replica drifts, and nothing more is held.
set -u

build=${BUILD:?the folder of the programs}
limit=${TEST_PART_S:-600} # seconds for a program
benchmark=soak
# shellcheck source=tools/bench/common
BUILD=$build source tools/bench/common
export LCOMM_TIMEOUT_S=${LCOMM_TIMEOUT_S:-60}
export LCOMM_RUN_CACHE=2M # hardly a shape comes twice: at its bound before the middle
failed=0

# soak NAME RANKS OPTION...
soak() {
  local name=$1 ranks=$2 rank rc status=0 pids=()
  shift 2
  start_ranks "$ranks" timeout -k 5 "$limit" "$build/tools/soak_bench" "$@"
  for rank in "${!pids[@]}"; do
    wait "${pids[$rank]}"
    rc=$?
    [ $rc -eq 0 ] || status=$rc
  done
  if [ $status -eq 0 ] && grep -qx 'wrong 0' "$work/out.0" && grep -qx 'drifted 0' "$work/out.0" &&
    awk '$1 == "descriptors" { exit !($2 == $3) }' "$work/out.0"; then
    echo "PASS $name"
    return
  fi
  if grep -q '^failed [0-9.]* LCOMM_ERR_UNSUPPORTED' "$work/out.0"; then
    echo "SKIP $name: $(grep '^failed' "$work/out.0" | cut -c 1-300)"
    return
  fi
  failed=1
  echo "FAIL $name: exit status $status: $(grep -h '^failed' "$work"/out.* | head -n 1)"
  tail -n 5 "$work"/out.* "$work"/err.*
}

soak random_operations_are_right_and_alike_with_progress_threads 5 --operations 3000 --seed 11
soak random_operations_are_right_and_alike_in_calls 3 --operations 3000 --seed 12 --progress calls
soak random_operations_are_right_and_alike_over_ucx 4 --operations 500 --seed 13 --transport ucx
exit $failed
