#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
The shortcut of holdoff forward sends what the router would send: the same frames go in with
--shortcut=no and with --shortcut=yes, and what comes out must be the same, byte by byte; the
summary's count says which of them took it. Then more than a link takes: what comes out of the
other end is what the router says, to the packet, while that end's setting changes.

     namespace P                     router R: holdoff forward xdp:ra xdp:rc
    +-------------+                 +-----------------------------------------+
    | pa  (sends) |----- veth ------| ra  10.1.0.1/24, fd01::1/64             |
    | pc          |----- veth ------| rc  10.3.0.1/24, fd03::1/64             |
    | px          |----- veth ------| rx  10.4.0.1/24: no port of the router  |
    +-------------+                 +-----------------------------------------+

P has no addresses; R's neighbours there are static. Needs root.
"""
import ctypes
import json
import logging
import os
import select
import socket
import struct
import subprocess
import sys
import tempfile
import time

logging.getLogger("scapy").setLevel(logging.ERROR)
try:
    from scapy.all import (Dot1Q, Ether, ICMP, ICMPv6EchoRequest, IP, IPOption_NOP, IPv6,
                           IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop, PadN,
                           IPv6ExtHdrRouting, Raw, TCP, UDP)
except ImportError:
    print("skipped: scapy is not there: apt install python3-scapy")
    sys.exit(77)
if os.getuid():
    print("skipped: needs root")
    sys.exit(77)

HOLDOFF = os.path.abspath(os.environ.get("HOLDOFF", os.path.join(os.path.dirname(__file__),
                                                                 "../../build/holdoff")))
P, R = f"hs{os.getpid()}p", f"hs{os.getpid()}r"
MAC = {"ra": "02:00:00:00:01:01", "rc": "02:00:00:00:01:03", "rx": "02:00:00:00:01:04"}
PATIENCE = 60  # seconds; bounds what has failed only
TAG = b"case:"
cases = []  # name, frame, is it plain


def case(name, packet, plain=False, dst=MAC["ra"], after=b""):
    """after: bytes behind the packet."""
    frame = bytes(Ether(src="02:00:00:00:00:a2", dst=dst) / packet) + after
    cases.append((name, frame, plain))


def text(name, n=26):
    return Raw((TAG + name.encode() + b" ").ljust(n, b"."))


def ip(dst="10.20.1.1", src="10.1.0.2", **more):
    more.setdefault("id", 1)
    return IP(src=src, dst=dst, **more)


def ip6(dst="fd20::1", src="fd01::2", **more):
    return IPv6(src=src, dst=dst, **more)


def both(name, make4, make6, plain=False):
    """make4, make6: the packet of a payload's name."""
    case(name + "4", make4(name + "4"), plain)
    case(name + "6", make6(name + "6"), plain)


def udp(name, n=26, **more):
    return UDP(sport=1000, dport=2000, **more) / text(name, n)


