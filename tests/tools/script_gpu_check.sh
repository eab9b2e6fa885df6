#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# tools/gpu_check where nothing is real: programs that pass, fail, crash and hang, a
# compiler that makes them, and a device that answers. What a part does costs no other
# its result, nothing is left running, and the results are there whenever it ends.
# shellcheck disable=SC2016,SC2317 # variables of fake programs; conditions called by name
set -u

# shellcheck source=tests/support/expect.sh
. "$(dirname "$0")/../support/expect.sh"
show_more() { tail -n 30 said | tr '\n' ' ' | cut -c1-900 | sed 's/^/  | /'; }
export SCRATCH=$work FAKE=$work/build/fake GPU_CHECK_LIMIT_S=8
mkdir -p "$work"/{bin,build,programs}
ln -s "$PWD/tools" "$PWD/tests" "$work"
cd "$work" || exit 2

# fake NAME: a program from standard input
fake() {
  { echo '#!/bin/bash' && cat; } >"$1"
  chmod +x "$1"
}

fake bin/nvidia-smi <<'EOF2'
case "$*" in
-L) echo "GPU 0: NVIDIA Make-believe (UUID: GPU-0)" ;;
*compute_cap*) echo 9.0 ;;
*-l\ 2*) exec sleep 1000 ;;
esac
EOF2
fake bin/make <<'EOF2'
case "$*" in
*print-build*) echo build/fake ;;
*tests*)
  [ ! -e "$SCRATCH/no_build" ] || { echo "x.c:1: error: no such thing"; exit 2; }
  mkdir -p "$FAKE"/tools "$FAKE"/tests/{kernels/cuda,api,tensor,device}
  cp programs/{cuda,stream}_bench "$FAKE/tools/"
  cp programs/cuda_kernels "$FAKE/tests/kernels/cuda/"
  cp programs/cuda_device "$FAKE/tests/device/"
  cp programs/cuda_calls "$FAKE/tests/api/"
  cp programs/cuda_steps "$FAKE/tests/tensor/"
  cp programs/train "$FAKE/"
  touch "$FAKE/libcomm-nccl.so" "$FAKE/libtrainer-cuda.so"
  ;;
esac
EOF2
fake bin/mpirun <<'EOF2'
[ "$1" != --version ] || { echo "mpirun (Open MPI) 4.1.4"; exit; }
while [ $# -gt 0 ] && [ ! -x "$1" ] && [ "$1" != compute-sanitizer ]; do shift; done
exec "$@"
EOF2
fake bin/ncu <<<'echo "  kernel (1, 1, 1)x(256, 1, 1), Context 1"; echo "    Duration us 12"'
fake bin/compute-sanitizer <<'EOF2'
case "$*" in
*memcheck*cuda_kernels*) echo "========= Invalid __global__ write of size 4 bytes"; echo "========= ERROR SUMMARY: 1 error"; exit 99 ;;
*racecheck*cuda_kernels*) echo "ok 1 - a_thing"; exec sleep 1000 ;;
*racecheck*stream_bench*topk*) echo "========= Error: Race reported between Write access"; echo "========= RACECHECK SUMMARY: 1 hazard"; exit 99 ;;
*synccheck*stream_bench*node=int8*) sleep 1000 & echo $! >>"$SCRATCH/left"; wait ;;
*) echo "========= ERROR SUMMARY: 0 errors" ;;
esac
EOF2
fake programs/cuda_bench <<'EOF2'
csv='' list='' only=''
while [ $# -gt 0 ]; do
  case $1 in --csv) csv=$2 ;; --only) only=$2 ;; --list) list=yes ;; esac
  shift
