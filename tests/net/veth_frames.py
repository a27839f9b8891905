#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Every kind of frame that gen can make, over a real link, as tcpdump sees it on the other side.

     namespace A                     namespace B
    +------------------+            +---------------------------------+
    | holdoff gen      |--- veth ---| tcpdump -w FILE                 |
    |  packet:fa xdp:fa|            |   --> tshark, scapy (see        |
    +------------------+            |       decode_frames.py)         |
                                    +---------------------------------+

The MTU is the largest that veth has, so that the longest frames pass too.
"""
import json
import os
import subprocess
import sys
import tempfile
import time

import decode_frames as decode

A, B = f"hf{os.getpid()}a", f"hf{os.getpid()}b"
PORTS = ["packet:fa", "packet:fa,tx=ring", "xdp:fa", "xdp:fa,tx=live"]
COUNT = 20
# AF_XDP carries a frame in at most 18 buffers (MAX_SKB_FRAGS + 1), live frames in one page.
LIMITS = {"packet:fa,tx=ring": 9100, "xdp:fa": 9100, "xdp:fa,tx=live": 3000}
ADDRESS = "02:00:00:0f:0a:07"  # of fa: the source where no other is given
LONGEST = {"jumbo": 9018, "largest": 65549}


def sh(command):
    subprocess.run(command, shell=True, check=True, stdout=subprocess.DEVNULL)


def wait_for_link():
    """The kernel gives an interface its queue some time after its carrier, and drops all until then."""
    end = time.time() + 60
    while time.time() < end:
        says = subprocess.run(f"ip -n {A} link show fa && ip -n {B} link show fb", shell=True,
                              capture_output=True, text=True, check=True).stdout
        if says.count("LOWER_UP") == 2 and "qdisc noop" not in says:
            return
        time.sleep(0.05)
    raise SystemExit("the link does not come up")


def file_bytes(path):
    return os.path.getsize(path) if os.path.exists(path) else 0


def capture(port, cases, path):
    """All kinds of frames, one after the other, as tcpdump sees them. What is wrong, or None."""
    dump = subprocess.Popen(["ip", "netns", "exec", B, "tcpdump", "-U", "-s", "262144", "-B",
                             "65536", "-i", "fb", "-Z", "root", "-w", path],
                            stderr=subprocess.PIPE, text=True)
    want = 24
    try:
        if not any("listening on" in line for line in dump.stderr):
            return "tcpdump does not start"
        for name, options, _ in cases:
            gen = subprocess.run(["ip", "netns", "exec", A, decode.HOLDOFF, "gen", port, "-j",
                                  f"--count={COUNT}", "--rate=10kpps", *options],
                                 capture_output=True, text=True, timeout=200)
            if gen.returncode:
                return f"{name}: gen: {gen.stderr.strip()}"
            want += json.loads(gen.stdout)["tx_bytes"] + 16 * COUNT
        end = time.time() + 60
        while file_bytes(path) < want and time.time() < end:
            time.sleep(0.05)
        return f"{want} bytes sent, {file_bytes(path)} seen" if file_bytes(path) != want else None
    finally:
        dump.terminate()
        dump.wait()


def check(port, folder):
    cases = [case for case in decode.CASES if LONGEST.get(case[0], 0) <= LIMITS.get(port, 1 << 20)]
    path = os.path.join(folder, "seen.pcap")
    error = capture(port, cases, path)
    if error:
        print(f"FAIL {port}: {error}")
        return 1
    rows = decode.run_tshark(path)
    failed = good_in_all = 0
    with decode.PcapReader(path) as reader:
        for i, (name, options, holds) in enumerate(cases):
            good, wrong = decode.check_tshark(name, rows[i * COUNT:(i + 1) * COUNT])
            given = any(option.startswith("--eth-src") for option in options)
            wrong += decode.check_scapy(name, reader, lambda p, i: holds(p, i) and
                                        (given or p.src == ADDRESS))
            good_in_all += good
            if not good and name != "ethernet":
                wrong.append("tshark checked no checksum at all")
            for line in wrong[:5]:
                print(f"FAIL {port} {name}: {line}")
            failed += bool(wrong)
    os.unlink(path)
    print(f"{port}: {len(cases) - failed} of {len(cases)} kinds of frames right, "
          f"{good_in_all} checksums good")
    return failed


def main():
    if os.getuid() != 0:
        print("needs root")
        return 77
    decode.COUNT = COUNT
    try:
        try:
            sh(f"ip netns add {A} && ip netns add {B}")
        except subprocess.CalledProcessError:
            print("no network namespaces")
            return 77
        for space in (A, B):
            sh(f"ip netns exec {space} sysctl -qw net.ipv6.conf.default.disable_ipv6=1")
        sh(f"ip link add fa netns {A} address {ADDRESS} mtu 65535 type veth peer name fb netns {B} mtu 65535")
        sh(f"ip -n {A} link set fa up && ip -n {B} link set fb up")
        wait_for_link()
        # Without it the peer takes no live frames.
        sh(f"ip netns exec {B} ethtool -K fb gro on")
        failed = 0
        with tempfile.TemporaryDirectory(prefix="holdoff-veth-") as folder:
            for port in PORTS:
                # What AF_XDP and live frames can send depends on the MTU.
                mtu = min(LIMITS.get(port, 65535), 65535) if "xdp" in port or "ring" in port else 65535
                sh(f"ip -n {A} link set fa mtu {mtu}")
                failed += check(port, folder)
        return 1 if failed else 0
    finally:
        for space in (A, B):
            subprocess.run(["ip", "netns", "del", space], stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    sys.exit(main())
