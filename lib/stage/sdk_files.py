# SPDX-License-Identifier: BSD-3-Clause
"""Prints the files of the SDK: what a plug-in includes, and what that includes in turn.

usage: sdk_files.py FOLDER FILE...
A path a line, from FOLDER, where the files are; headers of other modules lie beside it.
"""
import os
import re
import sys

BESIDE = (".", "../base", "../ring", "../../drivers/cudasim")


def main():
    folder, *found = sys.argv[1:]
    for path in found:
        with open(os.path.join(folder, path), encoding="utf-8") as f:
            wanted = re.findall(r'#include "([\w.]+)"', f.read())
        for name in wanted:
            # What is made by the build is none of them.
            there = [os.path.normpath(os.path.join(d, name)) for d in BESIDE]
            found += [p for p in there if os.path.exists(os.path.join(folder, p)) and p not in found]
    print("\n".join(sorted(found)))


main()
