#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# holdoff forward xdp:... under FRR: bgpd in B announces HOLDOFF_PREFIXES (10000) prefixes to bgpd in
# R, whose zebra puts them into the kernel; the router follows. The sessions themselves reach R's
# kernel through the XDP program.
. "$(dirname "$0")/forward_kernel.lib"
needs ping
frr=/usr/lib/frr
[ -x $frr/bgpd ] && [ -x $frr/zebra ] || skip "no FRR"
prefixes=${HOLDOFF_PREFIXES:-10000}
topology
start_router

# daemons NAME CONFIG: zebra and bgpd with everything of theirs under $tmp/NAME.
daemons() {
	local dir=$tmp/$1
	mkdir -p "$dir"
	chmod 755 "$tmp" "$dir"
	printf 'hostname %s\n' "$1" >"$dir/zebra.conf"
	cp "$2" "$dir/bgpd.conf"
	chown -R frr:frr "$dir" 2>/dev/null
	in_ns "$1" $frr/zebra -d -N "$id$1" -f "$dir/zebra.conf" -i "$dir/zebra.pid" -z "$dir/zserv" \
		--vty_socket "$dir" -P 0 >"$dir/zebra.log" 2>&1 || fail "zebra: $(cat "$dir/zebra.log")"
	in_ns "$1" $frr/bgpd -d -N "$id$1" -f "$dir/bgpd.conf" -i "$dir/bgpd.pid" -z "$dir/zserv" \
		--vty_socket "$dir" -P 0 >"$dir/bgpd.log" 2>&1 || fail "bgpd: $(cat "$dir/bgpd.log")"
}

awk -v n="$prefixes" 'BEGIN {
	print "router bgp 65002\n bgp router-id 10.2.0.2\n no bgp ebgp-requires-policy\n no bgp network import-check"
	print " neighbor 10.2.0.1 remote-as 65001\n neighbor 10.2.0.1 timers connect 1\n address-family ipv4 unicast"
	for (i = 0; i < n; i++) printf "  network 30.%d.%d.0/24\n", int(i / 256), i % 256
	print " exit-address-family"
}' >"$tmp/b.conf"
cat >"$tmp/r.conf" <<-END
	router bgp 65001
	 bgp router-id 10.2.0.1
	 no bgp ebgp-requires-policy
	 neighbor 10.2.0.2 remote-as 65002
	 neighbor 10.2.0.2 timers connect 1
	 neighbor 10.2.0.2 advertisement-interval 0
END
# A sample of what B will announce answers there.
sample=
for ((i = 0; i < prefixes; i += prefixes / 20 + 1)); do
	to=30.$((i / 256)).$((i % 256)).1
	sample+=" $to"
	ipn B addr add $to/32 dev lo
done
daemons B "$tmp/b.conf"
daemons R "$tmp/r.conf"
in_kernel() { [ "$(ipn R route show proto bgp | wc -l)" -ge "$1" ]; }
t0=$(date +%s%N)
until_true 120 in_kernel "$prefixes" || { fail "the kernel has $(ipn R route show proto bgp | wc -l) of $prefixes"; finish; }
t1=$(date +%s%N)
ok "$prefixes prefixes are in the kernel after $(((t1 - t0) / 1000000)) ms"
for to in $sample; do follows A $to 3 || break; done
[ $failed = 0 ] && ok "packets reach a sample of them"

# Withdrawn: the session's end takes all of them away.
kill "$(cat "$tmp/B/bgpd.pid")"
none_in_kernel() { [ "$(ipn R route show proto bgp | wc -l)" = 0 ]; }
until_true 120 none_in_kernel || fail "the kernel still has $(ipn R route show proto bgp | wc -l)"
unreachable() {
	in_ns A ping -c 1 -W 2 "$1" >"$tmp/ping" 2>&1
	grep -q "From 10.1.0.1 .*Unreachable" "$tmp/ping"
}
for to in $sample; do
	until_true 60 unreachable "$to" || { fail "withdrawn, but $to: $(cat "$tmp/ping")"; break; }
done
[ $failed = 0 ] && ok "withdrawn prefixes are unreachable"
stop_router
[ "$(value .kernel.routes4)" -lt 100 ] || fail "$(value .kernel.routes4) routes are left"
finish
