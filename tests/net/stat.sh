#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# holdoff stat against what others say of the same seconds:
#
#    namespace A                          namespace B
#   +--------------------+               +--------------------+
#   | holdoff gen        |               | holdoff stat vb    |
#   |   packet:va        |----- veth ----| ethtool -S vb      |
#   |                    | 4 (8) queues  | /proc/net/dev      |
#   +--------------------+               +--------------------+
#
# Sums of all intervals must lie between what was read before the first and after the last one.
# HOLDOFF_FRAMES (100000) frames. Needs root.
set -u
cd "$(dirname "$0")/../.." || exit 1
holdoff=$(realpath "${HOLDOFF:-build/holdoff}")
frames=${HOLDOFF_FRAMES:-100000}
A=hstat$$a B=hstat$$b
# shellcheck source=tests/net/shared.bash
. tests/net/shared.bash
needs_root
[ -x "$holdoff" ] || skip "$holdoff is not built"
needs jq ethtool curl python3
add_namespaces "$A" "$B" || skip "no network namespaces"

in_a() { ip netns exec "$A" "$@"; }
# In the background only without this, so that $! is the program itself.
in_b() { ip netns exec "$B" "$@"; }
fail() { echo "FAILED: $*"; failed=$((failed + 1)); return 1; }
# within NAME LOW VALUE HIGH
within() {
	if [ "$2" -le "$3" ] && [ "$3" -le "$4" ]; then
		echo "   $1: $3, others say $2 to $4"
	else
		fail "$1: $3 is not between $2 and $4"
	fi
}

# link QUEUES: veth counts by queue what it polls, which are frames for GRO: those of a sender that
# does not segment itself.
link() {
	ip -n "$A" link del va 2>/dev/null
	ip link add va netns "$A" numtxqueues "$1" numrxqueues "$1" type veth \
		peer name vb netns "$B" numtxqueues "$1" numrxqueues "$1" || exit 1
	in_a ethtool -L va rx "$1" tx "$1" && in_b ethtool -L vb rx "$1" tx "$1" || exit 1
	in_b ethtool -K vb gro on && in_a ethtool -K va tso off || exit 1
	ip -n "$A" link set va up
	ip -n "$B" link set vb up
	until_true 60 has_carrier "$A" va && until_true 60 has_carrier "$B" vb || exit 1
}
dev() { in_b awk -v n="$1" '/vb:/ {sub(".*:", ""); print $n}' /proc/net/dev; }
driver() { in_b ethtool -S vb | awk '/rx_queue_[0-9]+_xdp_packets:/ {s += $2} END {print s + 0}'; }
lines() { [ "$(wc -l <"$1")" -ge "$2" ]; }

link 4

# What the kernel counts, by name: packets, bytes, drops, frames polled by the queues, context switches, frames
# that CPUs took from links.
count() {
	case $1 in
	packets) dev 2 ;;
	bytes) dev 1 ;;
	drops) dev 4 ;;
	queues) driver ;;
	switches) awk '/^ctxt/ {print $2}' /proc/stat ;;
	softnet) awk '{ print "0x" $1 }' /proc/net/softnet_stat | { n=0; while read -r x; do n=$((n + x)); done; echo $n; } ;;
	esac
}
names="packets bytes drops queues switches softnet"
# counts PREFIX: all of them, into variables PREFIX_NAME.
counts() {
	local name
	for name in $names; do printf -v "$1_$name" %s "$(count $name)"; done
}

echo "== counters under traffic"
# before <= the first interval's begin <= inner <= some interval's begin; that of the last interval >= last.
counts before
ip netns exec "$B" "$holdoff" stat vb -j -i 250ms >"$tmp/stat.json" 2>"$tmp/stat.err" &
stat_pid=$!
until_true 60 lines "$tmp/stat.json" 1 || fail "stat prints nothing: $(cat "$tmp/stat.err")"
counts inner
in_a "$holdoff" gen packet:va -c "$frames" -Q --src-port 1000-1999 >"$tmp/gen.out" 2>&1 ||
	fail "gen: $(tail -n 2 "$tmp/gen.out")"
