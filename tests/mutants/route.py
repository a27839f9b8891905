#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
Would the tests of the router notice if it were wrong? Each mutant below is src/ with one line
changed for the worse. It is built in a folder of its own, and the unit tests of the router and the
conformance list (tests/net/forward_conformance.py) run over it until one fails: then the mutant is
killed. One that survives shows a hole in the tests.

route.py [-k DIR] [NAME...]: only the mutants whose names begin so. -k keeps DIR, a build to go on
with. Exit status 1 when one survives. Needs what the build needs, and scapy; no privileges.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
UNIT = ["route_tables", "route_forward", "route_variants", "fib"]
# As long as a mutant is looked for, not for the last fault.
os.environ.setdefault("HOLDOFF_FIB_OPS", "3000")
IP4, IP6, OUTPUT, LOCAL, HOLD, ICMP4, ICMP6, FRAG, OPTIONS, SLOW, ARP, ND, IFACE = (
    f"src/route/{f}.c" for f in (
        "ip4", "ip6", "output", "local", "hold", "icmp4", "icmp6", "frag",
        "ip4_options", "slow", "arp", "nd", "iface"))
AVX512, AVX2 = "src/route/fast_avx512.c", "src/route/fast_avx2.c"  # which one runs: the CPU says
# Where a line may stand in one of several files.
FAST = ("src/route/fast.c", "src/route/fast.h")
FIB4, FIB_NODE = "src/route/fib4.c", "src/route/fib_node.c"
APPLY = "src/cmd/forward_apply.c"

