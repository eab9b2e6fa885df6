#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# libcomm-experiment from end to end: runs, reports, going on after a kill, and everything bad that a
# file, a program, a host and a disk can do.
set -u

# shellcheck source=tests/support/expect.sh
. "$(dirname "$0")/../support/expect.sh"
experiment=$build/tools/libcomm-experiment
ready_made=$PWD/tools/experiments
cd "$work" || exit 2

# An mpirun that only starts the program, once, for programs that need no MPI.
mkdir fake real
cat >fake/mpirun <<'END'
#!/usr/bin/env bash
while [ "$1" != -np ]; do shift; done
exec "${@:3}"
END
# What it is told: hang, crash, fail, chatter, and else a line of results.
cat >fake/program <<'END'
#!/usr/bin/env bash
echo "$LCOMM_POLICY" >>"$(dirname "$0")/log"
case $1 in
hang) exec sleep 1000 ;;
crash) kill -SEGV $$ ;;
fail) echo "program: host7 refused the connection" >&2 && exit 5 ;;
chatter) echo "all is well" && exit 0 ;;
slow) sleep 1 ;;
esac
case $LCOMM_POLICY in '') s=2 ;; *) s=1 ;; esac
echo '{"size": 1024, "median_s": '$s', "busbw_gb_s": 0.5}'
END
chmod +x fake/mpirun fake/program
export PATH=$work/fake:$PATH