def halves(packet, transport):
    """With the sum of the pseudo header alone in the checksum field, as offloads leave it."""
    raw = packet.__class__(bytes(packet))
    want = 0xffff & ~raw[transport].chksum
    body = bytes(raw[transport].payload)
    head = bytearray(bytes(raw[transport])[:len(bytes(raw[transport])) - len(body)])
    at = 6 if transport is UDP else 16
    head[at:at + 2] = b"\0\0"
    total = sum(struct.unpack("!%dH" % (len(head + body) // 2), bytes(head) + body))
    want -= total
    while want < 0 or want > 0xffff:
        want = (want & 0xffff) + (want >> 16)
    raw[transport].chksum = want
    return raw


both("plain", lambda n: ip() / udp(n), lambda n: ip6() / udp(n), True)
both("connected", lambda n: ip("10.3.0.2") / udp(n), lambda n: ip6("fd03::2") / udp(n), True)
both("tcp", lambda n: ip() / TCP(sport=1, dport=2, flags="S") / text(n),
     lambda n: ip6() / TCP(sport=1, dport=2, flags="S") / text(n), True)
both("echo", lambda n: ip() / ICMP(id=7) / text(n), lambda n: ip6() / ICMPv6EchoRequest(id=7) / text(n), True)
both("protocol", lambda n: ip(proto=253) / text(n), lambda n: ip6(nh=253) / text(n), True)
both("no-checksum", lambda n: ip() / udp(n, chksum=0), lambda n: ip6() / udp(n, chksum=0), True)
both("wrong-checksum", lambda n: ip() / udp(n, chksum=0x1234), lambda n: ip6() / udp(n, chksum=0x1234), True)
both("ttl2", lambda n: ip(ttl=2) / udp(n), lambda n: ip6(hlim=2) / udp(n), True)
both("ttl1", lambda n: ip(ttl=1) / udp(n), lambda n: ip6(hlim=1) / udp(n))
both("ttl0", lambda n: ip(ttl=0) / udp(n), lambda n: ip6(hlim=0) / udp(n))
both("class", lambda n: ip(tos=0xbb) / udp(n), lambda n: ip6(tc=0xbb, fl=0x12345) / udp(n), True)
both("long", lambda n: ip() / udp(n, 900), lambda n: ip6() / udp(n, 900), True)
# Over the MTU of a route: fragmented, or answered. Longer ones than that are the router's on all routes.
both("fits", lambda n: ip("10.24.0.1") / udp(n, 900), lambda n: ip6("fd24::1") / udp(n, 900), True)
both("over", lambda n: ip("10.24.0.1") / udp(n, 1400), lambda n: ip6("fd24::1") / udp(n, 1400))
case("over-df", ip("10.24.0.1", flags="DF") / udp("over-df", 1400))
both("longer", lambda n: ip() / udp(n, 1400), lambda n: ip6() / udp(n, 1400))
both("blackhole", lambda n: ip("10.21.0.1") / udp(n), lambda n: ip6("fd21::1") / udp(n))
both("unreachable", lambda n: ip("10.22.0.1") / udp(n), lambda n: ip6("fd22::1") / udp(n))
both("prohibit", lambda n: ip("10.23.0.1") / udp(n), lambda n: ip6("fd23::1") / udp(n))
both("no-route", lambda n: ip("203.0.113.1") / udp(n), lambda n: ip6("2001:db8::1") / udp(n))
both("elsewhere", lambda n: ip("10.27.0.1") / udp(n), lambda n: ip6("fd27::1") / udp(n))
both("back", lambda n: ip("10.1.0.3") / udp(n), lambda n: ip6("fd01::3") / udp(n), True)
case("via-6", ip("10.25.0.1") / udp("via-6"), True)
both("partial-udp", lambda n: halves(ip() / udp(n), UDP), lambda n: halves(ip6() / udp(n), UDP))
both("partial-tcp", lambda n: halves(ip() / TCP() / text(n), TCP), lambda n: halves(ip6() / TCP() / text(n), TCP))
case("options", ip(options=[IPOption_NOP()] * 4) / udp("options"))
case("first-fragment", ip(flags="MF") / udp("first-fragment", 40))
case("last-fragment", ip(frag=6) / text("last-fragment"))
case("hop-by-hop", ip6() / IPv6ExtHdrHopByHop(options=[PadN(optdata=b"\0" * 4)]) / udp("hop-by-hop"))
case("destination-options", ip6() / IPv6ExtHdrDestOpt() / udp("destination-options"))
case("routing", ip6() / IPv6ExtHdrRouting(segleft=0) / udp("routing"))
case("fragment6", ip6() / IPv6ExtHdrFragment(m=1, id=9) / text("fragment6", 40))
both("padding", lambda n: ip() / UDP() / text(n, 16), lambda n: ip6() / UDP() / text(n, 16), True)
cases[-2:] = [(name, frame + b"\xaa" * 9, plain) for name, frame, plain in cases[-2:]]
both("too-short", lambda n: ip(len=400) / udp(n), lambda n: ip6(plen=400) / udp(n))
both("version", lambda n: ip(version=5) / udp(n), lambda n: ip6(version=5) / udp(n))
case("header-checksum", ip(chksum=0x1234) / udp("header-checksum"))
for src in ("0.1.2.3", "127.0.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "169.254.1.1", "10.1.0.1",
            "10.3.0.1", "10.1.0.255", "10.3.0.255"):
    case("from-" + src, ip(src=src) / udp("from-" + src, 34))
for dst in ("0.1.2.3", "127.0.0.1", "169.254.1.1", "10.3.0.255"):
    case("to-" + dst, ip(dst) / udp("to-" + dst, 34))
case("to-lowest", ip("10.3.0.0") / udp("to-lowest"), True)
for src in ("::", "::1", "ff02::1", "fe80::2", "::ffff:10.1.0.2", "fd01::1", "fd03::1"):
    case("from-" + src, ip6(src=src) / udp("from-" + src, 34))
for dst in ("::1", "::ffff:10.1.0.2"):
    case("to-" + dst, ip6(dst) / udp("to-" + dst, 34))
# A tag with a priority and no VLAN counts as none.
case("priority", Dot1Q(vlan=0, prio=3) / ip() / udp("priority"), True)
case("unknown-vlan", Dot1Q(vlan=9) / ip() / udp("unknown-vlan"))
case("other-station", ip() / udp("other-station"), dst="02:00:00:00:77:77")
case("group", ip() / udp("group"), dst="ff:ff:ff:ff:ff:ff")
# Several paths: any of them, but always the same.
for k in range(8):
    for again in "abc":
        case(f"ecmp{k}{again}", ip("10.26.0.1", src=f"10.1.0.{k + 10}") / udp(f"ecmp{k}{again}"), True)
        case(f"ecmp6-{k}{again}", ip6("fd26::1", src=f"fd01::{k + 10}") / udp(f"ecmp6-{k}{again}"), True)


def run(command):
    subprocess.run(command, shell=True, check=True, stdout=subprocess.DEVNULL)


def topology():
    for ns in (P, R):
        run(f"ip netns add {ns}")
    run(f"ip netns exec {P} sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1")
    run(f"ip netns exec {R} sysctl -qw net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.default.accept_dad=0 "
        "net.ipv4.icmp_ratelimit=0")
    for side, mac in MAC.items():
        peer = "p" + side[1]
        run(f"ip link add {side} netns {R} address {mac} type veth peer name {peer} netns {P}")
        run(f"ip netns exec {P} ethtool -K {peer} gro on")
        run(f"ip -n {P} link set {peer} up && ip -n {R} link set {side} up")
    for n, side in ((1, "ra"), (3, "rc"), (4, "rx")):
        run(f"ip -n {R} addr add 10.{n}.0.1/24 dev {side} && ip -n {R} addr add fd0{n}::1/64 dev {side} nodad")
        for host in (2, 3):
            mac = f"02:00:00:00:0{n}:0{host}"
            for a in (f"10.{n}.0.{host}", f"fd0{n}::{host}"):
                run(f"ip -n {R} neigh add {a} lladdr {mac} nud permanent dev {side}")
    run(f"ip -n {R} neigh add 10.3.0.0 lladdr 02:00:00:00:03:99 nud permanent dev rc")
    lines = []
    for net, net6, what4, what6 in (
            ("10.20.0.0/16", "fd20::/16", "via 10.3.0.2", "via fd03::2"),
            ("10.24.0.0/16", "fd24::/16", "via 10.3.0.2 mtu 1280", "via fd03::2 mtu 1280"),
            ("10.26.0.0/16", "fd26::/16", "nexthop via 10.3.0.2 nexthop via 10.3.0.3",
             "nexthop via fd03::2 nexthop via fd03::3"),
            ("10.27.0.0/16", "fd27::/16", "via 10.4.0.2", "via fd04::2")):
        lines += [f"route add {net} {what4}", f"-6 route add {net6} {what6}"]
    for kind, n in (("blackhole", 21), ("unreachable", 22), ("prohibit", 23)):
        lines += [f"route add {kind} 10.{n}.0.0/16", f"-6 route add {kind} fd{n}::/16"]
    lines.append("route add 10.25.0.0/16 via inet6 fd03::2")
    for line in lines:
        run(f"ip -n {R} {line}")
    run(f"ip netns exec {R} sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1")


def enter(ns):
    """This thread's sockets are made in that namespace from now on."""
    fd = os.open(f"/run/netns/{ns}", os.O_RDONLY)
    if ctypes.CDLL(None, use_errno=True).setns(fd, 0x40000000) < 0:
        raise OSError(ctypes.get_errno(), "setns")
    os.close(fd)


def packet_sockets():
    out = {}
    for name in ("pa", "pc", "px"):
        s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        s.bind((name, 3))
        s.setsockopt(socket.SOL_SOCKET, 33, 8 << 20)  # SO_RCVBUFFORCE
        s.setblocking(False)
        out[name] = s
    return out


def of_case(frame):
    at = frame.find(TAG)
    return frame[at + len(TAG):].split(b" ")[0].decode(errors="replace") if at >= 0 else None


def receive(sockets, got, until):
    """Collects what comes out, until that case has been seen on that side."""
    end = time.time() + PATIENCE
    while time.time() < end:
        for s in select.select(list(sockets.values()), [], [], 0.2)[0]:
            side = next(k for k, v in sockets.items() if v is s)
            while True:
                try:
                    frame, at = s.recvfrom(65536)
                except BlockingIOError:
                    break
                name = of_case(frame)
                if name is None or at[2] == socket.PACKET_OUTGOING:
                    continue
                got.setdefault(name, []).append((side, frame))
        if any(side == until[1] for side, _ in got.get(until[0], [])):
            return
    sys.exit(f"FAILED: nothing comes of '{until[0]}' on {until[1]}")


class Router:
    def __init__(self, shortcut, folder):
        self.err = open(os.path.join(folder, "err" + shortcut), "w+")
        self.process = subprocess.Popen(["ip", "netns", "exec", R, HOLDOFF, "forward", "xdp:ra", "xdp:rc", "-j",
                                         "--shortcut=" + shortcut], stdout=subprocess.PIPE, stderr=self.err)
        end = time.time() + PATIENCE
        while "routing between" not in self.says():
            if self.process.poll() is not None or time.time() > end:
                sys.exit("FAILED: the router does not start: " + self.says())
            time.sleep(0.02)

    def says(self):
        return open(self.err.name).read()

    def end(self):
        """The summary: all was accounted for."""
        self.process.terminate()
        out = self.process.communicate()[0]
        if self.process.returncode:
            sys.exit(f"FAILED: exit status {self.process.returncode}: {self.says()}")
        return json.loads(out)


def exchange(shortcut, folder):
    router = Router(shortcut, folder)
    got = {}
    try:
        sockets = packet_sockets()
        for name, frame, _ in cases:
            sockets["pa"].send(frame)
        # These take the way of the router, behind all that came before: one is sent, one answered.
        for name, packet, side in (
                (f"end-{shortcut}", ip(options=[IPOption_NOP()] * 4), "pc"),
                (f"last-{shortcut}", ip(ttl=1), "pa")):
            sockets["pa"].send(bytes(Ether(src="02:00:00:00:00:a2", dst=MAC["ra"]) / packet / udp(name)))
            receive(sockets, got, (name, side))
        # What is handed back to the kernel comes out last.
        receive(sockets, got, ("elsewhere6", "px"))
        for s in sockets.values():
            s.close()
    finally:
        report = router.end()
    for name in (f"end-{shortcut}", f"last-{shortcut}"):
        got.pop(name)
    return report, got


def send(packets, last):
    """From pa, by the router's MAC; waits for what `last` = (name, side) says. What came, by name."""
    got = {}
    sockets = packet_sockets()
    for packet in packets:
        sockets["pa"].send(bytes(Ether(src="02:00:00:00:00:a2", dst=MAC["ra"]) / packet))
    receive(sockets, got, last)
    for s in sockets.values():
        s.close()
    return got


def local(folder):
    """What the table local has beside the addresses is the host's with the shortcut as well, although main has
    a route out."""
    # The kernel looks into one table of IPv4 until there was a rule.
    run(f"ip -n {R} rule add from 192.0.2.9 table 77 && ip -n {R} rule del from 192.0.2.9 table 77")
    run(f"ip -n {R} link set lo up")
    run(f"ip -n {R} route add local 10.20.7.0/24 dev lo && ip -n {R} -6 route add local fd20:7::/64 dev lo")
    router = Router("yes", folder)
    got = {}
    try:
        got = send([ip("10.20.7.7") / udp("local4"), ip6("fd20:7::7") / udp("local6"),
                    ip(options=[IPOption_NOP()] * 4) / udp("last")], ("last", "pc"))
    finally:
        report = router.end()
        run(f"ip -n {R} route del local 10.20.7.0/24 dev lo && ip -n {R} -6 route del local fd20:7::/64 dev lo")
    out = [name for name in ("local4", "local6") if any(side == "pc" for side, _ in got.get(name, []))]
    if out or report["shortcut_packets"] or report["local"] < 2:
        print(f"FAILED: {out} of the table local left; {report['shortcut_packets']} took the shortcut, "
              f"{report['local']} were local")
        return 1
    return 0


def not_followed(folder):
    """A route for a type of service, which the kernel would heed and the router does not."""
    run(f"ip -n {R} route add 10.20.9.0/24 tos 0x10 via 10.3.0.2")
    router = Router("yes", folder)
    try:
        send([ip("10.20.9.9") / udp("tos")], ("tos", "pc"))
    finally:
        report = router.end()
        run(f"ip -n {R} route del 10.20.9.0/24 tos 0x10")
    if report["shortcut_packets"]:
        print("FAILED: the shortcut was taken although the kernel has routes that are not followed")
        return 1
    return 0


def over_link(folder):
    """A route's MTU that is more than its link's, which the kernel believes: the router cuts by the link's."""
    for ns, side in ((P, "pa"), (R, "ra")):
        run(f"ip -n {ns} link set {side} mtu 3000")
    run(f"ip -n {R} route del 10.24.0.0/16 && ip -n {R} -6 route del fd24::/16")
    run(f"ip -n {R} route add 10.28.0.0/16 via 10.3.0.2 mtu lock 2500")
    router = Router("yes", folder)
    try:
        send([ip("10.28.0.1") / udp("over-link", 2000)], ("over-link", "pc"))
    finally:
        router.end()


def arrived():
    """Packets that came out on pc, by its own count."""
    out = subprocess.run(f"ip -n {P} -s -j link show pc", shell=True, check=True, capture_output=True).stdout
    return json.loads(out)[0]["stats64"]["rx"]["packets"]


def flood(folder):
    """As fast as live frames come, and in the middle pc takes no redirected frames for a while."""
    before = arrived()
    router = Router("yes", folder)
    try:
        gen = subprocess.Popen(["ip", "netns", "exec", P, HOLDOFF, "gen", "xdp:pa,tx=live", "--eth-dst", MAC["ra"],
                                "--ip-src=10.1.0.2", "--ip-dst=10.20.0.0-10.20.3.255", "--stamp=no",
                                "--count=400000", "-j"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        end = time.time() + PATIENCE
        while arrived() < before + 50000 and gen.poll() is None and time.time() < end:
            time.sleep(0.01)
        run(f"ip netns exec {P} ethtool -K pc gro off")
        time.sleep(0.02)
        run(f"ip netns exec {P} ethtool -K pc gro on")
        sent = json.loads(gen.communicate()[0])
        last = 0
        while (now := arrived()) != last and time.time() < end:
            last = now
            time.sleep(0.2)
    finally:
        report = router.end()
    return sent, report, arrived() - before


def same(no, yes):
    """Of an ICMP error that was made by the router only its own identification may differ."""
    def bare(side, frame):
        if frame[12:14] == b"\x08\0" and frame[23] == 1 and frame[34] in (3, 11, 12):
            frame = frame[:18] + b"\0\0" + frame[20:24] + b"\0\0" + frame[26:]
        return side, frame
    return sorted(bare(*f) for f in no) == sorted(bare(*f) for f in yes)


def main():
    folder = tempfile.mkdtemp()
    failed = 0
    try:
        topology()
        enter(P)
        report_no, no = exchange("no", folder)
        report_yes, yes = exchange("yes", folder)
        ecmp = {}
        for name, _, plain in cases:
            a, b = no.get(name, []), yes.get(name, [])
            if name.startswith("ecmp"):
                # Which path is the kernel's choice in one, and the router's in the other.
                ecmp.setdefault(name[:-1], set()).update(f[1][:6] for f in b)
                ok = len(b) == 1 and len(a) == 1 and a[0][1][6:] == b[0][1][6:]
            else:
                ok = same(a, b) and (a or not plain)
            if not ok:
                failed += 1
                print(f"FAILED: {name}: without {[(s, f.hex()) for s, f in a]}, with {[(s, f.hex()) for s, f in b]}")
        if any(len(paths) != 1 for paths in ecmp.values()):
            failed += 1
            print(f"FAILED: a flow takes several paths: {ecmp}")
        plain = [c for c in cases if c[2]]
        if report_yes["shortcut_packets"] != len(plain) or report_no["shortcut_packets"]:
            failed += 1
            print(f"FAILED: {report_yes['shortcut_packets']} took it, {len(plain)} are plain; without it "
                  f"{report_no['shortcut_packets']}")
        sent = sum(len(f) for name, _, p in cases if p for _, f in yes.get(name, []))
        if report_yes["shortcut_bytes"] != sent:
            failed += 1
            print(f"FAILED: {report_yes['shortcut_bytes']} bytes took it, {sent} came out")
        for key in ("rx_packets", "tx_packets", "rx_bytes", "tx_bytes", "offered", "delivered", "drops", "generated"):
            if report_no[key] != report_yes[key]:
                failed += 1
                print(f"FAILED: {key}: without {report_no[key]}, with {report_yes[key]}")
        failed += local(folder)
        failed += not_followed(folder)
        over_link(folder)
        sent, report, came = flood(folder)
        drops = report["drops"]
        print(f"flood: {sent['delivered']} sent, {report['rx_packets']} received, {report['shortcut_packets']} by the "
              f"shortcut, {report['delivered']} delivered, {came} came; {drops}")
        if report["delivered"] != came or report["offered"] != report["delivered"] + sum(drops.values()):
            failed += 1
            print("FAILED: what came is not what the router says")
        if report["offered"] < sent["delivered"] or report["shortcut_packets"] < 50000:
            failed += 1
            print(f"FAILED: {report['offered']} were offered to the router")
        print(f"{len(cases)} packets, {len(plain)} of them by the shortcut: " + ("FAILED" if failed else "the same"))
    finally:
        for ns in (P, R):
            subprocess.run(["ip", "netns", "del", ns], stderr=subprocess.DEVNULL, check=False)
        subprocess.run(["rm", "-rf", folder], check=False)
    sys.exit(1 if failed else 0)


main()
