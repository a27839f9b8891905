# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# For the scripts that run in the guest, which source it: /inside.bash there.

failed=0

# check WHAT COMMAND...: says whether the command succeeds; $failed is 1 once one did not.
check() {
	local what=$1
	shift
	if "$@"; then echo "ok: $what"; else echo "NOT ok: $what"; failed=1; fi
}

# until_true TENTHS COMMAND...: runs it anew each tenth of a second.
until_true() {
	local left=$1
	shift
	while ! "$@"; do
		[ $((left--)) -gt 0 ] || return 1
		sleep 0.1
	done
}

# The card has its link: with some drivers seconds after it came up.
carrier() { [ "$(cat /sys/class/net/nic/carrier 2>/dev/null)" = 1 ]; }
