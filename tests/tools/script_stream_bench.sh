#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# stream_bench as it is called on a machine with a GPU: two processes that meet by the environment, with
# emulated devices that have the names of CUDA's driver. What it finds there it opens itself.
# shellcheck disable=SC2317 # conditions called by name
set -u

# shellcheck source=tests/support/expect.sh
. "$(dirname "$0")/../support/expect.sh"
show_more() { tail -n 20 "$work/out" | sed 's/^/  | /'; }
if [ -n "${SAN:-}" ]; then
  skip stream_bench "the library of emulated devices has no sanitizers"
  exit 77
fi

# The library looks for its devices beside the program.
cp "$build/tools/stream_bench" "$work/"
ln -s "$build/tests/interpose/nccl/cuda/libcudart.so" "$work/libcomm-cuda.so"

# measures CASES OPTION...: two ranks, whose table gives each of these cases, apart by commas, a figure
measures() {
  local cases=$1 name other
  shift
  next_port
  export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port
  RANK=1 timeout -k 5 "$limit" "$work/stream_bench" "$@" >"$work/other" 2>&1 &
  other=$!
  RANK=0 timeout -k 5 "$limit" "$work/stream_bench" "$@" >"$work/out" 2>&1 || return 1
  wait "$other" || return 1
  while read -r -d, name; do
    grep -qE "^$name +[0-9.e+]+ +[0-9.e+]+ +[0-9.e+]+ +us *$" "$work/out" || return 1
  done <<<"$cases,"
}

expect graphs_are_replayed_inside_a_node \
  measures 'graph bits,graph 8 B,graph 1 MiB,graph launch 1 MiB' --nodes 1 --only graph -s 1
expect bits_are_compared_on_two_nodes \
  measures 'same bits,graph bits' --nodes 2 --only bits --policy 'net=int8 min=1' -s 1
exit $((failures > 0))
