#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# What scripts that test the interposer share: `source "$(dirname "$0")/../support/interposer_script.sh"` at their beginning.
# Goes to the root of the repository and sets build, the absolute path of the build folder;
# limit, seconds for a program; work, a folder that is removed at the end; failed, the exit
# status. Unsets libcomm's settings, so that each test says what it needs.
# Environment: BUILD, SAN, TEST_PART_S, LCOMM_TIMEOUT_S, as tests/run sets them.
# shellcheck disable=SC2034 # used by those who source this

cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2
build=$(realpath "${BUILD:-$(make -s print-build)}")
limit=${TEST_PART_S:-600}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
unset LCOMM_POLICY LCOMM_INTERPOSE LCOMM_INTERPOSE_CONTROL LCOMM_STATS LCOMM_TRANSPORT LCOMM_NODES LCOMM_HOSTID
export LCOMM_TIMEOUT_S=${LCOMM_TIMEOUT_S:-60}

pass() { echo "PASS $1"; }
skip() { echo "SKIP $1: $2"; }

# fail NAME WHY [FILE...]: with the ends of the files, $work/out if none is named
fail() {
  local name=$1 why=$2
  shift 2
  [ $# -gt 0 ] || set -- "$work/out"
  echo "FAIL $name: $why"
  tail -n 15 "$@" 2>/dev/null | sed 's/^/  | /'
  failed=1
}

# expect NAME WHY COMMAND...: a property holds if the command succeeds; WHY says what it means if not
expect() {
  local name=$1 why=$2
  shift 2
  if "$@"; then
    pass "$name"
  else
    fail "$name" "$why"
  fi
}

# needs_no_sanitizers NAME: ends a sanitizer build's test as a skip
needs_no_sanitizers() {
  [ -n "${SAN:-}" ] || return 0
  skip "$1" "programs without sanitizers cannot preload a library with them"
  exit 77
}

# launch OUT COMMAND...: tools/build/launch COMMAND within the limit; output and errors in OUT
launch() {
  local out=$1
  shift
  timeout -k 5 "$limit" tools/build/launch "$@" >"$out" 2>&1 </dev/null
}
