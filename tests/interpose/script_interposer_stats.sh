#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# LCOMM_STATS=exit with libcomm-mpi.so: one table at the end, however many communicators a
# program has made.
set -u

cd "$(dirname "$0")/../.." || exit 2
build=${BUILD:-$(make -s print-build)}
case $build in /*) ;; *) build=$PWD/$build ;; esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset LCOMM_POLICY LCOMM_INTERPOSE LCOMM_INTERPOSE_CONTROL LCOMM_TRANSPORT LCOMM_NODES LCOMM_HOSTID
failed=0

# tables NAME EXPECTED STATS: of 3 ranks that make many communicators
tables() {
  local found
  timeout -k 5 "${TEST_PART_S:-600}" tools/build/launch 3 env LCOMM_STATS="$3" \
    "$build/tests/interpose/mpi_interposer_comms" any_order >"$work/out" 2>&1 </dev/null
  found=$(grep -c '^libcomm.* of 3 ranks' "$work/out")
  if [ "$found" -eq "$2" ] && [ "$(grep -c '^libcomm-mpi: what became' "$work/out")" -eq "$2" ]; then
    echo "PASS $1"
  else
    failed=1
    echo "FAIL $1: $found tables, not $2"
    tail -n 15 "$work/out" | sed 's/^/  | /'
  fi
}

tables many_communicators_have_one_table 1 exit
tables each_rank_has_one_table_if_asked 3 exit:all
tables without_a_wish_there_is_no_table 0 none
exit $failed
