# SPDX-License-Identifier: BSD-3-Clause
"""The include table of lib/meson.build is enforced by the build, not by good will.

usage: include_table.py MESON NINJA
Builds a copy of the tree module by module, then again with one forbidden line in one
file. The first must succeed and the second must fail for the reason given.
"""
import os
import shutil
import subprocess
import sys
import tempfile

import tree

# target, file that gets the lines, lines, what the compiler must say
FORBIDDEN = [
    ("lib/libmr_rx.a", "lib/rx/mr_rx.c", ['#include "mr_gpu.h"'], "mr_gpu.h: No such file"),
    ("lib/libmr_base.a", "lib/base/mr_err.c", ['#include "mr_ring.h"'], "mr_ring.h: No such file"),
    ("lib/libmr_ring.a", "lib/ring/mr_ring.c", ['#include "mr_stage.h"'], "mr_stage.h: No such"),
    ("lib/libmr_path.a", "lib/path/mr_host.c", ['#include "mr_plan.h"'], "mr_plan.h: No such file"),
    (
        "lib/libmr_stage.a",
        "lib/stage/mr_stage.c",
        ['#include "mr_cuda_api.h"'],
        "mr_cuda_api.h: No such file",
    ),
    (
        "lib/libmr_config.a",
        "lib/config/mr_config.c",
        ["#include <rte_ethdev.h>", "int mr_x(void) { return rte_eth_dev_count_avail(); }"],
        "rte_eth",
    ),
    (
        "lib/libmr_stats.a",
        "lib/stats/mr_stats.c",
        ["#include <rte_gpudev.h>", "int mr_x(void) { return rte_gpu_count_avail(); }"],
        "rte_gpu_count_avail",
    ),
    (
        "lib/libmr_lane.a",
        "lib/lane/mr_lane.c",
        ["#include <rte_gpudev.h>", "int mr_x(void) { return rte_gpu_count_avail(); }"],
        "rte_gpu_count_avail",
    ),
    (
        "lib/libmr_setup.a",
        "lib/setup/mr_setup.c",
        ["#include <rte_gpudev.h>", "int mr_x(void) { return rte_gpu_count_avail(); }"],
        "rte_gpu_count_avail",
    ),
    (
        "lib/libmr_gpu.a",
        "lib/gpu/mr_gpu.c",
        ["#include <rte_ethdev.h>", "int mr_x(void) { return rte_eth_dev_count_avail(); }"],
        "rte_eth_dev_count_avail",
    ),
]


def copy(to):
    def ignore(folder, names):
        return [
            n
            for n in names
            if n in (".git", "__pycache__") or tree.is_build_folder(os.path.join(folder, n))
        ]

    shutil.copytree(tree.SOURCE, to, ignore=ignore)


def run(*command):
    r = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return r.returncode, r.stdout


def main():
    meson, ninja = sys.argv[1:3]
    verdict = tree.Verdict()
    with tempfile.TemporaryDirectory() as folder:
        source, build = os.path.join(folder, "source"), os.path.join(folder, "build")
        copy(source)
        # What is asked is who sees which header; code that is good for more takes longer to make.
        status, output = run(meson, "setup", build, source, "-Dcuda=disabled", "-Doptimization=0", "-Ddebug=false")
        if status != 0:
            print(output)
            sys.exit(1)
        for target, path, lines, reason in FORBIDDEN:
            verdict.checked += 1
            status, output = run(ninja, "-C", build, target)
            if status != 0:
                verdict.bad(f"{target} does not build as it is\n{output}")
                continue
            whole = os.path.join(source, path)
            with open(whole, encoding="utf-8") as f:
                before = f.read()
            with open(whole, "a", encoding="utf-8") as f:
                f.write("\n".join(lines) + "\n")
            status, output = run(ninja, "-C", build, target)
            if status == 0:
                verdict.bad(f"{path}: {lines[0]} should break the build of {target} and did not")
            elif reason not in output:
                verdict.bad(f"{path}: {lines[0]} broke {target} for another reason\n{output}")
            with open(whole, "w", encoding="utf-8") as f:
                f.write(before)
    verdict.done("forbidden includes")


main()
