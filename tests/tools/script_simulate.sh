#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# simulate as a program: its table, its JSON, its timeline, a topology from libcomm-info, and what
# it says of bad input.
set -u

build=${BUILD:?the folder of the programs}
simulate=$build/tools/simulate
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# property NAME COMMAND...
property() {
  local name=$1
  shift
  if "$@" >"$work/said" 2>&1; then
    echo "PASS $name"
  else
    failed=1
    echo "FAIL $name: $(tail -n 3 "$work/said" | tr '\n' ' ')"
  fi
}

small=(--nodes 4 --ranks 2 --parameters 1M)

table() {
  "$simulate" "${small[@]}" --sweep 2,4 >"$work/table" &&
    grep -q 'net=int8' "$work/table" && grep -q 'is faster than exact' "$work/table" &&
    ! grep -q $'\e' "$work/table"
}

json() {
  "$simulate" "${small[@]}" -p net=int8 --json >"$work/json" &&
    python3 - "$work/json" <<'PYTHON'
import json, sys
it = json.load(open(sys.argv[1]))
assert it["tool"] == "simulate" and all(it["origin"][key] for key in ("version", "commit", "date", "machine"))
(one,) = it["results"]
assert one["nodes"] == 4 and one["ranks"] == 8 and one["step_s"] > 0 and 0 <= one["hidden"] <= 1
assert one["card_bytes"] >= one["node_bytes"] > 0 and one["memory_bytes"] > 0
PYTHON
}

timeline() {
  "$simulate" "${small[@]}" -p net=int8 --compute 2ms --trace "$work/trace" >/dev/null &&
    python3 - "$work/trace" <<'PYTHON'
import json, sys
events = [e for e in json.load(open(sys.argv[1])) if e["ph"] == "X"]
names = {e["name"] for e in events}
assert {"encode", "send", "recv", "reduce", "decode", "all-reduce", "forward and backward"} <= names, names
rows = {}
for e in sorted(events, key=lambda e: e["ts"]):
    assert e["dur"] >= 0 and e["ts"] >= 0
    row = (e["pid"], e["tid"])
    assert e["ts"] >= rows.get(row, 0) - 0.001, e
    rows[row] = e["ts"] + e["dur"]
PYTHON
}

topology() {
  "$build/tools/libcomm-info" --topology --ranks 6 --nodes 3 >"$work/topology" &&
    "$simulate" --topology "$work/topology" --parameters 1M -p net=int8 --json >"$work/json" &&
    grep -q '"ranks":.*6' "$work/json"
}

late() {
  "$simulate" "${small[@]}" --compute 20ms --late rank=1:x3 --late pause=100ms:5% >"$work/out" &&
    grep -q 'with late ranks' "$work/out" && [ "$(grep -c 'stale=2' "$work/out")" -ge 4 ] &&
    "$simulate" "${small[@]}" --compute 20ms --late rank=1:x3 -p net=int8 -p "net=int8 quorum=75%" --json >"$work/json" &&
    [ "$(grep -c '"late"' "$work/json")" -eq 2 ]
}

servers() {
  local by="algo=servers servers=6,7"
  "$simulate" "${small[@]}" --link 1gbit --server-link 4gbit --compute 20ms --late rank=1:x3 -p "$by" -p "quorum=5 $by" \
    -p "stale=2 $by" -p "stale=2:drop net=int8 $by" --json >"$work/json" &&
    [ "$(grep -c '"late"' "$work/json")" -eq 4 ] &&
    refused 1 "${small[@]}" -p "algo=servers servers=8" && refused 2 "${small[@]}" --server-link 3 &&
    "$simulate" "${small[@]}" --compute 20ms --late rank=1:x3 -p "quorum=7 $by" >"$work/out" &&
    grep -q 'more workers than the 6' "$work/out"
}

# refused STATUS WORD...: with one sentence of its own
refused() {
  local expected=$1 status
  shift
  "$simulate" "$@" >"$work/out" 2>"$work/err"
  status=$?
  [ $status -eq "$expected" ] && grep -q '^simulate: ' "$work/err" && [ "$(wc -l <"$work/err")" -eq 1 ]
}

bad_input() {
  echo '{"codecs": 3}' >"$work/bad"
  refused 2 --speeds "$work/bad" && refused 2 --workload "$work/bad" && refused 2 --computation "$work/bad" &&
    refused 2 --topology "$work/bad" && refused 2 --speeds "$work/missing" && refused 2 --workload "$work" &&
    refused 2 --late x3 --compute 1s && refused 2 --late rank=1:x3 && refused 2 --late rank=32:x3 --compute 1s &&
    refused 2 --policy net=int9 && refused 1 --nodes 3 --ranks 1 --policy algo=halving --symmetry on &&
    refused 1 "${small[@]}" -p net=int8 --trace "$work/no/such/folder"
}

python=$(command -v python3)
property a_table_and_verdicts_are_printed table
if [ -n "$python" ]; then
  property json_names_version_commit_date_and_machine json
  property a_timeline_has_rows_without_overlap timeline
else
  echo "SKIP json_names_version_commit_date_and_machine: no python3"
  echo "SKIP a_timeline_has_rows_without_overlap: no python3"
fi
property a_topology_of_libcomm_info_is_simulated topology
property late_ranks_have_a_table_of_their_own late
property servers_are_simulated_with_late_ranks servers
property bad_input_is_refused_with_a_sentence bad_input
exit $failed
