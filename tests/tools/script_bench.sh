#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# The form that benchmarks report in: what its JSON says of each case and of where it was measured,
# and lines that are none.
set -u

# shellcheck source=tests/support/expect.sh
. "$(dirname "$0")/../support/expect.sh"
command -v python3 >/dev/null || { skip bench "there is no python3"; exit 77; }
ln -s "$PWD/tools" "$work/tools"
cd "$work" || exit 2

# reported LINE...: into build/bench/made.json
reported() { printf '%s\n' "$@" | tools/bench/report made >said 2>&1; }

# holds EXPRESSION: of Python, over the report `it` and its `cases`
holds() {
  python3 -c 'import json, sys
it = json.load(open("build/bench/made.json"))
cases = it["results"]
assert eval(sys.argv[1]), sys.argv[1] + ": " + json.dumps(it)' "$1"
}

here=$'here\t2\tx\tpeer\t>= 1'
there=$'there\t0.5\tx\tpeer\t>= 1\t"origin": {"version": "0.1.0", "hosts": 4, "rate": "1gbit", "delay_ms": 20, "transport": "ucx", "interface": "eth0"}'
failed=$'failed\tnot measured: the "why"\tx\tpeer\t>= 1\t"origin": {"hosts": 4, "rate": "1gbit", "interface": ""}'

expect lines_become_a_report reported "$here" "$there" "$failed"
expect a_report_counts_what_is_met grep -q '^met 1 of 3$' said
expect cases_have_values_or_the_reason holds \
  '[one["value"] for one in cases] == [2, 0.5, None] and [one["met"] for one in cases] == [True, False, False] and "\"why\"" in cases[2]["peer"]'
expect a_report_says_where_it_comes_from holds \
  'all(it["origin"][key] for key in ("version", "commit", "date", "machine", "host")) and it["command"]'
expect a_case_says_where_it_was_measured holds \
  '[cases[1][key] for key in ("hosts", "rate", "delay_ms", "transport", "interface")] == [4, "1gbit", 20, "ucx", "eth0"]'
expect a_case_that_says_nothing_was_measured_here holds \
  '[cases[0][key] for key in ("hosts", "rate", "delay_ms", "transport", "interface")] == [1, None, None, None, None]'
expect what_is_not_known_is_null holds 'cases[2]["hosts"] == 4 and cases[2]["transport"] is cases[2]["interface"] is None'
expect a_report_has_nothing_on_which_its_cases_differ holds 'it["origin"]["hosts"] is it["origin"]["rate"] is None'
reported "$there" "$there"
expect a_report_has_what_its_cases_agree_on holds 'it["origin"]["hosts"] == 4 and it["origin"]["rate"] == "1gbit"'
expect a_line_of_four_columns_is_refused ends_with 1 reported $'case\t1\tx\tpeer'
expect a_target_without_a_number_is_refused ends_with 1 reported $'case\t1\tx\tpeer\t>= much'

# What benchmarks share: rows of what programs say.
rows() {
  BUILD=$build bash -c '
    source tools/bench/common
    printf "{\n\t\"tool\":\t\"x\",\n\t\"origin\":\t{\n\t\t\"hosts\":\t2,\n\t\t\"rate\":\t\"50mbit\"\n\t}\n}\n" >"$work/tabbed"
    row a 1 x "" ">= 1"
    measured_by "$work/tabbed" && row b 1 x "" ">= 1"
    measured_by "$work/none" && row c 1 x "" ">= 1"
    measured_on 3 1gbit && row d 1 x "" ">= 1"
    measured_on_several && row e 1 x "" ">= 1"
    measured_here && row f 1 x "" ">= 1"
    tools/bench/report made <"$cases"' made >said 2>&1
}
expect rows_become_a_report rows
expect rows_say_where_programs_were holds \
  '[(one["hosts"], one["rate"]) for one in cases] == [(1, None), (2, "50mbit"), (2, "50mbit"), (3, "1gbit"), (None, None), (1, None)]'
exit $((failures > 0))
