#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# codec_bench from end to end: what it writes can be read by others, mistakes
# end with exit code 2 and a sentence.
set -u

# shellcheck source=tests/support/expect.sh
. "$(dirname "$0")/../support/expect.sh"
bench=$build/tools/codec_bench
cd "$work" || exit 2

# refused NAME WORD OPTION...: exit code 2, and one sentence with the word
refused() {
  local name=$1 word=$2 rc
  shift 2
  timeout -k 5 "$limit" "$bench" "$@" >"$work/out" 2>"$work/sentence" </dev/null
  rc=$?
  if [ $rc -eq 2 ] && [ "$(wc -l <"$work/sentence")" -eq 1 ] && [ ! -s "$work/out" ] &&
    grep -q -- "$word" "$work/sentence"; then
    pass "$name"
  else
    fail "$name" "exit code $rc: $(head -c 300 "$work/sentence")"
  fi
}
short() { "$bench" --isa all -n 2 --size 4K,64K --synthetic layers:20K "$@"; }
# lines of a CSV file that begin with the words
csv_lines() { grep -c "^$1" "$2"; }

expect help_explains_the_columns grep -q "order-0 entropy" <("$bench" --help)

expect all_codecs_are_measured_at_once short --json all.json --csv all.csv
expect every_codec_has_accuracy_and_speed \
  test "$(cut -d, -f2 <(grep '^accuracy,.*,nmse,' all.csv) | sort -u | wc -l)" -ge 15
expect csv_has_its_columns \
  test "$(head -n 1 all.csv)" = "section,codec,source,tensor,operation,kernels,size_bytes,figure,min,median,max"
expect speed_has_two_sizes test "$(csv_lines 'speed,int8,,,encode,scalar,[0-9]*,gb_s,' all.csv)" -eq 2
expect no_figure_is_nan test "$(grep -ciE ',-?nan' all.csv)" -eq 0

if command -v python3 >/dev/null; then
  expect json_has_the_fields python3 - <<'PYTHON'
import json
run = json.load(open("all.json"))
assert run["tool"] == "codec_bench" and run["sources"][0]["values"] == 20480, run["sources"]
assert len(run["codecs"]) >= 15
for codec in run["codecs"]:
    accuracy = codec["accuracy"]
    for key in ("ratio", "bits_per_value", "limit_bits_per_value", "nmse", "cosine", "error_max",
                "flushed_share", "not_finite_in", "not_finite_out"):
        assert isinstance(accuracy[key], (int, float)), (codec["codec"], key)
    assert "refusal" not in codec, codec["refusal"]
    for operation in ("encode", "decode", "add"):
        speeds = [s for s in codec["speed"] if s["operation"] == operation]
        assert len(speeds) == 2 * len(run["kernels"]), (codec["codec"], operation)
        for s in speeds:
            assert 0 < s["gb_s"]["min"] <= s["gb_s"]["median"] <= s["gb_s"]["max"]
            assert s["of_memcpy"]["median"] > 0
            assert "floor" not in s or s["of_floor"]["median"] > 0
int8 = next(c for c in run["codecs"] if c["codec"] == "int8")
assert 8.2 < int8["accuracy"]["bits_per_value"] < 8.4
assert 0 < int8["accuracy"]["nmse"] < 1e-3
PYTHON
else
  echo "SKIP json_has_the_fields: there is no python3"
fi

# raw float32 values with a list of two tensors
head -c 40000 /dev/urandom | tr '\200-\377' '\000-\177' | tr '\177\077' '\076\076' >values.f32
printf 'first 4000\nsecond 6000\n' >layers.txt
expect files_are_measured_tensor_by_tensor \
  "$bench" --no-speed -c int8 -c topk:0.01+ef --layers layers.txt --per-tensor --steps 5 --csv files.csv values.f32
expect tensors_have_their_names test "$(csv_lines 'tensors,int8,values.f32,second,,,,nmse,' files.csv)" -eq 1
expect steps_are_measured test "$(csv_lines 'steps,topk:0.01+ef,,,,,,nmse,' files.csv)" -eq 1
expect a_policy_tells_the_codec "$bench" --no-speed -p "net=topk:0.1+ef scope=bucket" --csv policy.csv values.f32
expect a_policy_is_named test "$(csv_lines 'accuracy,topk:0.1+ef scope=bucket,,,,,,nmse,' policy.csv)" -eq 1

