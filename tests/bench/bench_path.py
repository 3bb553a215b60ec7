#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The whole path on the software device beside dpdk-testpmd: a ratio, never a gate.

    bench_path.py MILLRACE [--pairs N] [--seconds S] [--json]

Both take frames of 64 bytes from net_null in bursts of 32, exchange their Ethernet
addresses and send them to net_null: millrace by a lane on core 1 and a worker of the
software device on core 0, testpmd (macswap) by one thread on core 1. Both use hugepages
and --in-memory. Rounds are interleaved ABBA, and the medians of the pairs' ratios are
reported: packets per second, and packets per second of processor time of the thread
that polls (from schedstat). The latter counts a lane's waiting for the worker as work.

Wall time on a machine that others use says little: read the ratios, and run it alone.
Needs root for hugepages; skips (77) where something is missing.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
from harness import Skipped, machine_hugepages  # noqa: E402

SKIP = 77
WANTED = 512
VDEV = "net_null0,size=64,copy=0"
CONFIG = """
eal: {{hugepages: auto}}
devices:
  - {{name: g0, device: sim, region: 64MiB}}
ports:
  - {{name: p0, device: "{vdev}"}}
lanes:
  - name: l0
    rx: {{port: p0, queue: 0}}
    tx: [{{port: p0, queue: 0}}]
    core: 1
    device: g0
    path: [direct]
    batch: {{packets: 32, timeout_us: 20}}
    slots: 16
    stages: [{{use: l2swap}}]
"""


def thread(pid, *names):
    """The id of the thread of that name, once there is one."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            try:
                if (task / "comm").read_text(encoding="ascii").strip() in names:
                    return int(task.name)
            except (FileNotFoundError, ProcessLookupError):
                continue  # a thread of the start, which has ended
        time.sleep(0.05)
    raise RuntimeError(f"no thread {names[0]}")


def cpu_s(pid, tid):
    text = pathlib.Path(f"/proc/{pid}/task/{tid}/schedstat").read_text(encoding="ascii")
    return int(text.split()[0]) / 1e9


def between(read, seconds):
    """(packets per second, packets per second of processor time) of what read() gives."""
    t0, (p0, c0) = time.monotonic(), read()
    time.sleep(seconds)
    t1, (p1, c1) = time.monotonic(), read()
    return (p1 - p0) / (t1 - t0), (p1 - p0) / (c1 - c0)


def millrace(program, scratch, seconds):
    config = scratch / "path.yaml"
    config.write_text(CONFIG.format(vdev=VDEV), encoding="ascii")
    env = dict(os.environ, RUNTIME_DIRECTORY=str(scratch))
    run = subprocess.Popen([program, "run", config, "--json"], env=env,
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        os.sched_setaffinity(thread(run.pid, "mr-sim-0"), {0})
        lane = thread(run.pid, "lane-l0")
        time.sleep(1)

        def read():
            stats = subprocess.run([program, "stats", "--json"], env=env, capture_output=True,
                                   check=True, timeout=20)
            packets = json.loads(stats.stdout)["lanes"][0]["tx_packets"]
            return packets, cpu_s(run.pid, lane)

        return between(read, seconds)
    finally:
        run.terminate()
        run.communicate(timeout=20)


def testpmd(scratch, seconds):
    run = subprocess.Popen(
        # Line by line: it is read while it runs.
        ["stdbuf", "-oL", "dpdk-testpmd", "--in-memory", "--no-pci", "-l", "0,1",
         "--no-telemetry", "--file-prefix", f"mr-path-{os.getpid()}", "--vdev", VDEV, "--", "-i",
         "--forward-mode=macswap", "--burst=32", "--nb-cores=1", "--mp-alloc=xbuf"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        cwd=scratch)
    try:
        run.stdin.write("start\n")
        run.stdin.flush()
        worker = thread(run.pid, "lcore-worker-1", "rte-worker-1")
        time.sleep(1)

        def read():
            run.stdin.write("show port stats 0\n")
            run.stdin.flush()
            for line in run.stdout:
                sent = re.search(r"TX-packets:\s*(\d+)", line)
                if sent:
                    return int(sent.group(1)), cpu_s(run.pid, worker)
            raise RuntimeError("testpmd ended early")

        return between(read, seconds)
    finally:
        run.communicate("stop\nquit\n", timeout=20)


def pair_of(program, seconds, order):
    """What the sides A (millrace) and B (testpmd) did, in that order."""
    got = {}
    for side in order:
        with tempfile.TemporaryDirectory() as folder:
            scratch = pathlib.Path(folder)
            got[side] = (
                millrace(program, scratch, seconds) if side == "A" else testpmd(scratch, seconds)
            )
    return got


def measure(a):
    """One row per pair."""
    if shutil.which("dpdk-testpmd") is None or os.cpu_count() < 2:
        raise Skipped("needs dpdk-testpmd and two processors")
    rows = []
    with machine_hugepages() as (file, before):
        if before < WANTED:
            file.write_text(str(WANTED), encoding="ascii")
        if int(file.read_text(encoding="ascii")) < WANTED:
            raise Skipped("no memory for hugepages")
        for pair in range(a.pairs):
            got = pair_of(os.path.abspath(a.millrace), a.seconds, ("AB", "BA")[pair % 2])
            rows.append(got)
            if not a.json:
                print("pair {}: millrace {:.1f} M/s, {:.1f} M/cpu-s; testpmd {:.1f} M/s, "
                      "{:.1f} M/cpu-s".format(pair, *(x / 1e6 for s in "AB" for x in got[s])))
    return rows


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    ap.add_argument("millrace")
    ap.add_argument("--pairs", type=int, default=6)
    ap.add_argument("--seconds", type=float, default=3)
    ap.add_argument("--json", action="store_true")
    a = ap.parse_args()
    try:
        rows = measure(a)
    except Skipped as why:
        print(f"skipped: {why}", file=sys.stderr)
        return SKIP
    rate = statistics.median(r["A"][0] / r["B"][0] for r in rows)
    cpu = statistics.median(r["A"][1] / r["B"][1] for r in rows)
    if a.json:
        print(json.dumps({"rate_ratio": rate, "cpu_ratio": cpu, "pairs": rows}))
    else:
        print(f"millrace / testpmd: rate {rate:.2f}, packets per cpu-second of the polling "
              f"thread {cpu:.2f} (medians of {len(rows)} pairs)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
