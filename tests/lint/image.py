# SPDX-License-Identifier: BSD-3-Clause
"""What nvcc made of the persistent kernel.

usage: image.py [NVCC]
Packet bytes and tables change behind the kernel's back, so nothing may be loaded by the
read-only path (ld.global.nc). A block of 256 threads must leave room for others, so an
entry may not use more registers, stack or shared memory than its row says.
"""
import os
import re
import subprocess
import sys
import tempfile

import tree

# entry: registers a thread, bytes of stack a thread, bytes of shared memory a block
CEILING = {
    "mr_kernel_thread": (64, 0, 64),
    "mr_kernel_warp": (64, 32, 64),
}
SOURCE = os.path.join(tree.SOURCE, "lib/stage/mr_image.cu")


def nvcc(tool, folder, *options):
    include = [f"-I{tree.SOURCE}/{d}" for d in ("lib/base", "lib/ring", "lib/stage")]
    include.append(f"-I{tree.SOURCE}/drivers/cudasim")
    run = subprocess.run(
        [tool, "-std=c++17", "-O3", *include, *options, SOURCE],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if run.returncode != 0:
        print(run.stdout)
        sys.exit(1)
    return run.stdout


def codes(tool):
    """The GPUs of the build's image that this nvcc can compile for, oldest first."""
    build = tree.text("lib/stage/meson.build")
    wanted = re.findall(r"'(\d+)'", re.search(r"foreach a : \[('.*?)\]", build).group(1))
    known = subprocess.run([tool, "--list-gpu-code"], stdout=subprocess.PIPE, text=True, check=True)
    return [c for c in wanted if "sm_" + c in known.stdout.split()]


def check_ptx(tool, folder, code, verdict):
    path = os.path.join(folder, "image.ptx")
    nvcc(tool, folder, "-ptx", f"-arch=compute_{code}", "-o", path)
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            if "ld.global.nc" in line or "ld.const" in line:
                verdict.bad(f"compute_{code}, PTX line {number}: {line.strip()}")
    verdict.checked += 1


def check_ceiling(entry, code, words, verdict):
    if entry not in CEILING:
        verdict.bad(f"sm_{code}: the entry {entry} has no ceiling in image.py")
        return
    measured = []
    for pattern in (r"Used (\d+) registers", r"(\d+) bytes stack frame", r"(\d+) bytes smem"):
        m = re.search(pattern, words)
        measured.append(int(m.group(1)) if m else 0)
    for what, value, most in zip(
        ("registers", "bytes of stack", "bytes of shared memory"), measured, CEILING[entry]
    ):
        verdict.checked += 1
        if value > most:
            verdict.bad(f"sm_{code}: {entry} uses {value} {what}, at most {most} are allowed")
    print(f"sm_{code} {entry}: {measured[0]} registers, {measured[1]} B stack, {measured[2]} B shared")


def main():
    if len(sys.argv) < 2:
        tree.skip("nvcc is not installed")
    tool = sys.argv[1]
    verdict = tree.Verdict()
    with tempfile.TemporaryDirectory() as folder:
        gpus = codes(tool)
        for code in (gpus[0], gpus[-1]):
            check_ptx(tool, folder, code, verdict)
        options = []
        for code in gpus:
            options += ["-gencode", f"arch=compute_{code},code=sm_{code}"]
        log = nvcc(tool, folder, "-fatbin", *options, "-Xptxas", "-v", "-o", "image.fatbin")
    entries = re.split(r"Compiling entry function '(\w+)' for 'sm_(\d+)'", log)
    if len(entries) // 3 != len(CEILING) * len(gpus):
        verdict.bad(f"{len(entries) // 3} entries compiled, {len(CEILING) * len(gpus)} expected")
    for i in range(1, len(entries), 3):
        check_ceiling(entries[i], entries[i + 1], entries[i + 2], verdict)
    verdict.done("measures")


main()
