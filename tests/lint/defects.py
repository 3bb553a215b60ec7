# SPDX-License-Identifier: BSD-3-Clause
"""Every known defect of others has its test here, and the test says whose defect it is.

usage: defects.py LIST
LIST has a line for each: origin | what happens there | tests. A test is file:name, where name
is a test function, a function of a script, a machine of the doctor's, or a key in quotes of a
table of faults. In C and Python the comment above it cites the origin, elsewhere any comment
of the file does. `-` in the place of tests begins the reason why the defect cannot be here.
"""
import os
import re
import sys

import tree


def above(text, start):
    """What stands between the last blank line and a definition."""
    return text[:start].rsplit("\n\n", 1)[-1]


def words(text):
    """Without comment marks, on one line."""
    return " ".join(re.sub(r"^\s*(/\*|\*/|\*|#)|\*/", "", text, flags=re.M).split())


def find(path, text, name):
    """The comment that has to cite the origin, or None where there is no such test."""
    if name.startswith('"'):
        return text if re.search(r"^\s*" + re.escape(name) + r"\s*:", text, re.M) else None
    if path.endswith(".c"):
        m = re.search(rf"^static void {name}\(void \*\*", text, re.M)
        listed = len(re.findall(rf"\b{name}\b", text)) > 1
        return above(text, m.start()) if m and listed else None
    if path.endswith(".py"):
        m = re.search(rf"^def {name}\(", text, re.M)
        return above(text, m.start()) if m else None
    return text if re.search(rf"\b{name}\b", text) else None


def main():
    verdict = tree.Verdict()
    path = sys.argv[1]
    with open(path, encoding="utf-8") as f:
        lines = f.read().split("\n")
    seen = set()
    for number, line in enumerate(lines, 1):
        if not line or line.startswith("#"):
            continue
        where = f"{os.path.basename(path)}:{number}"
        verdict.checked += 1
        fields = [field.strip() for field in line.split("|")]
        if len(fields) != 3 or not all(fields):
            verdict.bad(f"{where}: not origin | defect | tests")
            continue
        origin, defect, tests = fields
        if (origin, defect) in seen:
            verdict.bad(f"{where}: the same defect again")
        seen.add((origin, defect))
        if tests.startswith("-"):
            if len(tests.split()) < 6:
                verdict.bad(f"{where}: '{tests}' is no reason")
            continue
        for test in tests.split():
            file, _, name = test.partition(":")
            if not name or not os.path.exists(os.path.join(tree.SOURCE, file)):
                verdict.bad(f"{where}: {test}: no such file")
                continue
            cites = find(file, tree.text(file), name)
            if cites is None:
                verdict.bad(f"{where}: {test}: no such test")
            elif origin not in words(cites):
                verdict.bad(f"{where}: {test} does not cite '{origin}'")
    verdict.done("defects")


main()
