#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs the benches: bench/*.sh but this file and lib.sh, or those that are named. Each prints ratios
# to its peers, measured in the same run, medians of ROUNDS (5) rounds of SECONDS_EACH (1); all of
# them take about half an hour. TESTPMD=/path/to/dpdk-testpmd chooses the DPDK build, or several of
# them. Exit status 1 when one fails; one that lacks a peer or a privilege says so and is skipped.
set -u
cd "$(dirname "$0")/.." || exit 1
make --no-print-directory build >/dev/null || exit 1
export HOLDOFF=$PWD/build/holdoff ROUNDS=${ROUNDS:-5} SECONDS_EACH=${SECONDS_EACH:-1}
status=0
if [ $# = 0 ]; then
	set -- bench/*.sh
fi
for script in "$@"; do
	case $script in bench/run.sh | bench/lib.sh) continue ;; esac
	echo "== $script"
	begin=$SECONDS rc=0
	"$script" || rc=$?
	case $rc in
	0) echo "-- $script: done in $((SECONDS - begin)) s" ;;
	77) echo "-- $script: skipped" ;;
	*)
		echo "$script: exit status $rc" >&2
		status=1
		;;
	esac
done
exit $status
