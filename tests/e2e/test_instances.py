#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Several lanes, several instances, and what `stats` says of them while they run."""
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time

import frames as fr
from harness import (
    CLEAN, CONFIG, FAILURE, PATIENCE, Skipped, case, check, check_conserved, check_equal, check_frames, complaints,
    config, lane, machine_hugepages, main, processor_s, sees_memory, swapped, until, validate,
)  # fmt: skip


def pcap_lanes(count, prefix=""):
    ports, lanes = {}, []
    for i in range(count):
        name = f"{prefix}l{i}"
        ports[name] = f"net_pcap{i},rx_pcap=in-{i}.pcap,tx_pcap={name}.pcap"
        lanes.append(lane(name, name, name, ["l2swap"], slots=16))
    return ports, lanes


def left_behind(s):
    return sorted(str(p.relative_to(s.path)) for p in (s.path / "run").glob("dpdk/*"))


def endless():
    """A lane that always has something to do."""
    return config(
        {"p0": "net_null0,size=64,copy=0"},
        [lane("l0", "p0", "p0", ["l2swap"], batch={"packets": 32, "timeout_us": 20}, slots=8)],
    )


@case
def lanes_of_one_process_keep_their_packets_apart(s):
    given = [fr.make(400 + 50 * i, seed=20 + i) for i in range(5)]
    for i, frames in enumerate(given):
        s.pcap(f"in-{i}.pcap", frames)
    ports, lanes = pcap_lanes(5)
    r = s.run_idle(config(ports, lanes))
    for i, frames in enumerate(given):
        check_frames(s.frames(f"l{i}.pcap"), [swapped(f) for f in frames], f"lane {i}")
        check_equal(r.lane(f"l{i}")["rx_packets"], len(frames), f"rx_packets of lane {i}")


@case
def lanes_pass_packets_to_each_other_through_a_ring_port(s):
    given = fr.make(700, seed=30)
    s.pcap("in.pcap", given)
    cfg = config(
        {
            "in": "net_pcap0,rx_pcap=in.pcap,tx_pcap=unused.pcap",
            "between": "net_ring0",
            "out": "net_pcap1,tx_pcap=out.pcap",
        },
        [
            lane("first", "in", "between", ["l2swap"], tx_timeout_us=0),
            lane("second", "between", "out", ["checksum"], tx_timeout_us=0),
        ],
    )
    r = s.run_idle(cfg)
    check_frames(s.frames("out.pcap"), [swapped(f) for f in given], "output")
    check_equal(r.stage("second", "checksum")["frames"], len(given), "frames summed")


@case
def two_instances_run_at_once_and_each_tells_its_own_counters(s):
    names = [f"e2e-{os.getpid()}-{n}" for n in ("left", "right")]
    runs = [s.start(endless(), name=n).until_running() for n in names]
    time.sleep(0.3)
    for name in names:
        before = 0
        for _ in range(2):
            told = s.command("stats", "--name", name, "--json")
            check_equal(told.status, CLEAN, f"status of stats: {told.told()}")
            validate("stats.schema.json", told.stdout)
            report = json.loads(told.stdout)
            check_equal(report["instance"], name, "instance")
            check_conserved(report)
            check(report["balanced"], f"not balanced while running: {told.stdout}")
            now = report["lanes"][0]["rx_packets"]
            check(now > before, f"rx_packets stands still at {now}")
            before = now
            time.sleep(0.1)
    both = s.command("stats")
    check_equal(both.status, FAILURE, "status of stats without a name")
    check_equal(len(complaints(both.stderr)), 1, f"sentences in {both.stderr}")
    for name in names:
        check(name in both.stderr, f"'{name}' is not named: {both.stderr}")
    for r in runs:
        r.signal()
    for r in runs:
        r.wait(reason="signal")


