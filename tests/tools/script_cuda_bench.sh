#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# What is measured on GPUs, where there is none: it says so in one sentence, with
# the exit status of a skip, and every target is listed as not measured. And what the
# benchmark makes of cases that take the program with them.
set -u

# shellcheck source=tests/support/expect.sh
. "$(dirname "$0")/../support/expect.sh"
bench=$build/tools/cuda_bench
ln -s "$PWD/tools" "$work/tools"
cd "$work" || exit 2
export LCOMM_CUDA=off

# answers NAME STATUS WORD COMMAND...: exit status, and a word in what it prints
answers() {
  local name=$1 status=$2 word=$3 rc
  shift 3
  timeout -k 5 "$limit" "$@" >"$work/out" 2>&1 </dev/null
  rc=$?
  if [ $rc -eq "$status" ] && grep -q -- "$word" "$work/out"; then
    pass "$name"
  else
    fail "$name" "exit status $rc: $(head -c 300 "$work/out" | tr '\n' ' ')"
  fi
}

answers no_device_is_a_skip_with_a_reason 3 "LCOMM_CUDA=off" "$bench" -n 1K
answers the_reason_is_one_sentence 0 "^1$" bash -c "'$bench' -n 1K 2>&1 | wc -l"
answers cases_are_listed_without_a_device 0 "^8 peers of int8 summed,0.9$" "$bench" --list
answers bad_usage_is_refused 2 "'-n 0' is no number" "$bench" -n 0
answers file_that_cannot_be_written_is_refused 2 "cannot be written" "$bench" --json no/such/folder/x

BUILD=$build answers benchmark_lists_what_it_could_not_measure 0 "^met 0 of 16$" tools/bench/cuda
answers every_line_says_why 0 "^16$" grep -c "not measured  LCOMM_CUDA=off\|not measured: LCOMM_CUDA=off" build/bench/cuda.json
answers no_figures_are_left_behind 0 "^cuda.json$" ls build/bench
BUILD=$build answers benchmark_refuses_bad_options 2 "is no number" tools/bench/cuda -n 0

# A program that dies in its second case, and hangs in the third when that is alone.
mkdir -p fake/tools
cat >fake/tools/cuda_bench <<'EOF'
#!/bin/bash
csv='' only=''
case "$*" in *--list*) printf 'case,target\nfirst,0.9\ndies,0.9\nhangs,0.9\nlast,\ntop-k against torch,5\n'; exit ;; esac
while [ $# -gt 0 ]; do
  case $1 in --csv) csv=$2 ;; --only) only=$2 ;; esac
  shift
done
echo head,target,verdict,share,share_min,share_max,bytes_per_value,seconds,seconds_min,seconds_max,gb_s,copy_gb_s,why >"$csv"
printf 'A device\n3 values\n\n'
case $only in
'') echo 'first,0.9,met,0.95,0.9,1,6,1e-3,1e-3,1e-3,4000,4200,""' >>"$csv" && kill -SEGV $$ ;;
hangs) kill -ALRM $$ ;;
last) echo 'last,,,0.95,0.9,1,6,1e-3,1e-3,1e-3,4000,4200,""' >>"$csv" ;;
top-k) echo 'top-k against torch,5,met,7,,,,2e-2,1e-2,3e-2,,,""' >>"$csv" ;;
esac
EOF
chmod +x fake/tools/cuda_bench
BUILD=$work/fake BENCH_LIMIT_S=7 answers case_that_dies_is_a_failure 1 "^met 2 of 4$" tools/bench/cuda
answers case_that_dies_is_told 0 "^1$" grep -c '^dies,0.9,not measured,,,,,,,,,,"the program died of signal 11"$' build/bench/cuda.csv
answers case_that_hangs_is_told 0 "^1$" grep -c '^hangs,0.9,not measured,,,,,,,,,,"no end within 7 s"$' build/bench/cuda.csv
answers others_have_their_figures_in_order 0 "^first,dies,hangs,last,top-k against torch$" \
  bash -c "sed 1d build/bench/cuda.csv | cut -d, -f1 | paste -sd,"
answers table_has_all_of_them 0 "PyTorch takes 20 ms (10 to 30) for its top-k, 7 times" \
  grep -A 99 "^| hangs | - | - | - | - | - | >= 0.9 | not measured |" build/bench/cuda.md

answers gpu_check_refuses_unknown_options 2 "usage: gpu_check" tools/gpu_check --odd 1
answers gpu_check_refuses_a_bundle_that_is_not_there 2 "cannot be read" tools/gpu_check --bundle no/such/file
exit $((failures > 0))
