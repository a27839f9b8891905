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
# too belong into a function. SECONDS only bounds what has failed: a busy machine may need a minute for
# what takes a millisecond elsewhere.
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

# has_carrier NAMESPACE INTERFACE: the link is there and carries frames. The kernel gives an interface
# whose peer comes up later its queue some time after its carrier, and drops all until then.
has_carrier() {
	local says
	says=$(ip -n "$1" link show "$2" 2>/dev/null) && [[ $says == *LOWER_UP* && $says != *qdisc\ noop* ]]
}

# statistic NAMESPACE INTERFACE NAME: a counter of the kernel's, say tx_packets; 0 if it is not there.
statistic() { ip netns exec "$1" cat "/sys/class/net/$2/statistics/$3" 2>/dev/null || echo 0; }

# more_than NAMESPACE INTERFACE NAME N: that counter is above N.
more_than() { [ "$(statistic "$1" "$2" "$3")" -gt "$4" ]; }

# cpu_ms PID: what the threads of the process have run for; in milliseconds.
cpu_ms() { cat "/proc/$(process_of "$1")"/task/*/schedstat 2>/dev/null | awk '{ n += $1 } END { print int(n / 1e6) }'; }

# has_run PID MS: its threads have run for as long, in all.
has_run() { [ "$(cpu_ms "$1")" -ge "$2" ]; }

# waits PID...: of each thread of these processes, and of the kernel's that take frames from links when
# there are many: its number, and for how many ns it was ready to run and had no CPU so far. "steal":
# what a hypervisor has taken from a CPU, in the mean.
waits() {
	local pid task ns
	{
		for pid in $(for pid in "$@"; do process_of "$pid"; done) $(pgrep '^ksoftirqd/'); do
			for task in /proc/"$pid"/task/*; do
				read -r _ ns _ <"$task/schedstat" && echo "${task##*/} $ns"
			done
		done
		awk -v hz="$(getconf CLK_TCK)" '/^cpu / { steal = $9 / hz * 1e9 } /^cpu[0-9]/ { cpus++ }
			END { printf "steal %.0f\n", steal / cpus }' /proc/stat
	} 2>/dev/null
}

# waited_ms BEFORE PID...: what the one that waited longest has waited since waits wrote the file BEFORE,
# and the steal, in milliseconds. (Not the sum: many threads wait a little all the time.) What was lost
# meanwhile was lost for want of a CPU.
waited_ms() {
	waits "${@:2}" | awk 'NR == FNR { was[$1] = $2; next }
		{ ns = $2 - was[$1] }
		$1 == "steal" { steal = ns; next }
		ns > most { most = ns }
		END { printf "%.0f\n", (most + steal) / 1e6 }' "$1" -
}

# pings NAMESPACE TO N FILE OPTIONS...: echo requests until there are N answers, for a minute at most;
# fails if there are not. $lost: how many of the requests before the last one that was answered were
# not. (That ping waits for no answer after the last request cannot be told from a loss.)
pings() {
	local status
	ip netns exec "$1" ping -n -c "$3" -w 60 "${@:5}" "$2" >"$4" 2>&1
	status=$?
	lost=$(sed -n 's/.*bytes from.*icmp_seq=\([0-9]*\).*/\1/p' "$4" | sort -un |
		awk '{ n++; last = $1 } END { print last - n }')
	return $status
}

# veth NAMESPACE INTERFACE NAMESPACE INTERFACE QUEUES [MTU]: a new pair, up.
veth() {
	ip -n "$1" link del "$2" 2>/dev/null
	ip -n "$1" link add "$2" numtxqueues 4 numrxqueues 4 type veth \
		peer name "$4" netns "$3" numtxqueues 4 numrxqueues 4 || exit 1
	ip netns exec "$1" ethtool -L "$2" rx "$5" tx "$5" &&
		ip netns exec "$3" ethtool -L "$4" rx "$5" tx "$5" || exit 1
	ip -n "$1" link set "$2" mtu "${6:-1500}" up
	ip -n "$3" link set "$4" mtu "${6:-1500}" up
	until_true 60 has_carrier "$1" "$2" && until_true 60 has_carrier "$3" "$4" || exit 1
}
