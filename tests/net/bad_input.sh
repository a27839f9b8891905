#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# What must be refused: each with a message that names the thing, and with status 1 (usage) or 2.
#
#    namespace A: holdoff ... ia ----- veth ----- ib (no process)
#                             tap it
set -u
cd "$(dirname "$0")/../.." || exit 1
holdoff=$(realpath "${HOLDOFF:-build/holdoff}")
A=hb$$a
# shellcheck source=tests/net/shared.bash
. tests/net/shared.bash
chmod 755 "$tmp"
failed=0 refused=0
[ -x "$holdoff" ] || skip "$holdoff is not built"

# refuse STATUS MESSAGE COMMAND...: STATUS "any": 1 or 2. MESSAGE is a fixed string; nothing comes on standard output.
refuse() {
	local status=$1 says=$2 got
	shift 2
	timeout -k 5 100 "$@" >"$tmp/out" 2>"$tmp/err"
	got=$?
	[ "$status" != any ] || [ $got != 1 -a $got != 2 ] || status=$got
	if [ $got = "$status" ] && grep -qF -- "$says" "$tmp/err" && ! [ -s "$tmp/out" ]; then
		refused=$((refused + 1))
		return
	fi
	echo "FAILED: '${*##*/}': status $got instead of $status; does it say '$says'?"
	sed 's/^/   /' "$tmp/err" "$tmp/out"
	failed=$((failed + 1))
}

# --- YAML: what is wrong by line and column -----------------------------------------------------
yaml() {
	local says=$1
	shift
	printf "$@" >"$tmp/f.yaml"
	refuse 1 "f.yaml:$says" "$holdoff" gen null: -c 1 -f "$tmp/f.yaml"
}
yaml "2:5: " 'streams:\n  - ipsrc: 10.0.0.1\n'
yaml "1:1: " 'stream:\n  - ip-src: 10.0.0.1\n'
yaml "2:13: ip-src: '10.0.0' is not" 'streams:\n  - ip-src: 10.0.0\n'
yaml "3:11: vlan: '4095' is not" 'streams:\n  - ip-src: 10.0.0.1\n    vlan: 4095\n'
yaml "3:11: size: frames of 20 bytes" 'streams:\n  - proto: udp\n    size: 20\n'
yaml "" 'streams: [\n'
yaml "3:5: 'size' is given twice, first in line 2" 'streams:\n  - size: 60\n    size: 61\n'
yaml "3:7: aliases" 'streams: &a\n  - size: 60\nseed: *a\n'
yaml "3:1: a second document" 'streams:\n  - size: 60\n---\nseed: 1\n'
yaml "2:1: libyaml: found character that cannot start" 'streams:\n\t- size: 60\n'
yaml "2:1: Expecting MAPPING" '# a list\n- a\n- b\n'
yaml "3:1: Expecting MAPPING" '\n---\nword\n'
yaml "" '\0\1\2'
yaml "" ''

# --- frames that cannot be -----------------------------------------------------------------------
refuse 1 "headers alone take" "$holdoff" gen null: -c 1 --size 41
refuse 1 "headers alone take" "$holdoff" gen null: -c 1 --ip-dst fd00::1 --ip-src fd00::2 --proto tcp --size 73
refuse 1 "65" "$holdoff" gen null: -c 1 --size 70000
refuse 1 "not of the same IP version" "$holdoff" gen null: -c 1 --ip-dst fd00::1 --ip-src 10.0.0.1
refuse 1 "from 1 to" "$holdoff" gen null: -q 0
refuse 1 "from 1 to" "$holdoff" recv null: -q 0

