#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Settings of the kernel's own drivers for real cards, in a guest: rings and coalescing are turned by
# ethtool netlink, read back, measured, put back, also after kill -9.
set -u
. "$(dirname "$0")/guest.sh"
guest_qemu
guest_kernel
script=$(mktemp)
trap 'rm -f "$script"' EXIT
cat >"$script" <<'GUEST'
set -u
failed=0
check() { # check WHAT COMMAND...
	local what=$1
	shift
	if "$@"; then echo "ok: $what"; else echo "NOT ok: $what"; failed=1; fi
}
until_true() { # until_true TENTHS COMMAND...
	local left=$1
	shift
	while ! "$@"; do
		[ $((left--)) -gt 0 ] || return 1
		sleep 0.1
	done
}
has() { grep -q -- "$1" "$2"; }
carrier() { [ "$(cat /sys/class/net/nic/carrier 2>/dev/null)" = 1 ]; }
settings() { ethtool -g nic; ethtool -c nic; ethtool -l nic; ethtool -k nic; } 2>/dev/null
current() { # current ethtool-flag NAME: what is set now
	ethtool "$1" nic 2>/dev/null | sed -n '/Current/,$p;/^Coalesce/,$p' | sed -n "s/^$2:[ \t]*//p" | head -n 1
}
ring_is() { [ "$(current -g RX)" = "$1" ]; }
unchanged() { [ "$(settings)" = "$before" ]; }

ip link set nic up
ip -n p link set peer up
ip addr add 198.18.0.1/24 dev nic
ip -n p addr add 198.18.0.2/24 dev peer
until_true 600 carrier
before=$(settings)
driver=$(ethtool -i nic | sed -n 's/^driver: //p')
echo "driver: $driver"
case $driver in
e1000e) rings=512,1024 axis='--rx-usecs 0,100' ;;
igb) rings=512,1024 axis='--rx-usecs 0,100' ;;
virtio_net) rings=64,128 axis='--gro on,off' ;;
*) rings= axis='--gro on,off' ;;
esac

# Rings, where the driver lets them be changed.
if [ -n "$rings" ]; then
	holdoff sweep nic --rx $rings $axis --run 'ping -f -c 300 -q 198.18.0.2 >/dev/null && echo done 1' \
		--metric 'done ([0-9])' --rounds 2 --settle 100ms -j >/tmp/sweep 2>/tmp/err
	check "a sweep over rings and moderation ends well" [ $? = 0 ]
	cat /tmp/err
	check "four points" has '"points": *4' /tmp/sweep
	check "interrupts were counted" has '"irqs_per_s": *[1-9]' /tmp/sweep
	check "settings are as before" unchanged
else
	holdoff sweep nic --rx 64 2>/tmp/err
	check "a ring that is fixed: refused, not pretended" [ $? = 1 ]
	cat /tmp/err
fi
holdoff sweep nic $axis --gen packet:nic --time 300ms --settle 100ms --rounds 2 >/tmp/table 2>/tmp/err
check "a sweep with our generator ends well" [ $? = 0 ]
cat /tmp/table /tmp/err
check "settings are as before" unchanged

# Killed in the middle, with the ring (or an offload) changed.
if [ -n "$rings" ]; then
	holdoff sweep nic --rx $rings --time 100s --settle 0s >/dev/null 2>&1 &
	until_true 600 ring_is "${rings%,*}"
	check "the ring is changed" ring_is "${rings%,*}"
else
	holdoff sweep nic --gro off,on --time 100s --settle 0s >/dev/null 2>&1 &
	until_true 600 eval '! unchanged'
	check "an offload is changed" eval '! unchanged'
fi
kill -9 $!
wait $! 2>/dev/null
check "kill -9 leaves it" eval '! unchanged'
holdoff restore
check "restore puts it back" unchanged
check "nothing more to restore" [ "$(holdoff restore)" = "nothing to restore" ]
exit $failed
GUEST
failed=0
models="e1000e:e1000e virtio-net-pci:virtio_net"
guest_has_device igb && models="$models igb:igb"
for model in $models; do
	echo "== ${model%:*}"
	# shellcheck disable=SC2046
	GUEST_PROGRAMS=ping guest_run 280 "${model#*:}" "$script" $(guest_wire "${model%:*}") || failed=1
done
guest_has_device igb || echo "this QEMU has no igb: not tried"
exit "$failed"
