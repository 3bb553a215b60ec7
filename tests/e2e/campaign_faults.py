#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two hundred faults drawn from seeds: each run ends, says why, and loses no packet unnamed.

    reached()   how many calls of each kind a start makes: every one of them is failed
    seeds       what fault=any is for a seed comes from draw_fault, the device's own parser;
                a fault that cannot fire (the fifth launch of two) must leave a clean run,
                and the seed is drawn again, SHIFT further

usage: campaign_faults.py MILLRACE DRAW_FAULT [--seed N] [-k WORD]
    --seed N    that seed alone, with what the run said
"""
import collections
import concurrent.futures
import os
import subprocess
import sys
import threading
import time

import frames as fr
from harness import (
    CLEAN, FAILURE, GPU, PATIENCE, Failed, case, check, check_equal, check_frames, complaints,
    config, judge, lane, main, swapped,
)  # fmt: skip

SEEDS = 200 if PATIENCE == 1 else 50
SHIFT = 1000
REDRAWS = 30
AT_ONCE = 2

CALLS = ("alloc", "hostalloc", "register", "map", "module", "launch")
STANDS = ("stall", "idle")  # found by the watch after STALL_MS
ENDS = ("die", "lost")  # reported by the driver
LATE = "late"  # payload visible only after a flush: a run that must be as any other
KINDS = (*CALLS, *STANDS, *ENDS, LATE)
CALLS_MAX = 40  # more of one kind than a start makes
STALL_MS = int(600 * PATIENCE)
BOUND_S = 30 * PATIENCE  # for a whole run, whatever the fault: less than --duration

STARTS = threading.Lock()

ONLY = None
if "--seed" in sys.argv:
    at = sys.argv.index("--seed")
    ONLY = int(sys.argv[at + 1])
    del sys.argv[at : at + 2]

FLOOD = "net_null0,size=64,copy=0"


def flood(device, out):
    """One lane that always has something to do."""
    ln = lane("l0", "p0", "p0", ["l2swap"], batch={"packets": 8}, slots=4)
    return config({"p0": FLOOD}, [ln], device)


def two_paths(device, out):
    """Both kinds of memory, two divisions of work; one lane ends its input, one never does."""
    ports = {"p0": f"net_pcap0,rx_pcap=in.pcap,tx_pcap={out}.pcap", "p1": FLOOD}
    lanes = [
        lane("l0", "p0", "p0", ["l2swap"]),
        lane("l1", "p1", "p1", ["checksum"], path="pinned", workers=2, batch={"packets": 8}),
    ]
    return config(ports, lanes, device)


CONFIGS = (flood, two_paths)


def captured(device, out):
    """Frames that can be compared, in device memory."""
    port = {"p0": f"net_pcap0,rx_pcap=in.pcap,tx_pcap={out}.pcap"}
    return config(port, [lane("l0", "p0", "p0", ["l2swap"], batch={"packets": 8})], device)


def judge_refused(r, what):
    """One sentence on stderr, one line of JSON that holds the same sentence."""
    said = complaints(r.stderr)
    check_equal(len(said), 1, f"sentences with {what}: {r.told()}")
    check("g0" in said[0], f"{what}: the device is not named: {said[0]}")
    check_equal(len(r.report["errors"]), 1, f"errors with {what}")
    message = r.report["errors"][0]["message"]
    check(message in said[0], f"{what}: {message} is not {said[0]}")


def run(s, make, device, name, *args, **kernel):
    cfg = make(device, name)
    cfg["kernel"] = kernel
    started = time.monotonic()
    with STARTS:  # Scratch numbers its instances
        instance = s.start(cfg, *args, name=name)
    r = instance.ended()
    took = time.monotonic() - started
    check(took < BOUND_S, f"{device} took {took:.1f} s: {r.told()}")
    return r


def reached(s, make, call):
    """Fails the first call of that kind, the second, ... until a start makes no more."""
    for k in range(1, CALLS_MAX):
        what = f"{call}@{k}"
        name = f"k{os.getpid()}-{make.__name__}-{call}-{k}"
        r = run(s, make, f"sim,fault={what}", name, "--duration", "0.1")
        if r.status == CLEAN:
            judge(r, CLEAN, "duration")
            return k - 1
        judge_refused(judge(r, FAILURE), what)
        check("CUDA_ERROR_" in complaints(r.stderr)[0], f"{what}: no error's name: {r.stderr}")
    raise Failed(f"{call} still fails at call {CALLS_MAX}")


class Campaign:
    def __init__(self, s):
        self.s = s
        self.lock = threading.Lock()
        self.fired = collections.Counter()
        self.early = self.clean = 0
        self.given = fr.make(100, seed=60)
        s.pcap("in.pcap", self.given)
        self.calls = {}
        if ONLY is not None:
            return  # what a seed needs is counted when it is drawn
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            jobs = {(m, c): pool.submit(reached, s, m, c) for m in CONFIGS for c in CALLS}
            for key, job in jobs.items():
                self.calls[key] = job.result()
        for make in CONFIGS:
            told = ", ".join(f"{c} {self.calls[make, c]}" for c in CALLS)
            print(f"     calls of {make.__name__}: {told}, each failed once", flush=True)

    def draw(self, seed):
        out = subprocess.run(
            [self.s.others[0], str(seed), "1"], capture_output=True, text=True, check=True
        )
        _, kind, block, at = out.stdout.split()
        return kind, int(block), int(at)

    def judge_late(self, r, name, what):
        """Was there a flush to leave out, and are the frames those that it made visible?"""
        check_equal(complaints(r.stderr), [], f"{what}: sentences")
        told = [e["value"] for e in r.lane()["evidence"] if e["check"] == "ordering"]
        check(len(told) == 1 and "flushed" in told[0], f"{what}: evidence of ordering: {told}")
        check_frames(self.s.frames(f"{name}.pcap"), [swapped(f) for f in self.given], what)

    def once(self, seed):
        """One run; returns whether its fault fired."""
        kind, block, at = self.draw(seed)
        make = captured if kind == LATE else CONFIGS[seed % len(CONFIGS)]
        what = f"seed {seed}: {kind}@{block}:{at}"
        args, kernel = ("--duration", str(2 * BOUND_S)), {}
        if kind in CALLS:
            args = ("--duration", "0.1")
        elif kind == LATE:
            args = ("--idle-exit", "0.3")
        elif kind in STANDS:
            kernel = {"stall_ms": STALL_MS}
        device = f"sim,seed={seed},fault=any"
        name = f"s{os.getpid()}-{seed}"
        r = run(self.s, make, device, name, *args, **kernel)
        if ONLY is not None:
            print(f"     {what}\n{r.told()}", flush=True)
        early = False
        if kind in CALLS and (make, kind) not in self.calls:
            self.calls[make, kind] = reached(self.s, make, kind)
        if kind in CALLS and at > self.calls[make, kind]:
            judge(r, CLEAN, "duration")
            check_equal(complaints(r.stderr), [], f"{what}: sentences")
            with self.lock:
                self.clean += 1
            return False
        if kind in CALLS:
            judge_refused(judge(r, FAILURE), what)
        elif kind == LATE:
            self.judge_late(judge(r, CLEAN, "idle"), name, what)
        elif r.status == FAILURE:
            # Milliseconds are counted from the launch, which waits for the workers' hello.
            early = True
            judge_refused(judge(r, FAILURE), what)
            check(" runs " not in r.stderr, f"{what}: came up, and status 1: {r.told()}")
            check(at < 200 * PATIENCE, f"{what}: came too late for a start that fails")
        else:
            judge(r, GPU, "gpu_stalled" if kind in STANDS else "gpu_lost")
            said = complaints(r.stderr)
            check_equal(len(said), 1, f"{what}: sentences: {r.stderr}")
            check("g0" in said[0], f"{what}: the device is not named: {said[0]}")
            health = "stalled" if kind in STANDS else "lost"
            check_equal(r.report["devices"][0]["health"], health, f"{what}: health")
        with self.lock:
            self.fired[kind] += 1
            self.early += early
        return True

    def seed(self, first):
        """Draws until a fault fires; a failure says how to see it again."""
        for turn in range(REDRAWS):
            seed = first + SHIFT * turn
            try:
                if self.once(seed):
                    return
            except Exception as why:
                raise Failed(
                    f"seed {seed}: {why}\nreplay: MILLRACE_PATIENCE={PATIENCE:g} {sys.executable} "
                    f"{sys.argv[0]} {self.s.millrace} {self.s.others[0]} --seed {seed}"
                ) from why
        raise Failed(f"seed {first}: no fault fires in {REDRAWS} draws")


@case
def every_seed_of_a_fault_ends_its_run_with_an_honest_status_and_a_sentence(s):
    campaign = Campaign(s)
    if ONLY is not None:
        campaign.seed(ONLY)
        return
    wrong = []
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        jobs = [pool.submit(campaign.seed, seed) for seed in range(1, SEEDS + 1)]
        for job in jobs:
            why = job.exception()
            if why is not None:
                wrong.append(str(why))
                print(f"     {why}", flush=True)
    told = ", ".join(f"{k} {campaign.fired[k]}" for k in KINDS)
    print(
        f"     {sum(campaign.fired.values())} faults fired: {told}; {campaign.early} of them "
        f"before the lanes ran; {campaign.clean} draws could not fire and ran clean",
        flush=True,
    )
    check(not wrong, f"{len(wrong)} of {SEEDS} seeds")
    for kind in KINDS:
        check(campaign.fired[kind] > 0, f"no {kind} was injected")
    check_equal(sum(campaign.fired.values()), SEEDS, "faults that fired")


sys.exit(main(at_once=1))  # its runs go side by side already
