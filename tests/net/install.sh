#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# 'make install' under DESTDIR gives a program, a library and headers that another program can be
# built with; the manual pages render; completion knows the commands. It is a release build, and
# computes what the one under test does: a run in the lab has the same digest.
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
fail() { echo "install: $*" >&2; exit 1; }
version=$(sed -n "s/^  version: '\(.*\)',/\1/p" "$top/meson.build")

meson setup "$tmp/build" "$top" --prefix=/usr --buildtype=release >"$tmp/log" 2>&1 || { cat "$tmp/log"; exit 1; }
ninja -C "$tmp/build" holdoff src/libholdoff.a "src/libholdoff.so.$version" >"$tmp/log" 2>&1 || { tail -n 20 "$tmp/log"; exit 1; }
DESTDIR=$tmp/root meson install -C "$tmp/build" --no-rebuild >"$tmp/log" 2>&1 || { cat "$tmp/log"; exit 1; }

pc=$(find "$tmp/root" -name libholdoff.pc)
[ -n "$pc" ] || fail "no pkg-config file"
flags=$(PKG_CONFIG_PATH=$(dirname "$pc") PKG_CONFIG_SYSROOT_DIR=$tmp/root \
	pkg-config --cflags --libs libholdoff)
# shellcheck disable=SC2086
cc -std=gnu17 -Wall -Wextra -Werror -Wno-unused-parameter "$top/examples/count.c" $flags -o "$tmp/count"
lib=$(dirname "$(find "$tmp/root" -name 'libholdoff.so.0')")
got=$(LD_LIBRARY_PATH=$lib "$tmp/count" null:,count=100000)
[ "$got" = "null:: 100000 frames, 6000000 bytes" ] || fail "the example said: $got"

# Each public header stands on its own.
inc=$(find "$tmp/root" -type d -path '*include/holdoff')
find "$inc" -name '*.h' | while read -r header; do
	echo "#include \"${header#"$inc"/}\"" | cc -std=gnu17 -D_GNU_SOURCE -Wall -Werror -I"$inc" \
		-fsyntax-only -x c - || fail "$header does not stand alone"
done

digest() {
	HOLDOFF_DATA=$top/data "$1" lab run ixgbe-txring -j --set tx=256 --set rx-usecs=30 --set duration=2ms \
		--set warmup=1ms | sed 's/.*"digest": *"\([0-9a-f]*\)".*/\1/'
}
tested=$(digest "${HOLDOFF:-$top/build/holdoff}")
[ "${#tested}" = 16 ] || fail "no digest: $tested"
[ "$(digest "$tmp/root/usr/bin/holdoff")" = "$tested" ] || fail "a release build computes something else"

"$tmp/root/usr/bin/holdoff" --version | grep -q '^holdoff [0-9]' || fail "no version"

# A page for the program and for each command, without a complaint from mandoc.
for page in holdoff $("$tmp/root/usr/bin/holdoff" --help | sed -n 's/^  \([a-z]\+\) .*/holdoff-\1/p'); do
	file=$(find "$tmp/root" -name "$page.8*")
	[ -n "$file" ] || fail "no manual page $page(8)"
	if command -v mandoc >/dev/null; then
		mandoc -T lint -W warning "$file" || fail "$page(8) has faults"
	fi
done

# Completion, as bash would call it.
PATH=$tmp/root/usr/bin:$PATH bash -c '
	. "$1"
	COMP_WORDS=(holdoff po) COMP_CWORD=1
	_holdoff
	[ "${COMPREPLY[*]}" = ports ]' - "$tmp/root/usr/share/bash-completion/completions/holdoff" ||
	fail "completion does not know 'ports'"
echo "installed, built against, documented"
