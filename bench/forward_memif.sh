#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Routing between two memif interfaces, IPv4 frames of 60 bytes (64 with FCS), both ways at once.
# testpmd is source and sink (flowgen: 1,024 destinations from 10.253.0.0 on; what comes back is
# counted and freed).
#
#   testpmd flowgen, CPU 0                         router, the last CPU
#     net_memif0 ---------- socket, id 0 ----------
#     net_memif1 ---------- socket, id 1 ----------
#
#   holdoff   holdoff forward -f: 16 routes /26, by one static neighbour behind each interface
#   lpm, fib  our small l3fwd over rte_lpm or rte_fib (peer_l3fwd.c), the same routes and checks
#   plain     the same over rte_lpm, without header checksum and source address
#   mac       testpmd's mac mode: it writes the addresses and looks nothing up
#
# Who copies: of memif's two ends the client owns the memory, and may leave out its copies.
#
#   router     the router, both ways; the generator is a client without copies
#   both       the router is a client
#   generator  the router is a client without copies
#
# The rate is what the sink receives, the median of SECONDS_EACH seconds in the middle. "cost" is the
# median of the router's own full bursts, in cycles a packet. "busy" is the rate times the cost:
# where it is much less than 1 the router waited, the generator was the limit, and the ratio of the
# rates says little: that of the costs compares the routers.
#
#   DPDK_PC    as in forward.sh (system); TESTPMD's first build generates, and is `mac`
#   PEERS      of "holdoff lpm fib plain mac" (holdoff lpm mac)
#   COPIES     "router both generator"
. "$(dirname "$0")/lib.sh"
DPDK_PC=${DPDK_PC:-system}
PEERS=${PEERS:-holdoff lpm mac}
COPIES=${COPIES:-router both generator}
TESTPMD=${TESTPMD%% *}
bench_need python3 "$TESTPMD"
cpu=$(($(nproc) - 1))
[ "$cpu" -gt 0 ] || { echo "skipped: one CPU"; exit 77; }
bench_huge_pages 600
bench_machine
bench_dpdk_peer "${DPDK_PC%% *}" peer_l3fwd net_memif bus_vdev ||
	PEERS=$(echo " $PEERS " | sed 's/ lpm / /; s/ fib / /; s/ plain / /')
sock=holdoff-fmemif-$$
limit=$((SECONDS_EACH + 20))
failed=0

# What the two ends are. testpmd's client without copies needs its memory in one file.
# shellcheck disable=SC2054
declare -A router_is=([router]=server [both]=client [generator]=client,zero-copy=yes)
# shellcheck disable=SC2054
declare -A generator_is=([router]=client,zero-copy=yes [both]=server [generator]=server)

# dpdk CPU ROLE: the EAL's options of one end, in `eal`. The main thread is on the other CPU and
# sleeps.
dpdk() {
	local i
	eal=(--lcores "0@$((cpu - $1)),1@$1" --no-pci --no-telemetry --in-memory --single-file-segments
		-m 256 --file-prefix "$sock.$1")
	for i in 0 1; do eal+=("--vdev=net_memif$i,socket=$sock,id=$i,role=$2"); done
}

# The following replace the subshell that runs them, so that its id is theirs.
testpmd() {
	dpdk "$1" "$2"
	shift 2
	exec timeout -k 3 "$limit" "$TESTPMD" "${eal[@]}" -- --stats-period=1 --nb-cores=1 \
		--total-num-mbufs=16384 --disable-link-check "$@" </dev/null 2>/dev/null
}
l3fwd() {
	dpdk "$cpu" "$1"
	exec timeout -k 3 "$limit" "$bench_tmp/peer_l3fwd" ports "$2" "$3" "$limit" "${eal[@]}" \
		--force-max-simd-bitwidth=512 2>/dev/null
}
configure() {
	local i
	echo "ports:"
	for i in 0 1; do echo "  - {name: m$i, open: \"memif:@$sock,id=$i,wait=10s,role=${1/-/_}\"}"; done
	# flowgen sends to this address on both of its ports.
	echo "interfaces:"
	for i in 0 1; do
		echo "  - {port: m$i, mac: \"00:01:02:03:04:01\", addresses: [198.18.$i.1/24],"
		echo "     neighbours: [{address: 198.18.$i.2, mac: \"02:00:00:00:02:0$i\"}]}"
	done
	echo "routes:"
	for i in $(seq 0 15); do
		echo "  - {to: 10.253.$((i / 4)).$((i % 4 * 64))/26, via: 198.18.$((i % 2)).2}"
	done
}
generator() { testpmd 0 "$1" --forward-mode=flowgen; }
router() {
	case $1 in
	holdoff)
		configure "${2%=yes}" >"$bench_tmp/$sock.yaml"
		exec timeout -k 3 "$limit" "$HOLDOFF" forward -f "$bench_tmp/$sock.yaml" --cpu="$cpu" -j
		;;
	lpm | fib) l3fwd "$2" "$1" checked ;;
	plain) l3fwd "$2" lpm plain ;;
	mac) testpmd "$cpu" "$2" --forward-mode=mac ;;
	esac
}

