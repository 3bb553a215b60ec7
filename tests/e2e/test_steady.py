#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A lane with a core of its own, once it runs, asks nothing of the kernel.

    test_steady.py MILLRACE

Judged by the kernel's own books of the lane's thread: page faults and voluntary switches
from /proc, system calls by strace attached to that thread alone.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SKIP = 77
PATIENCE = float(os.environ.get("MILLRACE_PATIENCE", "1"))
WARM_S, WATCH_S = 1, 2


def config(core):
    return json.dumps({
        "eal": {"hugepages": "off"},
        "devices": [{"name": "g0", "device": "sim", "region": "64MiB"}],
        "ports": [{"name": "p0", "device": "net_null0,size=64,copy=0"}],
        "lanes": [{"name": "l0", "rx": {"port": "p0", "queue": 0},
                   "tx": [{"port": "p0", "queue": 0}], "core": core, "device": "g0",
                   "path": ["direct"], "stages": [{"use": "l2swap"}]}],
    })


def lane_thread(pid):
    until = time.monotonic() + 30 * PATIENCE
    while time.monotonic() < until:
        for task in pathlib.Path(f"/proc/{pid}/task").glob("*"):
            try:
                if (task / "comm").read_text(encoding="ascii").strip() == "lane-l0":
                    return task
            except (FileNotFoundError, ProcessLookupError):
                continue  # a thread of the start, which has ended
        time.sleep(0.05)
    raise RuntimeError("no lane thread")


def books(task):
    """Minor and major faults, voluntary switches, processor time in ns."""
    stat = (task / "stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    status = (task / "status").read_text(encoding="ascii")
    switches = int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", status, re.M).group(1))
    busy = int((task / "schedstat").read_text(encoding="ascii").split()[0])
    return int(stat[7]), int(stat[9]), switches, busy


def system_calls(task):
    """{name: calls} while strace watches the thread; None where it may not."""
    if shutil.which("strace") is None:
        return None
    run = subprocess.Popen(["strace", "-p", task.name], stderr=subprocess.PIPE, text=True)
    if "attached" not in run.stderr.readline():
        run.kill()
        run.communicate()
        return None
    time.sleep(WATCH_S)
    run.send_signal(signal.SIGINT)
    _, text = run.communicate(timeout=20)
    return re.findall(r"^(\w+)\(.*", text, re.M)


def packets(program, env):
    stats = subprocess.run([program, "stats", "--json"], env=env, capture_output=True,
                           check=True, timeout=30 * PATIENCE)
    return json.loads(stats.stdout)["lanes"][0]["tx_packets"]


def judge(program, scratch):
    core = max(os.sched_getaffinity(0))
    path = scratch / "steady.yaml"
    path.write_text(config(core), encoding="ascii")
    env = dict(os.environ, RUNTIME_DIRECTORY=str(scratch))
    run = subprocess.Popen([program, "run", path, "--json"], env=env,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    bad = []
    try:
        task = lane_thread(run.pid)
        time.sleep(WARM_S * PATIENCE)
        sent, before = packets(program, env), books(task)
        time.sleep(WATCH_S)
        after, moved = books(task), packets(program, env) - sent
        for name, b, a in zip(("minor faults", "major faults", "voluntary switches"),
                              before, after):
            print(f"{name}: {a - b}")
            if a != b:
                bad.append(f"{a - b} {name} of the lane's thread in {WATCH_S} s")
        print(f"packets: {moved} in {(after[3] - before[3]) / 1e9:.2f} s of processor time")
        if moved == 0 or after[3] == before[3]:
            bad.append("the lane did not move a packet")
        calls = system_calls(task)
        if calls is None:
            print("system calls: not judged, strace is missing or may not attach")
        else:
            print(f"system calls: {len(calls)}")
            if calls:
                bad.append(f"system calls of the lane's thread: {sorted(set(calls))}")
        resident = pathlib.Path(f"/proc/{run.pid}/status").read_text(encoding="ascii")
        print(f"resident: {re.search(r'VmRSS:(.*)', resident).group(1).strip()}")
    finally:
        run.terminate()
        status = run.wait(timeout=40 * PATIENCE)
    if status != 0:
        bad.append(f"millrace ended with {status}")
    return bad


def main():
    if len(os.sched_getaffinity(0)) < 2:
        print("skipped: a lane with a core of its own needs two", file=sys.stderr)
        return SKIP
    with tempfile.TemporaryDirectory() as folder:
        bad = judge(os.path.abspath(sys.argv[1]), pathlib.Path(folder))
    for sentence in bad:
        print(sentence, file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
