#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What is wrong with a router's file is said with its place, and before anything is opened:
#
#   router.yaml --> holdoff forward --> FILE:LINE:COLUMN, exit status 1; out.pcap is not made
set -u
holdoff=${HOLDOFF:-$(dirname "$0")/../../build/holdoff}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
failed=0

good="ports:
  - {name: p0, open: \"pcap:$dir/out.pcap\"}
interfaces:
  - name: lan0
    port: p0
    addresses: [192.0.2.1/24]
routes:
  - {to: 10.0.0.0/8, via: 192.0.2.9}"

# refuse NAME PLACE TEXT SED-EXPRESSION: the file changed so must be refused at that place.
refuse() {
	local name=$1 place=$2 text=$3 change=$4 said status
	echo "$good" | sed -e "$change" >"$dir/$name.yaml"
	said=$("$holdoff" forward -f "$dir/$name.yaml" --buffers 1024 -Q 2>&1)
	status=$?
	if [ $status != 1 ] || [[ $said != *"$name.yaml:$place: "*"$text"* ]]; then
		echo "FAIL $name: exit status $status, '$said', expected $place: ... $text"
		failed=1
	elif [ -e "$dir/out.pcap" ]; then
		echo "FAIL $name: a port was opened"
		failed=1
	fi
}

refuse address 6:17 "not an IPv4 or IPv6 address" 's#192.0.2.1/24#192.0.2.300/24#'
refuse length 6:17 "from /0 to /32" 's#192.0.2.1/24#192.0.2.1/33#'
refuse no_length 6:17 "ADDRESS/BITS" 's#192.0.2.1/24#192.0.2.1#'
refuse twice 6:31 "used twice" 's#\[192.0.2.1/24\]#[192.0.2.1/24, 192.0.2.1/24]#'
refuse port 5:11 "no port 'p9'" 's#port: p0#port: p9#'
refuse host_bits 8:10 "bits behind its length" 's#10.0.0.0/8#10.1.0.0/8#'
refuse gateway 8:27 "on none of the router's links" 's#via: 192.0.2.9#via: 198.51.100.9#'
refuse device 8:27 "no interface 'lan7'" 's#via: 192.0.2.9#dev: lan7#'
refuse nowhere 8:5 "'via', 'dev' or both" 's#, via: 192.0.2.9##'
refuse leads 8:5 "leads nowhere" 's#, via#, kind: blackhole, via#'
refuse family 8:32 "IPv4 gateway" 's#10.0.0.0/8#"2001:db8::/32"#'
refuse group 6:17 "a group's address" 's#192.0.2.1/24#224.0.0.1/24#'
refuse loopback 6:17 "no interface's address" 's#192.0.2.1/24#127.0.0.1/8#'
refuse unspecified 6:17 "no interface's address" 's#192.0.2.1/24#"::/0"#'
refuse broadcast 6:17 "the broadcast of its link" 's#192.0.2.1/24#192.0.2.255/24#'
refuse gateway_own 8:27 "own address" 's#via: 192.0.2.9#via: 192.0.2.1#'
refuse neighbour_own 7:28 "own address" 's#\(.*\)addresses.*#&\n    neighbours: [{address: 192.0.2.1, mac: "02:00:00:00:00:01"}]#'
refuse route_twice 9:10 "a second route" 's#.*10.0.0.0/8.*#&\n&#'
refuse count 8:46 "are not possible" 's#10.0.0.0/8, via: 192.0.2.9#255.0.0.0/8, via: 192.0.2.9, count: 2#'
refuse route_mtu 8:43 "from 68 to 65535" 's#via: 192.0.2.9#via: 192.0.2.9, mtu: 67#'
refuse route_overlap 9:10 "a second route" 's#\(.*\)10.0.0.0/8, via: 192.0.2.9#\110.0.0.0/16, count: 3, via: 192.0.2.9}\n\110.2.0.0/16, via: 192.0.2.8#'
refuse route_link 8:10 "the link of interface 'lan0'" 's#10.0.0.0/8#192.0.2.0/24#'
refuse route_source 8:46 "no address of the router's" 's#via: 192.0.2.9#via: 192.0.2.9, source: 192.0.2.7#'
refuse gateway_broadcast 8:27 "the broadcast of a link" 's#via: 192.0.2.9#via: 192.0.2.255#'
refuse gateway_group 8:27 "a group's address" 's#via: 192.0.2.9#via: 224.0.0.9, dev: lan0#'
refuse gateway_link_local 8:32 "on none of the router's links" 's#10.0.0.0/8, via: 192.0.2.9#"2001:db8::/32", via: "fe80::1"#'
refuse neighbour_twice 9:19 "a second neighbour" 's#\(.*\)addresses.*#&\n    neighbours:\n      - {address: 192.0.2.3, mac: "02:00:00:00:00:01"}\n      - {address: 192.0.2.3, mac: "02:00:00:00:00:02"}#'
refuse neighbours_overlap 9:19 "a second neighbour from" 's#\(.*\)addresses.*#&\n    neighbours:\n      - {address: 192.0.2.3, mac: "02:00:00:00:00:01", count: 9}\n      - {address: 192.0.2.11, mac: "02:00:00:00:00:02"}#'
refuse neighbours_own 7:28 "the router's own address" 's#\(.*\)addresses.*#&\n    neighbours: [{address: 192.0.2.0, mac: "02:00:00:00:00:01", count: 2}]#'
refuse neighbours_broadcast 7:28 "counts up to the broadcast" 's#\(.*\)addresses.*#&\n    neighbours: [{address: 192.0.2.250, mac: "02:00:00:00:00:01", count: 6}]#'
refuse one_link 9:17 "its link is that of interface 'lan0'" 's#^routes#  - port: p0\n    vlan: 5\n    addresses: [192.0.2.2/24]\n&#'
refuse no_mac 6:10 "no interface's address" 's#port: p0#&\n    mac: "00:00:00:00:00:00"#'
refuse vlan 6:11 "from 1 to 4094" 's#port: p0#port: p0\n    vlan: 4095#'

# Every interface has link-local addresses of its own; a route to its link may say more of that.
echo "$good" | sed -e 's#addresses.*#addresses: [192.0.2.1/24, "fe80::1/64"]#' \
	-e 's#^routes:#  - {port: p0, vlan: 5, addresses: ["fe80::1/64"]}\n&\n  - {to: 192.0.2.0/24, dev: lan0, mtu: 1400}#' >"$dir/more.yaml"
"$holdoff" forward -f "$dir/more.yaml" --buffers 1024 -Q -d 100ms >/dev/null || { echo "FAIL: a good file does not run"; failed=1; }
rm -f "$dir/out.pcap"

# And the same of ports on the command line.
said=$("$holdoff" forward xdp:nosuch0 xdp:nosuch0,tx=live 2>&1)
[ $? = 1 ] && [[ $said == *"xdp:nosuch0 is given twice"* ]] || { echo "FAIL a port twice: $said"; failed=1; }

# The same file without a mistake runs.
echo "$good" >"$dir/good.yaml"
"$holdoff" forward -f "$dir/good.yaml" --buffers 1024 -Q -d 200ms >/dev/null ||
	{ echo "FAIL: the good file does not run"; failed=1; }
exit $failed
