# SPDX-License-Identifier: BSD-3-Clause
"""Faults that only a GPU would show, put into the device sources one at a time; all must be found.

usage: mutate.py SOURCE CC LIBRARY...
A mutant is a place in a source at which the program may be told to do something else: so one
program holds as many of them as do not overlap, compiled as simt_image.c is and linked with
LIBRARY... (the interpreter, the host's side and the tests). It is run once as it is, and must pass,
and once for each mutant; a mutant whose tests pass is a fault of the tests, and so is a call
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
ARGUMENT = r"((?:[^(),]|\([^()]*\))*)"
ARGUMENTS = rf"\({ARGUMENT}, {ARGUMENT}, {ARGUMENT}\)"
CALL = r"(\((?:[^()]|\([^()]*\))*\))"

# (what is done, pattern, in its place); \g<0> is what was there, HERE whether this one is on.
RULES = [
    ("no barrier", r"(?<!\w)__sync(threads|warp)\([^()]*\);", r"if (!HERE) \g<0>"),
    ("no barrier", r"__syncthreads_and(\([^()]*\))", r"(HERE ? \1 : \g<0>)"),
    ("no barrier", r"(?<=\t)mr_kernel_(block|warp)_sync\(\);", r"if (!HERE) \g<0>"),
    ("no barrier", r"(?<== )mr_kernel_block_none(\(\w+\))", r"(HERE ? \1 == 0 : \g<0>)"),
    ("no fence", r"(?<=\t)(mr_sync_fence|__threadfence_system)\(\);", r"if (!HERE) \g<0>"),
    ("mask without lane 31", r"(?<=sync\(|warp\()0xffffffffu\b", "(HERE ? 0x7fffffffu : 0xffffffffu)"),
    ("mask without lane 0", r"(?<=sync\(|warp\()0xffffffffu\b", "(HERE ? 0xfffffffeu : 0xffffffffu)"),
    ("mask without lane 16", r"(?<=sync\(|warp\()0xffffffffu\b", "(HERE ? 0xfffeffffu : 0xffffffffu)"),
    ("another source", r"__shfl_sync" + ARGUMENTS, r"__shfl_sync(\1, \2, (\3) + HERE)"),
    ("another source", r"__shfl_xor_sync" + ARGUMENTS, r"__shfl_xor_sync(\1, \2, (\3) ^ HERE)"),
    ("no shuffle", r"__shfl(?:_xor)?_sync" + ARGUMENTS, r"(HERE ? (\2) : \g<0>)"),
    ("relaxed", r"\bmr_load_acquire(?=\(&)" + CALL, r"(HERE ? mr_load_relaxed\1 : \g<0>)"),
    ("relaxed", r"\bmr_store_release(?=\(&)" + CALL, r"(HERE ? mr_store_relaxed\1 : \g<0>)"),
    ("relaxed", r"\bmr_device_load_acquire" + CALL, r"(HERE ? mr_device_load_relaxed\1 : \g<0>)"),
    ("relaxed", r"\bmr_device_store_release" + CALL, r"(HERE ? mr_device_store_relaxed\1 : \g<0>)"),
    ("not atomic", r"(?<!return )\batomicAdd\(([^;]*?), ([^;]*)\);", r"if (HERE) *(\1) += (\2); else \g<0>"),
    ("not atomic", r"(?<=return )atomicAdd\(([^;]*?), ([^;]*)\);", r"HERE ? (*(\1) += (\2)) - (\2) : \g<0>"),
    ("not atomic", r"\batomicCAS_system" + ARGUMENTS, r"(HERE ? (*(\1) == (\2) ? (*(\1) = (\3), (\2)) : ~(\2)) : \g<0>)"),
    ("every lane", r"if \(((?:ctx->)?rank == 0)\)", r"if (HERE || \1)"),
]
# The reader of a capture looks at `next` and then at `head`. Relaxed, this store could be seen before
# that of head; the interpreter's memory has one order of stores, in which that does not happen.
UNSEEN = ["mr_store_release(&t->ctl->next, next)"]
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


class Mutant:
    """A place in a source, as match of a rule's pattern, and what is done there."""

    def __init__(self, number, path, name, match, instead):
        self.number, self.path, self.name = number, path, name
        self.span = match.span()
        self.text = match.expand(instead).replace("HERE", f"simt_mutated({number})")

    def overlaps(self, other):
        (a, b), (c, d) = self.span, other.span
        return self.path == other.path and a < d and c < b


