#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Captures that come through a pipe which falls silent: a run must still end when it is asked to.
#
#   file + silence ---pipe---> gen --replay - ---> null:
#   silence --------pipe/FIFO---> recv pcap:
#
# Also that no capture is lost to the command that reads it, that a full disk leaves whole records, and
# that a sink keeps no buffers.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
holdoff=${HOLDOFF:-$top/build/holdoff}
command -v jq >/dev/null || { echo "skipped: jq is not installed"; exit 77; }
tmp=$(mktemp -d)
silence=""
trap 'kill $silence 2>/dev/null; rm -rf "$tmp"' EXIT
failed=0
bad() { echo "FAIL: $*"; failed=1; }

mkfifo "$tmp/silent" "$tmp/unopened"
sleep 600 >"$tmp/silent" &
silence=$!
"$holdoff" gen "pcap:$tmp/three.pcap" -c 3 -Q >/dev/null || bad "no capture was written"

# settles PID: it ends within a minute.
settles() {
	local _
	for _ in $(seq 1200); do
		kill -0 "$1" 2>/dev/null || return 0
		sleep 0.05
	done
	return 1
}
# blocks_signals PID: a run has begun once it has its own way with signals; a minute at most.
blocks_signals() {
	local _
	for _ in $(seq 3000); do
		grep -q '^SigBlk:.*[^0 	]' "/proc/$1/status" 2>/dev/null && return 0
		sleep 0.02
	done
	return 1
}
# full FIFO: it takes no more; a minute at most.
full() {
	/usr/bin/python3 - "$1" <<'PY'
import os, select, sys, time
fd, end = os.open(sys.argv[1], os.O_RDWR | os.O_NONBLOCK), time.time() + 60
while select.select([], [fd], [], 0)[1]:
    if time.time() > end:
        sys.exit("the pipe does not fill")
    time.sleep(0.02)
PY
}

# ends NAME SIGNAL STATUS ARGS...: after the signal the command ends with the status, in time.
ends() {
	local name=$1 signal=$2 status=$3 pid got
	shift 3
	"$holdoff" "$@" <"$tmp/silent" >"$tmp/out" 2>"$tmp/err" &
	pid=$!
	# Once it has blocked its signals it is in the wait, or just before it.
	blocks_signals "$pid" || bad "$name: does not begin"
	kill -"$signal" "$pid"
	settles "$pid"
	kill -KILL "$pid" 2>/dev/null && bad "$name: does not end on SIG$signal"
	wait "$pid" 2>/dev/null
	got=$?
	[ $got = "$status" ] || { bad "$name: status $got instead of $status"; cat "$tmp/err"; }
}

ends recv-stdin INT 0 recv pcap:-
ends recv-fifo TERM 0 recv "pcap:$tmp/unopened"
ends replay-stdin INT 0 gen null: --replay -
ends replay-fifo TERM 0 gen null: --replay "$tmp/unopened"

# A capture into a pipe that nobody opens, or opens and does not read.
mkfifo "$tmp/nobody"
ends write-fifo INT 0 recv mem:x --write "$tmp/nobody"
timeout 200 "$holdoff" recv mem:x --write "$tmp/nobody" --duration 1s >/dev/null 2>"$tmp/err"
got=$?
[ $got = 2 ] && grep -q 'nobody reads' "$tmp/err" ||
	{ bad "a capture that nobody reads, with a duration: status $got"; cat "$tmp/err"; }
