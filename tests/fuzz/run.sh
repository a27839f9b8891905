#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# run.sh [SECONDS [TARGET...]]: builds the fuzz targets with clang and runs each for that long (60),
# from its corpus in tests/fuzz/corpus/TARGET. New inputs go to BUILD/corpus/TARGET, an input that
# fails to BUILD/crash-TARGET-*; the exit status is 0 when nothing failed.
set -u
seconds=${1:-60}
shift $(( $# > 0 ? 1 : 0 ))
top=$(cd "$(dirname "$0")/../.." && pwd)
build=${BUILD:-$top/build-fuzz}
targets=("$@")
[ $# -gt 0 ] || targets=(parse spec replay port_pcap port_memif rtnl forward)

command -v clang >/dev/null || { echo "fuzzing needs clang: apt-get install clang" >&2; exit 2; }
if [ ! -d "$build" ]; then
	CC=clang meson setup "$build" "$top" -Dfuzz=true -Db_lundef=false >/dev/null || exit 2
fi
ninja -C "$build" "${targets[@]/#/tests/fuzz/fuzz_}" >"$build/ninja.log" ||
	{ tail -20 "$build/ninja.log" >&2; exit 2; }

failed=0
for target in "${targets[@]}"; do
	mkdir -p "$build/corpus/$target"
	log=$build/$target.log
	"$build/tests/fuzz/fuzz_$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
		-max_len=16384 -print_final_stats=1 -artifact_prefix="$build/crash-$target-" \
		"$build/corpus/$target" "$top/tests/fuzz/corpus/$target" >"$log" 2>&1
	status=$?
	runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
	cover=$(sed -n 's/.* cov: \([0-9]*\).*/\1/p' "$log" | tail -1)
	if [ $status -eq 0 ]; then
		echo "ok   fuzz_$target: ${runs:-0} runs, $cover edges"
	else
		echo "FAIL fuzz_$target: see $log" >&2
		grep -E 'SUMMARY|ERROR|runtime error|Test unit written' "$log" | head -5 >&2
		failed=1
	fi
done
exit $failed
