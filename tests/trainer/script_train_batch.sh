#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# A step is the same step however its samples are spread over ranks and batches.
set -u

# shellcheck source=tests/support/train_script.sh
. "$(dirname "$0")/../support/train_script.sh"

images="--model mlp --images 640 --epochs 1"
# shellcheck disable=SC2086 # several options
{
  two_ranks=$(hash 2 $images --batch 32)
  accumulated=$(hash 1 $images --batch 32 --accumulate 2)
  by_total=$(hash 1 $images --batch 32 --batch-global 64)
  by_total_of_two=$(hash 2 $images --batch 16 --batch-global 128)
  accumulated_of_two=$(hash 2 $images --batch 16 --accumulate 4)
}
expect two_batches_of_a_rank_are_the_step_of_two_ranks same "$two_ranks" "$accumulated"
expect a_global_batch_is_accumulated same "$two_ranks" "$by_total"
expect a_global_batch_is_spread_over_ranks_first same "$accumulated_of_two" "$by_total_of_two"

text="--model gpt-nano --images 16 --epochs 1 --batch 2 --optimizer lamb --clip 0.5"
# shellcheck disable=SC2086
expect windows_of_text_likewise same "$(hash 2 $text)" "$(hash 1 $text --accumulate 2)"

hash 2 --model mlp --batch-global 63 >/dev/null
expect a_global_batch_that_does_not_divide_is_refused grep -q -- '--batch-global 63 cannot be spread evenly over 2 ranks' out
exit $((failures > 0))