@case
def a_second_instance_of_a_name_is_refused_before_dpdk_is_touched(s):
    name = f"e2e-{os.getpid()}-one"
    first = s.start(endless(), name=name).until_running()
    second = s.start(endless(), name=name).wait(CONFIG)
    check_equal(second.stderr.strip().splitlines(), complaints(second.stderr), "lines of stderr")
    said = complaints(second.stderr)
    check_equal(len(said), 1, f"sentences: {second.stderr}")
    for word in (f"'{name}' is already running (pid {first.process.pid})", "--name"):
        check(word in said[0], f"no '{word}' in {said[0]}")
    check_equal(second.report["errors"][0]["message"], said[0][len("millrace: ") :], "error")
    told = s.command("stats", "--name", name, "--json")
    check_equal(told.status, CLEAN, f"the first does not answer any more: {told.told()}")
    first.signal()
    first.wait(reason="signal")
    # Neither an end nor a kill keeps the name.
    third = s.start(endless(), name=name).until_running()
    third.process.kill()
    third.ended()
    fourth = s.start(endless(), name=name).until_running()
    fourth.signal()
    fourth.wait(reason="signal")
    check_equal(left_behind(s), [], "left behind")


@case
def of_many_that_start_at_once_with_one_name_one_runs(s):
    name = f"e2e-{os.getpid()}-race"
    s.start(endless(), "--duration", "0.1", name=name).wait(reason="duration")
    runs = [s.start(endless(), name=name) for _ in range(6)]

    def left():
        return [r for r in runs if r.process.poll() is None]

    until(lambda: len(left()) <= 1, lambda: f"{len(left())} of one name run")
    for r in left():
        r.until_running().signal()
    statuses = sorted(r.ended().status for r in runs)
    check_equal(statuses, [CLEAN] + [CONFIG] * 5, "statuses")
    check_equal(left_behind(s), [], "left behind")


@case
def a_start_that_fails_leaves_nothing_behind(s):
    s.run(config({"p0": "net_nothing0"}, [lane("l0", "p0", "p0")]), status=FAILURE)
    cfg = endless()
    cfg["eal"]["args"] = ["-m", "99999999"]
    s.run(cfg, status=FAILURE)
    check_equal(left_behind(s), [], "left behind")


@case
def a_runtime_directory_that_cannot_be_made_is_named(s):
    s.env["RUNTIME_DIRECTORY"] = str(s.path / "missing")
    r = s.run(endless(), status=FAILURE)
    said = complaints(r.stderr)
    check(len(said) == 1 and "missing/dpdk" in said[0], f"sentences: {r.stderr}")
    check("No such file" in said[0], f"no reason: {said[0]}")


@case
def an_instance_with_hugepages_leaves_nothing_behind(s):
    cfg = endless()
    cfg["eal"] = {"hugepages": "auto"}
    with machine_hugepages() as (pages, before):
        pages.write_text(str(before + 96), encoding="ascii")
        plan = s.command("check", s.write("huge.yaml", cfg), "--json")
        if not json.loads(plan.stdout)["eal"]["hugepages"]:
            raise Skipped("not enough hugepages are free")
        for how in ("end", "kill"):
            run = s.start(cfg, name=f"e2e-{os.getpid()}-huge").until_running()
            again = s.start(cfg, name=run.name).wait(CONFIG)
            check("is already running" in again.stderr, f"a second one: {again.stderr}")
            if how == "kill":
                run.process.kill()
                run.ended()
                run = s.start(cfg, name=run.name).until_running()
            run.signal()
            run.wait(reason="signal")
            check_equal(left_behind(s), [], f"left behind after {how}")


def limited(s, option, value, *argv):
    prefix = ["bash", "-c", f'ulimit {option} {value}; exec "$@"', "sh"]
    return s.start(endless(), "--duration", "0.1", prefix=[*argv, *prefix]).ended()


@case
def a_limit_that_is_in_the_way_is_named(s):
    limits = {"-n": (8, 24), "-v": (200000, 400000), "-d": (50000,), "-s": (64,), "-f": (100,)}
    if sees_memory(s.millrace):
        print("note: no limit of memory: a sanitizer does not start within one", flush=True)
        limits = {k: v for k, v in limits.items() if k in ("-n", "-f")}
    for option, values in limits.items():
        for value in values:
            r = limited(s, option, value)
            what = f"ulimit {option} {value}"
            check_equal(r.status, CONFIG if option == "-n" else FAILURE, f"{what}: {r.told()}")
            check(f"ulimit {option}" in r.stderr, f"{what} is not named: {r.stderr}")
            # With so little stack nothing is parsed.
            if option != "-s":
                validate("run.schema.json", r.stdout)


