#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# holdoff explain of a live interface whose limit is known: nothing comes; a program does not read its
# socket; no program listens. The text, the JSON and the kernel's counters must agree.
#
#   namespace a: holdoff gen packet:exla ---- veth ---- namespace b: exlb, a socket, holdoff explain
set -u
. "$(dirname "$0")/shared.bash"
HOLDOFF=$(realpath "${HOLDOFF:-build/holdoff}")
needs_root
needs jq python3
a=exl-a-$$ b=exl-b-$$
add_namespaces "$a" "$b" || skip "no network namespaces here"
ip link add exla netns "$a" type veth peer name exlb netns "$b" || exit 1
ip -n "$b" addr add 198.18.8.2/24 dev exlb
ip -n "$a" link set exla up && ip -n "$b" link set exlb up || exit 1
until_true 60 has_carrier "$a" exla && until_true 60 has_carrier "$b" exlb || exit 1

# udp NAME: the namespace's counter, say NoPorts.
udp() {
	ip netns exec "$b" awk -v name="$1" '$1 == "Udp:" { if (!n) for (n = 2; $n != name; n++); else print $n }' \
		/proc/net/snmp
}
udp_more_than() { [ "$(udp "$1")" -gt "$2" ]; }
backlog_drops() {
	local n sum=0
	while read -r _ n _; do sum=$((sum + 0x$n)); done </proc/net/softnet_stat
	echo $sum
}

# explain TIME: looks at the same seconds twice, into $tmp/text and $tmp/json.
explain() {
	local other
	ip netns exec "$b" "$HOLDOFF" explain exlb -d "$1" >"$tmp/text" 2>"$tmp/err" &
	other=$!
	ip netns exec "$b" "$HOLDOFF" explain exlb -d "$1" -j >"$tmp/json" 2>>"$tmp/err" && wait "$other"
}

# explain_traffic COUNTER: seconds that can be judged: none in which the sender got no CPU, nor in
# which the backlog lost frames, whose counters are the whole machine's.
# $before_it, $after_it: COUNTER around them.
explain_traffic() {
	local left=60 lost
	while [ $((left--)) -gt 0 ]; do
		lost=$(backlog_drops)
		before_it=$(udp "$1")
		explain 1s || return 1
		after_it=$(udp "$1")
		jq -e '.interfaces[0].evidence.rx_pps > 100' "$tmp/json" >/dev/null &&
			grep -qE '^ +([0-9.]+ k|[1-9][0-9]{2})' "$tmp/text" &&
			[ "$(backlog_drops)" = "$lost" ] && return 0
	done
	return 1
}

json() { jq -e ".interfaces[0] | $1" "$tmp/json"; }
says() { tr -s ' \n' ' ' <"$tmp/text" | grep -q -- "$1"; }
# The text says what the JSON does, and nothing is advised that cannot be of use.
both_agree() {
	check "  one object, of this interface" jq -es 'length == 1 and (.[0] | .schema == 1 and .command == "explain"
		and .target == "exlb" and (.interfaces | length) == 1 and .interfaces[0].interface == "exlb")' "$tmp/json"
	check "  verdict and confidence" says "^exlb: $(json .verdict | jq -r .) ($1)\. The arithmetic "
	check "  no setting is advised, but what to do" says "What to do No setting here promises more. $(json .remedy | jq -r .)"
	check "  nor in the JSON" json '.advice == null and (has("commands") | not)'
	check "  what is unknown has no value" json '. as $i | all(.unknown[]; $i.evidence[.] == null)'
}
# measured KEY: the arithmetic begins with this number of the evidence, which is of the kernel's counter.
measured() {
	jq -e --arg key "$1" --argjson most $((after_it - before_it)) '.interfaces[0] | .evidence[$key] as $v |
		(.arithmetic | capture("^(?<n>[0-9.]+) (?<k>k?)")) as $a |
		($a.n | tonumber * (if $a.k == "k" then 1000 else 1 end)) as $n |
		$v > 0 and $v <= $most and $n > $v * 0.999 and $n < $v * 1.001' "$tmp/json"
}

echo "== nothing comes"
check "explain" explain 200ms
check "idle, for certain" json '.cause == "idle" and .certainty == 1 and .per_s == 0 and
	(.arithmetic | test("^0 frames in 0\\.[2-9]|^0 frames in [1-9]"))'
both_agree "nearly certain"

echo "== a program that does not read"
ip netns exec "$b" python3 -c '
import signal, socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
s.bind(("198.18.8.2", 9))
signal.pause()' &
reader=$!
# Few enough for no queue to overflow on a busy machine, and in no step with the ticks by which the kernel
# accounts for CPU time.
ip netns exec "$a" "$HOLDOFF" gen packet:exla --rate 2011pps -d 600s -Q --ip-dst 198.18.8.2 --ip-src 198.18.8.1 \
	--dst-port 9 --eth-dst "$(ip netns exec "$b" cat /sys/class/net/exlb/address)" >"$tmp/gen" 2>&1 &
until_true 60 udp_more_than RcvbufErrors 0 || { check "the socket overflows: $(cat "$tmp/gen")" false; exit 1; }
check "explain" explain_traffic RcvbufErrors
check "the socket is named" json '.cause == "socket" and .certainty == 0.8 and (.verdict | test("socket overflows"))'
check "with the kernel's numbers" measured socket_drops_per_s
both_agree likely
check "SO_RCVBUF is told" json '.remedy | test("SO_RCVBUF")'
check "a veth has no ring and no moderation to be read" json '.unknown | index("rx") and index("rx_usecs")'
check "  and the text says what that hides" says 'could not be read, and what that hides .* rx_usecs moderation '

echo "== no program that listens"
none=$(udp NoPorts)
kill $reader
wait $reader 2>/dev/null
until_true 60 udp_more_than NoPorts "$none" || check "nobody listens" false
check "explain" explain_traffic NoPorts
check "that none listens is named" json '.cause == "no-port" and .certainty == 0.8 and (.verdict | test("no program listens"))'
check "with the kernel's numbers" measured no_port_per_s
both_agree likely

echo "== refusals"
ip netns exec "$b" "$HOLDOFF" explain exlc 2>"$tmp/err"
check "no such interface: status 1" [ $? = 1 ]
check "  and says so" grep -q "exlc: no such interface" "$tmp/err"
ip netns exec "$b" "$HOLDOFF" explain exlb -d 1ms 2>"$tmp/err"
check "no such time: status 1" [ $? = 1 ]
[ $failed = 0 ] || { cat "$tmp/err" "$tmp/text" "$tmp/json"; }
exit $failed