# name, file, what is there (once), what is there instead
MUTANTS = [
    # The fast path.
    ("fast-loopback-source", FAST, "|| (uint8_t)src == 127", "|| false"),
    ("fast-link-local-source", FAST, "(uint16_t)src == 0xfea9", "false"),
    ("fast-own-source-4", FAST, "return !(own->v4[bit / 64] >> (bit % 64) & 1);", "return true;"),
    ("fast-own-source-6", FAST, "return !(own->v6[bit / 64] >> (bit % 64) & 1);", "return true;"),
    ("fast-unspecified-source-6", FAST, "load64(ip + 8) == 0 || ", ""),
    ("fast-link-local-source-6", FAST, "ip[8] >= 0xfe", "ip[8] >= 0xff"),
    ("fast-group-source-6", FAST, "ip[8] >= 0xfe", "ip[8] == 0xfe"),
    ("fast-ttl-1-forwarded", FAST, "|| ip[8] <= 1", "|| ip[8] < 1"),
    ("fast-ttl-not-looked-at", FAST, "|| ip[8] <= 1", ""),
    ("fast-checksum-not-checked", FAST, "!sum_right(sum)", "false"),
    ("fast-checksum-carry-dropped", FAST, "sum += sum < first;", "(void)first;"),
    ("fast-checksum-word-left-out", FAST, " + load32(ip + 16) + load32(ip + 8)", " + load32(ip + 16)"),
    ("fast-checksum-becomes-ffff", FAST, ">= 0xfffe0000 ? 0x1ffff", ">= 0xffff0000 ? 0x1ffff"),
    ("fast-checksum-carry-early", FAST, ">= 0xfffe0000 ? 0x1ffff", ">= 0xfffd0000 ? 0x1ffff"),
    ("fast-length-beyond-frame-4", FAST, "bytes - PK_IPV4_BYTES > have - PK_IPV4_BYTES",
     "bytes < PK_IPV4_BYTES"),
    ("fast-length-below-header-4", FAST, "bytes - PK_IPV4_BYTES > have - PK_IPV4_BYTES",
     "bytes > have"),
    ("fast-mtu-ignored", FAST, "return load64(draft) <= nh->longest;", "return true;"),
    ("fast-down-interface", FAST, "return in && in->up ?", "return in ?"),
    ("fast-group-source", FAST, "(uint8_t)(src - 1) >= 223", "(uint8_t)(src - 1) >= 239"),
    ("fast-length-beyond-frame-6", FAST, "bytes > have || ip[6]", "ip[6]"),
    ("fast-hop-limit-1-forwarded", FAST, "ip[7] <= 1))", "ip[7] < 1))"),
    ("fast-hop-by-hop", FAST, "ip[6] == PK_IP_HOPOPTS ||", "false ||"),
    ("fast-ecmp-one-path", FAST, "h % RO_ECMP_BUCKETS", "h % 1"),
    # The longest prefix.
    ("fib4-other-next-hop", FIB4, "o->present & ((1ull << pos) - 1)", "o->present & ((2ull << pos) - 1)"),
    ("fib4-nothing-above", FIB4, "while ((at /= 2)) {", "while (false) {"),
    ("fib4-default-not-above", FIB4, "while ((at /= 2)) {", "while ((at /= 2) > 1) {"),
    ("fib-node-cover-stays", FIB_NODE, "if (owner_of(t, entry)->cover != cover)", "if (false)"),
    # What a router's file says.
    ("apply-prefix-not-cut", APPLY, "route->dst.addr.byte[b / 8] &= (uint8_t) ~(0x80 >> b % 8);", ";"),
    ("apply-no-link-local", APPLY, "f->addr[a].addr.family == RO_IPV6", "false"),
    ("apply-link-local-bit", APPLY, "mac[0] ^ 2", "mac[0]"),
    ("apply-steps-lose-carry", APPLY, "if (a->byte[b / 8] & (0x80 >> b % 8))\n\t\t\treturn;", "return;"),
    ("apply-mac-loses-carry", APPLY, "i-- > 3 && !++mac[i];", "i-- > 5 && !++mac[i];"),
    ("apply-repeat-steps-bits", APPLY, "step_addr(&route->dst.addr, route->dst.len);",
     "step_addr(&route->dst.addr, 32);"),
    ("fast512-loopback-source", AVX512, "good, first, all_of(127u << 24)",
     "good, first, all_of(126u << 24)"),
    ("fast512-ttl-1-forwarded", AVX512, "good, w[4], all_of(0xfe)", "good, w[4], all_of(0xff)"),
    ("fast512-checksum-not-checked", AVX512, "(good, sum, half)", "(good, half, half)"),
    ("fast512-hop-limit-1-forwarded", AVX512, "all_of(0xfe00)", "all_of(0xff00)"),
    ("fast512-own-source", AVX512, "product, o->own->near4", "product, o->own->near6"),
    ("fast2-loopback-source", AVX2, "first, all_of(127u << 24)", "first, all_of(126u << 24)"),
    ("fast2-ttl-1-forwarded", AVX2, "w[5], all_of(0xfe)", "w[5], all_of(0xff)"),
    ("fast2-checksum-not-checked", AVX2, "_mm256_xor_si256(sum, half)",
     "_mm256_xor_si256(half, half)"),
    ("fast-one-port-mtu", FAST, "l->longest > first->mtu + PK_ETH_BYTES", "false"),
    # IPv4.
    ("v4-checksum-not-checked", IP4, "pk_csum_fold(pk_csum(p->ip, header)) != 0xffff", "false"),
    ("v4-length-beyond-frame", IP4, "total < header || total > frame", "total < header"),
    ("v4-martian-class-e-source", IP4, "a[0] == 127 || a[0] >= 224", "a[0] == 127 || a[0] >= 240"),
    ("v4-broadcast-source", IP4, "if (kind == RO_NH_BROADCAST)", "if (false)"),
    ("v4-broadcast-frame-forwarded", IP4, "	if (p->group) {", "	if (false) {"),
    ("v4-link-local-source-forwarded", IP4, "if (link_local4(p->ip + 12))", "if (false)"),
    ("v4-prohibit-code", IP4, "ADMIN = 13", "ADMIN = 10"),
    ("v4-unreachable-code", IP4, "unreachable(w, p, HOST, NO_ROUTE6, RO_DROP_UNREACHABLE)",
     "unreachable(w, p, NET, NO_ROUTE6, RO_DROP_UNREACHABLE)"),
    ("v4-too-big-tells-no-mtu", IP4, "UNREACH, NEED_FRAG, nh->mtu)", "UNREACH, NEED_FRAG, 0)"),
    ("v4-df-ignored", IP4, "pk_load16(p->ip + 6) & PK_IPV4_DF", "false"),
    ("v4-options-not-checked", IP4, "(p->ip[0] & 15) > 5 && !options_good(w, p)", "false"),
    ("slow-ttl-1-forwarded", IP4, "? 8 : 7] <= 1)", "? 8 : 7] < 1)"),
    ("slow-ttl-not-counted", OUTPUT, "		p->ip[8]--;", "		;"),
    ("slow-checksum-not-updated", OUTPUT, "csum = pk_csum_update16(csum, old, new);", ";"),
    # IPv6.
    ("v6-too-big-wrong-mtu", IP4, "PACKET_TOO_BIG6, 0, nh->mtu)", "PACKET_TOO_BIG6, 0, 1280)"),
    ("v6-mapped-source", IP6, " || mapped(a);", ";"),
    ("v6-unspecified-source", IP6, "if (is_zero(src, 16)) {", "if (false) {"),
    ("v6-link-local-source-silent", IP6, "ro_icmp6_error(w, p, UNREACH, BEYOND_SCOPE, 0);", ";"),
    ("v6-unknown-option-pointer", IP6, "PARAMETER, UNKNOWN_OPTION, at)",
     "PARAMETER, UNKNOWN_OPTION, at + 1)"),
    ("v6-option-11-to-group", IP6, "type >> 6 == 3 && ip[24] != 0xff", "type >> 6 == 3"),
    ("v6-foreign-solicited-group", IP6, "if (!memcmp(p->in->addr[i].byte + 13, dst + 13, 3))",
     "if (true)"),
    # ICMP errors.
    ("icmp4-error-about-error", ICMP4, "|| is_error(p->ip[header])", ""),
    ("icmp4-error-about-fragment", ICMP4, "if (pk_load16(p->ip + 6) & PK_IPV4_FRAG_OFFSET)",
     "if (false)"),
    ("icmp4-unlimited", ICMP4, "if (at + w->icmp_gap_ns > w->now_ns + w->icmp_room_ns)",
     "if (false)"),
    ("icmp4-quotes-too-much", ICMP4, "#define ERROR_BYTES 576", "#define ERROR_BYTES 580"),
    ("icmp4-source-of-other", ICMP4, "memcpy(m + 12, src, 4);", "memcpy(m + 12, about->ip + 16, 4);"),
    ("icmp6-error-about-error", ICMP6, " || (t >= 0 && t < 128)", ""),
    ("icmp6-error-about-redirect", ICMP6, "t == REDIRECT || ", ""),
    ("icmp6-error-to-group", ICMP6, "(p->group || dst[0] == 0xff) && !group_too", "false"),
    ("icmp6-option-not-to-group", ICMP6, "(type == 4 && code == 2);", "false;"),
    ("icmp6-quotes-too-much", ICMP6, "#define ERROR_BYTES 1280", "#define ERROR_BYTES 1288"),
    ("icmp6-source-not-asked-address", ICMP6, "if (src && local)", "if (false)"),
    ("source-match-ignored", OUTPUT, "HO_MIN(common(a, dst, ro_addr_bytes(family)),",
     "HO_MIN(0u,"),
    ("source-match-beyond-prefix", OUTPUT, "(unsigned)iface->addr[i].len);", "128u);"),
    ("source-scope-ignored", OUTPUT, "score += 256;", "score += 0;"),
    ("source-preferred-ignored", OUTPUT, "if (nh->prefsrc.family == family)", "if (false)"),
    # Fragments, options.
    ("frag-offset-in-bytes", FRAG, "+ done / 8;", "+ done;"),
    ("frag-more-lost", FRAG, "|| more_after ?", "?"),
    ("frag-options-on-all", FRAG, "if (ip[i] & OPT_COPIED)", "if (true)"),
    ("frag-not-by-eights", FRAG, "& ~7u", "& ~3u"),
    ("option-record-twice", OPTIONS, "fault || seen_record++", "fault"),
    ("option-pointer-below", OPTIONS, "if (o[2] < first)", "if (false)"),
    ("option-source-route", OPTIONS, "if (ip[i + 2] <= len)", "if (false)"),
    ("option-stamp-overflow", OPTIONS, "o[2] > len && o[3] >> 4 == 15", "false"),
    ("option-record-moves-little", OPTIONS, "			o[2] = (uint8_t)(o[2] + 4);\n		} else",
     "			o[2] = (uint8_t)(o[2] + 3);\n		} else"),
    # Held packets.
    ("hold-unbounded-loses-order", HOLD, "if (h->packets == RO_HOLD_PACKETS)\n		drop_oldest(w, h);",
     "if (h->packets == RO_HOLD_PACKETS) {\n		ro_drop(w, p, RO_DROP_HOLD_FULL);\n		return;\n	}"),
    ("hold-failed-not-told", HOLD, "== RO_NEIGH_FAILED) {", "== RO_NEIGH_FAILED && false) {"),
    ("hold-for-ever", HOLD, "w->now_ns - h->since_ns >= HOLD_NS", "false"),
    ("hold-asks-once", HOLD, "w->now_ns - h->asked_ns >= ASK_NS", "false"),
    # Layer 2 and the router's own answers.
    ("l2-any-mac", SLOW, "if (!p->group && memcmp(p->l2, p->in->mac, 6) != 0)", "if (false)"),
    ("l2-two-tags", SLOW, "return *type == PK_ETH_VLAN ? 1 : ", "return "),
    ("echo-ttl-kept", LOCAL, "	p->ip[8] = OWN_TTL;", ""),
    ("echo-checksum-not-verified", LOCAL, "r == PK_CSUM_RESULT_OK || r == PK_CSUM_RESULT_NONE",
     "true"),
    ("echo-of-fragment", LOCAL, "if (pk_load16(p->ip + 6) & (PK_IPV4_MF | PK_IPV4_FRAG_OFFSET))",
     "if (false)"),
    ("routing-header-accepted", LOCAL, "next == PK_IP_ROUTING && p->ip[at + 3] != 0", "false"),
    ("atomic-fragment-refused", LOCAL, "0xfff9)", "0xffff || true)"),
    ("arp-answers-for-others", ARP, "ours = ro_iface_owns(in, RO_IPV4, a + 24);", "ours = true;"),
    ("arp-off-link-believed", ARP, "if (!probe && !ro_iface_on_link(in, RO_IPV4, a + 14))",
     "if (false)"),
    ("arp-group-sender", ARP, "!(a[8] & 1) && ", ""),
    ("nd-hop-limit-not-255", ND, "p->ip[7] != 255 || ", ""),
    ("nd-probe-answered-solicited", ND, "(probe ? 0 : RO_ND_SOLICITED)", "RO_ND_SOLICITED"),
    ("nd-probe-with-option", ND, "|| mac)) ||", ")) ||"),
    ("nd-solicited-to-group", ND, "(p->ip[24] == 0xff && flags & RO_ND_SOLICITED) ||", "false ||"),
    ("on-link-ignores-last-bits", IFACE, "(!rest || !((a[whole] ^ b[whole]) >> (8 - rest)))",
     "true"),
]