# For root there is no such limit.
@case
def a_limit_of_threads_is_named_wherever_it_is_met(s):
    if sees_memory(s.millrace):
        raise Skipped("a sanitizer has threads of its own")
    if os.geteuid() != 0:
        raise Skipped("only root can become a user that runs nothing else")
    user = ["setpriv", "--reuid", "65521", "--regid", "65521", "--clear-groups"]
    s.path.chmod(0o755)
    os.chown(s.path / "run", 65521, 65521)
    met = 0
    for value in range(1, 16):
        r = limited(s, "-u", value, *user)
        if "setpriv:" in r.stderr or r.status == 126:
            raise Skipped(r.stderr)
        if r.status == CLEAN:
            break
        met += 1
        check_equal(r.status, FAILURE, f"{value} threads: {r.told()}")
        validate("run.schema.json", r.stdout)
        check("(ulimit -u)" in complaints(r.stderr)[-1], f"{value} is not named: {r.stderr}")
    check(3 < met < 15, f"{met} limits were met")
    check_equal(left_behind(s), [], "left behind")


class Disk:
    """A small file system that is the runtime directory."""

    def __init__(self, s, options):
        if os.geteuid() != 0:
            raise Skipped("only root can mount a small disk")
        self.path = s.path / "disk"
        self.path.mkdir(exist_ok=True)
        mount = ["mount", "-t", "tmpfs", "-o", options, "none", self.path]
        if subprocess.run(mount, check=False).returncode != 0:
            raise Skipped("no tmpfs can be mounted")
        s.env["RUNTIME_DIRECTORY"] = str(self.path)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", self.path], check=True)


@case
def a_runtime_directory_without_room_is_named(s):
    for options, says in (
        ("ro", "Read-only file system"),
        ("size=4k", "has room for 4 KiB"),
        ("size=1m", "has room for 1024 KiB"),
        ("nr_inodes=4", "has room for 0 files"),
    ):
        with Disk(s, options) as disk:
            r = s.run(endless(), status=FAILURE)
            said = complaints(r.stderr)
            check(len(said) == 1 and says in said[0] and "; RUNTIME_DIRECTORY=" in said[0], f"{options}: sentences: {r.stderr}")
            check_equal(list(disk.path.glob("dpdk/*")), [], f"{options}: left behind")
    with Disk(s, "size=4m"):
        s.run(endless(), "--duration", "0.1", reason="duration")


@case
def what_lies_where_the_runtime_directory_shall_be_is_named_at_once(s):
    place = s.path / "run" / "dpdk"
    place.mkdir()
    for path in (place / "millrace-odd", place):
        if path.is_dir():
            path.rmdir()
        os.symlink("/nonexistent/folder", path)
        r = s.run(endless(), status=FAILURE, name="odd")
        said = complaints(r.stderr)
        check(len(said) == 1 and f"'{path}'" in said[0], f"sentences: {r.stderr}")
        path.unlink()


@case
def who_ends_without_its_directory_leaves_that_of_its_successor(s):
    name = f"e2e-{os.getpid()}-gone"
    first = s.start(endless(), name=name).until_running()
    shutil.rmtree(s.path / "run" / "dpdk" / f"millrace-{name}")
    told = s.command("stats", "--name", name)
    check_equal(told.status, FAILURE, f"stats: {told.told()}")
    second = s.start(endless(), name=name).until_running()
    first.signal()
    first.wait(reason="signal")
    third = s.start(endless(), name=name).wait(CONFIG)
    check(f"is already running (pid {second.process.pid})" in third.stderr, third.stderr)
    second.signal()
    second.wait(reason="signal")
    check_equal(left_behind(s), [], "left behind")


def odd_socket(path, kind):
    """Something that has the name of an instance's socket; what it returns keeps it alive."""
    if kind == "file":
        path.write_text("x")
        return None
    if kind in ("folder", "pipe", "loop"):
        {"folder": os.mkdir, "pipe": os.mkfifo, "loop": lambda p: os.symlink(p.name, p)}[kind](path)
        return None
    types = {"stream": socket.SOCK_STREAM, "datagram": socket.SOCK_DGRAM}
    end = socket.socket(socket.AF_UNIX, types.get(kind, socket.SOCK_SEQPACKET))
    end.bind(str(path))
    if kind in ("stream", "silent"):
        end.listen()
    if kind == "left over":
        end.close()
    return end


