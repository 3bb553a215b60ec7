# SPDX-License-Identifier: BSD-3-Clause
"""Words and habits that are not wanted; each past mistake becomes a row.

A row is a pattern, the files it is looked for in, the files that may have it, whether
comments count, and why. Files are regular expressions over the path in the tree.
"""
import os
import re

import tree

CODE = r"\.(c|h|cu)$"
LIBRARY = r"^(lib|drivers)/.*\.(c|h|cu)$"
NONE = r"^$"
# Children that ask libraries which may end or block them.
CHILDREN = r"^lib/path/mr_(probe_(aside|live|nic)|root_hwloc)\.c$"

ROWS = [
    (r"\b(TODO|FIXME|XXX|HACK)\b", r".", NONE, True, "finish it or leave it out"),
    (r"[ \t]+$", r".", r"\.pcap$", True, "trailing white space"),
    (r"\r", r".", NONE, True, "carriage return"),
    (
        r"(?<!asm )(?<!__asm__ )\bvolatile\b(?! sig_atomic_t\b)",
        CODE,
        NONE,
        False,
        "volatile hands nothing over; use mr_sync.h",
    ),
    (
        r"\b__(atomic|sync)_\w+|\b__ATOMIC_|\brte_(atomic|smp_\w*mb|[rw]?mb)\b",
        CODE,
        r"^(lib/ring/mr_sync\.h$|drivers/cudasim/|drivers/gpu/mr_gpu_vdev\.c$|tests/)",
        False,
        "atomics live in lib/ring/mr_sync.h",
    ),
    (
        r"\b(atomic_(load|store|fetch|exchange|compare|thread_fence)\w*|_Atomic|stdatomic)\b",
        CODE,
        r"^(drivers/cudasim/|tests/)",
        False,
        "atomics live in lib/ring/mr_sync.h",
    ),
    (
        r"\b(v?printf|v?dprintf|puts|putchar|perror)\s*\(|\b(stdout|stderr|STD(OUT|ERR)_FILENO)\b",
        LIBRARY,
        NONE,
        False,
        "only app/ prints; an error goes up in struct mr_err",
    ),
    # A probe that DPDK calls has nobody to hand its sentence to but DPDK's log.
    (
        r"\b(RTE_LOG|rte_log|rte_exit|rte_panic|syslog)\s*\(",
        LIBRARY,
        r"^drivers/gpu/mr_gpu_vdev\.c$",
        False,
        "libraries never log",
    ),
    (r"\b(exit|abort|_exit|assert)\s*\(", LIBRARY, CHILDREN, False, "libraries return, they do not end"),
    (
        r"\b(secure_)?getenv\s*\(",
        CODE,
        # DPDK chooses the folder of its sockets by two variables; a client has to follow.
        # A service manager names its socket by one, and what stderr is by another.
        r"^(tests/|lib/stats/mr_report_client\.c$|app/mr_cmd_(journal|notify)\.c$)",
        False,
        "the configuration is one file",
    ),
    (
        r"\b(strcpy|strcat|sprintf|vsprintf|gets|strtok|atoi|atol|atof|alloca)\s*\(",
        CODE,
        r"^tests/",
        False,
        "a bounded function exists",
    ),
    (r"__ldg\b|__constant__", r"^lib/stage/", NONE, False, "the NIC rewrites packet bytes"),
    (r"\bconst\b[^;]*__restrict__", r"^lib/stage/", NONE, False, "the NIC rewrites packet bytes"),
    (r'#\s*include\s+"[^"]*/', r"^(lib|drivers|app)/", NONE, True, "the include table would be passed by"),
    (r"#\s*pragma\s+once", CODE, NONE, True, "include guards, as in the other headers"),
    (r"(?<![\w.])/(work|root|home)/", r".", NONE, True, "a path of one machine"),
    (r"deb\.debian|npmjs|pypi|registry\.", r".", NONE, True, "a package registry's host"),
    (r"\b(for now|placeholder|stub out)\b", r".", NONE, True, "say what it does, or leave it out"),
]
# This file names what it forbids.
SELF = "tests/lint/words.py"
# Files that cannot carry a comment.
NO_SPDX = re.compile(r"(^LICENSE|\.json|\.pcap|\.pcapng|/debian/source/format)$")
# Inputs that are wrong on purpose.
WRONG = re.compile(r"^tests/(e2e/bad_configs|fuzz/seeds)/")
STARTS_MR = re.compile(r"^(lib|drivers)/[^/]+/(?!mr_)[^/]+\.(c|h|cu|def|S)$")


def check_file(path, source, verdict):
    top = "\n".join(source.split("\n")[:2])
    if not NO_SPDX.search(path) and "SPDX-License-Identifier: BSD-3-Clause" not in top:
        verdict.bad(f"{path}:1: no line 'SPDX-License-Identifier: BSD-3-Clause'")
    if source and not source.endswith("\n"):
        verdict.bad(f"{path}: the last line does not end")
    if STARTS_MR.match(path):
        verdict.bad(f"{path}: a module's file is named mr_<module>[_part]")
    if path.endswith(".h"):
        guard = os.path.basename(path).upper().replace(".", "_")
        if f"#ifndef {guard}\n#define {guard}\n" not in source:
            verdict.bad(f"{path}: its include guard is not {guard}")


def check_rows(path, source, verdict):
    code = tree.without_comments(source) if re.search(CODE, path) else source
    for pattern, where, may, comments, why in ROWS:
        if not re.search(where, path) or re.search(may, path):
            continue
        for number, line in enumerate((source if comments else code).split("\n"), 1):
            m = re.search(pattern, line)
            if m:
                verdict.bad(f"{path}:{number}: {m.group(0).strip() or 'blank'!r}: {why}")


def main():
    verdict = tree.Verdict()
    for path in tree.files():
        source = tree.text(path)
        if source is None or WRONG.match(path):
            continue
        verdict.checked += 1
        check_file(path, source, verdict)
        if path != SELF:
            check_rows(path, source, verdict)
    verdict.done("files")


main()
