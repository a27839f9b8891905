#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs the benches: bench/*.sh but this file and lib.sh, or those that are named. Each prints ratios
# to its peers, measured in the same run. TESTPMD=/path/to/dpdk-testpmd chooses the DPDK build.
set -u
cd "$(dirname "$0")/.." || exit 1
make --no-print-directory build >/dev/null || exit 1
export HOLDOFF=$PWD/build/holdoff
status=0
if [ $# = 0 ]; then
	set -- bench/*.sh
fi
for script in "$@"; do
	case $script in bench/run.sh | bench/lib.sh) continue ;; esac
	echo "== $script"
	"$script" || { echo "$script: exit status $?" >&2; status=1; }
done
exit $status
