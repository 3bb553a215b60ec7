#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Changes of state as records with fields, read from a socket in the place of systemd's journal."""
import os
import re
import socket
import sys
import time

from harness import (
    CLEAN, CONFIG, FAILURE, GPU, PATIENCE, SOURCE, UNDRAINED, WAIT_S, Skipped, case, check, check_equal, complaints,
    config, lane, main, until,
)  # fmt: skip

INFO, WARNING, ERROR = "6", "4", "3"  # syslog(3)
FLOOD = "net_null0,size=64,copy=0"


class Journal:
    """Takes records where a run that is started below it looks for the journal."""

    def __init__(self, s):
        if os.geteuid() != 0:
            raise Skipped("only root can put a socket in the journal's place")
        place = s.path / "systemd" / "journal"
        place.mkdir(parents=True)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(place / "socket"))
        self.socket.settimeout(WAIT_S)
        self.s = s
        self.below = ["unshare", "-m", "sh", "-c", f"mount --bind {s.path} /run && "
            'JOURNAL_STREAM=$(stat -Lc %d:%i /dev/fd/2) exec "$@"', "sh"]  # fmt: skip

    def start(self, cfg, *args, **keys):
        return self.s.start(cfg, *args, prefix=self.below, **keys)

    def record(self):
        return dict(line.split("=", 1) for line in self.socket.recv(65536).decode().splitlines())

    def next(self, run, event, sentence, priority=INFO, **fields):
        """The next record is this one and has no other fields; the sentence is nowhere else."""
        got = self.record()
        wanted = {
            "MESSAGE": sentence,
            "PRIORITY": priority,
            "SYSLOG_IDENTIFIER": "millrace",
            "MILLRACE_EVENT": event,
            "MILLRACE_INSTANCE": run.name,
            **{f"MILLRACE_{k}": v for k, v in fields.items()},
        }
        check(re.fullmatch(sentence, got["MESSAGE"]), f"{got['MESSAGE']!r} is not {sentence!r}")
        check_equal(got, {**wanted, "MESSAGE": got["MESSAGE"]}, event)
        check(got["MESSAGE"] not in run.stderr(), f"told twice: {run.stderr()}")

    def running(self, run, paths="l0=direct"):
        lanes = len(paths.split())
        self.next(run, "running", f"'{run.name}' runs {lanes} lanes?", LANES=str(lanes), PATHS=paths)

    def drained(self, result):
        """sent, dropped and in flight."""
        got = self.record()
        check_equal((got["MILLRACE_EVENT"], got["MILLRACE_RESULT"]), ("drained", result), f"{got}")
        counts = [got[f"MILLRACE_{k}"] for k in ("SENT", "DROPPED", "IN_FLIGHT")]
        sentence = "drain (%s): %s packets were sent, %s dropped, and %s are in flight"
        check_equal(got["MESSAGE"], sentence % (result, *counts), "sentence")
        check_equal(got["PRIORITY"], INFO if result == "done" else WARNING, "priority")
        return [int(c) for c in counts]

    def stopped(self, run, status, reason, **fields):
        fields = {"STATUS": str(status), "REASON": reason, "BALANCED": "yes", **fields}
        fields = {k: v for k, v in fields.items() if v}
        self.next(run, "stopped", rf"ends with status {status} \({reason}\)", INFO if status == CLEAN else ERROR, **fields)


def flood(action="drop", device="sim", **keys):
    stages = [{"use": "match", "params": {"action": action, "port": 1}}]
    ports = {"p0": FLOOD, "p1": "net_null1,size=64,copy=0"}
    return config(ports, [lane("l0", "p0", ["p0", "p1"], stages, **keys)], device)


def stuck(tx_timeout_us, drain_ms, device="sim"):
    """A flood to a port that nobody receives from."""
    ln = lane("l0", "p0", "p1", ["l2swap"], batch={"packets": 8}, tx_timeout_us=tx_timeout_us)
    return config({"p0": FLOOD, "p1": "net_ring0"}, [ln], device, drain_ms=drain_ms)


def until_stuck(run):
    """Until the port is full; its ring holds 1023 frames."""
    until(lambda: run.stats()["lanes"][0]["tx_packets"] == 1023, lambda: f"the port is never full: {run.stats()}")


def reload(s, run):
    return s.command("reload", "--name", run.name).status


