#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# Programs that know nothing of libcomm (tests/clients), started as users start
# them: with libcomm-mpi.so preloaded before MPI. What they print is compared
# with what they print on plain MPI.
set -u

# shellcheck source=tests/support/interposer_script.sh
source "$(dirname "$0")/../support/interposer_script.sh"
# shellcheck source=tests/support/find_python.sh
source "$(dirname "$0")/../support/find_python.sh"
needs_no_sanitizers interposer_clients
export LCOMM_NODES=2
interposer=$build/libcomm-mpi.so

# plain NAME RANKS PROGRAM...: on plain MPI; output in NAME.out and NAME.err
plain() {
  local name=$1
  shift
  timeout -k 5 "$limit" tools/build/launch "$@" >"$work/$name.out" 2>"$work/$name.err" </dev/null
}

# preloaded NAME SETTINGS RANKS PROGRAM...: SETTINGS are words such as LCOMM_POLICY=net=int8
preloaded() {
  local name=$1 settings=$2 ranks=$3
  shift 3
  # shellcheck disable=SC2086 # settings are words
  plain "$name" "$ranks" env LD_PRELOAD="$interposer" $settings "$@"
}

# What does not depend on the time that it took.
answers() { grep -v '^steps_per_s' "$work/$1.out"; }
same() { [ -s "$work/$1.out" ] && [ "$(answers "$1")" = "$(answers "$2")" ]; }

value() { awk -v key="$2" '$1 == key { print $2 }' "$work/$1.out"; }
# holds EXPRESSION: of awk; false when one of its numbers is missing
holds() { awk "BEGIN { exit !($1) }" 2>/dev/null; }
near() { # A B PERCENT
  holds "($1) - ($2) < $3 / 100 * ($2) && ($2) - ($1) < $3 / 100 * ($2)"
}

# expect_same NAME RUN LIKE STATUS
expect_same() {
  if [ "$4" -ne 0 ]; then
    fail "$1" "exit status $4" "$work/$2.out" "$work/$2.err"
  elif ! same "$2" "$3"; then
    fail "$1" "other answers than on plain MPI" "$work/$2.out" "$work/$2.err"
  else
    pass "$1"
  fi
}

# ---------------------------------------------------------------- the training

train=("$build/tests/clients/client_train" --hidden 128 --batch 4 --steps 16 --warmup 4 --check)

training() {
  local status
  plain train 4 "${train[@]}" || fail the_training_runs_on_plain_mpi "exit status $?" "$work/train.err"

  preloaded idle "" 4 "${train[@]}"
  expect_same without_a_policy_the_answers_are_those_of_mpi idle train $?

  preloaded int8 LCOMM_POLICY=net=int8 4 "${train[@]}"
  status=$?
  if [ $status -eq 0 ] && near "$(value int8 final_loss)" "$(value train final_loss)" 2; then
    pass int8_trains_to_the_same_loss
  else
    fail int8_trains_to_the_same_loss "exit status $status" "$work/int8.out" "$work/int8.err"
  fi
  if holds "$(value int8 sum_error) > 1e-5 && $(value int8 sum_error) < 0.03"; then
    pass int8_sums_are_as_exact_as_int8
  else
    fail int8_sums_are_as_exact_as_int8 "not between 1e-5 and 0.03" "$work/int8.out" "$work/int8.err"
  fi

  preloaded topk LCOMM_POLICY=net=topk:0.01+ef 4 "${train[@]}"
  status=$?
  if [ $status -eq 0 ] && near "$(value topk final_loss)" "$(value train final_loss)" 2 && ! same topk train; then
    pass top_k_trains_to_the_same_loss
  else
    fail top_k_trains_to_the_same_loss "exit status $status" "$work/topk.out" "$work/topk.err"
  fi
  if holds "$(value topk total_error) < 1e-4"; then
    pass what_top_k_withheld_is_paid_when_the_pattern_ends
  else
    fail what_top_k_withheld_is_paid_when_the_pattern_ends "error of the total" "$work/topk.out" "$work/topk.err"
  fi

  preloaded report "LCOMM_POLICY=net=int8 LCOMM_INTERPOSE=report" 4 "${train[@]}"
  expect_same a_report_changes_nothing report train $?
  if grep -q MPI_Allreduce "$work/report.err" && grep -q MPI_FLOAT "$work/report.err"; then
    pass a_report_is_a_table_of_calls
  else
    fail a_report_is_a_table_of_calls "no table" "$work/report.err"
  fi
}

# -------------------------------------------------------------------- trouble

# said NAME RUN WORDS: in exactly one sentence of the interposer's; where rank 0 is silent,
# several ranks say it
said() {
  if [ "$(grep '^libcomm-mpi: ' "$work/$2.err" | sed 's/ Rank [0-9]* runs/ It runs/' | sort -u | wc -l)" -eq 1 ] && grep -q "^libcomm-mpi: .*$3" "$work/$2.err"; then
    pass "$1"
  else
    fail "$1" "not one sentence with '$3'" "$work/$2.err"
  fi
}

