#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# holdoff tune over a live interface: it finds the better setting of a load whose answer is known,
# says when there is none, leaves it only when asked, and puts everything back otherwise. Other interfaces
# are never touched.
#
#   namespace a: tlv0 (tuned) ---- veth ---- namespace b: tlv1
#                tlv2 ------------ veth ----------------- tlv3
set -u
. "$(dirname "$0")/shared.bash"
HOLDOFF=$(realpath "${HOLDOFF:-build/holdoff}")
needs_root
needs ethtool jq diff
a=tlv-a-$$ b=tlv-b-$$
export HOLDOFF_RUN_DIR=$tmp/run
add_namespaces "$a" "$b" || skip "no network namespaces here"
ip link add tlv0 netns "$a" type veth peer name tlv1 netns "$b" || exit 1
ip -n "$a" link set tlv0 up && ip -n "$b" link set tlv1 up || exit 1
until_true 60 has_carrier "$a" tlv0 || exit 1
# Settings of its own, which would show a reset as well.
ip link add tlv2 netns "$a" type veth peer name tlv3 netns "$b" || exit 1
ip -n "$a" link set tlv2 up && ip -n "$b" link set tlv3 up || exit 1
ip netns exec "$a" ethtool -K tlv2 gro on tx off >/dev/null || exit 1
ip netns exec "$a" bash -c 'echo 12345 >/sys/class/net/tlv2/gro_flush_timeout &&
	echo 3 >/sys/class/net/tlv2/napi_defer_hard_irqs' || exit 1

in_a() { ip netns exec "$a" "$@"; }
settings() { in_a ethtool -k tlv0; in_a cat /sys/class/net/tlv0/gro_flush_timeout /sys/class/net/tlv0/napi_defer_hard_irqs; }
unchanged() { [ "$(settings)" = "$before" ]; }
timeout_is() { [ "$(in_a cat /sys/class/net/tlv0/gro_flush_timeout)" = "$1" ]; }
journals() { ls "$HOLDOFF_RUN_DIR" 2>/dev/null | wc -l; }
tune() { in_a "$HOLDOFF" tune tlv0 --settle 0s -q "$@"; }
before=$(settings)

# What others of namespace a, and the peers, are set to. Loads look at the former in each run: what was put
# back at the end would show there.
cat >"$tmp/others" <<'OTHERS'
for i in /sys/class/net/*; do
	[ "${i##*/}" != tlv0 ] || continue
	for f in gro_flush_timeout napi_defer_hard_irqs mtu tx_queue_len flags threaded; do
		read -r value 2>/dev/null <"$i/$f" || value=none
		echo "${i##*/} $f $value"
	done
done
for option in $2; do ethtool $option tlv"$1" 2>&1; done
OTHERS
others_now() { # others_now FOLDER: of both namespaces
	mkdir -p "$1"
	in_a bash "$tmp/others" 2 -k >"$1/run"
	in_a bash "$tmp/others" 2 '-g -c -l' >"$1/a"
	ip netns exec "$b" bash "$tmp/others" 1 '-g -c -l -k' >"$1/b"
}
others_now "$tmp/others.before"
others_are_left() { others_now "$tmp/others.now" && [ ! -e "$tmp/touched" ] && diff -r "$tmp/others.before" "$tmp/others.now"; }
check "there are others" grep -q '^tlv2 gro_flush_timeout 12345$' "$tmp/others.before/run"

