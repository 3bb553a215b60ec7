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
    paths = tree.files(".c", ".h", ".cu")
    run = subprocess.run(
        [tool, "--dry-run", "-Werror", *paths],
        cwd=tree.SOURCE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    verdict.checked = len(paths)
    faults = re.findall(r"^(\S+?:\d+:\d+): error", run.stdout, re.M)
    for fault in faults:
        verdict.bad(f"{fault}: clang-format would change this")
    if run.returncode != 0 and not faults:
        verdict.bad(run.stdout)
    verdict.done("files")


main()
