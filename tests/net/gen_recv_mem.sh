#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The commands gen, recv, rr and patch over ports that need no privileges:
#
#   gen ---> mem:a ====wire==== mem:a ---> receivers      all in one process
#   rr  <--> mem:a ====wire==== mem:a <--> server
#   patch    null: <---> null:
#
# Every run must balance, say so in the same JSON words, and end with the right status.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
holdoff=${HOLDOFF:-$top/build/holdoff}
command -v jq >/dev/null || { echo "skipped: jq is not installed"; exit 77; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0
bad() { echo "FAIL: $*"; failed=1; }

# run NAME STATUS JQ-CONDITION ARGS...: status and JSON of a run.
run() {
	local name=$1 status=$2 condition=$3 got
	shift 3
	timeout 120 "$holdoff" "$@" >"$tmp/out" 2>"$tmp/err"
	got=$?
	[ $got = "$status" ] || { bad "$name: status $got instead of $status"; cat "$tmp/err"; return; }
	[ "$(wc -l <"$tmp/out")" = 1 ] || bad "$name: not one line of JSON"
	jq -e "def queues(\$what): [.ports[].counters | to_entries[] | select(.key | test(\$what)).value] |
			add // 0;
		(.schema == 1) and .balanced and (.missing == 0) and
		(queues(\"^tx_queue_[0-9]+_packets\") == (.tx_packets // 0)) and
		(queues(\"^rx_queue_[0-9]+_bytes\") == (.rx_bytes // 0)) and
		(([.per_stream[]?.lost] | add // 0) == (.lost // 0)) and
		(.offered == .delivered + ([.drops[]] | add // 0) - .drops_of_others) and
		(.seconds >= 0) and ($condition)" "$tmp/out" >/dev/null ||
		{ bad "$name: $condition does not hold"; cat "$tmp/out"; }
}

# --- gen and recv in one process -----------------------------------------------------------------
words='has("tx_pps") and has("tx_bps") and has("rx_pps") and has("latency") and .command == "gen"'
run count 0 "$words and .offered == 1000000 and .delivered == 1000000 and .lost == 0 and
	.latency.count == 1000000 and .latency.min_ns <= .latency.p50_ns and
	.latency.p9999_ns <= .latency.max_ns" gen mem:a --recv mem:a -c 1000000 -j
run queues-idle 0 '.streams == 1 and (.per_stream | length) == 1' gen mem:a --recv mem:a -q 3 -c 1 -j
run queues 0 '.streams == 4 and .delivered == 1000003 and ([.per_stream[].stream] == [0, 1, 2, 3])' \
	gen mem:a --recv mem:a -q 4 -c 1000003 -j
run workers 0 '.streams == 2 and .delivered == 5001' \
	gen mem:a --recv mem:a -q 4 --workers 2 -c 5001 -j
run imix 0 '.delivered == 100000 and .tx_bytes > 100000 * 300' \
	gen mem:a --recv mem:a --size imix -c 100000 -j
run jumbo 0 '.delivered == 2000 and .rx_bytes == 2000 * 9000' \
	gen mem:a --recv mem:a --size 9000 -c 2000 -j
run filtered 0 '.delivered == 5000 and .drops.rx_filtered == 5000' \
	gen mem:a --recv mem:a -c 10000 --dst-port 7,8 --filter "udp port 8" -j
run unstamped 0 '.delivered == 1000 and (has("latency") | not)' \
	gen mem:a --recv mem:a -c 1000 --stamp no -j
# No frame is sent before its time. (Nor much later, on a quiet machine: rates.sh looks at that.)
run rate 0 '.tx_packets == 1000 and .seconds >= 0.998' gen mem:a --recv mem:a --rate 1000pps -c 1000 -j
run rate-time 0 '.tx_packets > 0 and .tx_packets <= 1001 and .seconds >= 0.99' \
	gen mem:a --recv mem:a --rate 1000pps -d 1s -j
run gap 0 '.tx_packets == 11 and .seconds > 0.9' gen null: --rate 100ms -c 11 -j
run seconds 0 '.seconds > 0.45' gen null: -d 500ms -j
run search 0 '.search.found and .search.trials >= 4 and .search.pps > 0' \
	gen mem:a --recv mem:a --search loss=50% -d 50ms -j

# Counters of each queue, and each stream, for people; and what drops there are.
"$holdoff" gen mem:a --recv mem:a -q 2 -c 1000 -Q --counters >"$tmp/out"
grep -q '^ *stream 1: 500 received, 0 lost' "$tmp/out" && grep -q '^ *rx_queue_1_packets: 500$' "$tmp/out" ||
	{ bad "--counters"; cat "$tmp/out"; }
"$holdoff" ports --drops | grep -q '^tx_peer_full  *the peer' || bad "ports --drops"
"$holdoff" ports -j | jq -e '.schema == 1 and .drops.rx_ring_full and
	(.kinds[] | select(.kind == "xdp") | .options | length > 5)' >/dev/null || bad "ports -j"

# --- recv, capture, replay -----------------------------------------------------------------------
run recv 0 '.command == "recv" and .delivered == 5000 and .captured == 5000' \
	recv null:,size=200 -c 5000 --write "$tmp/c.pcap" -j
"$holdoff" gen "pcap:$tmp/stamped.pcap" -c 100 -Q >/dev/null || bad "no capture was written"
run recv-recorded 0 '.delivered == 100 and .streams == 1 and .lost == 0 and .latency.count == 0' \
	recv "pcap:$tmp/stamped.pcap" -j
run recv-all 0 '.delivered == 70000 and (.drops | length) == 0' recv null:,count=70000 -j
run recv-filter 0 '.delivered == 0 and .drops.rx_filtered == 1000' \
	recv null:,count=1000 --filter tcp -j
run replay 0 '.delivered == 15000 and .pace.replay.loops == 3 and .tx_bytes == 15000 * 200' \
	gen mem:a --recv mem:a --replay "$tmp/c.pcap" --loop 3 --rate max -j
run replay-timed 0 '.delivered == 5000' gen mem:a --recv mem:a --replay "$tmp/c.pcap" --speed 10 -j

# Frames of one burst have one time: there is no mean rate that could be missed.
run recv-burst 0 '.captured == 20' recv null:,size=200,count=20 --write "$tmp/burst.pcap" -j
run replay-at-once 0 '.delivered == 20 and .pace.rate_error == null and .pace.gap_error.count == 20' \
	gen null: --replay "$tmp/burst.pcap" -j
"$holdoff" gen null: --replay "$tmp/burst.pcap" -Q >"$tmp/out" && grep -q 'no mean rate' "$tmp/out" &&
	! grep -q 'mean off' "$tmp/out" || { bad "replay at once: what is said of its pace"; cat "$tmp/out"; }

# --- rr and patch --------------------------------------------------------------------------------
run rr 0 '.command == "rr" and .transactions == 5000 and .retries == 0 and .served == 5000 and
	.latency.count == 5000 and .offered == 10000' \
	rr mem:a --serve mem:a -c 5000 --outstanding 16 --size 128 --reply 512 --timeout 60s -j
run rr-none 2 '.transactions == 0 and .given_up == 3 and .requests == 6' \
	rr mem:a --serve mem:a --ip-src fd00::1 --ip-dst fd00::2 --reply 60 -c 3 --tries 2 --timeout 5ms -j
for mode in io mac macswap; do
	run "patch-$mode" 0 ".command == \"patch\" and .mode == \"$mode\" and .delivered == 200000" \
		patch null:,count=100000 null:,count=100000 --mode $mode -j
done
# A count is that many, not as many as a burst brought or as queues share.
for queues in 1 3; do
	run "patch-count-$queues" 0 '.delivered == 1001 and .offered == 1001 + (.drops.rx_closed // 0)' \
		patch null: null: -c 1001 -q $queues -j
	run "gen-count-$queues" 0 '.delivered == 1001' gen null: -c 1001 -q $queues -j
	run "recv-count-$queues" 0 '.delivered == 1001' recv null: -c 1001 -q $queues -j
	run "rr-count-$queues" 0 '.transactions == 101 and .served == 101' \
		rr mem:a --serve mem:a -c 101 -q $queues --outstanding 64 --timeout 60s -j
done
run patch-count-few 0 '.delivered == 2' patch null: null: -c 2 -q 3 -j
socket=@holdoff-count-$$
"$holdoff" rr --serve "memif:$socket,role=server,wait=60s" -c 37 -j >"$tmp/served" 2>&1 &
served=$!
"$holdoff" gen "memif:$socket,wait=60s" -c 1000 -Q -j >"$tmp/out" 2>&1
wait $served && tail -n 1 "$tmp/served" | jq -e '.served == 37 and .balanced' >/dev/null ||
	{ bad "rr-count of a server"; cat "$tmp/served"; }

# --- ends ----------------------------------------------------------------------------------------
# ends SIGNAL ARGS...: begins, gets the signal when traffic flows, must end balanced.
ends() {
	local signal=$1 pid i
	shift
	"$holdoff" "$@" >"$tmp/out" 2>"$tmp/err" &
	pid=$!
	for i in $(seq 1200); do # its tasks are there
		[ "$(ls /proc/$pid/task 2>/dev/null | wc -l)" -gt 1 ] && break
		sleep 0.05
	done
	kill -"$signal" $pid
	wait $pid || bad "$signal $1: status $?"
	jq -e '.balanced' "$tmp/out" >/dev/null || { bad "$signal $1: no balance"; cat "$tmp/out" "$tmp/err"; }
}
for signal in INT TERM HUP; do
	ends $signal gen mem:a --recv mem:a -j
	ends $signal gen mem:a --recv mem:a --rate 1pps -j
done
ends INT recv null: -j
ends INT rr mem:a --serve mem:a -j
ends INT patch null: null: -j

# The reader of the output goes away: the run ends by itself, and without complaint.
timeout 200 "$holdoff" gen mem:a --recv mem:a 2>"$tmp/err" | head -n 2 >/dev/null
status=(${PIPESTATUS[@]})
[ "${status[0]}" = 0 ] || bad "reader gone: status ${status[0]}: $(cat "$tmp/err")"
timeout 200 "$holdoff" gen mem:a --recv mem:a -j 2>"$tmp/err" | true
status=(${PIPESTATUS[@]})
[ "${status[0]}" = 0 ] || bad "reader gone with -j: status ${status[0]}: $(cat "$tmp/err")"

# --- what people see -----------------------------------------------------------------------------
timeout 200 "$holdoff" gen mem:a --recv mem:a --rate 10kpps -d 2500ms >"$tmp/out" 2>"$tmp/err"
[ "$(grep -c 'tx Mpps' "$tmp/out")" = 1 ] || bad "not one header"
# One for each second; a third if what ends the run is told half a second late, fewer when nobody had
# the CPU to print one.
rows=$(grep -E '^ +[0-9]+  +0\.0' "$tmp/out" | awk '{ print $1 }' | tr '\n' ' ')
awk '{ for (i = 2; i <= NF; i++) if ($i <= $(i - 1)) exit 1; exit !(NF >= 1 && NF <= 3) }' <<<"$rows" ||
	bad "not a row a second: $rows"
grep -q '^balanced .* offered = .* delivered + 0 dropped$' "$tmp/out" || bad "no balance printed"
[ -s "$tmp/err" ] && bad "noise on standard error: $(cat "$tmp/err")"

# --- mistakes: message and status ----------------------------------------------------------------
printf 'streams:\n  - ipsrc: 10.0.0.1\n' >"$tmp/bad.yaml"
head -c 30 "$tmp/c.pcap" >"$tmp/cut.pcap"
mistake() {
	local says=$1 got
	shift
	timeout 100 "$holdoff" "$@" >"$tmp/out" 2>"$tmp/err"
	got=$?
	[ $got = 1 ] || bad "'$*': status $got instead of 1"
	grep -q -e "$says" "$tmp/err" || bad "'$*' says: $(cat "$tmp/err")"
	[ -s "$tmp/out" ] && bad "'$*' prints: $(cat "$tmp/out")"
}
mistake 'gen needs a port' gen
mistake 'recv needs a port' recv
mistake 'rr needs a port' rr
mistake 'patch needs two ports' patch null:
mistake 'is not a port' gen bogus:x
mistake 'unrecognized option' gen mem:a --bogus
mistake "one port sends" gen mem:a mem:b
mistake "is not a rate" gen mem:a --rate fast
mistake "no link speed" gen mem:a --recv mem:a --rate 50%
mistake "headers alone take" gen mem:a --size 20
mistake "not a number from 0 to 4094" gen mem:a --vlan 4095
mistake "bad.yaml" gen mem:a -f "$tmp/bad.yaml"
mistake "No such file" gen mem:a -f "$tmp/none.yaml"
mistake "from 1 to" gen mem:a -q 0
mistake "from 1 to" gen mem:a --burst 1000
mistake "each needs its own" gen mem:a --workers 3
mistake "leaves nothing to do" gen mem:a -c 0
mistake "is not a time" gen mem:a -d 10
mistake "CPU 100000 is not there" gen mem:a --cpu 100000
mistake "needs --recv" gen mem:a --search loss=1%
mistake "is not a fraction" gen mem:a --recv mem:a --search loss=x
mistake "write loss=" gen mem:a --recv mem:a --search rate
mistake "chooses the rate itself" gen mem:a --recv mem:a --search loss=0 --rate max
mistake "belong to --replay" gen mem:a --speed 2
mistake "takes no file" gen mem:a --replay "$tmp/c.pcap" --size 60
mistake "only one of them" gen mem:a --replay "$tmp/c.pcap" --speed 2 --rate 1kpps
mistake "No such file" gen null: --replay "$tmp/none.pcap"
mistake "cut.pcap" gen null: --replay "$tmp/cut.pcap"
mistake "not a pcap" gen null: --replay "$holdoff"
mistake "bogus" gen mem:a --recv mem:a --filter "bogus bogus"
mistake "bogus" recv null: --filter "bogus bogus"
mistake "No such file" recv null: --write "$tmp/none/c.pcap"
mistake "is joined to" gen mem:a --recv mem:a,peer=b
mistake "from 1 to 4096" rr mem:a --serve mem:a --outstanding 0
mistake "at most 1856" rr mem:a --serve mem:a --size 5000
mistake "from 60 to" rr mem:a --serve mem:a --reply 10
mistake "io, mac or macswap" patch null: null: --mode bogus

timeout 100 "$holdoff" gen mem:a --wait 100ms >"$tmp/out" 2>"$tmp/err"
[ $? = 2 ] || bad "no peer: not status 2"
grep -q "its other end, mem:a, is not open" "$tmp/err" || bad "no peer says: $(cat "$tmp/err")"
timeout 100 "$holdoff" recv null: -d 200ms --write /dev/full -j >"$tmp/out" 2>"$tmp/err"
[ $? = 2 ] || bad "a full disk: not status 2"
grep -q "cannot write the capture: .dev.full: No space left" "$tmp/err" || bad "a full disk says: $(cat "$tmp/err")"

[ $failed = 0 ] && echo "gen, recv, rr and patch over mem: and null: all balanced"
exit $failed
