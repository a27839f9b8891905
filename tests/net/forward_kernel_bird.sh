#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# holdoff forward xdp:... under BIRD: birds in B and D announce prefixes to one in R, which puts them
# into the kernel, those of both as one route with two next hops; the router follows. First D's
# session ends, then B's.
. "$(dirname "$0")/forward_kernel.lib"
needs ping
bird=$(command -v bird || echo /usr/sbin/bird)
[ -x "$bird" ] || skip "no BIRD: apt install bird2"
prefixes=1000
topology
start_router

# speaks NAME: a bird with the configuration on standard input, everything of it under $tmp.
speaks() {
	cat >"$tmp/$1.conf"
	in_ns "$1" "$bird" -c "$tmp/$1.conf" -s "$tmp/$1.ctl" -P "$tmp/$1.pid" >"$tmp/$1.log" 2>&1 ||
		fail "bird in $1: $(cat "$tmp/$1.log")"
}
# announces NAME LAST PREFIXES: to R, by both families.
announces() {
	awk -v last="$2" -v n="$3" 'BEGIN {
		print "router id 10.2.0." last ";\nprotocol device {}\nprotocol static { ipv4;"
		for (i = 0; i < n; i++) printf " route 30.%d.%d.0/24 blackhole;\n", int(i / 256), i % 256
		print "}\nprotocol static { ipv6; route fd30::/32 blackhole; }"
		print "protocol bgp {\n local 10.2.0." last " as 6500" last ";\n neighbor 10.2.0.1 as 65001;"
		print " connect delay time 1;\n ipv4 { import none; export all; next hop self; };"
		print " ipv6 { import none; export all; next hop address fd02::" last "; };\n}"
	}' | speaks "$1"
}
announces B 2 $prefixes
announces D 3 1
speaks R <<-END
	router id 10.2.0.1;
	protocol device {}
	protocol kernel { ipv4 { export all; }; merge paths on; }
	protocol kernel { ipv6 { export all; }; merge paths on; }
	template bgp peer {
		local 10.2.0.1 as 65001;
		connect delay time 1;
		ipv4 { import all; export none; };
		ipv6 { import all; export none; };
	}
	protocol bgp from peer { neighbor 10.2.0.2 as 65002; }
	protocol bgp from peer { neighbor 10.2.0.3 as 65003; }
END
count() { ipn R -4 route show proto bird | grep -c "^30"; }
in_kernel() { [ "$(count)" -ge $prefixes ]; }
until_true 120 in_kernel || { fail "the kernel has $(count) of $prefixes"; finish; }
paths() { [ "$(ipn R "-$1" route show "$2" | grep -o "via" | wc -l)" = "$3" ]; }
for f in "4 30.0.0.0/24" "6 fd30::/32"; do
	until_true 60 paths $f 2 || fail "no two next hops: $(ipn R -${f% *} route show "${f#* }")"
done
ok "$prefixes prefixes are in the kernel, two of them by two next hops"
for h in B D; do
	ipn $h addr add 30.0.0.1/32 dev lo
	ipn $h -6 addr add fd30::1/128 dev lo
done
ipn B addr add 30.3.231.1/32 dev lo
for to in 30.0.0.1 fd30::1 30.3.231.1; do follows A $to 3; done
ok "packets reach them"

kill "$(cat "$tmp/D.pid")"
for f in "4 30.0.0.0/24" "6 fd30::/32"; do until_true 60 paths $f 1 || fail "D's paths stay"; done
known
# Not D any more, whatever the flow.
ipn D addr del 30.0.0.1/32 dev lo
ipn D -6 addr del fd30::1/128 dev lo
for to in 30.0.0.1 fd30::1; do ping_ok A $to 3; done
ok "what two announced stays with one of them"
kill "$(cat "$tmp/B.pid")"
none() { [ -z "$(ipn R -4 route show proto bird; ipn R -6 route show proto bird)" ]; }
until_true 60 none || fail "the kernel still has $(count)"
denied 30.3.231.1 "Net Unreachable"
denied fd30::1 "No route"
ok "withdrawn prefixes are unreachable"
finish
