#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The lab's first investigation stands beside its published table: every bound, the closed form of
# the ring-limited rows, and the same digest again, across jobs and across builds.
#
#   dut: pktgen on CPU 0 --> ring --> 82599 ==10 Gbit/s==> sink
#                             ^          |
#                             +-- NAPI <-+ interrupt, spaced by rx-usecs
#
#   LAB_BUILDS=0   does not build the debug program (which takes a minute)
set -euo pipefail
holdoff=$(realpath "${HOLDOFF:-build/holdoff}")
top=$(cd "$(dirname "$0")/../.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
fail() { echo "lab_txring: $*" >&2; exit 1; }

timeout 300 "$holdoff" lab run ixgbe-txring -j --jobs 2 >"$tmp/two" || fail "the table: status $?"
/usr/bin/python3 - "$tmp/two" "$top/data/published/ixgbe-txring.csv" <<'PYTHON' || exit 1
import csv, json, sys

run = json.load(open(sys.argv[1]))
table = list(csv.DictReader(l for l in open(sys.argv[2]) if not l.startswith('#')))
bad = []

def check(ok, what):
    if not ok:
        bad.append(what)

check(run['schema'] == 1 and run['command'] == 'lab', 'schema or command')
rows = {(r['series'], r['tx'], r['rx_usecs']): r for r in run['rows']}
check(len(run['rows']) == len(rows) == len(table) == 24, f'{len(rows)} rows')
background = run['background_irqs_per_s']
worst = 0
for p in table:
    tx, usecs = int(p['tx_ring']), int(p['rx_usecs'])
    name = f"{p['series']}/{tx}/{usecs}"
    r = rows.get((p['series'], tx, usecs))
    if r is None:
        bad.append(f'no row {name}')
        continue
    pps = int(p['pps'])
    error = 100 * (r['pps'] / pps - 1)
    bound = 1.5 if p['series'] == 'base' else 3 if (tx, usecs) == (1024, 1) else 1
    worst = max(worst, abs(error))
    check(r['published_pps'] == pps, f'{name}: published_pps')
    check(abs(error) <= bound, f'{name}: {error:+.2f} %, {bound} % are allowed')
    check(abs(r['error_percent'] - error) < 0.01, f'{name}: error_percent')
    if p['irqs']:
        off = 100 * (r['irqs_per_s'] / (int(p['irqs']) - background) - 1)
        check(abs(off) <= 3, f'{name}: interrupts {off:+.2f} %')
        check(r['published_irqs_per_s'] == int(p['irqs']), f'{name}: published_irqs_per_s')
    else:
        check(r['published_irqs_per_s'] is None, f'{name}: interrupts were not published')
    # The chip counts in steps of 1.024 us; the old adaptive rule sticks at 124.928 us.
    interval = 124.928e-6 if usecs == 1 else usecs * 1.024e-6
    law = (tx - 21) / interval
    if law < 0.97 * (7.3e6 if p['series'] == 'v1' else 5.4e6):
        if law < pps * 1.01:
            check(abs(r['pps'] / law - 1) <= 0.003, f"{name}: {r['pps']} against {law:.0f}")
            check(r['limiter'] == 'ring', f"{name}: limited by {r['limiter']}")
    if law > 1.05 * pps:
        check(r['limiter'] == 'cpu', f"{name}: limited by {r['limiter']}")
    check(len(r['limiter_detail']['text']) > 40, f'{name}: no arithmetic')
ring = [r for r in run['rows'] if r['limiter'] == 'ring']
check(len(ring) == 5, f'{len(ring)} rows are limited by the ring')
named = set()
for c in run['fitted_constants']:
    named |= set(c['rows'].split(', '))
marked = {r['row'] for r in run['rows'] if r['fitted']}
check(1 <= len(run['fitted_constants']) <= 5, f"{len(run['fitted_constants'])} fitted constants")
check(len(marked) <= 5, f'{len(marked)} fitted rows')
check(named == marked, f'constants name {sorted(named)}, the rows marked are {sorted(marked)}')
check(run['sim_frames'] > 20e6 and run['wall_seconds'] > 0 and run['cpu_seconds'] > 0, 'the counts')
check(len(run['digest']) == 16, 'the digest')
check('gains nothing' in run['verdict'], 'the verdict')
for b in bad:
    print('lab_txring:', b, file=sys.stderr)
print(f"24 rows, largest error {worst:.2f} %, {run['sim_frames'] / run['cpu_seconds'] / 1e6:.1f} M frames "
      f"per CPU second")
sys.exit(bool(bad))
PYTHON

# The same again, for any number of jobs; another seed may differ in nothing but its digest's name.
digest() { /usr/bin/python3 -c 'import json,sys; print(json.load(sys.stdin)["digest"])'; }
short=(lab run ixgbe-txring -j --set duration=2ms --set warmup=1ms)
statuses() { "$@" || [ $? -eq 3 ]; } # so short a run may miss the table
one=$(statuses "$holdoff" "${short[@]}" --jobs 1 2>/dev/null | digest)
for jobs in 1 2 5; do
	got=$(statuses "$holdoff" "${short[@]}" --jobs $jobs 2>/dev/null | digest)
	[ "$got" = "$one" ] || fail "digest $got with $jobs jobs, $one before"
done

# A scenario beyond what it allows says so, with its own status.
status=0
"$holdoff" lab run ixgbe-txring -j --series v1 --set duration=2ms \
	--set hosts.dut.constants.tx_frame_ns=80 >/dev/null 2>"$tmp/err" || status=$?
[ $status -eq 3 ] || fail "a wrong profile: status $status"
grep -q 'rows are farther' "$tmp/err" || fail "a wrong profile: $(cat "$tmp/err")"

# The trace is JSON, in order, of a bearable size, and shows CPUs, interrupts and doorbells.
"$holdoff" lab run ixgbe-txring --set duration=1ms --trace "$tmp/trace" >/dev/null
/usr/bin/python3 - "$tmp/trace" <<'PYTHON' || fail "the trace"
import json, os, sys
events = json.load(open(sys.argv[1]))['traceEvents']
names = {e['name'] for e in events}
for wanted in 'tail', 'write-back', 'fetch', 'softirq', 'interrupt':
    assert wanted in names, wanted
assert any(e['ph'] == 'X' and e['cat'] == 'irq' for e in events)
assert os.path.getsize(sys.argv[1]) < 4e6, os.path.getsize(sys.argv[1])
PYTHON

# A debug build: the same picoseconds. (install.sh says so of a release build.)
if [ "${LAB_BUILDS:-1}" = 1 ]; then
	single=(lab run ixgbe-txring -j --set tx=256 --set rx-usecs=30 --set duration=2ms --set warmup=1ms)
	one=$(HOLDOFF_DATA=$top/data "$holdoff" "${single[@]}" | digest)
	for type in debug; do
		meson setup "$tmp/$type" "$top" --buildtype=$type >"$tmp/log" 2>&1 || { cat "$tmp/log"; exit 1; }
		ninja -C "$tmp/$type" holdoff >"$tmp/log" 2>&1 || { tail -n 20 "$tmp/log"; exit 1; }
		got=$(HOLDOFF_DATA=$top/data "$tmp/$type/holdoff" "${single[@]}" | digest)
		[ "$got" = "$one" ] || fail "digest $got of a $type build, $one of this one"
	done
fi
echo "the table holds; digests agree"
