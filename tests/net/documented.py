#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
The same options are in a command's --help, in its manual page and in bash's completion, and none in one
of them alone. Every example of a manual page is a command that is understood: what needs no hardware
runs as it is written, for half a second at most; an interface is one that is not there, and must be what is
complained about. No privileges.
"""
import concurrent.futures
import glob
import os
import re
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HOLDOFF = os.path.abspath(os.environ.get("HOLDOFF", os.path.join(TOP, "build/holdoff")))
# Commands of commands, where each has options of its own; "" are those of the command itself.
SUB = {"fib": ["load", "lookup", "bench"], "lab": ["", "exam"]}
# Pages to which others refer for options.
REFERS = {"rr": "gen", "tune": "sweep"}
ROUTER = """
ports:
  - {name: p0}
  - {name: p1}
interfaces:
  - {port: p0, addresses: [192.0.2.1/24]}
  - {port: p1, addresses: [198.51.100.1/24]}
"""
# Every program has them.
ALL_HAVE = {"--help", "--usage", "--version"}
failed = 0


def fail(text):
    global failed
    failed += 1
    print("FAILED:", text)


def said(*args):
    return subprocess.run([HOLDOFF, *args], capture_output=True, text=True, timeout=60, check=False).stdout


def helped(command, sub):
    """Long options where --help lists them, not where it talks of them."""
    found = set()
    for line in said(*[command, sub, "--help"] if sub else [command, "--help"]).splitlines():
        m = re.match(r" {2,6}(-[a-zA-Z?], )?(--[a-z].*)", line)
        if m:
            found.update(re.findall(r"--[a-z][a-z0-9-]*", re.split(r" {2,}", m.group(2))[0]))
    return found - ALL_HAVE


def page(command):
    with open(f"{TOP}/man/holdoff-{command}.8", encoding="utf-8") as f:
        return f.read()


def named(text):
    return {"-" + o for o in re.findall(r"(?:\bFl|^\.It Fl . ,|\bFl . ,) (-[a-z][a-z0-9-]*)", text)}


def completed(command, sub, word):
    words = [w for w in (command, sub) if w]
    script = ('. "$1"; shift; COMP_WORDS=(holdoff "$@"); COMP_CWORD=$#; compopt() { :; }; '
              '_holdoff; printf "%s\\n" "${COMPREPLY[@]}"')
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(HOLDOFF, folder + "/holdoff")
        r = subprocess.run(["bash", "-c", script, "-", TOP + "/scripts/completion.bash", *words, word],
                           env={**os.environ, "PATH": folder + ":" + os.environ["PATH"]},
                           capture_output=True, text=True, timeout=60, check=False)
    return {w.rstrip("=") for w in r.stdout.split()} - ALL_HAVE


def options(commands):
    for command in commands:
        text, every = page(command), set()
        others = named(page(REFERS[command])) if command in REFERS else set()
        for sub in SUB.get(command, [""]):
            helps = helped(command, sub)
            words = " ".join(["holdoff", command, sub]).strip()
            if not said(*words.split()[1:], "--help").startswith(f"Usage: {words} "):
                fail(f"'{words} --help' is the usage of another command")
            every |= helps
            if helps != completed(command, sub, "--"):
                fail(f"{command} {sub}: --help lists {sorted(helps)}, "
                     f"completion gives {sorted(completed(command, sub, '--'))}")
        for option in sorted(every - named(text) - others):
            fail(f"{command}: {option} is not in holdoff-{command}(8)")
        listed = named("\n".join(re.findall(r"^\.It (Fl .*)$", text, re.M)))
        for option in sorted(listed - every):
            fail(f"holdoff-{command}(8) lists {option}, which --help does not")
    return len(commands)


def examples():
    """Of all pages: one command each, as it stands there."""
    found = []
    for path in sorted(glob.glob(TOP + "/man/*.8")):
        with open(path, encoding="utf-8") as f:
            part = re.search(r"^\.Sh EXAMPLES\n(.*?)^\.Sh ", f.read(), re.M | re.S)
        if not part:
            continue
        text = part.group(1).replace("\\e\n", "\\\n")
        found += re.findall(r"^\.Dl (.*)$", text, re.M)
        for block in re.findall(r"^\.Bd.*?\n(.*?)^\.Ed", text, re.M | re.S):
            found += re.split(r"\n(?! )", block.strip())
    return found


def run(found):
    # What is not ours may not be installed here.
    ours = [e for e in found if not re.search(r"\bparallel\b|SLURM", e)]
    may = os.geteuid() == 0 and subprocess.run(["unshare", "-n", "true"], check=False).returncode == 0
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(HOLDOFF, folder + "/holdoff")
        with open(folder + "/router.yaml", "w", encoding="utf-8") as f:
            f.write(ROUTER)
        env = {**os.environ, "PATH": folder + ":" + os.environ["PATH"], "HOLDOFF_DATA": TOP + "/data"}

        def one(example):
            command = re.sub(r"\beth([0-9])\b", r"nosuch\1", example)
            # What makes interfaces does so in a namespace of its own.
            if "tap:" in command:
                if not may:
                    return
                command = "unshare -n " + command
            # Its end by a signal is an end as any other. A complaint is waited for.
            limit = "25" if "nosuch" in command else "0.5"
            r = subprocess.run(["timeout", "-s", "INT", "-k", "30", limit, "bash", "-o", "pipefail", "-c", command],
                               cwd=folder, env=env, capture_output=True, text=True, timeout=60, check=False,
                               stdin=subprocess.DEVNULL)
            says = r.stderr.strip()
            if "nosuch" in command:
                if r.returncode == 0 or not re.search(r"no (such )?interface|does not exist", says):
                    fail(f"'{example}': status {r.returncode}: {says}")
            elif r.returncode not in (0, 124) or re.search("Try `holdoff", says):
                fail(f"'{example}': status {r.returncode}: {says}")

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(one, ours))
    print(f"{len(ours)} examples")


def main():
    if not os.access(HOLDOFF, os.X_OK):
        print(f"{HOLDOFF} is not built")
        return 77
    commands = re.findall(r"^  ([a-z]+) .*", said("--help"), re.M)
    if len(commands) < 10:
        fail(f"'holdoff --help' lists {commands}")
    for command, subs in SUB.items():
        if not set(filter(None, subs)) <= completed(command, "", ""):
            fail(f"completion does not know the commands of '{command}'")
    n = options(commands)
    found = examples()
    if len(found) < 20:
        fail(f"only {len(found)} examples were found")
    run(found)
    print(f"{n} commands, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
