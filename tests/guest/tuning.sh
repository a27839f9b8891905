#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Interfaces of the kernel's own drivers for real cards, in a guest: rings and coalescing are turned by
# ethtool netlink, read back, measured, put back, also after a signal and kill -9; what is counted agrees
# with the kernel; a verdict is given.
set -u
. "$(dirname "$0")/guest.sh"
guest_qemu
guest_kernel
script=$(mktemp)
trap 'rm -f "$script"' EXIT
cat >"$script" <<'GUEST'
set -u
. /inside.bash
holds() { jq -es "$@" >/dev/null; }
has() { grep -q -- "$1" "$2"; }
settings() { ethtool -g nic; ethtool -c nic; ethtool -l nic; ethtool -k nic; } 2>/dev/null
current() { # current ethtool-flag NAME: what is set now
	ethtool "$1" nic 2>/dev/null | sed -n '/Current/,$p;/^Coalesce/,$p' | sed -n "s/^$2:[ \t]*//p" | head -n 1
}
ring_is() { [ "$(current -g RX)" = "$1" ]; }
unchanged() { [ "$(settings)" = "$before" ]; }

echo 1 >/proc/sys/net/ipv6/conf/nic/disable_ipv6
ip netns exec p busybox sh -c 'echo 1 >/proc/sys/net/ipv6/conf/peer/disable_ipv6'
ip link set nic up
ip -n p link set peer up
ip addr add 198.18.0.1/24 dev nic
ip -n p addr add 198.18.0.2/24 dev peer
# Frames of the kernel's own would come when they like.
ip neigh replace 198.18.0.2 lladdr 52:54:00:00:00:02 dev nic nud permanent
ip -n p neigh replace 198.18.0.1 lladdr 52:54:00:00:00:01 dev peer nud permanent
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

# What stat counts, all rows together, is what the driver and the kernel counted meanwhile: before and after
# it nothing is on the wire.
counted() {
	ethtool -S nic | sed -n 's/^ *\(.*\): \([0-9]*\)$/driver \1 \2/p' | tee /tmp/driver
	sed -n 's/^driver \([rt]x_queue_[0-9]*_\(packets\|bytes\) \)/queue \1/p' /tmp/driver
	sed -n 's/^ *nic://p' /proc/net/dev | while read -r rb rp re rd _ _ _ _ tb tp te td _; do
		printf 'dev %s\n' "rx_bytes $rb" "rx_packets $rp" "rx_errors $re" "rx_dropped $rd" \
			"tx_bytes $tb" "tx_packets $tp" "tx_errors $te" "tx_dropped $td"
	done
}
rows() { [ "$(wc -l </tmp/stat)" -ge "$1" ]; }
quiet() { tail -n 1 /tmp/stat | jq -e '.interfaces[0] | .rx_packets + .tx_packets == 0' >/dev/null 2>&1; }
counted >/tmp/counted.before
holdoff stat nic -j -i 250ms >/tmp/stat 2>/tmp/err &
until_true 600 rows 1
ping -f -c 200 -q 198.18.0.2 >/dev/null
check "the wire is quiet again" until_true 600 quiet
kill -INT $!
wait $!
check "stat ends well" [ $? = 0 ]
counted >/tmp/counted.after
jq -rs 'map(.interfaces[0]) | (.[] | to_entries[] | select(.value | type == "number") | "dev \(.key) \(.value)"),
	(.[].driver_counters | to_entries[] | "driver \(.key) \(.value)"),
	(.[].queues[] | select(.packets) | .direction as $d | .queue as $q | ("packets", "bytes") as $k |
		"queue \($d)_queue_\($q)_\($k) \(.[$k])")' /tmp/stat >/tmp/stat.all