trouble() {
  preloaded bad LCOMM_POLICY=net=int9 4 "${train[@]}"
  expect_same a_bad_policy_leaves_plain_mpi bad train $?
  said a_bad_policy_is_explained_in_one_sentence bad int9

  cat >"$work/by_rank" <<'EOF'
[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 3 ] && export LCOMM_POLICY=net=bf16
exec "$@"
EOF
  preloaded differs LCOMM_POLICY=net=int8 4 sh "$work/by_rank" "${train[@]}"
  expect_same a_policy_that_differs_leaves_plain_mpi differs train $?
  said a_policy_that_differs_is_explained_in_one_sentence differs bf16

  printf '[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = "$SPARED" ] || export LD_PRELOAD="%s"\nexec "$@"\n' "$interposer" >"$work/on_some"
  SPARED=1 plain some 4 env LCOMM_POLICY=net=int8 sh "$work/on_some" "${train[@]}"
  expect_same a_rank_without_the_preload_leaves_plain_mpi some train $?
  said a_rank_without_the_preload_is_named some "rank 1"
  SPARED=0 plain first 4 env LCOMM_POLICY=net=int8 sh "$work/on_some" "${train[@]}"
  expect_same rank_0_without_the_preload_leaves_plain_mpi first train $?
  said rank_0_without_the_preload_is_named first "rank 0"
}

# ------------------------------------------------------------- other languages

# errors RUN EXPRESSION [LINE...]: of the error X of each named line of reduce.f90 or reduce.cc,
# of all lines without names
errors() {
  local run=$1 expression=$2 line error lines=0
  shift 2
  while read -r line; do
    error=${line##* }
    [ $# -eq 0 ] || [[ " ${line% *} " == *" $1 "* ]] || continue
    lines=$((lines + 1))
    holds "${expression//X/(0$error + 0)}" || return 1
  done <"$work/$run.out"
  [ $lines -gt 0 ] && { [ $# -le 1 ] || errors "$run" "$expression" "${@:2}"; }
}

# sums NAME PROGRAM... -- LINE...: without a policy all sums are exact; with one the lines
# in `compressed` are off by a little, and the named ones exact all the same
sums() {
  local name=$1 program=()
  shift
  while [ "$1" != -- ]; do
    program+=("$1")
    shift
  done
  shift
  if preloaded "$name" "" 4 "${program[@]}" && errors "$name" "X == 0" && errors "$name" "X == 0" "$@"; then
    pass "${name}_programs_are_exact_without_a_policy"
  else
    fail "${name}_programs_are_exact_without_a_policy" "see its output" "$work/$name.out" "$work/$name.err"
  fi
  if preloaded "$name" LCOMM_POLICY=net=int8 4 "${program[@]}" && errors "$name" "X < 6" &&
    errors "$name" "X > 0" "${compressed[@]}" && errors "$name" "X == 0" "$@"; then
    pass "${name}_programs_are_compressed_with_a_policy"
  else
    fail "${name}_programs_are_compressed_with_a_policy" "see its output" "$work/$name.out" "$work/$name.err"
  fi
}

languages() {
  local cxx=${CXX:-g++} compressed=(allreduce "in place" iallreduce)
  # shellcheck disable=SC2046 # flags are words
  if ! command -v "$cxx" >/dev/null; then
    skip c++ "no $cxx in PATH"
  elif $cxx -std=c++17 -O2 -DOMPI_SKIP_MPICXX tests/clients/reduce.cc -o "$work/reduce_cc" \
    $(tools/build/mpi-probe cflags "${MPI:-}") $(tools/build/mpi-probe libs "${MPI:-}") 2>"$work/log"; then
    sums c++ "$work/reduce_cc" -- message doubles
  else
    fail c++_programs_are_exact_without_a_policy "it does not compile" "$work/log"
  fi

  if ! command -v gfortran >/dev/null || ! command -v mpifort >/dev/null; then
    skip fortran "no gfortran, or no mpifort (package gfortran)"
  elif mpifort -O2 -J "$work" tests/clients/reduce.f90 -o "$work/reduce_f" 2>"$work/log"; then
    sums fortran_f08 "$work/reduce_f" f08 -- handles
    compressed+=(reduce_scatter_block ireduce_scatter persistent)
    sums fortran_mpi "$work/reduce_f" mpi -- allgather bcast split startall handles
  else
    fail fortran_mpi_programs_are_exact_without_a_policy "it does not compile" "$work/log"
  fi
}

python() {
  local python script=(tests/clients/client_train.py --hidden 128 --batch 4 --steps 16 --warmup 4)
  python=$(find_python mpi4py,numpy)
  if [ -z "$python" ]; then
    skip mpi4py "no Python with mpi4py and numpy (packages python3-mpi4py, python3-numpy)"
    return
  elif ! plain py 4 "$python" "${script[@]}"; then
    skip mpi4py "it does not run on plain MPI: $(tail -n 1 "$work/py.err")"
    return
  fi
  preloaded py_idle "" 4 "$python" "${script[@]}"
  expect_same mpi4py_programs_are_exact_without_a_policy py_idle py $?
  preloaded py_int8 LCOMM_POLICY=net=int8 4 "$python" "${script[@]}"
  if near "$(value py_int8 final_loss)" "$(value py final_loss)" 2 && ! same py_int8 py; then
    pass mpi4py_programs_are_compressed_with_a_policy
  else
    fail mpi4py_programs_are_compressed_with_a_policy "see its output" "$work/py_int8.out" "$work/py_int8.err"
  fi
}

training
trouble
languages
python
exit $failed
