# SPDX-License-Identifier: BSD-3-Clause
"""What the libraries call and what they export, judged with nm.

usage: symbols.py hot ALLOW SECTION LIBRARY... [-- BELOW...]  calls of the hot libraries against the list
       symbols.py exports LIBRARY...             every global symbol begins with mr_
       symbols.py only SYMBOL MEMBER LIBRARY...  nobody calls SYMBOL but that member
The list has one symbol a line and its reason after '#', in sections: [SECTION] begins one.
A call that is not listed in it fails, and so does a listed symbol that nobody calls any more. What BELOW defines may be
called, and what it calls is judged elsewhere.
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


def read_list(path, section, verdict):
    listed, inside = {}, None
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            if not line.strip() or line.startswith("#"):
                continue
            if line.startswith("["):
                inside = line.strip()
                continue
            if inside != f"[{section}]":
                continue
            symbol, _, reason = line.partition("#")
            if not reason.strip():
                verdict.bad(f"{path}:{number}: {symbol.strip()} has no reason")
            if symbol.strip() in listed:
                verdict.bad(f"{path}:{number}: {symbol.strip()} is listed twice")
            listed[symbol.strip()] = number
    return listed


def hot(path, section, libraries):
    verdict = tree.Verdict()
    listed = read_list(path, section, verdict)
    own, calls = set(), {}
    end = libraries.index("--") if "--" in libraries else len(libraries)
    for library in libraries[end + 1 :]:
        own.update(symbol for _, symbol in nm(library, "--defined-only"))
    for library in libraries[:end]:
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


def only(symbol, member, libraries):
    """The symbol is defined in one place and called from one; other members do not lead there."""
    verdict = tree.Verdict()
    defined, callers = 0, set()
    for library in libraries:
        defined += symbol in [s for _, s in nm(library, "--defined-only", "--extern-only")]
        callers |= {m for m, s in nm(library, "--undefined-only") if s == symbol}
        verdict.checked += 1
    if defined != 1:
        verdict.bad(f"{symbol} is defined {defined} times")
    if not any(member in c for c in callers):
        verdict.bad(f"{member} does not call {symbol}: this looks at nothing")
    for caller in sorted(c for c in callers if member not in c):
        verdict.bad(f"{caller}: calls {symbol}, which is {member}'s alone")
    verdict.done(f"libraries in which {symbol} may be called")


if sys.argv[1] == "hot":
    hot(sys.argv[2], sys.argv[3], sys.argv[4:])
elif sys.argv[1] == "only":
    only(sys.argv[2], sys.argv[3], sys.argv[4:])
else:
    exports(sys.argv[2:])