check "stat counted what ethtool -S and /proc/net/dev did" awk '
	FILENAME == ARGV[1] { was[$1 " " $2] = $3; next }
	FILENAME == ARGV[2] { ours[$1 " " $2] += $3; told[$1 " " $2] = 1; next }
	($1 " " $2) in was {
		more = $3 - was[$1 " " $2]
		if (told[$1 " " $2] || more) n++
		if (more) moved++
		if (more >= 200 && $1 == "dev" && $2 ~ /packets/) frames++
		if (more >= 200 && $1 == "driver" && $2 ~ /packets/) drivers++
		if (more != ours[$1 " " $2]) { print $0 ": " more " more, and not " ours[$1 " " $2] + 0; bad++ }
	}
	END { print n " counters compared, of which " moved + 0 " moved"; exit bad || frames < 2 || drivers < 2 }
' /tmp/counted.before /tmp/stat.all /tmp/counted.after

# What limits requests; and a tuning generator that a signal stops.
if [ "$driver" = e1000e ]; then
	ping -f -q 198.18.0.2 >/dev/null &
	load=$!
	sent() { [ "$(cat /sys/class/net/nic/statistics/tx_packets)" -gt "$was" ]; }
	was=$(cat /sys/class/net/nic/statistics/tx_packets)
	until_true 600 sent
	holdoff explain nic -d 1s -j >/tmp/explain 2>/tmp/err
	check "explain ends well" [ $? = 0 ]
	kill $load
	wait $load 2>/dev/null
	cat /tmp/err
	jq -Mc '.interfaces[0] | {cause, certainty, verdict, arithmetic, commands, unknown}' /tmp/explain
	holdoff explain --list -j >/tmp/causes
	check "with a verdict on what it saw" holds --argjson rx "$(current -g RX)" --argjson tx "$(current -g TX)" \
		--argjson usecs "$(current -c rx-usecs)" '(.[1].causes | map(.cause)) as $causes | .[0] |
		.schema == 1 and .command == "explain" and .interface == "nic" and (.interfaces | length) == 1 and
		(.interfaces[0] | (.cause | IN($causes[])) and .cause != "idle" and .certainty >= 0.5 and .certainty <= 1 and
			(.verdict | length) > 10 and (.arithmetic | test("[0-9]")) and (.remedy | length) > 10 and
			.evidence.tx_pps > 0 and .evidence.rx_pps > 0 and .evidence.irqs_per_s > 0 and
			.evidence.rx == $rx and .evidence.tx == $tx and
			# 1 and 3 are names of moderation that adapts itself.
			.evidence.rx_usecs == (if $usecs == 3 then 1 else $usecs end) and
			(.advice == null or (.commands | length) > 0))' /tmp/explain /tmp/causes

	holdoff gen packet:nic --tune -d 100s >/dev/null 2>/tmp/err &
	check "it turns a setting" until_true 600 eval '! unchanged'
	kill -INT $!
	wait $!
	check "a signal ends it as interrupted" [ $? = 2 ]
	check "settings are as before, after a signal" unchanged
	check "nothing to restore after a signal" [ "$(holdoff restore)" = "nothing to restore" ]
fi

# Nor does our generator leave what it tunes for its run: here to the end, above up to a signal. (Not both of
# them with one card: the link of an e1000e is down for seconds after each change of a ring.)
if [ "$driver" = virtio_net ]; then
	holdoff gen packet:nic --tune=6 -d 300ms -j >/tmp/gen 2>/tmp/err
	check "gen --tune ends well" [ $? = 0 ]
	cat /tmp/err
	check "it was tuned" holds 'length == 1 and (.[0].tuned | .interface == "nic" and .runs >= 2 and .runs <= 6 and
		.settings >= 2 and .before_pps > 0)' /tmp/gen
	check "settings are as before" unchanged
fi

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
models="e1000e:e1000e virtio-net-pci:virtio_net"
guest_has_device igb && models="$models igb:igb" || echo "this QEMU has no igb: not tried"
export GUEST_PROGRAMS='ping jq'
# shellcheck disable=SC2086
guest_models 280 "$script" $models
