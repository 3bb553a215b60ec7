# SPDX-License-Identifier: BSD-3-Clause
"""What nvcc made of the persistent kernel and of each stage.

usage: image.py [NVCC FATBIN LOG]
FATBIN is what the build made, LOG what image_log.py wrote of it.
The PTX: packet bytes and tables change behind the kernel's back, so nothing is loaded by the
read-only path; a slot is handed over by acquire, fence and release with system scope and
nowhere by less; a stage that calls mr_frame_load_16 has 16-byte loads, and a WARP stage reads
frames by 16 bytes, by single bytes where a frame begins and ends, and both past the L1 cache.
The report of ptxas: registers and shared memory have a ceiling, and neither an entry nor a stage
uses local memory. The machine code too, where there is a cuobjdump. And the image took less than
six minutes of processor time, with other compilers beside it.

For what is said of stages each is compiled as a kernel of its own.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

import tree

# entry: registers a thread, bytes of shared memory a block
CEILING = {
    "mr_kernel_thread": (128, 64),
    "mr_kernel_warp": (128, 64),
    "mr_kernel_order": (224, 64),
}
STAGE_REGISTERS = {"THREAD": 64, "WARP": 64, "ORDER": 144}
COMPILE_SECONDS = 360

IMAGE = os.path.join(tree.SOURCE, "lib/stage/mr_image.cu")
FOLDERS = ("lib/base", "lib/ring", "lib/stage", "drivers/cudasim")
STAGE_KERNEL = """
extern "C" __global__ void stage_{name}(struct mr_ctx ctx, struct mr_view v, struct mr_view *out)
{{
	if (mr_stage_{name}(&ctx, &v) == MR_NEXT)
		*out = v;
}}
"""

# What may not be in PTX, and why.
NOT_IN_PTX = [
    (r"\bld\.global\.nc\b|\bld\.const\b|\bldu\b|\btex\.", "the read-only path may be stale"),
    (r"\b(ld|st)\.(acquire|release)\.(cta|cluster|gpu)\b", "the host is outside that scope"),
    (r"\b(membar\.(cta|gl)|fence\.\w+\.(cta|cluster|gpu))\b", "the host is outside that scope"),
    (r"\bld\.volatile\b|\bst\.volatile\b", "volatile hands nothing over"),
    (r"^\s*\.local\b", "local memory"),
]
FENCE = r"\b(membar|fence\.(sc|acq_rel))\.sys\b"


def run(command, folder):
    done = subprocess.run(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        print(done.stdout)
        sys.exit(1)
    return done.stdout


def nvcc(tool, folder, source, *options):
    include = ["-I" + os.path.join(tree.SOURCE, d) for d in FOLDERS]
    return run([tool, "-std=c++17", "-O3", *include, *options, source], folder)


def codes(tool):
    """The GPUs of the build's image that this nvcc can compile for, oldest first."""
    build = tree.text("lib/stage/meson.build")
    wanted = re.findall(r"'(\d+)'", re.search(r"foreach a : \[('.*?)\]", build).group(1))
    known = subprocess.run([tool, "--list-gpu-code"], stdout=subprocess.PIPE, text=True, check=True)
    return [c for c in wanted if "sm_" + c in known.stdout.split()]


def stages():
    """(name, work) of every built-in stage."""
    return re.findall(r"^STAGE\((\w+), (\w+)\)", tree.text("lib/stage/mr_stages.def"), re.M)


def entries_of(ptx):
    """Entry to its lines; what is outside of all entries is under ''."""
    found = {"": []}
    name = ""
    for line in ptx.split("\n"):
        m = re.match(r"(?:\.visible )?\.entry (\w+)", line)
        name = m.group(1) if m else name
        found.setdefault(name, []).append(line)
        name = "" if line == "}" else name
    return found


def ptx_of(tool, folder, source, code):
    path = os.path.join(folder, "image.ptx")
    nvcc(tool, folder, source, "-ptx", f"-arch=compute_{code}", "-o", path)
    with open(path, encoding="utf-8") as f:
        return entries_of(f.read())


def check_not(name, lines, where, verdict):
    verdict.checked += 1
    for line in lines:
        for pattern, why in NOT_IN_PTX:
            if re.search(pattern, line):
                verdict.bad(f"{where}: {name or 'outside of entries'}: {line.strip()}: {why}")


