# SPDX-License-Identifier: BSD-3-Clause
"""Counts the tests of one meson test run and shows what those that failed said.

usage: summary.py NAME TESTLOG_JSON
The last line is "PASSED FAILED SKIPPED" as numbers. Whatever is neither passed nor
skipped has failed: a time-out, an error, an interrupt, an unexpected pass.
"""
import json
import sys

TAIL_LINES = 60


def main():
    name, path = sys.argv[1:3]
    passed = failed = skipped = 0
    with open(path, encoding="utf-8") as f:
        results = [json.loads(line) for line in f if line.strip()]
    for r in results:
        if r["result"] in ("OK", "EXPECTEDFAIL"):
            passed += 1
        elif r["result"] == "SKIP":
            skipped += 1
            said = (r.get("stdout") or "").strip().splitlines()
            print(f"skipped: {name}: {r['name']}: {said[-1] if said else 'no reason given'}")
        else:
            failed += 1
            print(f"failed: {name}: {r['name']}: {r['result']} after {r['duration']:.1f} s")
            for stream in ("stdout", "stderr"):
                for line in (r.get(stream) or "").splitlines()[-TAIL_LINES:]:
                    print(f"    {line}")
    print(passed, failed, skipped)


main()
