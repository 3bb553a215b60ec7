#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Instructions per packet of a lane beside dpdk-testpmd on the same virtual devices.

    bench.py BUILD [--quick] [--json] [--gate FILE]

Each figure is the difference of two run lengths under callgrind, divided by the
difference in packets, so that start-up cancels out. The lane is bench_lane, which
plays the kernel between two turns: no empty poll is counted and every slot is full.
testpmd forwards in io mode with a burst of 32; its lane thread alone is counted.
The guard is off under Valgrind, which has no protection keys.

--gate compares with recorded figures and fails on more than 2 % above one.
"""
import argparse
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import time

GATE = 1.02


def lane(build, scratch, kind, batch, length, turns):
    out = os.path.join(scratch, "lane")
    run = subprocess.run(
        ["valgrind", "--tool=callgrind", "--collect-atstart=no", f"--callgrind-out-file={out}",
         os.path.join(build, "tests", "bench", "bench_lane"), kind, str(batch), str(length),
         str(turns)], capture_output=True, text=True, timeout=300, check=True)
    packets = int(re.search(r"^(\d+) packets", run.stdout, re.M).group(1))
    return packets, int(re.search(r"Collected\s*:\s*(\d+)", run.stderr).group(1))


def lane_per_packet(build, scratch, kind, batch, length):
    turns = max(100, 64000 // batch)
    p0, i0 = lane(build, scratch, kind, batch, length, turns)
    p1, i1 = lane(build, scratch, kind, batch, length, 3 * turns)
    return (i1 - i0) / (p1 - p0)


def testpmd(scratch, vdev, extra, seconds):
    out = os.path.join(scratch, "pmd")
    for old in glob.glob(out + "*"):
        os.unlink(old)
    run = subprocess.Popen(
        ["valgrind", "--tool=callgrind", "--separate-threads=yes", f"--callgrind-out-file={out}",
         "dpdk-testpmd", "--no-huge", "-m", "512", "--no-pci", "-l", "0,1", "--no-telemetry",
         "--no-shconf", "--file-prefix", f"mr-bench-{os.getpid()}", "--vdev", vdev, "--",
         "--forward-mode=io", "--burst=32", "--nb-cores=1", "--total-num-mbufs=4096",
         "--no-flush-rx", "--tx-first", *extra],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    time.sleep(seconds)
    text, _ = run.communicate("\n", timeout=120)
    packets = int(re.findall(r"RX-total:\s*(\d+)", text)[-1])
    counts = []
    for name in glob.glob(out + "-*"):
        with open(name, encoding="ascii", errors="replace") as f:
            counts.append(int(re.search(r"^totals:\s*(\d+)", f.read(), re.M).group(1)))
    return packets, max(counts)


def testpmd_per_packet(scratch, vdev, extra):
    p0, i0 = testpmd(scratch, vdev, extra, 8)
    p1, i1 = testpmd(scratch, vdev, extra, 14)
    return (i1 - i0) / (p1 - p0)


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    ap.add_argument("build")
    ap.add_argument("--quick", action="store_true", help="the gated figures only")
    ap.add_argument("--json", action="store_true")
    ap.add_argument("--gate", metavar="FILE", help="recorded figures to compare with")
    a = ap.parse_args()

    cases = [(k, b, 60) for k in ("ring", "null") for b in (8, 32, 64)]
    if not a.quick:
        cases += [("ring", b, 60) for b in (1, 128, 256)]
        cases += [(k, 32, n) for k in ("ring", "null") for n in (1500, 9000)]
    figures = {}
    with tempfile.TemporaryDirectory() as scratch:
        for kind, batch, length in cases:
            figures[f"lane {kind} batch {batch} length {length}"] = lane_per_packet(
                a.build, scratch, kind, batch, length)
        if not a.quick:
            figures["testpmd io ring burst 32"] = testpmd_per_packet(scratch, "net_ring0", [])
            figures["testpmd io null burst 32"] = testpmd_per_packet(scratch, "net_null0", [])
            figures["testpmd io null burst 32 external buffers"] = testpmd_per_packet(
                scratch, "net_null0", ["--mp-alloc=xbuf"])
    # Instructions = per packet x packets + per batch, from two batch sizes.
    for kind in ("ring", "null"):
        n32 = figures[f"lane {kind} batch 32 length 60"] * 32
        n64 = figures[f"lane {kind} batch 64 length 60"] * 64
        figures[f"lane {kind} each packet"] = (n64 - n32) / 32
        figures[f"lane {kind} each batch"] = 2 * n32 - n64
    if a.json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"{name:45s} {value:8.1f} instructions")
    failed = False
    if a.gate:
        with open(a.gate, encoding="ascii") as f:
            recorded = json.load(f)
        for name, limit in recorded.items():
            if figures[name] > limit * GATE:
                print(f"{name}: {figures[name]:.1f} instructions, recorded {limit:.1f}",
                      file=sys.stderr)
                failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
