#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# memif: against testpmd's memif, the same jobs in turns, in one run. One end on each of two CPUs.
#
#   one way    sender -> memif -> receiver: each of the two is testpmd (txonly, rxonly) or holdoff
#              (memif_peer, which does the same over the library)
#   copy       the client copies; zero copy: the client's packet memory is the shared memory. The
#              client sends in all of them.
#
# The rate is what the receiver counts. testpmd can die of a segmentation fault; a round without a
# rate is said, is left out, and the exit status is 1. Ratios are to testpmd at both ends with the same way of
# copying. testpmd's zero-copy client needs huge pages (--single-file-segments).
#
#   PAIRS   which pairings: of "hh tt ht th", h = holdoff, t = testpmd, the sender first (all)
. "$(dirname "$0")/lib.sh"
PAIRS=${PAIRS:-hh tt ht th}
PEER=${PEER:-$(dirname "$HOLDOFF")/bench/memif_peer}
bench_need python3
[ -x "$PEER" ] || { echo "skipped: no $PEER"; exit 77; }
bench_huge_pages 600
bench_machine
sock=holdoff-bench-$$
failed=0
# Its start takes seconds, and of its statistics the first two and the last are left out.
limit=$((SECONDS_EACH + 10))

# testpmd BINARY CPUS PREFIX ROLE OPTIONS MODE: prints its statistics each second; ends by itself.
# Both CPUs are in the list: the first is for its main thread, which sleeps, the last forwards.
testpmd() {
	timeout -s INT -k 3 "$limit" "$1" --lcores "$2" --no-pci --no-telemetry --in-memory \
		--single-file-segments -m 256 --file-prefix "$sock$3" \
		--vdev="net_memif0,socket=$sock,role=$4$5" -- --stats-period=1 --nb-cores=1 \
		--total-num-mbufs=16384 --forward-mode="$6" </dev/null 2>/dev/null
}

# The median of the seconds of a testpmd receiver, without the first two and the last.
seconds_median() {
	awk '$1 == "Rx-pps:" && $2 > 0 {v[n++] = $2} END {
		for (i = 2; i < n - 1; i++) s[k++] = v[i]
		for (i = 0; i < k; i++) for (j = i + 1; j < k; j++) if (s[j] < s[i]) {t = s[i]; s[i] = s[j]; s[j] = t}
		print k ? s[int(k / 2)] : 0}'
}

field() { python3 -c 'import json, sys; print(json.load(sys.stdin)["pps"])'; }

# one_way RECORD SENDER RECEIVER ZERO_COPY: each of the two is a testpmd binary or "holdoff".
one_way() {
	local zc_dpdk= zc_ours= rate
	[ "$4" = yes ] && zc_dpdk=,zero-copy=yes zc_ours=,zero_copy
	# The server, which receives, comes first: testpmd's client does not try twice.
	if [ "$3" = holdoff ]; then
		timeout -k 3 "$limit" "$PEER" rx "memif:@$sock,role=server,wait=10s" -c 1 -w 1 -t "$SECONDS_EACH" -l \
			>"$bench_tmp/out" 2>/dev/null &
	else
		testpmd "$3" "0@0,1@1" r server "" rxonly >"$bench_tmp/out" &
	fi
	local receiver=$!
	for _ in $(seq 100); do grep -q "@$sock" /proc/net/unix && break; sleep 0.1; done
	if [ "$2" = holdoff ]; then
		timeout -s INT -k 3 "$limit" "$PEER" tx "memif:@$sock,wait=10s$zc_ours" -c 0 -l >/dev/null 2>&1 &
	else
		testpmd "$2" "0@1,1@0" s client "$zc_dpdk" txonly >/dev/null &
	fi
	local sender=$!
	# Not before packets flow: while the link comes up their other threads need the CPUs.
	for _ in $(seq 40); do
		[ "$2$3" = holdoffholdoff ] && break
		sleep 0.2
		[ "$3" = holdoff ] || grep -q 'Rx-pps: *[1-9]' "$bench_tmp/out" && break
	done
	sleep 0.2
	bench_boost "$sock"
	wait "$receiver"
	kill "$sender" 2>/dev/null
	wait "$sender"
	if [ "$3" = holdoff ]; then rate=$(field <"$bench_tmp/out"); else rate=$(seconds_median <"$bench_tmp/out"); fi
	# A measurement that did not take place is not a rate of 0.
	if [ "${rate%%.*}" -gt 0 ]; then
		bench_record "$1" "$rate"
	else
		echo "$1: $2 -> $3 gave no rate" >&2
		failed=1
	fi
}

wanted() { case " $PAIRS " in *" $1 "*) true ;; *) false ;; esac; }
for _ in $(seq "$ROUNDS"); do
	bench_distance
	for zc in no yes; do
		wanted hh && one_way "hh.$zc" holdoff holdoff $zc
		i=0
		for t in $TESTPMD; do
			wanted tt && one_way "tt$i.$zc" "$t" "$t" $zc
			wanted ht && one_way "ht$i.$zc" holdoff "$t" $zc
			wanted th && one_way "th$i.$zc" "$t" holdoff $zc
			i=$((i + 1))
		done
	done
done
i=0
for t in $TESTPMD; do
	for zc in no yes; do
		echo "client copies: $([ $zc = no ] && echo yes || echo 'no, zero copy'); peer $t"
		wanted tt || continue
		bench_row "  testpmd -> testpmd" "tt$i.$zc"
		wanted ht && bench_row "  holdoff -> testpmd" "ht$i.$zc" "tt$i.$zc"
		wanted th && bench_row "  testpmd -> holdoff" "th$i.$zc" "tt$i.$zc"
		wanted hh && bench_row "  holdoff -> holdoff" "hh.$zc" "tt$i.$zc"
	done
	i=$((i + 1))
done
exit $failed
