# SPDX-License-Identifier: BSD-3-Clause
"""What the objects were really made from, judged by the depfiles of the build.

usage: includes.py BUILD NINJA
A module may read headers of the tree only from its own folder and from its include
path; only the modules named here may have read DPDK's ethdev or gpudev headers, and
nothing reads CUDA's headers, since no toolkit is needed to build.
"""
import os
import re
import subprocess
import sys

import tree

MAY_READ = {
    "rte_ethdev.h": {
        "lib/rx", "lib/tx", "lib/lane", "lib/relay", "lib/staged", "lib/port", "lib/setup", "lib/gen",
    },
    "ethdev_driver.h": set(),
    "rte_gpudev.h": {"lib/gpu", "drivers/gpu"},
    "gpudev_driver.h": {"drivers/gpu"},
    "cuda.h": set(),
    "cuda_runtime.h": set(),
}
JUDGED = ("lib/", "drivers/", "app/")


def depfiles(build, ninja):
    """Object to the real paths of the files that it was made from."""
    run = subprocess.run(
        [ninja, "-C", build, "-t", "deps"], stdout=subprocess.PIPE, text=True, check=True
    )
    found = {}
    for block in run.stdout.split("\n\n"):
        lines = block.strip().split("\n")
        m = re.match(r"(\S+): #deps", lines[0])
        if m:
            found[m.group(1)] = [
                os.path.realpath(os.path.join(build, line.strip())) for line in lines[1:]
            ]
    return found


def main():
    build, ninja = os.path.realpath(sys.argv[1]), sys.argv[2]
    verdict = tree.Verdict()
    deps = depfiles(build, ninja)
    for path, output, arguments in tree.commands(build):
        if not path.startswith(JUDGED):
            continue
        module = os.path.dirname(path)
        verdict.checked += 1
        if output not in deps:
            verdict.bad(f"{path}: {output} has not been built, so nothing says what it reads")
            continue
        allowed = {os.path.join(tree.SOURCE, module)}
        for a in arguments:
            if a.startswith("-I"):
                allowed.add(os.path.realpath(os.path.join(build, a[2:])))
        for d in deps[output]:
            name = os.path.basename(d)
            if name in MAY_READ and module not in MAY_READ[name]:
                verdict.bad(f"{path}: reads {name}, which {module} may not know")
            ours = d.startswith(tree.SOURCE + os.sep) and not d.startswith(build + os.sep)
            if ours and os.path.dirname(d) not in allowed:
                relative = os.path.relpath(d, tree.SOURCE)
                verdict.bad(f"{path}: reads {relative}, which is not on its include path")
    verdict.done("objects")


main()
