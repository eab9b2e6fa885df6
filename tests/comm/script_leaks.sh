#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# Long runs and many communicators hold nothing for good, and when a rank is
# killed the others end with its name and leave nothing behind. leaks.c is the
# program; ranks are killed without mpirun, which would end the others itself.
set -u

# Where that can be had, the script runs with a /dev/shm of its own, so that all that
# is in it at the end was left behind by these programs. Others may run beside them.
own_shm='mount -t tmpfs tmpfs /dev/shm'
for unshare in "unshare --mount" "unshare --mount --map-root-user"; do
  [ -z "${LEAKS_OWN_SHM:-}" ] && $unshare sh -c "$own_shm" 2>/dev/null || continue
  # shellcheck disable=SC2093 # it does not continue here
  LEAKS_OWN_SHM=yes exec $unshare sh -c "$own_shm && exec bash \"\$0\"" "$0"
done

cd "$(dirname "$0")/../.." || exit 2
limit=${TEST_PART_S:-600} # seconds for a program
build=${BUILD:-$(make -s print-build)}
work=$(mktemp -d)
mkdir "$work/tmp"
export TMPDIR=$work/tmp
children=()
trap 'kill "${children[@]}" 2>/dev/null; rm -rf "$work"' EXIT
export LCOMM_TIMEOUT_S=${LCOMM_TIMEOUT_S:-60}
# What the address sanitizer keeps of freed memory is no leak.
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:quarantine_size_mb=1
failed=0
wrap=()
# The thread sanitizer of older compilers dislikes strongly randomised addresses.
[ "${SAN:-}" = thread ] && setarch -R true 2>/dev/null && wrap=(setarch -R)

flags="$(tools/build/mpi-probe cflags "${MPI:-}") $(tools/build/mpi-probe libs "${MPI:-}")"
flags+=" $(pkg-config --libs libxxhash libzstd 2>/dev/null || echo -lxxhash -lzstd)"
sanitizer=()
[ -n "${SAN:-}" ] && sanitizer=("-fsanitize=$SAN" -rdynamic tests/support/sanitizer/*.c)
# shellcheck disable=SC2086 # flags are words
if ! ${CC:-gcc} -std=c11 -D_GNU_SOURCE -O2 -g -I. -Ilibcomm/include "${sanitizer[@]}" \
  tests/comm/leaks.c tests/support/mpi_property.c tests/support/property.c "$build/libcomm-with-mpi.a" "$build/libcomm.a" $flags -pthread \
  -ldl -lm ${EXTRA_LDFLAGS:-} -o "$work/leaks" 2>"$work/log"; then
  echo "FAIL leaks: it does not build"
  tail -n 20 "$work/log"
  exit 1
fi

tools/build/launch 3 "${wrap[@]}" "$work/leaks" >"$work/out" 2>&1 || failed=1
grep -E '^(PASS|FAIL|SKIP) ' "$work/out"
if ! grep -qE '^(PASS|FAIL|SKIP) ' "$work/out"; then
  echo "FAIL a_long_run_ends: it does not"
  tail -n 20 "$work/out"
  failed=1
fi

# What is left where things are left behind: names, but for Open MPI's folder of its sessions.
left() {
  find "$TMPDIR" -mindepth 1 -maxdepth 1 ! -name 'ompi.*' ! -name 'openmpi-sessions-*'
  [ -z "${LEAKS_OWN_SHM:-}" ] || find /dev/shm -mindepth 1
}
if [ -n "${LEAKS_OWN_SHM:-}" ] && left | grep . >"$work/left"; then
  echo "FAIL long_runs_leave_no_file_behind: $(paste -sd ' ' "$work/left")"
  failed=1
elif [ -n "${LEAKS_OWN_SHM:-}" ]; then
  echo "PASS long_runs_leave_no_file_behind"
else
  echo "SKIP long_runs_leave_no_file_behind: this system gives no /dev/shm of its own"
fi

# killed NAME TRANSPORT MODE: rank 1 of 3 dies, the others name it
killed() {
  local name=$1 folder rank rc status=0
  folder=$(mktemp -d "$work/meet.XXXX")
  children=()
  for rank in 0 1 2; do
    # The victim may be in the middle of anything, also of a write: no core files.
    (ulimit -c 0 && exec timeout -k 5 "$limit" "${wrap[@]}" "$work/leaks" victim "$folder" "$rank" 3 "$2" "$3") \
      >"$folder/out.$rank" 2>&1 &
    children+=($!)
  done
  for rank in 0 1 2; do
    wait "${children[$rank]}" 2>/dev/null
    rc=$?
    [ $rc -eq 77 ] && status=77
    [ $rank -ne 1 ] && [ $rc -ne 0 ] && [ $status -eq 0 ] && status=$rc
  done
  children=()
  if [ $status -eq 77 ]; then
    echo "SKIP $name: $(head -n 1 "$folder/out.0")"
    return
  fi
  for rank in 0 2; do
    grep -qE "^LCOMM_ERR_(TRANSPORT|TIMEOUT): rank $rank \(host .*rank 1 \(host " "$folder/out.$rank" || status=1
  done
  if [ $status -eq 0 ] && left | grep .; then
    status=1
  fi
  if [ $status -eq 0 ]; then
    echo "PASS $name"
    return
  fi
  failed=1
  echo "FAIL $name: exit status $status"
  tail -n 5 "$folder"/out.*
}

killed a_killed_rank_is_named_by_all_others_over_shm shm calls
killed a_killed_rank_is_named_by_progress_threads_over_shm shm thread
killed a_killed_rank_is_named_by_all_others_over_ucx ucx calls
exit $failed
