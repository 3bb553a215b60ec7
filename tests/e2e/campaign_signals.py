#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""SIGTERM, SIGINT and SIGKILL at every step of bring-up, at moments between, and under load.

    log.level debug writes a line for each step of bring-up. The test reads stderr from a
    pipe that holds a single write: a process whose line is not read stops at its next one,
    so a signal meets the step that was asked for, however fast the machine is.

After each signal the same name starts again, carries packets and ends clean; nothing is
left in the runtime directory, among the processes, in hugetlbfs; and a kernel interface has
the offloads that it had at first, also when the one that switched them off was killed.

usage: campaign_signals.py MILLRACE [-k WORD]. The kernel interface needs root.
"""
import atexit
import collections
import fcntl
import itertools
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import threading
import time

from harness import (
    CLEAN, CONFIG, PATIENCE, Failed, Result, Skipped, case, check, check_equal, complaints,
    config, judge, lane, main,
)  # fmt: skip

STEPS = (
    "instance", "eal", "devices", "regions", "ports", "maps", "proof", "pools", "queues", "start",
    "readback", "steer", "guard", "launch", "lanes", "serve", "capture",
)  # fmt: skip
RUNS = " runs "
END_S = 2 * PATIENCE  # from the signal to the end, on a machine that has time for a test
MOMENTS = 12
F_SETPIPE_SZ = 1031  # linux/fcntl.h
FLOOD = "net_null0,size=64,copy=0"
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGKILL)


class Veth:
    """A pair of interfaces in a namespace of its own, or nothing where that is not allowed."""

    made = itertools.count()

    def __init__(self):
        self.name = f"mr-sig-{os.getpid()}-{next(self.made)}"
        self.there = False
        self.before = ""
        if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "ethtool"))):
            return
        if subprocess.run(["ip", "netns", "add", self.name], capture_output=True).returncode != 0:
            return
        atexit.register(subprocess.run, ["ip", "netns", "del", self.name], check=False)
        ip = ["ip", "-n", self.name, "link"]
        for argv in (
            ["add", "v0", "type", "veth", "peer", "name", "v1"], ["set", "v0", "up"],
            ["set", "v1", "up"],
        ):  # fmt: skip
            if subprocess.run(ip + argv, capture_output=True, check=False).returncode != 0:
                return
        self.there = True
        # One that was off before must stay off.
        self.ethtool("-K", "v0", "gro", "off")
        self.before = self.features()

    def argv(self):
        return ["ip", "netns", "exec", self.name] if self.there else []

    def ethtool(self, *argv):
        run = subprocess.run(
            [*self.argv(), "ethtool", *argv], capture_output=True, text=True, check=True
        )
        return run.stdout

    def features(self):
        return self.ethtool("-k", "v0") if self.there else ""


def huge_files(name):
    found = []
    for line in pathlib.Path("/proc/mounts").read_text().splitlines():
        _, where, kind = line.split()[:3]
        if kind == "hugetlbfs":
            found += [str(p) for p in pathlib.Path(where).glob(f"*millrace-{name}*")]
    return found


def processes(name):
    found = []
    for p in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = p.read_bytes().split(b"\0")
        except OSError:
            continue
        if name.encode() in words and b"run" in words:
            found.append(p.parent.name)
    return found


class Run:
    """A millrace whose stderr is read as far as the test wants to see it get."""

    def __init__(self, site, *args):
        self.site = site
        self.seen = b""
        self.reader, writer = os.pipe2(os.O_DIRECT | os.O_CLOEXEC)
        fcntl.fcntl(self.reader, F_SETPIPE_SZ, 4096)
        self.out = open(site.s.path / "stdout", "w+", encoding="utf-8")
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            [*site.veth.argv(), site.s.millrace, "run", site.cfg, "--json", "--name", site.name,
             *args],
            cwd=site.s.path, env=site.s.env, stdout=self.out, stderr=writer,
        )  # fmt: skip
        os.close(writer)
        # One that a failed case leaves behind ends with the scratch folder.
        self.err = self.out
        site.s.instances.append(self)

    def read_until(self, word):
        """Reads up to the line with that word and no further."""
        end = time.monotonic() + 20 * PATIENCE
        while word.encode() not in self.seen:
            data = os.read(self.reader, 4096)
            check(data != b"", f"ended before '{word}':\n{self.text()}")
            check(time.monotonic() < end, f"does not get to '{word}':\n{self.text()}")
            self.seen += data
        return self

    def read_on(self):
        """Lets the process write what it will."""

        def work():
            while True:
                data = os.read(self.reader, 4096)
                if data == b"":
                    return
                self.seen += data

        self.thread = threading.Thread(target=work, daemon=True)
        self.thread.start()
        return self

    def text(self):
        return self.seen.decode("utf-8", "replace")

    def signal(self, number):
        self.process.send_signal(number)
        self.signalled = time.monotonic()

    def ended(self):
        try:
            status = self.process.wait(timeout=30 * PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise Failed(f"hangs:\n{self.text()}") from None
        finally:
            self.took = time.monotonic() - getattr(self, "signalled", self.started)
        self.thread.join()
        os.close(self.reader)
        self.out.seek(0)
        stdout = self.out.read()
        self.out.close()
        return Result(status, stdout, self.text(), time.monotonic() - self.started)


class Site:
    """One name that is started again and again, and what must be true in between."""

    def __init__(self, s):
        self.s = s
        self.veth = Veth()
        if not self.veth.there:
            print("     no kernel interface here: its offloads are not judged", flush=True)
        self.name = f"sig{os.getpid()}"
        self.early = 0  # runs that a signal ended before they had lanes
        ports = {"p0": FLOOD}
        lanes = [lane("l0", "p0", "p0", ["l2swap"], batch={"packets": 8}, slots=8)]
        if self.veth.there:
            ports["v0"] = "kernel:v0"
            lanes.append(lane("l1", "v0", "v0", ["forward"], path="pinned"))
        cfg = config(ports, lanes, log={"level": "debug"})
        # Its own debugging is not what the steps are looked at for.
        cfg["eal"]["args"] = ["--log-level", "*:error"]
        self.cfg = s.write("signals.yaml", cfg)
        self.dir = s.path / "run" / "dpdk" / f"millrace-{self.name}"
        run = Run(self, "--duration", "0.15").read_until(RUNS)
        self.up_s = time.monotonic() - run.started
        r = judge(run.read_on().ended(), CLEAN, "duration")
        told = [l.split()[-1] for l in r.stderr.splitlines() if l.startswith("millrace: step ")]
        check_equal(tuple(told), STEPS, "steps of bring-up")
        # A start takes a third of a second; where it takes longer, so does an end.
        self.end_s = END_S * max(1, self.up_s / 0.5)

    def judge_left(self, what, clean):
        check_equal(processes(self.name), [], f"{what}: processes that are left")
        check_equal(huge_files(self.name), [], f"{what}: files in hugetlbfs")
        if clean:
            left = [p.name for p in self.dir.iterdir()] if self.dir.exists() else None
            check(left is None, f"{what}: the runtime directory is left with {left}")
            check_equal(self.veth.features(), self.veth.before, f"{what}: offloads of v0")

    def judge_next(self, what):
        """The name starts again, carries packets and leaves nothing."""
        run = Run(self, "--duration", "0.15").read_on()
        r = judge(run.ended(), CLEAN, "duration")
        check(r.lane()["tx_packets"] > 0, f"{what}: the next start carries nothing: {r.told()}")
        self.judge_left(f"{what}, and a clean run", True)

    def judge_stopped(self, run, number, what):
        r = run.ended()
        if number == signal.SIGKILL:
            check_equal(r.status, -number, f"{what}: status")
            self.judge_left(what, False)
        elif r.status == -number:
            # Before the handler is there, nothing is there.
            check("millrace: step" not in r.stderr, f"{what}: died: {r.told()}")
            self.judge_left(what, True)
        else:
            judge(r, CLEAN, "signal")
            came_up = RUNS in r.stderr
            check_equal(came_up, bool(r.report["lanes"]), f"{what}: came up, and has lanes")
            self.early += not came_up
            check(run.took < self.end_s, f"{what}: took {run.took:.1f} s: {r.told()}")
            wrong = [c for c in complaints(r.stderr) if not c.startswith("millrace: step ")]
            check_equal(wrong, [], f"{what}: sentences")
            self.judge_left(what, True)
        self.judge_next(what)
        return run.took


def at_every_step(s, number):
    site = Site(s)
    slowest = 0
    for word in [f"step {step}\n" for step in STEPS] + [RUNS]:
        what = f"{number.name} at '{word.strip()}'"
        run = Run(site).read_until(word)
        # It works on, up to its second line from here.
        time.sleep(0.03)
        run.signal(number)
        run.read_on()
        slowest = max(slowest, site.judge_stopped(run, number, what))
    print(
        f"     {len(STEPS) + 1} steps, {site.early} ended before lanes ran, the slowest end took "
        f"{slowest:.2f} s (a start takes {site.up_s:.2f} s)",
        flush=True,
    )
    check(number == signal.SIGKILL or site.early >= len(STEPS) - 3, "bring-up did not stop early")


def at_any_moment(s, number):
    site = Site(s)
    rng = random.Random(int(number))
    where = collections.Counter()
    for i in range(MOMENTS):
        # Two thirds of them while it comes up, the others meet lanes under load.
        after = site.up_s * (i + rng.random()) / MOMENTS * 1.5
        run = Run(site).read_on()
        time.sleep(after)
        text = run.text()
        steps = [l.split()[-1] for l in text.splitlines() if l.startswith("millrace: step ")]
        where["load" if RUNS in text else steps[-1] if steps else "before"] += 1
        run.signal(number)
        site.judge_stopped(run, number, f"{number.name} after {after:.3f} s")
    print(f"     {dict(where)}", flush=True)


@case
def sigterm_at_every_step_ends_clean_and_in_time(s):
    at_every_step(s, signal.SIGTERM)


@case
def sigint_at_every_step_ends_clean_and_in_time(s):
    at_every_step(s, signal.SIGINT)


@case
def sigkill_at_every_step_does_not_stop_the_next_start(s):
    at_every_step(s, signal.SIGKILL)


@case
def sigterm_at_any_moment_ends_clean_and_in_time(s):
    at_any_moment(s, signal.SIGTERM)


@case
def sigint_at_any_moment_ends_clean_and_in_time(s):
    at_any_moment(s, signal.SIGINT)


@case
def sigkill_at_any_moment_does_not_stop_the_next_start(s):
    at_any_moment(s, signal.SIGKILL)


@case
def offloads_are_those_of_the_first_start_after_kill_upon_kill(s):
    site = Site(s)
    if not site.veth.there:
        raise Skipped("no kernel interface")
    counts = []
    for _ in range(3):
        run = Run(site).read_until(RUNS)
        run.signal(signal.SIGKILL)
        run.read_on().ended()
        check(site.veth.features() != site.veth.before, "nothing was switched off")
        files = sorted(p.name for p in site.dir.iterdir())
        counts.append(len(files))
    check_equal(counts, counts[:1] * 3, f"files pile up, the last are {files}; their numbers")
    site.judge_next("three kills")


@case
def a_second_start_of_a_name_is_refused_and_harms_nothing(s):
    site = Site(s)
    first = Run(site).read_until(RUNS).read_on()
    second = Run(site, "--duration", "0.15").read_on()
    r = judge(second.ended(), CONFIG)
    said = [c for c in complaints(r.stderr) if not c.startswith("millrace: step ")]
    check_equal(len(said), 1, f"sentences: {r.told()}")
    told = s.command("stats", "--name", site.name)
    check_equal(told.status, CLEAN, f"status of stats for the first: {told.told()}")
    first.signal(signal.SIGTERM)
    site.judge_stopped(first, signal.SIGTERM, "the first of two")


sys.exit(main())
