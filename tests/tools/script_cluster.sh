#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# tools/cluster: hosts that are hosts of their own, wires that count and limit,
# and nothing left behind.
set -u

# shellcheck source=tests/support/expect.sh
. "$(dirname "$0")/../support/expect.sh"
cd "$(dirname "$0")/../.." || exit 2
# One name for each folder of sources: a run that broke off is cleaned up by the next
# one, and those of others are left alone.
own=t$(pwd -P | cksum | cut -c 1-9 | tr -dc 0-9)
cluster() { tools/cluster --name "$own" "$@"; }

expect cluster_bad_usage_is_refused ends_with 2 tools/cluster --name "$own"
if [ "$(id -u)" -ne 0 ]; then
  expect cluster_without_root_is_refused ends_with 2 cluster up
  echo "SKIP cluster: making hosts takes root"
  exit $((failures > 0))
fi

state_file=$(mktemp)
trap 'cluster down; rm -rf "$state_file" "$work"' EXIT
why=$(cluster up --hosts 2 --rate 100mbit --slots 2 2>&1)
rc=$?
if [ $rc -eq 77 ]; then
  echo "SKIP cluster: $why"
  exit $((failures > 0))
fi
[ $rc -eq 0 ] || echo "$why"
expect cluster_comes_up test $rc -eq 0
expect cluster_status_tells_shape test "$(cluster status)" = "cluster $own: 2 hosts x 2 slots at 100mbit"
expect cluster_bad_rate_is_refused ends_with 2 cluster up --rate fast
expect cluster_bad_offloads_are_refused ends_with 2 cluster up --offloads some
link_rate() { tc -n "lcomm-$own-host$1" qdisc show dev eth0 | sed -nE 's/.* rate ([^ ]+) .*/\1/p'; }
cluster link 1 30mbit
expect cluster_gives_one_host_another_link test "$(link_rate 0) $(link_rate 1)" = "100Mbit 30Mbit"
cluster up --hosts 2 --rate 100mbit --slots 2 >/dev/null
expect cluster_up_makes_all_links_alike test "$(link_rate 0) $(link_rate 1)" = "100Mbit 100Mbit"
expect cluster_link_of_no_host_is_refused ends_with 2 cluster link 2 30mbit
expect cluster_link_of_a_bad_rate_is_refused ends_with 2 cluster link 1 fast
# segments TCP may hand over at once
segments() { cluster exec "$1" ip -d link show eth0 2>/dev/null | sed -nE 's/.*gso_max_segs ([0-9]+).*/\1/p'; }
expect cluster_offloads_are_on test "$(segments 0)" -gt 1

expect cluster_hosts_have_names_of_their_own \
  test "$(cluster exec 0 hostname) $(cluster exec 1 hostname)" = "host0 host1"
cluster exec 0 touch /dev/shm/libcomm-test-$$
expect cluster_hosts_share_no_memory cluster exec 0 test -e /dev/shm/libcomm-test-$$
expect cluster_hosts_see_no_other_memory cluster exec 1 test ! -e /dev/shm/libcomm-test-$$
expect cluster_machine_sees_no_host_memory test ! -e /dev/shm/libcomm-test-$$
# no default route, so nothing outside can be reached
expect cluster_hosts_reach_only_each_other test -z "$(cluster exec 0 ip route show default)"

if command -v mpirun >/dev/null; then
  names=$(cluster run -- hostname | sort | tr '\n' ' ')
  expect cluster_runs_slots_on_every_host test "$names" = "host0 host0 host1 host1 "
  first=$(cluster run -np 2 -- hostname | sort | tr '\n' ' ')
  expect cluster_ranks_of_a_host_are_adjacent test "$first" = "host0 host0 "
  expect cluster_tells_programs_of_the_links test "$(cluster run -np 1 -- printenv CLUSTER_RATE CLUSTER_DELAY_MS | tr '\n' ' ')" = "100mbit 0 "
  expect cluster_status_of_the_program_is_passed_on ends_with 3 cluster run -np 1 -- sh -c 'exit 3'
else
  echo "SKIP cluster_run: there is no mpirun"
fi

cluster bytes --reset
tx() { cluster bytes | awk -v h="$1" '$1 == h { print $2 }'; }
# column NUMBER: of host0
column() { cluster bytes | awk -v n="$1" '$1 == "host0" { print $n }'; }
if [ -x "${BUILD:-none}/tools/allreduce_perf" ]; then
  cluster run -- "$PWD/$BUILD/tools/allreduce_perf" -b 1000000 -n 1 -w 0 -p '' >/dev/null
  # two hosts exchange one whole vector: one megabyte from each, and headers
  sent=$(tx host0)
  expect cluster_counts_bytes_on_the_wire test "$sent" -gt 1000000
  expect cluster_counts_little_else test "$sent" -lt 1300000
  # a packet has 66 bytes of headers and at most 1448 of payload
  expect cluster_counts_the_packets_that_a_wire_carries \
    test "$(($(column 3) * 1514))" -ge "$sent" -a "$((sent - 66 * $(column 3)))" -gt 1000000
  expect cluster_counts_what_is_received_likewise test "$(column 4)" -gt 1000000 -a "$(($(column 5) * 1514))" -ge "$(column 4)"
  cluster up --hosts 2 --rate 100mbit --offloads off >/dev/null
  cluster run -- "$PWD/$BUILD/tools/allreduce_perf" -b 1000000 -n 1 -w 0 -p '' >/dev/null
  expect cluster_counts_the_same_without_offloads \
    test "$(column 2)" -gt $((sent * 97 / 100)) -a "$(column 2)" -lt $((sent * 110 / 100))