# --- options -------------------------------------------------------------------------------------
refuse 1 "--count: '-1' is not a number" "$holdoff" gen null: -c -1
refuse 1 "--duration: '10' is not a time" "$holdoff" recv null: -d 10
refuse 1 "--wait: 'x' is not a time" "$holdoff" recv null: --wait x
refuse 1 "--stamps=maybe: yes or no" "$holdoff" recv null: --stamps=maybe
refuse 1 "--rate: '5' is not a rate" "$holdoff" gen null: --rate 5
refuse 1 "--loop: '-1' is not a number" "$holdoff" gen null: --replay x --loop -1
refuse 1 "--search: 'x' is not a fraction" "$holdoff" gen mem:a --recv mem:a --search loss=x
refuse 1 "--think: '5' is not a time" "$holdoff" rr mem:a --serve mem:a --think 5
refuse 1 "--proto: requests are UDP" "$holdoff" rr mem:a --serve mem:a --proto tcp
refuse 1 "--ethertype: requests are UDP" "$holdoff" rr mem:a --ethertype 0x88b5
printf 'streams:\n  - proto: udp\n  - proto: icmp\n' >"$tmp/rr.yaml"
refuse 1 "rr.yaml: requests are UDP" "$holdoff" rr mem:a --serve mem:a -f "$tmp/rr.yaml"
refuse 1 "seed: '-1' is not" "$holdoff" gen null: --seed -1
refuse 1 "give it a whole name" "$holdoff" recv tap:%d
# Who waits less than a memif port does by itself ends before it would: said with the time of --wait.
refuse 2 "within 300.00 ms" "$holdoff" gen "memif:@hb$$-none" -c 1 --wait 300ms
! grep -q "no peer after" "$tmp/err" || { echo "FAILED: memif waits its own time"; failed=$((failed + 1)); }
# The other end of a mem: port cannot come from elsewhere: that is not waited for.
refuse 2 "its other end, mem:a, is not open" "$holdoff" gen mem:a -c 1 --wait 200s
refuse 2 "its other end, mem:y, is not open" "$holdoff" gen mem:x,peer=y --recv mem:z -c 1 --wait 200s
refuse 1 "busy-poll=99s is too large; at most 1.00 s" "$holdoff" recv xdp:lo,busy-poll=99s
refuse 1 "Too many arguments" "$holdoff" ports foo
# What others send without end does not keep a run from ending.
bounded() { timeout -k 5 100 "$holdoff" "$@" -j >"$tmp/out" 2>"$tmp/err"; }
bounded rr null: --count 2
[ $? = 2 ] && grep -q "no request was answered" "$tmp/err" ||
	{ echo "FAILED: rr beside endless frames: $(cat "$tmp/err")"; failed=$((failed + 1)); }
# More packet buffers than memory: an error, not the kernel's killer.
if [ "$(awk '/^MemAvailable/ { print $2 }' /proc/meminfo)" -lt $((30 << 20)) ]; then
	refuse 2 "--buffers takes fewer" "$holdoff" gen null: -c 1 --buffers 16777216
fi

# --- capture files -------------------------------------------------------------------------------
/usr/bin/python3 - "$tmp" <<'PY'
import struct, sys
at = sys.argv[1] + "/"
head = struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1)
record = lambda have, length, data: struct.pack("<IIII", 1, 0, have, length) + data
good = record(60, 60, bytes(60))
files = {
    "empty": b"", "magic": b"\x12\x34\x56\x78" + head[4:] + good, "short": head[:20],
    "cut-header": head + good + good[:10], "cut-data": head + good + good[:40],
    "huge": head + good + record(0xfffffff0, 0xfffffff0, bytes(60)),
    "negative": head + good + record(0x80000000, 60, bytes(60)),
    "wifi": head[:20] + struct.pack("<I", 105) + good,
    "ng-cut": struct.pack("<IIIHHq", 0x0a0d0d0a, 28, 0x1a2b3c4d, 1, 0, -1)[:20],
    "ng-huge": struct.pack("<IIIHHqI", 0x0a0d0d0a, 28, 0x1a2b3c4d, 1, 0, -1, 28)
    + struct.pack("<II", 1, 0xfffffff0) + bytes(64),
    "none": head,
}
for name, data in files.items():
    open(at + name + ".pcap", "wb").write(data)
PY
for name in empty magic short wifi ng-cut ng-huge; do
	refuse 1 "$name.pcap" "$holdoff" gen null: --replay "$tmp/$name.pcap"
	refuse 1 "$name.pcap" "$holdoff" recv "pcap:$tmp/$name.pcap"
