# SPDX-License-Identifier: BSD-3-Clause
"""The headers that two compilers read mean the same to both.

usage: abi.py CC OTHER...
OTHER is g++ or nvcc with its path. Every shared header compiles alone under it as
C++17, and a table of the sizes, alignments and member offsets that the C compiler
gives to the structs of mr_ring_abi.h is asserted under it, for nvcc in its host
pass and in its device pass.
"""
import os
import re
import subprocess
import sys
import tempfile

import tree

SHARED = [
    "lib/ring/mr_ring_abi.h",
    "lib/ring/mr_device.h",
    "lib/ring/mr_sync.h",
    "lib/ring/mr_ring.h",
    "lib/stage/mr_param.h",
    "lib/stage/mr_packet.h",
    "lib/stage/mr_sum.h",
    "lib/stage/mr_format.h",
    "lib/stage/mr_ipfix.h",
    "lib/stage/mr_stage.h",
]
DEVICE_ONLY = ["lib/stage/mr_kernel.h"]
ABI = "lib/ring/mr_ring_abi.h"


def includes():
    folders = ["lib/base", "lib/ring", "lib/stage", "drivers/cudasim"]
    return ["-I" + os.path.join(tree.SOURCE, f) for f in folders]


def structs():
    """(struct, members) as written in the header."""
    source = tree.without_comments(tree.text(ABI))
    for m in re.finditer(r"^struct (\w+) \{\n(.*?)^\}", source, re.M | re.S):
        members = []
        for declaration in m.group(2).split(";"):
            declaration = re.sub(r"__attribute__\(\(.*\)\)", "", declaration).strip()
            for name in declaration.split(","):
                name = re.sub(r"\[.*?\]", "", name).split()
                if name:
                    members.append(name[-1])
        yield m.group(1), members


def measure(cc, folder):
    """Expressions and their values under the C compiler."""
    expressions = []
    for name, members in structs():
        expressions.append(f"sizeof(struct {name})")
        expressions.append(f"alignof(struct {name})")
        expressions += [f"offsetof(struct {name}, {member})" for member in members]
    source = os.path.join(folder, "measure.c")
    program = os.path.join(folder, "measure")
    with open(source, "w", encoding="utf-8") as f:
        f.write('#include "mr_ring_abi.h"\n')
        f.write("#include <stdalign.h>\n#include <stddef.h>\n#include <stdio.h>\n")
        f.write("int main(void)\n{\n")
        for e in expressions:
            f.write(f'\tprintf("%zu\\n", (size_t){e});\n')
        f.write("\treturn 0;\n}\n")
    subprocess.run([cc, "-std=gnu17", *includes(), source, "-o", program], check=True)
    values = subprocess.run([program], stdout=subprocess.PIPE, text=True, check=True)
    return list(zip(expressions, values.stdout.split()))


def compile_other(other, source, folder):
    if "nvcc" in os.path.basename(other):
        flags = ["-x", "cu", "-arch=compute_80", "-Werror", "all-warnings"]
    else:
        flags = ["-x", "c++", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function"]
    run = subprocess.run(
        [other, "-std=c++17", *flags, *includes(), "-c", source]
        + ["-o", os.path.join(folder, "out.o")],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return run.returncode, run.stdout


def main():
    if len(sys.argv) < 3:
        tree.skip("this compiler is not installed")
    cc, other = sys.argv[1], sys.argv[2]
    verdict = tree.Verdict()
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "alone.cc")
        for header in SHARED + (DEVICE_ONLY if "nvcc" in other else []):
            with open(source, "w", encoding="utf-8") as f:
                f.write(f'#include "{os.path.basename(header)}"\n' * 2)
            verdict.checked += 1
            status, output = compile_other(other, source, folder)
            if status != 0:
                verdict.bad(f"{header}: does not compile alone under {other}\n{output}")
        table = measure(cc, folder)
        with open(source, "w", encoding="utf-8") as f:
            f.write('#include "mr_ring_abi.h"\n#include <stddef.h>\n')
            for expression, value in table:
                f.write(f'static_assert({expression} == {value}, "{expression}");\n')
        verdict.checked += len(table)
        status, output = compile_other(other, source, folder)
        if status != 0:
            verdict.bad(f"{ABI}: {cc} and {other} lay it out differently\n{output}")
    verdict.done("headers and measures")


main()