# make_file WHAT...: an experiment of that program, in which the first of several does well
make_file() {
  printf '[experiment]\ntitle = a <test>\nlimit = 4s\n'
  for what; do
    printf '[run %s]\nprogram = %s\noptions = %s\nwhere = pose\npolicies = exact | net=int8\n' "$what" \
      "$work/fake/program" "$what"
  done
}
run() { timeout -k 5 "$limit" "$experiment" "$@" >said 2>&1 </dev/null; }
states() { grep -ho '"state":[^,]*' "$1"/runs/*/run.json | sort | uniq -c | tr -s ' \t\n' ' '; }

# ---------------------------------------------------------------------- good
make_file good >good.ini
expect an_estimate_runs_nothing run --estimate -o out good.ini
expect an_estimate_says_how_long grep -q '2 runs, 2 of them left: about ' said
expect nothing_has_run test ! -e fake/log
expect an_experiment_runs ends_with 0 run -o out good.ini
expect the_answer_comes_first grep -q 'net=int8 takes 0.5 of the time of exact' said
expect all_have_results test "$(states out)" = ' 2 "state": "good" '
expect there_is_a_report test -s out/report.html -a -s out/report.md -a -s out/results.csv
expect printed_tables_are_not_cut_off grep -q '@media print{.*\.wide{overflow:visible}.*td:last-child{white-space:normal' out/report.html
expect titles_are_text grep -q '<h1>a &lt;test&gt;</h1>' out/report.html
expect a_run_has_its_folder bash -c 'cd out/runs/good*int8* && grep -q "\"command\":.*program" run.json &&
  grep -q "\"commit\":" run.json && grep -q "\"machine\":.* x " run.json && grep -q "\"environment\":" run.json && test -s out'
: >fake/log
expect the_same_again_is_well ends_with 0 run -o out good.ini
expect what_is_there_is_not_repeated test ! -s fake/log
sed -i 's/"machine":.*x/"machine": "9 x/' out/runs/good*int8*/run.json
expect other_machines_are_not_mixed ends_with 2 run -o out good.ini
expect it_names_the_machine grep -q 'results of another machine (9 x.*--mix-machines' said
expect they_are_mixed_where_that_is_wanted ends_with 0 run --mix-machines -o out good.ini
expect a_mixed_report_says_so grep -q 'Machines are mixed' out/report.html

# ---------------------------------------------------------------- ready-made
for file in "$ready_made"/*.ini; do
  name=$(basename "$file" .ini)
  expect "${name//-/_}_says_what_there_is_to_run" bash -c '"$1" --estimate -o "none" "$2" >said 2>&1 </dev/null &&
    grep -qE "^[1-9][0-9]* runs, [1-9][0-9]* of them left: about [0-9.]+ (s|min|h), at most" said || { cat said; false; }' _ "$experiment" "$file"
done
expect estimates_leave_nothing test ! -e none

# ----------------------------------------------------------------- bad files
printf '[experiment]\nspeed = 3\n' >bad.ini
expect an_unknown_key_is_refused ends_with 2 run bad.ini
expect it_is_named_with_its_line grep -q "bad.ini: line 2: there is no key 'speed'" said
expect a_missing_file_is_refused ends_with 2 run none.ini
expect no_file_is_refused ends_with 2 run

# -------------------------------------------------------------- bad programs
make_file hang crash fail chatter good >bad.ini
expect failures_are_an_exit_status ends_with 1 run -o bad bad.ini
expect a_program_that_hangs_is_ended grep -q 'hang.*longer than its limit of 4 s' said
expect a_program_that_crashes_is_named grep -q 'crash.*signal 11' said
expect the_last_words_are_shown grep -q 'fail.*exit status 5: program: host7 refused' said
expect a_program_without_results_is_named grep -q 'chatter.*no line of JSON' said
expect the_others_have_results test "$(states bad)" = ' 8 "state": "failed" 2 "state": "good" '
expect the_report_lists_failures test "$(grep -c '<td>exit status 5' bad/report.html)" -eq 2
printf '[run a]\nprogram = no_such_program\nwhere = pose\n' >bad.ini
expect a_missing_program_is_refused ends_with 2 run -o none bad.ini
expect a_missing_program_is_named grep -q no_such_program said

# ---------------------------------------------------------------------- kill
make_file slow good >slow.ini
sed -i 's/policies = .*/&\nrepetitions = 3/' slow.ini
: >fake/log
"$experiment" -o slow slow.ini >said 2>&1 </dev/null &
until [ "$(wc -l <fake/log)" -ge 3 ] || ! kill -0 $! 2>/dev/null; do sleep 0.1; done
kill -INT $!
expect a_signal_ends_it_in_order ends_with 130 wait $!
expect it_says_how_to_go_on grep -q 'the same command goes on' said
expect what_was_measured_is_kept bash -c 'n=$(ls slow/runs/*/run.json | wc -l); [ "$n" -ge 1 ] && [ "$n" -lt 12 ]'
expect it_goes_on ends_with 0 run -o slow slow.ini
expect nothing_is_lost test "$(states slow)" = ' 12 "state": "good" '
expect only_the_broken_run_came_twice test "$(wc -l <fake/log)" -le 13

# ---------------------------------------------------------------- other places
# An srun that checks its words.
cat >fake/srun <<'END'
#!/usr/bin/env bash
[ "$1 $2 $3" = "-N 3 --ntasks-per-node=2" ] && shift 3 && exec "$@"
END
chmod +x fake/srun
printf '[run far]\nprogram = %s\nwhere = slurm\nworlds = 3x2\npolicies = exact | net=int8\n' "$work/fake/program" >slurm.ini
expect slurm_starts_by_srun ends_with 0 run -o slurm slurm.ini
expect results_come_from_slurm test "$(states slurm)" = ' 2 "state": "good" '
# A stand-in for ssh: HOST COMMAND..., here. Addresses that nobody has (RFC 5737), so nobody is asked for them.
# A host has its own TMPDIR: two of Open MPI's daemons that make the same session folder at once may fail.
cat >fake/ssh <<'END'
#!/usr/bin/env bash
while [[ $1 == -* ]]; do shift; done
echo "$1" >>"$(dirname "$0")/hosts"
export TMPDIR=$(dirname "$0")/$1
mkdir -p "$TMPDIR"
shift
exec sh -c "$*"
END
chmod +x fake/ssh
mv fake/mpirun fake/kept
if mpirun --version 2>/dev/null | grep -q 'Open MPI'; then
  printf '198.51.100.7 slots=2\n203.0.113.7 slots=2\n' >hostfile
  printf '[experiment]\nlimit = 5m\n[run far]\nprogram = %s\noptions = good\nwhere = hosts\nhostfile = %s\nworlds = 2x2\npolicies = exact | net=int8\n' \
    "$work/fake/program" "$work/hostfile" >hosts.ini
  export OMPI_MCA_plm_rsh_agent=$work/fake/ssh
  : >fake/log
  expect hosts_of_a_hostfile_run ends_with 0 run -o hosts hosts.ini
  expect results_come_from_hosts test "$(states hosts)" = ' 2 "state": "good" '
  expect all_hosts_are_started test "$(sort -u fake/hosts | tr '\n' ' ')" = '198.51.100.7 203.0.113.7 '
  expect their_ranks_are_told_the_policy test "$(sort fake/log | uniq -c | tr -s ' \n' ' ')" = ' 4 4 net=int8 '
  unset OMPI_MCA_plm_rsh_agent
else
  skip hosts_of_a_hostfile_run "there is no mpirun of Open MPI"
fi
mv fake/kept fake/mpirun
rm fake/ssh

"$experiment" -o slow slow.ini >/dev/null 2>&1 </dev/null
exec 9>slow/lock && flock 9
expect a_folder_is_used_by_one_at_a_time ends_with 2 run -o slow slow.ini
expect it_says_that_another_is_there grep -q 'another libcomm-experiment works in' said
exec 9>&-

# ---------------------------------------------------------------- unreachable
rm fake/mpirun
printf 'host-that-is-not-there.invalid slots=1\n' >hostfile
printf '[experiment]\nlimit = 60s\n[run far]\nprogram = %s\nwhere = hosts\nhostfile = %s\nworlds = 1x1\n' \
  "$work/fake/program" "$work/hostfile" >far.ini
if command -v mpirun >/dev/null; then
  expect an_unreachable_host_is_a_failure ends_with 1 run -o far far.ini
  expect it_is_in_the_errors_of_the_run bash -c 'grep -q "failed: far" said && cat far/runs/*/err | grep -qi "host-that-is-not-there\|ssh"'
else
  skip an_unreachable_host_is_a_failure "there is no mpirun"
fi

# ------------------------------------------------------------------ full disk
cat >fake/mpirun <<'END'
#!/usr/bin/env bash
while [ "$1" != -np ]; do shift; done
exec "${@:3}"
END
chmod +x fake/mpirun
mkdir full
if unshare -m true 2>/dev/null && [ "$(id -u)" -eq 0 ]; then
  # the second run fills it
  unshare -m bash -c 'mount -t tmpfs -o size=96k tmpfs full && "$1" -o full good.ini >said 2>&1 </dev/null
    head -c 1000000 /dev/zero >full/filler 2>/dev/null; rm full/runs/good*int8*/run.json
    "$1" -o full good.ini >again 2>&1 </dev/null; echo $? >status; ls full/runs/*/run.json >kept' _ "$experiment"
  expect a_full_disk_is_an_error test "$(cat status)" = 2
  expect a_full_disk_is_named grep -q 'No space left on device' again
  expect earlier_results_are_kept test "$(wc -l <kept)" -ge 1
else
  skip a_full_disk_is_an_error "mounting takes root"
fi

# ------------------------------------------------------------- emulated hosts
# A ready-made file, cut down, with everything real.
rm fake/mpirun
sed -E -e 's/^options = --images.*/options = --images 640 --epochs 1/' -e 's/^options = -b.*/options = -b 64K -e 64K -n 1/' \
  -e 's/^rates = .*/rates = 200mbit/' -e 's/^limit = .*/limit = 10m/' -e 's/^worlds = .*/worlds = 2x1/' \
  -e '/^policies/s/ \| net=topk.*//' "$ready_made/quick.ini" >small.ini
run -o small small.ini
status=$?
if [ $status -eq 77 ]; then
  skip an_experiment_over_emulated_hosts_runs "$(tail -n 1 said)"
else
  expect an_experiment_over_emulated_hosts_runs test $status -eq 0
  expect logs_have_the_time_on_the_wire grep -q '"wire_s":[0-9]' small/runs/training*/results.jsonl
  expect interface_bytes_are_counted bash -c '! grep -l "\"interface_bytes\":.*\b0,$" small/runs/*/run.json'
  expect trainings_and_sums_are_simulated_too bash -c 'rows=$(grep -c "| simulate --nodes=2 " small/report.md)
    [ "$rows" -eq 4 ] && ! grep -q "not simulated" small/report.md || { grep -A 8 "Simulated against" small/report.md; false; }'
fi

# ------------------------------------------------------------------- pictures
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
if ! command -v gnuplot >/dev/null; then
  skip pictures_are_drawn "there is no gnuplot"
else
  expect pictures_are_drawn grep -q '<figure><svg' out/report.html
fi
if [ -n "$browser" ]; then
  export HOME=$work
  timeout 120 "$browser" --headless --no-sandbox --disable-gpu --window-size=1000,3000 --screenshot="$work/page.png" \
    "file://$work/out/report.html" >/dev/null 2>&1
  expect a_browser_shows_the_report test "$(stat -c %s page.png 2>/dev/null || echo 0)" -gt 20000
  # labels_in REPORT: how many pairs of labels of its pictures cover each other, as the browser's fonts have them
  cat >labels.html <<'END'
<script>addEventListener("load", () => {
  let pairs = 0, all = 0, first = "";
  for (const picture of document.querySelectorAll("figure svg")) {
    const labels = [...picture.querySelectorAll("text")].filter(it => it.textContent.trim())
      .map(it => [it.getBoundingClientRect(), it.textContent.trim()]);
    all += labels.length;
    labels.forEach(([a, text], i) => labels.slice(0, i).forEach(([b, other]) => {
      if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1.5 &&
          Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 7.5 && pairs++ === 0) first = text + " and " + other;
    }));
  }
  document.title = `${all} labels, ${pairs} pairs collide: ${first}`;
})</script>
END
  labels_in() {
    sed -e '/<\/body>/r labels.html' "$1" >looked.html
    timeout "$limit" "$browser" --headless --no-sandbox --disable-gpu --virtual-time-budget=5000 --dump-dom "file://$work/looked.html" \
      2>/dev/null | grep -o '<title>[^<]*' | head -n 1
  }
  for report in out small; do
    [ -e $report/report.html ] || continue
    labels=$(labels_in $report/report.html)
    expect "no_labels_collide_in_report_$report" test "${labels//[0-9]/}" = '<title> labels,  pairs collide: ' -a "${labels%% 0 pairs*}" != "$labels"
  done
  sed -E 's/<text>/<text>and over it lies<\/text><text>/' out/report.html >bad.html
  labels=$(labels_in bad.html)
  expect labels_that_collide_are_seen grep -q '[1-9][0-9]* pairs collide: [^<]* and ' <<<"$labels"
else
  skip a_browser_shows_the_report "there is no Chromium"
  skip no_labels_collide_in_report_out "there is no Chromium"
fi
exit $((failures > 0))