# NVIDIA/l2fwd-nv src/kernel.cu persistent kernel: what READY hands over is read without an acquire.
# NVIDIA/l2fwd-nv src/kernel.cu:183: DONE is stored before the fence of system scope.
def check_handover(name, lines, where, verdict):
    """READY is acquired, then all fence, meet at a barrier, and DONE is released.

    Behind the barrier three words are released: how many records of a capture there are, DONE, and
    why the worker left; what is released before is that a reload or a capture was taken.
    """
    text = "\n".join(lines)
    at = 0
    verdict.checked += 1
    for what, pattern in (
        ("acquire of READY", r"\bld\.acquire\.sys\.global\.u32\b"),
        ("fence of system scope", FENCE),
        ("barrier that counts what changed", r"\b(bar|barrier)\S*\.red\b"),
        ("release of what a capture gets", r"\bst\.release\.sys\.global\.u32\b"),
        ("release of DONE", r"\bst\.release\.sys\.global\.u32\b"),
        ("release of why it left", r"\bst\.release\.sys\.global\.u32\b"),
    ):
        m = re.compile(pattern).search(text, at)
        if m is None:
            verdict.bad(f"{where}: {name}: no {what} behind what has to come before")
            return
        at = m.end()


def frame_addresses(name, lines):
    """The registers that hold addresses in the frame: what pointer arithmetic makes of view.frame."""
    pointer = re.compile(r"\b(?:add|sub|mov|selp|min|max|mad\.\w+|cvta(?:\.to)?\.global)\.[bsu]64\s+(%rd\d+), (.*);")
    first = re.compile(rf"\bld\.param\.u64\s+(%rd\d+), \[stage_{name}_param_1\];")
    found = {m.group(1) for m in map(first.search, lines) if m}
    known = -1
    while known < len(found):
        known = len(found)
        for m in filter(None, map(pointer.search, lines)):
            if found & set(re.findall(r"%rd\d+", m.group(2))):
                found.add(m.group(1))
    return found


# nv-morpheus/Morpheus #1820: lines of a reused buffer that stayed in a cache double packets.
def check_stage(name, work, lines, where, verdict):
    verdict.checked += 1
    claims = "mr_frame_load_16(" in tree.text(f"lib/stage/mr_stage_{name}.cu")
    addresses = frame_addresses(name, lines)
    loads = [re.search(r"\bld\.(?!param)(\S+)\s.*\[(%rd\d+)", line) for line in lines]
    of_frame = [m.group(1) for m in loads if m and m.group(2) in addresses]
    if (claims or work == "WARP") and "relaxed.sys.global.v4.u32" not in of_frame:
        verdict.bad(f"{where}: stage {name}: no 16-byte load of the frame past the L1 cache")
    for kind in of_frame if work == "WARP" else ():
        if kind not in ("relaxed.sys.global.v4.u32", "relaxed.sys.global.u8"):
            verdict.bad(f"{where}: stage {name}: ld.{kind} of the frame may come from the L1 cache")


def measures(log):
    """(entry, code, words) as ptxas -v reports them."""
    part = re.split(r"Compiling entry function '(\w+)' for 'sm_(\d+)'", log)
    return [tuple(part[i : i + 3]) for i in range(1, len(part), 3)]


def check_measures(entry, code, words, most, verdict):
    value = []
    for pattern in (
        r"Used (\d+) registers",
        r"(\d+) bytes smem",
        r"(\d+) bytes stack frame",
        r"(\d+) bytes spill stores",
        r"(\d+) bytes spill loads",
    ):
        m = re.search(pattern, words)
        value.append(int(m.group(1)) if m else 0)
    names = ("registers", "bytes of shared memory", "bytes of stack", "bytes of spill stores")
    verdict.checked += len(value)
    for what, v, limit in zip(names + ("bytes of spill loads",), value, most + (0, 0, 0)):
        if v > limit:
            verdict.bad(f"sm_{code}: {entry} uses {v} {what}, at most {limit} are allowed")
    print(
        f"sm_{code} {entry}: {value[0]} registers, {value[1]} B shared, {value[2]} B stack, "
        f"{value[3]} B spilled"
    )