# A load whose number depends on the setting: its best is known. The noise, which is the same in each
# run of this test, goes through 0 to 19: an interval of 95 % would miss the mean of a true chance once
# in twenty times.
cat >"$tmp/load" <<'LOAD'
[ "$(set -- 2 -k; . "${0%/*}/others")" = "$(<"${0%/*}/others.before/run")" ] || >"${0%/*}/touched"
t=$(cat /sys/class/net/tlv0/gro_flush_timeout)
case $t in 0) n=1000 ;; 20000) n=1300 ;; 50000) n=1800 ;; *) n=1500 ;; esac
i=$(($(cat "$0.$t" 2>/dev/null) + 1))
echo $i >"$0.$t"
echo "rate $((n + i * 7 % 20)) delay $((10000000 / n + i * 13 % 20))"
LOAD
tune --run "bash $tmp/load" --metric 'rate ([0-9]+)' -j --html "$tmp/page.html" >"$tmp/out"
check "the best is found" jq -e '.set == {"gro-flush-timeout": 50000} and .significant and (.applied | not)
	and .after / .before > 1.7 and .runs <= 40' "$tmp/out"
check "intervals hold the truth" jq -e '.before - .before_ci95 < 1010 and .before + .before_ci95 > 1009 and
	.after_ci95 > 0' "$tmp/out"
check "the commands are told" jq -e '.commands | length == 2' "$tmp/out"
check "settings are as before" unchanged
check "what limits is told for before, after and each setting" jq -e '.before_limit.cause and .after_limit.text
	and all(.settings[]; .limit.cause)' "$tmp/out"
check "the page is written" grep -q '"command":"tune"' "$tmp/page.html"
check "others are left alone, in each run" others_are_left
in_a "$HOLDOFF" sweep tlv0 --gro on,off --tx-checksumming on,off --gro-flush-timeout 0,20000 --rounds 1 --settle 0s \
	--run "bash $tmp/load" --metric 'rate ([0-9]+)' -j >"$tmp/out"
check "a sweep of offloads and a timer" jq -e '.points == 8' "$tmp/out"
check "others are left alone, in each run" others_are_left

tune --run "bash $tmp/load" --metric 'delay ([0-9]+)' --less --for latency -j >"$tmp/out"
check "less of a delay is better" jq -e '.set == {"gro-flush-timeout": 50000} and .significant' "$tmp/out"

# A load that no setting changes: it must not be fooled.
cat >"$tmp/noise" <<'LOAD'
i=$(($(cat "$0.i" 2>/dev/null) + 1))
echo $i >"$0.i"
echo "rate $((1000 + i * 37 % 101))"
LOAD
tune --run "bash $tmp/noise" --metric 'rate ([0-9]+)' -j >"$tmp/out"
check "chance is not taken for an effect" jq -e '.significant | not' "$tmp/out"
check "settings are as before" unchanged

tune --run "bash $tmp/load" --metric 'rate ([0-9]+)' --apply >"$tmp/out"
check "--apply leaves it" timeout_is 50000
check "and no journal" [ "$(journals)" = 0 ]
before=$(settings)

tune --knob gro=on,off --gen packet:tlv0 --time 50ms --runs 6 -j >"$tmp/out"
check "a knob of the user's, our own load" jq -e '.before > 0 and (.settings | length) == 2' "$tmp/out"
check "settings are as before" unchanged

# Refusals.
refused() { # refused STATUS WORDS ARGUMENTS...
	local status=$1 words=$2
	shift 2
	tune "$@" 2>"$tmp/err"
	check "refused: $*" [ $? = "$status" ]
	check "  and says so" grep -q -- "$words" "$tmp/err"
}
refused 1 'cannot be changed' --knob rx=64,128
refused 1 'NAME=VALUES' --knob gro
refused 1 'give it a choice' --knob gro-flush-timeout=50000
refused 1 'needs a load' --for latency
refused 1 'go with' --set tx=3
in_a "$HOLDOFF" tune lab:ixgbe-txring --apply 2>"$tmp/err"
check "--apply does not go with virtual time" [ $? = 1 ]

# gen --tune: what it says of a port without an interface, and of one that has nothing to tune.
gen_refused() { # gen_refused STATUS WORDS ARGUMENTS...
	local status=$1 words=$2
	shift 2
	in_a "$HOLDOFF" gen -d 50ms -Q "$@" >/dev/null 2>"$tmp/err"
	check "gen $*: status $status" [ $? = "$status" ]
	check "  and says so" grep -q -- "$words" "$tmp/err"
}
gen_refused 1 'no interface' mem:a --tune
gen_refused 1 'in the lab' lab:two-hosts --tune
gen_refused 1 'its own times' packet:tlv0 --tune --replay "$tmp/none.pcap"
gen_refused 0 'nothing to tune' packet:tlv0 --tune
ip -n "$a" addr add 198.18.9.1/24 dev tlv0
ip -n "$a" route add default via 198.18.9.2 dev tlv0
gen_refused 2 '--force' packet:tlv0 --tune
ip -n "$a" route del default
check "settings are as before" unchanged

# A signal in the middle: the load does not come back once a setting is turned.
cat >"$tmp/stuck" <<'LOAD'
case $(cat /sys/class/net/tlv0/gro_flush_timeout) in 70000 | 80000) >"$0.turned"; exec sleep 600 ;; esac
echo 1
LOAD
ip netns exec "$a" "$HOLDOFF" tune tlv0 --settle 0s --time 30s --knob gro-flush-timeout=70000,80000 \
	--run "bash $tmp/stuck" --metric '1' >/dev/null 2>&1 &
pid=$!
until_true 60 [ -e "$tmp/stuck.turned" ] || check "a setting is turned" false
gen_refused 2 "$pid" packet:tlv0 --tune
tune --runs 6 2>"$tmp/err"
check "a second tuner is refused" [ $? = 2 ]
kill -TERM $pid
wait $pid
check "a signal ends it as interrupted" [ $? = 2 ]
check "settings are as before" unchanged
check "others are left alone after all of it" others_are_left
check "no journal is left" [ "$(journals)" = 0 ]
exit $failed