counts last
n=$(wc -l <"$tmp/stat.json")
until_true 60 lines "$tmp/stat.json" $((n + 2)) || fail "stat stops"
kill -INT $stat_pid
wait $stat_pid || fail "stat ended with $?"
counts after
sum() { jq -s "map($1) | add" "$tmp/stat.json"; }
# between WHAT NAME JQ: what stat counted is what the kernel did meanwhile, at least between inner and last.
between() {
	local before=before_$2 inner=inner_$2 last=last_$2 after=after_$2
	within "$1" $((${!last} - ${!inner})) "$(sum "$3")" $((${!after} - ${!before}))
}
[ $((last_packets - inner_packets)) -gt $((frames / 200)) ] || fail "hardly a frame has come: $((last_packets - inner_packets))"
between "packets" packets '.interfaces[0].rx_packets'
between "bytes" bytes '.interfaces[0].rx_bytes'
between "drops" drops '.interfaces[0].rx_dropped'
between "queues' packets" queues '[.interfaces[0].queues[] | select(.direction == "rx") | .packets] | add'
between "context switches" switches .context_switches
between "softnet, frames" softnet '[.cpus[].softnet_processed] | add'
used=$(jq -s '[.[].interfaces[0].queues[] | select(.direction == "rx" and .packets > 0) | .queue] | unique | length' "$tmp/stat.json")
echo "   receive queues that got some: $used"

echo "== the JSON's shape"
jq -es 'all(.[]; .schema == 1 and .command == "stat" and (.interval_ns | type) == "number"
	and (.time_unix_ns > 1500000000000000000)
	and (.interfaces[0] | .interface == "vb" and .state == "present" and .driver == "veth"
		and (.queues | length) == 8 and (.settings | has("gro")) and (.irqs | length) == 0)
	and (.cpus | length) >= 1
	and all(.cpus[]; has("user_ns") and has("system_ns") and has("irq_ns") and
		has("softirq_ns") and has("idle_ns") and has("softnet_squeezed"))
	and ([.. | numbers] | all(. == floor and . >= 0)))' "$tmp/stat.json" >/dev/null ||
	fail "the JSON is not as documented"

echo "== CPU time beside the kernel's"
# As above: what was read within an interval and around all of them, of the same counters.
cpu_rows() { [ "$(wc -l <"$tmp/cpu.json")" -ge "$1" ]; }
cp /proc/stat "$tmp/before"
ip netns exec "$B" "$holdoff" stat vb -j -i 250ms >"$tmp/cpu.json" 2>"$tmp/stat.err" &
stat_pid=$!
until_true 60 cpu_rows 1 || fail "stat prints nothing: $(cat "$tmp/stat.err")"
cp /proc/stat "$tmp/inner"
until_true 60 cpu_rows 5 || fail "stat stops"
cp /proc/stat "$tmp/last"
until_true 60 cpu_rows $(($(wc -l <"$tmp/cpu.json") + 2)) || fail "stat stops"
kill -INT $stat_pid
wait $stat_pid || fail "stat ended with $?"
cp /proc/stat "$tmp/after"
python3 - "$tmp" <<'PY' || fail "CPU times differ from the kernel's"
import json, os, sys
tick = 1e9 / os.sysconf("SC_CLK_TCK")
names = ["user", "nice", "system", "idle", "iowait", "irq", "softirq"]
def read(name):
    out = {}
    for line in open(f"{sys.argv[1]}/{name}"):
        w = line.split()
        if w and w[0].startswith("cpu") and w[0] != "cpu":
            out[int(w[0][3:])] = dict(zip(names, (int(v) * tick for v in w[1:])))
    return out
before, inner, last, after = (read(n) for n in ("before", "inner", "last", "after"))
ours = {}
for line in open(sys.argv[1] + "/cpu.json"):
    for cpu in json.loads(line)["cpus"]:
        sums = ours.setdefault(cpu["cpu"], dict.fromkeys(names, 0))
        for name in names:
            sums[name] += cpu.get(name + "_ns", 0)
bad = 0
assert set(ours) == set(after), (sorted(ours), sorted(after))
for cpu, sums in ours.items():
    # The kernel corrects its idle times a little when they are read meanwhile; iowait even backwards.
    for name in ("user", "nice", "system", "irq", "softirq", "idle"):
        slack = 2 * tick if name == "idle" else 0
        low, high = last[cpu][name] - inner[cpu][name], after[cpu][name] - before[cpu][name]
        if not low - slack <= sums[name] <= high + slack:
            print(f"CPU {cpu} {name}: {sums[name] / 1e6:.0f} ms, the kernel says {low / 1e6:.0f} to {high / 1e6:.0f}")
            bad += 1
    assert sum(sums.values()) > 0.5e9, (cpu, sums)
