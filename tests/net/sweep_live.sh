#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# holdoff sweep over a live interface, and holdoff restore: settings are turned, measured, read back
# and put back on every way out.
#
#   namespace a: slv0 (swept) ---- veth ---- namespace b: slv1
set -u
. "$(dirname "$0")/shared.bash"
HOLDOFF=$(realpath "${HOLDOFF:-build/holdoff}")
needs_root
needs ethtool jq ping
a=slv-a-$$ b=slv-b-$$
work=$tmp
export HOLDOFF_RUN_DIR=$work/run
add_namespaces "$a" "$b" || skip "no network namespaces here"
ip link add slv0 netns "$a" numrxqueues 2 numtxqueues 2 type veth \
	peer name slv1 netns "$b" numrxqueues 2 numtxqueues 2 || exit 1
ip -n "$a" link set lo up && ip -n "$a" link set slv0 up && ip -n "$b" link set slv1 up || exit 1
until_true 60 has_carrier "$a" slv0 || exit 1
ip -n "$a" addr add 198.18.9.1/24 dev slv0

in_a() { ip netns exec "$a" "$@"; }
settings() { # all that could have been changed
	in_a ethtool -k slv0
	in_a cat /sys/class/net/slv0/gro_flush_timeout /sys/class/net/slv0/napi_defer_hard_irqs
	in_a ethtool -l slv0 2>/dev/null
}
flush_timeout_is() { [ "$(in_a cat /sys/class/net/slv0/gro_flush_timeout)" = "$1" ]; }
unchanged() { [ "$(settings)" = "$before" ]; }
journals() { ls "$HOLDOFF_RUN_DIR" 2>/dev/null | wc -l; }

before=$(settings)

# --- a grid, and everything back ---------------------------------------------------------------
in_a "$HOLDOFF" sweep slv0 --gro-flush-timeout 0,20000 --tx-checksumming on,off --gen packet:slv0 \
	--time 200ms --settle 50ms --rounds 2 --html "$work/page.html" -j >"$work/sweep.json" 2>"$work/err"
check "a sweep ends well" [ $? = 0 ]
cat "$work/err"
check "settings are as before" unchanged
check "no journal is left" [ "$(journals)" = 0 ]
check "four points, each measured" jq -e '.points == 4 and (.cells | length) == 4 and
	all(.cells[]; .value > 0 and .tx_pps > 0 and .rounds == 2 and .low.value <= .value and .high.value >= .value)' \
	"$work/sweep.json"
check "what limits is told at each" jq -e 'all(.cells[]; .limit != "unknown" and (.limit_text | length > 20))' "$work/sweep.json"
check "axes are judged" jq -e '[.effects[] | select(.metric == "value")] | length == 2' "$work/sweep.json"
check "the page is written" grep -q '"command":"sweep"' "$work/page.html"
check "the page describes the machine" grep -q '"driver":"veth' "$work/page.html"

# --- a command of the user's -------------------------------------------------------------------
in_a "$HOLDOFF" sweep slv0 --gro on,off --run 'ping -c 3 -i 0.01 198.18.9.1' --metric 'max/mdev = [0-9.]+/([0-9.]+)' \
	--less --rounds 2 --settle 0s -j >"$work/run.json"
check "a command's number is read" jq -e '.metric == "value" and .better == "less" and all(.cells[]; .value > 0)' \
	"$work/run.json"
in_a "$HOLDOFF" sweep slv0 --gro on,off --run 'echo bad; exit 4' --metric 'x' 2>"$work/err"
check "a command that fails fails the sweep" [ $? = 2 ]
check "and is quoted" grep -q 'status 4.*bad' "$work/err"
check "settings are as before" unchanged

# --- refusals ----------------------------------------------------------------------------------
in_a "$HOLDOFF" sweep slv0 --rx 256,512 2>"$work/err"
check "veth has no rings: refused" [ $? = 1 ]
check "what there is is named" grep -q -- '--gro-flush-timeout' "$work/err"
in_a "$HOLDOFF" sweep slv0 --gro on,maybe 2>"$work/err"
check "a value that cannot be" [ $? = 1 ]
in_a "$HOLDOFF" sweep slv9 --gro on,off 2>"$work/err"
check "no such interface" grep -q 'slv9' "$work/err"
in_a "$HOLDOFF" sweep lab:ixgbe-txring --rounds 3 2>"$work/err"
check "rounds do not go with virtual time" [ $? = 1 ]
ip -n "$a" route add default via 198.18.9.2 dev slv0
in_a "$HOLDOFF" sweep slv0 --gro on,off --time 10ms 2>"$work/err"
check "the default route's interface is refused" [ $? = 2 -o $? = 1 ]
check "with the way out" grep -q -- '--force' "$work/err"
ip -n "$a" route del default