def check_machine_code(sass, verdict):
    """The same in the instructions that the GPU gets."""
    for part in re.split(r"\bFunction : ", sass)[1:]:
        name = part.split()[0]
        verdict.checked += 1
        for pattern, why in (
            (r"\bLDG\S*\.CONSTANT\b", "the read-only path may be stale"),
            (r"\b(LDL|STL)\b", "local memory"),
        ):
            if re.search(pattern, part):
                verdict.bad(f"machine code of {name}: {re.search(pattern, part).group(0)}: {why}")
        wanted = [r"\bLDG\S*\.STRONG\.SYS\b", r"\bMEMBAR\S*\.SYS\b", r"\bSTG?\S*\.STRONG\.SYS\b"]
        if name == "mr_kernel_warp":
            wanted.append(r"\bLDG\S*\.128\S*\.STRONG\.SYS\b")
        for pattern in wanted:
            if not re.search(pattern, part):
                verdict.bad(f"machine code of {name}: nothing matches {pattern}")


def check_entries(tool, log, folder, gpus, verdict):
    for code in (gpus[0], gpus[-1]):
        for name, lines in ptx_of(tool, folder, IMAGE, code).items():
            check_not(name, lines, f"compute_{code}", verdict)
            if name in CEILING:
                check_handover(name, lines, f"compute_{code}", verdict)
    with open(log, encoding="utf-8") as f:
        words = f.read()
    seconds = float(re.search(r"^processor time: (\S+) s$", words, re.M)[1])
    print(f"the image took {seconds:.1f} s of processor time")
    verdict.checked += 1
    if seconds >= COMPILE_SECONDS:
        verdict.bad(f"the image took {seconds:.0f} s, at most {COMPILE_SECONDS} are allowed")
    found = measures(words)
    if len(found) != len(CEILING) * len(gpus):
        verdict.bad(f"{len(found)} entries compiled, {len(CEILING) * len(gpus)} expected")
    for entry, code, part in found:
        if entry in CEILING:
            check_measures(entry, code, part, CEILING[entry], verdict)
        else:
            verdict.bad(f"sm_{code}: the entry {entry} has no ceiling in image.py")


def check_stages(tool, folder, gpus, verdict):
    source = os.path.join(folder, "stages.cu")
    with open(source, "w", encoding="utf-8") as f:
        f.write('#include "mr_kernel.h"\n')
        for name, _ in stages():
            f.write(STAGE_KERNEL.format(name=name))
    for code in (gpus[0], gpus[-1]):
        ptx = ptx_of(tool, folder, source, code)
        for name, work in stages():
            check_not(name, ptx["stage_" + name], f"compute_{code}", verdict)
            check_stage(name, work, ptx["stage_" + name], f"compute_{code}", verdict)
        log = nvcc(tool, folder, source, "-cubin", f"-arch=sm_{code}", "-Xptxas", "-v", "-o", "s")
        found = measures(log)
        if {e for e, _, _ in found} != {"stage_" + name for name, _ in stages()}:
            verdict.bad(f"sm_{code}: ptxas reports other stages than mr_stages.def has")
        work_of = {"stage_" + name: work for name, work in stages()}
        for entry, gpu, words in found:
            check_measures(entry, gpu, words, (STAGE_REGISTERS[work_of[entry]], 0), verdict)


def main():
    if len(sys.argv) < 4:
        tree.skip("nvcc is not installed")
    tool, fatbin, log = sys.argv[1], *map(os.path.abspath, sys.argv[2:])
    beside = os.path.join(os.path.dirname(os.path.realpath(tool)), "cuobjdump")
    cuobjdump = beside if os.path.exists(beside) else shutil.which("cuobjdump")
    verdict = tree.Verdict()
    with tempfile.TemporaryDirectory() as folder:
        gpus = codes(tool)
        check_entries(tool, log, folder, gpus, verdict)
        check_stages(tool, folder, gpus, verdict)
        if cuobjdump is None:
            print("no cuobjdump: the machine code is not looked at")
        else:
            check_machine_code(run([cuobjdump, "-sass", fatbin], folder), verdict)
    verdict.done("measures")


main()
