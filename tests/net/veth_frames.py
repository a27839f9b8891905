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
import os
import subprocess
import sys
import tempfile
import time

import decode_frames as decode

A, B = f"hf{os.getpid()}a", f"hf{os.getpid()}b"
PORTS = ["packet:fa", "packet:fa,tx=ring", "xdp:fa", "xdp:fa,tx=live"]
COUNT = 40
# AF_XDP carries a frame in at most 18 buffers (MAX_SKB_FRAGS + 1), live frames in one page.
LIMITS = {"packet:fa,tx=ring": 9100, "xdp:fa": 9100, "xdp:fa,tx=live": 3000}
LONGEST = {"jumbo": 9018, "largest": 65549}


def sh(command):
    subprocess.run(command, shell=True, check=True, stdout=subprocess.DEVNULL)


def in_b(command):
    return subprocess.Popen(["ip", "netns", "exec", B, *command], stderr=subprocess.PIPE, text=True)


def frames_in(path):
    out = subprocess.run(["capinfos", "-rcMT", path], capture_output=True, text=True)
    return int(out.stdout.split()[-1]) if out.returncode == 0 and out.stdout.split() else 0


def capture(port, options, path):
    """gen's frames as tcpdump wrote them; what is wrong, or None."""
    dump = in_b(["tcpdump", "-U", "-s", "262144", "-B", "65536", "-i", "fb", "-Z", "root", "-w", path])
    try:
        if "listening on" not in dump.stderr.readline() + dump.stderr.readline():
            return "tcpdump does not start"
        gen = subprocess.run(["ip", "netns", "exec", A, decode.HOLDOFF, "gen", port, "--quiet",
                              f"--count={COUNT}", "--rate=10kpps", *options],
                             capture_output=True, text=True, timeout=60)
        if gen.returncode:
            return "gen: " + gen.stderr.strip()
        end = time.time() + 10
        while frames_in(path) < COUNT and time.time() < end:
            time.sleep(0.05)
    finally:
        dump.terminate()
        dump.wait()
    return None


def check(port, folder):
    failed = good_in_all = kinds = 0
    for name, options, holds in decode.CASES:
        if LONGEST.get(name, 0) > LIMITS.get(port, 1 << 20):
            continue
        path = os.path.join(folder, name + ".pcap")
        if "live" in port and name == "jumbo":
            continue
        error = capture(port, options, path)
        wrong = [error] if error else []
        if not error:
            good, wrong = decode.check_tshark(name, path)
            wrong += decode.check_scapy(name, path, holds) if not wrong else []
            good_in_all += good
            os.unlink(path)
        kinds += 1
        if wrong:
            print(f"FAIL {port} {name}")
            for line in wrong[:5]:
                print("     " + line)
        failed += bool(wrong)
    print(f"{port}: {kinds - failed} of {kinds} kinds of frames right, {good_in_all} checksums good")
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
        sh(f"ip link add fa netns {A} mtu 65535 type veth peer name fb netns {B} mtu 65535")
        sh(f"ip -n {A} link set fa up && ip -n {B} link set fb up")
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
