# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Functions of the scripts here, which source this file: waiting, namespaces, links, cleaning up.
#
# Sets $tmp, a folder of the script's own, and removes it, the namespaces made with add_namespaces and
# all background jobs at the end.

tmp=$(mktemp -d) || exit 1
made_namespaces=()

clean_up() {
	local ns pid
	for pid in $(jobs -p); do kill -9 "$pid" 2>/dev/null; done
	for ns in ${made_namespaces[@]+"${made_namespaces[@]}"}; do
		for pid in $(ip netns pids "$ns" 2>/dev/null); do kill -9 "$pid" 2>/dev/null; done
		ip netns del "$ns" 2>/dev/null
	done
	wait 2>/dev/null
	rm -rf "$tmp"
}
trap clean_up EXIT
trap 'exit 1' INT TERM

# skip REASON...: the test cannot run here.
skip() {
	echo "skipped: $*"
	exit 77
}

# needs TOOL...
needs() {
	local tool
	for tool in "$@"; do
		command -v "$tool" >/dev/null || skip "$tool is not installed"
	done
}

# needs_root: for network namespaces.
needs_root() { [ "$(id -u)" = 0 ] || skip "needs root for network namespaces"; }

# add_namespaces NAME...: fails when there can be none.
add_namespaces() {
	local ns
	for ns in "$@"; do
		ip netns add "$ns" 2>/dev/null || return 1
		made_namespaces+=("$ns")
		# The kernel's IPv6 multicast would be lost among our frames, and spoil the counts.
		ip netns exec "$ns" sysctl -qw net.ipv6.conf.default.disable_ipv6=1
	done
}

# check WHAT COMMAND...: says whether the command succeeds; $failed is 1 once one did not.
failed=0
check() {
	local what=$1
	shift
	if "$@" >/dev/null; then echo "ok: $what"; else echo "NOT ok: $what"; failed=1; fi
}

# until_true SECONDS COMMAND...: the command is run anew each time; words that are to be expanded anew
# too belong into a function.
until_true() {
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		[ $SECONDS -le $end ] || return 1
		sleep 0.05
	done
}

# process_of PID: PID itself or, if it is a wrapper (timeout), its child.
process_of() { pgrep -P "$1" 2>/dev/null || echo "$1"; }

# has_tasks PID N: the process has N tasks at least: those of a run are made when its ports are ready.
has_tasks() { [ "$(ls "/proc/$(process_of "$1")/task" 2>/dev/null | wc -l)" -ge "$2" ]; }

# has_ended PID
has_ended() { ! kill -0 "$1" 2>/dev/null; }

# has_carrier NAMESPACE INTERFACE
has_carrier() { ip -n "$1" link show "$2" 2>/dev/null | grep -q LOWER_UP; }

# veth NAMESPACE INTERFACE NAMESPACE INTERFACE QUEUES [MTU]: a new pair, up.
veth() {
	ip -n "$1" link del "$2" 2>/dev/null
	ip -n "$1" link add "$2" numtxqueues 4 numrxqueues 4 type veth \
		peer name "$4" netns "$3" numtxqueues 4 numrxqueues 4 || exit 1
	ip netns exec "$1" ethtool -L "$2" rx "$5" tx "$5" &&
		ip netns exec "$3" ethtool -L "$4" rx "$5" tx "$5" || exit 1
	ip -n "$1" link set "$2" mtu "${6:-1500}" up
	ip -n "$3" link set "$4" mtu "${6:-1500}" up
	until_true 5 has_carrier "$1" "$2" && until_true 5 has_carrier "$3" "$4"
}
