# SPDX-License-Identifier: BSD-3-Clause
"""shellcheck finds nothing in the shell scripts.

usage: scripts.py [SHELLCHECK]
"""
import re
import subprocess
import sys

import tree


def main():
    if len(sys.argv) < 2:
        tree.skip("shellcheck is not installed")
    verdict = tree.Verdict()
    for path in tree.files():
        source = tree.text(path)
        if source is None or not re.match(r"#!.*\b(sh|bash)\b", source):
            continue
        verdict.checked += 1
        run = subprocess.run(
            [sys.argv[1], "--severity=style", "--external-sources", path],
            cwd=tree.SOURCE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if run.returncode != 0:
            verdict.bad(run.stdout)
    verdict.done("scripts")


main()
