#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# What scripts that test libcomm-info share; they source it. Its last output is in $work/out.

# shellcheck source=tests/support/expect.sh
. "$(dirname "${BASH_SOURCE[0]}")/expect.sh"
show_more() { head -n 40 "$work/out" | sed 's/^/  | /'; }
info=$build/tools/libcomm-info

has() { grep -qE -- "$1" "$work/out"; }
info() { timeout -k 5 "$limit" "$info" "$@" >"$work/out" 2>&1; }
refuses() { # LINE OPTION...: exit code 2 and this line
  local line=$1
  shift
  info "$@"
  [ $? -eq 2 ] && has "$line"
}