# What a stalled reader did not take is said: the capture is not complete.
stalls() {
	local name=$1 signal=$2 out=$3 pid got holder
	shift 3
	mkfifo "$tmp/$name"
	sleep 600 <>"$tmp/$name" &
	holder=$!
	silence="$silence $holder"
	case $out in
	-) "$holdoff" recv "null:,size=1000" --write - "$@" >"$tmp/$name" 2>"$tmp/err" & ;;
	*) "$holdoff" recv "null:,size=1000" --write "$tmp/$name" "$@" >"$tmp/out" 2>"$tmp/err" & ;;
	esac
	pid=$!
	full "$tmp/$name" || bad "$name: the pipe does not fill"
	[ "$signal" = none ] || kill -"$signal" "$pid"
	settles "$pid"
	kill -KILL "$pid" 2>/dev/null && bad "$name: does not end"
	kill $holder
	wait "$pid" 2>/dev/null
	got=$?
	[ $got = 2 ] && grep -q 'not complete: its reader' "$tmp/err" ||
		{ bad "$name: status $got"; cat "$tmp/err"; }
}
# The same of a port: one signal is enough, and so is a duration; no second one is needed.
stalls_port() {
	local name=$1 signal=$2 pid got holder
	shift 2
	mkfifo "$tmp/$name"
	sleep 600 <>"$tmp/$name" &
	holder=$!
	silence="$silence $holder"
	"$holdoff" gen "pcap:$tmp/$name" "$@" -Q >"$tmp/out" 2>"$tmp/err" &
	pid=$!
	full "$tmp/$name" || bad "$name: the pipe does not fill"
	[ "$signal" = none ] || kill -"$signal" "$pid"
	settles "$pid"
	kill -KILL "$pid" 2>/dev/null && bad "$name: does not end"
	wait "$pid" 2>/dev/null
	got=$?
	[ $got = 2 ] && grep -q 'records: its reader did not read' "$tmp/err" &&
		grep -q '^balanced' "$tmp/out" || { bad "$name: status $got"; cat "$tmp/err" "$tmp/out"; }
	kill $holder
}
stalls_port gen-stalled INT
stalls_port gen-stalled-duration none --duration 300ms
# Here all is handed over, and the wait is that of the end.
stalls_port gen-stalled-count TERM --count 2000
stalls stalled-fifo INT fifo
stalls stalled-stdout TERM -
stalls stalled-duration none - --duration 1s

# Nor may the wait for a peer keep anybody.
ends memif-wait INT 0 recv "memif:$tmp/socket,wait=60s"

# The frames that came are sent; the silence behind them does not outlast the duration.
mkfifo "$tmp/replay"
exec 9<>"$tmp/replay"
cat "$tmp/three.pcap" >&9
timeout 200 "$holdoff" gen null: --replay - --duration 1s -j <"$tmp/replay" >"$tmp/out" 2>"$tmp/err"
got=$?
exec 9>&-
[ $got = 0 ] || { bad "replay of a pipe: status $got"; cat "$tmp/err"; }
jq -e '.offered == 3 and .delivered == 3 and .balanced' "$tmp/out" >/dev/null ||
	{ bad "replay of a pipe: not its three frames"; cat "$tmp/out"; }

# A capture on standard output is alone there, and waits for a reader that is merely slow.
"$holdoff" gen pcap:- --rate 2kpps --count 3000 2>"$tmp/err" | { sleep 2; cat; } >"$tmp/alone.pcap"
got=${PIPESTATUS[0]}
[ $got = 0 ] && [ "$(wc -c <"$tmp/alone.pcap")" = $((24 + 3000 * (16 + 60))) ] &&
	grep -q '^balanced' "$tmp/err" ||
	{ bad "a capture on standard output: status $got, $(wc -c <"$tmp/alone.pcap") bytes"; cat "$tmp/err"; }
"$holdoff" recv null: --count 64 --write - 2>/dev/null | "$holdoff" recv pcap:- -j >"$tmp/out" &&
	jq -e '.delivered == 64' "$tmp/out" >/dev/null || { bad "recv --write -"; cat "$tmp/out"; }

# A reader sees what comes when it comes, not when a buffer is full: twenty records of a run that goes on,
# as the next one is five minutes away.
/usr/bin/python3 - >"$tmp/slow.pcap" <<'PY'
import struct, sys
out = sys.stdout.buffer
out.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
for at in [1] * 20 + [301]:
    out.write(struct.pack("<IIII", at, 0, 60, 60) + bytes(60))
PY
mkfifo "$tmp/live"
"$holdoff" recv "pcap:$tmp/slow.pcap,speed=1" --write "$tmp/live" -Q >/dev/null 2>"$tmp/err" &
pid=$!
timeout 100 head -c $((24 + 20 * (16 + 60))) "$tmp/live" | wc -c >"$tmp/out"
kill -0 $pid 2>/dev/null && [ "$(cat "$tmp/out")" = $((24 + 20 * (16 + 60))) ] ||
	bad "a live capture: $(cat "$tmp/out") bytes"
