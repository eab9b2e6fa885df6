#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# Hosts with several network cards: the ranks of a host share them out, and what goes through each is
# counted by the kernel. A card that is down, or leads nowhere, is left out, with one sentence, and
# sums are still right. On hosts of tools/cluster.
set -u

# shellcheck source=tests/support/expect.sh
. "$(dirname "$0")/../../support/expect.sh"
show_more() { tail -n 3 "$work"/out.*; }
cd "$(dirname "$0")/../../.." || exit 2
build=${BUILD:-$(make -s print-build)}
case $build in /*) ;; *) build=$PWD/$build ;; esac
# One name for each folder of sources: a run that broke off is cleaned up by the next
# one, and those of others are left alone.
own=r$(pwd -P | cksum | cut -c 1-9 | tr -dc 0-9)
cluster() { tools/cluster --name "$own" "$@"; }
switch=lcomm-$own-switch
PATH=$PATH:/usr/sbin:/sbin

if [ "$(id -u)" -ne 0 ]; then
  echo "SKIP rails: making hosts takes root"
  exit 0
fi
trap 'cluster down; rm -rf "$work"' EXIT
hosts=3
why=$(cluster up --hosts $hosts --rate 1gbit --slots 2 --rails 3 2>&1)
if [ $? -ne 0 ]; then
  echo "SKIP rails: $why"
  exit 0
fi

# sums RANKS_OF_A_HOST [VARIABLE=VALUE...]: ranks check their sums; what they say is in out.RANK
sums() {
  local slots=$1 rank statuses=0 ranks=()
  shift
  rm -f "$work"/out.*
  next_port
  for ((rank = 0; rank < hosts * slots; rank++)); do
    cluster exec $((rank / slots)) env RANK=$rank WORLD_SIZE=$((hosts * slots)) MASTER_ADDR=10.77.0.1 \
      MASTER_PORT="$port" LCOMM_TRANSPORT=shm,ucx LCOMM_UCX_TLS=tcp "$@" timeout -k 5 "$limit" \
      "$build/tools/allreduce_perf" --boot env -b 8M -n 2 -w 0 --batch 1 -c >"$work/out.$rank" 2>&1 &
    ranks+=($!)
  done
  for rank in "${ranks[@]}"; do
    wait "$rank" || statuses=1
  done
  return $statuses
}

# counters: what each card has sent, a line for each
counters() {
  local host card
  for ((host = 0; host < hosts; host++)); do
    for card in eth0 eth1 eth2; do
      echo "host$host $card $(cluster exec "$host" cat /sys/class/net/$card/statistics/tx_bytes)"
    done
  done
}

# sums_through CARD=PERCENT... -- SUMS...: so much of what each host sends leaves it through these
# cards, give or take five percent: beginning and end go over the first one
sums_through() {
  local wanted=()
  while [ "$1" != -- ]; do
    wanted+=("$1")
    shift
  done
  shift
  counters >"$work/before"
  sums "$@" || return 1
  counters >"$work/after"
  paste -d ' ' "$work/before" "$work/after" | awk -v wanted="${wanted[*]}" '
    { sent[$1, $2] = $6 - $3; all[$1] += $6 - $3 }
    END {
      n = split(wanted, word)
      for (host in all)
        for (i = 1; i <= n; i++) {
          split(word[i], part, "=")
          percent = 100 * sent[host, part[1]] / all[host]
          if (percent < part[2] - 5 || percent > part[2] + 5) {
            print host " sent " percent " % through " part[1] ", not " part[2]
            bad = 1
          }
        }
      exit bad
    }'
}

# says_once TEXT: of all ranks one says it, once
says_once() { [ "$(cat "$work"/out.* | grep -c "$1")" -eq 1 ]; }
says_nothing() { ! grep -h "^libcomm: " "$work"/out.*; }

expect two_ranks_of_a_host_share_two_cards sums_through eth0=50 eth1=50 eth2=0 -- 2 LCOMM_RAILS=eth0,eth1
expect nothing_is_said_where_all_cards_work says_nothing
expect three_ranks_of_a_host_share_three_cards sums_through eth0=33 eth1=33 eth2=33 -- 3
expect one_rail_is_one_card_for_all_ranks sums_through eth0=100 -- 2 LCOMM_RAILS=1
expect named_cards_are_the_only_ones sums_through eth0=0 eth1=50 eth2=50 -- 2 LCOMM_RAILS=eth1,eth2
expect a_device_for_ucx_comes_first sums_through eth2=100 -- 2 LCOMM_UCX_NET_DEVICES=eth2,lo LCOMM_RAILS=eth0

cluster exec 1 ip link set eth1 down
expect a_card_that_is_down_is_left_out sums_through eth0=50 eth1=0 eth2=50 -- 2
expect and_named_in_one_sentence says_once "network card eth1 (10.77.1.2) of host host1 is down or has no carrier"
cluster exec 1 ip link set eth1 up

ip -n "$switch" link set port1r1 down
expect a_card_without_a_carrier_is_left_out sums_through eth0=50 eth1=0 eth2=50 -- 2
expect its_carrier_is_missed_in_one_sentence says_once "eth1 (10.77.1.2) of host host1 is down or has no carrier"
ip -n "$switch" link set port1r1 up

cluster exec 1 ip route del 10.77.1.0/24
expect a_card_without_a_route_is_left_out sums_through eth0=50 eth1=0 eth2=50 -- 2 LCOMM_RAILS=eth0,eth1,eth2
expect and_its_host_is_named says_once "network card eth1 (10.77.1.2) of host host1 leads nowhere"
cluster exec 1 ip route add 10.77.1.0/24 dev eth1 src 10.77.1.2

ip -n "$switch" link set port2r1 nomaster
expect of_two_cards_one_is_left sums_through eth0=100 eth1=0 -- 2 LCOMM_RAILS=eth0,eth1
expect and_the_other_is_named says_once "network card eth1 (10.77.1.3) of host host2 leads nowhere"
ip -n "$switch" link set port2r2 nomaster
expect two_cards_that_lead_nowhere_leave_one sums_through eth0=100 -- 3
expect the_first_of_them_is_named says_once "network card eth1 (10.77.1.3) of host host2 leads nowhere"
expect the_second_of_them_is_named says_once "network card eth2 (10.77.2.3) of host host2 leads nowhere"
expect no_card_is_left ends_with 1 sums 1 LCOMM_RAILS=eth1,eth2
expect and_ranks_without_a_link_are_named grep -q "has no link to rank 2 (host host2)" "$work/out.0"
expect on_all_ranks grep -q "has no link to rank 2 (host host2)" "$work/out.2"
expect no_card_of_this_name ends_with 1 sums 1 LCOMM_RAILS=eth7
expect the_cards_that_there_are_are_told grep -q "LCOMM_RAILS=eth7 is neither auto, 1 nor all.*has eth0, eth1, eth2" "$work/out.1"
exit $((failures > 0))