sys.exit(bad != 0)
PY

echo "== OpenMetrics"
in_b ip link set lo up
ip netns exec "$B" "$holdoff" stat vb --openmetrics 0 2>"$tmp/om.err" &
om=$!
until_true 60 grep -q serving "$tmp/om.err" || fail "it does not serve: $(cat "$tmp/om.err")"
url=$(sed -n 's/.*serving \(http[^ ]*\).*/\1/p' "$tmp/om.err")
in_b curl -sS -m 60 -D "$tmp/head" "$url" >"$tmp/metrics" || fail "curl $url"
grep -qi '^content-type: application/openmetrics-text; version=1.0.0' "$tmp/head" || fail "content type"
cat >"$tmp/check.py" <<'PY'
import re, sys
text = open(sys.argv[1]).read()
assert text.endswith("# EOF\n") and text.count("# EOF") == 1, "no EOF at the end"
label = r'[a-z_]+="(?:[^"\\\n]|\\["\\n])*"'
sample = re.compile(rf'^([a-z_:][a-z0-9_:]*)(?:\{{({label}(?:,{label})*)\}})? (\d+(?:\.\d+)?)$')
kind = family = None
seen, series = set(), set()
for line in text.splitlines()[:-1]:
    if line.startswith("# TYPE "):
        _, _, family, kind = line.split(" ")
        assert family not in seen, family + " twice"
        seen.add(family)
        assert kind in ("counter", "gauge", "info", "unknown"), kind
    elif line.startswith("# UNIT "):
        assert line.split(" ")[2] == family and family.endswith("_" + line.split(" ")[3]), line
    elif line.startswith("# HELP "):
        assert line.split(" ")[2] == family, line
    else:
        m = sample.match(line)
        assert m, line
        want = family + {"counter": "_total", "info": "_info"}.get(kind, "")
        assert m.group(1) == want, line
        assert m.group(1, 2) not in series, line + " twice"
        series.add(m.group(1, 2))
