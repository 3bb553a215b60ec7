# SPDX-License-Identifier: BSD-3-Clause
"""Faults that only a GPU would show, put into the device sources one at a time; all must be found.

usage: mutate.py SOURCE CC LIBRARY...
Each mutant is compiled as simt_image.c is, linked with LIBRARY... (the interpreter, the host's
side and the tests) and run; a mutant whose tests pass is a fault of the tests, and so is a call
of one of CUDA's collective built-ins that no rule below knows how to spoil. The places are found
in the sources, so what a new stage calls is spoiled too.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

NEWLINE = "\n"
TIMEOUT_S = 120
FOLDERS = ("tests/simt", "lib/ring", "lib/base", "drivers/cudasim")
ARGUMENTS = r"\(((?:[^(),]|\([^()]*\))*), ((?:[^(),]|\([^()]*\))*), ((?:[^(),]|\([^()]*\))*)\)"

# (what is done, pattern, in its place); \g<0> is what was there.
RULES = [
    ("no barrier", r"(?<!\w)__sync(threads|warp)\([^()]*\);", r";"),
    ("no barrier", r"__syncthreads_and(\([^()]*\))", r"\1"),
    ("no barrier", r"(?<=\t)mr_kernel_(block|warp)_sync\(\);", r";"),
    ("no barrier", r"(?<== )mr_kernel_block_none(\(\w+)\)", r"\1 == 0)"),
    ("no fence", r"(?<=\t)(mr_sync_fence|__threadfence_system)\(\);", r";"),
    ("mask without lane 31", r"(?<=sync\(|warp\()0xffffffffu\b", "0x7fffffffu"),
    ("mask without lane 0", r"(?<=sync\(|warp\()0xffffffffu\b", "0xfffffffeu"),
    ("mask without lane 16", r"(?<=sync\(|warp\()0xffffffffu\b", "0xfffeffffu"),
    ("another source", r"__shfl_sync" + ARGUMENTS, r"__shfl_sync(\1, \2, (\3) + 1)"),
    ("another source", r"__shfl_xor_sync" + ARGUMENTS, r"__shfl_xor_sync(\1, \2, (\3) ^ 1)"),
    ("no shuffle", r"__shfl(?:_xor)?_sync" + ARGUMENTS, r"(\2)"),
    ("relaxed", r"\bmr_load_acquire(?=\(&)", "mr_load_relaxed"),
    ("relaxed", r"\bmr_store_release(?=\(&)", "mr_store_relaxed"),
    ("relaxed", r"\bmr_device_load_acquire\b", "mr_device_load_relaxed"),
    ("relaxed", r"\bmr_device_store_release\b", "mr_device_store_relaxed"),
    ("not atomic", r"\batomicAdd\(([^;]*?), ([^;]*)\);", r"*(\1) += (\2);"),
    ("every lane", r"if \((ctx->)?rank == 0\)", r"if (1)"),
]
COLLECTIVE = r"\b(__sync\w+|__shfl\w*|__ballot\w*|__any\w*|__all\w*|__match\w*|__reduce\w*|atomic\w+)\("


def without_comments(text):
    return re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m.group(0)), text, flags=re.S)


def end_of_call(code, at):
    depth = 1
    while depth > 0 and at < len(code):
        depth += {"(": 1, ")": -1}.get(code[at], 0)
        at += 1
    return at


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


# NVIDIA/l2fwd-nv src/kernel.cu:183: DONE is stored before the fence of system scope.
def mutants(source):
    """(file, name, its text), and the calls that no rule spoils."""
    found, left = [], []
    files = [f"lib/stage/{f}" for f in sorted(os.listdir(f"{source}/lib/stage"))]
    for path in [f for f in files if f.endswith((".h", ".cu"))] + ["lib/ring/mr_sync.h"]:
        text = read(f"{source}/{path}")
        code = without_comments(text)
        spoiled = []
        for what, pattern, instead in RULES:
            for m in re.finditer(pattern, code):
                line = code.count(NEWLINE, 0, m.start()) + 1
                spoiled.append(m.span())
                new = text[: m.start()] + m.expand(instead) + text[m.end() :]
                found.append((path, f"{path}:{line}: {what}: {m.group(0)}", new))
        for m in re.finditer(COLLECTIVE, code):
            end = end_of_call(code, m.end())
            if not any(a < end and m.start() < b for a, b in spoiled):
                left.append(f"{path}:{code.count(NEWLINE, 0, m.start()) + 1}: {m.group(0)}")
    return found, left


def judge(source, cc, libraries, mutant):
    """None where the mutant is found, else the reason why that is not so."""
    path, _, text = mutant
    with tempfile.TemporaryDirectory() as folder:
        for f in os.listdir(f"{source}/lib/stage"):
            if f.endswith((".h", ".cu", ".def")):
                shutil.copy(f"{source}/lib/stage/{f}", folder)
        with open(os.path.join(folder, os.path.basename(path)), "w", encoding="utf-8") as f:
            f.write(text)
        program = os.path.join(folder, "mutant")
        command = [cc, "-std=gnu17", "-O0", "-fsanitize=thread", "-I" + folder]
        command += ["-I" + os.path.join(source, d) for d in FOLDERS]
        command += ["-include", f"{source}/tests/simt/simt_cuda.h", "-c"]
        command += [f"{source}/tests/simt/simt_image.c", "-o", program + ".o"]
        link = [cc, "-o", program, program + ".o", "-Wl,--whole-archive", *libraries]
        link += ["-Wl,--no-whole-archive", "-lcmocka"]
        for c in (command, link):
            done = subprocess.run(
                c, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
            )
            if done.returncode != 0:
                return "does not compile\n" + done.stdout
        try:
            done = subprocess.run(
                [program, "--first"],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                timeout=TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"still runs after {TIMEOUT_S} s"
        if done.returncode == 0:
            return "the tests pass"
        said = [line for line in done.stderr.split("\n") if "ERROR" in line]
        print(f"found: {mutant[1]}\n       {said[0] if said else done.returncode}")
        return None


def main():
    source, cc, *libraries = sys.argv[1:]
    found, left = mutants(source)
    # The sources as they are must pass, or nothing here says anything.
    unchanged = ("lib/ring/mr_sync.h", "unchanged", read(f"{source}/lib/ring/mr_sync.h"))
    reason = judge(source, cc, libraries, unchanged)
    if reason != "the tests pass":
        sys.exit(f"the unchanged sources: {reason or 'the tests fail'}")
    bad = [f"{place}: no rule spoils this call" for place in left]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for mutant, reason in zip(
            found, pool.map(lambda m: judge(source, cc, libraries, m), found)
        ):
            if reason is not None:
                bad.append(f"{mutant[1]}: {reason}")
    for b in bad:
        print("not found: " + b)
    print(f"{len(found)} mutants, {len(bad)} faults")
    sys.exit(1 if bad or not found else 0)


main()
