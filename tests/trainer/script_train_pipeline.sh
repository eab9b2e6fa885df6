#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# A transformer whose blocks are shared out over the stages of a pipeline learns what it learns as a
# whole; stages send as many bytes as the formula says.
set -u

# shellcheck source=tests/support/train_script.sh
. "$(dirname "$0")/../support/train_script.sh"

awk 'BEGIN { srand(3); n = split("the cat dog sees a tree and runs to house river old small bird", word, " ")
  for (i = 0; i < 8000; i++) printf "%s ", word[int(rand() * n) + 1] }' >text
options=(--model gpt-nano --data "$PWD/text" --images 32 --epochs 2 --log-every 1 --batch 2)
# train RANKS OPTION...: what each step lost is in `losses`
train() {
  run "$1" "${options[@]}" "${@:2}"
  local ended=$?
  sed -nE 's/^[{]"event":"step".*"loss":([0-9.e+-]+).*/\1/p' log >losses
  return $ended
}
as_reference() {
  train "$@"
  mv losses reference
}
# alike SHARE: each step lost what it lost in the reference, within this share
alike() {
  paste reference losses | awk -v share="$1" '
    { d = $1 - $2; bad += NF != 2 || (d < 0 ? -d : d) > share * $1 } END { exit bad || NR == 0 }'
}
said() { grep -qE -- "$1" out; }
# of_pipeline NAME: of the record of the end
of_pipeline() { sed -nE 's/^[{]"event":"final".*"pipeline":[{][^}]*"'"$1"'":([0-9.]+).*/\1/p' log; }

# ------------------------------------------------------------------------ losses
as_reference 1 --accumulate 4
train 2 --accumulate 4 --pipeline 2
expect two_stages_lose_what_one_process_does alike 1e-4
expect both_name_their_weights test "$(grep -cE ' stage [01]: identical on 1 rank \(0x[0-9a-f]{16}\)$' out)" -eq 2
expect the_screen_shows_how_long_stages_waited said 'stages waited for each other [0-9]+ %, [0-9]+ % of training \(schedule: 20 %\)'
expect the_model_has_as_many_weights_as_one_that_is_whole said '^  model     gpt-nano, 834,304 weights'
train 4 --accumulate 4 --pipeline 4
expect four_stages_likewise alike 1e-4
as_reference 1 --batch 8
train 2 --batch 8 --pipeline 2
expect one_batch_likewise alike 1e-4
as_reference 1 --accumulate 4 --optimizer lamb
train 2 --accumulate 4 --pipeline 2 --optimizer lamb
expect norms_of_layers_likewise alike 1e-4

as_reference 2 --accumulate 4
train 4 --accumulate 4 --pipeline 2
expect two_pipelines_lose_what_two_ranks_do alike 1e-4
expect replicas_of_each_stage_are_equal test "$(grep -cE ' stage [01]: identical on 2 ranks' out)" -eq 2
first=$(final weights_hash)
train 4 --batch-global 16 --pipeline 2
expect a_global_batch_is_spread_over_pipelines same "$first" "$(final weights_hash)"

# ------------------------------------------------------------------------- bytes
# formula STEPS PIPELINES MESSAGE: of 4 batches activations and gradients, and both ends exchange
# the gradient of 256 x 128 weights, with headers of 24 bytes
formula() { echo $(($1 * $2 * (4 * 2 * $3 + 2 * (24 + 4 * 256 * 128)))); }
count=$((2 * 64 * 128))
export LCOMM_NODES=2
as_reference 4 --accumulate 4 --pipeline 2
steps=$(final steps)
expect bytes_are_those_of_the_formula test "$(of_pipeline sent_bytes)" -eq "$(formula "$steps" 2 $((24 + 4 * count)))"
train 4 --accumulate 4 --pipeline 2 --policy pipe=fp8e4m3
expect with_fp8_between_nodes_too test "$(of_pipeline sent_bytes)" -eq "$(formula "$steps" 2 $((24 + 40 + count + count / 128)))"
expect exact_bytes_stay test "$(of_pipeline exact_bytes)" -eq "$(formula "$steps" 2 $((24 + 4 * count)))"
expect its_losses_are_within_a_hundredth alike 0.01
expect they_are_not_those_of_exact_messages test -n "$(final weights_hash)" -a "$(paste -sd, losses)" != "$(paste -sd, reference)"
expect it_is_said_what_stages_send said 'between stages on different nodes: rounded to 8-bit floats'
LCOMM_NODES=1 train 4 --accumulate 4 --pipeline 2 --policy pipe=fp8e4m3
expect inside_a_node_messages_are_exact test "$(of_pipeline sent_bytes)" -eq "$(of_pipeline exact_bytes)"

# ---------------------------------------------------------------------- policies
export LCOMM_NODES=4
for policy in "net=int8 min=0" "net=topk:0.1+ef min=0 warmup=2" "net=int8 pipe=fp8e4m3 guard=2,report"; do
  train 4 --accumulate 4 --pipeline 2 --policy "$policy"
  expect "a_stage_averages_by_${policy// /_}" alike 0.05
  expect "with_equal_replicas_by_${policy// /_}" said ' stage 1: identical on 2 ranks'
done
unset LCOMM_NODES

# ------------------------------------------------------------------------ memory
train 2 --accumulate 4 --pipeline 2
four=$(final memory_batch)
train 2 --accumulate 16 --batch 2 --pipeline 2
expect more_batches_of_a_step_need_no_more_memory test "$(final memory_batch)" -eq "$four"

# -------------------------------------------------------------------------- end
refused() {
  ! train 2 "${@:2}" && [ "$(grep -c '^train: ' out)" -eq 1 ] && said "$1"
}
expect ranks_that_cannot_be_shared_out_are_refused refused '3 needs as many ranks for each stage, and 2 ranks' --pipeline 3
stopped_by_a_signal() {
  rm -f log
  timeout -k 5 "$limit" "$launch" 2 sh -c 'echo $$ >>pids; exec "$@"' sh "$build/train" --log log "${options[@]}" --pipeline 2 \
    --accumulate 4 --epochs 10000 >out 2>&1 </dev/null &
  local running=$!
  until grep -qs '"event":"step"' log || ! kill -0 $running 2>/dev/null; do sleep 0.05; done
  kill -TERM "$(tail -n 1 pids)"
  wait $running
  [ "$(grep -c '^train: stopped after a step by a signal' out)" -eq 1 ]
}
expect a_signal_to_one_stage_ends_all_in_order stopped_by_a_signal
exit $((failures > 0))
