#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# Which NCCL libcomm-nccl.so hands its calls to, when it is preloaded: two libraries that stand in
# for NCCL tell different versions, and lie where wheels and systems keep NCCL.
set -u

# shellcheck source=tests/support/interposer_script.sh
source "$(dirname "$0")/../../support/interposer_script.sh"
needs_no_sanitizers nccl_found
unset LCOMM_NCCL LCOMM_NCCL_LIBRARY LCOMM_NCCL_VERSION
preload=$build/libcomm-nccl.so
wheels=$work/site-packages
wheel=$wheels/nvidia/nccl/lib
mkdir -p "$wheel" "$wheels/torch/lib" "$work/old"
cp "$build/tests/interpose/nccl/stand_in_nccl.so" "$wheel/libnccl.so.2"
cp "$build/tests/interpose/nccl/stand_in_nccl_old.so" "$work/old/libnccl.so.2"
newer="version 23007" older="version 21805"

# What is like torch: linked with NCCL, or with nothing.
caller=tests/interpose/nccl/nccl_caller.c
cc() { ${CC:-gcc} -std=c11 -D_GNU_SOURCE "$@" -ldl; }
# shellcheck disable=SC2016 # the loader's variable
cc "$caller" "$wheel/libnccl.so.2" -Wl,--disable-new-dtags,-rpath,'$ORIGIN/site-packages/nvidia/nccl/lib' \
  -o "$work/by_rpath" &&
  cc "$caller" "$wheel/libnccl.so.2" -o "$work/by_name" &&
  cc "$caller" -o "$work/looks_up" &&
  echo 'int part_of_torch;' | cc -x c -shared -fPIC - -o "$wheels/torch/lib/libpart.so" ||
  { echo "FAIL nccl_found: the programs do not compile"; exit 1; }

# finds NAME VERSION COMMAND...: the program, with the preload, is told this version
finds() {
  local name=$1 expected=$2
  shift 2
  timeout "$limit" env "$@" >"$work/out" 2>&1
  if [ "$(cat "$work/out")" = "$expected" ]; then pass "$name"; else fail "$name" "not '$expected'"; fi
}

finds without_the_preload_it_is_the_wheel "$newer" "$work/by_rpath"
finds the_rpath_of_who_needs_it "$newer" LD_PRELOAD="$preload" "$work/by_rpath"
finds the_rpath_before_the_path_of_libraries "$newer" LD_LIBRARY_PATH="$work/old" LD_PRELOAD="$preload" "$work/by_rpath"
finds the_path_of_libraries "$older" LD_LIBRARY_PATH="$work/old" LD_PRELOAD="$preload" "$work/by_name"
finds the_next_preload_before_both "$older" LD_PRELOAD="$preload $work/old/libnccl.so.2" "$work/by_rpath"
finds the_named_file_before_all "$newer" LCOMM_NCCL_LIBRARY="$wheel/libnccl.so.2" \
  LD_PRELOAD="$preload $work/old/libnccl.so.2" "$work/by_name"
finds a_program_that_looks_nccl_up "$older" LD_LIBRARY_PATH="$work/old" LD_PRELOAD="$preload" "$work/looks_up"
finds the_wheel_beside_other_wheels "$newer" LD_PRELOAD="$preload" "$work/looks_up" "$wheels/torch/lib/libpart.so"

# says NAME STATUS OUTPUT SENTENCE VARIABLE...: over the wheel; SENTENCE is said, or nothing
says() {
  local name=$1 status=$2 output=$3 sentence=$4
  shift 4
  env LD_PRELOAD="$preload" "$@" timeout "$limit" "$work/by_rpath" >"$work/out" 2>"$work/said"
  if [ $? -eq "$status" ] && grep -q "^$output" "$work/out" &&
    if [ -n "$sentence" ]; then grep -q "^libcomm-nccl: .*$sentence" "$work/said"; else [ ! -s "$work/said" ]; fi; then
    pass "$name"
  else
    fail "$name" "another output or sentence" "$work/out" "$work/said"
  fi
}
says over_nccl_nothing_is_said 0 'version 23007' ''
says over_nccl_a_policy_says_nothing_of_calls_that_are_no_sums 0 'version 23007' '' LCOMM_POLICY=net=int8
says over_nccl_a_mode_that_is_none_is_named 0 'version 23007' 'LCOMM_INTERPOSE is none of' LCOMM_POLICY=net=int8 LCOMM_INTERPOSE=perhaps
says over_nccl_a_report_needs_a_policy 0 'version 23007' 'set LCOMM_POLICY' LCOMM_INTERPOSE=report
says over_nccl_compression_that_is_required_needs_a_policy 5 'result 5: .*LCOMM_INTERPOSE=require' \
  'LCOMM_INTERPOSE=require' LCOMM_INTERPOSE=require

says alone_a_mode_that_is_none_is_named 0 'version 22809' 'All sums are exact' LCOMM_NCCL=alone LCOMM_INTERPOSE=perhaps
says alone_a_report_needs_a_policy 0 'version 22809' 'set LCOMM_POLICY' LCOMM_NCCL=alone LCOMM_INTERPOSE=report
says alone_compression_that_is_required_needs_a_policy 5 'result 5: .*LCOMM_INTERPOSE=require' \
  'LCOMM_INTERPOSE=require' LCOMM_NCCL=alone LCOMM_INTERPOSE=require
says alone_compression_that_is_required_has_one 0 'version 22809' '' LCOMM_NCCL=alone LCOMM_INTERPOSE=require \
  LCOMM_POLICY=net=int8
says alone_the_control_file_is_no_news 0 'version 22809' '' LCOMM_NCCL=alone \
  LCOMM_INTERPOSE_CONTROL=control

# without NAME STATUS OUTPUT SAID [VARIABLE]: the program that finds no NCCL
without() {
  local name=$1 status=$2 output=$3 sentence=$4
  shift 4
  env LD_PRELOAD="$preload" "$@" timeout "$limit" "$work/looks_up" >"$work/out" 2>"$work/said"
  if [ $? -eq "$status" ] && grep -q "^$output" "$work/out" && grep -q "^libcomm-nccl: .*$sentence" "$work/said"; then
    pass "$name"
  elif ldconfig -p 2>/dev/null | grep -q libnccl; then
    skip "$name" "this system has an NCCL of its own"
  else
    fail "$name" "another output or sentence" "$work/out" "$work/said"
  fi
}
without without_any_libcomm_makes_the_calls_and_says_so 0 'version 22809' "libcomm makes NCCL's calls"
without without_any_nccl_over_is_refused_with_what_to_do 5 'result 5: ncclGetVersion: no NCCL was found' \
  'set LCOMM_NCCL_LIBRARY to its path' LCOMM_NCCL=over
without another_word_is_refused 5 'result 5: ncclGetVersion: LCOMM_NCCL is neither over nor alone' \
  'neither over nor alone' LCOMM_NCCL=below
finds alone_does_not_look "version 22809" LCOMM_NCCL=alone LD_PRELOAD="$preload" "$work/by_rpath"

exit $failed
