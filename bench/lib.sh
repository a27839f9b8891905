# SPDX-License-Identifier: BSD-2-Clause
# Sourced by the benches: medians, the machine's description, huge pages that are put back, and
# DPDK's testpmd as a peer.
#
#   HOLDOFF   our binary (build/holdoff)
#   TESTPMD   one or more testpmd binaries, separated by spaces (dpdk-testpmd of the Debian package);
#             a build of the same source for this CPU is the fairer peer
#   ROUNDS    rounds of each measurement (5); peers take turns within a round
#   SECONDS_EACH   length of one measurement (2)
#   BENCH_RT  1: threads that poll in user space run with real-time priority, ours and the peers'
#             alike, so that what else runs on a shared machine does not stop them. Both sides of a
#             ratio lose the same 5 % to the kernel's real-time throttling.

HOLDOFF=${HOLDOFF:-build/holdoff}
TESTPMD=${TESTPMD:-dpdk-testpmd}
ROUNDS=${ROUNDS:-5}
SECONDS_EACH=${SECONDS_EACH:-2}
BENCH_RT=${BENCH_RT:-}
bench_tmp=$(mktemp -d)
bench_huge_before=

bench_cleanup() {
	[ -n "$bench_huge_before" ] && echo "$bench_huge_before" >/proc/sys/vm/nr_hugepages
	rm -rf "$bench_tmp"
}
trap bench_cleanup EXIT
trap 'exit 130' INT TERM

# bench_need PROGRAM...: skips the bench when one is missing.
bench_need() {
	local program
	for program in "$@"; do
		command -v "$program" >/dev/null || { echo "skipped: no $program"; exit 77; }
	done
}

# bench_huge_pages N: at least N huge pages of 2 MB while the bench runs; says what there is.
bench_huge_pages() {
	local have
	have=$(cat /proc/sys/vm/nr_hugepages)
	if [ "$have" -lt "$1" ] && [ -w /proc/sys/vm/nr_hugepages ]; then
		bench_huge_before=$have
		echo "$1" >/proc/sys/vm/nr_hugepages
	fi
	echo "huge pages: $(cat /proc/sys/vm/nr_hugepages) of 2 MB"
}

bench_machine() {
	echo "date: $(date +%F); kernel $(uname -r); $(nproc) CPUs: $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)"
	echo "holdoff: $("$HOLDOFF" --version), $(cd "$(dirname "$HOLDOFF")/.." && git rev-parse --short HEAD 2>/dev/null)"
	local peer
	for peer in $TESTPMD; do
		command -v "$peer" >/dev/null && echo "testpmd: $peer ($("$peer" --version 2>&1 | tail -n 1))"
	done
}

# bench_record NAME VALUE; then bench_median NAME, bench_spread NAME ("min..max").
bench_record() { echo "$2" >>"$bench_tmp/$1"; }
bench_median() { sort -g "$bench_tmp/$1" | awk '{v[NR]=$1} END {print NR%2 ? v[(NR+1)/2] : (v[NR/2]+v[NR/2+1])/2}'; }
bench_spread() { sort -g "$bench_tmp/$1" | awk 'NR==1{a=$1} {b=$1} END {printf "%.4g..%.4g", a/1e6, b/1e6}'; }

# The time stamp counter's rate, for cycles a packet.
bench_tsc_hz() { sed -n 's/^cpu MHz.*: //p' /proc/cpuinfo | head -n 1 | awk '{printf "%.0f", $1 * 1e6}'; }

# bench_row LABEL NAME [PEER_NAME]: median, spread, cycles a packet, ratio to the peer.
bench_row() {
	local median ratio=
	median=$(bench_median "$2")
	[ $# -ge 3 ] && ratio=$(awk -v a="$median" -v b="$(bench_median "$3")" 'BEGIN {printf "%.2f", a / b}')
	awk -v label="$1" -v m="$median" -v spread="$(bench_spread "$2")" -v hz="$(bench_tsc_hz)" -v r="$ratio" \
		'BEGIN {printf "%-52s %9.3f Mpps  (%s)  %7.1f cycles/packet  %s\n", label, m / 1e6, spread, hz / m, r == "" ? "" : r " x"}'
}

# bench_rt COMMAND...: runs it, with real-time priority if asked for.
bench_rt() {
	if [ -n "$BENCH_RT" ]; then chrt -f 10 "$@"; else "$@"; fi
}

# bench_boost WORD: the main threads of memif_peer, the workers of DPDK's programs and those of the
# router that have WORD in their command line get real-time priority, if asked for. Their other
# threads must be able to run.
bench_boost() {
	local pid task
	[ -n "$BENCH_RT" ] || return 0
	for pid in $(pgrep -f -- "$1"); do
		for task in /proc/"$pid"/task/*; do
			case $(cat "$task/comm" 2>/dev/null) in
			rte-worker* | lcore-worker* | forward) chrt -f -p 10 "${task##*/}" ;;
			memif_peer) [ "${task##*/}" = "$pid" ] && chrt -f -p 10 "$pid" ;;
			esac
		done
	done 2>/dev/null
	return 0
}

