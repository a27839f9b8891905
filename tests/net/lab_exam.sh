#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The goals are 0.95, 0.9 and 0.98 over many cases; of 30, one may be far below by chance alone.
#
# explain and tune on random modelled machines: a small examination, and what the commands print.
#
#   30 machines --every knob turned--> truth
#        \--counters of one run--> explain, tune --> must agree with it
set -u
holdoff=${HOLDOFF:-build/holdoff}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT

fail() {
	echo "$*" >&2
	exit 1
}

"$holdoff" lab exam --cases 30 --seed 7 --jobs 2 --min-right 0.9 --min-advice 0.85 --min-tune 0.98 -q -v >"$dir/exam" ||
	{ rc=$?; cat "$dir/exam"; fail "the examination ended with $rc"; }
cat "$dir/exam"
# Cases that once were wrong, or whose run never ended: seed, number, load, what it was.
while read -r seed number load what; do
	timeout 200 "$holdoff" lab exam --cases 1 --seed "$seed" --first "$number" --min-right 1 -q -v >"$dir/case" ||
		{ rc=$?; cat "$dir/case"; fail "seed $seed, case $number, $load ($what): $rc"; }
	grep -q "^$load  *1 " "$dir/case" || fail "seed $seed, case $number is not of $load"
done <<'CASES'
5001 46 gen the end of the run fell into an interrupt
5002 0 socket the same, while receiving
5002 5 socket a softirq that always finds one more frame, and loses none
5002 26 client one round more in the interval was taken for a gain
5003 0 pktgen wire and bus are full, and the buffer of the controller still fills
5004 12 client adaptive moderation that takes turns, two interrupts a round
5004 13 server adaptive moderation that takes turns, one interrupt for two frames
6001 16 client two outstanding of a program that mostly thinks
7 17 server the shortest interval of adaptive moderation, twice a round
91002 36 gen a wire that is nearly full with what was asked for
91002 49 server adaptive moderation that takes turns, on one CPU
6003 24 server adaptive moderation, several outstanding
6001 168 server a rate of interrupts that happens to be near a class
30001 15 socket interrupts that never end, and other CPUs that are idle
30001 61 server a busy CPU that answers many between two sleeps
30001 120 server adaptive moderation beside a client that pauses
30001 169 client one interrupt a round: only polling is faster
30001 185 client adaptive moderation at its longest, between pauses
30001 212 client hardly anything but being woken
30001 215 pktgen a bus that also carries the writes that unmask
30002 48 pktgen a short ring in front of a bus that is nearly full
30002 64 socket a socket that fills up, and whose program gets no time
30002 217 socket the smallest ring, with which no cell was run
30002 245 client a full CPU in step with the timer
CASES
"$holdoff" lab exam --cases 1 --min-right 1 --min-advice 1 --min-tune 1 -q -j >"$dir/one"
"$holdoff" lab exam --cases 2 --seed 3 -j -q --jobs 1 >"$dir/a" || fail "two cases: $?"
"$holdoff" lab exam --cases 2 --seed 3 -j -q --jobs 2 >"$dir/b" || fail "two cases: $?"
cmp -s "$dir/a" "$dir/b" || fail "the result depends on the number of processes"

"$holdoff" explain lab:ixgbe-txring --set tx=256 --set rx-usecs=50 -j --set duration=5ms >"$dir/explain" ||
	fail "explain: $?"
/usr/bin/python3 - "$dir" <<'P' || fail "explain's JSON"
import json, sys
d = sys.argv[1]
e = json.load(open(d + "/explain"))
assert e["schema"] == 1 and e["command"] == "explain"
i = e["interfaces"][0]
assert i["cause"] == "tx-ring", i["cause"]
assert i["advice"] and i["expects_per_s"] > 1.3 * i["per_s"], i
assert i["unknown"] and "evidence" in i
x = json.load(open(d + "/a"))
for key in ("cases", "explain_right", "advice_reaches_90", "tune_median_ratio", "tune_median_runs",
            "confusion", "wrong"):
    assert key in x, key
assert x["cases"] == 2
P
# The advice is believed, and does what it says.
args=$(/usr/bin/python3 -c '
import json, sys
i = json.load(open(sys.argv[1]))["interfaces"][0]
print(" ".join("--set %s=%s" % kv for kv in i["advice"].items()))' "$dir/explain")
# shellcheck disable=SC2086
"$holdoff" explain lab:ixgbe-txring --set tx=256 --set rx-usecs=50 --set duration=5ms $args -j >"$dir/after" || fail "the advice cannot be set: $args"
/usr/bin/python3 - "$dir" <<'P' || fail "the advice did not help"
import json, sys
d = sys.argv[1]
a, b = (json.load(open(d + "/" + f))["interfaces"][0] for f in ("explain", "after"))
print("%.0f frames/s, expected %.0f, got %.0f" % (a["per_s"], a["expects_per_s"], b["per_s"]))
assert b["per_s"] > 1.2 * a["per_s"]
assert abs(b["per_s"] / a["expects_per_s"] - 1) < 0.25
P
"$holdoff" explain --list | grep -q '^tx-ring: ' || fail "explain --list"
"$holdoff" tune lab:ixgbe-txring --set tx=256 --set rx-usecs=50 --set duration=5ms -j -q >"$dir/tune" || fail "tune: $?"
/usr/bin/python3 - "$dir" <<'P' || fail "tune's JSON"
import json, sys
t = json.load(open(sys.argv[1] + "/tune"))
assert t["command"] == "tune" and t["significant"] and t["runs"] <= 15, t
assert t["after"] > 1.2 * t["before"], t
P
for wrong in "explain" "explain lab:none" "explain eth0 eth1" "tune lab:ixgbe-txring --for speed" "lab exam --cases 0" \
	"explain lab:ixgbe-txring --interface x.y"; do
	# shellcheck disable=SC2086
	"$holdoff" $wrong >/dev/null 2>"$dir/err"
	rc=$?
	[ $rc = 1 ] || fail "'$wrong': exit status $rc"
	[ "$(wc -l <"$dir/err")" = 1 ] || fail "'$wrong': not one line: $(cat "$dir/err")"
done
