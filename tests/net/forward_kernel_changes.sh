#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# holdoff forward xdp:...: what changes while packets flow: routes, a host's Ethernet address, links,
# addresses, two next hops, other interfaces.
. "$(dirname "$0")/forward_kernel.lib"
needs ping tcpdump
topology
start_router
# Prefixes behind B and D.
for h in B D; do
	ipn $h addr add 10.77.0.1/32 dev lo
	ipn $h -6 addr add fd77::1/128 dev lo
done
follows A 10.2.0.2 3
follows A 10.2.0.3 3
follows A fd02::2 3
follows A fd02::3 3

# steady NAME TO COMMAND...: pings 200 times a second while the command runs; nothing is lost.
steady() {
	local name=$1 to=$2
	shift 2
	rm -f "$tmp/steady"
	ping_all A "$tmp/steady" 600 -i 0.005 "$to" &
	local pinger=$!
	until_true 60 grep -qs "icmp_seq=50 " "$tmp/steady"
	"$@"
	wait $pinger && ok "$name" || fail "$name: $(tail -n 3 "$tmp/steady")"
}
swap_routes() {
	local i
	for i in 1 2 3 4 5 6 7 8; do
		ipn R route replace 10.77.0.0/16 via 10.2.0.$((2 + i % 2))
		ipn R -6 route replace fd77::/32 via fd02::$((2 + i % 2))
		sleep 0.1
	done
}
ipn R route add 10.77.0.0/16 via 10.2.0.2
ipn R -6 route add fd77::/32 via fd02::2
follows A 10.77.0.1 3
follows A fd77::1 3
steady "a route moves from one gateway to another and back without a loss" 10.77.0.1 swap_routes
steady "the same for IPv6" fd77::1 swap_routes

# A more specific one comes and goes; blackhole, prohibit, unreachable.
ipn R route add prohibit 10.77.0.1/32
denied 10.77.0.1 "Packet filtered"
ipn R route del prohibit 10.77.0.1/32
ipn R route add unreachable 10.77.0.1/32
denied 10.77.0.1 "Host Unreachable"
ipn R route del unreachable 10.77.0.1/32
ipn R -6 route add prohibit fd77::1/128
denied fd77::1 "dministratively prohibited"
ipn R -6 route del prohibit fd77::1/128
ipn R route add blackhole 10.77.0.1/32
known
# Not an error either.
until_true 60 silent A 10.77.0.1 && grep -q " 0 received, 100% packet loss" "$tmp/ping" ||
	fail "a blackhole answers: $(cat "$tmp/ping")"
ipn R route del blackhole 10.77.0.1/32
follows A 10.77.0.1 5
ok "kinds of routes"

# Two routes of other metrics: the least is used; when it goes, the other one.
ipn R route add 10.77.0.0/16 via 10.2.0.99 metric 50
known
ping_ok A 10.77.0.1 5
ipn R route del 10.77.0.0/16 metric 0; ipn R route add 10.77.0.0/16 via 10.2.0.3 metric 20
known
ping_ok A 10.77.0.1 5
ipn R route flush 10.77.0.0/16
ok "metrics"

# The kernel takes an MTU that nothing fits into; the router takes the least that a link may have.
ipn R route add 10.77.0.0/16 via 10.2.0.2 mtu 20
known
ping_all A "$tmp/ping" 2 -M dont -s 200 -i 0.05 10.77.0.1 || fail "a tiny MTU: $(cat "$tmp/ping")"
ipn R route flush 10.77.0.0/16
ok "a route's MTU"

# Two next hops: both are used, and one flow keeps to one.
ipn R route add 10.77.0.0/16 nexthop via 10.2.0.2 weight 1 nexthop via 10.2.0.3 weight 1
known
for h in B D; do
	in_ns $h timeout 100 tcpdump -U -n -i eth0 -w "$tmp/dump.$h" 'udp and dst 10.77.0.1' 2>"$tmp/dump.err.$h" &
	until_true 60 grep -q "listening on" "$tmp/dump.err.$h" || fail "tcpdump does not start"