done
refuse 1 "none.pcap: holds no frame" "$holdoff" gen null: --replay "$tmp/none.pcap"
refuse 1 "No such file" "$holdoff" gen null: --replay "$tmp/nowhere.pcap"
refuse 1 "No such file" "$holdoff" recv "pcap:$tmp/nowhere.pcap"

# What is broken behind good records: they are used, and the break is named.
# broken NAME COMMAND...
broken() {
	local name=$1 got
	shift
	timeout -k 5 100 "$holdoff" "$@" -j >"$tmp/out" 2>"$tmp/err"
	got=$?
	if [ $got = 1 ] && [ "$(wc -l <"$tmp/out")" = 1 ] && grep -q "$name.pcap.*record 2 at byte 100" "$tmp/err"; then
		refused=$((refused + 1))
	else
		echo "FAILED: '$*': status $got"
		sed 's/^/   /' "$tmp/err" "$tmp/out"
		failed=$((failed + 1))
	fi
}
for name in cut-header cut-data huge negative; do
	broken $name gen null: --replay "$tmp/$name.pcap"
	broken $name recv "pcap:$tmp/$name.pcap"
done

# --- what is no file ------------------------------------------------------------------------------
mkdir "$tmp/folder"
mkfifo "$tmp/fifo"
: >"$tmp/empty"
printf 'a\0b\n' >"$tmp/zero"
truncate -s 1G "$tmp/sparse"
printf 'x' >"$tmp/locked" && chmod 0 "$tmp/locked"
# Anybody may run it, and is refused that file.
cp "$holdoff" "$tmp/holdoff"
anybody=()
[ "$(id -u)" != 0 ] || anybody=(setpriv --reuid=65534 --clear-groups)
for command in "forward -f " "gen null: -c 1 -f " "gen null: -c 1 --replay " "rr null: -f " "fib load " "sweep --merge " \
	"lab run " "lab show " "explain lab:" "sweep lab:" "tune lab:" "recv pcap:"; do
	# shellcheck disable=SC2086
	refuse 1 "$tmp/folder: is a directory" "$holdoff" $command"$tmp/folder"
	refuse 1 "$tmp/zero" "$holdoff" $command"$tmp/zero"
	refuse 1 "$tmp/sparse" "$holdoff" $command"$tmp/sparse"
	refuse 1 "$tmp/nowhere: " "$holdoff" $command"$tmp/nowhere"
	refuse any "$tmp/locked: " ${anybody[@]+"${anybody[@]}"} "$tmp/holdoff" $command"$tmp/locked"
	# An empty list of routes is one.
	[ "$command" = "fib load " ] || refuse 1 "$tmp/empty" "$holdoff" $command"$tmp/empty"
done
# A pipe without a writer: waits and says so, and ends when it is told to.
"$holdoff" forward -f "$tmp/fifo" >"$tmp/fifo.out" 2>"$tmp/fifo.err" &
waiting=$!
until_true 60 grep -q "fifo: nothing comes from there; waiting" "$tmp/fifo.err" ||
	{ echo "FAILED: nobody says that a pipe is waited for"; failed=$((failed + 1)); }
kill $waiting
until_true 60 has_ended $waiting || { echo "FAILED: a signal does not end the waiting"; failed=$((failed + 1)); }
# And reads what comes at last.
"$holdoff" gen null: -c 1 -f "$tmp/fifo" >"$tmp/fifo.out" 2>"$tmp/fifo.err" &
waiting=$!
until_true 60 grep -q "waiting" "$tmp/fifo.err"
printf 'streams:\n  - ipsrc: 10.0.0.1\n' >"$tmp/fifo"
wait $waiting
[ $? = 1 ] && grep -q "fifo:2:5: " "$tmp/fifo.err" ||
	{ echo "FAILED: what comes from a pipe: $(cat "$tmp/fifo.err")"; failed=$((failed + 1)); }

# --- interfaces ----------------------------------------------------------------------------------
finish() {
	[ $failed = 0 ] || { echo "$failed not refused as they should be"; exit 1; }
	echo "$refused wrong inputs refused, each with its message and status"
	exit 0
}
if [ "$(id -u)" != 0 ] || ! add_namespaces "$A"; then
	finish
