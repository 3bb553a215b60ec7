# SPDX-License-Identifier: BSD-3-Clause
"""Every header compiles alone, and twice, with its own module's flags and include path.

usage: headers.py BUILD
The flags are those of a source file in the header's folder, of one that includes it
where there is one, so the include table of lib/meson.build is what it is held to.
"""
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import tree


def compile_alone(header, build, command):
    path = os.path.join(tree.SOURCE, header)
    run = subprocess.run(
        tree.flags(command)
        + ["-Werror", "-fsyntax-only", "-include", path, "-include", path, "-x", "c", "-"],
        input="",
        cwd=build,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return header, run.returncode, run.stdout


def flags_for(header, sources):
    """The flags of the first source that includes the header, else of the first."""
    wanted = f'#include "{os.path.basename(header)}"'
    for path, arguments in sources:
        if wanted in tree.text(path):
            return arguments
    return sources[0][1]


def main():
    build = sys.argv[1]
    verdict = tree.Verdict()
    by_folder = {}
    for path, _, arguments in tree.commands(build):
        if path.endswith(".c"):
            by_folder.setdefault(os.path.dirname(path), []).append((path, arguments))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = []
        for header in tree.files(".h"):
            folder = os.path.dirname(header)
            verdict.checked += 1
            if folder not in by_folder:
                verdict.bad(f"{header}: no C file of its folder is built, so it has no flags")
                continue
            jobs.append(pool.submit(compile_alone, header, build, flags_for(header, by_folder[folder])))
        for job in jobs:
            header, status, output = job.result()
            if status != 0:
                verdict.bad(f"{header}: does not compile alone\n{output}")
    verdict.done("headers")


main()
