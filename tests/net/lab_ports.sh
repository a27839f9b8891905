#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# gen and recv on ports of the lab: conservation, virtual seconds, the same output again, what goes
# wrong on purpose is accounted for, and what cannot be is refused with a sentence.
#
#   gen --> host a, 82599 ==10 Gbit/s== 82599, host b --> gen's receivers, or recv
set -euo pipefail
holdoff=$(realpath "${HOLDOFF:-build/holdoff}")
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
fail() { echo "lab_ports: $*" >&2; exit 1; }

# number FILE KEY: of a JSON object
number() { /usr/bin/python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$1" "$2"; }
# like TEXT COMMAND...: the command must be refused (1) with the text
refused() {
	local text=$1 status=0
	shift
	"$holdoff" "$@" >"$tmp/out" 2>"$tmp/err" || status=$?
	[ $status = 1 ] || fail "$*: status $status"
	grep -qF -- "$text" "$tmp/err" || fail "$*: says $(cat "$tmp/err")"
	[ ! -s "$tmp/out" ] || fail "$*: prints to standard output"
}

# All that is offered arrives, at the rate, and again to the last byte.
for i in 1 2; do
	"$holdoff" gen lab:two-hosts --rate 400kpps --size 60-1514 -d 20ms -j >"$tmp/gen$i" || fail "gen: $?"
	"$holdoff" recv lab:two-hosts -j >"$tmp/recv$i" || fail "recv: $?"
done
cmp "$tmp/gen1" "$tmp/gen2" || fail "gen: not the same again"
cmp "$tmp/recv1" "$tmp/recv2" || fail "recv: not the same again"
for key in offered delivered tx_packets rx_packets; do
	[ "$(number "$tmp/gen1" $key)" = 8000 ] || fail "gen: $key"
done
[ "$(number "$tmp/gen1" tx_pps)" = 400000 ] || fail "gen: not the rate that was asked for"
[ "$(number "$tmp/gen1" lost)" = 0 ] || fail "gen: lost"
[ "$(number "$tmp/gen1" scenario)" = two-hosts ] || fail "gen: which scenario?"
# The scenario's sender runs at 400 kpps for its 20 ms; recv takes all of it.
[ "$(number "$tmp/recv1" delivered)" = 8000 ] || fail "recv: $(cat "$tmp/recv1")"
[ "$(number "$tmp/recv1" lost)" = 0 ] || fail "recv: lost"
# Settings take effect.
"$holdoff" gen lab:two-hosts,hosts.a.chips.eth0.rx-usecs=50 --rate 400kpps --size 60-1514 -d 20ms -j >"$tmp/other"
[ "$(number "$tmp/other" digest)" != "$(number "$tmp/gen1" digest)" ] || fail "a setting changes nothing"

# A row for each virtual second, each with all of its second's frames.
"$holdoff" gen lab:two-hosts --rate 20kpps -d 2s >"$tmp/rows"
[ "$(grep -cE '^ +[1-2] +0\.0(19|20)' "$tmp/rows")" = 2 ] || fail "rows: $(cat "$tmp/rows")"
"$holdoff" recv lab:two-hosts,rate=20kpps -d 2s >"$tmp/rows"
[ "$(grep -cE '^ +[1-2] +0\.0(19|20)' "$tmp/rows")" = 2 ] || fail "rows: $(cat "$tmp/rows")"

# As fast as it can: the sender's own time only, no more than the wire bears; a count; a search.
"$holdoff" gen lab:two-hosts --size 1514 -d 20ms -j >"$tmp/max"
pps=$(number "$tmp/max" rx_pps)
[ "$pps" -gt 805000 ] && [ "$pps" -lt 813000 ] || fail "max: $pps pps of 812,744"
"$holdoff" gen lab:two-hosts -c 1000 -j >"$tmp/count"
[ "$(number "$tmp/count" delivered)" = 1000 ] || fail "count"
"$holdoff" gen lab:two-hosts -q 2 --cpu 0,1 --dst-port 1-64 -d 5ms -j >"$tmp/queues"
[ "$(number "$tmp/queues" streams)" = 2 ] || fail "queues: $(cat "$tmp/queues")"
"$holdoff" gen lab:two-hosts --search loss=0.1% -d 2ms -j >"$tmp/search" || fail "search: $?"
"$holdoff" gen lab:ixgbe-txring --rate 1mpps -d 5ms -j >"$tmp/sink"
[ "$(number "$tmp/sink" delivered)" = 5000 ] || fail "a sink"

# What goes wrong on purpose has a name: the balance holds (status 0) and something is missing.
a=hosts.a.chips.eth0
for fault in $a.fault-flap-at=5ms,$a.fault-flap-for=1ms \
	$a.fault-hang-at=5ms,$a.watchdog=1ms \
	hosts.b.chips.eth0.fault-hang-at=5ms \
	$a.fault-lost-irq-ppm=20000,$a.watchdog=1ms,$a.tx=64 \
	$a.fault-late-ppm=50000,$a.fault-late-for=200us; do
	"$holdoff" gen lab:two-hosts,$fault --size 1514 -d 30ms -j >"$tmp/fault" 2>"$tmp/err" ||
		fail "$fault: status $?: $(cat "$tmp/err" "$tmp/fault")"
	[ "$(number "$tmp/fault" missing)" = 0 ] || fail "$fault: $(cat "$tmp/fault")"
done

refused "there is no scenarios/nope.yaml" gen lab:nope
refused "'foo' is not KEY=VALUE" gen lab:two-hosts,foo
refused "has no such HOST.CHIP" gen lab:two-hosts,port=c.eth0
refused "tx ring of 63" gen lab:two-hosts,$a.tx=63
refused "says of no port that it receives" recv lab:ixgbe-txring
refused "only gen and recv run in the lab" patch lab:two-hosts null:
refused "cannot meet" gen null: --recv lab:two-hosts
refused "the other end of" gen lab:two-hosts --recv null:
refused "the host has 2" gen lab:two-hosts --cpu 7
echo "lab_ports: ok"
