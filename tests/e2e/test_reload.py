#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""reload: a running instance takes what its configuration says now, all of it or nothing.

Under a flood that never pauses, so that a packet that were lost would not be accounted for.
"""
import contextlib
import fcntl
import json
import os
import pathlib
import pty
import signal
import struct
import sys
import threading
import time

from harness import (
    CONFIG, FAILURE, GPU, PATIENCE, UNDRAINED, WAIT_S, Failed, Instance, case, check, check_equal, config, lane,
    main, until,
)  # fmt: skip

FLOOD = "net_null0,size=64,copy=0"
OTHER = "net_null1,size=64,copy=0"
F_SETPIPE_SZ = 1031  # linux/fcntl.h


def flood(action, slots=4, kernel=None, **keys):
    """Every frame of the flood matches, whatever was in its buffer before."""
    stages = [{"use": "match", "params": {"action": action, "port": 1}}]
    ln = lane("l0", "p0", ["p0", "p1"], stages, slots=slots, workers=2, **keys)
    return config({"p0": FLOOD, "p1": OTHER}, [ln], kernel=kernel or {})


def change(s, run, cfg):
    s.write(f"{run.name}.yaml", cfg)


def reload(s, run):
    return s.command("reload", "--name", run.name)


def counts(run):
    ln = run.stats()["lanes"][0]
    return ln["tx_packets"], ln["drops"]["gpu_drop_policy"]


def grows(run, which, what):
    before = counts(run)
    until(lambda: counts(run)[which] != before[which], f"{what} does not grow: {before}")


def told(run, words, times=1):
    until(lambda: run.stderr().count(words) >= times, lambda: f"not told '{words}': {run.stderr()}")


def stopped(run):
    run.signal()
    return run.wait(reason="signal")


@case
def parameters_change_under_full_load_and_nothing_is_lost(s):
    run = s.start(flood("continue")).until_running()
    for _ in range(3):
        for action, which in (("drop", 1), ("send", 0)):
            change(s, run, flood(action))
            r = reload(s, run)
            check_equal(r.status, 0, r.told())
            grows(run, which, action)
    sent = counts(run)
    for _ in range(10):
        check_equal(reload(s, run).status, 0, "reload")
    check_equal(counts(run)[1], sent[1], "dropped, though all are sent")
    told(run, "millrace: reloaded", 16)
    r = stopped(run)
    check_equal(set(r.drops()), {"gpu_drop_policy"}, "drops")
    counters = r.stage("l0", "match")
    check_equal(counters["matched"], r.lane()["rx_packets"], "matched")


@case
def what_cannot_change_is_refused_by_name_and_nothing_of_the_file_is_taken(s):
    run = s.start(flood("continue")).until_running()
    wrong = flood("drop", slots=8, tick_us=5, path="pinned")
    wrong["ports"][1]["device"] = "net_null2"
    change(s, run, wrong)
    r = reload(s, run)
    check_equal(r.status, CONFIG, r.told())
    for key in ("lanes[0].slots", "lanes[0].tick_us", "lanes[0].path", "ports[1].device"):
        check(f": {key}: cannot change" in r.stderr, f"{key} is not named: {r.stderr}")
    bad = flood("drop")
    bad["lanes"][0]["stages"].append({"use": "l2swap"})
    change(s, run, bad)
    check("lanes[0].stages: cannot change" in reload(s, run).stderr, "a longer chain was taken")
    change(s, run, flood("nonsense"))
    r = reload(s, run)
    check_equal(r.status, CONFIG, r.told())
    check("params.action" in r.stderr and "nonsense" in r.stderr, r.stderr)
    change(s, run, "lanes: [")
    check_equal(reload(s, run).status, CONFIG, "reload of half a file")
    grows(run, 0, "what is sent")
    told(run, "reload refused: nothing was changed", 4)
    check_equal(stopped(run).drops(), {}, "drops")


def udp(port):
    ip = struct.pack(">BBHHHBBHII", 0x45, 0, 28, 0, 0, 64, 17, 0, 0x0A000001, 0x0A000002)
    return bytes(12) + b"\x08\0" + ip + struct.pack(">HHHH", 7, port, 8, 0) + bytes(18)


def ruled(rules="rules.txt", **params):
    """A capture of UDP to ports 1000 to 1063, over and over."""
    stages = [{"use": "filter", "params": {"rules": rules, **params}}]
    ports = {"p0": "net_pcap0,rx_pcap=in.pcap,infinite_rx=1", "p1": OTHER}
    return config(ports, [lane("l0", "p0", "p1", stages, workers=2)])


@case
def tables_change_under_full_load_and_a_bad_one_leaves_the_old_in_force(s):
    s.pcap("in.pcap", [udp(1000 + i) for i in range(64)])
    rules = s.path / "rules.txt"
    rules.write_text("".join(f"permit dst_port {1000 + i}\n" for i in range(64)))
    run = s.start(ruled(rules_max=70)).until_running()
    for turn in range(4):
        word, which = (("deny", 1), ("permit", 0))[turn % 2]
        rules.write_text("".join(f"{word} dst_port {1000 + i}\n" for i in range(64)))
        r = reload(s, run)
        check_equal(r.status, 0, r.told())
        grows(run, which, word)
    dropped = counts(run)[1]
    # Each time all of the file is judged, and nothing of it taken.
    for text, words in (
        ("deny\ndeny dst_port 99999\nallow\n", ("rules.txt:2: 'dst_port'", "rules.txt:3: a rule")),
        ("deny\n" * 71, ("rules.txt:71: more than 70 rules",)),
        ("\0", ("is not text",)),
    ):
        rules.write_text(text)
        r = reload(s, run)
        check_equal(r.status, CONFIG, r.told())
        for w in words:
            check("lanes[0].stages[0].params.rules: " in r.stderr and w in r.stderr, r.stderr)
    rules.write_text("deny\n")
    change(s, run, ruled(rules_max=71))
    check("params.rules_max: cannot grow" in reload(s, run).stderr, "a larger table was taken")
    change(s, run, ruled(rules="none.txt", rules_max=70))
    check("'none.txt' cannot be read" in reload(s, run).stderr, "no file, and it was taken")
    grows(run, 0, "what is sent")
    check_equal(counts(run)[1], dropped, "dropped by rules that were refused")
    r = stopped(run)
    check_equal(set(r.drops()), {"gpu_drop_policy"}, "drops")
    counters = r.stage("l0", "filter")
    check_equal(counters["permitted"], r.lane()["tx_packets"], "permitted")
    check_equal(counters["denied"], r.drops()["gpu_drop_policy"], "denied")


def stuck(timeout_us, drain_ms=60000, level="info", **keys):
    """A flood to a port that nobody receives from."""
    ln = lane("l0", "p0", "p1", ["l2swap"], batch={"packets": 8}, tx_timeout_us=timeout_us, **keys)
    ports = {"p0": FLOOD, "p1": "net_ring0"}
    return config(ports, [ln], drain_ms=drain_ms, log={"level": level})


@case
def limits_change_under_load_and_a_file_with_one_mistake_changes_none(s):
    run = s.start(stuck(0)).until_running()

    def stalled():
        return run.stats()["lanes"][0]["drops"]["tx_drop_stalled"]

    def stands(what):
        time.sleep(0.2)  # a lane takes its limits with the counters that it publishes
        before = stalled()
        time.sleep(0.3)
        check_equal(stalled(), before, what)

    stands("packets that wait for ever, dropped")
    change(s, run, stuck(1000, slots=4))
    r = reload(s, run)
    check_equal(r.status, CONFIG, r.told())
    stands("dropped by a limit that was refused")
    change(s, run, stuck(1000))
    check_equal(reload(s, run).status, 0, "reload")
    told(run, "millrace: lanes[0].tx_timeout_us: was '0', is '1000'")
    before = stalled()
    until(lambda: stalled() != before, "nothing is dropped by the new limit")
    # What is in force now is what the next one changes.
    change(s, run, stuck(0, drain_ms=100))
    check_equal(reload(s, run).status, 0, "reload")
    told(run, "millrace: lanes[0].tx_timeout_us: was '1000', is '0'")
    told(run, "millrace: stop.drain_ms: was '60000', is '100'")
    stands("packets that wait for ever again, dropped")
    check_equal(reload(s, run).status, 0, "reload without a change")
    check_equal(run.stderr().count(", is "), 3, "changes that were told")
    at = run.signal()
    r = run.wait(UNDRAINED, "signal")
    check(time.monotonic() - at < 10 * PATIENCE, "drained by the limit of the start")
    check_equal(set(r.drops()), {"tx_drop_stalled"}, "drops")


@case
def the_limit_of_a_stall_changes_while_a_worker_stands_still(s):
    cfg = flood("drop", kernel={"stall_ms": 90000})
    cfg["devices"][0]["device"] = "sim,fault=stall@0:300"
    run = s.start(cfg).until_running()
    time.sleep(0.5 * PATIENCE)
    cfg["kernel"]["stall_ms"] = 500
    change(s, run, cfg)
    at = time.monotonic()
    r = reload(s, run)
    check_equal(r.status, FAILURE, r.told())
    r = run.wait(GPU, "gpu_stalled")
    check(time.monotonic() - at < 20 * PATIENCE, "stalled by the limit of the start")


@case
def the_log_says_as_much_as_the_configuration_says_now(s):
    words = "Closing null ethdev"  # that driver's, level info
    for before, now, wanted in (("info", "debug", True), ("debug", "error", False)):
        run = s.start(stuck(1000, level=before)).until_running()
        change(s, run, stuck(1000, level=now))
        r = reload(s, run)
        check_equal(r.status, 0, r.told())
        told(run, f"millrace: log.level: was '{before}', is '{now}'")
        check_equal(words in stopped(run).stderr, wanted, f"told at {now}")


def matched(ports):
    lanes = [lane("l0", "p0", "p1", ["l2swap"], match={"dst_port": ports})]
    device = "net_pcap0,rx_pcap=in.pcap,infinite_rx=1"
    return config({"p0": {"device": device, "steering": "software"}, "p1": OTHER}, lanes)


@case
def a_match_by_software_changes_under_full_load(s):
    s.pcap("in.pcap", [udp(1000 + i) for i in range(64)])
    run = s.start(matched("1000-1063")).until_running()

    def unmatched():
        return run.stats()["lanes"][0]["drops"]["gpu_drop_unmatched"]

    for ports, dropped in (("1000-1031", True), ("1000-1063", False)):
        check_equal(unmatched() > 0, not dropped, "dropped before")
        change(s, run, matched(ports))
        r = reload(s, run)
        check_equal(r.status, 0, r.told())
        time.sleep(0.2)  # until what was worked before is published
        before = unmatched()
        time.sleep(0.3)
        check_equal(unmatched() > before, dropped, f"drops more with {ports}")
    none = matched("1000-1063")
    del none["lanes"][0]["match"]
    change(s, run, none)
    check("lanes[0].match: cannot change" in reload(s, run).stderr, "a chain without match")
    check_equal(set(stopped(run).drops()), {"gpu_drop_unmatched"}, "drops")


@case
def a_start_and_a_check_say_all_that_is_wrong_with_a_table(s):
    s.pcap("in.pcap", [udp(1000)])
    (s.path / "rules.txt").write_text("permit\n" + "allow\n" * 30)
    for command in ("run", "check"):
        r = s.command(command, "--json", s.write("c.yaml", ruled()))
        check_equal(r.status, CONFIG, r.told())
        errors = json.loads(r.stdout)["errors"]
        check_equal(len(errors), 17, "sentences")
        check(errors[0]["message"].startswith("rules.txt:2: "), f"{errors[0]}")
        check("14 more" in errors[-1]["message"], f"{errors[-1]}")
        check(errors[0]["line"] > 0 and errors[0]["key"].endswith("params.rules"), f"{errors[0]}")


@case
def a_table_that_changes_while_it_is_read_is_refused(s):
    s.pcap("in.pcap", [udp(1000)])
    rules = s.path / "rules.txt"
    rules.write_text("# what takes a while to read\n" * 1000000 + "permit\n")
    done = threading.Event()

    def touch():
        now = 0
        while not done.is_set():
            now += 1
            os.utime(rules, ns=(now, now))

    toucher = threading.Thread(target=touch)
    toucher.start()
    r = s.command("check", s.write("c.yaml", ruled()))
    done.set()
    toucher.join()
    check_equal(r.status, CONFIG, r.told())
    check("'rules.txt' changes while it is read; " in r.stderr, r.stderr)


@case
def a_log_that_nobody_reads_stops_nothing(s):
    s.pcap("in.pcap", [udp(1000)])
    rules = s.path / "rules.txt"
    rules.write_text("permit\n")
    os.mkfifo(s.path / "log")
    log = os.open(s.path / "log", os.O_RDWR | os.O_NONBLOCK)
    fcntl.fcntl(log, F_SETPIPE_SZ, 8192)
    text = b""

    def read(words):
        nonlocal text
        end = time.monotonic() + WAIT_S
        while words not in text:
            check(time.monotonic() < end, f"not told '{words}': {text}")
            try:
                text += os.read(log, 65536)
            except BlockingIOError:
                time.sleep(0.02)

    cfg = ruled()
    cfg["kernel"] = {"host_timeout_ms": 1000 * int(PATIENCE)}
    run = s.start(cfg, prefix=["sh", "-c", 'exec "$@" 2>log', "sh"])
    read(b" runs ")
    rules.write_text(("allow" + "y" * 60 + "\n") * 30)
    for _ in range(4):
        run.signal(signal.SIGHUP)
        time.sleep(PATIENCE)
    grows(run, 0, "what is sent")
    rules.write_text("permit\n")
    read(b"allow")
    run.signal(signal.SIGHUP)
    read(b" sentences are not here, since nobody read them")
    read(b"millrace: reloaded")
    reader = threading.Thread(target=read, args=(b"device g0: sim",))
    reader.start()
    stopped(run)
    reader.join()
    os.close(log)


@case
def sighup_reloads_until_the_terminal_itself_is_gone(s):
    run = s.start(flood("continue")).until_running()
    change(s, run, flood("drop"))
    run.signal(signal.SIGHUP)
    told(run, "millrace: reloaded")
    grows(run, 1, "what is dropped")
    stopped(run)
    pid, terminal = pty.fork()
    if pid == 0:  # the session's leader has the terminal
        try:
            run = s.start(flood("continue")).until_running()
            s.write("child", f"{run.process.pid} {run.err.name}\n")
            signal.pause()
        finally:
            os._exit(1)
    try:
        child = s.path / "child"
        until(lambda: child.exists() and "\n" in child.read_text(), "does not come up below a terminal")
        number, errors = child.read_text().split()
        number, errors = int(number), pathlib.Path(errors)
        os.kill(number, signal.SIGHUP)
        until(lambda: "millrace: reloaded" in errors.read_text(), lambda: f"not reloaded: {errors.read_text()}")
        os.close(terminal)
        terminal = -1
        with contextlib.suppress(ProcessLookupError):  # the kernel has told it already
            os.kill(number, signal.SIGHUP)
        until(lambda: not os.path.exists(f"/proc/{number}/exe"), "goes on without its terminal")
    finally:
        if terminal >= 0:
            os.close(terminal)
        os.waitpid(pid, 0)


@case
def without_an_instance_it_says_so(s):
    r = s.command("reload", "--name", "nobody")
    check_equal(r.status, FAILURE, r.told())
    check("no instance 'nobody' is running" in r.stderr, r.stderr)
    check_equal(s.command("reload", "what").status, 2, "an argument that there is not")


@case
def who_asks_as_the_run_is_told_to_stop_hears_what_came_of_it(s):
    s.pcap("in.pcap", [udp(1000)])
    rules = s.path / "rules.txt"
    heard = []
    # How long a reload takes is the machine's: the moment in between is looked for.
    early, over, delay = 0, 2 * PATIENCE, 0
    for _ in range(10):
        rules.write_text("permit\n")
        run = s.start(ruled()).until_running()
        rules.write_text("# what takes a while to read\n" * 1000000 + "permit\n")
        asked = Instance(s, [s.millrace, "reload", "--name", run.name])
        time.sleep(delay)
        stopped(run)
        r = asked.ended()
        heard.append((delay, r.status, r.stderr))
        # Before it was asked, or after: but not in between.
        words = ("no instance", "or stops", "starting or stopping")
        late = r.status == FAILURE and "took the request" not in r.stderr
        late = late and any(w in r.stderr for w in words)
        # Read but not published, or published and not taken by all.
        under_way = f"the instance '{run.name}' stops" in r.stderr and (
            r.status == CONFIG or (r.status == FAILURE and "not with all of its workers" in r.stderr))
        check(late or under_way or r.status == 0, f"told to stop after {delay} s: {r.told()}")
        if under_way:
            return
        early, over = (delay, over) if late else (early, delay)
        delay = (early + over) / 2
    raise Failed(f"none was under way: {heard}")


@case
def a_reload_that_a_worker_does_not_take_is_no_refusal(s):
    """The other worker has it, so that nothing was changed would not be so."""
    cfg = flood("drop", kernel={"driver_ms": 1000, "stall_ms": 60000})
    cfg["devices"][0]["device"] = "sim,fault=stall@0:300"
    run = s.start(cfg).until_running()
    time.sleep(0.5 * PATIENCE)
    r = reload(s, run)
    check_equal(r.status, FAILURE, r.told())
    check("worker 0 of lane 'l0' has not yet taken the last reload" in r.stderr, r.stderr)
    check("not with all of its workers" in r.stderr, r.stderr)
    told(run, "reload failed: what was read is in force, but not with all workers")
    check("nothing was changed" not in run.stderr(), run.stderr())
    r = reload(s, run)
    check_equal(r.status, CONFIG, r.told())
    told(run, "reload refused: nothing was changed")
    run.signal()
    run.signal()
    run.ended()


sys.exit(main())
