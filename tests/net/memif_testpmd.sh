#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# memif: against DPDK's testpmd: both roles, both directions, conservation to the packet.
#
#   memif_peer (the library's port memif:) <== abstract socket, shared memory ==> dpdk-testpmd
#
#   sending     memif_peer tx  ->  testpmd rxonly    RX-packets = sent = FRAMES
#   receiving   memif_peer rx  <-  testpmd txonly    TX-packets = received + named drops
#   loop        memif_peer     ->  testpmd io  ->  memif_peer
#                                                    sent = received + TX-dropped of testpmd
#
#   PEER      our end (bench/memif_peer beside HOLDOFF)
#   TESTPMD   dpdk-testpmd
#   FRAMES    per case (10000000)
#   LIMIT     seconds that a case may take (120)
set -u
trap '' PIPE
top=$(cd "$(dirname "$0")/../.." && pwd)
PEER=${PEER:-$(dirname "${HOLDOFF:-$top/build/holdoff}")/bench/memif_peer}
TESTPMD=${TESTPMD:-dpdk-testpmd}
FRAMES=${FRAMES:-10000000}
LIMIT=${LIMIT:-120}
command -v "$TESTPMD" >/dev/null || { echo "skipped: no $TESTPMD (Debian package dpdk-dev)"; exit 77; }
[ -x "$PEER" ] || { echo "no $PEER: 'make build' makes it" >&2; exit 1; }

