#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# libcomm-info --topology on this machine, on one with GPUs that a small NVML
# of our own pretends, and for machines in files; and --measure, whose values are
# not judged, only that there are some.
set -u

# shellcheck source=tests/support/info.sh
. "$(dirname "$0")/../support/info.sh"
fixtures=$PWD/tests/topo/fixtures

# ----------------------------------------------------------- this machine
info --topology
expect a_machine_is_shown has '^# host +[^ ]+, [0-9]+ processors?, [0-9]+ NUMA nodes?$'
expect gpus_or_the_reason_why_there_are_none has '^# (no GPU +[A-Z]|gpu0)'
expect ranks_are_shown has '^node 0 host [^ ]+ ranks 0$'
grep -v '^#' "$work/out" >"$work/ranks"
cp "$work/out" "$work/here.topo"
expect what_is_shown_loads_back info --topology "$work/here.topo"
grep -v '^#' "$work/out" >"$work/again"
expect it_loads_back_as_it_was cmp -s "$work/ranks" "$work/again"

# -------------------------------------------------------- files of machines
expect a_file_may_follow_the_option info --topology "$fixtures/mixed.topo" --policy net=int8
expect links_between_ranks_are_a_matrix has '^# 0 +self +nvlink +pcie +pcie +net'
expect links_of_a_plan_are_shown has '^# rank +same-device +nvlink +pcie +shm +net$'
expect costs_are_shown has '^# nvlink +latency 5 us, bandwidth 200 GB/s, assumed$'
expect a_file_may_be_the_value_of_the_option info "--topology=$fixtures/nvswitch.topo" --size 4M
expect measured_costs_are_shown has '^# nvlink +latency 4.5 us, bandwidth 370 GB/s$'
expect one_size_is_one_table test "$(grep -c '^# all-reduce of' "$work/out")" -eq 1
expect a_plan_names_its_links info --load "$fixtures/pairs.topo" --size 64M
expect a_plan_sends_over_nvlink_and_pcie has '^  pcie +[0-9]+ messages'
expect a_missing_file_is_named refuses 'no-such-file cannot be read' --topology "$work/no-such-file"
printf 'node 0 host a ranks 0\np2p 0 1\n' >"$work/bad.topo"
expect a_bad_line_is_named refuses 'topology, line 2: ' --topology "$work/bad.topo"
expect a_second_file_is_refused refuses 'unexpected argument' --topology "$work/here.topo" twice

# ------------------------------------------------------------- measured links
export LCOMM_TIMEOUT_S=${LCOMM_TIMEOUT_S:-60}
# measure RANKS [VARIABLE=VALUE...]: standard output only, as it would be kept
measure() {
  env "${@:2}" timeout -k 5 "$limit" "$launch" "$1" "$info" --measure >"$work/out" 2>"$work/err" </dev/null
}
# measured CLASS...: each has one line of two finite numbers above 0, no other class has one
measured() {
  grep '^link ' "$work/out" | awk -v classes="$*" '
    function positive(text) { return text ~ /^[0-9]+(\.[0-9]+)?$/ && text + 0 > 0 }
    $3 == "latency" && $5 == "us" && $6 == "bandwidth" && $8 == "GB/s" && NF == 8 &&
      positive($4) && positive($7) { found = found (found ? " " : "") $2; next }
    { exit wrong = 1 }
    END { exit wrong || found != classes }'
}
keep() { grep -E '^[^#]' "$work/out" >"$work/$1"; }
prints_again() { # FILE: loaded, it says the same
  info --topology "$1" && keep again && cmp -s "$work/kept" "$work/again"
}

