#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# More than one MPI: what speaks MPI is built for MPICH beside the libcomm.so of this build,
# which knows no MPI, and some of its tests run; and each MPI's libcomm-mpi.so leaves
# programs of the other one alone, with one sentence.
set -u

# shellcheck source=tests/support/interposer_script.sh
source "$(dirname "$0")/../support/interposer_script.sh"
needs_no_sanitizers other_mpi
probe=tools/build/mpi-probe
if [ "$($probe name mpich)" = none ] || [ "$($probe name openmpi)" = none ]; then
  skip other_mpi "it needs Open MPI and MPICH (packages libopenmpi-dev, libmpich-dev)"
  exit 77
fi
unset LD_PRELOAD

# ------------------------------------------------------------------- building

# made KIND MPI: the files of that kind, as the Makefile says
made() { make -s --no-print-directory NVCC=none MPI="$2" print-mpi-sources KIND="$1"; }

# compile MPI FILE...: objects into $work/MPI; two at a time, and what runs is short, so
# not optimised
compile() {
  local mpi=$1
  shift
  mkdir -p "$work/$mpi"
  # shellcheck disable=SC2046 # flags are words
  printf '%s\n' "$@" | xargs -P 2 -I FILE sh -c 'object=$1/$(echo "$2" | tr / _).o
    [ ! -e "$object" ] || exit 0
    shift 2; exec "$@" -o "$object"' sh "$work/$mpi" FILE ${CC:-gcc} -std=c11 -D_GNU_SOURCE -DNDEBUG -fPIC \
    -fvisibility=hidden -pthread -I. -Ilibcomm/include $($probe cflags "$mpi") -c FILE
}

# objects MPI FILE...
objects() {
  local mpi=$1 file
  shift
  for file in "$@"; do echo "$work/$mpi/${file//\//_}.o"; done
}

# shared MPI NAME FILE...: a library of them
shared() {
  local mpi=$1 name=$2
  shift 2
  # shellcheck disable=SC2046,SC2086 # lists of words
  ${CC:-gcc} -shared -Wl,-soname,"$name" -Wl,-z,defs $(objects "$mpi" "$@") -L"$work/$mpi" -L"$build" \
    $([ "$name" = libcomm-with-mpi.so.0 ] || echo "$work/$mpi/libcomm-with-mpi.so.0") -lcomm \
    -Wl,-rpath,"$work/$mpi:$build" $($probe libs "$mpi") -ldl -pthread -o "$work/$mpi/$name"
}

# interposer MPI: both libraries in $work/MPI
interposer() {
  local with_mpi interposer
  mapfile -t with_mpi < <(made with-mpi "$1")
  mapfile -t interposer < <(made interposer "$1")
  compile "$1" "${with_mpi[@]}" "${interposer[@]}" && shared "$1" libcomm-with-mpi.so.0 "${with_mpi[@]}" &&
    shared "$1" libcomm-mpi.so "${interposer[@]}"
}

# program MPI NAME FILE...: a program that knows nothing of libcomm; `before`: libraries to come before MPI
program() {
  local mpi=$1 name=$2
  shift 2
  compile "$mpi" "$@" || return
  # shellcheck disable=SC2046 # lists of words
  ${CC:-gcc} $(objects "$mpi" "$@") "${before[@]}" $($probe libs "$mpi") -lm -ldl -pthread -o "$work/$mpi/$name"
}

# run MPI RANKS COMMAND...: output in $work/out, errors in $work/err
run() {
  MPI=$1 timeout -k 5 "$limit" tools/build/launch "${@:2}" >"$work/out" 2>"$work/err" </dev/null
  local status=$?
  cat "$work/err" >>"$work/out"
  return $status
}

support=(tests/support/property.c tests/support/interposer_calls.c tests/support/interposer_large.c
  tests/support/interposer_comms.c tests/support/interposer_property.c)
before=()
own=$($probe name "${MPI:-}")
declare -A library
for mpi in mpich openmpi; do
  library[$mpi]=$work/$mpi/libcomm-mpi.so
  if [ "$mpi" = "$own" ]; then
    library[$mpi]=$build/libcomm-mpi.so
  elif ! interposer "$mpi" 2>"$work/out"; then
    fail "the_interposer_builds_for_$mpi" "it does not"
    exit 1
  else
    pass "the_interposer_builds_for_$mpi"
  fi
  before=()
  program "$mpi" plain tests/interpose/plain_sum.c 2>"$work/out" || { fail "a_program_of_$mpi" "it does not build"; exit 1; }
done

# ------------------------------------------------- the interposer of the other MPI

if [ "$own" = openmpi ]; then
  before=('-Wl,--no-as-needed' "$work/mpich/libcomm-mpi.so" "-Wl,-rpath,$work/mpich:$build")
  for test in calls lossy; do
    if ! program mpich $test tests/interpose/mpi_interposer_$test.c "${support[@]}" 2>"$work/out"; then
      fail "tests_of_${test}_build_for_mpich" "they do not"
      continue
    fi
    large=
    [ $test = lossy ] || large=TEST_LARGE_COUNTS=1
    # shellcheck disable=SC2086 # a setting or none
    if run mpich 2 env $large "$work/mpich/$test" && grep -q '^PASS ' "$work/out"; then
      pass "${large:+large_}${test}_are_right_on_mpich"
    else
      fail "${large:+large_}${test}_are_right_on_mpich" "$(grep -m 1 '^FAIL ' "$work/out")"
    fi
  done
fi

# ---------------------------------------------------- programs of another MPI

# alone MPI OTHER: a program of MPI, with the library that was built for OTHER
alone() {
  local want
  run "$1" 2 "$work/$1/plain" || fail "a_program_of_$1_runs" "exit status $?"
  want=$(sort "$work/out")
  run "$1" 2 env LD_PRELOAD="${library[$2]}" LCOMM_NODES=2 LCOMM_POLICY=net=int8 "$work/$1/plain" "an argument"
  local status=$? lines
  lines=$(grep -c '^libcomm-mpi: .*was built for' "$work/err")
  if [ $status -ne 0 ]; then
    fail "programs_of_$1_run_with_the_library_for_$2" "exit status $status"
  elif [ "$(grep -v '^libcomm-mpi: ' "$work/out" | sort)" != "$want an argument" ]; then
    fail "programs_of_$1_run_with_the_library_for_$2" "other answers than on plain MPI"
  elif [ "$lines" -ne 1 ]; then
    fail "programs_of_$1_run_with_the_library_for_$2" "$lines sentences"
  else
    pass "programs_of_$1_run_with_the_library_for_$2"
  fi
  if run "$1" 2 env LD_PRELOAD="${library[$2]}" LCOMM_INTERPOSE=require LCOMM_POLICY=net=int8 "$work/$1/plain"; then
    fail "compression_that_is_required_fails_on_$1_with_the_library_for_$2" "it ran"
  elif ! grep -q '^libcomm-mpi: .*was built for.*require' "$work/err"; then
    fail "compression_that_is_required_fails_on_$1_with_the_library_for_$2" "it does not say why"
  else
    pass "compression_that_is_required_fails_on_$1_with_the_library_for_$2"
  fi
}
alone mpich openmpi
alone openmpi mpich
exit $failed