def quiet(command, cwd, limit):
    """Exit status and output; a mutant that hangs has failed."""
    try:
        r = subprocess.run(command, cwd=cwd, timeout=limit, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, check=False)
    except subprocess.TimeoutExpired:
        return 124, f"no end within {limit} s"
    return r.returncode, r.stdout


def build(scratch):
    targets = ["holdoff"] + [f"tests/unit/test_{t}" for t in UNIT]
    return quiet(["ninja", "-C", "build"] + targets, scratch, 600)


def failing(scratch):
    """The first test that fails, and what it says; None when all pass."""
    for test in UNIT:
        rc, said = quiet([f"build/tests/unit/test_{test}"], scratch, 120)
        if rc:
            line = [s for s in said.splitlines() if "FAILED" in s] or [f"status {rc}"]
            return f"unit/{test}: {line[0].split('] ')[-1].strip()}"
    os.environ["HOLDOFF"] = os.path.join(scratch, "build/holdoff")
    rc, said = quiet(["tests/net/forward_conformance.py", "-x"], scratch, 300)
    if rc:
        line = [s for s in said.splitlines() if s.startswith("FAIL")] or [f"status {rc}"]
        return "conformance: " + line[0].removeprefix("FAIL ").split(" (")[0]
    return None


def prepare(scratch):
    files = subprocess.run(["git", "ls-files", "-z"], cwd=TOP, capture_output=True, check=True)
    for name in files.stdout.decode().split("\0"):
        source, target = os.path.join(TOP, name), os.path.join(scratch, name)
        if not name or not os.path.isfile(source):
            continue
        os.makedirs(os.path.dirname(target), exist_ok=True)
        # What has not changed keeps its time, so that a kept build goes on where it was.
        if not os.path.exists(target) or open(source, "rb").read() != open(target, "rb").read():
            shutil.copy(source, target)
    if not os.path.exists(os.path.join(scratch, "build/build.ninja")):
        rc, said = quiet(["meson", "setup", "build"], scratch, 300)
        if rc:
            raise SystemExit(said)
    rc, said = build(scratch)
    if rc:
        raise SystemExit(said)
    bad = failing(scratch)
    if bad:
        raise SystemExit(f"without any mutation a test fails: {bad}")


