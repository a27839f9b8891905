#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A user's own profile, scenario and table, outside of data/, run; mistakes in them are named with
# file, line and column.
set -euo pipefail
holdoff=$(realpath "${HOLDOFF:-build/holdoff}")
top=$(cd "$(dirname "$0")/../.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
fail() { echo "lab_files: $*" >&2; exit 1; }
cp "$top"/examples/lab/* "$tmp"
cd "$tmp"

"$holdoff" lab run ./my-test.yaml -j >out || fail "the example: status $?"
/usr/bin/python3 - <<'PYTHON' || fail "$(cat out)"
import json
rows = json.load(open('out'))['rows']
assert [(r['ring'], r['usecs'], r['bytes']) for r in rows] == [(128, 125, 60), (512, 62, 60), (1024, 125, 250)]
# 107 frames in flight each 126.976 us; 250 bytes and 24 more fill 10 Gbit/s.
assert abs(rows[0]['pps'] / (107 / 126.976e-6) - 1) < 0.003, rows[0]['pps']
assert abs(rows[2]['pps'] / (1e10 / 8 / 274) - 1) < 0.003, rows[2]['pps']
assert rows[0]['published_pps'] is None
PYTHON

# A measured value that agrees, and one that does not with a limit set.
sed -i 's/^128,125,60,,/128,125,60,842000,/' my-numbers.csv
"$holdoff" lab run ./my-test.yaml -j >out || fail "a value: status $?"
grep -q '"published_pps":842000' out || fail "the value is not beside the result"
sed -i 's/result: pps}/result: pps, within-percent: 1}/; ' my-test.yaml
sed -i 's/842000/900000/' my-numbers.csv
status=0
"$holdoff" lab run ./my-test.yaml >out 2>err || status=$?
[ $status = 3 ] || fail "an error beyond the limit: status $status"

# Four lines are a profile.
printf 'name: my-box\ntitle: minimal\ninherits: e5-2630\ncpu_hz: 2000000000\n' >my-box.yaml
sed -i 's/900000//' my-numbers.csv
"$holdoff" lab run ./my-test.yaml >out || fail "a minimal profile: status $?"

# wrong FILE SED TEXT: the mistake is named with its place
wrong() {
	local file=$1 change=$2 text=$3 status=0
	cp "$top"/examples/lab/* .
	sed -i "$change" "$file"
	"$holdoff" lab run ./my-test.yaml >out 2>err || status=$?
	[ $status = 1 ] || fail "$change: status $status"
	grep -qE "$file:[0-9]+:[0-9]+: .*$text" err || fail "$change: says $(cat err)"
}
wrong my-box.yaml 's/tx_frame_ns/tx_frame_nz/' 'Unexpected key: tx_frame_nz'
wrong my-box.yaml 's/value: 48/value: -48/' '-48: a value from 0'
wrong my-box.yaml 's/kind: measured/kind: guessed/' 'guessed'
wrong my-box.yaml 's/inherits: e5-2630/inherits: e5-9999/' 'e5-9999'
wrong my-test.yaml 's/result: irqs_per_s/result: irqs/' "'irqs' is not a result of a run"
wrong my-test.yaml 's/column: itr_us/column: itr/' "no column 'itr'"
wrong my-test.yaml 's/axis: usecs/axis: msecs/' "no axis 'msecs'"
wrong my-test.yaml 's/chip: eth0/chip: eth9/' "no chip 'eth9'"
wrong my-test.yaml 's/rate: 10gbps/rate: fast/' 'fast'
echo "lab_files: ok"
