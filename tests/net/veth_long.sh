#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Long runs over veth, each frame's number checked, every loss named:
#
#    namespace A                          namespace B
#   +--------------------+               +--------------------+
#   | holdoff gen xdp:va |----- veth ----| holdoff recv xdp:vb|
#   |                    |  1, 4 queues  | native, generic    |
#   +--------------------+               +--------------------+
#
# HOLDOFF_FRAMES (10000000) frames a run. With the argument "all" also live frames, packet: with both
# ways of sending, and both ends in one process; veth_commands.sh has those in short. Needs root.
set -u
cd "$(dirname "$0")/../.." || exit 1
holdoff=$(realpath "${HOLDOFF:-build/holdoff}")
frames=${HOLDOFF_FRAMES:-10000000}
A=hl$$a B=hl$$b case=
# shellcheck source=tests/net/shared.bash
. tests/net/shared.bash
# shellcheck source=tests/net/gen_recv.bash
. tests/net/gen_recv.bash
needs_root
needs jq ethtool
[ -x "$holdoff" ] || skip "$holdoff is not built"
add_namespaces "$A" "$B" || skip "no network namespaces"

pairs=("xdp:vb,mode=copy xdp:va" "xdp:vb,mode=generic xdp:va")
alone=()
if [ "${1:-}" = all ]; then
	pairs+=("xdp:vb xdp:va,tx=live" "packet:vb packet:va" "packet:vb packet:va,tx=ring")
	alone=("xdp:vc xdp:vd,mode=copy" "xdp:vc xdp:vd,mode=generic" "packet:vc packet:vd")
fi
for queues in 1 4; do
	for what in "${pairs[@]}"; do
		set -- $what
		case="$queues queues, $2 to $1"
		veth "$A" va "$B" vb $queues
		recv_start "$1"
		gen "$2" --count "$frames"
		recv_end
		agree "$frames"
	done
	for what in ${alone[@]+"${alone[@]}"}; do
		set -- $what
		case="one process, $queues queues, $1 to $2"
		veth "$A" vc "$A" vd $queues
		one_process "$frames" "$1" "$2"
	done
done
[ $failed = 0 ] || { echo "$failed failed"; exit 1; }
echo "all balanced"
