#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Ports packet: between two namespaces, against each other and against tcpdump and scapy.
#
#   namespace A                       namespace B
#   +-----------------+               +-----------------+
#   | packet:v0 -- v0 |===== veth ====| v1 -- packet:v1 |
#   +-----------------+               +-----------------+
#                                       tcpdump, scapy
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
holdoff=${HOLDOFF:-$top/build/holdoff}
peer=$(dirname "$holdoff")/tests/net/port_peer
# shellcheck source=tests/net/shared.bash
. "$top/tests/net/shared.bash"
needs_root
[ -x "$peer" ] || skip "no $peer"
needs tcpdump setpriv /usr/bin/python3
A=hofpa$$ B=hofpb$$
fail() { echo "packet_veth: $*" >&2; cat "$tmp"/*.out >&2; exit 1; }
inA() { ip netns exec $A "$@"; }
inB() { ip netns exec $B "$@"; }

# value KEY FILE: of the last line that has it; 0 if none.
value() { local v; v=$(grep -o "\b$1=[^ ]*" "$2" | tail -n 1); echo "${v#*=}" | grep . || echo 0; }

# start_rx ARGS...: in B, into rx.out; returns when it receives.
start_rx() {
	: >"$tmp/rx.out"
	ip netns exec $B timeout 300 "$peer" rx "$@" wait_for_end=yes >"$tmp/rx.out" 2>&1 &
	rx=$!
	until_true 60 grep -q ready "$tmp/rx.out" || fail "the receiver does not start: $*"
}
# end_rx: all was sent; it ends when nothing more comes.
end_rx() {
	pkill -USR1 -P $rx
	wait $rx
}

tx() { inA timeout 300 "$peer" tx "$@" >"$tmp/tx.out" 2>&1; }

# start_tx ARGS...: in A, in the background, until end_tx; returns when it has sent a thousand frames.
many=100000000
start_tx() {
	local before
	before=$(statistic $A v0 tx_packets)
	ip netns exec $A timeout 300 "$peer" tx "$@" count=$many >"$tmp/tx.out" 2>&1 &
	tx=$!
	until_true 60 more_than $A v0 tx_packets $((before + 1000)) || fail "nothing is sent: $*"
}
end_tx() {
	kill $tx
	wait $tx
}
# let_it_send: whatever a busy machine makes of it, the sender has had a CPU for 50 ms, some hundred
# bursts, in between.
let_it_send() { until_true 60 has_run $tx $(($(cpu_ms $tx) + 50)) || fail "the sender does not run"; }

# Without a program or GRO the kernel has a queue for each CPU between the two ends of a veth, and keeps
# the order of frames of one CPU only.
one_cpu=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')

# Offered to A's port = received by B's + the drops with names.
balanced() {
	local sum=0 word
	for word in $(grep -ho '\b[rt]x_[a-z_]*=[0-9]*' "$tmp/tx.out" "$tmp/rx.out"); do
		sum=$((sum + ${word#*=}))
	done
	[ "$(value accepted "$tmp/tx.out")" = "$1" ] || fail "$2: not all of $1 accepted"
	[ $(($(value frames "$tmp/rx.out") + sum)) = "$1" ] ||
		fail "$2: $1 offered, $(value frames "$tmp/rx.out") received, $sum dropped"
	[ "$(value bad_csum "$tmp/rx.out")" = 0 ] || fail "$2: wrong checksums"
}

add_namespaces $A $B || skip "cannot make namespaces"
ip -n $A link add v0 numrxqueues 4 numtxqueues 4 type veth peer name v1 netns $B numrxqueues 4 \
	numtxqueues 4 || { echo "no veth"; exit 77; }
ip -n $A link set v0 up
ip -n $B link set v1 up
until_true 60 has_carrier $A v0 && until_true 60 has_carrier $B v1 || fail "the link does not come up"
# The stack of B must not answer or forward.
filter="udp port 9"

# 1. Conservation to the packet, every pair of ways.
for way in v3 v2; do
	for how in mmsg ring; do
		start_rx packet:v1,rx=$way count=1000000 filter="$filter"
		tx packet:v0,tx=$how count=1000000 || fail "tx=$how: exit status $?"
		end_rx || fail "rx=$way: exit status $?"
		balanced 1000000 "rx=$way tx=$how"
	done
done
echo "1 million frames each way: balanced"

# 2. Several queues, each way of spreading: no frame twice, none lost without a name.
for fanout in hash lb cpu queue; do
	start_rx packet:v1,fanout=$fanout queues=3 count=100000 filter="$filter"
	tx packet:v0 queues=2 count=100000 || fail "two queues: exit status $?"
	end_rx || fail "fanout=$fanout: exit status $?"
	balanced 100000 "fanout=$fanout"
	[ $fanout = hash ] || [ $fanout = lb ] || continue
	# Of 64 flows a queue gets less than 4 once in 10^7 times.
	for q in 0 1 2; do
		[ "$(value rx$q "$tmp/rx.out")" -gt $(($(value frames "$tmp/rx.out") / 20)) ] || fail "fanout=$fanout: queue $q idle"
	done
done
echo "several queues: balanced"

# 3. Jumbo frames in several buffers, both ways of sending; one byte more is too long.
ip -n $A link set v0 mtu 9000
ip -n $B link set v1 mtu 9000
for how in mmsg ring; do
	start_rx packet:v1 count=5000 filter="$filter"
	tx packet:v0,tx=$how count=5000 size=9014 || fail "jumbo tx=$how: exit status $?"
	end_rx || fail "jumbo: exit status $?"
	balanced 5000 "jumbo tx=$how"
	[ "$(value frames "$tmp/rx.out")" -gt 0 ] || fail "no jumbo frame arrived"
	tx packet:v0,tx=$how count=10 size=9015 || fail "too long: exit status $?"
	[ "$(value tx_too_long "$tmp/tx.out")" = 10 ] || fail "9015 bytes are not tx_too_long"
	# A tag does not count, in the frame or beside it.
	tx packet:v0,tx=$how count=10 size=9014 vlan=5 || fail "tagged: exit status $?"
	[ "$(value tx "$tmp/tx.out")" = 10 ] || fail "9014 bytes and a tag are not sent"
done
ip -n $A link set v0 mtu 1500
ip -n $B link set v1 mtu 1500
echo "jumbo frames: right"

# 4. What tcpdump sees is what was sent, byte for byte, tags and completed checksums included.
for how in tx=mmsg tx=ring tx=mmsg,offload tx=ring,offload; do
	rm -f "$tmp/seen.pcap"
	ip netns exec $B tcpdump -i v1 -w "$tmp/seen.pcap" -U --immediate-mode udp or vlan 2>"$tmp/tcpdump.out" &
	dump=$!
	until_true 60 grep -q 'listening on' "$tmp/tcpdump.out" || fail "tcpdump does not listen"
	for size in 60 61 1000 1514; do
		for option in csum=partial vlan=0x2005; do
			inA taskset -c "$one_cpu" timeout 300 "$peer" tx packet:v0,$how count=20 size=$size $option \
				>"$tmp/tx.out" 2>&1 || fail "$how, $option: exit status $?"
		done
	done
	count() { [ "$(tcpdump -r "$tmp/seen.pcap" 2>/dev/null | wc -l)" -ge 160 ]; }
	until_true 60 count || fail "tcpdump saw too few frames with $how"
	kill $dump && wait $dump 2>/dev/null
	/usr/bin/python3 - "$tmp/seen.pcap" "$how" >"$tmp/scapy.out" 2>&1 <<'PY' || fail "frames differ with $how"
import sys
from scapy.all import rdpcap, Ether, IP, UDP, Dot1Q, raw
frames = [p for p in rdpcap(sys.argv[1])]
expected = []
for size in (60, 61, 1000, 1514):
    for tag in (False, True):
        for seq in range(20):
            udp = UDP(sport=1024 + seq, dport=9)
            payload = seq.to_bytes(8, "big") + bytes(i & 255 for i in range(50, size))
            eth = Ether(dst="ff:ff:ff:ff:ff:ff", src="02:00:00:00:00:01")
            if tag:
                eth = eth / Dot1Q(vlan=5, prio=1)
            expected.append((tag, raw(eth / IP(src="192.0.2.1", dst="192.0.2.2", ttl=64, id=0) / udp / payload)))
assert len(frames) == len(expected), f"{len(frames)} frames, not {len(expected)}"
for i, ((tag, want), got) in enumerate(zip(expected, frames)):
    got = raw(got)
    # veth leaves checksums to be done to whoever ends the path: tcpdump sees them undone then.
    if "offload" in sys.argv[2] and not tag:
        want, got = want[:40] + want[42:], got[:40] + got[42:]
    assert want == got, f"frame {i}: {want.hex()} became {got.hex()}"
PY
done
echo "tcpdump and scapy: every frame as sent"

# 5. Tags and unfinished checksums arrive beside the frame: what scapy and the kernel send comes
# out of a capture that we write as it went in.
: >"$tmp/rx.out"
ip netns exec $B timeout 300 "$peer" patch packet:v1 "pcap:$tmp/ours.pcap" filter="udp or vlan" \
	>"$tmp/rx.out" 2>&1 &
rx=$!
until_true 60 grep -q ready "$tmp/rx.out" || fail "patch does not start"
inA taskset -c "$one_cpu" /usr/bin/python3 >"$tmp/scapy.out" 2>&1 <<'PY' || fail "scapy cannot send"
from scapy.all import *
s = conf.L2socket(iface="v0")
for i in range(30):
    e = Ether(src="02:00:00:00:00:07", dst="02:00:00:00:00:08")
    if i % 3 == 1:
        e = e / Dot1Q(vlan=i, prio=2)
    if i % 3 == 2:
        e = e / Dot1AD(vlan=100 + i, prio=2) / Dot1Q(vlan=i)
    s.send(e / IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=i, dport=7) / (b"x" * (40 + 40 * i)))
PY
# The file is written at the latest 20 ms after a frame came; all 30 make some 21 KB.
whole() { [ "$(tcpdump -r "$tmp/ours.pcap" 2>/dev/null | wc -l)" -ge 30 ]; }
until_true 60 whole || fail "not all of the tagged frames are in the capture"
kill $rx && wait $rx || fail "patch: exit status $?"
[ "$(value rx_link "$tmp/rx.out")" = 0 ] || fail "frames that were received count as dropped"
/usr/bin/python3 - "$tmp/ours.pcap" >"$tmp/scapy.out" 2>&1 <<'PY' || fail "tagged frames differ"
import sys
from scapy.all import *
got = rdpcap(sys.argv[1])
assert len(got) == 30, len(got)
for i, p in enumerate(got):
    e = Ether(src="02:00:00:00:00:07", dst="02:00:00:00:00:08")
    if i % 3 == 1:
        e = e / Dot1Q(vlan=i, prio=2)
    if i % 3 == 2:
        e = e / Dot1AD(vlan=100 + i, prio=2) / Dot1Q(vlan=i)
    want = raw(e / IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=i, dport=7) / (b"x" * (40 + 40 * i)))
    assert raw(p) == want, f"{i}: {want.hex()} became {raw(p).hex()}"
PY
if command -v capinfos >/dev/null; then
	capinfos -c "$tmp/ours.pcap" >"$tmp/capinfos.out" 2>&1 || fail "capinfos refuses our capture"
	grep -q 'Number of packets: *30' "$tmp/capinfos.out" || fail "capinfos counts otherwise"
	tshark -r "$tmp/ours.pcap" -T fields -e ieee8021ad.id -e vlan.id >"$tmp/tshark.out" 2>/dev/null ||
		fail "tshark refuses our capture"
	[ "$(grep -cP '^1[0-9][0-9]\t[0-9]+$' "$tmp/tshark.out")" = 10 ] || fail "tshark does not see the double tags"
fi
echo "tags beside the frame: as sent"

# 6. The link goes down and comes up in the middle: named, balanced, and it goes on.
start_rx packet:v1 count=$many filter="$filter"
start_tx packet:v0 gap=200000
ip -n $A link set v0 down
let_it_send
before=$(statistic $B v1 rx_packets)
ip -n $A link set v0 up
until_true 60 more_than $B v1 rx_packets $((before + 1000)) || fail "it did not go on after the link came up"
end_tx || fail "down and up: tx exit status $?"
end_rx || fail "down and up: rx exit status $?"
balanced "$(value accepted "$tmp/tx.out")" "down and up"
[ "$(value tx_link_down "$tmp/tx.out")" -gt 0 ] || fail "no tx_link_down"
start_tx packet:v0,tx=ring gap=200000
ip -n $A link set v0 down
let_it_send
ip -n $A link set v0 up
end_tx || fail "ring, down and up: tx exit status $?"
[ "$(value tx_link_down "$tmp/tx.out")" -gt 0 ] || fail "ring: no tx_link_down"
# The MTU is lowered under a ring that has longer frames in it, and under sendmmsg.
for how in ring mmsg; do
	ip -n $A link set v0 mtu 1500
	start_tx packet:v0,tx=$how size=1400 gap=100000
	ip -n $A link set v0 mtu 1000
	let_it_send
	end_tx || fail "$how, MTU lowered: exit status $?"
	lost=$(($(value tx_kernel "$tmp/tx.out") + $(value tx_too_long "$tmp/tx.out")))
	[ $lost -gt 0 ] || fail "$how: a lowered MTU is not seen"
	[ $((lost + $(value tx "$tmp/tx.out"))) = "$(value accepted "$tmp/tx.out")" ] ||
		fail "$how, MTU lowered: not balanced"
done
ip -n $A link set v0 mtu 1500
echo "down, up, MTU: named"

# 7. What must be refused, and how.
says() {
	local want=$1
	shift
	inA "$@" >"$tmp/err.out" 2>&1 && fail "'$*' works"
	grep -qF -- "$want" "$tmp/err.out" || fail "'$*' does not say '$want'"
}
says "no such interface" "$peer" rx packet:nowhere
says "filter 'bogus (('" "$peer" rx packet:v0 filter="bogus (("
says "at most 64" "$peer" rx packet:v0 queues=65
says "a transmit ring of 100 frames" "$peer" tx packet:v0,tx=ring ring=100
says "setcap" setpriv --bounding-set=-net_raw --inh-caps=-net_raw "$peer" rx packet:v0
ip -n $A addr add 10.9.0.1/24 dev v0
ip -n $A route add default via 10.9.0.2
says "default route" "$peer" tx packet:v0 count=1
inA "$peer" tx packet:v0 count=1 force=yes >"$tmp/tx.out" 2>&1 || fail "force does not help"
echo "refusals: clear"

# 8. Promiscuous mode is over when the port is, killed or not; removal of the interface is told.
start_rx packet:v1 count=1000
ip -n $B -d link show v1 | grep -q 'promiscuity 1' || fail "not promiscuous"
kill -9 "$(process_of $rx)" 2>/dev/null
wait $rx 2>/dev/null
gone() { ip -n $B -d link show v1 | grep -q 'promiscuity 0'; }
until_true 60 gone || fail "still promiscuous after kill -9"
start_rx packet:v1 count=1000
ip -n $B link del v1
wait $rx && fail "the removed interface is no failure"
grep -q "late_error=packet:v1: the interface was removed" "$tmp/rx.out" ||
	fail "nothing is said about the removed interface"
echo "ends: clean"
