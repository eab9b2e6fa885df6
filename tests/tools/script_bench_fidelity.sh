#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# What `make bench-fidelity` makes of the tables of fidelity_bench: points in deviations of fp32,
# bytes, what was not trained. fidelity_bench is one that writes what it is told here.
set -u

# shellcheck source=tests/support/expect.sh
. "$(dirname "$0")/../support/expect.sh"
show_more() { cat out; }
ln -s "$PWD/tools" "$work/tools"
cd "$work" || exit 2
mkdir -p fake/tools data
touch data/{train-images-idx3,train-labels-idx1,t10k-images-idx3,t10k-labels-idx1}-ubyte.gz

cat >fake/tools/fidelity_bench <<'PROGRAM'
#!/usr/bin/env bash
echo "$*" >>asked
while [ $# -gt 1 ]; do
  [ "$1" = --csv ] && cp rows "$2"
  shift
done
PROGRAM
chmod +x fake/tools/fidelity_bench
cat >rows <<'ROWS'
model,optimizer,nodes,ranks,preset,policy,seeds,accuracy,deviation,difference,difference_deviation,reference_deviation,verdict,steps,bytes_per_step,bytes,ratio
cnn,sgd,4,1,"fp32","",3,90.0000,0.2000,0.0000,0.0000,0.2000,within,100,1000.0,100000,1.00
cnn,sgd,4,1,"int8","net=int8",3,89.9000,0.2000,-0.1000,0.3000,0.2000,within,100,250.0,25000,3.70
cnn,sgd,4,1,"topk:safe","net=topk:0.25,values=int8+ef,zstd",3,89.5000,0.2000,-0.5000,0.3000,0.2000,below,100,80.0,8000,12.50
cnn,adam,4,1,"int4:safe","net=int4:safe",3,91.0000,0.2000,1.0000,0.3000,0.2000,within,100,100.0,10000,10.00
mlp,sgd,2,1,"int8","net=int8",3,50.0000,0.2000,-9.0000,0.3000,0.2000,below,100,250.0,25000,1.50
mlp,adam,4,1,"int4:safe","net=int4:safe",1,91.0000,0.0000,-1.0000,0.0000,0.0000,-,100,100.0,10000,9.00
ROWS

bench() { LCOMM_DATA=data BUILD=fake timeout -k 5 "$limit" tools/bench/fidelity "$@" >out 2>said </dev/null; }
# value CASE: of the report, null where it was not measured
value() { sed -nE 's/.*"case": "'"$1"'", "value": ([^,]+),.*/\1/p' build/bench/fidelity.json; }

expect a_part_is_trained_and_reported bench quick
expect points_are_in_deviations_of_fp32 test "$(value 'cnn, sgd, 4x1: int8: points lost, in deviations of fp32')" = 0.5
expect a_policy_may_hold_commas test "$(value 'cnn, sgd, 4x1: topk:safe: points lost, in deviations of fp32')" = 2.5
expect what_is_better_loses_less_than_nothing test "$(value 'cnn, adam, 4x1: int4:safe: points lost, in deviations of fp32')" = -5
expect bytes_are_those_of_the_row test "$(value 'cnn, sgd, 4x1: topk:safe: fewer bytes between nodes')" = 12.5
expect what_was_not_trained_is_not_measured test "$(value 'mlp, sgd, 4x1: int8')" = null
expect one_seed_has_no_deviation test "$(value 'mlp, adam, 4x1: int4:safe: points lost, in deviations of fp32')" = null
expect targets_are_counted grep -q '^met 5 of ' out
expect a_part_that_is_unknown_is_refused ends_with 2 bench nothing
rm asked
expect one_and_two_bits_are_trained bench low
for model in mlp cnn gpt-nano; do
  expect "${model}_is_trained_by_them" grep -qE -- "--preset int2 --preset sign .*--models [a-z0-9,-]*$model" asked
done
expect by_sgd_and_adam_both test "$(grep -e '--preset sign' asked | grep -c -- --optimizers)" = 0
expect compressed_momentum_is_trained_by_adam grep -q -- '--optimizers adam .*=net=sign adam=onebit' asked
expect bits_are_judged_by_points_and_bytes grep -q '"case": "gpt-nano, adam, 4x1: sign' build/bench/fidelity.json
rm asked
expect all_of_it_is_trained bench all
expect every_part_keeps_its_results_in_one_file test "$(grep -c -- '--results build/bench/fidelity.jsonl' asked)" = "$(wc -l <asked)"
for model in cnn mlp gpt-nano; do
  expect "${model}_is_in_it" grep -qE -- "--models [a-z0-9,-]*$model" asked
done
expect two_and_four_nodes_are_in_it grep -q -- '2x2,4x1' asked
expect sixteen_and_sixty_four_workers_are_in_it grep -q -- '16x1,64x1' asked
for preset in int4:safe topk:safe topk:fast; do
  expect "${preset}_is_in_it" grep -q -- "--preset $preset " asked
  expect "${preset}_is_trained_with_sixty_four_workers" grep -qE -- "--worlds 64x1 .*--preset $preset( |$)" asked
done
exit $((failures > 0))
