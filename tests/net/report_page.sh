#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The page of a sweep, in a real browser: its script runs, draws every point, and asks for nothing
# from anywhere. No root, no network.
set -u
. "$(dirname "$0")/shared.bash"
HOLDOFF=$(realpath "${HOLDOFF:-build/holdoff}")
browser=$(command -v chromium || command -v chromium-browser) || skip "chromium is not installed"
work=$tmp
browse() { # browse OPTION FILE
	HOME=$work timeout 200 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --disable-quic --no-first-run \
		--disable-background-networking --disable-component-update --disable-sync \
		--user-data-dir="$work/profile" --virtual-time-budget=3000 --window-size=1100,1500 \
		"$1" "file://$2" 2>/dev/null
}
count() { grep -o "$1" "$work/dom" | wc -l; }

"$HOLDOFF" sweep lab:ixgbe-txring --set duration=2ms --set warmup=1ms --html "$work/page.html" >/dev/null || exit 1
browse --dump-dom "$work/page.html" >"$work/dom"
check "the title is set" grep -q '<title>holdoff sweep: lab:ixgbe-txring</title>' "$work/dom"
check "18 points on three curves" [ "$(count '<circle')" = 18 ]
check "three curves" [ "$(count '<path d="M')" = 3 ]
check "the best cell is marked" [ "$(count 'class="best"')" = 1 ]
check "a button for each metric" [ "$(count '<button')" -ge 5 ]
check "it names no other place" [ "$(grep -cE '(src|href)="(https?:)?//' "$work/page.html")" = 0 ]

# What a page must survive: text that looks like markup, in any value.
sed 's/"title":"[^"]*"/"title":"\\u003c\/script>\\u003cscript>document.title=1\\u003c\/script>"/' \
	"$work/page.html" >"$work/hostile.html"
browse --dump-dom "$work/hostile.html" >"$work/dom"
check "markup in a title stays text" grep -q '<title>holdoff sweep' "$work/dom"

browse "--screenshot=$work/page.png" "$work/page.html" >/dev/null
# A blank page of this size compresses to a few kilobytes.
check "the picture is not blank" [ "$(stat -c %s "$work/page.png" 2>/dev/null || echo 0)" -gt 30000 ]
exit $failed
