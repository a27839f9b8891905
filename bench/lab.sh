#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What a simulated frame costs: frames per second of CPU time over a whole published table, and
# instructions a frame by callgrind. A long and a short run are subtracted, so that building,
# loading and the warm-up are not in the instructions.
#
#   SCENARIO   of those with a published table (ixgbe-txring)
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/lib.sh
scenario=${SCENARIO:-ixgbe-txring}
bench_need /usr/bin/python3
bench_machine
echo "scenario: $scenario; ${ROUNDS} rounds of its whole table in one process"

field() { /usr/bin/python3 -c "import json,sys; print(json.load(sys.stdin)['$1'])"; }
for _ in $(seq "$ROUNDS"); do
	"$HOLDOFF" lab run "$scenario" -j --jobs 1 >"$bench_tmp/run" || [ $? -eq 3 ]
	bench_record rate "$(awk -v f="$(field sim_frames <"$bench_tmp/run")" \
		-v s="$(field cpu_seconds <"$bench_tmp/run")" 'BEGIN {print f / s}')"
done
printf '%-40s %.2f M/s (%s)\n' "frames per CPU second, median (spread)" \
	"$(awk -v m="$(bench_median rate)" 'BEGIN {print m / 1e6}')" "$(bench_spread rate)"

command -v valgrind >/dev/null || { echo "no valgrind: no instructions a frame"; exit 0; }
# instructions FIELDS of a run of $1 ms: "instructions frames"
instructions() {
	HOLDOFF_SIMD=avx2 valgrind --tool=callgrind --callgrind-out-file="$bench_tmp/callgrind" \
		"$HOLDOFF" lab run "$scenario" -j "${sets[@]}" --set warmup=2ms --set "duration=$1ms" \
		>"$bench_tmp/run" 2>"$bench_tmp/log"
	echo "$(sed -n 's/^\(summary\|totals\): //p' "$bench_tmp/callgrind" | head -n 1)" \
		"$(field sim_frames <"$bench_tmp/run")"
}
for us in 1 10 50; do
	sets=(--set tx=1024 --set "rx-usecs=$us")
	read -r i1 f1 < <(instructions 5)
	read -r i2 f2 < <(instructions 15)
	printf '%-40s %.0f\n' "instructions a frame, tx=1024 rx-usecs=$us" \
		"$(awk -v a="$i1" -v b="$f1" -v c="$i2" -v d="$f2" 'BEGIN {print (c - a) / (d - b)}')"
done
