# SPDX-License-Identifier: BSD-3-Clause
"""clang-format 14 (the one of Debian 12) would change nothing.

usage: format.py [CLANG_FORMAT]
"""
import re
import subprocess
import sys

import tree


def main():
    if len(sys.argv) < 2:
        tree.skip("clang-format is not installed")
    tool = sys.argv[1]
    version = subprocess.run([tool, "--version"], stdout=subprocess.PIPE, text=True, check=True)
    if not re.search(r"version 14\.", version.stdout):
        tree.skip(f"versions differ in taste and this is not 14: {version.stdout.strip()}")
    verdict = tree.Verdict()
    for path in tree.files(".c", ".h", ".cu"):
        verdict.checked += 1
        run = subprocess.run(
            [tool, "--dry-run", "-Werror", path],
            cwd=tree.SOURCE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if run.returncode != 0:
            verdict.bad("\n".join(run.stdout.splitlines()[:6]))
    verdict.done("files")


main()
