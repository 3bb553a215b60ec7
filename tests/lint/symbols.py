# SPDX-License-Identifier: BSD-3-Clause
"""What the libraries call and what they export, judged with nm.

usage: symbols.py hot ALLOW LIBRARY...     calls of the hot libraries against the list
       symbols.py exports LIBRARY...       every global symbol begins with mr_
The list has one symbol a line and its reason after '#'. A call that is not listed
fails, and so does a listed symbol that nobody calls any more.
"""
import subprocess
import sys

import tree

# Made by the compiler for position-independent code; not a call.
NOT_A_CALL = {"_GLOBAL_OFFSET_TABLE_"}


def nm(library, *options):
    run = subprocess.run(
        ["nm", "--format=posix", *options, library], stdout=subprocess.PIPE, text=True, check=True
    )
    member = library
    for line in run.stdout.splitlines():
        if line.endswith(":"):
            member = line[:-1]
        elif line.strip():
            yield member, line.split()[0]


def read_list(path, verdict):
    listed = {}
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            if not line.strip() or line.startswith("#"):
                continue
            symbol, _, reason = line.partition("#")
            if not reason.strip():
                verdict.bad(f"{path}:{number}: {symbol.strip()} has no reason")
            if symbol.strip() in listed:
                verdict.bad(f"{path}:{number}: {symbol.strip()} is listed twice")
            listed[symbol.strip()] = number
    return listed


def hot(path, libraries):
    verdict = tree.Verdict()
    listed = read_list(path, verdict)
    own, calls = set(), {}
    for library in libraries:
        own.update(symbol for _, symbol in nm(library, "--defined-only"))
        for member, symbol in nm(library, "--undefined-only"):
            calls.setdefault(symbol, member)
    for symbol in sorted(set(calls) - own - NOT_A_CALL):
        verdict.checked += 1
        if symbol not in listed:
            verdict.bad(f"{calls[symbol]}: calls {symbol}, which {path} does not list")
    for symbol, number in listed.items():
        if symbol not in calls or symbol in own:
            verdict.bad(f"{path}:{number}: {symbol} is listed and nobody calls it")
    verdict.done("calls of the hot libraries")


def exports(libraries):
    verdict = tree.Verdict()
    for library in libraries:
        for member, symbol in nm(library, "--defined-only", "--extern-only"):
            verdict.checked += 1
            if not symbol.startswith("mr_"):
                verdict.bad(f"{member}: exports {symbol}, which does not begin with mr_")
    verdict.done("exported symbols")


if sys.argv[1] == "hot":
    hot(sys.argv[2], sys.argv[3:])
else:
    exports(sys.argv[2:])