done
in_ns A bash -c 'for ((f = 0; f < 64; f++)); do for i in 1 2 3; do echo x; done >/dev/udp/10.77.0.1/$((9000 + f)); done' 2>/dev/null
flows() { tcpdump -nr "$tmp/dump.$1" 2>/dev/null | sed 's/.* > \([^:]*\):.*/\1/' | sort -u; }
count() { flows "$1" | wc -l; }
# A fair coin gives less than 8 of 64 to one of them once in 10^10 times.
both() { [ $(($(count B) + $(count D))) = 64 ] && [ "$(count B)" -ge 8 ] && [ "$(count D)" -ge 8 ]; }
until_true 60 both && ok "two next hops: $(count B) and $(count D) flows" ||
	fail "two next hops: $(count B) and $(count D) flows"
[ -z "$(comm -12 <(flows B) <(flows D))" ] || fail "a flow went both ways"
# The same by next hop objects, one of which is then replaced.
ipn R route del 10.77.0.0/16
if ipn R nexthop add id 1 via 10.2.0.2 dev rb 2>/dev/null; then
	ipn R nexthop add id 2 via 10.2.0.99 dev rb
	ipn R nexthop add id 10 group 1
	ipn R route add 10.77.0.0/16 nhid 10
	follows A 10.77.0.1 5
	ipn R nexthop replace id 10 group 2
	known
	until_true 60 silent A 10.77.0.1 || fail "the replaced object is still used"
	ipn R nexthop replace id 2 via 10.2.0.3 dev rb
	follows A 10.77.0.1 5
	ipn R nexthop del id 10
	known
	until_true 60 silent A 10.77.0.1 || fail "a route outlives its next hop object"
	ok "next hop objects"
fi
# An IPv4 route by an IPv6 next hop.
ipn B -6 addr add fe80::b/64 dev eth0 nodad
ipn R route add 10.77.0.0/16 via inet6 fe80::b dev rb
follows A 10.77.0.1 5
ok "an IPv4 route by an IPv6 next hop"
ipn R route del 10.77.0.0/16

# A host gets another Ethernet address and says so.
new_mac() {
	ipn B link set eth0 address 02:00:00:00:00:b2
	ipn B route replace default via 10.2.0.1
	answers B 10.2.0.1
	answers B fd02::1
}
new_mac
follows A 10.2.0.2 5
ipn B -6 route replace default via fd02::1
follows A fd02::2 5
ok "a neighbour's new Ethernet address"

# The far link goes and comes; the kernel drops the routes by it, and they are made anew.
ipn R route add 10.78.0.0/16 via 10.3.0.2
ipn C addr add 10.78.0.1/32 dev lo
follows A 10.78.0.1 3
ipn R link set rc down
denied 10.78.0.1 "Unreachable"
ipn R link set rc up
ipn R -6 addr add fd03::1/64 dev rc nodad 2>/dev/null
until_true 60 answers A 10.3.0.2 || fail "the link is not used again"
# The static route went with the link: the kernel says nothing, the router knows.
denied 10.78.0.1 "Unreachable"
ipn R route add 10.78.0.0/16 via 10.3.0.2
follows A 10.78.0.1 5
follows A fd03::2 5
ok "a link goes down and comes up"

# An address is added and removed under our feet.
ipn R addr add 10.1.0.3/24 dev ra
follows A 10.1.0.3 3
# It has more bits in common with A's than the first one has, but the kernel's route names that.
in_ns A ping -n -c 1 -t 1 -W 20 10.2.0.2 >"$tmp/ping" 2>&1
grep -q "From 10.1.0.1 .*Time to live" "$tmp/ping" || fail "another address answers: $(cat "$tmp/ping")"
ipn R addr del 10.1.0.3/24 dev ra
ok "addresses come and go"

# By an interface that is no port: the kernel has it, and forwards it if it may.
make_ns E
wire E eth0 R re
ipn E addr add 10.5.0.2/24 dev eth0
ipn E route add default via 10.5.0.1
ipn R addr add 10.5.0.1/24 dev re
in_ns R sysctl -qw net.ipv4.ip_forward=1
follows A 10.5.0.2 20
ping_ok A 10.5.0.1 5
in_ns R sysctl -qw net.ipv4.ip_forward=0
ok "routes by other interfaces go to the kernel"
stop_router
[ "$(value .local)" -ge 20 ] || fail "nothing was handed back to the kernel"
finish
