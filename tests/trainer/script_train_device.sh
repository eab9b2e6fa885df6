#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# A training that asks for a GPU gets one, or a sentence; one that takes what there is trains in any
# case.
set -u

# shellcheck source=tests/support/expect.sh
. "$(dirname "$0")/../support/expect.sh"
show_more() { tail -n 5 out | sed 's/^/  | /'; }
cd "$work" || exit 2

# run OPTION...
run() {
  rm -f log
  timeout -k 5 "$limit" "$launch" 2 "$build/train" --data builtin --model mlp --images 512 --epochs 1 --log log "$@" \
    >out 2>&1 </dev/null
}
final() { sed -nE 's/^[{]"event":"final".*"'"$1"'":"?([0-9a-fx.e+-]+).*/\1/p' log | tail -n 1; }
same() { [ -n "$1" ] && [ "$1" = "$2" ]; }
close() { awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; d = d < 0 ? -d : d; exit !(a != "" && d * 1000 <= b) }'; }

run
hash=$(final weights_hash) loss=$(final loss)
if run --device cuda; then
  expect a_gpu_trains_to_the_same_loss close "$(final loss)" "$loss"
  run --device auto
  expect and_is_taken_where_there_is_one grep -q 'computed on CUDA devices' out
else
  expect a_gpu_that_is_not_there_is_asked_for_in_vain grep -q '^train: .*--device cuda: .*needs a GPU' out
  run --device auto
  expect and_the_processor_trains_as_ever same "$(final weights_hash)" "$hash"
fi
exit $((failures > 0))