else
  echo "SKIP cluster_counts_bytes_on_the_wire: no allreduce_perf in \$BUILD"
fi
json_of_bytes() {
  cluster bytes --json | python3 -c 'import json, sys
it = json.load(sys.stdin)
origin = it["origin"]
assert all(origin[key] for key in ("version", "commit", "date", "machine", "host", "interface")), origin
assert origin["hosts"] == 2 and origin["rate"] == "100mbit" and origin["delay_ms"] == 0, origin
assert [host["host"] for host in it["hosts"]] == ["host0", "host1"] and it["hosts"][0]["tx_bytes"] > 1000000, it'
}
if [ -x "${BUILD:-none}/tools/allreduce_perf" ] && command -v python3 >/dev/null; then
  expect cluster_json_says_where_it_comes_from json_of_bytes
fi
expect cluster_reset_counts_from_zero test "$(cluster bytes --reset && tx host1)" -lt 1000

cluster up --hosts 2 --rate 100mbit --offloads off >/dev/null
expect cluster_offloads_go_off_in_place test "$(segments 1)" = 1
cluster up --hosts 2 --rate 100mbit >/dev/null
expect cluster_offloads_come_back test "$(segments 1)" -gt 1
expect cluster_up_again_keeps_hosts cluster exec 0 test -e /dev/shm/libcomm-test-$$
cluster up --hosts 2 --rate 50mbit >/dev/null
expect cluster_rate_changes_in_place cluster exec 0 test -e /dev/shm/libcomm-test-$$
expect cluster_new_rate_holds grep -q 50Mbit <(tc -n "lcomm-$own-host1" qdisc show dev eth0)
cluster up --hosts 3 --slots 1 >/dev/null
expect cluster_grows test "$(cluster exec 2 hostname)" = host2

# racks: what a host sends to those of other racks has a rate of its own
expect cluster_racks_without_an_uplink_are_refused ends_with 2 cluster up --racks 2
expect cluster_an_uplink_without_racks_is_refused ends_with 2 cluster up --uplink 50mbit
expect cluster_more_racks_than_hosts_are_refused ends_with 2 cluster up --hosts 2 --racks 3 --uplink 50mbit
cluster up --hosts 3 --slots 1 --rate 100mbit --racks 2 --uplink 20mbit >/dev/null
expect cluster_status_tells_the_racks test "$(cluster status)" = \
  "cluster $own: 3 hosts x 1 slots at 100mbit, 2 racks with 20mbit from a host to the others"
rates() { tc -n "lcomm-$own-host$1" class show dev eth0 | sed -nE 's/.*class htb (1:[12]0) .* rate ([^ ]+) .*/\1 \2/p' | sort | tr '\n' ' '; }
slow() { tc -n "lcomm-$own-host$1" filter show dev eth0 | grep -c 'flowid 1:20'; }
expect cluster_hosts_of_a_rack_keep_their_rate test "$(rates 0)" = "1:10 100Mbit 1:20 20Mbit "
expect cluster_hosts_of_other_racks_are_slower test "$(slow 0) $(slow 1) $(slow 2)" = "1 1 2"
if command -v mpirun >/dev/null; then
  # shellcheck disable=SC2016 # the hosts expand it
  expect cluster_tells_programs_of_their_rack test "$(cluster run -- sh -c 'echo $(hostname) $CLUSTER_RACK' | sort | tr '\n' ' ')" = "host0 r0 host1 r0 host2 r1 "
fi
expect cluster_racks_beside_rails_are_refused ends_with 2 cluster up --racks 2 --uplink 20mbit --rails 2
cluster up --hosts 3 --slots 1 --rate 100mbit >/dev/null
expect cluster_racks_go_away_in_place test "$(rates 0)$(cluster status)" = "cluster $own: 3 hosts x 1 slots at 100mbit"

