#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# What test scripts share; they source it. Each property is one line, PASS, FAIL or SKIP, its name
# and the reason. BUILD is the folder of the programs.

build=${BUILD:-build/latest}
case $build in /*) ;; *) build=$PWD/$build ;; esac
# shellcheck disable=SC2034 # for the scripts
launch=$PWD/tools/build/launch limit=${TEST_PART_S:-600} # seconds for a program
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

pass() { echo "PASS $1"; }
skip() { echo "SKIP $1: $2"; }
fail() { # NAME REASON
  echo "FAIL $1: $2"
  failures=$((failures + 1))
}

# What else a script shows after a FAIL; for scripts to define.
show_more() { :; }

# expect NAME COMMAND...: a property, and a command that holds if it does
expect() {
  local name=$1
  shift
  if "$@" >"$work/why" 2>&1; then
    pass "$name"
  else
    fail "$name" "$(tail -n 3 "$work/why" | tr '\n' ' ' | head -c 300)"
    show_more
  fi
}

# next_port: another one at which nobody listens, in $port; none that the system gives to connections
port=$((20000 + $$ * 41 % 10000)) # scripts that run beside each other begin far apart
next_port() {
  port=$((port + 1))
  while (exec 3<>/dev/tcp/127.0.0.1/$port) 2>/dev/null; do port=$((port + 1)); done
}

# ends_with STATUS COMMAND...: it ends with this exit status
ends_with() {
  "${@:2}"
  [ $? -eq "$1" ]
}