fi
ip -n "$A" link add ia type veth peer name ib
ip -n "$A" link set ia up
ip -n "$A" link set ib up
until_true 60 has_carrier "$A" ia
a() {
	local status=$1 says=$2
	shift 2
	refuse "$status" "$says" ip netns exec "$A" "$@"
}
for kind in xdp packet; do
	for command in gen recv; do
		a 1 "no such interface" "$holdoff" $command $kind:nowhere
		a 1 "from 1 to" "$holdoff" $command $kind:ia -q 0
	done
	# Linux lets pass four bytes more than the MTU says, for a tag.
	a 1 "MTU" "$holdoff" gen $kind:ia -c 1 --size 1519
	a 1 "MTU" "$holdoff" gen $kind:ia -c 1 --size 60-9000
	a 1 "queues" "$holdoff" gen $kind:ia,queues=1000
done
# A tap knows its MTU before it is started; a tag has room of its own, as the kernel has it.
a 1 "MTU" "$holdoff" gen tap:it -c 1 --size 1515
a 1 "MTU" "$holdoff" gen tap:it,mtu=9000 -c 1 --size 9015
a 1 "MTU" "$holdoff" gen tap:it -c 1 --vlan 5 --size 1519
ip netns exec "$A" "$holdoff" gen tap:it -c 1 --vlan 5 --size 1518 -j >"$tmp/out" 2>&1 &&
	grep -q '"delivered":1,' "$tmp/out" ||
	{ echo "FAILED: a tagged frame as long as the MTU: $(cat "$tmp/out")"; failed=$((failed + 1)); }
ip netns exec "$A" "$holdoff" gen packet:ia -c 1 --size 1514 -j >"$tmp/out" 2>&1 ||
	{ echo "FAILED: a frame as long as the MTU: $(cat "$tmp/out")"; failed=$((failed + 1)); }

# Two owners of one queue.
attached() { ip -n "$A" link show ia | grep -q xdp; }
# now COMMAND...: it becomes true, or the test fails.
now() {
	until_true 60 "$@" && return
	echo "FAILED: never true: $*"
	failed=$((failed + 1))
}
ip netns exec "$A" "$holdoff" recv xdp:ia -j >/dev/null 2>&1 &
owner=$!
now attached
a 2 "attached already" "$holdoff" recv xdp:ia
kill $owner && wait $owner
ip netns exec "$A" "$holdoff" gen xdp:ia --rate 1pps -j >/dev/null 2>&1 &
owner=$!
now has_tasks $owner 2
a 2 "has an AF_XDP socket already" "$holdoff" gen xdp:ia
kill $owner && wait $owner
ip netns exec "$A" "$holdoff" recv tap:it -j >/dev/null 2>&1 &
owner=$!
now has_carrier "$A" it
a 2 "it" "$holdoff" recv tap:it
kill $owner && wait $owner

# A link that goes away and comes back is said, and ends nothing.
for kind in xdp packet; do
	ip netns exec "$A" "$holdoff" recv $kind:ia -j >"$tmp/out" 2>"$tmp/err" &
	owner=$!
	now has_tasks $owner 2
	ip -n "$A" link set ib down
	now grep -q "^holdoff: $kind:ia: its link or peer is gone" "$tmp/err"
	ip -n "$A" link set ib up
	now grep -q "^holdoff: $kind:ia: its link or peer is back" "$tmp/err"
	kill $owner
	wait $owner || { echo "FAILED: $kind: a link that came back: status $?"; failed=$((failed + 1)); }
done

# An interface that is removed ends the run, and is named.
for what in recv:xdp recv:packet gen:xdp gen:packet; do
	ip -n "$A" link add iy type veth peer name iz
	ip -n "$A" link set iy up
	ip -n "$A" link set iz up
	until_true 60 has_carrier "$A" iy
	ip netns exec "$A" "$holdoff" "${what%:*}" "${what#*:}:iy" -j >/dev/null 2>"$tmp/err" &
	owner=$!
	now has_tasks $owner 2
	ip -n "$A" link del iy
	now has_ended $owner
	wait $owner
	got=$?
	if [ $got = 2 ] && grep -Eq "${what#*:}:iy: the (interface was removed|link or the peer is gone)" "$tmp/err"; then
		refused=$((refused + 1))
	else
		echo "FAILED: $what, interface removed: status $got: $(cat "$tmp/err")"
		failed=$((failed + 1))
		kill -9 $owner 2>/dev/null
	fi
