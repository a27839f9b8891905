# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# A Linux guest under QEMU (software emulation) in which a test meets the kernel's own NIC drivers.
# To be sourced by the tests of this folder.
#
#   this machine                        guest: Debian's kernel, an initramfs made here
#   +----------------+   serial line    +---------------------------------------+
#   | test script    | <--------------- | /test.sh: the second part of the test |
#   | guest_run      |                  |   eth0: the driver under test         |
#   +----------------+                  |     |                                 |
#                                       |   QEMU's hub ("the wire")             |
#                                       |     |                                 |
#                                       |   peer (virtio-net), in namespace "p" |
#                                       +---------------------------------------+
#
# The kernel's package is downloaded and unpacked once, into GUEST_DIR (build-guest/); it is not
# installed. Exit status 77 with a reason where QEMU or the kernel cannot be had.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
HOLDOFF=$(realpath "${HOLDOFF:-$top/build/holdoff}")
GUEST_DIR=${GUEST_DIR:-$top/build-guest}

guest_skip() {
	echo "$1"
	exit 77
}

# The QEMU to be used: that of $QEMU, else the one in the path.
guest_qemu() {
	QEMU=${QEMU:-$(command -v qemu-system-x86_64)} ||
		guest_skip "qemu-system-x86_64 is not installed (package qemu-system-x86)"
}

# Does this QEMU have that model of a network card?
guest_has_device() {
	"$QEMU" -device help 2>/dev/null | grep -q "^name \"$1\""
}

# Kernel and modules in $GUEST_DIR/kernel. Several tests may want them at once.
guest_kernel() {
	mkdir -p "$GUEST_DIR"
	exec 7>"$GUEST_DIR/.lock"
	flock 7
	if ! [ -e "$GUEST_DIR/kernel/complete" ]; then
		local package
		package=$(apt-cache depends linux-image-amd64 2>/dev/null |
			awk '/Depends: linux-image/ { print $2; exit }')
		[ -n "$package" ] || guest_skip "apt knows no package linux-image-amd64"
		rm -rf "$GUEST_DIR/kernel" "$GUEST_DIR/download"
		mkdir -p "$GUEST_DIR/download"
		(cd "$GUEST_DIR/download" && apt-get download -q "$package" >/dev/null 2>&1) ||
			guest_skip "the package $package could not be downloaded"
		dpkg-deb -x "$GUEST_DIR"/download/*.deb "$GUEST_DIR/kernel" || exit 1
		rm -rf "$GUEST_DIR/download"
		touch "$GUEST_DIR/kernel/complete"
	fi
	flock -u 7
	exec 7>&-
	KERNEL_IMAGE=$(echo "$GUEST_DIR"/kernel/boot/vmlinuz-*)
	KERNEL_VERSION=${KERNEL_IMAGE##*/vmlinuz-}
	[ -e "$GUEST_DIR/kernel/lib/modules/$KERNEL_VERSION/modules.dep" ] ||
		depmod -b "$GUEST_DIR/kernel" "$KERNEL_VERSION" || exit 1
}

# guest_copy ROOT PROGRAM...: the programs with the libraries that they need.
guest_copy() {
	local root=$1 program file
	shift
	for program in "$@"; do
		file=$(command -v "$program") || guest_skip "$program is not installed"
		file=$(realpath "$file")
		install -D -m 755 "$file" "$root/bin/${program##*/}"
		ldd "$file" 2>/dev/null | grep -o '/[^ ]*' | while read -r file; do
			[ -e "$root$file" ] || install -D -m 755 "$(realpath "$file")" "$root$file"
		done
	done
}

# guest_modules ROOT MODULE...: the modules, and a list in the order in which to load them.
guest_modules() {
	local root=$1 module line
	shift
	mkdir -p "$root/modules"
	for module in "$@"; do
		modprobe -d "$GUEST_DIR/kernel" -S "$KERNEL_VERSION" --show-depends "$module" 2>/dev/null |
			awk '$1 == "insmod" { print $2 }' || true
	done | awk '!seen[$0]++' | while read -r line; do
		install -m 644 "$line" "$root/modules/"
		echo "${line##*/}" >>"$root/modules/order"
	done
}

