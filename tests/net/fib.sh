#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# holdoff fib: what it reads, what it answers, how it says what it cannot read.
#
#   file or 'ip route' of a namespace --> holdoff fib load | lookup        (no packet moves)
set -u
HOLDOFF=${HOLDOFF:-$(dirname "$0")/../../build/holdoff}
tmp=$(mktemp -d) || exit 1
ns=hofib$$
trap 'ip netns del "$ns" 2>/dev/null; rm -rf "$tmp"' EXIT
failed=0

fail() {
	echo "FAIL: $*"
	failed=1
}
# expect NAME WANTED GOT
expect() { [ "$2" = "$3" ] || fail "$1: wanted '$2', got '$3'"; }

cat >"$tmp/routes" <<'EOF'
# a comment, then an empty line

0.0.0.0/0 everything
10.0.0.0/8 a
10.1.0.0/16	b   # behind a tab
10.1.2.0/24 c
10.1.2.3 d
10.1.0.0/16 twice
2001:db8::/32 e
2001:db8:0:1::/64 f
EOF
expect plain "10.1.2.3 10.1.2.3/32 d
10.1.2.4 10.1.2.0/24 c
10.1.3.1 10.1.0.0/16 b
10.255.0.1 10.0.0.0/8 a
192.0.2.1 0.0.0.0/0 everything
2001:db8:0:1::9 2001:db8:0:1::/64 f
2001:db8:1:: 2001:db8::/32 e
::1 no route" "$("$HOLDOFF" fib lookup 10.1.2.3 10.1.2.4 10.1.3.1 10.255.0.1 192.0.2.1 \
	2001:db8:0:1::9 2001:db8:1:: ::1 -f "$tmp/routes")"
expect "standard input" "10.1.2.4 10.1.2.0/24 c" \
	"$("$HOLDOFF" fib lookup 10.1.2.4 <"$tmp/routes")"
expect json "10.1.2.0/24 c null" "$("$HOLDOFF" fib lookup 10.1.2.4 ::1 -j -f "$tmp/routes" |
	jq -r '"\(.results[0].prefix) \(.results[0].next_hop) \(.results[1].prefix)"')"
expect "load" "5 2 1 7" "$("$HOLDOFF" fib load "$tmp/routes" -j |
	jq -r '"\(.ipv4_routes) \(.ipv6_routes) \(.repeated) \(.next_hops)"')"

# What cannot be read: line, column, exit status 1.
wrong() {
	local message
	printf '10.0.0.0/8 a\n%s\n' "$1" >"$tmp/wrong"
	message=$("$HOLDOFF" fib load "$tmp/wrong" 2>&1)
	expect "status of '$1'" 1 $?
	case $message in
	*"$tmp/wrong:2:$2: "*) ;;
	*) fail "'$1': no ':2:$2:' in '$message'" ;;
	esac
}
wrong '10.0.0.0/33 a' 10
# Bytes that a terminal would act on are named, not sent there.
printf 'a\033[31mb\377\302\233\303\274 x\n' >"$tmp/bytes"
expect "a message about any bytes" "holdoff: $tmp/bytes:1:1: 'a\\x1b[31mb\\xff\\xc2\\x9b$(printf '\303\274')': no IPv4 or IPv6 prefix" \
	"$("$HOLDOFF" fib load "$tmp/bytes" 2>&1)"
wrong '10.0.0.0/ a' 10
wrong '  10.0.0.1/8 a' 3
wrong '2001:db8::/129 a' 12
wrong 'nonsense a' 1
wrong '10.2.0.0/16' 1
wrong '10.2.0.0/16 one two' 13
"$HOLDOFF" fib load "$tmp/none" 2>/dev/null
expect "status of a missing file" 1 $?
"$HOLDOFF" fib lookup 10.0.0.300 -f "$tmp/routes" 2>/dev/null
expect "status of a wrong address" 1 $?
"$HOLDOFF" fib 2>/dev/null
expect "status without a command" 1 $?

# The bench prints what it should, small.
expect "bench" "6 500 4 true" "$("$HOLDOFF" fib bench --family 6 --routes 500 --rounds 1 -j |
	jq -r '"\(.family) \(.routes) \(.lookups | length) \(.update_ns > 0)"')"
expect "bench of one kind" "uniform" "$("$HOLDOFF" fib bench --routes 1k --rounds 1 --shape uniform \
	--addresses uniform --bulk 7 -j | jq -r '.lookups[0].addresses')"

# What ip prints, of a namespace: the answers of the kernel itself.
if ip netns add "$ns" 2>/dev/null; then
	ip -n "$ns" link add d0 type veth peer name d1
	ip -n "$ns" link set d0 up
	ip -n "$ns" link set d1 up
	ip -n "$ns" addr add 192.0.2.1/24 dev d0
	ip -n "$ns" addr add 2001:db8::1/64 dev d0 nodad
	ip -n "$ns" route add default via 192.0.2.254
	ip -n "$ns" route add 198.51.100.0/24 via 192.0.2.9
	ip -n "$ns" route add blackhole 203.0.113.0/24
	ip -n "$ns" route add 100.64.0.0/10 nexthop via 192.0.2.7 dev d0 weight 2 nexthop via 192.0.2.8 dev d0
	ip -n "$ns" -6 route add 2001:db8:5::/48 via 2001:db8::9
	ip -n "$ns" -6 route add default via fe80::1 dev d0
	{ ip -n "$ns" route; ip -n "$ns" -6 route; } >"$tmp/ip"
	expect "ip route" "8.8.8.8 0.0.0.0/0 via 192.0.2.254 dev d0
198.51.100.7 198.51.100.0/24 via 192.0.2.9 dev d0
192.0.2.77 192.0.2.0/24 dev d0
203.0.113.1 203.0.113.0/24 blackhole
100.64.0.1 100.64.0.0/10 multipath
2001:db8:5::1 2001:db8:5::/48 via 2001:db8::9 dev d0
2001:db8::5 2001:db8::/64 dev d0
2400:: ::/0 via fe80::1 dev d0" "$("$HOLDOFF" fib lookup 8.8.8.8 198.51.100.7 192.0.2.77 203.0.113.1 \
		100.64.0.1 2001:db8:5::1 2001:db8::5 2400:: -f "$tmp/ip")"
else
	echo "no namespace: what ip prints is not tested"
fi

[ "$failed" = 0 ] && echo "fib: all as it should be"
exit "$failed"