done

# Without capabilities.
for what in "gen packet:ia:cap_net_raw" "recv packet:ia:cap_net_raw" "recv xdp:ia:cap_net_raw" \
	"gen xdp:ia:cap_net_raw" "gen tap:iu:cap_net_admin"; do
	cap=${what##*:} args=${what%:*}
	a 2 "$cap" setpriv --reuid=65534 --clear-groups "$tmp/holdoff" $args -c 1
	grep -q "setcap .*$cap.*+ep $tmp/holdoff" "$tmp/err" ||
		{ echo "FAILED: no setcap line: $(cat "$tmp/err")"; failed=$((failed + 1)); }
done

# Who does what the message says may do what was asked for: at once, as long as the command does not
# need two kinds of ports, of which the first one complains first.
advice=0
# advised COMPLAINTS ARGS...
advised() {
	local complaints=$1 n got=1 line
	shift
	setcap -r "$tmp/holdoff" 2>/dev/null
	for n in $(seq 0 "$complaints"); do
		(ulimit -l 8192 && exec timeout -k 5 100 ip netns exec "$A" setpriv --reuid=65534 \
			--clear-groups "$tmp/holdoff" "$@" -Q) >"$tmp/out" 2>"$tmp/err"
		got=$?
		line=$(sed -n "s/.*'\(setcap cap_[a-z_,]*+ep\) .*/\1/p" "$tmp/err")
		[ $got = 2 ] && [ -n "$line" ] || break
		$line "$tmp/holdoff" || break
	done
	[ $got = 0 ] && [ "$n" = "$complaints" ] && advice=$((advice + 1)) && return
	echo "FAILED: '$*' after $n lines of setcap, the last one '$line': $(cat "$tmp/err")"
	failed=$((failed + 1))
}
ip netns exec "$A" ethtool -K ib gro on
if setcap cap_net_raw+ep "$tmp/holdoff" 2>/dev/null && (ulimit -l 8192); then
	advised 1 recv packet:ia -d 10ms
	advised 1 recv xdp:ia -d 10ms
	advised 1 recv xdp:ia -d 10ms --buffers 2000
	advised 1 recv xdp:ia -d 10ms --filter 'udp port 9'
	advised 1 recv "xdp:ia,filter=udp port 9" -d 10ms
	advised 1 gen xdp:ia -c 1
	advised 1 gen xdp:ia,tx=live -c 1
	advised 1 gen tap:iu -c 1
	advised 2 patch tap:iu xdp:ia -d 10ms
	advised 2 patch packet:ib tap:iu -d 10ms
	advised 2 forward xdp:ia -d 10ms
fi
[ $advice -gt 0 ] || echo "not tried: what the setcap lines say, because this machine takes none"

# What is not needed after start is given up, by each thread: the one that reads memif's socket too.
"$holdoff" recv "memif:$tmp/socket" --wait 200s -j >/dev/null 2>&1 &
owner=$!
# Once the peer is waited for, capabilities are gone: all but the one that removes the socket.
gave_up() {
	[ "$(cat /proc/$owner/task/*/status | grep -c '^CapEff')" = 2 ] &&
		[ "$(cat /proc/$owner/task/*/status | grep '^CapEff' | sort -u | cut -f 2)" = 0000000000000002 ]
}
now gave_up
kill $owner && wait $owner

# The interface of the default route.
ip -n "$A" addr add 10.97.0.1/24 dev ia
ip -n "$A" route add default via 10.97.0.2
for port in packet:ia xdp:ia; do
	a 2 "--force" "$holdoff" gen $port -c 1
	a 2 "--force" "$holdoff" recv $port -c 1
	ip netns exec "$A" "$holdoff" gen $port -c 1 --force -j >"$tmp/out" 2>&1 ||
		{ echo "FAILED: --force does not help: $(cat "$tmp/out")"; failed=$((failed + 1)); }
done
finish
