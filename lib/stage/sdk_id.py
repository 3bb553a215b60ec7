# SPDX-License-Identifier: BSD-3-Clause
"""Writes mr_sdk_id.h: the identity of the SDK, a digest of all of its files.

usage: sdk_id.py OUTPUT VERSION FILE...
A plug-in carries the one that it was built with, and a program takes its own alone.
"""
import hashlib
import os
import sys


def main():
    output, version, *files = sys.argv[1:]
    digest = hashlib.sha256()
    for file in sorted(files, key=os.path.basename):
        with open(file, "rb") as f:
            text = f.read()
        digest.update(f"{os.path.basename(file)} {len(text)}\n".encode() + text)
    with open(output, "w", encoding="ascii") as f:
        f.write("/* SPDX-License-Identifier: BSD-3-Clause */\n")
        f.write("#ifndef MR_SDK_ID_H\n#define MR_SDK_ID_H\n")
        f.write(f'#define MR_SDK_ID "{version}-{digest.hexdigest()[:16]}"\n#endif\n')


main()