done
[ ! -e "$SCRATCH/no_device" ] || { echo "cuda_bench: there is no CUDA driver" >&2; exit 3; }
head=case,target,verdict,share,share_min,share_max,bytes_per_value,seconds,seconds_min,seconds_max,gb_s,copy_gb_s,why
[ -z "$list" ] || { printf 'case,target\nfast,0.9\nslow,0.9\nfp32 split,\n'; exit; }
echo "Make-believe (compute capability 9.0)"
[ -n "$csv" ] || exit 0
printf '%s\nfast,0.9,met,0.95,0.9,1,6,1e-3,1e-3,1e-3,4000,4200,""\nslow,0.9,missed,0.5,0.4,0.6,6,1e-3,1e-3,1e-3,4000,4200,""\nfp32 split,,,0.5,0.4,0.6,6,1e-3,1e-3,1e-3,4000,4200,""\n' $head >"$csv"
EOF2
fake programs/stream_bench <<'EOF2'
nodes=0 only='' json='' policy=''
while [ $# -gt 0 ]; do
  case $1 in --nodes) nodes=$2 ;; --only) only=$2 ;; --json) json=$2 ;; --policy) policy=$2 ;; esac
  shift
done
case $only-$nodes$policy in
bits-*topk*) row="graph bits                             WRONG  round 0, value 7 is 1, and of the host 2" ;;
allocate-2) sleep 1000 & echo $! >>"$SCRATCH/left"; wait ;;
hidden-*) row="hidden 100 MiB                              not measured  there is no libcublas.so" ;;
host-1) row="host 1 MiB                                WRONG  value 0 of the sum is 1, not 2" ;;
*) row="$only 8 B   12.5    11    14  us" ;;
esac
[ -z "$json" ] || echo "{\"nodes\": $nodes}" >"$json"
printf '2 ranks, nodes %s\ncase          median  least  greatest  unit  target\n%s\n' "$nodes" "$row"
case $row in *WRONG*) exit 1 ;; esac
EOF2
fake programs/cuda_kernels <<'EOF2'
[ $# -eq 0 ] || { echo "ok 1 - $2"; exit 0; }
printf 'ok 1 - a_thing\nnot ok 2 - another_thing\nnot ok 3 - what_came_after_it\n'
exit 2
EOF2
fake programs/cuda_device <<<'echo "ok 1 - a_thing"; kill -SEGV $$'
fake programs/cuda_calls <<<'echo "PASS a_thing"; sleep 1000 & echo $! >>"$SCRATCH/left"; wait'
fake programs/cuda_steps <<<'echo "PASS a_thing"; echo "PASS another"'

fake bin/cc <<<'echo cc'
fake bin/nvcc <<'EOF2'
[ ! -e "$SCRATCH/no_nvcc" ] || { echo "nvcc fatal: error: no such thing"; exit 1; }
for word; do [ "$last" != -o ] || cp "$SCRATCH/programs/nccl_perf" "$word"; last=$word; done
EOF2
fake programs/nccl_perf <<'EOF2'
echo "$*" >>"$SCRATCH/own_runs"
case $* in -r*) echo "all_reduce 8 WRONG" && exit 1 ;; esac
EOF2
fake programs/all_reduce_perf <<<'echo "# Out of bounds values : 0 OK"'
fake programs/sendrecv_perf <<<'echo "# Out of bounds values : 2 FAILED"; exit 3'

# A window of 1024 bytes costs 1024 * (6 * 1e6 + 6 * 12 * 768 * 1024) operations.
fake programs/train <<'EOF2'
while [ $# -gt 0 ]; do
  case $1 in --log) log=$2 ;; --policy) policy=$2 ;; esac
  shift
done
[ "$policy-$LCOMM_NODES" != net=int8-4 ] || { echo "train: rank 1 cannot go on, its device reports: no memory"; exit 3; }
{
  echo '{"event":"config","weights":1000000,"tensors":[]}'
  echo '{"event":"epoch","samples_per_s":1,"hidden":0.1,"weights_hash":"0x1"}'
  echo '{"event":"epoch","samples_per_s":100,"hidden":0.75,"weights_hash":"0x1"}'
} >"$log"
EOF2
fake programs/train_gpt2cu <<<'echo "step 19/20 | loss 4 | 10.00 ms | 1000 tok/s"; echo "step 20/20 | loss 3 | 9.00 ms | 1234 tok/s"'