# --- signals, a second owner, kill -9 ----------------------------------------------------------
begin_long() {
	ip netns exec "$a" "$HOLDOFF" sweep slv0 --gro-flush-timeout 30000,40000 --time 100s --settle 0s \
		>"$work/out" 2>"$work/err" &
	sweep=$!
	until_true 60 flush_timeout_is 30000
}
for signal in INT TERM HUP; do
	begin_long
	check "it has begun" flush_timeout_is 30000
	# 'ip netns exec' becomes the program: the signal goes to it.
	kill -$signal $sweep
	wait $sweep
	check "SIG$signal: it ends as interrupted" [ $? = 2 ]
	check "SIG$signal: settings are as before" unchanged
	check "SIG$signal: no journal is left" [ "$(journals)" = 0 ]
done

begin_long
in_a "$HOLDOFF" sweep slv0 --gro on,off --time 10ms 2>"$work/err2"
check "a second owner is refused" [ $? != 0 ]
check "with the first one's pid" grep -q "$sweep" "$work/err2"
in_a "$HOLDOFF" restore slv0 2>"$work/err2"
check "restore refuses while it lives" [ $? = 2 ]
kill -9 $sweep
wait $sweep 2>/dev/null
check "kill -9 leaves the setting" flush_timeout_is 30000
check "and the journal" [ "$(journals)" = 1 ]
check "restore puts it back" [ "$(in_a "$HOLDOFF" restore -j | jq .restored)" = 1 ]
check "settings are as before" unchanged
check "no journal is left" [ "$(journals)" = 0 ]
check "nothing more to restore" [ "$(in_a "$HOLDOFF" restore)" = "nothing to restore" ]

begin_long
kill -9 $sweep
wait $sweep 2>/dev/null
in_a "$HOLDOFF" sweep slv0 --gro on,off --time 10ms --settle 0s >/dev/null 2>"$work/err"
check "the next run restores first" grep -q 'gro-flush-timeout 30000 -> 0' "$work/err"
check "settings are as before" unchanged

# --- settings of each NAPI, which only the netdev netlink family has --------------------------------
in_a ethtool -K slv0 gro on
before=$(settings)
suspend() { in_a "$HOLDOFF" sweep slv0 --irq-suspend-timeout "$@" --settle 0s; }
if suspend 0,1000 --time 10ms --rounds 1 -j >"$work/napi.json" 2>"$work/err"; then
	check "each NAPI's setting is read back as it was set" jq -e 'all(.cells[]; .limit != "other_value")' "$work/napi.json"
	ip netns exec "$a" "$HOLDOFF" sweep slv0 --irq-suspend-timeout 70000 --gro-flush-timeout 30000 --time 100s --settle 0s \
		>/dev/null 2>&1 &
	sweep=$!
	# They are set in this order: when the second one is there, the first one is too.
	check "it has begun" until_true 60 flush_timeout_is 30000
	kill -9 $sweep
	wait $sweep 2>/dev/null
	check "after kill -9 each NAPI's is put back" in_a sh -c "'$HOLDOFF' restore | grep 'irq-suspend-timeout 70000 -> 0'"
	check "settings are as before" unchanged
	check "nothing more to restore" [ "$(in_a "$HOLDOFF" restore)" = "nothing to restore" ]
else
	check "this kernel has no such setting, which is said" grep -q irq-suspend-timeout "$work/err"
fi
in_a ethtool -K slv0 gro off
before=$(settings)

# --- an interface that went, or has another name -----------------------------------------------
begin_long
kill -9 $sweep
wait $sweep 2>/dev/null
ip -n "$a" link set slv0 down
ip -n "$a" link set slv0 name slv7
check "a renamed interface is found" [ "$(in_a "$HOLDOFF" restore -j | jq -r '.journals[0].interface')" = slv7 ]
ip -n "$a" link set slv7 name slv0
ip -n "$a" link set slv0 up
check "settings are as before" unchanged
begin_long
kill -9 $sweep
wait $sweep 2>/dev/null
ip -n "$a" link del slv0
check "one that is gone is no error" [ "$(in_a "$HOLDOFF" restore -j | jq '.journals[0].obsolete')" = true ]
check "no journal is left" [ "$(journals)" = 0 ]
exit $failed