# How far the CPUs that the benches use are from one another: it decides what packets between two
# processes cost, and the host of a virtual machine may change it at any time.
bench_distance() {
	local line
	line=$(dirname "$HOLDOFF")/bench/bench_line
	[ -x "$line" ] && "$line" 0 $(($(nproc) - 1))
	return 0
}

# bench_testpmd BINARY CPUS "EAL OPTIONS" "TESTPMD OPTIONS": runs it for SECONDS_EACH after a warm-up
# and prints the sum of the ports' Tx-pps (FIELD=Rx for receive), the median of its seconds.
bench_testpmd() {
	local binary=$1 cpus=$2 eal=$3 options=$4
	[ -n "$BENCH_RT" ] && for _ in 1 2 3; do sleep 1; bench_boost "prefix bench$$ "; done >/dev/null &
	# --stats-period prints a block a second, until the signal.
	timeout -s INT -k 5 $((SECONDS_EACH + 5)) "$binary" -l "$cpus" --no-pci --no-telemetry \
		--file-prefix "bench$$" $eal -- --stats-period=1 --nb-cores=1 $options 2>/dev/null </dev/null |
		awk -v field="${FIELD:-Tx}-pps:" '
			/Port statistics/ {if (n++) v[n - 1] = sum; sum = 0}
			$0 ~ field {for (i = 1; i < NF; i++) if ($i == field) sum += $(i + 1)}
			END {
				# The first two blocks are start and warm-up.
				k = 0
				for (i = 2; i < n; i++) if (v[i] > 0) s[k++] = v[i]
				for (i = 0; i < k; i++) for (j = i + 1; j < k; j++) if (s[j] < s[i]) {t = s[i]; s[i] = s[j]; s[j] = t}
				print k ? s[int(k / 2)] : 0
			}'
}

# bench_profile NAME CPU SECONDS: where that CPU's time goes, kernel and all, by a profile on the CPU
# clock; bench_profiles prints all of them.
bench_profile() {
	perf record -q -C "$2" -e cpu-clock -o "$bench_tmp/perf.$2" -- sleep "$3" >/dev/null 2>&1 &&
		perf report -i "$bench_tmp/perf.$2" --stdio --no-children -s comm,symbol 2>/dev/null |
		grep -v '^#' | grep . | head -n 12 >"$bench_tmp/profile.$1, CPU $2"
	rm -f "$bench_tmp/perf.$2"
}
bench_profiles() {
	local p
	for p in "$bench_tmp"/profile.*; do
		[ -e "$p" ] && { echo "-- ${p##*profile.}"; cat "$p"; }
	done
	return 0
}

# bench_dpdk_peer PC NAME [DRIVER...]: builds bench/NAME.c over a DPDK into $bench_tmp/NAME, and says
# which DPDK it is. PC: "system", or a folder with the pkg-config file of an installed or uninstalled
# build. DRIVER: net_memif and the like.
bench_dpdk_peer() {
	local path=${PKG_CONFIG_PATH:-} package=libdpdk ring run= name=$2 driver drivers=
	for driver in "${@:3}"; do drivers+=" -lrte_$driver"; done
	if [ "$1" != system ]; then
		path=$1
		[ -e "$1/libdpdk-uninstalled.pc" ] && package=libdpdk-uninstalled
	fi
	local -x PKG_CONFIG_PATH=$path
	pkg-config --exists "$package" || { echo "no DPDK by $1"; return 1; }
	echo "DPDK $(pkg-config --modversion "$package") by $1"
	# The ring of memory pools is a plug-in that nothing refers to.
	ring=$(pkg-config --variable=libdir "$package")
	if [ "$package" = libdpdk-uninstalled ]; then
		ring=$(pkg-config --variable=prefix "$package")/drivers
		run=-Wl,-rpath,$ring:${ring%/drivers}/lib
	fi
	# shellcheck disable=SC2046,SC2086
	cc -std=gnu17 -D_GNU_SOURCE -O3 -march=native -Isrc $(pkg-config --cflags "$package") \
		-o "$bench_tmp/$name" "bench/$name.c" "$(dirname "$HOLDOFF")/src/libholdoff.a" \
		-Wl,--no-as-needed -L"$ring" -lrte_mempool_ring $drivers $(pkg-config --libs "$package") $run \
		$(pkg-config --libs liburcu-qsbr) -lm -lpthread
}