# guest_run SECONDS MODULE SCRIPT QEMU-ARGUMENTS...: boots, loads the module, runs the script (a
# shell script of this machine's) in the guest and returns its exit status. Its output is ours.
# $GUEST_PROGRAMS, $GUEST_MODULES: more programs and modules that it needs.
guest_run() {
	local limit=$1 module=$2 script=$3 root image rc
	shift 3
	root=$(mktemp -d)
	image=$(mktemp)
	mkdir -p "$root"/{bin,dev,proc,sys,tmp,run,etc,var}
	ln -s /run "$root/var/run"
	# Busybox's shell would take its own applets before the programs that were copied.
	ln -s bash "$root/bin/sh"
	install -m 755 "$(command -v busybox || guest_skip 'busybox is not installed')" "$root/bin/busybox"
	guest_copy "$root" "$HOLDOFF" ip ethtool bash ${GUEST_PROGRAMS:-}
	# shellcheck disable=SC2086
	guest_modules "$root" virtio_pci virtio_net "$module" ${GUEST_MODULES:-}
	install -m 755 "$script" "$root/test.sh"
	install -m 644 "$top/tests/guest/inside.bash" "$root/inside.bash"
	cat >"$root/init" <<'INIT'
#!/bin/bash
export PATH=/bin HOME=/tmp HOLDOFF=/bin/holdoff TERM=dumb
/bin/busybox --install -s /bin 2>/dev/null
mount -t devtmpfs none /dev 2>/dev/null
mount -t proc none /proc
mount -t sysfs none /sys
mount -t tmpfs none /tmp
mount -t tmpfs none /run
ln -s /proc/self/fd /dev/fd
while read -r m; do insmod "/modules/$m" || echo "insmod $m failed"; done </modules/order
ip link set lo up
ip netns add p
for d in /sys/class/net/*; do
	case $(cat "$d/address") in
	52:54:00:00:00:01) ip link set "${d##*/}" name nic ;;
	52:54:00:00:00:02) ip link set "${d##*/}" name peer && ip link set peer netns p ;;
	esac
done
cd /tmp
bash /test.sh
echo "GUEST-EXIT $?"
sync
poweroff -f
INIT
	chmod 755 "$root/init"
	(cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) >"$image"
	rm -rf "$root"
	rc=$({ timeout -k 5 "$limit" "$QEMU" -machine q35 -accel tcg -m 512 -smp 2 \
		-nodefaults -no-user-config -display none -no-reboot -serial stdio -monitor none \
		-kernel "$KERNEL_IMAGE" -initrd "$image" \
		-append "console=ttyS0 quiet panic=-1 no_timer_check random.trust_cpu=on net.ifnames=0" \
		"$@" </dev/null || echo "qemu ended with status $?"; } 2>&1 | tr -d '\r' |
		grep --line-buffered -v 'is not connected to host network' |
		awk '/^GUEST-EXIT/ { rc = $2; seen = 1; next } { print > "/dev/stderr" }
		     END { print seen ? rc : 99 }')
	rm -f "$image"
	[ "$rc" != 99 ] || echo "the guest did not finish its script within $limit s"
	return "$rc"
}

# guest_models SECONDS SCRIPT MODEL:MODULE...: a guest for each model of a card on guest_wire, one after the
# other (two at once take as long). 1 when the script failed in one of them.
guest_models() {
	local limit=$1 script=$2 model status=0
	shift 2
	for model in "$@"; do
		echo "== ${model%:*}"
		# shellcheck disable=SC2046
		guest_run "$limit" "${model#*:}" "$script" $(guest_wire "${model%:*}") || status=1
	done
	return $status
}

# The arguments for QEMU: a card of the model under test and a virtio-net peer on one wire.
guest_wire() {
	echo "-netdev hubport,id=n0,hubid=0 -device $1,netdev=n0,mac=52:54:00:00:00:01" \
		"-netdev hubport,id=n1,hubid=0 -device virtio-net-pci,netdev=n1,mac=52:54:00:00:00:02"
}
