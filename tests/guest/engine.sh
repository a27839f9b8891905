#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The engine on the kernel's drivers for real cards, in a guest: generated frames cross the (emulated) wire,
# every one is accounted for, by AF_PACKET and by AF_XDP. Then the router between two VLANs of the
# kernel's, tagged in and out, on one card; and its shortcut between veths.
#
#   gen packet:nic | xdp:nic ----- QEMU's hub ----- recv packet:peer (namespace p, virtio-net)
#
#   forward xdp:nic                                      VLANs of peer
#      nic.10  10.10.0.1, fd10::1 -------- VLAN 10 -------- v10  10.10.0.2, fd10::2 (namespace p)
#      nic.20  10.20.0.1, fd20::1 -------- VLAN 20 -------- v20  10.20.0.2, fd20::2 (namespace q)
set -u
. "$(dirname "$0")/guest.sh"
guest_qemu
guest_kernel
script=$(mktemp)
trap 'rm -f "$script"' EXIT
cat >"$script" <<'GUEST'
set -u
. /inside.bash
number() { sed -n "s/.*\"$2\": *\([0-9]*\).*/\1/p" "$1" | head -n 1; }

ip link set nic up
ip -n p link set peer up
check "the link comes up" until_true 600 carrier
listens() { ip netns exec p grep -q ' 0003 ' /proc/net/packet; }

for port in packet:nic xdp:nic; do
	ip netns exec p holdoff recv packet:peer --count 2000 --duration 100s -j >/tmp/recv 2>/tmp/recv.err &
	receiver=$!
	until_true 600 listens
	holdoff gen $port --count 2000 --rate 2kpps --eth-dst 52:54:00:00:00:02 -j >/tmp/gen 2>/tmp/gen.err
	check "$port: gen ends well" [ $? = 0 ]
	wait $receiver
	check "$port: recv ends well" [ $? = 0 ]
	cat /tmp/gen.err /tmp/recv.err
	check "$port: 2000 sent" [ "$(number /tmp/gen delivered)" = 2000 ]
	check "$port: 2000 received" [ "$(number /tmp/recv delivered)" = 2000 ]
	check "$port: balanced" grep -q '"balanced": *true' /tmp/gen
done

# Routing between VLANs; the second model would only repeat it.
[ "$(ethtool -i nic | sed -n 's/^driver: //p')" = e1000e ] || exit $failed
sysctl -qw net.ipv4.ip_forward=0 net.ipv6.conf.all.forwarding=0
# XDP, and the hub, are to see the tags.
ethtool -K nic rxvlan off txvlan off
ip netns add q
for v in 10 20; do
	ip link add link nic name nic.$v type vlan id $v
	ip link set nic.$v up
	ip addr add 10.$v.0.1/24 dev nic.$v
	ip addr add fd$v::1/64 dev nic.$v nodad
	host=p
	ip -n p link add link peer name v$v type vlan id $v
	[ $v = 20 ] && host=q && ip -n p link set v20 netns q
	ip -n $host link set v$v up
	ip -n $host addr add 10.$v.0.2/24 dev v$v
	ip -n $host addr add fd$v::2/64 dev v$v nodad
	ip -n $host route add default via 10.$v.0.1
	ip -n $host -6 route add default via fd$v::1
done
# Behind q, by way of routes that change.
ip -n q link set lo up
ip -n q addr add 10.30.0.1/32 dev lo
ip -n q addr add fd30::1/128 dev lo
# pings TO N: each of the first N requests is answered. It goes on until there is one answer more, so that
# none of these can still be under way; ten seconds at most.
pings() {
	ip netns exec p ping -n -i 0.05 -c $(($2 + 1)) -w 10 "$1" >/tmp/ping 2>&1
	[ "$(sed -n 's/.*bytes from.*icmp_seq=\([0-9]*\).*/\1/p' /tmp/ping | sort -un |
		awk -v n="$2" '$1 <= n' | wc -l)" = "$2" ]
}
says() { ip netns exec p ping -n -c 1 -W 2 "$1" 2>&1 | grep -qi "$2"; }
holdoff forward xdp:nic --buffers 8192 -j >/tmp/forward 2>/tmp/forward.err &
router=$!
check "the router starts" until_true 300 grep -q "routing between" /tmp/forward.err
[ $failed = 0 ] || { cat /tmp/forward.err; exit 1; }
check "VLAN to VLAN, IPv4" until_true 5 pings 10.20.0.2 1
check "VLAN to VLAN, IPv6" until_true 5 pings fd20::2 1
check "no packet of IPv4 is lost" pings 10.20.0.2 20
check "no packet of IPv6 is lost" pings fd20::2 20
check "no route yet" until_true 20 says 10.30.0.1 "unreachable"
check "no route yet, IPv6" until_true 20 says fd30::1 "no route"
ip route add 10.30.0.0/24 via 10.20.0.2
ip -6 route add fd30::/64 via fd20::2
check "an added route is followed" until_true 5 pings 10.30.0.1 3
check "an added route is followed, IPv6" until_true 5 pings fd30::1 3
ip route replace prohibit 10.30.0.0/24
ip -6 route del fd30::/64
check "a changed route is followed" until_true 5 says 10.30.0.1 "filtered"
check "a removed route is followed, IPv6" until_true 5 says fd30::1 "no route"
ip link del nic.20
check "a VLAN that goes takes its routes along" until_true 5 says 10.20.0.2 "unreachable"
kill -TERM $router
wait $router
check "the router ends well" [ $? = 0 ]
cat /tmp/forward.err
check "it forwarded" [ "$(number /tmp/forward sent)" -ge 90 ]
check "balanced" grep -q '"balanced": *true' /tmp/forward