# check OPTION...: gpu_check, with what is fake first in PATH
check() {
  rm -rf out
  PATH=$work/bin:$PATH timeout -k 5 "$limit" tools/gpu_check --out out "$@" >said 2>&1 </dev/null
}

has() { grep -qE -- "$1" out/results.md; }
# A process that was killed is there until its parent, or whoever took that one's place, has seen it.
none_left() {
  local pid
  while read -r pid; do
    for _ in $(seq 600); do
      kill -0 "$pid" || continue 2
      sleep 0.1
    done
    return 1
  done <left
}

check --commit abc123 --only kernels,bench,device,profile,calls-2,steps,memcheck,racecheck
expect failures_are_the_exit_status test $? -eq 1
expect failed_tests_are_run_again_alone has '^\| kernels \| failed .* 1 passed, 2 failed, .*each in a process of its own 0 fail'
expect crash_is_told has '^\| device \| failed .* exit status 139 after 1 passed'
expect hanging_ranks_are_told has '^\| calls-2 \| failed .* no end within 8 s after 1 passed'
expect what_hangs_stops_nothing_else has '^\| steps-8 \| passed .* 2 passed, 0 failed'
expect nothing_is_left_running none_left
expect figures_are_there has '^slow,0.9,missed'
expect table_has_commit_and_device has 'commit abc123:'
expect slow_kernels_are_profiled has '^\| profile \| passed .* counters of 1 of 1 cases'
expect sanitizer_error_is_told has '^\| memcheck \| failed .*cuda_kernels: .*Invalid __global__ write'
expect sanitizer_without_end_is_no_verdict has '^\| racecheck \| not measured .*no error so far, 1 tests over'
expect what_is_left_can_be_asked_for has '^What is left: --only kernels,device,calls-2,memcheck,racecheck$'
expect json_can_be_read python3 -c 'import json; json.load(open("out/results.json"))["bench"]["results"]'
expect few_files_come_home test "$(find out -type f | wc -l)" -le 7

GPU_CHECK_STREAM_LIMIT_S=8 check --only latency,host,hidden,allocate
expect stream_figures_are_a_line has '^\| latency \| passed .*nodes 1: latency 8 B 12.5 11 14 us. nodes 2: latency 8 B 12.5'
expect wrong_sums_are_told has '^\| host \| failed .*nodes 1: exit status 1; host 1 MiB WRONG value 0 of the sum'
expect what_needs_more_is_not_measured has '^\| hidden \| not measured .*there is no libcublas'
expect hanging_sums_are_ended has '^\| allocate \| failed .*nodes 1: allocate 8 B .*nodes 2: no end within 8 s'
expect no_sum_is_left_running none_left
expect stream_figures_are_json python3 -c 'import json; s = json.load(open("out/results.json"))["streams"]; assert s["latency-1"]["nodes"] == 1 and s["host-2"]["nodes"] == 2'
expect stream_tables_are_there has '^== hidden nodes 2$'

GPU_CHECK_STREAM_LIMIT_S=20 check --only graphs
expect graphs_are_replayed_inside_a_node_and_between has '^\| graphs \| failed .*nodes 1: graph 8 B 12.5 11 14 us. nodes 2: graph 8 B 12.5'
expect bits_of_graphs_are_compared_under_codecs has 'nodes 1 node=int8 min=1: bits 8 B .*nodes 2 net=int8 min=1: bits 8 B .*nodes 2 net=topk:0.05 min=1: exit status 1; graph bits WRONG round 0'
expect graphs_of_a_policy_are_json_of_their_own python3 -c 'import json; s = json.load(open("out/results.json"))["streams"]; assert s["graphs-1"]["nodes"] == 1 and s["graphs-2-net-topk-0-05-min-1"]["nodes"] == 2'

