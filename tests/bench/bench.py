#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Instructions per packet of a lane beside dpdk-testpmd on the same virtual devices.

    bench.py BUILD [--quick] [--json] [--gate FILE | --record FILE]

Each figure is the difference of two run lengths under callgrind, divided by the
difference in packets, so that start-up cancels out; what the switches of collection
cost is taken off. The lane is bench_lane, which plays the kernel between two turns: no
empty poll is counted and every slot is full. The floor is one receive and one send burst
on the same port: what the driver and ethdev cost. testpmd forwards in io mode with a
burst of 32; its lane thread alone is counted. The guard is off under Valgrind, which has
no protection keys.

A chain is the kernel's part alone, of that many stages that change nothing, while packet memory is
inaccessible; "each added stage" is the line through chains of 1 and 8. One stage that does all of
them by hand is the chain of 1.

"each copy" is what a capture costs the kernel for each of the two copies of a packet: the head of the
record (4 instructions of it) and all else but the copying of its bytes, which is taken off by copies of
16 and of 64.

"each packet" and "each batch" are the line through batch 32 and batch 64: a batch of n
costs n x each packet + each batch.

--gate compares with recorded figures and fails on more than 2 % above one, and wherever
frames of 9000 bytes cost 0.5 % more or less than frames of 60, or a lane of route with
100,000 prefixes 1 % more or less than one of forward. Figures are of one
compiler, one DPDK and AVX2; elsewhere it skips (77). --record writes the file.
"""
import argparse
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

GATE = 1.02
FLAT = 1.005
STAGES = 1.01
COPY_MAX = 40  # beyond the bytes that are copied
CHAIN_MAX = 8  # MR_CHAIN_MAX
SKIP = 77


class Bench:
    def __init__(self, build, scratch):
        self.program = os.path.join(build, "tests", "bench_lane")
        self.scratch = scratch
        self.toggles = 0.0
        self.made_with = ""
        packets, count = self.run("toggles", "ring", 1, 60, 3000)
        self.toggles = count / packets

    def run(self, what, kind, batch, length, turns, *stage):
        out = os.path.join(self.scratch, "lane")
        run = subprocess.run(
            ["valgrind", "--tool=callgrind", "--collect-atstart=no",
             f"--callgrind-out-file={out}", self.program, what, kind, str(batch), str(length),
             str(turns), *stage], capture_output=True, text=True, timeout=300, check=True)
        packets = int(re.search(r"^(\d+) packets", run.stdout, re.M).group(1))
        self.made_with = re.search(r"^made with (.*)", run.stdout, re.M).group(1)
        count = int(re.search(r"Collected\s*:\s*(\d+)", run.stderr).group(1))
        return packets, count - self.toggles * turns

    def per_packet(self, what, kind, batch, length, *stage):
        turns = max(100, (16000 if stage else 64000) // batch)
        p0, i0 = self.run(what, kind, batch, length, turns, *stage)
        p1, i1 = self.run(what, kind, batch, length, 3 * turns, *stage)
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


def each_packet(bench, what):
    """Of a kernel's batch of n, n x this + something."""
    n32, n64 = (n * bench.per_packet(what, "ring", n, 64, "forward") for n in (32, 64))
    return (n64 - n32) / 32


def each_copy(bench):
    none, short, long = (each_packet(bench, what) for what in ("chain1", "copy16", "copy64"))
    return (short - none) / 2 - (long - short) / 6


