#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# Bad input ends every rank with a clear sentence and exit code 2, and nothing
# hangs. Each case runs real programs under mpirun.
set -u

build=${BUILD:?the folder of the programs}
limit=${TEST_PART_S:-600} # seconds for a program
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# the folder may be given relative to the repository root
case $build in /*) ;; *) build=$PWD/$build ;; esac
train=$build/train perf=$build/tools/allreduce_perf
export LCOMM_TIMEOUT_S=${LCOMM_TIMEOUT_S:-60}
launch=$PWD/tools/build/launch
failed=0

# expect NAME WORD RANKS COMMAND...: exit code 2, no hang, and RANKS lines (at
# least) that hold WORD
expect() {
  local name=$1 word=$2 ranks=$3 rc lines
  shift 3
  timeout -k 5 "$limit" "$@" >"$work/out" 2>&1 </dev/null
  rc=$?
  lines=$(grep -c -- "$word" "$work/out")
  if [ $rc -eq 2 ] && [ "$lines" -ge "$ranks" ]; then
    echo "PASS $name"
    return
  fi
  failed=1
  echo "FAIL $name: exit code $rc, $lines lines with '$word'"
  sed 's/^/  | /' "$work/out" | head -n 20
}

# train RANKS OPTION...: as an array, because timeout runs programs, not functions
train_on() { trained=("$launch" "$1" "$train" --epochs 1 --images 500 "${@:2}"); }

mkdir "$work/empty" "$work/magic" "$work/short"
for kind in train-images-idx3 train-labels-idx1 t10k-images-idx3 t10k-labels-idx1; do
  head -c 4000 /dev/zero >"$work/magic/$kind-ubyte"
  printf '\0\0\10\3\0\0\0\144\0\0\0\34\0\0\0\34' >"$work/short/$kind-ubyte"
done

train_on 3 --policy net=int9
expect unknown_policy_is_explained_on_every_rank "int9" 3 "${trained[@]}"
train_on 2 --data "$work/empty"
expect missing_data_files_are_named "$work/empty" 1 "${trained[@]}"
train_on 2 --data "$work/short"
expect truncated_data_files_are_named "$work/short" 1 "${trained[@]}"
train_on 2 --data "$work/magic"
expect wrong_magic_is_named "magic" 1 "${trained[@]}"
expect nodes_without_ranks_are_refused_on_every_rank "without a rank" 2 \
  env LCOMM_NODES=3 "$launch" 2 "$train" --epochs 1 --images 500
expect zero_nodes_are_refused_on_every_rank "LCOMM_NODES" 2 \
  env LCOMM_NODES=0 "$launch" 2 "$train" --epochs 1 --images 500
expect unknown_kernels_are_refused_on_every_rank "LCOMM_ISA=sse9" 2 \
  env LCOMM_ISA=sse9 "$launch" 2 "$train" --epochs 1 --images 500
expect steps_to_capture_that_are_no_numbers_are_refused "LCOMM_CAPTURE_STEPS=often" 2 \
  env LCOMM_CAPTURE="$work/captured" LCOMM_CAPTURE_STEPS=often "$launch" 2 "$train" --epochs 1 --images 500
expect a_policy_that_differs_between_ranks_is_named_on_every_rank "bf16" 2 \
  "$launch" 1 "$train" --images 500 --policy net=int8 : -np 1 "$train" --images 500 --policy net=bf16
expect a_count_that_differs_between_ranks_is_named_on_every_rank "of 1,000 float32, rank 1 .* of 2,000 float32" 2 \
  "$launch" 1 "$perf" -b 4000 -n 1 -w 0 : -np 1 "$perf" -b 8000 -n 1 -w 0
train_on 2 --frobnicate
expect unknown_option_is_refused "frobnicate" 1 "${trained[@]}"
exit $failed
