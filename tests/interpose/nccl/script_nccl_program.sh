#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# A program that knows NCCL and CUDA's runtime only runs unchanged with libcomm-nccl.so, where a
# library of emulated devices has CUDA's names.
set -u

# shellcheck source=tests/support/interposer_script.sh
source "$(dirname "$0")/../../support/interposer_script.sh"
needs_no_sanitizers nccl_program
cuda=$build/tests/interpose/nccl/cuda
program=$work/nccl_program
${CC:-gcc} -std=c11 -D_GNU_SOURCE -I. tests/interpose/nccl/nccl_program.c \
  "$build/tests/interpose/nccl/stand_in_nccl.so" "$cuda/libcudart.so" -o "$program" ||
  { echo "FAIL nccl_program: it does not compile"; exit 1; }

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

exit $failed
