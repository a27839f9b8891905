#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# holdoff sweep over a scenario of the lab, without privileges:
#
#   grid of points --- shard 1/3 --- JSON --.
#         |`---------- shard 2/3 --- JSON ---+--- sweep --merge = the whole
#         |`---------- shard 3/3 --- JSON --'
#         `--- jobs 1 = jobs 2 = jobs 5, byte for byte
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
holdoff=${HOLDOFF:-$top/build/holdoff}
command -v jq >/dev/null || { echo "skipped: jq is not installed"; exit 77; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0
bad() { echo "FAIL: $*"; failed=1; }

sweep() { timeout 300 "$holdoff" sweep "$@"; }
# All runs are short: the numbers are not looked at closely.
short=(lab:ixgbe-txring --set warmup=1ms --set duration=4ms)
# shellcheck disable=SC2054 # the commas are ours
grid=("${short[@]}" --tx 256,1024 --rx-usecs "20..50 step 15")

# same NAME FILE FILE
same() { cmp -s "$2" "$3" || { bad "$1: the outputs differ"; diff "$2" "$3" | head -5; }; }

# --- any number of processes ---------------------------------------------------------------------
for jobs in 1 2 5; do
	sweep "${grid[@]}" --jobs $jobs -j >"$tmp/j$jobs" || bad "jobs $jobs: status $?"
	sweep "${grid[@]}" --jobs $jobs >"$tmp/t$jobs" || bad "jobs $jobs, table: status $?"
done
same "jobs 1 and 2" "$tmp/j1" "$tmp/j2"
same "jobs 1 and 5" "$tmp/j1" "$tmp/j5"
same "tables of jobs 1 and 2" "$tmp/t1" "$tmp/t2"
same "tables of jobs 1 and 5" "$tmp/t1" "$tmp/t5"

# --- JSON ----------------------------------------------------------------------------------------
[ "$(wc -l <"$tmp/j1")" = 1 ] || bad "not one line of JSON"
jq -e '.schema == 1 and .command == "sweep" and .target == "lab:ixgbe-txring" and .points == 6 and
	(.axes | map(.name)) == ["tx", "rx-usecs"] and
	.axes[1].values == ["20", "35", "50"] and
	.set == {"warmup": "1ms", "duration": "4ms"} and
	(.cells | map(.point)) == [0, 1, 2, 3, 4, 5] and
	(.cells | map(.set) | .[4]) == {"tx": 1024, "rx-usecs": 35} and
	(.cells | all(.pps > 1e6 and .irqs_per_s > 0 and (.limit_text | length) > 20)) and
	(.cells[2].limit == "ring") and (.cells[5].limit == "cpu") and
	.cells[5].pps > .cells[2].pps and
	.best.pps == (.cells | map(.pps) | max) and (has("shard") | not)' "$tmp/j1" >/dev/null ||
	{ bad "JSON is not as described"; cat "$tmp/j1"; }
sweep "${grid[@]}" --metric irqs_per_s -j | jq -e '.metric == "irqs_per_s" and .better == "less" and
	.best.irqs_per_s == (.cells | map(.irqs_per_s) | min)' >/dev/null ||
	bad "the best of irqs_per_s is not the least"

# --- shards --------------------------------------------------------------------------------------
for i in 1 2 3; do
	sweep "${grid[@]}" --shard $i/3 -j >"$tmp/s$i" || bad "shard $i: status $?"
done
jq -e '.shard == {"number": 2, "of": 3} and (.cells | map(.point)) == [1, 4]' "$tmp/s2" \
	>/dev/null || bad "shard 2 has other points"
sweep --merge "$tmp/s3" "$tmp/s1" "$tmp/s2" -j >"$tmp/m" || bad "merge: status $?"
same "merged shards and the whole" "$tmp/j1" "$tmp/m"
sweep --merge "$tmp"/s? >"$tmp/m" || bad "merge: status $?"
same "merged table and the whole" "$tmp/t1" "$tmp/m"
cat "$tmp"/s? | sweep --merge - -j >"$tmp/m" || bad "merge of a stream: status $?"
same "merged stream and the whole" "$tmp/j1" "$tmp/m"
# A shard may be empty.
sweep "${short[@]}" --tx 256,512 --shard 3/3 -j | jq -e '.cells == [] and .best == null' \
	>/dev/null || bad "a shard without points is not empty"

# --- CSV -----------------------------------------------------------------------------------------
sweep "${grid[@]}" --csv - >"$tmp/csv" || bad "csv: status $?"
sweep "${grid[@]}" --csv "$tmp/csv2" >"$tmp/t" || bad "csv to a file: status $?"
same "CSV to a file and to standard output" "$tmp/csv" "$tmp/csv2"
same "the table beside a CSV file" "$tmp/t1" "$tmp/t"
/usr/bin/python3 - "$tmp/csv" "$tmp/j1" <<'END' || bad "CSV and JSON do not agree"
import csv, json, sys
rows = list(csv.DictReader(open(sys.argv[1], newline='')))
cells = json.load(open(sys.argv[2]))['cells']
assert len(rows) == len(cells) == 6
for row, cell in zip(rows, cells):
    assert None not in row and None not in row.values()
    assert int(row['point']) == cell['point']
    assert row['tx'] == str(cell['set']['tx'])
    assert row['rx-usecs'] == str(cell['set']['rx-usecs'])
    assert float(row['pps']) == cell['pps'] and row['limit'] == cell['limit']
    assert row['limit_text'] == cell['limit_text'] and row['p99_us'] == ''
END

# --- the table -----------------------------------------------------------------------------------
# Numbers are made N; everything else must stand where it stands. A range needs no quotes.
sweep "${short[@]}" --tx 256,1024 --rx-usecs 20..50 step 15 | sed -n 1,9p |
	sed -E 's/[0-9]\.[0-9]{3}/N.NNN/g' >"$tmp/t"
cat >"$tmp/want" <<'END'
lab:ixgbe-txring: Transmit ring size against interrupt throttling
pps: frames sent a second, in millions
with warmup=1ms duration=4ms

       rx-usecs
  tx     20       35       50  
 256  N.NNN C  N.NNN R  N.NNN R
1024  N.NNN C  N.NNN C *N.NNN C

END
same "the table" "$tmp/want" "$tmp/t"
for text in 'R  the transmit ring limits 2 of 6, most at tx=256 rx-usecs=50:' \
	'235 frames in flight are cleaned' 'C  the sending CPU limits 4 of 6, most at' \
	'\*  best: tx=1024 rx-usecs=50, 7\.[0-9]* Mpps'; do
	grep -q "$text" "$tmp/t1" || bad "the table does not say: $text"
done
# Axes between the first and the last make grids of their own; one alone is a list.
sweep "${short[@]}" --tx 256,512 --series v1,base --rx-usecs 10,30 >"$tmp/t"
[ "$(grep -c '^series=' "$tmp/t")" = 2 ] || bad "not one grid for each value of the second axis"
sweep "${short[@]}" --tx 256 --rx-usecs 10,30 | grep -q '^ *30 [* ][0-9.]* [A-Z]$' ||
	bad "a single axis is not a list"
# Without an axis, the scenario's own; what is fixed is not among them.
sweep "${short[@]}" --tx 512 -j | jq -e '(.axes | map(.name)) == ["rx-usecs"] and .points == 6 and
	.set.tx == "512"' >/dev/null || bad "the scenario's own axes are not swept"
sweep "${short[@]}" --axis hosts.dut.chips.eth0.tx=256,512 --rx-usecs 50 -j |
	jq -e '.cells[0].pps < .cells[1].pps' >/dev/null || bad "--axis PATH has no effect"

# --- colour: only where it was asked for ----------------------------------------------------------
escape=$'\033'
grep -q "$escape" "$tmp/t1" && bad "colour without a terminal"
sweep "${grid[@]}" --color always >"$tmp/c"
grep -q "$escape" "$tmp/c" || bad "no colour with --color always"
sed "s/$escape\[[0-9;]*m//g" "$tmp/c" >"$tmp/t"
same "the table without its colours" "$tmp/t1" "$tmp/t"
# On a terminal, but not with NO_COLOR.
terminal() { TERM=xterm script -qec "$holdoff sweep ${short[*]} --tx 256,512 $*" /dev/null; }
if command -v script >/dev/null; then
	terminal | grep -q "$escape\[48;" || bad "no colour on a terminal"
	NO_COLOR=1 terminal | grep -q "$escape\[48;" && bad "colour in spite of NO_COLOR"
	terminal --color never | grep -q "$escape\[48;" && bad "colour in spite of --color never"
	terminal 2>&1 | grep -q '2 of 2 points' || bad "no progress on a terminal"
	terminal --quiet 2>&1 | grep -q '2 of 2 points' && bad "progress in spite of --quiet"
fi

# --- what is wrong is said ------------------------------------------------------------------------
# refused TEXT ARGS...: status 1, that text on standard error, nothing on standard output.
refused() {
	local text=$1 status
	shift
	sweep "$@" >"$tmp/out" 2>"$tmp/err"
	status=$?
	[ $status = 1 ] || bad "sweep $*: status $status instead of 1"
	grep -q -- "$text" "$tmp/err" || { bad "sweep $*: does not say '$text'"; cat "$tmp/err"; }
	[ -s "$tmp/out" ] && bad "sweep $*: something on standard output"
}
refused 'needs a target'
refused "'xdp:eth0' is not a target for a sweep; there is lab:SCENARIO" xdp:eth0
refused 'there is no scenarios/nix.yaml' lab:nix
refused 'one target' lab:a lab:b
refused "--foo is neither .* --tx, --rx-usecs, --series" lab:ixgbe-txring --foo 1,2
refused '--tx needs values' lab:ixgbe-txring --tx
refused '--tx needs values' lab:ixgbe-txring --tx --jobs 2
refused 'a number is needed' lab:ixgbe-txring --tx 1..5 step
refused 'tx: a value is empty' lab:ixgbe-txring --tx 1,,2
refused 'tx: 256 is given twice' lab:ixgbe-txring --tx 256,256
refused 'tx is given twice' lab:ixgbe-txring --tx 256 --set tx=512
refused "tx=many.*'many' is not a number" "${short[@]}" --tx 256,many
refused 'tx=100000.*64 to 4096' "${short[@]}" --tx 256,100000
refused "no host 'x'" "${short[@]}" --axis hosts.x.cpus=1,2
refused "no series 'nix'" "${short[@]}" --series v1,nix
refused 'more than 100000 points' lab:ixgbe-txring --tx 1..4000 --seed 1..4000
refused 'PATH=VALUES' lab:ixgbe-txring --set tx
refused 'there are pps, gbps' lab:ixgbe-txring --metric speed
refused 'from 1/N to N/N' lab:ixgbe-txring --shard 0/3
refused 'from 1/N to N/N' lab:ixgbe-txring --shard 4/3
refused '1 to 256' lab:ixgbe-txring --jobs 0
refused 'always, never or auto' lab:ixgbe-txring --color red
refused 'both want standard output' "${short[@]}" -j --csv -
refused 'needs files' --merge
refused 'no axes' --merge "$tmp/s1" --tx 1,2
refused 'No such file' --merge "$tmp/nix"
refused 'not what' --merge "$0"
refused 'not what' --merge "$tmp/csv"
refused 'not what' --merge /dev/null
refused '2 of 6 points are missing; the first is point 1 (tx=256 rx-usecs=35), of shard 2/3' \
	--merge "$tmp/s1" "$tmp/s3"
refused 'point 0 (tx=256 rx-usecs=20) is in .*/s1 and in .*/s1' \
	--merge "$tmp/s1" "$tmp/s1" "$tmp/s2"
sweep "${short[@]}" --tx 256,1024 --rx-usecs "10..30 step 10" --shard 2/3 -j >"$tmp/o"
refused 'other axes or values' --merge "$tmp/s1" "$tmp/o" "$tmp/s3"
sweep "${grid[@]}" --set seed=9 --shard 2/3 -j >"$tmp/o"
refused 'other values set' --merge "$tmp/s1" "$tmp/o" "$tmp/s3"
# The same scenario with another machine behind it.
cp -r "$top/data" "$tmp/data"
sed -i '0,/value: [0-9]*/s//value: 1234/' "$tmp/data/profiles/e5-2630.yaml"
HOLDOFF_DATA=$tmp/data sweep "${grid[@]}" --shard 2/3 -j >"$tmp/o" || bad "changed profile: status $?"
refused 'different scenarios or machine profiles' --merge "$tmp/s1" "$tmp/o" "$tmp/s3"

# --- an interruption leaves nothing behind ---------------------------------------------------------
"$holdoff" sweep lab:ixgbe-txring --set duration=20s --jobs 2 >"$tmp/out" 2>"$tmp/err" &
pid=$!
for _ in $(seq 1200); do
	[ "$(pgrep -c -P $pid)" = 2 ] && break
	sleep 0.05
done
workers=$(pgrep -P $pid)
[ -n "$workers" ] || bad "there are no workers"
kill -TERM $pid
wait $pid
status=$?
[ $status = 2 ] || bad "interrupted: status $status instead of 2"
grep -q 'interrupted' "$tmp/err" || bad "does not say that it was interrupted"
for worker in $workers; do
	kill -0 "$worker" 2>/dev/null && bad "worker $worker is still there"
done
# One that dies is named by its point.
"$holdoff" sweep lab:ixgbe-txring --set duration=20s --jobs 2 >"$tmp/out" 2>"$tmp/err" &
pid=$!
for _ in $(seq 1200); do
	workers=$(pgrep -P $pid) && [ "$(wc -w <<<"$workers")" = 2 ] && break
	sleep 0.05
done
# Each at work on its point: that takes seconds of a CPU, and a process's start milliseconds.
for _ in $(seq 1200); do
	least=$(for worker in $workers; do cut -d ' ' -f 1 "/proc/$worker/schedstat"; done | sort -n | head -n 1)
	[ "${least:-0}" -ge 100000000 ] && break
	sleep 0.05
done
for worker in $workers; do
	kill -KILL "$worker"
done
wait $pid
status=$?
[ $status = 2 ] || bad "after a worker's death: status $status instead of 2"
grep -q 'tx=256 rx-usecs=1: its process died of signal 9' "$tmp/err" ||
	{ bad "a worker's death is not told"; cat "$tmp/err"; }

[ $failed = 0 ] && echo "sweep: all passed"
exit $failed
