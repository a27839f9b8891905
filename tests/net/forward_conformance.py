#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
What the router does with a packet, case by case, each with the section that says so. forward_net.py
has the drawing of the router and its links, and runs the cases.

forward_conformance.py [-v] [-x] [NAME...]: only the cases whose names begin so; -v shows all, -x
ends with the first that fails.
"""
import sys

from forward_net import *  # noqa: F403

# --- IPv4: the ordinary way ---------------------------------------------------------------------

p = ip() / udp()
case("v4-forward", "RFC 1812 5.2.1", eth() / p, sent4(p))
for name, dst in (("first", "10.80.250.1"), ("carried", "10.81.0.1"), ("last", "10.82.37.1")):
    p = ip(dst=dst) / udp()
    case(f"v4-counted-route-{name}", "docs/router.md", eth() / p, sent4(p))
p = ip(dst="10.82.38.1") / udp()
case("v4-counted-route-beyond", "docs/router.md", eth() / p, Icmp4(3, 0, p), drop="no_route")
p = ip6(dst="2001:db8:f0::1") / udp()
case("v6-counted-route-carried", "docs/router.md", eth() / p, sent6(p))
p = ip(dst="198.51.100.22") / udp()
case("v4-counted-neighbour-carried", "docs/router.md", eth() / p, sent4(p, dst="third"))
p = ip(dst=B4) / udp()
case("v4-connected", "RFC 1812 5.2.4.3", eth() / p, sent4(p))
p = ip(dst=C4) / udp()
case("v4-to-vlan", "IEEE 802.1Q 9.3", eth() / p, sent4(p, dst="C", vlan=100))
p = ip(dst=A4, src=C4) / udp()
case("v4-from-vlan", "IEEE 802.1Q 9.3", eth("lan1", "C") / Dot1Q(vlan=100) / p,
     sent4(p, port=0, src="lan0", dst="A"), port=1)
p = ip(dst=B4, src=C4) / udp()
case("v4-vlan-to-untagged-same-port", "RFC 1812 5.2.1", eth("lan1", "C") / Dot1Q(vlan=100) / p,
     sent4(p), port=1)
p = ip() / udp()
case("v4-priority-tag", "IEEE 802.1Q 6.9.1", eth() / Dot1Q(vlan=0, prio=5) / p, sent4(p))
case("v4-padding-trimmed", "RFC 894", Raw(bytes(eth() / p) + b"\xaa" * 9), sent4(p))
p = ip(proto=253) / Raw(b"x")
case("v4-unknown-protocol", "RFC 1812 5.2.1", eth() / p, sent4(p))
p = ip(tos=0xb8) / udp()
case("v4-tos-kept", "RFC 1812 5.3.2", eth() / p, sent4(p))
p = ip(tos=3) / udp()
case("v4-ecn-kept", "RFC 3168 5", eth() / p, sent4(p))
p = ip(ttl=2) / udp()
case("v4-ttl-2", "RFC 1812 5.3.1", eth() / p, sent4(p))
p = ip(ttl=255) / udp()
case("v4-ttl-255", "RFC 1812 5.3.1", eth() / p, sent4(p))


def with_checksum(want):
    """A packet whose header checksum is this, by its identification."""
    raw = bytearray(whole(IP(src=A4, dst="10.10.1.1", id=0) / udp()))
    raw[10:12] = b"\0\0"
    raw[4:6] = struct.pack("!H", (0xffff - want - (0xffff - checksum(bytes(raw[:20])))) % 0xffff)
    raw[10:12] = struct.pack("!H", want)
    return raw


# Counting the TTL down adds 0x0100, and what runs over comes in again below.
raw = with_checksum(0xfeff)
case("v4-checksum-becomes-zero", "RFC 1624 3", Raw(bytes(eth(type=0x800)) + raw), sent4(IP(raw)))
raw = with_checksum(0xffff)
case("v4-checksum-all-ones", "RFC 1624 3", Raw(bytes(eth(type=0x800)) + raw), sent4(IP(raw)))
p = ip(flags="DF") / udp(1472)
case("v4-full-mtu", "RFC 1812 4.2.2.7", eth() / p, sent4(p))
p = ip(dst="10.10.66.1") / udp()
case("v4-longest-match", "RFC 1812 5.2.4.3", eth() / p, sent4(p, 2, "lan2", "D"))
p = ip(dst="198.51.100.200") / udp()
case("v4-more-specific-than-connected", "RFC 1812 5.2.4.3", eth() / p, sent4(p, 2, "lan2", "D"))
p = ip(dst="10.60.1.1") / udp()
case("v4-least-metric", "RFC 1812 5.2.4.3", eth() / p, sent4(p, 2, "lan2", "D"))
p = ip(dst="10.50.1.1") / udp()
case("v4-via-ipv6-gateway", "RFC 8950", eth() / p, sent4(p))
p = ip(dst="10.31.0.0") / udp()
case("v4-31-bit-link", "RFC 3021 2.1", eth() / p, sent4(p, 3, "lan3", "E"))
p = ip(dst="10.30.0.1") / udp()
case("v4-ecmp-same-flow-same-path", "RFC 2992", [eth() / p] * 3,
     [sent4(p, 2, "lan2", "D")] * 3)
p = ip(frag=100) / Raw(b"x" * 24)
case("v4-later-fragment", "RFC 1812 5.2.1", eth() / p, sent4(p))
p = ip() / TCP(sport=1, dport=2, flags="S")
case("v4-tcp", "RFC 1812 5.2.1", eth() / p, sent4(p))
p = ip() / UDP(sport=1, dport=2, chksum=0x1234) / b"wrong"
case("v4-transport-checksum-not-looked-at", "RFC 1812 5.2.1", eth() / p, sent4(p))
p = ip(chksum=None) / udp(1)
case("v4-odd-length", "RFC 1812 5.2.1", eth() / p, sent4(p))
p = ip() / b""
case("v4-header-alone", "RFC 791 3.1", eth() / p, sent4(p))
p = ip(dst="10.30.0.1") / ICMP(type=3, code=4) / ip(src="10.30.0.1", dst=A4) / udp()
case("v4-icmp-error-follows-its-flow", "RFC 7690",
     [eth() / ip(dst="10.30.0.1", src=A4) / UDP(sport=7, dport=5000) / b"y",
      eth() / ip(dst="10.30.0.1") / ICMP(type=3, code=4) /
      ip(src="10.30.0.1", dst=A4) / UDP(sport=5000, dport=7) / b"y"],
     [sent4(ip(dst="10.30.0.1", src=A4) / UDP(sport=7, dport=5000) / b"y", *ECMP_OF_7_5000),
      sent4(ip(dst="10.30.0.1") / ICMP(type=3, code=4) /
            ip(src="10.30.0.1", dst=A4) / UDP(sport=5000, dport=7) / b"y", *ECMP_OF_7_5000)])

# --- IPv4: TTL and routes that lead nowhere -------------------------------------------------------

p = ip(ttl=1) / udp()
case("v4-ttl-1", "RFC 1812 5.3.1", eth() / p, Icmp4(11, 0, p), "ttl")
p = ip(ttl=0) / udp()
case("v4-ttl-0", "RFC 1812 5.3.1", eth() / p, Icmp4(11, 0, p), "ttl")
p = ip(ttl=1, dst=R4) / ICMP() / b"abc"
case("v4-ttl-1-for-us", "RFC 1812 5.3.1", eth() / p,
     Fields(0, {(IP, "src"): R4, (IP, "dst"): A4, (IP, "ttl"): 64, (ICMP, "type"): 0}))
p = ip(dst="172.16.0.1") / udp()
case("v4-no-route", "RFC 1812 5.2.7.1", eth() / p, Icmp4(3, 0, p), "no_route")
p = ip(dst="10.20.0.1") / udp()
case("v4-blackhole", "RFC 1812 5.2.4.3", eth() / p, [], "blackhole")
p = ip(dst="10.21.0.1") / udp()
case("v4-unreachable", "RFC 1812 5.2.7.1", eth() / p, Icmp4(3, 1, p), "unreachable")
p = ip(dst="10.22.0.1") / udp()
case("v4-prohibit", "RFC 1812 5.2.7.1", eth() / p, Icmp4(3, 13, p), "prohibited")
p = ip(dst="172.16.0.1") / udp(1400)
case("v4-error-of-576-bytes", "RFC 1812 4.3.2.3", eth() / p, Icmp4(3, 0, p), "no_route")
p = ip(dst="172.16.0.1", src=C4) / udp()
case("v4-error-to-a-vlan", "RFC 1812 4.3.2.4", eth("lan1", "C") / Dot1Q(vlan=100) / p,
     Fields(1, {(Dot1Q, "vlan"): 100, (IP, "src"): "203.0.113.1", (IP, "dst"): C4,
                (Ether, "dst"): MAC["C"], (ICMP, "type"): 3}), "no_route", port=1)
for name, src, ours in (("first", E4, "10.3.0.1"), ("second", "10.31.0.0", "10.31.0.1")):
    p = ip(dst="172.16.0.1", src=src) / udp()
    case(f"v4-error-by-the-{name}-address", "RFC 1812 4.3.2.4", eth("lan3", "E") / p,
         Icmp4(3, 0, p, port=3, src=ours, dst=src, mac="E", iface="lan3"), "no_route", port=3)
p = ip(dst="172.16.0.1", src="10.70.0.1") / udp()
case("v4-error-by-the-routes-source", "RFC 1122 3.3.4.3", eth("lan1", "B") / p,
     Icmp4(3, 0, p, port=1, src=R4, dst="10.70.0.1", mac="B", iface="lan1"), "no_route", port=1)
p = ip(dst="172.16.0.1", options=[IPOption_nop()] * 4) / udp()
case("v4-error-quotes-options", "RFC 1812 4.3.2.3", eth() / p, Icmp4(3, 0, p), "no_route")
p = ip(dst="172.16.0.1", src="172.17.0.1") / udp()
case("v4-error-to-nowhere", "RFC 1812 4.3.2.7", eth() / p, [], "no_route",
     counts={"icmp_suppressed": 1})

# --- IPv4: errors that must not be sent (RFC 1812 4.3.2.7) -----------------------------------------

for t, name in ((3, "unreachable"), (4, "source-quench"), (5, "redirect"), (11, "time-exceeded"),
                (12, "parameter-problem")):
    p = ip(dst="172.16.0.1") / ICMP(type=t) / Raw(whole(ip(src="172.16.0.1", dst=A4) / udp()))
    case(f"v4-no-error-about-{name}", "RFC 1812 4.3.2.7", eth() / p, [], "no_route",
         counts={"icmp_suppressed": 1})
p = ip(dst="172.16.0.1") / ICMP(type=8)
case("v4-error-about-echo", "RFC 1812 4.3.2.7", eth() / p, Icmp4(3, 0, p), "no_route")
p = ip(dst="172.16.0.1", frag=8) / Raw(b"x" * 16)
case("v4-no-error-about-later-fragment", "RFC 1812 4.3.2.7", eth() / p, [], "no_route",
     counts={"icmp_suppressed": 1})
p = ip(dst="172.16.0.1", flags="MF") / udp(16)
case("v4-error-about-first-fragment", "RFC 1812 4.3.2.7", eth() / p, Icmp4(3, 0, p), "no_route")
p = ip(dst="172.16.0.1", proto=1) / b""
case("v4-no-error-about-icmp-without-type", "RFC 1812 4.3.2.7", eth() / p, [], "no_route",
     counts={"icmp_suppressed": 1})
p = ip(dst="172.16.0.1") / udp()
case("v4-error-rate", "RFC 1812 4.3.2.8", [eth() / p] * 5, [Icmp4(3, 0, p)] * 2, ["no_route"] * 5,
     options="icmp-rate: 1\nicmp-burst: 2", counts={"icmp_limited": 3})

# --- IPv4: malformed ------------------------------------------------------------------------------

case("eth-short", "IEEE 802.3 3.2", Raw(bytes(eth())[:13]), [], "rx_malformed")
case("eth-vlan-short", "IEEE 802.1Q 9.3", Raw(bytes(eth(type=0x8100)) + b"\0\1"), [], "eth_short")
case("eth-other-type", "RFC 1812 3.1", eth(type=0x88cc) / Raw(b"x" * 46), [], "ethertype")
case("eth-802.3-length", "RFC 894", eth(type=46) / Raw(b"x" * 46), [], "ethertype")
case("eth-two-tags", "IEEE 802.1Q", eth() / Dot1Q(vlan=5) / Dot1Q(vlan=6) / ip() / udp(), [],
     "ethertype")
case("eth-unknown-vlan", "IEEE 802.1Q 8.6.2", eth() / Dot1Q(vlan=77) / ip() / udp(), [],
     "no_interface")
case("eth-reserved-vlan", "IEEE 802.1Q 9.6", eth() / Dot1Q(vlan=4095) / ip() / udp(), [],
     "no_interface")
case("eth-not-ours", "RFC 1812 3.3", eth("02:00:00:00:77:77") / ip() / udp(), [], "not_ours")
case("eth-of-other-interface", "RFC 1812 3.3", eth("lan1") / ip() / udp(), [], "not_ours")
case("v4-in-broadcast-frame", "RFC 1812 5.3.4", eth(BCAST) / ip() / udp(), [], "l2_broadcast")
case("v4-in-multicast-frame", "RFC 1812 5.3.4", eth("01:00:5e:00:00:01") / ip() / udp(), [],
     "l2_broadcast")
case("v4-short", "RFC 1812 5.2.2", Raw(bytes(eth(type=0x800)) + whole(ip())[:19]), [], "ip4_short")
case("v4-empty", "RFC 1812 5.2.2", eth(type=0x800), [], "ip4_short")
case("v4-version", "RFC 1812 5.2.2", eth(type=0x800) / Raw(b"\x55" + whole(ip() / udp())[1:]), [],
     "ip4_version")
case("v4-header-len", "RFC 1812 5.2.2", eth() / ip(ihl=4) / udp(), [], "ip4_header_len")
case("v4-header-beyond-frame", "RFC 1812 5.2.2",
     Raw(bytes(eth(type=0x800)) + whole(ip(ihl=15, len=60))[:20]), [], "ip4_short")
case("v4-total-len-below-header", "RFC 1812 5.2.2", eth() / ip(len=19) / udp(), [],
     "ip4_total_len")
case("v4-total-len-beyond-frame", "RFC 1812 5.2.2", eth() / ip(len=47) / udp(), [],
     "ip4_total_len")
case("v4-checksum", "RFC 1812 5.2.2", eth() / ip(chksum=0xbad) / udp(), [], "ip4_checksum")
case("v4-checksum-with-options", "RFC 1812 5.2.2",
     eth() / ip(chksum=0xbad, options=[IPOption_nop()] * 4) / udp(), [], "ip4_checksum")

# --- IPv4: addresses --------------------------------------------------------------------------------

for name, src in (("this-network", "0.0.0.0"), ("this-network-host", "0.1.2.3"),
                  ("loopback", "127.0.0.1"), ("multicast", "224.0.0.1"),
                  ("class-e", "240.0.0.1"), ("broadcast", "255.255.255.255")):
    case(f"v4-source-{name}", "RFC 1812 5.3.7", eth() / ip(src=src) / udp(), [], "martian_src")
case("v4-source-directed-broadcast", "RFC 1812 5.3.7", eth() / ip(src="192.0.2.255") / udp(), [],
     "martian_src")
case("v4-source-ours", "RFC 1812 5.3.8", eth() / ip(src=R4) / udp(), [], "own_src")
case("v4-source-ours-on-other-link", "RFC 1812 5.3.8", eth() / ip(src="198.51.100.1") / udp(), [],
     "own_src")
case("v4-source-link-local", "RFC 3927 2.7", eth() / ip(src="169.254.1.1") / udp(), [],
     "link_scope")
for name, dst, why in (("this-network", "0.0.0.0", "martian_dst"),
                       ("loopback", "127.0.0.1", "martian_dst"),
                       ("class-e", "240.0.0.1", "martian_dst"),
                       ("multicast", "224.0.0.5", "multicast"),
                       ("multicast-global", "239.1.2.3", "multicast"),
                       ("broadcast", "255.255.255.255", "broadcast"),
                       ("link-local", "169.254.9.9", "link_scope")):
    case(f"v4-to-{name}", "RFC 1812 5.3.7", eth() / ip(dst=dst) / udp(), [], why)
case("v4-to-directed-broadcast", "RFC 2644", eth() / ip(dst="198.51.100.255") / udp(), [],
     "broadcast")
case("v4-to-own-links-broadcast", "RFC 2644", eth(BCAST) / ip(dst="192.0.2.255") / udp(), [],
     "broadcast")
case("v4-broadcast-frame-and-address", "RFC 1812 5.3.5.1",
     eth(BCAST) / ip(dst="255.255.255.255", src="0.0.0.0") / UDP(sport=68, dport=67), [],
     "martian_src")

# --- IPv4: fragmentation --------------------------------------------------------------------------


def pieces(packet, mtu, port, src, dst, options=b"", later=b""):
    """The fragments of a packet, by RFC 791's example procedure."""
    raw = whole(packet)
    header = (raw[0] & 15) * 4
    data, field = raw[header:], struct.unpack("!H", raw[6:8])[0]
    out, done, opts = [], 0, options
    while done < len(data):
        room = (mtu - 20 - len(opts)) & ~7
        part = data[done:done + room]
        more = done + len(part) < len(data) or field & 0x2000
        h = bytearray(raw[:20])
        h[0] = 0x40 | (20 + len(opts)) // 4
        h[2:4] = struct.pack("!H", 20 + len(opts) + len(part))
        h[6:8] = struct.pack("!H", (field & 0x1fff) + done // 8 | (0x2000 if more else 0))
        h[8] -= 1
        h[10:12] = b"\0\0"
        h += opts
        h[10:12] = struct.pack("!H", checksum(bytes(h)))
        link = Ether(dst=MAC[dst], src=MAC[src], type=0x800)
        out.append(Frame(port, bytes(link) + bytes(h) + part))
        done += len(part)
        opts = later
    return out


p = ip(dst=E4) / udp(1000)
case("v4-fragment", "RFC 791 3.2", eth() / p, pieces(p, 576, 3, "lan3", "E"),
     counts={"fragmented": 1, "fragments": 2})
p = ip(dst=E4) / udp(1472)
case("v4-fragment-three", "RFC 791 3.2", eth() / p, pieces(p, 576, 3, "lan3", "E"),
     counts={"fragments": 3})
p = ip(dst=E4, flags="MF", frag=10) / Raw(b"z" * 1000)
case("v4-fragment-a-fragment", "RFC 791 3.2", eth() / p, pieces(p, 576, 3, "lan3", "E"))
p = ip(dst=E4, frag=10) / Raw(b"z" * 1001)
case("v4-fragment-the-last", "RFC 791 3.2", eth() / p, pieces(p, 576, 3, "lan3", "E"))
p = ip(dst=D4) / udp(1300)
case("v4-fragment-mtu-1280", "RFC 791 3.2", eth() / p, pieces(p, 1280, 2, "lan2", "D"))
p = ip(dst="10.40.0.1") / udp(1300)
case("v4-fragment-route-mtu", "RFC 1812 4.2.2.7", eth() / p, pieces(p, 1000, 1, "lan1", "B"))
p = ip(dst="10.41.0.1") / udp(300)
case("v4-fragment-least-mtu", "RFC 791 3.2", eth() / p, pieces(p, 68, 1, "lan1", "B"))
p = ip(dst="10.41.0.1", options=[IPOption_nop()] * 40) / udp(100)
case("v4-fragment-least-mtu-most-options", "RFC 791 3.2", eth() / p,
     pieces(p, 68, 1, "lan1", "B", options=b"\1" * 40, later=b""))
p = ip(dst=E4, options=[IPOption_nop(), IPOption_nop(), IPOption_nop(), IPOption_nop()]) / udp(700)
case("v4-fragment-option-not-copied", "RFC 791 3.1", eth() / p,
     pieces(p, 576, 3, "lan3", "E", options=b"\1\1\1\1", later=b""))
ALERT = b"\x94\x04\0\0"
p = ip(dst=E4, options=[IPOption_router()]) / udp(700)
case("v4-fragment-option-copied", "RFC 791 3.1", eth() / p,
     pieces(p, 576, 3, "lan3", "E", options=ALERT, later=ALERT))
p = ip(dst=E4, flags="DF") / udp(1000)
case("v4-df", "RFC 1191 4", eth() / p, Icmp4(3, 4, p, rest=576), "too_big")
p = ip(dst="10.40.0.1", flags="DF") / udp(1000)
case("v4-df-route-mtu", "RFC 1191 4", eth() / p, Icmp4(3, 4, p, rest=1000), "too_big")
p = ip(dst=E4, flags="DF") / udp(548)
case("v4-df-just-fits", "RFC 1191 4", eth() / p, sent4(p, 3, "lan3", "E"))
p = ip(dst=E4, flags="DF") / udp(549)
case("v4-df-one-too-many", "RFC 1191 4", eth() / p, Icmp4(3, 4, p, rest=576), "too_big")
p = ip(dst=E4, flags="DF", ttl=1) / udp(1000)
case("v4-df-ttl-first", "RFC 1812 5.2.1.2", eth() / p, Icmp4(11, 0, p), "ttl")

# --- IPv4: options ----------------------------------------------------------------------------------


def opt(raw):
    raw += b"\0" * (-len(raw) % 4)
    return raw


def with_options(raw, dst="10.10.1.1", ttl=64):
    raw = opt(raw)
    body = whole(UDP(sport=1, dport=2, chksum=0) / b"data")
    h = bytearray(whole(IP(src=A4, dst=dst, id=7, proto=17, ttl=ttl)))
    h[0] = 0x40 | (20 + len(raw)) // 4
    h[2:4] = struct.pack("!H", 20 + len(raw) + len(body))
    h[10:12] = b"\0\0"
    h += raw
    h[10:12] = struct.pack("!H", checksum(bytes(h)))
    return Raw(bytes(h) + body)


def v4(raw_packet):
    return Raw(bytes(eth(type=0x800)) + bytes(raw_packet))


def forwarded(raw, dst="B"):
    h = bytearray(bytes(with_options(raw)))
    n = (h[0] & 15) * 4
    h[8] -= 1
    h[10:12] = b"\0\0"
    h[10:12] = struct.pack("!H", checksum(bytes(h[:n])))
    return Frame(1, bytes(Ether(dst=MAC["B"], src=MAC["lan1"], type=0x800)) + bytes(h))


OUR = bytes([198, 51, 100, 1])
for name, raw in (("nop-and-end", b"\1\1\1\0"), ("router-alert", ALERT),
                  ("unknown", b"\x5e\x04ab"), ("unknown-copied", b"\xde\x06abcd")):
    case(f"v4-option-{name}", "RFC 1812 4.2.2.1", v4(with_options(raw)), forwarded(raw))
case("v4-option-record-route", "RFC 1812 5.3.13.5", v4(with_options(b"\x07\x07\x04" + b"\0" * 4)),
     forwarded(b"\x07\x07\x08" + OUR))
case("v4-option-record-route-second", "RFC 1812 5.3.13.5",
     v4(with_options(b"\x07\x0b\x08" + b"abcd" + b"\0" * 4)),
     forwarded(b"\x07\x0b\x0cabcd" + OUR))
case("v4-option-record-route-full", "RFC 791 3.1", v4(with_options(b"\x07\x07\x08abcd")),
     forwarded(b"\x07\x07\x08abcd"))
for name, raw, pointer in (("length-0", b"\x5e\x00ab", 21), ("length-1", b"\x5e\x01ab", 21),
                           ("length-beyond", b"\x5e\x09ab", 21),
                           ("record-route-pointer", b"\x07\x07\x03abcd", 22),
                           ("record-route-part", b"\x07\x07\x06abcd", 22),
                           ("timestamp-pointer", b"\x44\x08\x04\x00abcd", 22),
                           ("timestamp-overflow", b"\x44\x08\x09\xf0abcd", 23),
                           ("source-route-pointer", b"\x83\x07\x03abcd", 22)):
    q = with_options(raw)
    case(f"v4-option-bad-{name}", "RFC 1812 4.3.3.5", v4(q), Icmp4(12, 0, q, rest=pointer << 24),
         "ip4_option")
q = with_options(b"\x83\x07\x04" + bytes([10, 10, 9, 9]))
case("v4-loose-source-route", "RFC 1812 5.3.13.4", v4(q), Icmp4(3, 5, q), "source_route")
q = with_options(b"\x89\x07\x04" + bytes([10, 10, 9, 9]))
case("v4-strict-source-route", "RFC 1812 5.3.13.4", v4(q), Icmp4(3, 5, q), "source_route")
q = with_options(b"\x83\x07\x04" + bytes([10, 10, 9, 9]), dst=R4)
case("v4-source-route-by-us", "RFC 1812 5.3.13.4", v4(q), Icmp4(3, 5, q), "source_route")
case("v4-source-route-used-up", "RFC 791 3.1", v4(with_options(b"\x83\x07\x08abcd")),
     forwarded(b"\x83\x07\x08abcd"))
case("v4-option-timestamp-full", "RFC 791 3.1", v4(with_options(b"\x44\x08\x09\x10abcd")),
     forwarded(b"\x44\x08\x09\x20abcd"))
case("v4-option-timestamp-for-others", "RFC 791 3.1",
     v4(with_options(b"\x44\x0c\x05\x03" + bytes([9, 9, 9, 9]) + b"\0" * 4)),
     forwarded(b"\x44\x0c\x05\x03" + bytes([9, 9, 9, 9]) + b"\0" * 4))
q = with_options(b"\1\1\1\1", ttl=1)
case("v4-option-ttl", "RFC 1812 5.3.1", v4(q), Icmp4(11, 0, q), "ttl")

# --- IPv4: for the router ---------------------------------------------------------------------------

case("v4-echo", "RFC 1812 4.3.3.6", eth() / ip(dst=R4) / ICMP(id=7, seq=9) / b"payload",
     Fields(0, {(Ether, "dst"): MAC["A"], (Ether, "src"): MAC["lan0"], (IP, "src"): R4,
                (IP, "dst"): A4, (IP, "ttl"): 64, (ICMP, "type"): 0, (ICMP, "id"): 7,
                (ICMP, "seq"): 9, (Raw, "load"): b"payload"}))
case("v4-echo-other-interface", "RFC 1122 3.3.4.2", eth() / ip(dst="198.51.100.1") / ICMP(),
     Fields(0, {(IP, "src"): "198.51.100.1", (IP, "dst"): A4, (ICMP, "type"): 0}))
case("v4-echo-without-options", "RFC 1812 4.3.3.6",
     eth() / ip(dst=R4, options=[IPOption_nop()] * 4) / ICMP(id=3) / b"x",
     Fields(0, {(IP, "ihl"): 5, (IP, "len"): 29, (ICMP, "type"): 0, (ICMP, "id"): 3}))
case("v4-echo-checksum", "RFC 1812 4.3.2.6", eth() / ip(dst=R4) / ICMP(chksum=1), [], "local_bad")
case("v4-echo-cut", "RFC 792", eth() / ip(dst=R4, proto=1) / b"\x08\0\0\0", [], "local_bad")
case("v4-echo-reply-for-us", "RFC 1812 4.3.3.6", eth() / ip(dst=R4) / ICMP(type=0), [],
     counts={"local": 1})
case("v4-timestamp-request", "RFC 1812 4.3.3.8", eth() / ip(dst=R4) / ICMP(type=13), [],
     counts={"local": 1})
p = ip(dst=R4) / udp()
case("v4-udp-for-us", "RFC 1812 5.2.7.1", eth() / p, Icmp4(3, 3, p), "local_port")
p = ip(dst="198.51.100.1") / udp()
case("v4-udp-for-us-answers-from-there", "RFC 1122 3.2.1.3", eth() / p,
     Icmp4(3, 3, p, src="198.51.100.1"), "local_port")
case("v4-udp-bad-checksum", "RFC 768", eth() / ip(dst=R4) / UDP(chksum=1) / b"x", [], "local_bad")
p = ip(dst=R4) / UDP(sport=4, dport=5, chksum=0) / b"x"
case("v4-udp-no-checksum", "RFC 768", eth() / p, Icmp4(3, 3, p), "local_port")
p = ip(dst=R4) / TCP(dport=179, flags="S")
case("v4-tcp-for-us", "RFC 1122 3.2.2.1", eth() / p, Icmp4(3, 2, p), "local_proto")
p = ip(dst=R4, proto=89) / b"ospf"
case("v4-ospf-for-us", "RFC 1812 5.2.7.1", eth() / p, Icmp4(3, 2, p), "local_proto")
case("v4-fragment-for-us", "RFC 1812 5.2.3", eth() / ip(dst=R4, flags="MF") / udp(16), [],
     "local_fragment")
case("v4-for-us-in-broadcast-frame", "RFC 1812 5.3.4", eth(BCAST) / ip(dst=R4) / ICMP(), [],
     "l2_broadcast")

# --- ARP ----------------------------------------------------------------------------------------------

ASK = ARP(op=1, hwsrc=MAC["A"], psrc=A4, pdst=R4, hwdst="00:00:00:00:00:00")
SAYS = {(Ether, "dst"): MAC["A"], (Ether, "src"): MAC["lan0"], (ARP, "op"): 2,
        (ARP, "hwsrc"): MAC["lan0"], (ARP, "psrc"): R4, (ARP, "hwdst"): MAC["A"]}
case("arp-request", "RFC 826", eth(BCAST) / ASK, Fields(0, {**SAYS, (ARP, "pdst"): A4}))
case("arp-request-unicast", "RFC 1122 2.3.2.1", eth() / ASK, Fields(0, {**SAYS, (ARP, "pdst"): A4}))
case("arp-probe", "RFC 5227 2.1.1", eth(BCAST) / ARP(op=1, hwsrc=MAC["A"], psrc="0.0.0.0", pdst=R4),
     Fields(0, {**SAYS, (ARP, "pdst"): "0.0.0.0"}))
case("arp-vlan", "RFC 826", eth(BCAST, "C") / Dot1Q(vlan=100) /
     ARP(op=1, hwsrc=MAC["C"], psrc=C4, pdst="203.0.113.1"),
     Fields(1, {(Dot1Q, "vlan"): 100, (ARP, "op"): 2, (ARP, "psrc"): "203.0.113.1",
                (ARP, "pdst"): C4}), port=1)
case("arp-for-another", "RFC 826", eth(BCAST) / ARP(op=1, hwsrc=MAC["A"], psrc=A4,
                                                    pdst="192.0.2.99"), [], "arp_other")
case("arp-address-of-other-link", "RFC 1812 3.3.2", eth(BCAST) / ARP(
    op=1, hwsrc=MAC["A"], psrc=A4, pdst="198.51.100.1"), [], "arp_other")
case("arp-sender-off-link", "RFC 1812 3.3.2", eth(BCAST) / ARP(
    op=1, hwsrc=MAC["A"], psrc="172.16.0.1", pdst=R4), [], "arp_other")
case("arp-gratuitous", "RFC 5227 3", eth(BCAST) / ARP(op=1, hwsrc=MAC["A"], psrc=A4, pdst=A4), [],
     counts={"local": 1})
case("arp-conflict", "RFC 5227 2.4", eth(BCAST) / ARP(op=1, hwsrc=MAC["A"], psrc=R4, pdst=R4), [],
     "conflict")
case("arp-reply", "RFC 826", eth() / ARP(op=2, hwsrc=MAC["A"], psrc=A4, pdst=R4,
                                         hwdst=MAC["lan0"]), [], counts={"local": 1})
case("arp-short", "RFC 826", Raw(bytes(eth() / ASK)[:41]), [], "arp_bad")
case("arp-hardware-type", "RFC 826", eth(BCAST) / ARP(hwtype=6, hwsrc=MAC["A"], psrc=A4, pdst=R4),
     [], "arp_bad")
case("arp-operation", "RFC 826", eth(BCAST) / ARP(op=3, hwsrc=MAC["A"], psrc=A4, pdst=R4), [],
     "arp_bad")
case("arp-group-sender", "RFC 1812 3.3.2", eth(BCAST) / ARP(hwsrc=BCAST, psrc=A4, pdst=R4), [],
     "arp_bad")

# --- IPv6: the ordinary way ------------------------------------------------------------------------------

p = ip6() / udp()
case("v6-forward", "RFC 8200 3", eth() / p, sent6(p))
p = ip6(dst=B6) / udp()
case("v6-connected", "RFC 4861 5.2", eth() / p, sent6(p))
p = ip6(dst=C6) / udp()
case("v6-to-vlan", "IEEE 802.1Q 9.3", eth() / p, sent6(p, dst="C", vlan=100))
p = ip6(dst=A6, src=C6) / udp()
case("v6-from-vlan", "IEEE 802.1Q 9.3", eth("lan1", "C") / Dot1Q(vlan=100) / p,
     sent6(p, 0, "lan0", "A"), port=1)
p = ip6(dst="2001:db8:a:66::1") / udp()
case("v6-longest-match", "RFC 7608", eth() / p, sent6(p, 2, "lan2", "D"))
p = ip6(hlim=2) / udp()
case("v6-hop-limit-2", "RFC 8200 3", eth() / p, sent6(p))
p = ip6(tc=0xb9, fl=0x12345) / udp()
case("v6-class-and-label-kept", "RFC 6437 3", eth() / p, sent6(p))
p = ip6(nh=59)
case("v6-no-next-header", "RFC 8200 4.7", eth() / p, sent6(p))
case("v6-padding-trimmed", "RFC 2464 3", Raw(bytes(eth() / ip6(nh=59)) + b"\xaa" * 6),
     sent6(ip6(nh=59)))
p = ip6() / udp(1452)
case("v6-full-mtu", "RFC 8200 5", eth() / p, sent6(p))
p = ip6() / IPv6ExtHdrFragment(offset=5, m=1, id=9) / Raw(b"x" * 16)
case("v6-fragment", "RFC 8200 4.5", eth() / p, sent6(p))
p = ip6() / IPv6ExtHdrDestOpt(options=[HBHOptUnknown(otype=0x80, optdata=b"x")]) / udp()
case("v6-destination-options-not-looked-at", "RFC 8200 4", eth() / p, sent6(p))
p = ip6() / IPv6ExtHdrRouting(addresses=["2001:db8:ff::1"], segleft=1) / udp()
case("v6-routing-header-not-looked-at", "RFC 8200 4", eth() / p, sent6(p))
p = ip6(dst="2001:db8:c::1") / udp()
case("v6-ecmp-same-flow-same-path", "RFC 2992", [eth() / p] * 3, [sent6(p, *ECMP6)] * 3)

# --- IPv6: hop limit, routes that lead nowhere, sizes ----------------------------------------------------

for h in (0, 1):
    p = ip6(hlim=h) / udp()
    case(f"v6-hop-limit-{h}", "RFC 4443 3.3", eth() / p, Icmp6(3, 0, p), "ttl")
p = ip6(dst="2001:db8:ffff::1") / udp()
case("v6-no-route", "RFC 4443 3.1", eth() / p, Icmp6(1, 0, p), "no_route")
p = ip6(dst="2001:db8:b::1") / udp()
case("v6-blackhole", "RFC 6666", eth() / p, [], "blackhole")
p = ip6(dst="2001:db8:b1::1") / udp()
case("v6-unreachable", "RFC 4443 3.1", eth() / p, Icmp6(1, 0, p), "unreachable")
p = ip6(dst="2001:db8:b2::1") / udp()
case("v6-prohibit", "RFC 4443 3.1", eth() / p, Icmp6(1, 1, p), "prohibited")
p = ip6(dst=D6) / udp(1300)
case("v6-too-big", "RFC 4443 3.2", eth() / p, Icmp6(2, 0, p, rest=1280), "too_big")
p = ip6(dst=D6) / udp(1232)
case("v6-just-fits", "RFC 8200 5", eth() / p, sent6(p, 2, "lan2", "D"))
p = ip6(dst=D6) / udp(1233)
case("v6-one-too-many", "RFC 4443 3.2", eth() / p, Icmp6(2, 0, p, rest=1280), "too_big")
p = ip6(dst="2001:db8:d::1") / udp(1300)
case("v6-too-big-route-mtu", "RFC 4443 3.2", eth() / p, Icmp6(2, 0, p, rest=1300), "too_big")
p = ip6(dst="2001:db8:ffff::1") / udp(1400)
case("v6-error-of-1280-bytes", "RFC 4443 2.4(c)", eth() / p, Icmp6(1, 0, p), "no_route")
p = ip6(dst="2001:db8:ffff::1") / udp()
case("v6-error-rate", "RFC 4443 2.4(f)", [eth() / p] * 5, [Icmp6(1, 0, p)] * 2, ["no_route"] * 5,
     options="icmp-rate: 1\nicmp-burst: 2", counts={"icmp_limited": 3})

# --- IPv6: errors that must not be sent (RFC 4443 2.4(e)) -----------------------------------------------

for t, name in ((1, "unreachable"), (2, "too-big"), (3, "time-exceeded"), (4, "parameter-problem"),
                (100, "private"), (127, "reserved")):
    p = ip6(dst="2001:db8:ffff::1", nh=58) / Raw(bytes([t, 0, 0, 0, 0, 0, 0, 0]))
    case(f"v6-no-error-about-{name}", "RFC 4443 2.4(e.1)", eth() / p, [], "no_route",
         counts={"icmp_suppressed": 1})
p = ip6(dst="2001:db8:ffff::1", nh=58) / Raw(bytes([137, 0, 0, 0, 0, 0, 0, 0]))
case("v6-no-error-about-redirect", "RFC 4443 2.4(e.2)", eth() / p, [], "no_route",
     counts={"icmp_suppressed": 1})
p = ip6(dst="2001:db8:ffff::1") / ICMPv6EchoRequest()
case("v6-error-about-echo", "RFC 4443 2.4(e)", eth() / p, Icmp6(1, 0, p), "no_route")
p = ip6(dst="2001:db8:ffff::1") / IPv6ExtHdrDestOpt(options=[PadN(optdata=b"\0" * 4)]) / \
    Raw(bytes([1, 0, 0, 0, 0, 0, 0, 0]))
p[IPv6ExtHdrDestOpt].nh = 58
case("v6-no-error-about-error-behind-options", "RFC 4443 2.4(e.1)", eth() / p, [], "no_route",
     counts={"icmp_suppressed": 1})
p = ip6(dst="2001:db8:ffff::1", src="fd00:1::1") / udp()
case("v6-error-by-an-address-of-its-scope", "RFC 6724 5 rule 2", eth() / p,
     Icmp6(1, 0, p, dst="fd00:1::1"), "no_route")
case("v6-no-error-to-unspecified", "RFC 4443 2.4(e.6)",
     eth() / ip6(src="::", dst="2001:db8:ffff::1") / udp(), [], "martian_src")

# --- IPv6: malformed ------------------------------------------------------------------------------------

case("v6-short", "RFC 8200 3", Raw(bytes(eth(type=0x86dd)) + whole(ip6())[:39]), [], "ip6_short")
case("v6-version", "RFC 8200 3", eth(type=0x86dd) / Raw(b"\x45" + whole(ip6() / udp())[1:]), [],
     "ip6_version")
case("v6-payload-len", "RFC 8200 3", eth() / ip6(plen=100) / udp(), [], "ip6_payload_len")
case("v6-in-multicast-frame", "RFC 4443 2.4(e.4)", eth("33:33:00:00:00:01") / ip6() / udp(), [],
     "l2_broadcast")

# --- IPv6: addresses ------------------------------------------------------------------------------------

for name, src, why in (("unspecified", "::", "martian_src"), ("loopback", "::1", "martian_src"),
                       ("multicast", "ff02::1", "martian_src"),
                       ("mapped", "::ffff:192.0.2.10", "martian_src"),
                       ("ours", R6, "own_src"), ("ours-on-other-link", "2001:db8:2::1", "own_src"),
                       ("our-link-local", RLL, "own_src")):
    case(f"v6-source-{name}", "RFC 4291 2.5", eth() / ip6(src=src) / udp(), [], why)
for name, dst, why in (("unspecified", "::", "martian_dst"), ("loopback", "::1", "martian_dst"),
                       ("mapped", "::ffff:192.0.2.10", "martian_dst"),
                       ("all-ospf-routers", "ff02::5", "multicast"),
                       ("global-group", "ff0e::1234", "multicast"),
                       ("link-local", "fe80::77", "link_scope")):
    case(f"v6-to-{name}", "RFC 4291 2.5", eth() / ip6(dst=dst) / udp(), [], why)
p = ip6(src="fe80::a") / udp()
case("v6-source-link-local", "RFC 4443 3.1", eth() / p,
     Icmp6(1, 2, p, src=RLL, dst="fe80::a"), "link_scope")

# --- IPv6: hop-by-hop options --------------------------------------------------------------------------


def hop(options, dst="2001:db8:a::1"):
    return ip6(dst=dst) / IPv6ExtHdrHopByHop(options=options) / udp()


for name, options in (("pad", [PadN(optdata=b"\0" * 4)]), ("pad1", [Pad1()] * 6),
                      ("router-alert", [RouterAlert()]),
                      ("unknown-skip", [HBHOptUnknown(otype=0x1e, optdata=b"abcd")])):
    p = hop(options)
    case(f"v6-hop-{name}", "RFC 8200 4.3", eth() / p, sent6(p))
p = hop([HBHOptUnknown(otype=0x5e, optdata=b"abcd")])
case("v6-hop-unknown-discard", "RFC 8200 4.2", eth() / p, [], "ip6_option")
p = hop([HBHOptUnknown(otype=0x9e, optdata=b"abcd")])
case("v6-hop-unknown-problem", "RFC 8200 4.2", eth() / p, Icmp6(4, 2, p, rest=42), "ip6_option")
p = hop([PadN(optdata=b"\0\0"), HBHOptUnknown(otype=0xde, optdata=b"abcd")])
case("v6-hop-unknown-problem-unless-group", "RFC 8200 4.2", eth() / p, Icmp6(4, 2, p, rest=46),
     "ip6_option")
p = ip6(nh=0, plen=8) / Raw(b"\x3b\x01" + b"\0" * 6)
case("v6-hop-cut", "RFC 8200 4.3", eth() / p, [], "ip6_ext")
p = ip6(nh=0, plen=8) / Raw(b"\x3b\x00\x1e\x09" + b"\0" * 4)
case("v6-hop-option-beyond", "RFC 8200 4.2", eth() / p, [], "ip6_ext")
p = ip6(nh=0)
case("v6-hop-missing", "RFC 8200 4.3", eth() / p, [], "ip6_ext")

# --- IPv6: for the router ------------------------------------------------------------------------------

case("v6-echo", "RFC 4443 4.2", eth() / ip6(dst=R6) / ICMPv6EchoRequest(id=5, seq=6, data=b"hello"),
     Fields(0, {(Ether, "dst"): MAC["A"], (IPv6, "src"): R6, (IPv6, "dst"): A6,
                (IPv6, "hlim"): 64, (ICMPv6EchoReply, "id"): 5, (ICMPv6EchoReply, "seq"): 6,
                (ICMPv6EchoReply, "data"): b"hello"}))
case("v6-echo-link-local", "RFC 4443 4.2", eth() / ip6(src="fe80::a", dst=RLL) / ICMPv6EchoRequest(),
     Fields(0, {(IPv6, "src"): RLL, (IPv6, "dst"): "fe80::a", (ICMPv6EchoReply, "code"): 0}))
case("v6-echo-all-nodes", "RFC 4443 4.2",
     eth("33:33:00:00:00:01") / ip6(src="fe80::a", dst="ff02::1") / ICMPv6EchoRequest(),
     Fields(0, {(IPv6, "src"): RLL, (IPv6, "dst"): "fe80::a", (ICMPv6EchoReply, "code"): 0}))
case("v6-echo-all-routers", "RFC 4291 2.8",
     eth("33:33:00:00:00:02") / ip6(dst="ff02::2") / ICMPv6EchoRequest(),
     Fields(0, {(IPv6, "src"): R6, (IPv6, "dst"): A6, (ICMPv6EchoReply, "code"): 0}))
case("v6-echo-anycast", "RFC 4291 2.6.1",
     eth() / ip6(dst="2001:db8:1::") / ICMPv6EchoRequest(),
     Fields(0, {(IPv6, "dst"): A6, (ICMPv6EchoReply, "code"): 0}))
case("v6-echo-checksum", "RFC 4443 2.3", eth() / ip6(dst=R6) / ICMPv6EchoRequest(cksum=1), [],
     "local_bad")
p = ip6(dst=R6) / udp()
case("v6-udp-for-us", "RFC 4443 3.1", eth() / p, Icmp6(1, 4, p), "local_port")
p = ip6(dst=R6, hlim=1) / udp()
case("v6-udp-for-us-hop-limit-1", "RFC 4443 3.1", eth() / p, Icmp6(1, 4, p), "local_port")
p = ip6(dst="2001:db8:2::1") / udp()
case("v6-port-unreachable-other-interface", "RFC 4443 2.2(a)", eth() / p,
     Icmp6(1, 4, p, src="2001:db8:2::1"), "local_port")
NODES_MAC = "33:33:00:00:00:01"
case("v6-no-error-to-group", "RFC 4443 2.4(e.3)", eth(NODES_MAC) / ip6(dst="ff02::1") / udp(), [],
     "local_port", counts={"icmp_suppressed": 1})
p = ip6(dst="ff02::1") / IPv6ExtHdrHopByHop(options=[HBHOptUnknown(otype=0x9e, optdata=b"abcd")])
case("v6-group-unknown-problem", "RFC 8200 4.2", eth(NODES_MAC) / p, Icmp6(4, 2, p, rest=42),
     "ip6_option")
p = ip6(dst="ff02::1") / IPv6ExtHdrHopByHop(options=[HBHOptUnknown(otype=0xde, optdata=b"abcd")])
case("v6-group-unknown-problem-unless-group", "RFC 8200 4.2", eth(NODES_MAC) / p, [],
     "ip6_option")
case("v6-udp-no-checksum", "RFC 8200 8.1", eth() / ip6(dst=R6) / UDP(chksum=0) / b"x", [],
     "local_bad")
p = ip6(dst=R6) / TCP(flags="S")
case("v6-unknown-next-header", "RFC 8200 4", eth() / p, Icmp6(4, 1, p, rest=6), "local_proto")
p = ip6(dst=R6) / IPv6ExtHdrDestOpt(options=[PadN(optdata=b"\0" * 4)]) / TCP(flags="S")
case("v6-unknown-behind-options", "RFC 8200 4", eth() / p, Icmp6(4, 1, p, rest=40), "local_proto")
p = ip6(dst=R6) / IPv6ExtHdrDestOpt(options=[HBHOptUnknown(otype=0x80, optdata=b"abcd")]) / udp()
case("v6-destination-option", "RFC 8200 4.2", eth() / p, Icmp6(4, 2, p, rest=42), "ip6_option")
p = ip6(dst=R6) / IPv6ExtHdrRouting(type=0, addresses=["2001:db8:a::1"], segleft=1) / udp()
case("v6-routing-header-0", "RFC 5095 3", eth() / p, Icmp6(4, 0, p, rest=42), "ip6_routing")
case("v6-no-next-header-for-us", "RFC 8200 4.7", eth() / ip6(dst=R6, nh=59), [],
     counts={"local": 1})
case("v6-fragment-for-us", "RFC 8200 4.5", eth() / ip6(dst=R6) /
     IPv6ExtHdrFragment(m=1, id=1) / Raw(b"x" * 16), [], "local_fragment")
p = ip6(dst=R6) / IPv6ExtHdrFragment(id=1) / udp()
case("v6-atomic-fragment-for-us", "RFC 6946 4", eth() / p, Icmp6(1, 4, p), "local_port")

# --- Neighbour Discovery ---------------------------------------------------------------------------------

SNM, SNM_MAC = "ff02::1:ff00:1", "33:33:ff:00:00:01"
NA = {(Ether, "src"): MAC["lan0"], (IPv6, "src"): R6, (IPv6, "hlim"): 255,
      (ICMPv6ND_NA, "tgt"): R6, (ICMPv6ND_NA, "R"): 1, (ICMPv6ND_NA, "O"): 1,
      (ICMPv6NDOptDstLLAddr, "lladdr"): MAC["lan0"]}


def ns(dst=SNM, src=A6, tgt=R6, hlim=255, mac=SNM_MAC, lladdr=True, **kw):
    m = eth(mac) / IPv6(src=src, dst=dst, hlim=hlim) / ICMPv6ND_NS(tgt=tgt, **kw)
    return m / ICMPv6NDOptSrcLLAddr(lladdr=MAC["A"]) if lladdr else m


SOLICITED = {**NA, (IPv6, "dst"): A6, (ICMPv6ND_NA, "S"): 1, (Ether, "dst"): MAC["A"]}
case("nd-solicitation", "RFC 4861 7.2.4", ns(), Fields(0, SOLICITED))
case("nd-solicitation-unicast", "RFC 4861 7.2.4", ns(dst=R6, mac="lan0"), Fields(0, SOLICITED))
case("nd-solicitation-unicast-no-option", "RFC 4861 7.2.4", ns(dst=R6, mac="lan0", lladdr=False),
     Fields(0, SOLICITED))
case("nd-solicitation-link-local", "RFC 4861 7.2.4",
     ns(dst="ff02::1:ff00:100", mac="33:33:ff:00:01:00", tgt=RLL, src="fe80::a"),
     Fields(0, {(IPv6, "src"): RLL, (IPv6, "dst"): "fe80::a", (ICMPv6ND_NA, "tgt"): RLL}))
case("nd-duplicate-address-detection", "RFC 4862 5.4.3", ns(src="::", lladdr=False),
     Fields(0, {**NA, (IPv6, "dst"): "ff02::1", (ICMPv6ND_NA, "S"): 0,
                (Ether, "dst"): "33:33:00:00:00:01"}))
case("nd-hop-limit", "RFC 4861 7.1.1", ns(hlim=254), [], "nd_bad")
case("nd-checksum", "RFC 4861 7.1.1", ns(cksum=1), [], "local_bad")
case("nd-code", "RFC 4861 7.1.1", ns(code=1), [], "nd_bad")
case("nd-short", "RFC 4861 7.1.1", eth(SNM_MAC) / IPv6(src=A6, dst=SNM, hlim=255, nh=58) /
     icmp6_raw(A6, SNM, bytes([135, 0, 0, 0]) + b"\0" * 4 + b"\x20\x01"), [], "nd_bad")
case("nd-multicast-target", "RFC 4861 7.1.1", ns(tgt="ff02::1"), [], "nd_bad")
case("nd-option-length-0", "RFC 4861 7.1.1", eth(SNM_MAC) / IPv6(src=A6, dst=SNM, hlim=255, nh=58) /
     icmp6_raw(A6, SNM, whole(ICMPv6ND_NS(tgt=R6)) + b"\1\0" + b"\0" * 6), [], "nd_bad")
case("nd-dad-not-to-solicited-node", "RFC 4861 7.1.1", ns(src="::", dst=R6, mac="lan0",
                                                          lladdr=False), [], "nd_bad")
case("nd-dad-with-option", "RFC 4861 7.1.1", ns(src="::"), [], "nd_bad")
case("nd-target-not-ours", "RFC 4861 7.2.3", ns(tgt="2001:db8:1::ff00:1"), [], "nd_other")
case("nd-group-not-ours", "RFC 4861 7.2.3", ns(dst="ff02::1:ff12:3456", mac="33:33:ff:12:34:56",
                                              tgt="2001:db8:1::12:3456"), [], "multicast")


def na(tgt=A6, src=A6, dst=R6, hlim=255, mac="lan0", **kw):
    return eth(mac) / IPv6(src=src, dst=dst, hlim=hlim) / ICMPv6ND_NA(tgt=tgt, **kw) / \
        ICMPv6NDOptDstLLAddr(lladdr=MAC["A"])


case("nd-advertisement", "RFC 4861 7.2.5", na(S=1, O=1, R=0), [], counts={"local": 1})
case("nd-advertisement-hop-limit", "RFC 4861 7.1.2", na(hlim=64), [], "nd_bad")
case("nd-advertisement-solicited-to-all", "RFC 4861 7.1.2",
     na(dst="ff02::1", mac="33:33:00:00:00:01", S=1), [], "nd_bad")
case("nd-advertisement-of-ours", "RFC 4862 5.4.4", na(tgt=R6, S=0), [], "conflict")
case("nd-router-solicitation", "RFC 4861 6.2.6", eth("33:33:00:00:00:02") /
     IPv6(src=A6, dst="ff02::2", hlim=255) / ICMPv6ND_RS(), [], counts={"local": 1})
case("nd-router-advertisement", "RFC 4861 6.2.7", eth("33:33:00:00:00:01") /
     IPv6(src="fe80::a", dst="ff02::1", hlim=255) / ICMPv6ND_RA(), [], counts={"local": 1})

# --- neighbours that are not there ----------------------------------------------------------------------

p = ip(dst="198.51.100.77") / udp()
ASKS = Fields(1, {(Ether, "dst"): BCAST, (ARP, "op"): 1, (ARP, "psrc"): "198.51.100.1",
                  (ARP, "pdst"): "198.51.100.77", (ARP, "hwsrc"): MAC["lan1"]})
case("v4-neighbour-silent", "RFC 1812 3.3.2", eth() / p, [ASKS] * 3 +
     [Icmp4(3, 1, p, changed=True)], "neigh_failed", counts={"held": 1})
p = ip6(dst="2001:db8:2::77") / udp()
ASKS6 = Fields(1, {(Ether, "dst"): "33:33:ff:00:00:77", (IPv6, "dst"): "ff02::1:ff00:77",
                   (IPv6, "src"): "2001:db8:2::1", (IPv6, "hlim"): 255,
                   (ICMPv6ND_NS, "tgt"): "2001:db8:2::77",
                   (ICMPv6NDOptSrcLLAddr, "lladdr"): MAC["lan1"]})
case("v6-neighbour-silent", "RFC 4861 7.2.2", eth() / p, [ASKS6] * 3 +
     [Fields(0, {(IPv6, "src"): R6, (IPv6, "dst"): A6, (ICMPv6DestUnreach, "code"): 3})],
     "neigh_failed", counts={"held": 1})
p = ip(dst="198.51.100.77") / udp()
case("v4-neighbour-queue-is-small", "RFC 1122 2.3.2.2", [eth() / p] * 5,
     [ASKS] * 3 + [Icmp4(3, 1, p, changed=True)] * 3,
     ["neigh_failed"] * 3 + ["hold_full"] * 2)

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
