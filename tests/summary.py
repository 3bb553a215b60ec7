# SPDX-License-Identifier: BSD-3-Clause
"""Runs the tests of one build folder, counts them, and shows what those that failed said.

usage: summary.py NAME FOLDER COMMAND...
COMMAND runs in FOLDER and is a meson test. "PASSED FAILED SKIPPED" as numbers is left in
FOLDER/meson-logs/counts, and the end of what those that failed said in failures beside it,
for the end of a run of several builds. Whatever is neither passed nor skipped has failed: a
time-out, an error, an interrupt, an unexpected pass.

A suite's seconds are held against the budget that tests/meson.build gives it. One that takes
more than twice that counts as one more failure; where other programs took a part of the
processors, in as much more time as is fair.
"""
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import time

TAIL_LINES = 60
EXCESS = 2


def busy_seconds():
    """What all programs together, and the machine's host, took of the processors so far."""
    with open("/proc/stat", encoding="ascii") as f:
        user, nice, system, _, _, _, _, steal = map(int, f.readline().split()[1:9])
    return (user + nice + system + steal) / os.sysconf("SC_CLK_TCK")


def run(folder, command):
    """Its status, and the share of the processors that others took meanwhile."""
    began, busy = time.monotonic(), busy_seconds()
    status = subprocess.run(command, cwd=folder, check=False).returncode
    own = resource.getrusage(resource.RUSAGE_CHILDREN)
    others = busy_seconds() - busy - own.ru_utime - own.ru_stime
    share = others / ((time.monotonic() - began) * os.cpu_count())
    return status, min(max(share, 0), 0.9)


def shares(spans):
    """The seconds of each suite; of those in which several tests ran, each has its part."""
    edges = sorted({t for of_suite in spans.values() for span in of_suite for t in span})
    seconds = dict.fromkeys(spans, 0)
    for start, end in zip(edges, edges[1:]):
        at_work = {
            suite: sum(s <= start and end <= e for s, e in of_suite)
            for suite, of_suite in spans.items()
        }
        for suite, tests in at_work.items():
            if tests:
                seconds[suite] += (end - start) * tests / sum(at_work.values())
    return seconds


def late(name, budgets, spans, others):
    """Tells what each suite took; a sentence for each that took too long."""
    failures = []
    for suite, took in shares(spans).items():
        told = (
            f"{name}: suite {suite} took {took:.0f} s, its budget is {budgets[suite]} s, "
            f"others had {others:.0%} of the processors"
        )
        if took * (1 - others) > EXCESS * budgets[suite]:
            failures.append(f"failed: {told}: too long")
        print(told)
    return failures


def main():
    name, folder, command = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
    budget = (folder / "tests" / "budget.h").read_text(encoding="ascii")
    budgets = {suite: int(s) for suite, s in re.findall(r"^#define (\w+) (\d+)$", budget, re.M)}
    logs = folder / "meson-logs"
    for old in ("testlog.json", "counts", "failures"):
        (logs / old).unlink(missing_ok=True)
    status, others = run(folder, command)
    with open(logs / "testlog.json", encoding="utf-8") as f:
        results = [json.loads(line) for line in f if line.strip()]
    passed = skipped = 0
    failures = []
    spans = {}
    for r in results:
        suite = r["name"].split(" / ")[0].split(":")[-1]
        spans.setdefault(suite, []).append((r["starttime"], r["starttime"] + r["duration"]))
        if r["result"] in ("OK", "EXPECTEDFAIL"):
            passed += 1
        elif r["result"] == "SKIP":
            skipped += 1
            said = (r.get("stdout") or "").strip().splitlines()
            print(f"skipped: {name}: {r['name']}: {said[-1] if said else 'no reason given'}")
        else:
            told = [f"failed: {name}: {r['name']}: {r['result']} after {r['duration']:.1f} s"]
            for stream in ("stdout", "stderr"):
                told += [f"    {line}" for line in (r.get(stream) or "").splitlines()[-TAIL_LINES:]]
            failures.append("\n".join(told))
    if status != 0 and not failures:
        failures.append(
            f"failed: {name}: the run of the tests ended with status {status}, and not all of them may have run"
        )
    failures += late(name, budgets, spans, others)
    said = "".join(f"{told}\n" for told in failures)
    # At once too: whoever ends a run early sees no end of it.
    print(said, end="")
    (logs / "failures").write_text(said, "utf-8", "replace")
    (logs / "counts").write_text(f"{passed} {len(failures)} {skipped}\n", encoding="ascii")


main()