@case
def changes_of_a_reload_are_records(s):
    journal = Journal(s)
    run = journal.start(flood())
    journal.running(run)
    s.write(f"{run.name}.yaml", flood("send", tx_timeout_us=5))
    check_equal(reload(s, run), CLEAN, "reload")
    for key, before, now in (
        ("lanes[0].tx_timeout_us", "1000", "5"),
        ("lanes[0].stages[0].params", "action=drop port=1", "action=send port=1"),
    ):
        sentence = re.escape(f"{key}: was '{before}', is '{now}'")
        journal.next(run, "reload_key", sentence, KEY=key, BEFORE=before, NOW=now)
    journal.next(run, "reload", "reloaded", RESULT="done", TABLES="0")
    s.write(f"{run.name}.yaml", flood("send", slots=8))
    check_equal(reload(s, run), CONFIG, "reload")
    journal.next(run, "reload", "reload refused: nothing was changed", priority=WARNING, RESULT="refused", TABLES="0")
    # A journal that takes nothing is not waited for, and the sentence is not lost.
    journal.socket.close()
    check_equal(reload(s, run), CONFIG, "reload")
    sentence = "millrace: reload refused: nothing was changed"
    until(lambda: sentence in run.stderr(), lambda: f"not told: {run.stderr()}")
    run.signal()
    run.wait(reason="signal")


@case
def a_reload_counts_the_tables_that_it_read_from_files(s):
    journal = Journal(s)
    stages = [{"use": "filter", "params": {"rules": "rules.txt"}}, "forward", {"use": "filter"}]
    ports = {"p0": "net_ring0", "p1": "net_ring1"}
    lanes = [lane(f"l{i}", f"p{i}", f"p{i}", stages) for i in range(2)]
    (s.path / "rules.txt").write_text("permit\n")
    run = journal.start(config(ports, lanes))
    journal.running(run, "l0=direct l1=direct")
    (s.path / "rules.txt").write_text("deny\n")
    check_equal(reload(s, run), CLEAN, "reload")
    journal.next(run, "reload", "reloaded", RESULT="done", TABLES="2")
    (s.path / "rules.txt").write_text("allow\n")
    check_equal(reload(s, run), CONFIG, "reload")
    journal.next(run, "reload", "reload refused: nothing was changed", priority=WARNING, RESULT="refused", TABLES="0")
    run.signal()
    run.wait(reason="signal")


@case
def a_run_is_told_from_its_lanes_to_its_status(s):
    journal = Journal(s)
    for reason, args in (("signal", ()), ("duration", ("--duration", "0.5"))):
        run = journal.start(flood("send"), *args)
        journal.running(run)
        time.sleep(0.2)
        if reason == "signal":
            run.signal()
        journal.next(run, "stopping", rf"stops \({reason}\), and drains for at most 5000 ms",
            REASON=reason, DRAIN_MS="5000")  # fmt: skip
        r = run.wait(reason=reason)
        sent, dropped, left = journal.drained("done")
        check(sent < r.lane()["tx_packets"], f"{sent} sent by the drain, of {r.lane()['tx_packets']}")
        check_equal((dropped, left), (0, 0), "dropped and in flight")
        journal.stopped(run, CLEAN, reason)
        check_equal(complaints(r.stderr), [], "sentences beside the records")


@case
def a_drain_counts_what_it_sends_drops_and_leaves(s):
    """Nobody receives from the port, so packets wait until there is a limit, or for ever."""
    journal = Journal(s)
    run = journal.start(stuck(300000 * int(PATIENCE), 5000 * int(PATIENCE)))
    journal.running(run)
    until_stuck(run)
    run.signal()
    run.wait(reason="signal")
    check_equal(journal.record()["MILLRACE_EVENT"], "stopping", "event")
    sent, dropped, left = journal.drained("done")
    check(dropped > 0, "nothing was dropped by the drain")
    check_equal((sent, left), (0, 0), "sent and in flight")
    journal.stopped(run, CLEAN, "signal")
    for result, drain_ms in (("time", 100), ("signal", 60000)):
        run = journal.start(stuck(0, drain_ms))
        journal.running(run)
        until_stuck(run)
        run.signal()
        check_equal(journal.record()["MILLRACE_DRAIN_MS"], str(drain_ms), "bound")
        if result == "signal":
            run.signal()
        r = run.wait(UNDRAINED, "signal")
        left = r.lane()["in_flight"]
        check_equal(journal.drained(result), [0, 0, left], "sent, dropped and in flight")
        journal.stopped(run, UNDRAINED, "signal")