def measure(bench, quick):
    figures = {}
    sizes = (8, 32, 64) if quick else (1, 8, 32, 64, 128, 256)
    lengths = (9000,) if quick else (1500, 9000)
    for kind in ("ring", "null"):
        for batch in sizes:
            figures[f"lane {kind} batch {batch}"] = bench.per_packet("lane", kind, batch, 60)
        for batch in (32, 64):
            figures[f"floor {kind} batch {batch}"] = bench.per_packet("floor", kind, batch, 60)
        for length in lengths:
            figures[f"lane {kind} batch 32 length {length}"] = bench.per_packet(
                "lane", kind, 32, length)
    for stage in ("forward", "route"):
        figures[f"lane ring batch 32 stage {stage}"] = bench.per_packet(
            "lane", "ring", 32, 64, stage)
    for n in (1, CHAIN_MAX):
        figures[f"kernel chain of {n}"] = bench.per_packet(f"chain{n}", "ring", 32, 64, "forward")
    figures["kernel each added stage"] = (
        figures[f"kernel chain of {CHAIN_MAX}"] - figures["kernel chain of 1"]) / (CHAIN_MAX - 1)
    figures["kernel each copy"] = each_copy(bench)
    if not quick:
        for kind, extra in (("ring", []), ("null", []), ("null", ["--mp-alloc=xbuf"])):
            name = " ".join([f"testpmd io {kind} burst 32", *extra])
            figures[name] = testpmd_per_packet(bench.scratch, f"net_{kind}0", extra)
    for what in ("lane", "floor"):
        for kind in ("ring", "null"):
            n32 = figures[f"{what} {kind} batch 32"] * 32
            n64 = figures[f"{what} {kind} batch 64"] * 64
            figures[f"{what} {kind} each packet"] = (n64 - n32) / 32
            figures[f"{what} {kind} each batch"] = 2 * n32 - n64
    return figures


def judge(figures, recorded):
    bad = 0
    for name, limit in recorded.items():
        if figures[name] > limit * GATE:
            print(f"{name}: {figures[name]:.1f} instructions, recorded {limit:.1f}",
                  file=sys.stderr)
            bad += 1
    for kind in ("ring", "null"):
        short = figures[f"lane {kind} batch 32"]
        long = figures[f"lane {kind} batch 32 length 9000"]
        if not short / FLAT <= long <= short * FLAT:
            print(f"lane {kind}: {long:.2f} instructions at 9000 bytes, {short:.2f} at 60",
                  file=sys.stderr)
            bad += 1
    forward, route = (figures[f"lane ring batch 32 stage {s}"] for s in ("forward", "route"))
    if not forward / STAGES <= route <= forward * STAGES:
        print(f"lane ring: {route:.2f} instructions with route, {forward:.2f} with forward",
              file=sys.stderr)
        bad += 1
    if figures["kernel each copy"] > COPY_MAX:
        print(f"kernel: {figures['kernel each copy']:.2f} instructions a copy", file=sys.stderr)
        bad += 1
    return bad


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    ap.add_argument("build")
    ap.add_argument("--quick", action="store_true", help="the gated figures only")
    ap.add_argument("--json", action="store_true")
    ap.add_argument("--gate", metavar="FILE", help="recorded figures to compare with")
    ap.add_argument("--record", metavar="FILE", help="write the figures there")
    a = ap.parse_args()

    recorded = None
    if shutil.which("valgrind") is None:
        print("skipped: no valgrind", file=sys.stderr)
        return SKIP
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(a.build, scratch)
        if a.gate:
            with open(a.gate, encoding="ascii") as f:
                recorded = json.load(f)
            if recorded["made_with"] != bench.made_with:
                print(f"skipped: recorded with {recorded['made_with']}, "
                      f"this is {bench.made_with}", file=sys.stderr)
                return SKIP
        figures = measure(bench, a.quick)
    if a.json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"{name:45s} {value:8.2f} instructions")
        print(f"{'(taken off: the switches, each batch)':45s} {bench.toggles:8.2f} instructions")
    if a.record:
        kept = {name: round(value, 2) for name, value in figures.items()
                if re.fullmatch(r"lane (ring|null) batch (8|32|64)|kernel each (added stage|copy)", name)}
        with open(a.record, "w", encoding="ascii") as f:
            json.dump({"made_with": bench.made_with, "figures": kept}, f, indent=1)
            f.write("\n")
    return 1 if recorded and judge(figures, recorded["figures"]) else 0


if __name__ == "__main__":
    sys.exit(main())