def place(scratch, name, paths, old):
    """The file that has the line, and its text."""
    found, times = None, 0
    for path in [paths] if isinstance(paths, str) else paths:
        target = os.path.join(scratch, path)
        if not os.path.exists(target):
            continue
        with open(target, encoding="utf-8") as f:
            text = f.read()
        if old in text:
            found, times = (target, text), times + text.count(old)
    if times != 1:
        raise SystemExit(f"{name}: {paths} has {times} times '{old}', not once")
    return found


def one(scratch, name, path, old, new):
    """The verdict about a mutant: how it was killed, or None."""
    target, text = place(scratch, name, path, old)
    try:
        with open(target, "w", encoding="utf-8") as f:
            f.write(text.replace(old, new))
        rc, said = build(scratch)
        if rc:
            raise SystemExit(f"{name} does not build:\n{said[-2000:]}")
        return failing(scratch)
    finally:
        with open(target, "w", encoding="utf-8") as f:
            f.write(text)


def main(args):
    keep = None
    if args[:1] == ["-k"]:
        keep, args = args[1], args[2:]
    scratch = keep or tempfile.mkdtemp(prefix="holdoff-mutants-")
    survived = []
    try:
        prepare(scratch)
        chosen = [m for m in MUTANTS if not args or any(m[0].startswith(a) for a in args)]
        for m in chosen:
            began = time.monotonic()
            killed = one(scratch, *m)
            print(f"{'killed  ' if killed else 'SURVIVED'} {m[0]:32} {killed or ''} "
                  f"({time.monotonic() - began:.0f} s)", flush=True)
            if not killed:
                survived.append(m[0])
    finally:
        if not keep:
            shutil.rmtree(scratch)
    print(f"{len(chosen)} mutants, {len(survived)} survived {' '.join(survived)}")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
