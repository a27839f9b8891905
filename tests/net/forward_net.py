# SPDX-License-Identifier: BSD-2-Clause
"""
The bench of forward_conformance.py: the router, what goes in, and what must come out.

                 +----------- holdoff forward -----------+
   A .10 --- p0 -| lan0 192.0.2.1/24     lan1 198.51.100.1/24 |- p1 --- B .10
                 |      2001:db8:1::1/64      2001:db8:2::1/64 |
                 |                  lan1.100 203.0.113.1/24   |- p1 --- C .10 (VLAN 100)
                 |                           2001:db8:3::1/64  |
                 | lan2 10.2.0.1/24, 2001:db8:4::1/64, MTU 1280 |- p2 --- D .10
                 | lan3 10.3.0.1/24, MTU 576                  |- p3 --- E .10
                 +----------------------------------------------+

The ports are capture files: a case's frames are read from one, and all that comes out of any port
must be what the case expects, byte by byte or field by field, with nothing beside it. So must the
names of the drops. Needs no privileges.
"""
import json
import logging
import os
import shutil
import struct
import subprocess
import sys
import tempfile

logging.getLogger("scapy").setLevel(logging.ERROR)
try:
    from scapy.all import (ARP, Dot1Q, Ether, ICMP, ICMPv6DestUnreach, ICMPv6EchoReply,
                           ICMPv6EchoRequest, ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6ND_RA, ICMPv6ND_RS,
                           ICMPv6NDOptDstLLAddr, ICMPv6NDOptSrcLLAddr, ICMPv6PacketTooBig,
                           ICMPv6ParamProblem, ICMPv6TimeExceeded, IP, IPOption_NOP, IPOption_Router_Alert, IPv6, IPv6ExtHdrDestOpt,
                           IPv6ExtHdrFragment, IPv6ExtHdrHopByHop, IPv6ExtHdrRouting, Pad1, PadN,
                           HBHOptUnknown, Raw, RouterAlert, TCP, UDP, in6_chksum, rdpcap, wrpcap)
except ImportError:
    print("scapy is not there: apt install python3-scapy")
    sys.exit(77)

HOLDOFF = os.environ.get("HOLDOFF", os.path.join(os.path.dirname(__file__), "../../build/holdoff"))
MAC = {"lan0": "02:00:00:00:01:00", "lan1": "02:00:00:00:01:01", "lan1.100": "02:00:00:00:01:01",
       "lan2": "02:00:00:00:01:02", "lan3": "02:00:00:00:01:03",
       "A": "02:00:00:00:00:0a", "B": "02:00:00:00:00:0b", "C": "02:00:00:00:00:0c",
       "D": "02:00:00:00:00:0d", "E": "02:00:00:00:00:0e",
       "third": "02:00:00:00:11:00"}
A4, B4, C4, D4, E4 = "192.0.2.10", "198.51.100.10", "203.0.113.10", "10.2.0.10", "10.3.0.10"
A6, B6, C6, D6 = (f"2001:db8:{i}::10" for i in (1, 2, 3, 4))
R4, R6 = "192.0.2.1", "2001:db8:1::1"  # the router towards A
RLL = "fe80::ff:fe00:100"              # its link-local address on lan0
BCAST = "ff:ff:ff:ff:ff:ff"