# The shortcut puts tags in, takes them out and changes them. On a veth: the kernel's driver for this card
# has no native XDP.
for ns in u w; do
	ip netns add $ns
	ip link add r$ns type veth peer name eth0 netns $ns
	ip netns exec $ns ethtool -K eth0 gro on txvlan off >/dev/null
	ip -n $ns link set eth0 up
	ip link set r$ns up
done
# join NAMESPACE VLAN: an interface of the router's, and a host there.
join() {
	local here=r$1 there=eth0 net=$((100 + $2))
	if [ "$2" != 0 ]; then
		here=r$1.$2 there=eth0.$2
		ip link add link r$1 name $here type vlan id $2
		ip -n $1 link add link eth0 name $there type vlan id $2
		ip link set $here up
		ip -n $1 link set $there up
	fi
	ip addr add 10.$net.0.1/24 dev $here
	ip addr add fd00:$net::1/64 dev $here nodad
	ip -n $1 addr add 10.$net.0.2/24 dev $there
	ip -n $1 addr add fd00:$net::2/64 dev $there nodad
}
join u 0
ip -n u route add default via 10.100.0.1
ip -n u -6 route add default via fd00:100::1
join u 31
join w 32
ip -n w route add default via 10.132.0.1
ip -n w -6 route add default via fd00:132::1
join w 33
# What a host sends from the other network goes back through that.
for v in "u 31" "w 33"; do
	set -- $v
	ip -n $1 rule add from 10.1$2.0.2 table $2
	ip -n $1 route add default via 10.1$2.0.1 table $2
	ip -n $1 -6 rule add from fd00:1$2::2 table $2
	ip -n $1 -6 route add default via fd00:1$2::1 table $2
done
sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
holdoff forward xdp:ru xdp:rw --shortcut=yes --buffers 8192 -j >/tmp/forward 2>/tmp/forward.err &
router=$!
check "the router starts, with the shortcut" until_true 300 grep -q "routing between" /tmp/forward.err
cat /tmp/forward.err
# passes FROM SOURCE TO: 5 requests and their answers.
passes() {
	until_true 5 ip netns exec $1 ping -n -q -c 1 -W 2 -I $2 $3 >/dev/null || return
	ip netns exec $1 ping -n -i 0.05 -c 6 -w 10 -I $2 $3 >/tmp/ping 2>&1
	[ "$(grep -c 'bytes from' /tmp/ping)" -ge 5 ]
}
check "no tag to a tag and back, IPv4" passes u 10.100.0.2 10.132.0.2
check "no tag to a tag and back, IPv6" passes u fd00:100::2 fd00:132::2
check "a tag to another, IPv4" passes u 10.131.0.2 10.133.0.2
check "a tag to another, IPv6" passes u fd00:131::2 fd00:133::2
kill -TERM $router
wait $router
check "the router ends well" [ $? = 0 ]
cat /tmp/forward.err
# Six requests and answers of each; the first ones may have gone by way of the router.
check "the shortcut was taken: $(number /tmp/forward shortcut_packets)" \
	[ "$(number /tmp/forward shortcut_packets)" -ge 40 ]
check "balanced" grep -q '"balanced": *true' /tmp/forward
exit $failed
GUEST
export GUEST_PROGRAMS="ping sysctl" GUEST_MODULES="8021q veth"
guest_models 280 "$script" e1000e:e1000e virtio-net-pci:virtio_net
