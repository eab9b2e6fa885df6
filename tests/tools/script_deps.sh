#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# tools/build/deps on a machine that lacks things, and has nothing to install them
# with: a PATH of its own, to which deps adds the folders sbin.
set -u

# shellcheck source=tests/support/expect.sh
. "$(dirname "$0")/../support/expect.sh"
mkdir "$work/bin"
for tool in bash env id; do
  ln -s "$(type -P $tool)" "$work/bin/$tool"
done

lacks() { PATH=$work/bin "$BASH" tools/build/deps "$@" >"$work/said" 2>&1; }
names() { grep -qx "  $1" "$work/said"; }
leaves_out() { ! names "$1"; }

expect what_is_missing_is_an_error bash -c '! "$@"' _ env PATH="$work/bin" "$BASH" tools/build/deps run
lacks test
expect it_says_what_to_do grep -q 'install these Debian packages' "$work/said"
for package in gcc make pkg-config openmpi-bin g++ libcmocka-dev; do
  expect "make_test_needs_$package" names "$package"
done
lacks run
for package in gcc make curl; do
  expect "make_run_needs_$package" names "$package"
done
expect make_run_needs_nothing_of_the_tests leaves_out libcmocka-dev
ln -s "$(type -P true)" "$work/bin/wget"
lacks data
expect wget_is_as_good_as_curl test ! -s "$work/said"
printf '#!%s\nexit 1\n' "$BASH" >"$work/bin/mpicc" # which compiles nothing: it has no mpi.h
chmod +x "$work/bin/mpicc"
lacks build
expect a_wrapper_without_headers_is_no_mpi names libopenmpi-dev
ln -sf "$(type -P true)" "$work/bin/mpicc"
lacks build
expect a_wrapper_with_headers_is_enough leaves_out libopenmpi-dev
lacks nonsense
expect a_command_that_is_none_is_refused grep -q "no command 'nonsense'" "$work/said"
tools/build/deps --list >"$work/list"
expect the_list_has_every_command test "$(cut -d ' ' -f 1 "$work/list" | tr '\n' ' ')" = \
  "build run test data bench fuzz optional torch "

for ranks in 0 -1 four ''; do
  tools/build/launch "$ranks" true >"$work/said" 2>&1
  expect "launch_refuses_${ranks:-no}_ranks" grep -q "the number of ranks is '$ranks'" "$work/said"
done
make -s run NP=0 >"$work/said" 2>&1
expect make_run_of_no_ranks_is_refused test $? -ne 0 -a "$(grep -c "'0', but must be 1 or more" "$work/said")" -eq 1