@case
def blank_buffers_of_ticks_are_no_packets_that_a_drain_dropped(s):
    journal = Journal(s)
    run = journal.start(config({"p0": FLOOD}, [lane("l0", "p0", "p0", ["seqtrack"], tick_us=1000)]))
    journal.running(run)
    run.signal()
    r = run.wait(reason="signal")
    check(r.drops()["gpu_drop_blank"] > 0, f"no blank buffer came back: {r.drops()}")
    check_equal(journal.record()["MILLRACE_EVENT"], "stopping", "event")
    check_equal(journal.drained("done")[1:], [0, 0], "dropped and in flight")


REVOKE = f"sim,fault=revoke@{int(1500 * PATIENCE)}"


@case
def a_path_that_is_lost_in_the_drain_is_told_of_before_its_end(s):
    journal = Journal(s)
    revoke = f"sim,fault=revoke@{int(4000 * PATIENCE)}"
    run = journal.start(stuck(0, 60000, revoke))
    journal.running(run)
    until_stuck(run)
    run.signal()
    r = run.wait(FAILURE, "path_unproven")
    events = [journal.record() for _ in range(4)]
    check_equal([e["MILLRACE_EVENT"] for e in events], ["stopping", "path", "drained", "stopped"], "events")
    check_equal((events[0]["MILLRACE_REASON"], events[2]["MILLRACE_RESULT"]), ("signal", "failure"), "reasons")
    check(r.lane()["in_flight"] > 0, "it had drained before")
    # A policy that goes on has nothing to go on with.
    run = journal.start({**stuck(0, int(6000 * PATIENCE), revoke), "proof": {"alarm": "go_on"}})
    journal.running(run)
    until_stuck(run)
    run.signal()
    run.wait(UNDRAINED, "signal")
    events = {e["MILLRACE_EVENT"]: e for e in (journal.record() for _ in range(4))}
    check_equal(list(events), ["stopping", "path", "drained", "stopped"], "events")
    check_equal(events["path"]["MESSAGE"],
        "lane 'l0': path direct is unproven from now on: a registration of packet memory was revoked", "sentence")  # fmt: skip
    check_equal(events["drained"]["MILLRACE_RESULT"], "time", "result of the drain")


@case
def a_path_that_is_no_longer_proven_is_told_of_with_its_lane(s):
    evidence = "a registration of packet memory was revoked"
    journal = Journal(s)
    lanes = [lane("l0", "p0", "p0"), lane("l1", "p1", "p1", path="pinned")]
    ports = {"p0": FLOOD, "p1": "net_null1,size=64,copy=0"}
    go_on = journal.start(config(ports, lanes, REVOKE, proof={"alarm": "go_on"}))
    journal.running(go_on, "l0=direct l1=pinned")
    for name, path in (("l0", "direct"), ("l1", "pinned")):
        sentence = f"lane '{name}': path {path} is unproven from now on, and the lane goes on: {evidence}"
        journal.next(go_on, "path", sentence, WARNING, LANE=name, BEFORE=path, NOW="unproven", EVIDENCE=evidence)
    go_on.signal()
    r = go_on.wait(reason="signal")
    check_equal(complaints(r.stderr), [], "sentences beside the records")
    events = [journal.record()["MILLRACE_EVENT"] for _ in range(3)]
    check_equal(events, ["stopping", "drained", "stopped"], "events")
    # A direct lane stops for it, and with it the one that would go on.
    stops = journal.start(config(ports, lanes, REVOKE))
    journal.running(stops, "l0=direct l1=pinned")
    r = stops.wait(FAILURE, "path_unproven")
    for name, path in (("l0", "direct"), ("l1", "pinned")):
        sentence = f"lane '{name}': path {path} is unproven from now on: {evidence}"
        journal.next(stops, "path", sentence, WARNING, LANE=name, BEFORE=path, NOW="unproven", EVIDENCE=evidence)
    journal.next(stops, "stopping", f"lane 'l0': path direct no longer holds, so it stops: {evidence}",
        ERROR, REASON="path_unproven", DRAIN_MS="0")  # fmt: skip
    got = journal.record()
    check_equal(got["MILLRACE_RESULT"], "done" if got["MILLRACE_IN_FLIGHT"] == "0" else "failure", "a drain")
    journal.stopped(stops, FAILURE, "path_unproven")
    check_equal(complaints(r.stderr), [], "sentences beside the records")


