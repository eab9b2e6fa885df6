#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# The perf programs from end to end on 2 ranks: results are right, the table
# and the JSON file say so, mistakes end with exit code 2 and a sentence.
set -u

# shellcheck source=tests/support/expect.sh
. "$(dirname "$0")/../support/expect.sh"
cd "$work" || exit 2
export LCOMM_TIMEOUT_S=${LCOMM_TIMEOUT_S:-60}

# perf NAME OPTION...: a program on 2 ranks
perf() { timeout -k 5 "$limit" "$launch" 2 "$build/tools/$1_perf" -n 2 "${@:2}"; }

# refused NAME WORD PROGRAM OPTION...: exit code 2, no table, one sentence with the word
refused() {
  local name=$1 word=$2 rc
  shift 2
  perf "$@" >"$work/out" 2>"$work/sentence" </dev/null
  rc=$?
  if [ $rc -eq 2 ] && [ ! -s "$work/out" ] &&
    [ "$(grep -c "^$1_perf: .*$word" "$work/sentence")" -eq 1 ]; then
    pass "$name"
  else
    fail "$name" "exit code $rc: $(grep "_perf: " "$work/sentence" | head -c 300)"
  fi
}
# rows TABLE: its lines that are no header; column TITLE TABLE: what stands
# under a title, which ends where its column ends
rows() { grep -v '^#' "$1"; }
column() {
  awk -v title="$1" '
    /^#/ { if (!end && (at = index($0 " ", " " title " "))) end = at + length(title); next }
    end { cell = substr($0, 1, end); sub(/.* /, "", cell); print cell }' "$2"
}
count_of() { column "$1" "$2" | grep -cx -- "$3"; }

# ------------------------------------------------ every type and operation

