#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Receive to transmit without a kernel: holdoff against DPDK's testpmd, one core, 60-byte frames.
#
#   null:   holdoff patch null: null:              testpmd with two net_null
#   mem:    the two ends of a mem: wire            testpmd with two net_ring
#
# Working sets: "64k" is 65536 buffers going round (32768 each way); "hot" is what the peer uses by
# its defaults, a few hundred buffers that never leave the first-level caches. testpmd's mempool
# cache keeps it hot; with --mbcache=0 its 64k buffers go round as well.
set -u
cd "$(dirname "$0")/.." || exit 1
. bench/lib.sh
bench_need jq
bench_machine
bench_huge_pages 700
cpu=$(($(nproc) - 1))
loop=$(dirname "$HOLDOFF")/bench/bench_loop

# patch SET MODE -> packets a second
patch() {
	bench_rt "$HOLDOFF" patch "null:,set=$1" "null:,set=$1" --mode="$2" --cpu="$cpu" --buffers=200k \
		-d "${SECONDS_EACH}s" -j | jq .tx_pps
}
mem() { bench_rt taskset -c "$cpu" "$loop" "mem:x,ring=$1" mem:x "$2" "$3" "$SECONDS_EACH"; }
pmd() { bench_testpmd "$1" "0,$cpu" "--in-memory $2" "$3"; }

null_pair="--vdev=net_null0 --vdev=net_null1"
ring_pair="--vdev=net_ring0 --vdev=net_ring1"
for ((round = 1; round <= ROUNDS; round++)); do
	for mode in io mac; do
		bench_record "null_64k_$mode" "$(patch 32768 $mode)"
		bench_record "null_hot_$mode" "$(patch 256 $mode)"
		bench_record "mem_64k_$mode" "$(mem 65536 $mode 32768)"
		bench_record "mem_hot_$mode" "$(mem 1024 $mode 128)"
		i=0
		for peer in $TESTPMD; do
			bench_record "pmd${i}_null_$mode" "$(pmd "$peer" "$null_pair" "--forward-mode=$mode")"
			bench_record "pmd${i}_null_64k_$mode" \
				"$(pmd "$peer" "$null_pair" "--forward-mode=$mode --mbcache=0 --total-num-mbufs=65536")"
			bench_record "pmd${i}_ring_$mode" "$(pmd "$peer" "$ring_pair" "--forward-mode=$mode --tx-first")"
			i=$((i + 1))
		done
	done
done

i=0
for peer in $TESTPMD; do
	echo
	echo "against $peer (ratio: ours / its figure for the same mode)"
	for mode in io mac; do
		bench_row "testpmd net_null $mode, hot" "pmd${i}_null_$mode"
		bench_row "testpmd net_null $mode, 64k buffers" "pmd${i}_null_64k_$mode"
		bench_row "holdoff null: $mode, 64k, to testpmd hot" "null_64k_$mode" "pmd${i}_null_$mode"
		bench_row "holdoff null: $mode, 64k, to testpmd 64k" "null_64k_$mode" "pmd${i}_null_64k_$mode"
		bench_row "holdoff null: $mode, hot, to testpmd hot" "null_hot_$mode" "pmd${i}_null_$mode"
		bench_row "testpmd net_ring $mode, hot" "pmd${i}_ring_$mode"
		bench_row "holdoff mem: $mode, hot, to net_ring hot" "mem_hot_$mode" "pmd${i}_ring_$mode"
		bench_row "holdoff mem: $mode, 64k, to net_null hot" "mem_64k_$mode" "pmd${i}_null_$mode"
	done
	i=$((i + 1))
done
