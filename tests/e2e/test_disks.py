#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""File systems that are full, or become read-only: said in a sentence, and packets flow on."""
import contextlib
import os
import subprocess
import sys
import time

import frames as fr
from harness import (
    CLEAN, FAILURE, PATIENCE, Skipped, case, check, check_equal, check_frames, complaints, config, lane, main,
    swapped, until,
)  # fmt: skip

FLOOD = "net_null0,size=64,copy=0"


@contextlib.contextmanager
def disk(s, options):
    """A small file system of its own."""
    if os.geteuid() != 0:
        raise Skipped("only root can mount a small disk")
    at = s.path / "disk"
    at.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", at], check=False).returncode != 0:
        raise Skipped("no tmpfs can be mounted")
    try:
        yield at
    finally:
        subprocess.run(["umount", "-l", at], check=True)


def fill(at):
    """To the last byte."""
    with open(at / "fill", "wb", buffering=0) as f, contextlib.suppress(OSError):
        while True:
            f.write(bytes(4096))


def flood():
    return config({"p0": FLOOD}, [lane("l0", "p0", "p0")], region="16MiB")


def sent(run):
    return run.stats()["lanes"][0]["tx_packets"]


def flows_on(run, what):
    before = sent(run)
    until(lambda: sent(run) != before, f"nothing is sent {what}")


@case
def a_log_without_room_holds_up_no_packet(s):
    given = fr.make(500, seed=31)
    s.pcap("in.pcap", given)
    cfg = config({"p0": "net_pcap0,rx_pcap=in.pcap,tx_pcap=out.pcap"}, [lane("l0", "p0", "p0", ["l2swap"])], log={"level": "debug"})
    with disk(s, "size=64k") as at:
        fill(at)
        s.run(cfg, "--idle-exit", str(0.5 * PATIENCE), status=CLEAN, reason="idle",
            prefix=["sh", "-c", f'exec "$@" 2>>{at}/log', "sh"])  # fmt: skip
        check_equal((at / "log").stat().st_size, 0, "a log where there is no room")
    check_frames(s.frames("out.pcap"), [swapped(f) for f in given], "frames")


@case
def a_log_that_finds_room_again_says_what_it_lacks(s):
    with disk(s, "size=64k") as at:
        run = s.start(flood(), prefix=["sh", "-c", f'exec "$@" 2>>{at}/log', "sh"])
        log = at / "log"
        until(lambda: log.exists() and b" runs " in log.read_bytes(), "does not come up")
        fill(at)
        with open(log, "ab", buffering=0) as rest, contextlib.suppress(OSError):
            while True:
                rest.write(b"\n")  # what is left of its last page
        size = log.stat().st_size
        for _ in range(3):
            check_equal(s.command("reload", "--name", run.name).status, CLEAN, "a reload while the log has no room")
        flows_on(run, "while its log has no room")
        check_equal(log.stat().st_size, size, "size of a log on a full disk")
        (at / "fill").unlink()
        check_equal(s.command("reload", "--name", run.name).status, CLEAN, "a reload where there is room again")
        until(lambda: b"sentences are not here" in log.read_bytes(), lambda: f"not told: {log.read_text()}")
        run.signal()
        run.wait(CLEAN, "signal")


@case
def a_run_directory_that_is_read_only_is_told_with_another_place(s):
    if os.geteuid() != 0:
        raise Skipped("only root can mount over /run")
    elsewhere = s.env.pop("RUNTIME_DIRECTORY")
    closed = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o ro none /run && exec "$@"', "sh"]
    said = complaints(s.run(flood(), "--duration", "1", status=FAILURE, prefix=closed).stderr)
    check(len(said) == 1 and "Read-only" in said[0] and "; RUNTIME_DIRECTORY=" in said[0], f"sentences: {said}")
    s.env["RUNTIME_DIRECTORY"] = elsewhere
    r = s.run(flood(), "--duration", "0.2", reason="duration", prefix=closed)
    check(r.lane()["tx_packets"] > 0, r.told())


@case
def state_that_is_full_or_gone_later_holds_up_nothing(s):
    with disk(s, "size=16m") as at:
        s.env["RUNTIME_DIRECTORY"] = str(at)
        run = s.start(flood()).until_running()
        fill(at)
        flows_on(run, "on a full disk")
        check_equal(s.command("reload", "--name", run.name).status, CLEAN, "a reload on a full disk")
        # What it has open keeps the file system writable, so another one is put in its place.
        before = sent(run)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "none", at], check=True)
        time.sleep(0.5)
        run.signal()
        r = run.wait(CLEAN, "signal")
        subprocess.run(["umount", at], check=True)
        check(r.lane()["tx_packets"] > before and r.drops() == {}, r.told())


@case
def a_capture_without_room_is_told_and_the_other_lane_flows_on(s):
    given = fr.make(500, seed=32)
    s.pcap("in.pcap", given)
    with disk(s, "size=64k") as at:
        ports = {f"p{i}": f"net_pcap{i},rx_pcap=in.pcap,tx_pcap={to}" for i, to in enumerate((at / "out.pcap", "out.pcap"))}
        r = s.run(config(ports, [lane(f"l{i}", f"p{i}", f"p{i}", ["l2swap"]) for i in range(2)]),
            "--idle-exit", str(0.5 * PATIENCE), status=FAILURE)  # fmt: skip
    said = complaints(r.stderr)
    check(len(said) == 1 and "port 'p0'" in said[0] and "disk full" in said[0], f"sentences: {r.stderr}")
    for name in ("l0", "l1"):
        check_equal(r.lane(name)["tx_packets"], len(given), f"sent by {name}")
    check_frames(s.frames("out.pcap"), [swapped(f) for f in given], "the other lane's frames")


sys.exit(main())
