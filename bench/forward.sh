#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Routing without a kernel: the router's worker against a small l3fwd of ours over DPDK's rte_lpm,
# rte_fib and rte_fib6, with the same routes, packets, source and sink (bench/forward_stream.h), and
# two workers against one. What two CPUs of this machine can do at all says the same for two processes
# of one worker, which share nothing but the machine: ours, and the l3fwd's. All programs of a comparison are loaded once and measure in turns; they
# must route the stream alike.
#
#   "all" is cycles a packet with source and sink, and the ratio is of it; "net" is less what source
#   and sink take alone. `plain` and `checked`: see peer_l3fwd.c.
#
#   DPDK_PC   pkg-config directories of DPDK builds, separated by spaces; "system" is what
#             pkg-config finds by itself (system)
#   FAMILIES  "4 6"
#   ROUTES    "16 1000 1000000"
#   MEMORY    MB of huge pages (5000; rte_fib6 needs 3 GB for a million routes)
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/lib.sh
DPDK_PC=${DPDK_PC:-system}
FAMILIES=${FAMILIES:-4 6}
ROUTES=${ROUTES:-16 1000 1000000}
MEMORY=${MEMORY:-5000}
BUILD=$(dirname "$HOLDOFF")
FORWARD=$BUILD/bench/bench_forward
cpu=$(($(nproc) - 1))
declare -A to from pid answers
TESTPMD=
bench_machine
bench_huge_pages $((MEMORY / 2))
bench_distance

# start NAME COMMAND...: loads its tables, and says what its answers to the stream add up to.
start() {
	local name=$1 word rest in out
	shift
	mkfifo "$bench_tmp/$name.in" "$bench_tmp/$name.out"
	bench_rt "$@" <"$bench_tmp/$name.in" >"$bench_tmp/$name.out" 2>"$bench_tmp/$name.log" &
	pid[$name]=$!
	exec {in}>"$bench_tmp/$name.in" {out}<"$bench_tmp/$name.out"
	to[$name]=$in from[$name]=$out
	while read -r word rest <&"$out"; do
		[ "$word" = ready ] || continue
		answers[$name]=$rest
		return 0
	done
	tail -n 5 "$bench_tmp/$name.log"
	exit 1
}

# ask NAME WAY RECORD: one measurement.
ask() {
	local all net rate
	echo "$2" >&"${to[$1]}"
	read -r all net rate <&"${from[$1]}"
	bench_record "$3_all" "$all"
	bench_record "$3_net" "$net"
	bench_record "$3_rate" "$rate"
}

# ask_both NAME1 NAME2 WAY RECORD: at the same time; the sum of their rates.
ask_both() {
	local all net rate sum=0 name
	for name in "$1" "$2"; do echo "$3" >&"${to[$name]}"; done
	for name in "$1" "$2"; do
		read -r all net rate <&"${from[$name]}"
		sum=$(awk -v a="$sum" -v b="$rate" 'BEGIN {print a + b}')
	done
	bench_record "$4_rate" "$sum"
}

# times RECORD RECORD: the second one's rate to the first one's.
times() {
	awk -v a="$(bench_median "$1_rate")" -v b="$(bench_median "$2_rate")" 'BEGIN {printf "%.2f", b / a}'
}

stop() {
	local name in out
	for name in "$@"; do
		in=${to[$name]} out=${from[$name]}
		exec {in}>&- {out}<&-
	done
	# One that was started later has the descriptors of the earlier ones, too: all are closed now.
	for name in "$@"; do
		wait "${pid[$name]}" || true
		rm -f "$bench_tmp/$name".*
	done
}

same_answers() {
	local name
	for name in "$@"; do
		[ "${answers[$name]}" = "${answers[$1]}" ] && continue
		echo "$1 and $name do not route alike"
		exit 1
	done
}