# The momentum of one gradient again and again grows to it, so less has been sent by then, and the
# residual of the last step is a larger share of it.
expect momentum_is_sent "$bench" --no-speed -p net=sign -p "net=sign adam=onebit warmup=1" --synthetic normal:20000 --steps 50 --csv momentum.csv
share() { grep "^steps,$1,,,,,,nmse," momentum.csv | grep -o '[^,]*,$' | tr -d ,; }
expect momentum_has_a_larger_share_of_error \
  awk -v g="$(share sign+ef)" -v m="$(share '"sign+ef adam=onebit,beta1=0.9"')" 'BEGIN { exit !(g > 0 && m > 1.05 * g && m < 2 * g) }'

expect duels_and_predictions_are_measured \
  short --peers 3 --baselines --predict 25Gbit 16 -c bf16 -c bf16+zstd -c topk:0.01+ef --csv duels.csv
expect sums_are_measured test "$(csv_lines 'duels,bf16,,,sum in one pass,scalar,4096,times,' duels.csv)" -eq 1
expect quickselect_is_measured test "$(csv_lines 'duels,topk:0.01+ef,,,top-k,scalar,65536,times,' duels.csv)" -eq 1
expect zstd_is_measured test "$(csv_lines 'duels,bf16+zstd,,,exponent plane,.*,times,' duels.csv)" -eq 1
expect a_prediction_is_made test "$(csv_lines 'prediction,bf16+zstd,,,,,,pipelined_s,' duels.csv)" -eq 1
expect it_says_in_words_whether_it_pays grep -qE 'pays|does not pay|as fast as bf16' \
  <(short --predict 25Gbit 16 -c int8)
expect no_colours_in_a_pipe test "$(short --no-speed -c int8 | grep -c $'\033')" -eq 0

if command -v gnuplot >/dev/null; then
  expect a_png_is_drawn short -c int8 -c none -c topk:0.01+ef --plot plot.png
  expect it_is_a_png test "$(head -c 4 plot.png | tail -c 3)" = PNG
  expect a_svg_is_drawn short --no-speed -c int8 -c none --plot "it's a plot.svg"
  expect it_is_a_svg grep -q '</svg>' "it's a plot.svg"
else
  echo "SKIP plots: there is no gnuplot"
fi
mkdir empty
expect without_gnuplot_there_is_a_sentence test "$(PATH=$work/empty "$bench" --plot a.png 2>&1 | grep -c gnuplot)" -eq 1

# ------------------------------------------------------- verdict and baseline
"$bench" -n 2 --size 4K,64K --synthetic layers:20K -c none -c bf16 -c int8 >verdict 2>/dev/null
expect the_verdict_comes_first test "$(grep -nE '^[A-Z]' verdict | head -n 1 | cut -d: -f2-)" = "Verdict: against bf16, between 4 nodes"
expect float32_never_pays_against_bf16 grep -qE '^none .*never against bf16$' verdict
expect only_the_fastest_kernels_are_measured test "$(grep -cE '^int8 +encode' verdict)" -eq 2
"$bench" -n 2 --size 4K --synthetic layers:20K -c bf16 --baseline fp32 --predict 1Mbit 8 >verdict 2>/dev/null
expect against_float32_bf16_pays_on_a_slow_link grep -qE '^bf16 .*pays: (2|1\.9[0-9]*) times as fast' verdict
expect the_baseline_is_named grep -qx 'Verdict: against fp32, between 8 nodes' verdict
refused an_unknown_baseline_is_named int8 --baseline int8

# ------------------------------------------------------- archives and folders
corpus=$OLDPWD/tests/fuzz/corpus/npz # 40 and 2 values, deflated; one stored and one deflated; damaged
mkdir archives damaged
cp "$corpus/seed-01" archives/good.npz
cp "$corpus/seed-06" archives/mixed.npz
cp "$corpus/seed-07" archives/bad.npz
head -c 7 /dev/urandom >archives/worse.f32
cp archives/bad.npz damaged
expect a_bad_file_of_a_folder_is_left_out "$bench" --no-speed -c none --csv archives.csv --json archives.json archives
expect all_arrays_are_tensors test "$("$bench" --no-speed -c none --per-tensor archives 2>/dev/null |
  grep -cE '^(good|mixed).npz: (weight|bias|s|d) ')" -eq 4
"$bench" --no-speed -c none archives >left 2>left.sentences
expect each_bad_file_is_named test "$(grep -c 'left out: .*\(bad.npz\|worse.f32\): ' left)$(wc -l <left.sentences)" = 22
refused a_folder_of_bad_files_is_refused bad.npz damaged
refused a_bad_file_by_name_is_refused "wrong checksum" archives/bad.npz