@case
def odd_sockets_are_one_sentence_in_time_and_in_nobodys_way(s):
    folder = s.path / "run" / "dpdk" / "millrace-odd"
    for kind in ("file", "folder", "pipe", "loop", "left over", "stream", "datagram", "silent"):
        folder.mkdir(parents=True, exist_ok=True)
        kept = odd_socket(folder / "dpdk_telemetry.v2", kind)
        for args in ((), ("--name", "odd")):
            told = s.command("stats", *args)
            check_equal(told.status, FAILURE, f"{kind}: {told.told()}")
            check_equal(len(complaints(told.stderr)), 1, f"{kind}: sentences: {told.stderr}")
            check(told.seconds < 6 * PATIENCE, f"{kind}: took {told.seconds:.1f} s")
        if kind in ("pipe", "left over"):
            s.run(endless(), "--duration", "0.1", reason="duration", name="odd")
            check(not folder.exists(), f"{kind}: left behind")
        shutil.rmtree(folder, ignore_errors=True)
        del kept


@case
def stats_finds_the_only_instance_and_prints_text_and_prometheus(s):
    run = s.start(endless()).until_running()
    time.sleep(0.2)
    text = s.command("stats")
    check_equal(text.status, CLEAN, f"status: {text.told()}")
    for word in ("l0", "p0", "rx_packets", "tx_packets", "l2swap"):
        check(word in text.stdout, f"'{word}' is not in the text: {text.stdout}")
    metrics = s.command("stats", "--prometheus")
    check_equal(metrics.status, CLEAN, f"status: {metrics.told()}")
    sample = re.compile(r'^millrace_[a-z0-9_]+(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? \S+$')
    lines = [l for l in metrics.stdout.splitlines() if l and not l.startswith("#")]
    check(len(lines) > 10, f"few samples: {metrics.stdout}")
    for line in lines:
        check(sample.match(line), f"not a sample: {line}")
        float(line.rsplit(" ", 1)[1])
    received = [l for l in lines if l.startswith("millrace_rx_packets_total{")]
    check(len(received) == 1 and 'lane="l0"' in received[0], f"rx_packets: {received}")
    check(float(received[0].rsplit(" ", 1)[1]) > 0, "rx_packets is 0")
    run.signal()
    run.wait(reason="signal")


@case
def stats_without_an_instance_fails_with_one_sentence(s):
    for args in ((), ("--name", "nobody"), ("--json",), ("--prometheus",)):
        told = s.command("stats", *args)
        check_equal(told.status, FAILURE, f"status of stats {args}")
        check_equal(len(complaints(told.stderr)), 1, f"sentences of stats {args}: {told.stderr}")
        if "--json" in args:
            validate("stats.schema.json", told.stdout)
        else:
            check_equal(told.stdout, "", f"stdout of stats {args}")


@case
def an_instance_that_was_killed_is_not_taken_for_a_running_one(s):
    run = s.start(endless()).until_running()
    run.process.kill()
    run.ended()
    for args in ((), ("--name", run.name)):
        told = s.command("stats", *args)
        check_equal(told.status, FAILURE, f"status: {told.told()}")
        said = complaints(told.stderr)
        check(len(said) == 1 and "no instance" in said[0], f"sentences: {told.stderr}")


@case
def lanes_and_workers_without_cores_of_their_own_share_a_single_core(s):
    given = [fr.plain(1500, seed=40 + i) for i in range(3)]
    for i, frames in enumerate(given):
        s.pcap(f"in-{i}.pcap", frames)
    ports, lanes = pcap_lanes(3)
    for ln in lanes:
        # A hand-over for every frame: without yielding each costs a slice of time.
        ln.update(workers=2, slots=2, batch={"packets": 1, "timeout_us": 20})
    before = processor_s()
    r = s.run_idle(config(ports, lanes), prefix=["taskset", "-c", "0"])
    worked = processor_s() - before
    for i, frames in enumerate(given):
        check_frames(s.frames(f"l{i}.pcap"), [swapped(f) for f in frames], f"lane {i}")
    check(worked < 4 * PATIENCE, f"took {worked:.1f} s of a processor: {r.told()}")


sys.exit(main())
