# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# gen in namespace $A on va, recv in $B on vb, and whether they agree. Sourced behind shared.bash; the
# script sets $holdoff, and $case, the name of what is tried.

failed=0
in_a() { ip netns exec "$A" "$@"; }
in_b() { ip netns exec "$B" "$@"; }
fail() {
	echo "FAILED: $case: $*"
	tail -n 3 "$tmp"/*.json "$tmp"/*.err 2>/dev/null | sed 's/^/   /'
	failed=$((failed + 1))
	return 1
}

# Is a program on vb (xdp:) or a packet socket in B?
receiving() { in_b ip link show vb | grep -q xdp || [ "$(in_b cat /proc/net/packet | wc -l)" -gt 1 ]; }

# recv_start ARGS...: in B, in the background; $receiver is the timeout that it is the child of.
recv_start() {
	rm -f "$tmp"/*.json "$tmp"/*.err
	ip netns exec "$B" timeout -k 5 400 "$holdoff" recv "$@" -j >"$tmp/recv.json" 2>"$tmp/recv.err" &
	receiver=$!
	until_true 60 receiving && until_true 60 has_tasks $receiver 2 ||
		fail "the receiver does not start"
}

# recv_end: SIGINT, which drains it.
recv_end() {
	kill -INT "$(process_of $receiver)" 2>/dev/null
	wait $receiver || fail "recv ends with status $?"
}

# The CPUs that we may use, as gen takes them.
cpus=$(taskset -cp $$ | sed 's/.*: //' | tr , '\n' |
	awk -F - '{ for (i = $1; i <= $NF; i++) printf "%s%d", n++ ? "," : "", i }')

# gen ARGS...: in A. Each sender stays on a CPU: the kernel has a queue for each CPU between links that
# have no program (packet:, mode=generic), and keeps the order of frames of one only.
gen() {
	in_a timeout -k 5 400 "$holdoff" gen "$@" --cpu "$cpus" -j >"$tmp/gen.json" 2>"$tmp/gen.err" ||
		fail "gen ends with status $?"
}

# link_drops NAMESPACE INTERFACE NAMESPACE INTERFACE: what the two ends of a veth have dropped so far.
link_drops() {
	local sum=0 name
	for name in rx_dropped tx_dropped; do
		sum=$((sum + $(statistic "$1" "$2" $name) + $(statistic "$3" "$4" $name)))
	done
	echo $sum
}

# agree FRAMES: both balance, both name what is lost, and one's delivered is the other's offered.
agree() {
	jq -es --argjson n "$1" '
		.[0] as $g | .[1] as $r | def sum: [.[]] | add // 0;
		$g.balanced and $r.balanced and $g.missing == 0 and $r.missing == 0 and
		$g.offered == $n and $g.delivered + ($g.drops | sum) == $n and
		$r.offered == $g.delivered and
		$r.delivered + ($r.drops | sum) - $r.drops_of_others == $r.offered and
		$r.drops_of_others == 0 and $r.unstamped == 0 and $r.duplicates == 0 and
		$r.reordered == 0 and $r.lost <= ($r.drops | sum) and
		$r.delivered > $n / 200' "$tmp/gen.json" "$tmp/recv.json" >/dev/null ||
		fail "gen and recv do not agree: $(jq -c '{offered, delivered, drops}' \
			"$tmp/gen.json" "$tmp/recv.json" | tr '\n' ' ')" || return
	echo "ok: $case: $(jq -rs '"\(.[0].offered) sent at \(.[0].tx_pps) pps, " +
		"\(.[1].delivered) received, drops \(.[1].drops | tojson)"' "$tmp"/{gen,recv}.json)"
}

# one_process FRAMES PORT PORT: gen with --recv, both in A.
one_process() {
	rm -f "$tmp"/*.json "$tmp"/*.err
	gen "$2" --recv "$3" --count "$1"
	jq -e --argjson n "$1" '.balanced and .missing == 0 and .offered == $n and
		.delivered + ([.drops[]] | add // 0) - .drops_of_others == $n and
		.lost == $n - .delivered and .reordered == 0 and .duplicates == 0 and
		.drops_of_others == 0 and .delivered > $n / 200' "$tmp/gen.json" >/dev/null &&
		echo "ok: $case: $(jq -r '"\(.delivered) of \(.offered), drops \(.drops | tojson)"' \
			"$tmp/gen.json")" || fail "does not balance"
}