expect links_of_four_ranks_are_measured measure 4 LCOMM_NODES=2 LCOMM_CUDA=off
expect every_class_that_occurs_is_measured measured shm net
expect the_pair_that_was_measured_is_named has '^# net +measured between ranks 0 and 2 by [a-z]+$'
expect ranks_that_pose_are_shown has '^node 1 host [^ ]+ ranks 2 3$'
keep kept
cp "$work/out" "$work/measured.topo"
expect measured_links_load_back prints_again "$work/measured.topo"
LCOMM_TOPO_FILE=$work/measured.topo timeout -k 5 "$limit" "$launch" 4 env LCOMM_NODES=2 "$info" --plan --size 1M >"$work/out" 2>&1
expect a_run_with_the_file_predicts_by_it has '^  predicted .*net .*; links measured$'
info --topology "$work/measured.topo"
expect measured_links_are_no_longer_assumed \
  test "$(grep -cE '^# (shm|net) +latency .* GB/s$' "$work/out")" -eq 2
expect links_are_measured_without_nodes measure 3 LCOMM_CUDA=off
expect classes_that_do_not_occur_are_not_measured measured shm
expect links_over_mpi_are_measured measure 3 LCOMM_NODES=3 LCOMM_TRANSPORT=mpi LCOMM_CUDA=off
expect the_transport_is_named has '^# net +measured between ranks 0 and 1 by mpi$'
# ranks 1 and 2 on one host, rank 0 on another
measure_hosts() {
  env LCOMM_CUDA=off timeout -k 5 "$limit" "$launch" 1 env LCOMM_HOSTID=alpha "$info" --measure \
    : -np 2 env LCOMM_HOSTID=beta "$info" --measure >"$work/out" 2>"$work/err" </dev/null
}
expect a_class_that_rank_0_has_not_is_measured measure_hosts
expect its_pair_is_named has '^# shm +measured between ranks 1 and 2 by shm$'
expect values_of_other_ranks_arrive measured shm net
info --measure
expect one_rank_says_what_is_needed has '^# nothing was measured: links lie between 2 ranks or more'
expect one_rank_has_no_measured_links measured
cp "$work/out" "$work/one.topo"
keep kept
expect one_rank_loads_back prints_again "$work/one.topo"
expect ranks_that_are_not_there_are_not_measured refuses 'only ranks that are there' --measure --ranks 4

# --------------------------------------------------- GPUs that are not there
if ! command -v "${CC:-cc}" >/dev/null 2>&1; then
  for name in gpus_of_a_driver_are_shown pairs_of_gpus_are_in_the_matrix; do
    echo "SKIP $name: no C compiler here"
  done
  exit $((failures > 0))
fi
cat >"$work/nvml.c" <<'END'
#include <stdio.h>
#include <string.h>
typedef struct { char old[16]; unsigned n[5]; char id[32]; } pci;
static const char *const ids[] = {"00000000:17:00.0", "00000000:31:00.0"};
static int one, other;
int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { return *count = 2, 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
  return *device = index ? &other : &one, 0;
}
int nvmlDeviceGetName(void *device, char *name, unsigned size) {
  return snprintf(name, size, "Pretended"), device == 0;
}
int nvmlDeviceGetPciInfo_v3(void *device, pci *p) {
  return strcpy(p->id, ids[device == &other]), 0;
}
int nvmlDeviceGetNvLinkState(void *device, unsigned link, int *active) {
  return *active = link < 6, device == 0 || link > 11;
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *device, unsigned link, pci *p) {
  return strcpy(p->id, ids[device == &one]), link > 11;
}
int nvmlDeviceGetP2PStatus(void *from, void *to, int capability, int *status) {
  return *status = 0, from == to || capability > 1;
}
END
"${CC:-cc}" -shared -fPIC -o "$work/libnvidia-ml.so.1" "$work/nvml.c" >"$work/out" 2>&1
LD_LIBRARY_PATH=$work${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} info --topology
expect gpus_of_a_driver_are_shown \
  has '^# gpu1 +Pretended, 0000:31:00.0(, NUMA node [0-9]+)?, 6 NVLinks to GPUs$'
expect pairs_of_gpus_are_in_the_matrix has '^# gpu0 +- +nvlink\*6'
exit $((failures > 0))