# shellcheck source=tests/net/shared.bash
. "$top/tests/net/shared.bash"
name=holdoff-memif-$$
allowed=$(taskset -cp $$ | sed 's/.*: //')
first_cpu=${allowed%%[-,]*} last_cpu=${allowed##*[-,]}
pids=()
end() {
	exec 3>&-
	for pid in ${pids[@]+"${pids[@]}"}; do kill "$pid" 2>/dev/null; done
	clean_up
}
trap end EXIT
fail() {
	echo "memif_testpmd: $case_name: $*" >&2
	tail -n 25 "$tmp/testpmd.log" "$tmp/peer.err" "$tmp/peer.out" >&2
	exit 1
}

# testpmd_start MODE VDEV...: interactive, reading commands from descriptor 3.
testpmd_start() {
	local mode=$1 vdevs=() v
	shift
	for v in "$@"; do vdevs+=("--vdev=$v"); done
	rm -f "$tmp/cmd"
	mkfifo "$tmp/cmd"
	timeout -k 5 $((LIMIT + 60)) stdbuf -oL "$TESTPMD" --lcores "0@$first_cpu,1@$last_cpu" --no-pci --no-telemetry --no-huge --no-shconf -m 256 \
		--file-prefix "$name" "${vdevs[@]}" -- -i --no-flush-rx --nb-cores=1 --total-num-mbufs=16384 \
		--forward-mode="$mode" <"$tmp/cmd" >"$tmp/testpmd.log" 2>&1 &
	testpmd_pid=$!
	pids+=("$testpmd_pid")
	exec 3>"$tmp/cmd"
	until_true 60 grep -qs 'testpmd> ' "$tmp/testpmd.log" || fail "testpmd did not start"
}

say() { echo "$1" >&3; }

# value FIELD PORT: the newest "FIELD: N" that testpmd printed for that port.
value() {
	awk -v f="$1:" -v want="port $2 " '/NIC statistics for/ {here = index(tolower($0), want)}
		here {for (i = 1; i < NF; i++) if ($i == f) v = $(i + 1)} END {print v + 0}' "$tmp/testpmd.log"
}

# Asks testpmd for its counters, and waits for all of the answer: blocks end with a line of # alone.
blocks() { grep -c '^ *#*$' <(grep '##' "$tmp/testpmd.log"); }
answered() { [ "$(blocks)" -ge "$1" ]; }
counters() {
	local before
	before=$(blocks)
	say "show port stats all"
	until_true 60 answered $((before + ports)) || fail "testpmd does not answer"
}

peer_start() {
	timeout -k 5 "$LIMIT" "$PEER" "$@" >"$tmp/peer.out" 2>"$tmp/peer.err" &
	peer_pid=$!
	pids+=("$peer_pid")
}

# peer_field NAME: a number of our JSON.
peer_field() { python3 -c 'import json, sys; d = json.load(open(sys.argv[1]))[sys.argv[2]]; print(sum(d.values()) if isinstance(d, dict) else d)' "$tmp/peer.out" "$1"; }

peer_end() {
	wait "$peer_pid" || fail "our end ended with status $?"
	[ "$(peer_field balanced)" = True ] || fail "our balance is broken"
	[ "$(peer_field missing)" = 0 ] || fail "packet buffers are missing"
}

testpmd_end() {
	say quit
	exec 3>&-
	wait "$testpmd_pid" || fail "testpmd ended with status $?"
}

same() { [ "$2" = "$3" ] || fail "$1: $2 is not $3"; }

# sending LABEL OUR_SPEC_OPTIONS TESTPMD_ROLE
sending() {
	case_name="sending, $1"
	ports=1
	local server_first=$3
	[ "$server_first" = client ] && peer_start tx "memif:@$name,wait=60s$2" -n "$FRAMES" -H
	testpmd_start rxonly "net_memif0,socket=$name,role=$3"
	say start
	[ "$server_first" = server ] && peer_start tx "memif:@$name,wait=60s$2" -n "$FRAMES" -H
	until_true "$LIMIT" grep -qs done "$tmp/peer.err" || fail "not all was sent"
	for _ in $(seq 50); do
		counters
		[ "$(value RX-packets 0)" -ge "$FRAMES" ] && break
	done
	same "testpmd received" "$(value RX-packets 0)" "$FRAMES"
	kill "$peer_pid"
	peer_end
	same "we sent" "$(peer_field sent)" "$FRAMES"
	same "we lost" "$(peer_field lost)" 0
	testpmd_end
	echo "ok: $case_name: $FRAMES frames"
}

# receiving LABEL OUR_SPEC_OPTIONS TESTPMD_ROLE [TESTPMD_OPTIONS]
receiving() {
	case_name="receiving, $1"
	ports=1
	[ "$3" = client ] && peer_start rx "memif:@$name,wait=60s$2" -l
	testpmd_start txonly "net_memif0,socket=$name,role=$3${4:-}"
	[ "$3" = server ] && peer_start rx "memif:@$name,wait=60s$2" -l
	say start
	local deadline=$((SECONDS + LIMIT))
	while [ "$(value TX-packets 0)" -lt "$FRAMES" ]; do
		[ "$SECONDS" -lt "$deadline" ] || fail "testpmd does not send"
		counters
	done
	say stop
	until_true 60 grep -qF 'Done.' "$tmp/testpmd.log" || fail "testpmd does not stop"
	counters
	local sent
	sent=$(value TX-packets 0)
	testpmd_end
	peer_end
	same "received + dropped against what testpmd sent" \
		$(($(peer_field received) + $(peer_field rx_drops))) "$sent"
	same "dropped" "$(peer_field rx_drops)" 0
	echo "ok: $case_name: $sent frames"
}

# looping LABEL OUT_OPTIONS IN_OPTIONS TESTPMD_IN_ROLE TESTPMD_OUT_ROLE
looping() {
	case_name="loop, $1"
	ports=2
	peer_start loop "memif:@$name-a,wait=60s$2" "memif:@$name-b,wait=60s$3" -n "$FRAMES" -H
	testpmd_start io "net_memif0,socket=$name-a,role=$4" "net_memif1,socket=$name-b,role=$5"
	say start
	until_true "$LIMIT" grep -qs done "$tmp/peer.err" || fail "not all was sent"
	local dropped before=-1
	counters
	while [ "$(value TX-packets 1)" != "$before" ]; do
		before=$(value TX-packets 1)
		counters
	done
	same "testpmd received" "$(value RX-packets 0)" "$FRAMES"
	say stop
	until_true 60 grep -qF 'Done.' "$tmp/testpmd.log" || fail "testpmd does not stop"
	dropped=$(awk '/Forward statistics for port 1/ {here = 1} here && /TX-dropped/ {for (i = 1; i < NF; i++) if ($i == "TX-dropped:") print $(i + 1); exit}' "$tmp/testpmd.log")
	kill "$peer_pid"
	peer_end
	same "received + dropped by testpmd" $(($(peer_field received) + $(peer_field rx_drops) + ${dropped:-0})) "$FRAMES"
	same "lost on our side" "$(peer_field lost)" 0
	testpmd_end
	echo "ok: $case_name: $(peer_field received) frames back, $dropped dropped by testpmd"
}

sending "client" "" server
sending "client, zero copy" ",zero_copy" server
sending "server" ",role=server" client
receiving "client" "" server
receiving "client, zero copy" ",zero_copy" server
receiving "server" ",role=server" client
receiving "server, small rings and chains" ",role=server" client ",rsize=8,bsize=48"
looping "server in, client out" "" ",role=server" server client
