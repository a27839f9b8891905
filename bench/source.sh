#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What it costs to build a generated frame, with a working set that fits the second-level cache and
# with 64 K buffers; checksums and flow hashes.
set -u
cd "$(dirname "$0")/.." || exit 1
. bench/lib.sh
bench_machine
bench_huge_pages 300
for set in 1024 65536; do
	bench_rt "$(dirname "$HOLDOFF")/bench/bench_source" "$set" "$ROUNDS" || exit
done
