#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# What scripts that train share; they source it instead of expect.sh. They are in a folder that is
# removed at the end, and of each training there are `out`, what it said, and `log`.

# shellcheck source=tests/support/expect.sh
. "$(dirname "${BASH_SOURCE[0]}")/expect.sh"
show_more() { tail -n 5 out | sed 's/^/  | /'; }
cd "$work" || exit 2

# run RANKS OPTION...
run() {
  rm -f log
  timeout -k 5 "$limit" "$launch" "$1" "$build/train" --data builtin --log log "${@:2}" >out 2>&1 </dev/null
}

# final NAME: the number with this name in the record of the end
final() { sed -nE 's/^[{]"event":"final".*"'"$1"'":"?([0-9a-fx.e+-]+).*/\1/p' log | tail -n 1; }

# hash RANKS OPTION...: of the weights at the end
hash() {
  run "$@"
  final weights_hash
}

same() { [ -n "$1" ] && [ "$1" = "$2" ]; }

# close A B PERCENT
close() { awk -v a="$1" -v b="$2" -v p="$3" 'BEGIN { d = a - b; d = d < 0 ? -d : d; exit !(a != "" && d * 100 <= p * b) }'; }