# --------------------------------------------------------------------- export
"$bench" --export arrays archives/good.npz values.f32 >out.txt 2>&1
expect tensors_are_exported test "$(cat out.txt)" = "3 files in arrays"
expect they_are_read_again "$bench" --no-speed -c none arrays
expect an_exported_array_has_the_values test "$(tail -c 40000 arrays/values.npy | cksum)" = "$(cksum <values.f32)"
expect it_is_aligned test "$(stat -c %s arrays/values.npy)" -eq 40128
"$bench" --export arrays values.f32 >out.txt 2>&1
expect nothing_is_overwritten cmp -s arrays/values.npy arrays/values-2.npy
expect export_that_cannot_write_says_so test "$("$bench" --export there/is/none values.f32 2>&1 | grep -c 'cannot be written')" -eq 1
if python3 -c 'import numpy' 2>/dev/null; then
  expect numpy_reads_what_is_exported python3 -c 'import numpy
a, b = numpy.load("arrays/values.npy"), numpy.fromfile("values.f32", "<f4")
assert a.dtype == "<f4" and a.shape == (10000,) and (a == b).all()'
  expect numpys_archives_are_read python3 -c 'import numpy
numpy.savez_compressed("n.npz", w=numpy.arange(1000, dtype="<f4"), i=numpy.arange(3))
numpy.savez("m.npz", w=numpy.arange(1000, dtype="<f2"))'
  expect numpys_values_arrive test "$("$bench" --no-speed -c none n.npz m.npz 2>/dev/null | grep -cE '^[nm].npz: 1000 values in 1 tensor')" -eq 2
else
  echo "SKIP numpys_archives_are_read: there is no numpy"
fi

expect a_matrix_of_low_rank_is_measured "$bench" --low-rank 100x50:3 --isa all -n 2 --csv rank.csv
expect the_matrix_has_its_ratio test "$(csv_lines 'lowrank,100x50:3,,,step,scalar,20000,ratio,11.1111111,' rank.csv)" -eq 1
expect the_matrix_has_its_passes test "$(csv_lines 'lowrank,100x50:3,,,step,scalar,20000,passes,' rank.csv)" -eq 1

# A matrix of rank 2 and as much that is none: all of it arrives by low rank, but in several steps.
mkdir ranks
if python3 -c 'import numpy' 2>/dev/null; then
  python3 -c 'import json, numpy
dice = numpy.random.default_rng(1)
matrix = dice.standard_normal((60, 2)) @ dice.standard_normal((2, 40))
numpy.concatenate([matrix.ravel(), dice.standard_normal(100)]).astype("<f4").tofile("ranks/g.f32")
layers = [{"name": "w", "shape": [60, 8, 5], "offset": 0, "numel": 2400},
          {"name": "b", "shape": [100], "offset": 2400, "numel": 100}]
json.dump({"layers": layers}, open("ranks/meta.json", "w"))
layers[0]["shape"] = [60, 8, 6]
json.dump({"layers": layers}, open("other.json", "w"))'
  ranks() { "$bench" --low-rank "$1" --steps "$2" --csv "ranks$1.csv" "${@:3}" ranks/g.f32; }
  # of A CSV file the figure of a section, at most NUMBER
  at_most() { awk -F, -v most="$4" '$1 == "'"$2"'" && $8 == "'"$3"'" { found = 1; good = $10 <= most } END { exit !(found && good) }' "$1"; }
  expect errors_of_low_rank_are_measured ranks 2 5
  expect a_matrix_of_that_rank_arrives_at_once at_most ranks2.csv accuracy nmse 1e-11
  expect lesser_ranks_are_measured ranks 1 20
  expect a_lesser_rank_loses_something_in_a_step test "$(at_most ranks1.csv accuracy nmse 0.01 && echo near)" = ""
  expect what_it_leaves_out_comes_later at_most ranks1.csv steps nmse 0.01
  # (100 + 60 + 40) values of 2500
  expect low_rank_has_its_bits test "$(csv_lines 'steps,lowrank:1,,,,,,bits_per_value,,2.56,' ranks1.csv)" -eq 1
  expect a_shape_that_does_not_fit_is_none ranks 3 5 --layers other.json
  expect what_is_no_matrix_is_exact at_most ranks3.csv steps nmse 0
else
  echo "SKIP errors_of_low_rank_are_measured: there is no numpy"
fi

refused an_unknown_option_is_named frobnicate --frobnicate
refused an_unknown_codec_is_named int9 -c int9
refused a_file_that_is_not_there_is_named missing.f32 missing.f32
refused an_empty_folder_is_named empty "$work/empty"
refused an_unknown_format_is_named layers.txt layers.txt
refused a_missing_number_of_nodes_is_explained nodes --predict 25Gbit
refused more_threads_than_processors_are_explained processors --threads 1000
refused a_place_that_cannot_be_written_is_named there/is/none --json there/is/none/a.json
refused a_picture_of_unknown_kind_is_named plot.gif --plot plot.gif
exit $((failures > 0))