# row LABEL RECORD [OURS]: medians and spread, and how much faster than it OURS is.
row() {
	local all net range ratio=
	all=$(bench_median "$2_all") net=$(bench_median "$2_net")
	range=$(sort -g "$bench_tmp/$2_all" | awk 'NR == 1 {a = $1} {b = $1} END {print a ".." b}')
	[ $# -ge 3 ] && ratio=$(awk -v a="$all" -v b="$(bench_median "$3_all")" \
		'BEGIN {printf "holdoff %.2f x", a / b}')
	printf '%-24s all %7.1f (%s)  net %7.1f  %s\n' "$1" "$all" "$range" "$net" "$ratio"
}

compare() {
	local family=$1 routes=$2 methods=$3 method way round
	start holdoff taskset -c "$cpu" "$FORWARD" "$family" "$routes" "$SECONDS_EACH"
	for method in $methods; do
		start "$method" "$bench_tmp/peer_l3fwd" "$family" "$method" "$routes" "$SECONDS_EACH" \
			-l "$cpu" --no-pci --no-telemetry --in-memory --force-max-simd-bitwidth=512 \
			--file-prefix "l3fwd$$$method"
	done
	# shellcheck disable=SC2086
	same_answers holdoff $methods
	rm -f "$bench_tmp"/r_*
	for ((round = 1; round <= ROUNDS; round++)); do
		ask holdoff all r_holdoff
		for method in $methods; do
			for way in plain checked; do ask "$method" "$way" "r_${method}_$way"; done
		done
	done
	echo "--- IPv$family, $routes routes"
	row holdoff r_holdoff
	for method in $methods; do
		for way in plain checked; do row "$method, $way" "r_${method}_$way" r_holdoff; done
	done
	# shellcheck disable=SC2086
	stop holdoff $methods
}

workers() {
	local family=$1 routes=$2 round
	start one "$FORWARD" "$family" "$routes" "$SECONDS_EACH" 1
	start two "$FORWARD" "$family" "$routes" "$SECONDS_EACH" 2
	start other "$FORWARD" "$family" "$routes" "$SECONDS_EACH" 1 $((cpu - 1))
	rm -f "$bench_tmp"/r_*
	for ((round = 1; round <= ROUNDS; round++)); do
		ask one all r_one
		ask two all r_two
		ask_both one other all r_both
	done
	echo "--- IPv$family, $routes routes: packets per 1000 cycles of one and of two workers:" \
		"$(bench_median r_one_rate) $(bench_median r_two_rate)," \
		"$(times r_one r_two) x; two processes $(bench_median r_both_rate)," \
		"$(times r_one r_both) x"
	stop one two other
}

# The same two processes of the l3fwd, by its first method.
peer_pair() {
	local family=$1 routes=$2 method=$3 round core name=one
	for core in "$cpu" $((cpu - 1)); do
		start "$name" "$bench_tmp/peer_l3fwd" "$family" "$method" "$routes" "$SECONDS_EACH" \
			-l "$core" --no-pci --no-telemetry --in-memory --force-max-simd-bitwidth=512 \
			--file-prefix "l3fwd$$$core"
		name=other
	done
	rm -f "$bench_tmp"/r_*
	for ((round = 1; round <= ROUNDS; round++)); do
		ask one checked r_one
		ask_both one other checked r_both
	done
	echo "--- IPv$family, $routes routes: packets per 1000 cycles of one and of two $method l3fwds:" \
		"$(bench_median r_one_rate) $(bench_median r_both_rate), $(times r_one r_both) x"
	stop one other
}

if [ "$cpu" -gt 0 ]; then
	for family in $FAMILIES; do
		for routes in $ROUTES; do workers "$family" "$routes"; done
	done
fi
found=0
for pc in $DPDK_PC; do
	bench_dpdk_peer "$pc" peer_l3fwd || continue
	found=1
	for family in $FAMILIES; do
		for routes in $ROUTES; do
			compare "$family" "$routes" "$([ "$family" = 4 ] && echo lpm fib || echo fib)"
			# Two large tables of rte_fib6 would need twice the memory.
			[ "$cpu" = 0 ] || [[ $family = 6 && $routes -gt 100000 ]] ||
				peer_pair "$family" "$routes" fib
		done
	done
done
[ "$found" = 1 ] || { echo "skipped: no DPDK to compare with"; exit 77; }