mpi_rows=(0 32 32 16 16 16)
version=$("$build/tools/allreduce_perf" --version | sed 's/.* //')
i=0
for tool in allreduce reduce_scatter allgather broadcast alltoall; do
  i=$((i + 1))
  perf "$tool" -c -b 8 -e 16K -f 2048 -d all -o all --against mpi --json "$tool.json" --csv "$tool.csv" >"$tool.txt"
  expect "${tool}_is_right_for_every_type_and_operation" grep -qx '# Out of bounds values : 0 OK' "$tool.txt"
  expect "${tool}_shows_rows_of_both" test "$(rows "$tool.txt" | grep -c ' MPI_')" -eq "${mpi_rows[i]}"
  expect "${tool}_has_nothing_wrong_in_any_row" \
    test "$(count_of '#wrong' "$tool.txt" 0)" -eq "$(rows "$tool.txt" | wc -l)"
  expect "${tool}_compares_each_size_with_mpi" \
    test "$(column 'vs mpi' "$tool.txt" | grep -cE '^[0-9.]+$')" -eq "${mpi_rows[i]}"
  expect "${tool}_has_a_line_of_values_for_each_row" test "$(grep -c ",\"${version}\",\"" "$tool.csv")" -eq "$(rows "$tool.txt" | wc -l)"
  expect "${tool}_has_as_many_values_as_columns" test "$(sed 's/"[^"]*"/x/g' "$tool.csv" | awk -F , '{ print NF }' | sort -u | wc -l)" -eq 1
  expect "${tool}_says_where_it_comes_from" grep -qE "\"origin\": \{\"version\": \"$version\", \"commit\": \"[^\"]+\", \"date\": \"2[^\"]+Z\".* x .*\"hosts\": 1, .*\"transport\": \"shm\"" "$tool.json"
  expect "${tool}_has_an_average_bus_bandwidth" grep -q '^# Avg bus bandwidth    : [0-9]' "$tool.txt"
done
expect operations_are_named test "$(column redop allreduce.txt | sort -u | tr '\n' ' ')" = "avg max min sum "
expect a_collective_without_operation_says_none test "$(column redop allgather.txt | sort -u)" = none

if command -v python3 >/dev/null; then
  expect json_has_the_fields python3 - <<'PYTHON'
import json
for tool in ("allreduce", "reduce_scatter", "allgather", "broadcast", "alltoall"):
    run = json.load(open(tool + ".json"))
    assert run["tool"] == tool + "_perf" and run["ranks"] == 2 and run["nodes"] >= 1, run["tool"]
    assert run["transport"] and run["progress"] and run["command"][1:3] == ["-n", "2"]
    mine = [r for r in run["results"] if not r["policy"].startswith("MPI_")]
    assert len(mine) == {"allreduce": 64, "reduce_scatter": 64}.get(tool, 16), (tool, len(mine))
    for r in run["results"]:
        for key in ("size", "count", "batch", "min_s", "p10_s", "median_s", "p90_s", "p99_s",
                    "max_s", "algbw_gb_s", "busbw_gb_s", "cpu_s", "error", "wrong"):
            assert isinstance(r[key], (int, float)), (tool, key)
        assert 0 < r["min_s"] <= r["p10_s"] <= r["median_s"] <= r["p90_s"] <= r["p99_s"] <= r["max_s"]
        assert r["batch"] >= 1 and r["wrong"] == 0 and r["cpu_s"] >= 0
    for r in mine:
        for key in ("shm_bytes", "net_bytes", "shm_messages", "ratio", "memory_bytes"):
            assert isinstance(r[key], (int, float)), (tool, key)
        for key in ("encode_s", "decode_s", "wire_s", "wait_s", "messages"):
            assert len(r[key]) == 2, (tool, key)
    mpi = {(r["dtype"], r["redop"], r["size"]): r["median_s"]
           for r in run["results"] if r["policy"].startswith("MPI_")}
    for r in mine:
        of_mpi = mpi.get((r["dtype"], r["redop"], r["size"]))
        assert of_mpi is None or abs(r["times_mpi"] * r["median_s"] / of_mpi - 1) < 1e-6, r
PYTHON
else
  echo "SKIP json_has_the_fields: there is no python3"
fi

# ------------------------------------------------------------ the other ways

export LCOMM_NODES=2
perf allreduce -c -b 1M -p '' -p net=int8 -p net=topk:0.01+ef --percentiles >lossy.txt
expect a_lossy_policy_sends_less test \
  "$(column net lossy.txt | awk 'NR == 1 { exact = $1 } NR == 2 { print $1 * 3 < exact }')" = 1
expect a_lossy_policy_is_inexact_and_alike test "$(column error lossy.txt | sed -n 2p)" != 0.00e+00
expect alike_is_right grep -qx '# Out of bounds values : 0 OK' lossy.txt
expect percentiles_are_columns test "$(column p99 lossy.txt | grep -c .)" -eq 3
perf allreduce -c -b 64K --overlap 1 --tensors-count 3 --json overlap.json >overlap.txt
expect hidden_time_is_a_column test "$(column hidden overlap.txt | grep -cE '^-?[0-9.]+$')" -eq 1
expect overlapped_sums_are_right grep -qx '# Out of bounds values : 0 OK' overlap.txt
expect overlap_is_in_json grep -q '"compute_s": .*"both_s": .*"hidden": ' overlap.json
# the others wait for a rank that comes late, and their time counts
perf allreduce -c -b 1K --late 30ms --against mpi >late.txt
expect the_others_wait_for_a_late_rank test \
  "$(column max late.txt | awk '$1 >= 25000' | wc -l) $(rows late.txt | wc -l)" = "2 2"
expect late_sums_are_right grep -qx '# Out of bounds values : 0 OK' late.txt
unset LCOMM_NODES
perf reduce_scatter -c -b 1K -i 1K -e 3K --no-in-place --batch 5 --json steps.json >steps.txt
expect sizes_go_on_by_steps test "$(column size steps.txt | tr '\n' ' ')" = "1024 2048 3072 "
expect a_batch_is_as_told test "$(grep -c '"batch": 5' steps.json)" -eq 3
perf reduce_scatter -b 1K -i 1K -e 3K --batch 1 >single.txt
expect bytes_are_those_of_one_operation test "$(column node steps.txt)" = "$(column node single.txt)"
perf broadcast -c -b 1K -r all >roots.txt
expect every_root_has_its_row test "$(column root roots.txt | tr '\n' ' ')" = "0 1 "
head -c 4000 /dev/zero >zeros.f32
expect values_of_a_file_are_taken perf allreduce -b 1M --data zeros.f32
expect help_explains_the_columns grep -q "#wrong" <(perf alltoall --help)

# through MPI, where a preloaded library would be
perf allreduce -c -b 8 -e 64 -d all -o all --through mpi --against mpi --json through.json >through.txt
expect through_mpi_both_names_are_measured test \
  "$(rows through.txt | awk '{ print $5 }' | sort | uniq -c | tr -s ' \n' ' ')" = " 64 MPI_Allreduce 64 PMPI_Allreduce "
expect through_mpi_one_is_compared_with_the_other test "$(column 'vs mpi' through.txt | grep -cE '^[0-9.]+$')" -eq 64
expect through_mpi_all_is_right grep -qx '# Out of bounds values : 0 OK' through.txt
expect through_mpi_is_in_json grep -q '"through": "mpi"' through.json

# without mpirun and MPI: a world of one, and one of two
expect a_world_of_one_needs_no_launcher "$build/tools/allreduce_perf" --boot env -c -n 2 -b 1K
next_port
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$port WORLD_SIZE=2
RANK=1 timeout -k 5 "$limit" "$build/tools/alltoall_perf" --boot env -c -n 2 -b 1K >other.txt 2>&1 &
RANK=0 timeout -k 5 "$limit" "$build/tools/alltoall_perf" --boot env -c -n 2 -b 1K >env.txt 2>&1
expect ranks_meet_without_mpi grep -q '2 ranks on' env.txt
expect they_get_it_right grep -qx '# Out of bounds values : 0 OK' env.txt
expect the_other_rank_ends_well wait $!
expect only_rank_0_shows_the_table test ! -s other.txt

# A signal to one rank: all end in order, with what they measured, statistics and traces.
endless=("$build/tools/allreduce_perf" --boot env -n 1000000 -b 1M --batch 1 --json stopped.json)
for rank in 0 1; do
  RANK=$rank LCOMM_TRACE=$work/trace LCOMM_STATS=exit "${endless[@]}" >"stopped.$rank" 2>"said.$rank" &
  ranks[rank]=$!
done
until [[ $(grep -cs '"all-reduce"' trace.0) -gt 50 ]] || ! kill -0 "${ranks[0]}"; do sleep 0.1; done
kill -TERM "${ranks[1]}"
for rank in 0 1; do
  wait "${ranks[$rank]}"
  expect "rank_${rank}_ends_with_the_number_of_the_signal" test $? -eq 143
  expect "rank_${rank}_leaves_a_whole_trace" test "$(tail -n 1 "trace.$rank")" = "]"
done
expect a_stopped_run_says_so grep -q "stopped by a signal" said.0
expect a_stopped_run_reports_what_it_has test "$(rows stopped.0 | wc -l) $(grep -c '"median_s"' stopped.json)" = "1 1"
expect a_stopped_run_has_statistics grep -q "statistics of rank 0" said.0
# The first signal waits for the others, who are not there; the second does not.
RANK=0 "${endless[@]}" >/dev/null 2>&1 &
until grep -qs allreduce_perf /proc/$!/comm; do sleep 0.1; done
while kill -TERM $! 2>/dev/null; do sleep 0.2; done
expect a_second_signal_ends_at_once ends_with 143 wait $!
unset MASTER_ADDR MASTER_PORT WORLD_SIZE

# ------------------------------------------------------------------ mistakes

refused an_unknown_option_is_named frobnicate allreduce --frobnicate
refused an_unknown_type_is_named int7 alltoall -d int7
refused a_missing_value_is_told "-b" allgather -b
refused options_that_fight_are_explained "--overlap" allreduce --against mpi --overlap 1
refused through_mpi_there_is_no_policy "--policy" allreduce --through mpi -p net=int8
refused late_ranks_are_no_batch "--late" allreduce --late 5ms --batch 4
refused lateness_is_a_time "5" allreduce --late 5
refused tensors_belong_to_all_reduce allreduce_perf broadcast --tensors
refused a_table_that_cannot_be_written_is_told csv allgather --csv there/is/none.csv
refused a_place_that_cannot_be_written_is_told json reduce_scatter --json there/is/none.json
exit $((failures > 0))