CONFIG = """
{options}
ports:
  - {{name: p0, receive: "pcap:{dir}/in0.pcap", send: "pcap:{dir}/out0.pcap"}}
  - {{name: p1, receive: "pcap:{dir}/in1.pcap", send: "pcap:{dir}/out1.pcap"}}
  - {{name: p2, receive: "pcap:{dir}/in2.pcap", send: "pcap:{dir}/out2.pcap"}}
  - {{name: p3, receive: "pcap:{dir}/in3.pcap", send: "pcap:{dir}/out3.pcap"}}
interfaces:
  - name: lan0
    port: p0
    mac: "02:00:00:00:01:00"
    addresses: [192.0.2.1/24, "2001:db8:1::1/64"]
    neighbours:
      - {{address: 192.0.2.10, mac: "02:00:00:00:00:0a"}}
      - {{address: "2001:db8:1::10", mac: "02:00:00:00:00:0a"}}
      - {{address: "fe80::a", mac: "02:00:00:00:00:0a"}}
  - name: lan1
    port: p1
    mac: "02:00:00:00:01:01"
    addresses: [198.51.100.1/24, "2001:db8:2::1/64"]
    neighbours:
      - {{address: 198.51.100.10, mac: "02:00:00:00:00:0b"}}
      - {{address: "2001:db8:2::10", mac: "02:00:00:00:00:0b"}}
      - {{address: 198.51.100.20, mac: "02:00:00:00:10:fe", count: 3}}
  - name: lan1.100
    port: p1
    vlan: 100
    mac: "02:00:00:00:01:01"
    addresses: [203.0.113.1/24, "2001:db8:3::1/64"]
    neighbours:
      - {{address: 203.0.113.10, mac: "02:00:00:00:00:0c"}}
      - {{address: "2001:db8:3::10", mac: "02:00:00:00:00:0c"}}
  - name: lan2
    port: p2
    mac: "02:00:00:00:01:02"
    mtu: 1280
    addresses: [10.2.0.1/24, "2001:db8:4::1/64"]
    neighbours:
      - {{address: 10.2.0.10, mac: "02:00:00:00:00:0d"}}
      - {{address: "2001:db8:4::10", mac: "02:00:00:00:00:0d"}}
  - name: lan3
    port: p3
    mac: "02:00:00:00:01:03"
    mtu: 576
    addresses: [10.3.0.1/24, 10.3.0.11/24, 10.31.0.1/31]
    neighbours:
      - {{address: 10.3.0.10, mac: "02:00:00:00:00:0e"}}
      - {{address: 10.31.0.0, mac: "02:00:00:00:00:0e"}}
routes:
  - {{to: 10.10.0.0/16, via: 198.51.100.10}}
  - {{to: 10.20.0.0/16, kind: blackhole}}
  - {{to: 10.21.0.0/16, kind: unreachable}}
  - {{to: 10.22.0.0/16, kind: prohibit}}
  - {{to: 10.30.0.0/16, paths: [{{via: 198.51.100.10}}, {{via: 10.2.0.10}}]}}
  - {{to: 10.40.0.0/16, via: 198.51.100.10, mtu: 1000}}
  - {{to: 10.41.0.0/16, via: 198.51.100.10, mtu: 68}}
  - {{to: 10.50.0.0/16, via: "2001:db8:2::10"}}
  - {{to: 10.60.0.0/16, via: 198.51.100.10, metric: 20}}
  - {{to: 10.60.0.0/16, via: 10.2.0.10, metric: 10}}
  - {{to: 10.10.66.0/24, via: 10.2.0.10}}
  - {{to: 10.70.0.0/16, via: 198.51.100.10, source: 192.0.2.1}}
  - {{to: 10.80.250.0/24, via: 198.51.100.10, count: 300}}
  - {{to: "2001:db8:ef:fffe::/64", via: "2001:db8:2::10", count: 3}}
  - {{to: "fd00:1::/48", via: "2001:db8:1::10"}}
  - {{to: 198.51.100.128/25, via: 10.2.0.10}}
  - {{to: "2001:db8:a::/48", via: "2001:db8:2::10"}}
  - {{to: "2001:db8:a:66::/64", via: "2001:db8:4::10"}}
  - {{to: "2001:db8:b::/48", kind: blackhole}}
  - {{to: "2001:db8:b1::/48", kind: unreachable}}
  - {{to: "2001:db8:b2::/48", kind: prohibit}}
  - {{to: "2001:db8:c::/48", paths: [{{via: "2001:db8:2::10"}}, {{via: "2001:db8:4::10"}}]}}
  - {{to: "2001:db8:d::/48", via: "2001:db8:2::10", mtu: 1300}}
"""

# --- what is sent -----------------------------------------------------------------------------


def eth(dst="lan0", src="A", **kw):
    return Ether(dst=MAC.get(dst, dst), src=MAC.get(src, src), **kw)


def ip(dst="10.10.1.1", src=A4, **kw):
    return IP(src=src, dst=dst, id=0x1234, **kw)


def ip6(dst="2001:db8:a::1", src=A6, **kw):
    return IPv6(src=src, dst=dst, **kw)


def udp(n=18):
    return UDP(sport=5000, dport=7) / Raw(bytes(i & 0xff for i in range(n)))


def whole(p):
    """The packet with all lengths and checksums filled in, as bytes from the network layer on."""
    return bytes(p)