kill $pid 2>/dev/null
wait $pid 2>/dev/null

# A file that is read is not overwritten, in whatever order its two users come; nor one that a command
# does not come to write.
"$holdoff" gen "pcap:$tmp/kept.pcap" -c 20000 -Q >/dev/null
cp "$tmp/kept.pcap" "$tmp/same.pcap"
keeps() {
	"$holdoff" "$@" -Q >"$tmp/out" 2>"$tmp/err" && bad "not refused: $*"
	cmp -s "$tmp/kept.pcap" "$tmp/same.pcap" && ! [ -e "$tmp/never.pcap" ] ||
		{ bad "a file was lost to: $*"; cp "$tmp/same.pcap" "$tmp/kept.pcap"; }
}
keeps gen "pcap:$tmp/kept.pcap" --replay "$tmp/kept.pcap"
keeps gen "pcap:$tmp/kept.pcap" --recv "pcap:$tmp/kept.pcap" -c 1
keeps recv "pcap:$tmp/kept.pcap" --write "$tmp/kept.pcap"
keeps gen "pcap:$tmp/kept.pcap" --replay "$tmp/nowhere.pcap"
keeps gen "pcap:$tmp/never.pcap" --rate 50%

# A disk that is full (here: a limit on files of 4 MB): what is in the file is whole and counted, and
# that it is not all is said.
# fills NAME PATTERN ARGS...
fills() {
	local name=$1 says=$2 got n
	shift 2
	(trap '' XFSZ && ulimit -f 4096 && exec "$holdoff" "$@" --buffers 256 -j) >"$tmp/out" 2>"$tmp/err"
	got=$?
	n=$("$holdoff" recv "pcap:$tmp/$name" -j 2>&1 | jq .delivered)
	[ $got = 2 ] && grep -q "$says" "$tmp/err" && [ "$n" -gt 4000 ] &&
		[ "$(jq '.captured // .delivered' "$tmp/out")" = "$n" ] ||
		{ bad "$name: status $got, $n frames in the file"; cat "$tmp/out" "$tmp/err"; }
}
fills full-write.pcap 'is not complete: File too large' \
	recv null:,size=1000,set=64 --write "$tmp/full-write.pcap" -c 9000
fills full-port.pcap 'writing failed after .* File too large' \
	gen "pcap:$tmp/full-port.pcap" --size 1000 -c 9000

# Results that cannot be written are a failure; a reader that has gone is none.
"$holdoff" gen null: --count 10 >/dev/full 2>"$tmp/err"
got=$?
[ $got = 2 ] && grep -q 'not all results could be written' "$tmp/err" ||
	{ bad "results to a full disk: status $got"; cat "$tmp/err"; }
"$holdoff" gen null: --rate 1kpps 2>"$tmp/err" | head -n 2 >/dev/null
got=${PIPESTATUS[0]}
[ $got = 0 ] && ! [ -s "$tmp/err" ] || { bad "a reader that has gone: status $got"; cat "$tmp/err"; }
# Nor does a file take the place of a standard output that is closed.
"$holdoff" gen "pcap:$tmp/closed.pcap" --count 3 >&- 2>"$tmp/err"
[ "$(wc -c <"$tmp/closed.pcap")" = $((24 + 3 * (16 + 60))) ] ||
	{ bad "without standard output: $(wc -c <"$tmp/closed.pcap") bytes"; cat "$tmp/err"; }

# An empty stream is a wrong input file, not a crash.
"$holdoff" gen null: --replay /dev/null >/dev/null 2>"$tmp/err"
got=$?
[ $got = 1 ] && grep -q 'is empty' "$tmp/err" || { bad "empty replay: status $got"; cat "$tmp/err"; }

# A null: that is only sent to holds no buffers, however large its set is.
"$holdoff" gen null:,set=65536 --count 1000000 -j >"$tmp/out"
jq -e '.pace.pool_empty_events == 0 and .offered == 1000000' "$tmp/out" >/dev/null ||
	{ bad "a null: sink keeps buffers"; cat "$tmp/out"; }
[ $failed = 0 ] && echo "pipes behave"
exit $failed