GPU_CHECK_LIMIT_S=40 check --only sums
expect sums_are_sanitized has '^\| sums-memcheck \| passed .*nodes 2 net=int8 min=1: nothing found; nodes 2 net=topk:0.05 min=1: nothing found; nodes 1 node=int8 min=1: nothing found; nodes 1 net=none: nothing found'
expect error_in_a_sum_stops_no_other has '^\| sums-racecheck \| failed .*nodes 2 net=topk:0.05 min=1: .*Race reported.*; nodes 1 net=none: nothing found'
expect sum_without_end_is_no_verdict has '^\| sums-synccheck \| not measured .*nodes 1 node=int8 min=1: no end within 20 s'
expect what_a_tool_cannot_see_is_left_out has '^\| sums-initcheck \| passed .* nodes 2 net=int8 min=1: nothing found; nodes 2 net=topk:0.05 min=1: nothing found; \|'
expect no_sanitized_sum_is_left_running none_left

NCCL_TESTS=$work/programs check --only nccl
expect programs_that_call_nccl_are_run has '^\| nccl-perf \| failed .*all_reduce on 2: fine. all_reduce on 4: fine. sendrecv on 2: exit status 3'
expect missing_programs_are_named has '^\| nccl-llmc \| not measured .*no train_gpt2cu in PATH or LLMC'

GPU_CHECK_PEAK_TFLOPS=10 LLMC=$work/programs check --only train
expect training_has_its_share_of_the_peak has '^\| train-1 \| passed .*net=none: 102400 bytes/s, 6.41 TFLOP/s, 0.641 of 10 \(target 0.4: met\)'
expect peer_is_beside_it has '^\| train-1 .*llm.c: 1234 tok/s'
expect ranks_that_share_a_device_hide_communication has '^\| train-2 \| passed .*net=none: .* 75 % hidden. net=int8: .* 75 % hidden'
expect training_that_fails_is_told has '^\| train-4 \| failed .*net=int8: exit status 3; train: rank 1 cannot go on'
LLMC=$work check --only train-1
expect unknown_peak_is_told has '^\| train-1 \| passed .*peak not known, see GPU_CHECK_PEAK_TFLOPS. llm.c: there is no train_gpt2cu'

check --only nccl-perf
expect a_program_of_our_own_takes_the_place_of_missing_ones has '^\| nccl-perf \| failed .*no nccl-tests in .*nccl_perf.c. .*int32 on 4: fine.* float on 4 with net=int8: exit status 1'
expect it_is_run_with_bounds_where_results_are_lossy grep -q '^-r 0.05 ' own_runs
touch no_nvcc
check --only nccl-perf
expect one_that_does_not_build_is_told has '^\| nccl-perf \| not measured .*nccl_perf.c does not build: nvcc fatal'
rm no_nvcc

check --seconds 17 --only calls,steps
expect all_time_has_a_limit has '^\| steps-8 \| not measured \| [0-9]+ \| no time was left'

touch no_device
check
expect no_device_has_an_exit_status test $? -eq 3
expect no_device_has_a_reason has '^\| kernels \| not measured \| [0-9]+ \| there is no CUDA driver'
rm no_device

touch no_build
rm -rf "$FAKE"
check --only kernels
expect build_that_fails_is_told has '^\| build \| failed \| [0-9]+ \| x.c:1: error: no such thing'
rm no_build

rm -rf out
PATH=$work/bin:$PATH GPU_CHECK_LIMIT_S=60 tools/gpu_check --out out --only steps-2,calls-2 >said 2>&1 &
for _ in $(seq 3000); do
  grep -q 'PASS a_thing' out/tests.log 2>/dev/null && break
  sleep 0.1
done
kill -TERM $!
wait $!
expect results_are_there_when_it_is_ended has '^\| calls-2 \| not measured .*ended from outside'
expect nothing_runs_on_when_it_is_ended none_left

check --only kernals
expect unknown_part_is_refused test $? -eq 2
expect parts_are_named grep -q "there is no part 'kernals'; there are kernels bench" said
exit $((failures > 0))
