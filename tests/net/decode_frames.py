#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Every kind of frame that gen can make, decoded by tshark and scapy.

    holdoff gen --> capture file --> tshark: no malformed packet, every checksum good
                                 --> scapy:  the fields are those asked for, and the frame that
                                             scapy builds from them is the same to the byte
"""
import ipaddress
import os
import shutil
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HOLDOFF = os.environ.get("HOLDOFF", os.path.join(TOP, "build", "holdoff"))

if not os.access(HOLDOFF, os.X_OK):
    print(f"no {HOLDOFF}")
    sys.exit(77)
if not shutil.which("tshark"):
    print("no tshark")
    sys.exit(77)
try:
    from scapy.all import (ICMP, IP, TCP, UDP, Dot1AD, Dot1Q, Ether, ICMPv6EchoRequest, IPv6,
                           PcapReader, conf)
except ImportError:
    print("no scapy for /usr/bin/python3")
    sys.exit(77)
conf.verb = 0


def udp(packet):
    return packet[UDP]


# Options of gen, and what must hold for frame i: (name, options, function of scapy's packet and i).
CASES = [
    ("udp4", ["--size=60", "--src-port=1000-1099", "--dst-port=9"],
     lambda p, i: udp(p).sport == 1000 + i % 100 and udp(p).dport == 9 and len(p) == 60),
    ("udp4-odd-lengths", ["--size=61-161", "--payload=random", "--ip-id=0-65535"],
     lambda p, i: len(p) == 61 + i % 101 and p[IP].id == i and udp(p).len == 27 + i % 101),
    ("udp4-unstamped", ["--size=60-99", "--stamp=no", "--payload=text:holdoff"],
     lambda p, i: bytes(udp(p).payload).startswith(b"holdoffholdoff")),
    ("udp4-no-checksum", ["--udp-checksum=no", "--ip-src=10.1.0.0/16"],
     lambda p, i: udp(p).chksum == 0 and p[IP].src == str(ipaddress.ip_address("10.1.0.0") + i)),
    ("udp4-all-fields", ["--tos=0-255", "--ttl=1-255", "--df=yes", "--ip-dst=10.0.0.9-10.0.0.1 step 4",
                         "--eth-src=02:00:00:00:01:00-02:00:00:00:01:ff"],
     lambda p, i: p[IP].tos == i % 256 and p[IP].ttl == 1 + i % 255 and p[IP].flags == "DF" and
     p[IP].dst == "10.0.0.%d" % (9, 5, 1)[i % 3] and p.src == "02:00:00:00:01:%02x" % (i % 256)),
    ("imix", ["--size=imix"], lambda p, i: len(p) in (60, 590, 1514)),
    ("random", ["--size=random 60-1514", "--src-port=random 1-65535", "--ip-src=random 10.0.0.0/8",
                "--seed=5"],
     lambda p, i: 60 <= len(p) <= 1514 and p[IP].src.startswith("10.")),
    ("udp6", ["--ip-src=2001:db8::/64", "--ip-dst=2001:db8::1,fe80::2", "--flow-label=0-1048575",
              "--tos=7", "--ttl=3", "--size=79-90"],
     lambda p, i: p[IPv6].src == str(ipaddress.ip_address("2001:db8::") + i) and
     p[IPv6].dst == ("2001:db8::1", "fe80::2")[i % 2] and p[IPv6].fl == i and p[IPv6].tc == 7 and
     p[IPv6].hlim == 3),
    ("tcp4", ["--proto=tcp", "--tcp-flags=SA", "--tcp-seq=0-4294967295 step 1460", "--size=70-101",
              "--tcp-ack=9", "--tcp-window=random 0-65535"],
     lambda p, i: p[TCP].flags == "SA" and p[TCP].seq == i * 1460 and p[TCP].ack == 9),
    # One flow: the receiver's GRO keeps the order within a flow only.
    ("tcp6", ["--proto=tcp", "--ip-src=fd00::1", "--ip-dst=fd00::2", "--tcp-ack=80,443 every 5"],
     lambda p, i: p[TCP].ack == (80, 443)[i // 5 % 2]),
    ("icmp", ["--proto=icmp", "--icmp-seq=0-65535", "--icmp-id=77", "--size=61"],
     lambda p, i: p[ICMP].type == 8 and p[ICMP].seq == i and p[ICMP].id == 77),
    ("icmpv6", ["--proto=icmp", "--ip-dst=fd00::2", "--ip-src=fd00::1", "--icmp-seq=0-65535"],
     lambda p, i: p[ICMPv6EchoRequest].seq == i),
    ("vlan", ["--vlan=1-4094", "--vlan-pcp=0-7", "--vlan-dei=0-1"],
     lambda p, i: p[Dot1Q].vlan == 1 + i % 4094 and p[Dot1Q].prio == i % 8 and
     p[Dot1Q].id == i % 2 and UDP in p),
    ("two-tags", ["--vlan=100", "--vlan2=200,300", "--vlan2-pcp=5", "--ip-dst=fd00::2",
                  "--ip-src=fd00::1"],
     lambda p, i: p[Dot1AD].vlan == 100 and p[Dot1Q].vlan == (200, 300)[i % 2] and
     p[Dot1Q].prio == 5 and UDP in p),
    ("other-protocol", ["--proto=253", "--payload=counting"], lambda p, i: p[IP].proto == 253),
    ("ethernet", ["--ethertype=0x88b5", "--size=60-64", "--payload=hex:c0ffee"],
     lambda p, i: p.type == 0x88B5 and len(p) == 60 + i % 5),
    ("jumbo", ["--size=9000-9018", "--payload=random"], lambda p, i: len(p) == 9000 + i % 19),
    ("largest", ["--size=65549", "--proto=tcp", "--payload=random"],
     lambda p, i: p[IP].len == 65535),
]
COUNT = 300
GOOD = "1"  # of Wireshark's checksum statuses
FIELDS = ["frame.number", "_ws.malformed", "ip.checksum.status", "udp.checksum.status",
          "tcp.checksum.status", "icmp.checksum.status", "icmpv6.checksum.status"]


def run_tshark(path):
    command = ["tshark", "-n", "-r", path, "-o", "ip.check_checksum:TRUE",
               "-o", "udp.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE",
               "-T", "fields", "-E", "separator=|"]
    for field in FIELDS:
        command += ["-e", field]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [dict(zip(FIELDS, line.split("|"))) for line in out.splitlines()]


def check_tshark(name, rows):
    """Returns the number of good checksums and what is wrong in the rows of run_tshark."""
    good, wrong = 0, []
    if len(rows) != COUNT:
        wrong.append(f"tshark sees {len(rows)} of {COUNT} frames")
    for row in rows:
        number = row["frame.number"]
        if row["_ws.malformed"]:
            wrong.append(f"frame {number} is malformed to tshark")
        for field in FIELDS[2:]:
            status = row[field]
            if name == "udp4-no-checksum" and field == "udp.checksum.status":
                if status == GOOD:
                    wrong.append(f"frame {number} has a UDP checksum")
            elif status and status != GOOD:
                wrong.append(f"frame {number}: {field} = {status}")
            elif status:
                good += 1
    return good, wrong


def rebuilt(packet):
    """The frame as scapy would make it: lengths and checksums its own."""
    copy = packet.copy()
    for layer, fields in ((IP, ("len", "chksum", "ihl")), (IPv6, ("plen",)),
                          (UDP, ("len", "chksum")), (TCP, ("chksum", "dataofs")),
                          (ICMP, ("chksum",)), (ICMPv6EchoRequest, ("cksum",))):
        if layer in copy:
            for field in fields:
                copy[layer].delfieldval(field)
    return bytes(copy)


def check_scapy(name, reader, holds):
    """What is wrong in the next COUNT frames of the reader."""
    wrong = []
    for i in range(COUNT):
        # Iterating would cut frames at 65535 bytes.
        packet = reader.read_packet(size=1 << 18)
        if not holds(packet, i):
            wrong.append(f"frame {i} is not what was asked for: {packet.summary()}")
        if name != "udp4-no-checksum" and rebuilt(packet) != bytes(packet):
            wrong.append(f"frame {i} differs from scapy's: {packet.summary()}")
    return wrong


def main():
    failed = 0
    with tempfile.TemporaryDirectory(prefix="holdoff-decode-") as folder:
        for name, options, holds in CASES:
            path = os.path.join(folder, name + ".pcap")
            gen = subprocess.run([HOLDOFF, "gen", "pcap:" + path, f"--count={COUNT}", "--quiet",
                                  *options], capture_output=True, text=True, timeout=200)
            if gen.returncode:
                print(f"FAIL {name}: gen: {gen.stderr.strip()}")
                failed += 1
                continue
            good, wrong = check_tshark(name, run_tshark(path))
            with PcapReader(path) as reader:
                wrong += check_scapy(name, reader, holds)
            os.unlink(path)
            if not good and name != "ethernet":
                wrong.append("tshark checked no checksum at all")
            print(f"{'FAIL' if wrong else 'ok  '} {name}: {COUNT} frames, {good} checksums good")
            for line in wrong[:5]:
                print("     " + line)
            failed += bool(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