# NVIDIA/l2fwd-nv src/kernel.cu:183: DONE is stored before the fence of system scope.
def mutants(source):
    """All of them, and the calls that no rule spoils."""
    found, left, unseen = [], [], UNSEEN[:]
    files = [f"lib/stage/{f}" for f in sorted(os.listdir(f"{source}/lib/stage"))]
    for path in [f for f in files if f.endswith((".h", ".cu"))] + ["lib/ring/mr_sync.h"]:
        code = without_comments(read(f"{source}/{path}"))
        spoiled = []
        for what, pattern, instead in RULES:
            for m in re.finditer(pattern, code):
                line = code.count(NEWLINE, 0, m.start()) + 1
                spoiled.append(m.span())
                if m.group(0) in unseen:
                    unseen.remove(m.group(0))
                    continue
                name = f"{path}:{line}: {what}: {m.group(0)}"
                found.append(Mutant(len(found) + 1, path, name, m, instead))
        for m in re.finditer(COLLECTIVE, code):
            end = end_of_call(code, m.end())
            if not any(a < end and m.start() < b for a, b in spoiled):
                left.append(f"{path}:{code.count(NEWLINE, 0, m.start()) + 1}: {m.group(0)}")
    return found, left + unseen


def programs(found):
    """The mutants, parted so that those of a part do not overlap."""
    parts = []
    for m in found:
        fit = (part for part in parts if not any(m.overlaps(other) for other in part))
        part = next(fit, None)
        if part is None:
            parts.append([m])
        else:
            part.append(m)
    return parts


def build(source, cc, libraries, part, folder):
    """The program that holds these mutants, in a folder of its own."""
    for f in os.listdir(f"{source}/lib/stage"):
        if f.endswith((".h", ".cu", ".def")):
            shutil.copy(f"{source}/lib/stage/{f}", folder)
    for path in {m.path for m in part}:
        text = read(f"{source}/{path}")
        here = [m for m in part if m.path == path]
        for m in sorted(here, key=lambda m: m.span, reverse=True):
            text = text[: m.span[0]] + m.text + text[m.span[1] :]
        with open(os.path.join(folder, os.path.basename(path)), "w", encoding="utf-8") as f:
            f.write(text)
    program = os.path.join(folder, "mutants")
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
            sys.exit(f"a program of {len(part)} mutants does not compile\n{done.stdout}")
    return program


def judge(program, mutant):
    """None where the mutant is found, else the reason why that is not so."""
    try:
        done = subprocess.run(
            [program, "--mutant", str(mutant.number if mutant else 0)],
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
    print(f"found: {mutant.name if mutant else 'none'}\n       {said[0] if said else done.returncode}")
    return None


def main():
    source, cc, *libraries = sys.argv[1:]
    found, left = mutants(source)
    parts = programs(found)
    bad = [f"{place}: no rule spoils this call" for place in left]
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(os.cpu_count()) as pool:
        folders = [os.path.join(scratch, str(i)) for i in range(len(parts))]
        for folder in folders:
            os.mkdir(folder)
        built = list(pool.map(lambda p, f: build(source, cc, libraries, p, f), parts, folders))
        # The sources as they are must pass, or nothing here says anything.
        for reason in pool.map(lambda program: judge(program, None), built):
            if reason != "the tests pass":
                sys.exit(f"the unchanged sources: {reason or 'the tests fail'}")
        runs = [(program, m) for program, part in zip(built, parts) for m in part]
        for (_, m), reason in zip(runs, pool.map(lambda run: judge(*run), runs)):
            if reason is not None:
                bad.append(f"{m.name}: {reason}")
    for b in bad:
        print("not found: " + b)
    print(f"{len(found)} mutants in {len(parts)} programs, {len(bad)} faults")
    sys.exit(1 if bad or not found else 0)


main()
