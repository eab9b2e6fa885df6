#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# A host whose cable is pulled is named long before the patience of an operation
# ends, by those that are left and by the progress thread; one whose program is
# stopped, with all windows full, is not blamed. On hosts of tools/cluster.
set -u

# shellcheck source=tests/support/expect.sh
. "$(dirname "$0")/../../support/expect.sh"
show_more() { tail -n 5 "$work"/out.*; }
cd "$(dirname "$0")/../../.." || exit 2
build=${BUILD:-$(make -s print-build)}
# One name for each folder of sources: a run that broke off is cleaned up by the next
# one, and those of others are left alone.
own=v$(pwd -P | cksum | cut -c 1-9 | tr -dc 0-9)
cluster() { tools/cluster --name "$own" "$@"; }
switch=lcomm-$own-switch
PATH=$PATH:/usr/sbin:/sbin

if [ "$(id -u)" -ne 0 ]; then
  echo "SKIP vanished: making hosts takes root"
  exit 0
fi
ranks=()
trap 'cluster down; rm -rf "$work"' EXIT # ends the ranks
why=$(cluster up --hosts 3 --rate 100mbit --slots 1 2>&1)
if [ $? -ne 0 ]; then
  echo "SKIP vanished: $why"
  exit 0
fi

# start PROGRESS: three ranks that sum for ever, with a patience of ten minutes
start() {
  local rank
  ranks=()
  rm -f "$work"/out.*
  for rank in 0 1 2; do
    cluster exec "$rank" env RANK="$rank" WORLD_SIZE=3 MASTER_ADDR=10.77.0.1 MASTER_PORT=29511 \
      LCOMM_TRANSPORT=ucx LCOMM_TIMEOUT_S=600 LCOMM_PROGRESS="$1" \
      timeout -k 5 300 "$build/tools/allreduce_perf" --boot env -b 4M -n 100000 -w 0 --batch 1 \
      >"$work/out.$rank" 2>&1 &
    ranks+=($!)
  done
}

# Bytes that a host has sent.
sent() { cluster bytes | awk -v h="$1" '$1 == h { print $2 }'; }
# flows N: wait until a host has sent N bytes more; false when the ranks end
flows() {
  local before
  before=$(sent host0)
  while [ $(($(sent host0) - before)) -lt "$1" ]; do
    kill -0 "${ranks[@]}" 2>/dev/null || return 1
    sleep 0.2
  done
}

# refuses FROM TO: a host answers another one, if only that nobody listens at port 9 of it
refuses() {
  cluster exec "$1" timeout 1 bash -c "exec 3<>/dev/tcp/10.77.0.$(($2 + 1))/9" 2>/dev/null
  [ $? -eq 1 ]
}

# reach: all hosts answer each other again
reach() {
  local from to
  for from in 0 1 2; do
    for to in 0 1 2; do
      until refuses "$from" "$to"; do sleep 0.2; done
    done
  done
}

# signal_host SIGNAL HOST...
signal_host() {
  local signal=$1 host pids
  shift
  for host in "$@"; do
    pids=$(ip netns pids "lcomm-$own-host$host")
    # shellcheck disable=SC2086 # a list
    [ -z "$pids" ] || kill -"$signal" $pids 2>/dev/null
  done
}

end() {
  signal_host KILL 0 1 2
  wait "${ranks[@]}" 2>/dev/null
}

# says RANK TEXT: a rank ended, with this in its last words
says() { wait "${ranks[$1]}"; [ $? -eq 2 ] && grep -q "$2" "$work/out.$1"; }

for progress in calls thread; do
  start $progress
  expect "vanished_ranks_come_up_$progress" flows 20000000
  ip -n $switch link set port1 down
  expect "vanished_host_is_named_by_rank_0_$progress" says 0 "the network to rank 1 (host host1) does not answer"
  expect "vanished_host_is_named_by_rank_2_$progress" says 2 "the network to rank 1 (host host1) does not answer"
  expect "vanished_host_knows_that_it_is_cut_off_$progress" says 1 "this host may be cut off"
  ip -n $switch link set port1 up
  end
  reach
done

start calls
expect ranks_come_up_again flows 20000000
signal_host STOP 1
sleep 15
expect nobody_who_is_stopped_is_taken_for_vanished kill -0 "${ranks[@]}"
signal_host CONT 1
expect and_goes_on_afterwards flows 20000000
end
exit $((failures > 0))
