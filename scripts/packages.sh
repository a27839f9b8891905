#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Installs the Debian packages of the groups named (build, test, bench) that are missing.
set -euo pipefail

build="gcc libc6-dev make meson ninja-build pkg-config clang llvm bpftool clang-format libbpf-dev libxdp-dev
       libpcap-dev libcyaml-dev libyaml-dev libjansson-dev libcmocka-dev libcap-ng-dev libmnl-dev
       liburcu-dev liburing-dev libncurses-dev"
test="libclang-rt-14-dev iproute2 iputils-ping ethtool tcpdump tshark python3-scapy iperf3 jq
      procps libcap2-bin traceroute mtr-tiny frr bird2 dpdk-dev mandoc git curl
      qemu-system-x86 ipxe-qemu busybox-static cpio kmod chromium"
bench="dpdk-dev libdpdk-dev ethtool netsniff-ng valgrind linux-perf iproute2 jq procps"

wanted=""
for group in "$@"; do
	case $group in
	build) wanted+=" $build" ;;
	test) wanted+=" $test" ;;
	bench) wanted+=" $bench" ;;
	*) echo "packages.sh: no group '$group'; build, test and bench exist" >&2; exit 1 ;;
	esac
done

missing=""
for package in $wanted; do
	dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' ||
		missing+=" $package"
done
[ -n "$missing" ] || exit 0

sudo=""
if [ "$(id -u)" != 0 ]; then
	command -v sudo >/dev/null || {
		echo "packages.sh: missing packages:$missing" >&2
		echo "packages.sh: install them as root (apt-get install), then try again" >&2
		exit 1
	}
	sudo=sudo
fi
echo "Installing:$missing"
# A mirror that fails is asked again, and another apt is waited for.
patience="-o Acquire::Retries=5 -o DPkg::Lock::Timeout=300"
$sudo apt-get $patience update -q >/dev/null
# The noninteractive frontend must be set behind sudo, which clears the environment.
$sudo env DEBIAN_FRONTEND=noninteractive apt-get $patience install -q -y --no-install-recommends \
	$missing >/dev/null