# --- what is expected ---------------------------------------------------------------------------


def IPOption_nop():
    return IPOption_NOP()


def IPOption_router():
    return IPOption_Router_Alert()


def icmp6_raw(src, dst, message):
    """An ICMPv6 message of these bytes, with its checksum right."""
    c = in6_chksum(58, IPv6(src=src, dst=dst), message[:2] + b"\0\0" + message[4:])
    return Raw(message[:2] + struct.pack("!H", c) + message[4:])


# Which of the two paths these flows take is nothing that a standard says; that they stay on it is.
ECMP_OF_7_5000 = (1, "lan1", "B")
ECMP6 = (2, "lan2", "D")


class Frame:
    """One frame out of a port: exactly these bytes."""

    def __init__(self, port, frame):
        self.port, self.frame = port, bytes(frame)

    def check(self, got):
        if got != self.frame:
            return f"expected {Ether(self.frame).summary()}\n{self.frame.hex()}\n" \
                   f"got      {Ether(got).summary()}\n{got.hex()}"
        return None


def sent4(packet, port=1, src="lan1", dst="B", vlan=None, ttl=1):
    """The IPv4 packet as forwarded: `ttl` less, a new checksum, new addresses."""
    p = IP(whole(packet))
    p.ttl -= ttl
    p.chksum = None
    link = Ether(dst=MAC[dst], src=MAC[src])
    if vlan:
        link = link / Dot1Q(vlan=vlan)
    return Frame(port, link / IP(bytes(p)))


def sent6(packet, port=1, src="lan1", dst="B", vlan=None):
    p = bytearray(whole(packet))
    p[7] -= 1
    link = Ether(dst=MAC[dst], src=MAC[src])
    if vlan:
        link = link / Dot1Q(vlan=vlan, type=0x86dd)
        return Frame(port, bytes(link) + bytes(p))
    link.type = 0x86dd
    return Frame(port, bytes(link) + bytes(p))


class Icmp4:
    """An ICMP error about `about`, by the router."""

    def __init__(self, kind, code, about, rest=0, port=0, src=R4, dst=A4, mac="A", iface="lan0",
                 changed=False):
        self.port, self.about, self.rest = port, whole(about), rest
        self.kind, self.code, self.src, self.dst = kind, code, src, dst
        self.mac, self.iface, self.changed = mac, iface, changed

    def check(self, got):
        p = Ether(got)
        want = [("Ethernet destination", p.dst, MAC[self.mac]),
                ("Ethernet source", p.src, MAC[self.iface])]
        if IP not in p or ICMP not in p:
            return "not ICMP: " + p.summary()
        raw = got[14:]
        want += [("source", p[IP].src, self.src), ("destination", p[IP].dst, self.dst),
                 ("type", raw[20], self.kind), ("code", raw[21], self.code),
                 ("rest", struct.unpack("!I", raw[24:28])[0], self.rest),
                 ("precedence", raw[1], 0xc0), ("TTL", raw[8], 64),
                 ("header checksum", checksum(raw[:20]), 0),
                 ("checksum", checksum(raw[20:]), 0),
                 ("length", len(raw), min(576, 28 + len(self.about)))]
        quoted = raw[28:]
        if not self.changed:
            want.append(("quoted packet", quoted.hex(), self.about[:len(quoted)].hex()))
        return first_difference(want)


class Icmp6:
    def __init__(self, kind, code, about, rest=0, port=0, src=R6, dst=A6, mac="A", iface="lan0"):
        self.port, self.about, self.rest = port, whole(about), rest
        self.kind, self.code, self.src, self.dst = kind, code, src, dst
        self.mac, self.iface = mac, iface

    def check(self, got):
        p = Ether(got)
        if IPv6 not in p or p[IPv6].nh != 58:
            return "not ICMPv6: " + p.summary()
        raw = got[14:]
        want = [("Ethernet destination", p.dst, MAC[self.mac]),
                ("Ethernet source", p.src, MAC[self.iface]),
                ("source", p[IPv6].src, self.src), ("destination", p[IPv6].dst, self.dst),
                ("type", raw[40], self.kind), ("code", raw[41], self.code),
                ("rest", struct.unpack("!I", raw[44:48])[0], self.rest),
                ("hop limit", raw[7], 64),
                ("checksum", in6_chksum(58, p[IPv6], raw[40:]), 0),
                ("length", len(raw), min(1280, 48 + len(self.about))),
                ("quoted packet", raw[48:].hex(), self.about[:len(raw) - 48].hex())]
        return first_difference(want)


