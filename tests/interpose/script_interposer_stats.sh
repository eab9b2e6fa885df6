#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# LCOMM_STATS=exit with libcomm-mpi.so: one table at the end, however many communicators a
# program has made.
set -u

# shellcheck source=tests/support/interposer_script.sh
source "$(dirname "$0")/../support/interposer_script.sh"

# tables NAME EXPECTED STATS: of 3 ranks that make many communicators
tables() {
  local found made
  launch "$work/out" 3 env LCOMM_STATS="$3" "$build/tests/interpose/mpi_interposer_comms" any_order
  found=$(grep -c '^libcomm.* of 3 ranks' "$work/out")
  made=$(grep -c '^libcomm-mpi: what became' "$work/out")
  expect "$1" "$found tables, not $2" test "$found" -eq "$2" -a "$made" -eq "$2"
}

tables many_communicators_have_one_table 1 exit
tables each_rank_has_one_table_if_asked 3 exit:all
tables no_table_is_printed_unless_asked 0 none
exit $failed