blocks() { grep -c 'Port statistics' "$bench_tmp/sink"; }

# sink_median FIRST: of SECONDS_EACH seconds from the FIRST block on, the sum of both ports.
sink_median() {
	awk -v first="$1" -v count="$SECONDS_EACH" '
		/Port statistics/ {if (n >= first && n < first + count) print sum; n++; sum = 0}
		$1 == "Rx-pps:" {sum += $2}' "$bench_tmp/sink" |
		sort -g | awk '{v[NR] = $1} END {print NR ? v[int((NR + 1) / 2)] : 0}'
}

# cost ROUTER: its cost, or nothing when it dropped what it should have sent.
cost() {
	[ "$1" = mac ] && echo - && return
	python3 -c '
import json, sys
r = json.loads(sys.stdin.read().splitlines()[-1])
if "cycles" in r:
    print("" if r["dropped"] else r["cycles"])
else:
    wrong = set(r["drops"]) - {"tx_ring_full", "tx_link_down", "rx_closed"}
    print("" if wrong or not r["balanced"] else r["tsc_ticks_per_packet_full_bursts"])' <"$bench_tmp/router"
}

listening() {
	local i
	for i in $(seq 100); do grep -q "@$sock" /proc/net/unix && break; sleep 0.1; done
}

# one ROUTER COPIES. The server comes first: testpmd's client does not try twice.
one() {
	local generator router rate cycles first
	rm -f "$bench_tmp/sink" "$bench_tmp/router"
	if [ "$2" = router ]; then
		router "$1" "${router_is[$2]}" >"$bench_tmp/router" 2>&1 &
		router=$!
		listening
	fi
	generator "${generator_is[$2]}" >"$bench_tmp/sink" &
	generator=$!
	if [ "$2" != router ]; then
		listening
		router "$1" "${router_is[$2]}" >"$bench_tmp/router" 2>&1 &
		router=$!
	fi
	for _ in $(seq 50); do grep -q 'Rx-pps: *[1-9]' "$bench_tmp/sink" && break; sleep 0.2; done
	bench_boost "$sock"
	# One more that began before the priorities changed; the block after the last shows its end.
	first=$(($(blocks) + 2))
	for _ in $(seq $((10 * SECONDS_EACH + 100))); do
		[ "$(blocks)" -ge $((first + SECONDS_EACH)) ] && break
		sleep 0.1
	done
	# testpmd has said all that it is asked, and takes seconds to end.
	[ "$1" = mac ] && pkill -KILL -P "$router"
	kill "$router"
	wait "$router"
	pkill -KILL -P "$generator"
	wait "$generator"
	rate=$(sink_median "$first") cycles=$(cost "$1")
	if [ "${rate%%.*}" -gt 0 ] && [ -n "$cycles" ]; then
		bench_record "$1.$2" "$rate"
		bench_record "$1.$2.cost" "$cycles"
		echo "  $1, copies: $2: $rate pps, cost $cycles"
	else
		echo "$1, copies: $2: no rate ($rate) or no cost ($cycles)"
		tail -n 3 "$bench_tmp/router"
		failed=1
	fi
}

for _ in $(seq "$ROUNDS"); do
	bench_distance
	for way in $COPIES; do
		for peer in $PEERS; do one "$peer" "$way" 2>>"$bench_tmp/log"; done
	done
done
# ratio A B: of two medians.
ratio() { awk -v a="$(bench_median "$1")" -v b="$(bench_median "$2")" 'BEGIN {printf "%.2f", a / b}'; }

for way in $COPIES; do
	echo "copies: $way"
	for peer in $PEERS; do
		name=$peer.$way against='' cost=0
		[ -s "$bench_tmp/$name" ] || continue
		[ "$peer" = mac ] || cost=$(bench_median "$name.cost")
		if [ "$peer" != holdoff ] && [ -s "$bench_tmp/holdoff.$way" ]; then
			against="holdoff: rate $(ratio "holdoff.$way" "$name") x"
			[ "$peer" = mac ] || against+=", cost $(ratio "holdoff.$way.cost" "$name.cost") x"
		fi
		awk -v label="$peer" -v m="$(bench_median "$name")" -v spread="$(bench_spread "$name")" \
			-v c="$cost" -v hz="$(bench_tsc_hz)" -v r="$against" \
			-v costs="$(sort -g "$bench_tmp/$name.cost" | sed -n '1p;$p' | paste -sd' ')" '
			BEGIN {
				printf "  %-8s %7.3f Mpps (%s)  ", label, m / 1e6, spread
				split(costs, s, " ")
				if (c) printf "cost %6.2f (%s..%s)  busy %.2f  ", c, s[1], s[2], m * c / hz
				print r}'
	done
done
exit $failed
