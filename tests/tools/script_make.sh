#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# What make does without being told, and what it says of itself.
set -u

# shellcheck source=tests/support/expect.sh
. "$(dirname "$0")/../support/expect.sh"

# As from a shell, not as a part of the make that started this test.
plain() { env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS make NVCC=none "$@"; }

plain -n >"$work/said" 2>&1
expect plain_make_uses_all_processors grep -qE -- "-j$(nproc) programs" "$work/said"
plain -n -j1 >"$work/said" 2>&1
expect make_uses_as_many_as_it_is_told bash -c '! grep -qE -- "-j[0-9]+ programs" "$1"' _ "$work/said"
plain NVCC= -n >"$work/said" 2>&1
expect an_empty_NVCC_leaves_CUDA_out bash -c '! grep -q "\.cu\b" "$1"' _ "$work/said"
plain -s help >"$work/help"
for file in tools/bench/*; do
  name=${file##*/}
  case $name in report) continue ;; esac
  [ ! -x "$file" ] || expect "help_lists_bench-$name" grep -qE "^  bench-$name +[A-Z]" "$work/help"
done
for target in run experiment test install uninstall bare-root; do
  expect "help_lists_$target" grep -qE "^  $target +[a-z]" "$work/help"
done
