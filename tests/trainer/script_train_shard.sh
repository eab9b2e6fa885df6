#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# A training whose optimiser, and gradients, are sharded: the bits of one that is not, a part of its
# memory, and checkpoints.
set -u

# shellcheck source=tests/support/train_script.sh
. "$(dirname "$0")/../support/train_script.sh"

# all_alike NAME RANKS OPTION...: with both stages the bits of none
all_alike() {
  local plain
  plain=$(hash "${@:2}")
  expect "$1_optimizer" same "$plain" "$(hash "${@:2}" --shard optimizer)"
  expect "$1_gradients" same "$plain" "$(hash "${@:2}" --shard gradients)"
}
images=(--images 512 --epochs 1)
all_alike two_ranks_have_the_bits_of_unsharded_ones 2 --model mlp "${images[@]}" --clip 0.5
all_alike four_ranks_likewise 4 --model cnn --images 128 --epochs 1 --batch 8 --optimizer adam
LCOMM_NODES=2 all_alike two_nodes_likewise 4 --model mlp "${images[@]}"
all_alike bf16_likewise 2 --model mlp --images 128 --epochs 1 --precision bf16
text=(--model gpt-nano --images 16 --epochs 1 --batch 2)
all_alike norms_of_layers_likewise 2 "${text[@]}" --optimizer lamb --clip 0.1
all_alike and_those_of_large_batches 2 --model mlp "${images[@]}" --optimizer lars --lr 2
all_alike fp16_likewise 4 --model mlp "${images[@]}" --precision fp16 --clip 1
expect batches_are_accumulated same "$(hash 2 --model mlp "${images[@]}" --accumulate 2)" \
  "$(hash 2 --model mlp "${images[@]}" --accumulate 2 --shard optimizer)"

# Stage two averages each batch, and adds up its part of the averages: other roundings.
run 2 --model mlp "${images[@]}" --accumulate 4
whole=$(final loss)
for precision in fp32 fp16; do
  run 2 --model mlp "${images[@]}" --accumulate 4 --shard gradients --precision $precision
  expect "stage_two_accumulates_in_$precision" close "$(final loss)" "$whole" 0.1
done

run 1 --model mlp "${images[@]}" --optimizer adam
whole=$(final memory_optimizer)
run 4 --model mlp "${images[@]}" --optimizer adam --shard optimizer
expect the_optimiser_takes_a_fourth_of_the_memory_on_four_ranks close "$(final memory_optimizer)" "$((whole / 4))" 5
run 4 "${text[@]}" --shard gradients
staged=$(final memory_gradients)
run 4 "${text[@]}"
expect gradients_take_less_than_half_of_it test "$staged" -lt "$(($(final memory_gradients) / 2))"
expect memory_is_shown grep -q 'MB of a rank: weights .*, gradients .*, optimiser ' out

# What compression leaves out is remembered, a step that is skipped leaves nothing behind.
export LCOMM_NODES=2
policy=(--policy "net=topk:0.05+ef min=4K")
run 2 --model mlp --images 2048 --epochs 2
exact=$(final loss)
run 2 --model mlp --images 2048 --epochs 2 "${policy[@]}" --shard gradients
expect compressed_shards_learn close "$(final loss)" "$exact" 50
# Weights come back exact, so less than half is left of what is sent.
expect and_send_less awk -v r="$(final net_ratio)" 'BEGIN { exit !(r > 1.5) }'
run 2 --model mlp --images 2048 --epochs 2 "${policy[@]}" --shard optimizer --precision fp16
expect also_in_fp16 close "$(final loss)" "$exact" 50

options=(--model mlp --images 640 --epochs 3 --optimizer adam "${policy[@]}" --shard optimizer)
whole=$(hash 2 "${options[@]}")
run 2 "${options[@]}" --save kept --save-every 7
rm -rf "$(find kept -name 'step-*' | sort | tail -n 1)"
expect a_resumed_training_ends_with_the_bits_of_one_that_was_not_stopped same "$whole" \
  "$(hash 2 "${options[@]}" --resume kept)"
stopped=$(sed -nE 's/.*"event":"resumed".*"step":([0-9]+).*/\1/p' log)
run 4 "${options[@]}" --resume kept
expect it_goes_on_on_more_ranks test "$(final steps)" -gt "${stopped:-0}" -a "$(final steps)" -lt 30
LCOMM_NODES=1 run 1 "${options[@]}" --resume kept
expect and_on_one test "$(final steps)" -gt 30
expect other_stages_go_on same "$whole" "$(hash 2 "${options[@]}" --shard gradients --resume kept)"
run 2 "${options[@]}" --shard none --resume kept
expect unsharded_it_is_refused grep -q -- '--shard optimizer or gradients, this one has none' out
exit $((failures > 0))
