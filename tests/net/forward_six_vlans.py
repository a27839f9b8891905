#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
The published forwarding set-up (data/router/six-vlans.yaml): 64-byte IPv6 packets between six VLANs
on one port, 200 random addresses in each, all thirty ways.

    generator --(tags 101-106)--> trunk | holdoff forward | trunk --(tags 101-106)--> checked here

Every packet must come out once, with the tag and the Ethernet address of its destination, a hop
less, and nothing else changed.
"""
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import socket

HERE = os.path.dirname(os.path.abspath(__file__))
HOLDOFF = os.environ.get("HOLDOFF", os.path.join(HERE, "../../build/holdoff"))
CONFIG = os.path.join(HERE, "../../data/router/six-vlans.yaml")
ROUTER = bytes.fromhex("020000001000")
PACKETS = 12000


def hosts():
    """[(vlan, address, MAC)] of the file."""
    out, vlan = [], None
    for line in open(CONFIG, encoding="utf-8"):
        tag = re.search(r"vlan: (\d+)", line)
        host = re.search(r'address: "([^"]+)", mac: "([^"]+)"', line)
        if tag:
            vlan = int(tag.group(1))
        if host:
            out.append((vlan, socket.inet_pton(socket.AF_INET6, host.group(1)),
                        bytes.fromhex(host.group(2).replace(":", ""))))
    return out


def frame(src, dst, n):
    """64 bytes with FCS: 60 of tag, IPv6 and a payload of two bytes that says which packet it is."""
    ip = struct.pack("!IHBB", 6 << 28, 2, 253, 64) + src[1] + dst[1]
    return ROUTER + src[2] + struct.pack("!HHH", 0x8100, src[0], 0x86dd) + ip + \
        struct.pack("!H", n)


def write_pcap(path, frames):
    with open(path, "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
        for i, data in enumerate(frames):
            f.write(struct.pack("<IIII", 0, i, len(data), len(data)) + data)


def read_pcap(path):
    data = open(path, "rb").read()
    at, out = 24, []
    while at < len(data):
        size = struct.unpack("<I", data[at + 8:at + 12])[0]
        out.append(data[at + 16:at + 16 + size])
        at += 16 + size
    return out


def main():
    all_hosts, rnd = hosts(), random.Random(2)
    assert len(all_hosts) == 1200, len(all_hosts)
    sent, want, ways = [], {}, set()
    for n in range(PACKETS):
        src, dst = rnd.choice(all_hosts), rnd.choice(all_hosts)
        while dst[0] == src[0]:
            dst = rnd.choice(all_hosts)
        f = frame(src, dst, n)
        sent.append(f)
        ways.add((src[0], dst[0]))
        want[n] = dst[2] + ROUTER + struct.pack("!HHH", 0x8100, dst[0], 0x86dd) + f[18:25] + \
            bytes([63]) + f[26:]
    assert len(ways) == 30
    where = tempfile.mkdtemp(prefix="holdoff-six-vlans-")
    try:
        write_pcap(f"{where}/in.pcap", sent)
        with open(CONFIG, encoding="utf-8") as f:
            text = f.read().replace(
                "{name: trunk}",
                f'{{name: trunk, receive: "pcap:{where}/in.pcap", send: "pcap:{where}/out.pcap"}}')
        with open(f"{where}/router.yaml", "w", encoding="utf-8") as f:
            f.write(text)
        r = subprocess.run([HOLDOFF, "forward", "-f", f"{where}/router.yaml", "-j"],
                           capture_output=True, text=True, timeout=300, check=False)
        if r.returncode != 0:
            print(r.stderr)
            return 1
        report = json.loads(r.stdout)
        for got in read_pcap(f"{where}/out.pcap"):
            n = struct.unpack("!H", got[58:60])[0]
            if want.pop(n, None) != got:
                print(f"packet {n} came out wrong or twice: {got.hex()}")
                return 1
        if want or report["drops"] or not report["balanced"] or report["fast_path"] < 0.98 * PACKETS:
            print(f"{len(want)} missing; {report}")
            return 1
    finally:
        shutil.rmtree(where)
    print(f"{PACKETS} packets, {len(ways)} ways, all as they should be")
    return 0


if __name__ == "__main__":
    sys.exit(main())