# rails: a host has several cards, each in a network of its own and at the rate
expect cluster_too_many_rails_are_refused ends_with 2 cluster up --rails 9
expect cluster_rails_beside_a_delay_are_refused ends_with 2 cluster up --rails 2 --delay 20ms
cluster up --hosts 2 --slots 1 --rate 100mbit --rails 2 >/dev/null
expect cluster_status_tells_the_rails test "$(cluster status)" = "cluster $own: 2 hosts x 1 slots at 100mbit a card, 2 cards a host"
card_rate() { tc -n "lcomm-$own-host$1" qdisc show dev "eth$2" | sed -nE 's/.* rate ([^ ]+) .*/\1/p'; }
expect cluster_all_cards_have_the_rate test "$(card_rate 0 0) $(card_rate 1 0) $(card_rate 0 1) $(card_rate 1 1)" = "100Mbit 100Mbit 100Mbit 100Mbit"
cluster link 1 30mbit
expect cluster_another_link_is_that_of_all_cards test "$(card_rate 0 1) $(card_rate 1 0) $(card_rate 1 1)" = "100Mbit 30Mbit 30Mbit"
# knocks HOST ADDRESS: there is a host that answers, if only that nobody listens
knocks() {
  cluster exec "$1" timeout 5 bash -c "exec 3<>/dev/tcp/$2/9" 2>/dev/null
  [ $? -eq 1 ]
}
expect cluster_each_rail_leads_to_the_other_host eval 'knocks 0 10.77.0.2 && knocks 0 10.77.1.2'
cluster bytes --reset
for card in 0 1; do
  cluster exec 0 bash -c "for ((i = 0; i < 100; i++)); do head -c 1000 /dev/zero >/dev/udp/10.77.$card.2/9; done" 2>/dev/null
done
expect cluster_counts_bytes_of_all_cards test "$(tx host0)" -gt 200000 -a "$(tx host0)" -lt 250000
cluster up --hosts 2 --slots 1 --rate 100mbit >/dev/null
expect cluster_rails_go_away test "$(cluster status)$(cluster exec 0 ls /sys/class/net)" = "cluster $own: 2 hosts x 1 slots at 100mbiteth0
lo"

# long links: a frame takes its time there, and the wire still counts and carries
expect cluster_bad_delay_is_refused ends_with 2 cluster up --delay soon
expect cluster_too_long_a_delay_is_refused ends_with 2 cluster up --delay 11s
if [ -x "${BUILD:-none}/tools/allreduce_perf" ] && [ -x build/latest/tools/cluster_delay ]; then
  cluster up --hosts 2 --slots 1 --rate 1gbit --delay 20ms >/dev/null
  expect cluster_status_tells_the_delay \
    test "$(cluster status)" = "cluster $own: 2 hosts x 1 slots at 1gbit, 20 ms from host to host"
  cluster run -- "$PWD/$BUILD/tools/allreduce_perf" -b 8 -n 3 -p '' -c >"$state_file" 2>&1
  # whoever calls last, somebody waits for a frame that left after its own call
  expect cluster_frames_take_their_time awk '$1 == 8 { found = 1; bad = $6 < 20000 } END { exit !found || bad }' "$state_file"
  expect cluster_results_are_right_over_long_links grep -qE '^ +8 .* 0$' "$state_file"
  cluster bytes --reset
  cluster run -- "$PWD/$BUILD/tools/allreduce_perf" -b 1000000 -n 1 -w 0 -p '' >/dev/null
  expect cluster_long_links_count_bytes test "$(tx host0)" -gt 1000000 -a "$(tx host0)" -lt 1300000
  holder=$(for pid in $(ip netns pids "lcomm-$own-switch"); do
    [ "$(cat "/proc/$pid/comm")" != cluster_delay ] || echo "$pid"
  done)
  kill -KILL "$holder"
  while kill -0 "$holder" 2>/dev/null && [ -n "$(ip netns pids "lcomm-$own-switch")" ]; do sleep 0.1; done
  expect cluster_a_lost_delay_is_noticed ends_with 1 cluster status
  cluster up --hosts 2 --slots 1 --rate 1gbit >/dev/null
  expect cluster_delay_goes_off test "$(cluster status)" = "cluster $own: 2 hosts x 1 slots at 1gbit"
else
  for property in cluster_status_tells_the_delay cluster_frames_take_their_time cluster_results_are_right_over_long_links \
    cluster_long_links_count_bytes cluster_a_lost_delay_is_noticed cluster_delay_goes_off; do
    echo "SKIP $property: no allreduce_perf or cluster_delay is built"
  done
fi
cluster up --hosts 3 --slots 1 >/dev/null

# what a crash leaves: a namespace gone, a process that lingers
cluster exec 1 sleep 1000 2>/dev/null &
until [ -n "$(ip netns pids "lcomm-$own-host1")" ] || ! kill -0 $!; do sleep 0.1; done
ip netns delete "lcomm-$own-host2"
expect cluster_damage_is_noticed ends_with 1 cluster status
cluster up --hosts 2 >/dev/null
expect cluster_up_repairs_damage test "$(cluster status | cut -d' ' -f3)" = 2
expect cluster_leftover_process_is_killed ends_with 137 wait $!
cluster down
expect cluster_down_leaves_no_namespace test -z "$(ip netns list | grep "lcomm-$own-")"
expect cluster_down_leaves_no_mount test -z "$(grep "libcomm-cluster/$own" /proc/mounts)"
expect cluster_down_twice_is_fine cluster down
expect cluster_is_down ends_with 1 cluster status
exit $((failures > 0))
