#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# Programs that know NCCL and CUDA's runtime only run unchanged with libcomm-nccl.so, where a library of
# emulated devices has CUDA's names.
set -u

# shellcheck source=tests/support/interposer_script.sh
source "$(dirname "$0")/../../support/interposer_script.sh"
needs_no_sanitizers nccl_program
cuda=$build/tests/interpose/nccl/cuda
program=$work/nccl_program
for name in nccl_program nccl_perf nccl_tcp_program; do
  ${CC:-gcc} -std=c11 -D_GNU_SOURCE -I. "tests/interpose/nccl/$name.c" \
    "$build/tests/interpose/nccl/stand_in_nccl.so" "$cuda/libcudart.so" -o "$work/$name" ||
    { echo "FAIL nccl_program: $name does not compile"; exit 1; }
done

# runs POLICY ARGUMENTS...: the libcomm.so of that folder has its devices beside it
runs() {
  local policy=$1
  shift
  timeout "$limit" env LD_PRELOAD="$cuda/libcomm.so $build/libcomm-nccl.so" LD_LIBRARY_PATH="$cuda" \
    EMULATED_APART=1 LCOMM_NCCL=alone LCOMM_NODES=2 LCOMM_POLICY="$policy" "$program" "$@"
}

# gives NAME WORDS: the lines of two ranks end with these words
gives() {
  if [ "$(grep -c ": $2\$" "$work/out")" = 2 ] && [ "$(wc -l <"$work/out")" = 2 ]; then
    pass "$1"
  else
    fail "$1" "not '$2'" "$work/out" "$work/said"
  fi
}

devices() { # NAME POLICY WORDS
  runs "$2" devices >"$work/out" 2>"$work/said"
  gives "$1" "$3"
}

processes() { # NAME POLICY WORDS
  rm -f "$work/id"
  runs "$2" 1 2 "$work/id" >"$work/other" 2>"$work/said" &
  runs "$2" 0 2 "$work/id" >"$work/out" 2>>"$work/said"
  wait "$!"
  cat "$work/other" >>"$work/out"
  gives "$1" "$3"
}

devices one_process_with_all_devices net=none exact
devices one_process_with_all_devices_compressed net=int8 near
processes a_process_for_each_device net=none exact
processes a_process_for_each_device_compressed net=int8 near

# table NAME WORDS VARIABLE VALUE: two processes, of which rank 0 shows it
table() {
  (export "$3=$4" && processes "$1" net=int8 "$5")
  expect "$1_in_the_table" "not '$2' once: $(cat "$work/said")" [ "$(grep -c "$2" "$work/said")" = 1 ]
}
table sums_that_are_compressed 'libcomm-nccl: what became of the calls of rank 0' LCOMM_STATS exit near
table sums_that_would_be_compressed 'libcomm-nccl: what would become of the calls of rank 0' LCOMM_INTERPOSE report exact

# tcp NAME RANKS POLICY: ranks without a launcher, whose id travels over TCP
tcp() {
  local name=$1 ranks=$2 rank right=0 pids=()
  rm -f "$work/port"
  for ((rank = 0; rank < ranks; rank++)); do
    timeout "$limit" env LD_PRELOAD="$cuda/libcomm.so $build/libcomm-nccl.so" LD_LIBRARY_PATH="$cuda" \
      LCOMM_NCCL=alone LCOMM_NODES=2 LCOMM_POLICY="$3" \
      "$work/nccl_tcp_program" "$rank" "$ranks" "$work/port" >"$work/tcp-$rank" 2>"$work/tcp-said-$rank" &
    pids+=($!)
  done
  for rank in "${!pids[@]}"; do
    wait "${pids[rank]}" && grep -qx right "$work/tcp-$rank" && right=$((right + 1))
  done
  expect "$name" "$right of $ranks ranks are right: $(cat "$work"/tcp-[0-9]* "$work"/tcp-said-* | sort -u | head -5)" \
    [ "$right" -eq "$ranks" ]
}

tcp an_id_over_tcp_and_parts_of_two_ranks 2 net=none
tcp an_id_over_tcp_and_parts_of_five_ranks 5 net=int8

# perf NAME STATUS RANKS POLICY OPTION...: nccl_perf on ranks without a launcher; WRONG is said where it fails
perf() {
  local name=$1 status=$2 ranks=$3 policy=$4 rank bad=0 pids=()
  shift 4
  rm -f "$work/id"
  for ((rank = 0; rank < ranks; rank++)); do
    timeout "$limit" env LD_PRELOAD="$cuda/libcomm.so $build/libcomm-nccl.so" LD_LIBRARY_PATH="$cuda" RANK=$rank \
      WORLD_SIZE="$ranks" EMULATED_APART=1 LCOMM_NCCL=alone LCOMM_NODES="$ranks" LCOMM_POLICY="$policy" \
      "$work/nccl_perf" -b 8 -e 262144 -f 32 -n 2 "$@" "$work/id" >"$work/perf-$rank" 2>"$work/said-$rank" &
    pids+=($!)
  done
  for rank in "${!pids[@]}"; do
    wait "${pids[rank]}"
    [ $? -eq "$status" ] || bad=1
  done
  if [ $bad -eq 0 ] && { [ "$status" -eq 0 ] || grep -q WRONG "$work/perf-0"; }; then
    pass "$name"
  else
    fail "$name" "another end" "$work"/perf-* "$work"/said-*
  fi
}

perf all_calls_of_all_sizes_are_right 0 2 net=none
perf all_calls_of_bfloat16_on_three_ranks_are_right 0 3 net=none -d bfloat16
perf all_calls_are_near_where_they_are_compressed 0 2 'net=int8 min=1K' -r 0.05
perf compressed_results_are_found_wrong_where_exact_ones_are_meant 1 2 'net=int8 min=1K' -o all_reduce

exit $failed
