#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""bad_configs.py [MILLRACE]: every configuration of bad_configs/ is refused as it says.

Below its licence a file has one line for each problem that `millrace check` must report:

    # expect: LINE | KEY | part of the message or the hint

Exactly those are reported, in any order, in one run: as JSON on stdout and as one sentence
each on stderr, with exit status 78. The shipped configurations, which have none, are accepted.
MILLRACE defaults to the environment's MILLRACE.
"""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

from harness import Failed, Skipped, validate

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent.parent


def check(millrace, *args):
    return subprocess.run([millrace, "check", *map(str, args)], capture_output=True, timeout=60)


def expectations(path):
    found = []
    for line in path.read_bytes().split(b"\n")[1:]:
        if not line.startswith(b"# expect: "):
            break
        number, key, fragment = line[len(b"# expect: ") :].decode().split("|", 2)
        found.append((int(number), key.strip(), fragment.strip()))
    return found


def fits_schema(stdout):
    """'' if it does or nothing can tell (jsonschema is not installed)."""
    try:
        validate("check.schema.json", stdout.decode())
    except Skipped:
        return ""
    except Failed as why:
        return str(why)
    return ""


def judge(millrace, path):
    """'' or what is wrong."""
    expected = expectations(path)
    if not expected:
        return "the file expects nothing"
    done = check(millrace, "--json", path)
    if done.returncode != 78:
        return f"exit status {done.returncode}, not 78: {done.stderr.decode(errors='replace')}"
    wrong = fits_schema(done.stdout)
    if wrong:
        return wrong
    reported = json.loads(done.stdout)["errors"]
    sentences = done.stderr.decode(errors="replace").splitlines()
    if len(sentences) != len(reported):
        return f"{len(reported)} problems, but {len(sentences)} lines on stderr"
    for error, sentence in zip(reported, sentences):
        if not sentence.startswith(f"{path}:{error['line']}: "):
            return f"stderr does not begin with file and line: {sentence}"
        if error["key"] not in sentence or error["message"] not in sentence or error["hint"] not in sentence:
            return f"stderr and JSON differ: {sentence}"
    for number, key, fragment in expected:
        for error in reported:
            said = error["message"] + "; " + error["hint"]
            if error["line"] == number and error["key"] == key and fragment in said:
                reported.remove(error)
                break
        else:
            return f"not reported: {number} | {key} | {fragment}\n  but {reported}"
    return f"reported beside what was expected: {reported}" if reported else ""


def accepts(millrace, path):
    done = check(millrace, "--json", path)
    if done.returncode != 0:
        return f"exit status {done.returncode}: {done.stderr.decode(errors='replace')}"
    return fits_schema(done.stdout)


def main():
    millrace = sys.argv[1] if len(sys.argv) > 1 else os.environ["MILLRACE"]
    bad = sorted((HERE / "bad_configs").glob("*.yaml"))
    # That of the generator is another kind: tests/unit/test_gen.c plans it.
    good = sorted(p for p in (SOURCE / "config").glob("*.yaml") if p.stem != "gen")
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        told = list(pool.map(lambda p: (judge if p in bad else accepts)(millrace, p), bad + good))
    for path, wrong in zip(bad + good, told):
        print("ok  " if not wrong else "FAIL", path.name)
        if wrong:
            failed += 1
            print("  " + wrong.strip())
    if len(bad) < 60 or not good:
        failed += 1
        print("FAIL the table is not complete")
    print(f"{len(bad) + len(good) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