def checksum(data):
    if len(data) % 2:
        data += b"\0"
    s = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while s >> 16:
        s = (s & 0xffff) + (s >> 16)
    return s ^ 0xffff


def first_difference(want):
    for what, got, expected in want:
        if got != expected:
            return f"{what}: {got}, expected {expected}"
    return None


class Fields:
    """A frame whose fields are these: {(layer, field): value}."""

    def __init__(self, port, fields):
        self.port, self.fields = port, fields

    def check(self, got):
        p = Ether(got)
        for (layer, field), value in self.fields.items():
            if layer not in p:
                return f"no {layer.__name__}: {p.summary()}"
            if getattr(p[layer], field) != value:
                return f"{layer.__name__}.{field} is {getattr(p[layer], field)}, not {value}"
        if ICMPv6ND_NA in p or ICMPv6ND_NS in p:
            if in6_chksum(58, p[IPv6], got[54:]) != 0:
                return "ICMPv6 checksum is wrong"
        return None


CASES = []


def case(name, section, frames, out=(), drop=(), port=0, options="", counts=None):
    """frames: one or several frames received on `port`; out: what must leave; drop: names of the
    drops, one for each packet dropped."""
    if not isinstance(frames, list):
        frames = [frames]
    if not isinstance(out, (list, tuple)):
        out = [out]
    drops = {}
    for d in (drop,) if isinstance(drop, str) else drop:
        drops[d] = drops.get(d, 0) + 1
    CASES.append((name, section, frames, out, drops, port, options, counts or {}))


# --- running ------------------------------------------------------------------------------------


def run(c, where):
    name, section, frames, out, drops, port, options, counts = c
    for i in range(4):
        wrpcap(f"{where}/in{i}.pcap", [Raw(bytes(f)) for f in frames] if i == port else [],
               linktype=1)
        if os.path.exists(f"{where}/out{i}.pcap"):
            os.unlink(f"{where}/out{i}.pcap")
    with open(f"{where}/router.yaml", "w", encoding="utf-8") as f:
        f.write(CONFIG.format(dir=where, options=options))
    try:
        r = subprocess.run([HOLDOFF, "forward", "-f", f"{where}/router.yaml", "--buffers", "2048",
                            "-j"], capture_output=True, text=True, timeout=200, check=False)
    except subprocess.TimeoutExpired:
        return "no end within 200 s"
    if r.returncode != 0:
        return f"exit status {r.returncode}: {r.stderr.strip()}"
    report = json.loads(r.stdout)
    if not report["balanced"]:
        return "the packets do not balance"
    if report["drops"] != drops:
        return f"drops {report['drops']}, expected {drops}"
    for key, value in counts.items():
        if report[key] != value:
            return f"{key} {report[key]}, expected {value}"
    left = list(out)
    for i in range(4):
        for got in rdpcap(f"{where}/out{i}.pcap"):
            wanted = [w for w in left if w.port == i]
            if not wanted:
                return f"unexpected on p{i}: {Ether(bytes(got)).summary()}"
            bad = wanted[0].check(bytes(got))
            if bad:
                return f"on p{i}: {bad}"
            left.remove(wanted[0])
    if left:
        return f"{len(left)} frames did not come out, the first on p{left[0].port}"
    return None


def main(args):
    verbose, first = "-v" in args, "-x" in args
    names = [a for a in args if a not in ("-v", "-x")]
    where = tempfile.mkdtemp(prefix="holdoff-forward-")
    failed = done = 0
    try:
        if len(set(c[0] for c in CASES)) != len(CASES):
            raise SystemExit("two cases have one name")
        for c in CASES:
            if names and not any(c[0].startswith(n) for n in names):
                continue
            bad = run(c, where)
            done += 1
            if bad and first:
                names = ["none"]
            failed += bad is not None
            if bad or verbose:
                print(f"{'FAIL' if bad else 'ok  '} {c[0]} ({c[1]}){': ' + bad if bad else ''}")
    finally:
        shutil.rmtree(where)
    print(f"{done} cases, {failed} failed")
    if done < 120 and not names:
        print("fewer than 120 cases")
        failed += 1
    return 1 if failed else 0

