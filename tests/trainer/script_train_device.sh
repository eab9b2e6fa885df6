#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# A training that asks for a GPU gets one, or a sentence; one that takes what there is trains in any
# case.
set -u

# shellcheck source=tests/support/train_script.sh
. "$(dirname "$0")/../support/train_script.sh"

options=(2 --model mlp --images 512 --epochs 1)
run "${options[@]}"
hash=$(final weights_hash) loss=$(final loss)
if run "${options[@]}" --device cuda; then
  expect a_gpu_trains_to_the_same_loss close "$(final loss)" "$loss" 0.1
  run "${options[@]}" --device auto
  expect and_is_taken_where_there_is_one grep -q 'computed on CUDA devices' out
else
  expect a_gpu_that_is_not_there_is_asked_for_in_vain grep -q '^train: .*--device cuda: .*needs a GPU' out
  run "${options[@]}" --device auto
  expect and_the_processor_trains_as_ever same "$(final weights_hash)" "$hash"
fi
exit $((failures > 0))
