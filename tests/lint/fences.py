# SPDX-License-Identifier: BSD-3-Clause
"""READY in GPU memory is fenced on both sides, in the instructions themselves.

usage: fences.py LIBRARY
The CPU's mapping of GPU memory combines writes: without a fence before the store READY may
arrive before the descriptors, without one after it READY may linger. No test of values sees
either, so the compiled function is looked at: it stores once between two fences, last of all.
"""
import platform
import re
import shutil
import subprocess
import sys

import tree

FUNCTION = "mr_ring_give_mapped"
COPIES = "fill_mapped"  # may be a function of its own
STORE = r"\bmov[lq]?\s+%\w+,(0x[0-9a-f]+)?\(%r\w+\)"


# DPDK lib/gpudev/gpudev.c rte_gpu_comm_populate_list_pkts: nothing orders the packets before
# READY. DPDK drivers/gpu/cuda/cuda.c:1130: no fence follows the store to a mapping that combines
# writes.
def main():
    if platform.machine() != "x86_64":
        tree.skip("the instructions of x86_64 are known, those of this machine are not")
    if shutil.which("objdump") is None:
        tree.skip("objdump is not installed")
    verdict = tree.Verdict()
    run = subprocess.run(
        ["objdump", "--no-show-raw-insn", "-d", sys.argv[1]],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    bodies = dict(re.findall(r"<(\w+)>:\n(.*?)(?:\n\n|\Z)", run.stdout, re.S))
    copies = bodies.get(COPIES, "").replace("\\", "")
    code = re.sub(rf".*\bcall\b.*<{COPIES}>", copies, bodies.get(FUNCTION, ""))
    parts = re.split(r"\bsfence\b", code)
    verdict.checked += 1 if code else 0
    if len(parts) != 3:
        verdict.bad(f"{FUNCTION}: {len(parts) - 1} fences, and two are wanted")
    elif len(re.findall(STORE, parts[1])) != 1:
        verdict.bad(f"{FUNCTION}: not one store between its fences:{parts[1]}")
    elif re.search(STORE + r"|\bcall", parts[2]):
        verdict.bad(f"{FUNCTION}: something is stored behind the last fence:{parts[2]}")
    verdict.done("functions")


main()