assert len(series) > 50
print("   %d families, %d series" % (len(seen), len(series)))
PY
python3 "$tmp/check.py" "$tmp/metrics" || fail "the text is no OpenMetrics"
v=$(sed -n 's/^holdoff_interface_rx_packets_total{interface="vb"} //p' "$tmp/metrics")
[ "$v" = "$(dev 2)" ] || fail "scraped $v packets, /proc/net/dev has $(dev 2)"
code() { in_b curl -s -m 60 -o /dev/null -w '%{http_code}' "$@"; }
[ "$(code "${url%/metrics}/other")" = 404 ] || fail "404"
[ "$(code -X POST "$url")" = 405 ] || fail "405"
[ "$(code -I "$url")" = 200 ] || fail "HEAD"
[ "$(code -H "X: $(head -c 5000 /dev/zero | tr '\0' x)" "$url")" = 431 ] || fail "431"
port=${url%/metrics} port=${port##*:}
cat >"$tmp/abuse.py" <<'PY'
import os, socket, sys
port = int(sys.argv[1])
def connect():
    s = socket.create_connection(("127.0.0.1", port), 60)
    s.settimeout(60)
    return s
# More than there are places for: some say nothing, some half a line, some garbage, some leave.
held = []
for i in range(150):
    s = connect()
    if i % 4 == 1:
        s.send(b"GET /metr")
    elif i % 4 == 2:
        s.send(os.urandom(300))
    elif i % 4 == 3:
        s.close()
    held.append(s)
s = connect()
s.send(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
answer = b""
while True:
    part = s.recv(1)            # a slow reader
    if not part:
        break
    answer += part
    if len(answer) > 300:
        answer += s.recv(1 << 20)
assert answer.startswith(b"HTTP/1.1 200 OK\r\n"), answer[:60]
assert answer.endswith(b"# EOF\n"), answer[-60:]
s = connect()
s.send(b"\0\r\n\r\n")
assert s.recv(100).startswith(b"HTTP/1.1 400"), "a zero byte"
PY
in_b timeout 200 python3 "$tmp/abuse.py" "$port" || fail "it does not stand slow and odd clients"
[ "$(code "$url")" = 200 ] || fail "it does not answer any more"
kill -TERM $om
wait $om || fail "--openmetrics ended with $?"
in_b "$holdoff" stat vb --openmetrics nowhere:1 2>/dev/null && fail "an address that is none was taken"

echo "== the live view, in a terminal of our own"
cat >"$tmp/live.py" <<'PY'
import fcntl, os, pty, select, signal, struct, sys, termios, time
holdoff, end = sys.argv[1], sys.argv[2]
pid, fd = pty.fork()
if pid == 0:
    os.environ.update(TERM="xterm", LC_ALL="C.UTF-8")
    os.execv(holdoff, [holdoff, "stat", "vb", "--live", "-i", "100ms"])
def size(rows, cols):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
def read(until, seconds=60):
    out, stop = b"", time.time() + seconds
    while time.time() < stop:
        if select.select([fd], [], [], 0.1)[0]:
            try:
                part = os.read(fd, 65536)
            except OSError:
                break
            if not part:
                break
            out += part
            if until and all(u in out for u in until):
                return out
    assert until is None, (until, out[-300:])
    return out
size(24, 100)
out = read([b"\x1b[?1049h", b"holdoff stat", b"vb", b"CPU"])
size(12, 60)
os.kill(pid, signal.SIGWINCH)
read([b"holdoff stat"])
if end == "q":
    os.write(fd, b"q")
else:
    os.kill(pid, getattr(signal, end))
out = read(None)
_, status = os.waitpid(pid, 0)
# The alternate screen is left and the cursor is back, whatever ended it.
assert b"\x1b[?1049l" in out, out[-200:]
assert b"\x1b[?25h" in out or b"\x1b[?12l\x1b[?25h" in out or b"\x1b[34h" in out, out[-200:]
if end in ("q", "SIGTERM", "SIGINT"):
    assert os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0, status
else:
    assert os.WIFSIGNALED(status), status
PY
for end in q SIGINT SIGTERM SIGSEGV; do
	in_b python3 "$tmp/live.py" "$holdoff" $end || fail "--live ended by $end"
done
in_b "$holdoff" stat vb --live </dev/null >/dev/null 2>"$tmp/err" && fail "--live without a terminal"
grep -q "needs a terminal" "$tmp/err" || fail "--live does not say that it needs a terminal"

echo "== no line wraps, whatever the terminal's width; what matters stays"
cat >"$tmp/width.py" <<'PY'
import fcntl, os, pty, struct, sys, termios
holdoff, columns, args = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
pid, fd = pty.fork()
if pid == 0:
    os.environ.pop("COLUMNS", None)
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    os.execv(holdoff, [holdoff, "stat"] + args + ["-c", "1"] + ([] if "-i" in args else ["-i", "50ms"]))
out = b""
while True:
    try:
        part = os.read(fd, 65536)
    except OSError:
        break
    if not part:
        break
    out += part
lines = out.decode().replace("\r", "").splitlines()
assert os.waitpid(pid, 0)[1] == 0, lines
assert len(lines) > 1 and max(map(len, lines)) <= columns, lines
print("\n".join(lines))
PY
for columns in 60 80 120; do
	for view in '' --cpu --queues --driver; do
		# shellcheck disable=SC2086
		in_b python3 "$tmp/width.py" "$holdoff" $columns vb $view >"$tmp/wide" || fail "$columns columns, stat $view"
	done
done
# Of an interface that loses in every way the rows wrap, and name each of them whole. Its counters are files.
cat >"$tmp/losses.py" <<'PY'
import os, re, subprocess, sys, threading, time
holdoff, width_py, root, columns = sys.argv[1:5]
names = """rx_errors tx_errors rx_dropped tx_dropped rx_over_errors rx_missed_errors rx_fifo_errors rx_crc_errors
	rx_frame_errors rx_length_errors tx_aborted_errors tx_carrier_errors tx_fifo_errors tx_window_errors""".split()
at = root + "/sys/class/net/eth0/"
os.makedirs(at + "statistics", exist_ok=True)
begun, done = threading.Event(), threading.Event()
def put(name, text):
    with open(name + ".new", "w") as f:
        f.write(text)
    os.rename(name + ".new", name)
def lose():
    put(at + "ifindex", "7\n")
    for n in range(1, 1 << 30):
        for name in names:
            put(at + "statistics/" + name, f"{n}\n")
        begun.set()
        if done.wait(0.02):
            return
writer = threading.Thread(target=lose, daemon=True)
writer.start()
begun.wait()
# Until in one interval all of them have moved.
said, end = "", time.time() + 60
while not all(re.search(rf"\b{name} [1-9]", said) for name in names) and time.time() < end:
    said = subprocess.run([sys.executable, width_py, holdoff, columns, "eth0", "--root", root, "-i", "200ms"],
                          stdout=subprocess.PIPE, check=False, text=True).stdout
done.set()
writer.join()
missing = [name for name in names if not re.search(rf"\b{name} [1-9]", said)]
assert not missing, (missing, said)
lines = said.splitlines()
assert len(lines) > 3 and lines[1].startswith("eth0 "), said
# They begin under the second column, and no name is apart from its number.
assert all(re.match(r" {11}[a-z_]+ [0-9]+(,|$)", line) and not re.search(r"[a-z_]+$", line) for line in lines[2:]), said
PY
for columns in 60 80 120; do
	python3 "$tmp/losses.py" "$holdoff" "$tmp/width.py" "$tmp/root" $columns || fail "$columns columns: losses are not named"
done
in_b python3 "$tmp/width.py" "$holdoff" 80 vb | grep -q 'rx pkt/s.*tx pkt/s.*rxdrop/s' || fail "80 columns lack drops"
in_b "$holdoff" stat vb -c 1 -i 50ms | grep -q 'squeezed  named' || fail "without a terminal columns are missing"

echo "== interfaces that come and go"
ip netns exec "$B" "$holdoff" stat vb late -i 100ms >"$tmp/rows" 2>"$tmp/rows.err" &
rows=$!
until_true 60 lines "$tmp/rows" 3
in_b ip link add late type veth peer name later && in_b ip link set late up
until_true 60 grep -q "late has appeared" "$tmp/rows.err" || fail "nobody says that late appeared"
in_b ip link del late
until_true 60 grep -q "late has vanished" "$tmp/rows.err" || fail "nobody says that late vanished"
kill -INT $rows
wait $rows || fail "stat ended with $?"
grep -q "^late .*is not there" "$tmp/rows" || fail "a row does not say that late is not there"
in_b "$holdoff" stat none 2>"$tmp/err"
[ $? = 1 ] && grep -q "no such interface 'none'" "$tmp/err" || fail "no such interface: $(cat "$tmp/err")"
in_b timeout 200 "$holdoff" stat vb -i 50ms | head -n 3 >/dev/null
[ "${PIPESTATUS[0]}" = 0 ] || fail "it does not end well when its reader leaves"

echo "== a table of CPUs and of queues, a soaker, processes"
in_b "$holdoff" stat vb --cpu --soak -c 1 >"$tmp/cpu" || fail "--cpu --soak"
grep -q "^CPU .*%usr.*%idle.*%soak.*squeezed" "$tmp/cpu" || fail "--cpu has no header: $(head -n 1 "$tmp/cpu")"
[ "$(wc -l <"$tmp/cpu")" = $(($(grep -c '^cpu[0-9]' /proc/stat) + 2)) ] || fail "--cpu has not a row for each CPU"
in_b "$holdoff" stat vb --queues -c 1 -i 100ms | grep -c "^vb *rx[0-3] " | grep -qx 4 || fail "--queues"
in_b "$holdoff" stat vb -j -c 1 -i 200ms --pid $$ |
	jq -e '.tasks.threads == 1 and .tasks.voluntary_switches >= 0' >/dev/null || fail "--pid"

echo "== what it costs: 8 queues, a row a second"
link 8
python3 - "$holdoff" "$B" <<'PY' || fail "it costs too much"
import glob, statistics, subprocess, sys
p = subprocess.Popen(["ip", "netns", "exec", sys.argv[2], sys.argv[1], "stat", "vb", "-j", "-c", "10"],
                     stdout=subprocess.PIPE)
def ran():
    tasks = glob.glob(f"/proc/{p.pid}/task/*/schedstat")
    return sum(int(open(t).read().split()[0]) for t in tasks)
# Of each second from one row to the next; the median, so that a second in which others filled the
# CPUs' caches does not count.
marks = []
for row in range(9):
    p.stdout.readline()
    marks.append(ran())
p.stdout.read()
each = statistics.median(b - a for a, b in zip(marks, marks[1:]))
print("   %.2f ms of CPU a row, the median of %d: %.3f %%" % (each / 1e6, len(marks) - 1, each / 1e7))
sys.exit(p.wait() != 0 or not 0 < each <= 1e7)
PY

[ $failed = 0 ] && echo "all as expected"
exit $((failed > 0))