@case
def a_path_that_is_unproven_from_the_start_is_told_with_its_lanes(s):
    journal = Journal(s)
    cfg = {**flood(device="sim,fault=hiddencopy"), "proof": {"alarm": "go_on"}}
    run = journal.start(cfg)
    journal.running(run, "l0=unproven")
    run.signal()
    run.wait(reason="signal")
    events = [journal.record()["MILLRACE_EVENT"] for _ in range(3)]
    check_equal(events, ["stopping", "drained", "stopped"], "events")
    # Evidence against it is told all the same, and what it was before.
    evidence = "a registration of packet memory was revoked"
    cfg = {**flood(device=f"{REVOKE},fault=hiddencopy"), "proof": {"alarm": "go_on"}}
    run = journal.start(cfg)
    journal.running(run, "l0=unproven")
    sentence = f"lane 'l0': path direct was unproven and stays so, and the lane goes on: {evidence}"
    journal.next(run, "path", sentence, WARNING, LANE="l0", BEFORE="unproven", NOW="unproven", EVIDENCE=evidence)
    run.signal()
    run.wait(reason="signal")


@case
def a_failure_is_told_by_its_record(s):
    journal = Journal(s)
    run = journal.start(flood(device=f"sim,fault=die@0:{int(1500 * PATIENCE)}"))
    journal.running(run)
    r = run.wait(GPU, "gpu_lost")
    journal.next(run, "stopping", "device 'g0'.*", ERROR, REASON="gpu_lost", DRAIN_MS="0")
    check_equal(journal.record()["MILLRACE_RESULT"], "failure", "result of the drain")
    journal.stopped(run, GPU, "gpu_lost")
    check_equal(complaints(r.stderr), [], "sentences beside the records")


@case
def what_never_ran_is_told_with_its_status(s):
    journal = Journal(s)
    run = journal.start(flood(slots="many"))
    run.wait(CONFIG)
    journal.stopped(run, CONFIG, "error", BALANCED=None)
    # Even where it has no name, or one that would be a field of its own.
    name = "a\nMILLRACE_STATUS=0"
    run = journal.start(flood(), "--name", name)
    run.wait(CONFIG)
    got = journal.record()
    check_equal((got["MILLRACE_STATUS"], got["MILLRACE_INSTANCE"]), (str(CONFIG), name.replace("\n", " ")), "fields")
    run = journal.start(flood(device="sim,fault=attach@1"))
    run.wait(FAILURE)
    journal.stopped(run, FAILURE, "error", BALANCED=None)
    # Told to stop in a step of bring-up.
    cfg = {**flood(), "log": {"level": "debug"}}
    for _ in range(5):
        run = journal.start(cfg)
        until(lambda: "millrace: step " in run.stderr(), lambda: f"no step: {run.stderr()}")
        run.signal()
        r = run.wait(reason="signal")
        if not r.report["lanes"]:
            break
        while journal.record()["MILLRACE_EVENT"] != "stopped":
            pass  # it ran already
    check_equal(r.report["lanes"], [], "lanes")
    journal.stopped(run, CLEAN, "signal")


@case
def every_field_is_in_the_table_of_the_manual_and_no_other(s):
    code = "".join((SOURCE / "app" / f"mr_cmd_{name}.c").read_text() for name in ("log", "journal"))
    manual = (SOURCE / "deploy" / "README.md").read_text()
    rows = re.findall(r"^\| (\w+) \|(.*`MILLRACE_.*)$", manual, re.M)
    fields = set(re.findall(r"`(MILLRACE_\w+)", " ".join(text for _, text in rows)))
    check_equal(fields | {"MILLRACE_EVENT", "MILLRACE_INSTANCE"}, set(re.findall(r'"(MILLRACE_\w+)"', code)), "fields")
    events = re.findall(r'(?:tell\(\w+, |mr_journal_record\(\s*)"(\w+)"', code)
    check_equal({event for event, _ in rows}, set(events), "events")


sys.exit(main())
