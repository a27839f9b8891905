#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The engine on the kernel's drivers for real cards, in a guest: generated frames cross the (emulated) wire,
# every one is accounted for, by AF_PACKET and by AF_XDP.
#
#   gen packet:nic | xdp:nic ----- QEMU's hub ----- recv packet:peer (namespace p, virtio-net)
set -u
. "$(dirname "$0")/guest.sh"
guest_qemu
guest_kernel
script=$(mktemp)
trap 'rm -f "$script"' EXIT
cat >"$script" <<'GUEST'
set -u
failed=0
check() { # check WHAT TEST...
	local what=$1
	shift
	if "$@"; then echo "ok: $what"; else echo "NOT ok: $what"; failed=1; fi
}
number() { sed -n "s/.*\"$2\": *\([0-9]*\).*/\1/p" "$1" | head -n 1; }

ip link set nic up
ip -n p link set peer up
for i in $(seq 100); do
	[ "$(cat /sys/class/net/nic/carrier 2>/dev/null)" = 1 ] && break
	sleep 0.1
done
check "the link comes up" [ "$(cat /sys/class/net/nic/carrier)" = 1 ]

for port in packet:nic xdp:nic; do
	ip netns exec p holdoff recv packet:peer --count 2000 --duration 20s -j >/tmp/recv 2>/tmp/recv.err &
	receiver=$!
	for i in $(seq 100); do
		grep -q ' 0003 ' <(ip netns exec p cat /proc/net/packet) && break
		sleep 0.1
	done
	holdoff gen $port --count 2000 --rate 2kpps --eth-dst 52:54:00:00:00:02 -j >/tmp/gen 2>/tmp/gen.err
	check "$port: gen ends well" [ $? = 0 ]
	wait $receiver
	check "$port: recv ends well" [ $? = 0 ]
	cat /tmp/gen.err /tmp/recv.err
	check "$port: 2000 sent" [ "$(number /tmp/gen delivered)" = 2000 ]
	check "$port: 2000 received" [ "$(number /tmp/recv delivered)" = 2000 ]
	check "$port: balanced" grep -q '"balanced": *true' /tmp/gen
done
exit $failed
GUEST
failed=0
for model in e1000e virtio-net-pci; do
	module=${model%-net-pci}
	[ "$module" = virtio ] && module=virtio_net
	echo "== $model"
	# shellcheck disable=SC2046
	guest_run 180 "$module" "$script" $(guest_wire "$model") || failed=1
done
exit "$failed"
