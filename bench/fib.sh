#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Forwarding tables: lookups and updates, against DPDK's rte_lpm, rte_fib, rte_lpm6 and rte_fib6.
# One process a DPDK and a family has all tables, filled with the same routes; they answer the same
# addresses in turns, and their answers are compared (bench/peer_fib.c).
#
#   DPDK_PC   pkg-config directories of DPDK builds, separated by spaces; "system" is what
#             pkg-config finds by itself (system)
#   FAMILIES  "4 6"
#   ROUTES4, ROUTES6   how many routes (950000, 200000)
#   SHAPE     internet or uniform
#   BULK      addresses a call (64)
#   MEMORY    MB of huge pages for DPDK (3600)
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/lib.sh
DPDK_PC=${DPDK_PC:-system}
FAMILIES=${FAMILIES:-4 6}
SHAPE=${SHAPE:-internet}
BULK=${BULK:-64}
MEMORY=${MEMORY:-3600}
bench_need cc pkg-config
bench_huge_pages $((MEMORY / 2))
bench_machine

found=0
for pc in $DPDK_PC; do
	bench_dpdk_peer "$pc" peer_fib || continue
	found=1
	for family in $FAMILIES; do
		routes=$([ "$family" = 4 ] && echo "${ROUTES4:-950000}" || echo "${ROUTES6:-200000}")
		echo "--- IPv$family, $routes routes ($SHAPE), $BULK addresses a call"
		"$bench_tmp/peer_fib" "$family" "$routes" "$SHAPE" "$BULK" "$ROUNDS" -l 1 --no-pci \
			--no-telemetry --in-memory --force-max-simd-bitwidth=512 \
			--file-prefix "fib$$" 2>"$bench_tmp/log" | grep -v '^EAL' || {
			tail -n 5 "$bench_tmp/log"
			exit 1
		}
	done
done
[ "$found" = 1 ] || { echo "skipped: no DPDK to compare with"; exit 77; }
