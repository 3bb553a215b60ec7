#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The service under a real service manager, in a Debian of its own: from install to purge.

usage: test_guest.py MILLRACE BUILD HALT_THREAD [-k WORD]. Root only.

The cases are one story of one boot, in their order: each begins with what the one before left.
Frames come in over a wire, from here, and go back with their addresses exchanged.
"""
import atexit
import json
import pathlib
import re
import shutil
import sys
import threading
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / name) for name in ("guest", "package", "e2e")]
import frames as fr  # noqa: E402
from debian import another, build, package  # noqa: E402
from harness import CONFIG, PATIENCE, Scratch, Skipped, case, check, check_equal, check_frames, main, swapped  # noqa: E402
from system import System, image  # noqa: E402

ETC = "/etc/millrace/millrace.yaml"
UNIT = "millrace.service"
RESTART_S = 5  # RestartSec of the unit
STATS = "RUNTIME_DIRECTORY=/run/millrace millrace stats --name millrace"
# Frames that are under way at a time. A packet socket's ring, as libpcap has it, is of 8 blocks, and
# one that is handed over after a few ms may hold a single frame: on a machine that does not let the
# lane's thread run, more of them would be lost by the kernel (port_rx_missed), which is not judged.
WINDOW = 8
STORY = {}
YAML = """eal: {hugepages: "off"}
devices:
  - {name: g0, device: "@device@", region: 16MiB}
ports:
  - {name: p0, device: "kernel:eth0", rx_ring: 256, tx_ring: 256}
lanes:
  - name: l0
    rx: {port: p0, queue: 0}
    tx: [{port: p0, queue: 0}]
    core: any
    device: g0
    path: [direct]
    slots: @slots@
    tx_timeout_us: 0
    stages:
      - {use: match, params: {vlan: @vlan@}}
      - use: l2swap
kernel: {stall_ms: @stall_ms@, host_timeout_ms: 0}
stop: {drain_ms: 5000}
"""


class Story:
    """The guest, and what is asked of it again and again."""

    def __init__(self, s):
        # Outlives the case that began it.
        self.scratch = Scratch(s.millrace)
        atexit.register(self.scratch.close)
        self.scratch.others = s.others
        out = build(self.scratch)
        brought = self.scratch.path / "brought"
        brought.mkdir()
        shutil.copy(package(out, "millrace"), brought / "millrace.deb")
        shutil.copy(another(out, "millrace", "9.1", "\n# theirs\n"), brought / "newer.deb")
        shutil.copy(s.others[1], brought / "halt_thread")
        (brought / "template.yaml").write_text(YAML, encoding="ascii")
        cache = pathlib.Path(s.others[0]) / "tests" / "guest"
        cache.mkdir(parents=True, exist_ok=True)
        self.g = System(cache, self.scratch.path / "machine", image(cache, package(out, "millrace")), brought)
        atexit.register(self.g.close)
        self.must, self.run = self.g.must, self.g.run
        # What no protocol of the kernel takes it hands to packet sockets behind the rest of a
        # batch (__netif_receive_skb_list_core), so order is kept among frames of one protocol only.
        self.frames = [f for f in fr.make(1000, seed=21) if f[12:14] == b"\x08\x00"]

    def configure(self, **keys):
        keys = {"device": "sim", "slots": 16, "vlan": 5, "stall_ms": 0, **keys}
        edits = " ".join(f"-e s/@{name}@/{value}/" for name, value in keys.items())
        self.must(f"sed {edits} /job/template.yaml >{ETC}")

    def show(self, name):
        return self.must(f"systemctl show -P {name} {UNIT}").strip()

    def mark(self):
        """Now. A cursor would not do: behind one journalctl skips the first record that matches."""
        self.must("date +@%s.%6N >/job/mark")

    def journal(self, *options):
        """What the unit said since, and what the manager said of it."""
        self.must("journalctl --sync")
        return self.must(f"journalctl --since=$(cat /job/mark) -u {UNIT} -o cat --no-pager {' '.join(options)}")

    def start(self):
        self.must(f"systemctl reset-failed {UNIT}; systemctl start {UNIT}", 90)
        check_equal(self.show("ActiveState"), "active", "the unit after a start")

    def passes(self, what):
        """Frames come back, each of them, in order."""
        got = self.g.wires[0].exchange(self.frames, len(self.frames), window=WINDOW)
        if len(got) != len(self.frames):
            what += f" ({self.show('StatusText')})\n{self.run(STATS)[1]}"
        check_frames(got, [swapped(f) for f in self.frames], what)

    def anew(self, restarts, what):
        """It was started again, by the manager."""
        self.g.until(
            f'[ "$(systemctl show -P NRestarts {UNIT})" -gt {restarts} ] && systemctl is-active {UNIT}',
            (RESTART_S + 40) * PATIENCE, f"{what}: it is not started again")  # fmt: skip
        self.passes(f"after {what}")


    def diagnosis(self):
        """Sizes of the files of the newest, once it is whole: the configuration is its last."""
        newest = "$(ls -d /var/log/millrace-diagnosis/failure-* | tail -1)"
        self.g.until(f"ls {newest}/millrace.yaml", 30 * PATIENCE, "no diagnosis is kept")
        told = self.must(f"cd {newest} && stat -c '%n %s' *")
        return {name: int(size) for name, size in (line.split() for line in told.splitlines())}


def story(s):
    if not STORY:
        STORY["why"] = "the guest did not come up"
        try:
            STORY["it"] = Story(s)
        except Skipped as why:
            STORY["why"] = str(why)
            raise
    if "it" not in STORY:
        raise Skipped(STORY["why"])
    return STORY["it"]


@case
def installed_and_enabled_it_comes_with_the_system_as_its_own_user(s):
    t = story(s)
    # systemd's default, fq_codel, may send one flow's packets before another's.
    t.must("echo pfifo_fast >/proc/sys/net/core/default_qdisc; ip link set eth0 up")
    t.must("dpkg -i /job/millrace.deb", 90)
    check_equal(t.run(f"systemctl is-enabled {UNIT}")[1].strip(), "disabled", "the unit once installed")
    t.configure()
    t.must(f"systemctl enable {UNIT}")
    # What a boot does: all that the target wants.
    t.must("systemctl start multi-user.target", 30)
    t.g.until(f"systemctl is-active {UNIT}", 60 * PATIENCE, "it does not come with the target")
    check_equal(t.must(f"stat -c %U /proc/{t.show('MainPID')}").strip(), "millrace", "its user")
    t.passes("frames through the service")
    n = len(t.frames)
    t.g.until(f"systemctl show -P StatusText {UNIT} | grep -q '1 lane runs; packets: {n} received, {n} sent, 0 dropped'",
        20 * PATIENCE, "its status in words")  # fmt: skip


@case
def killed_it_is_started_anew(s):
    t = story(s)
    before = int(t.show("NRestarts"))
    t.must(f"kill -9 {t.show('MainPID')}")
    t.anew(before, "a kill")


@case
def a_lane_that_stands_still_is_ended_by_the_watchdog(s):
    t = story(s)
    t.must(f"systemctl reset-failed {UNIT}")
    before, pid = int(t.show("NRestarts")), t.show("MainPID")
    lane = t.must(f"grep -lx lane-l0 /proc/{pid}/task/*/comm | cut -d/ -f5").strip()
    t.mark()
    t.must(f"chmod 755 /job/halt_thread; /job/halt_thread {lane} >/job/halted 2>&1 &")
    t.anew(before, "a lane that stood still")
    check("Failed with result 'watchdog'" in t.journal(), f"not by the watchdog: {t.journal()}")
    check_equal(t.must("cat /job/halted"), "", "what halted it")
    # With its last report, and so its counters.
    kept = t.diagnosis()
    check(min(kept.values()) > 0, f"what was kept: {kept}")
    told = t.must("cat $(ls -d /var/log/millrace-diagnosis/failure-* | tail -1)/journal.txt")
    reports = [json.loads(l[l.index("{"):]) for l in told.splitlines() if '{"instance":' in l]
    check(reports and reports[-1]["balanced"], f"no report: {told}")


@case
def a_kernel_that_stands_still_is_ended_by_the_watchdog(s):
    t = story(s)
    # The run's own judgement of a stalled kernel comes later than the watchdog.
    t.configure(device="sim,fault=stall@0:3000", stall_ms=60000)
    t.mark()
    t.must(f"systemctl reset-failed {UNIT}; systemctl restart {UNIT}", 90)
    before = int(t.show("NRestarts"))
    t.configure()
    t.anew(before, "a kernel that stood still")
    check("Failed with result 'watchdog'" in t.journal(), f"not by the watchdog: {t.journal()}")


@case
def a_reload_under_load_loses_no_packet(s):
    t = story(s)
    t.mark()
    ended, rounds = threading.Event(), []

    def load():
        while not ended.is_set():
            rounds.append(list(t.g.wires[0].exchange(t.frames, len(t.frames), window=WINDOW)))

    thread = threading.Thread(target=load)
    thread.start()
    try:
        for i in range(4):
            t.configure(vlan=6 + i % 2)
            t.must(f"systemctl reload {UNIT}", 30)
    finally:
        ended.set()
        thread.join()
    # All of them, each once; in which order is the other cases' matter.
    wanted = sorted(swapped(f) for f in t.frames)
    for got in rounds:
        what = "frames while it was told to reload"
        if len(got) != len(wanted):
            what += f"\n{t.run(STATS)[1]}"
        check_frames(sorted(got), wanted, what)
    # Who asked for a reload is answered before it is written down.
    t.g.until(f"[ $(journalctl --since=$(cat /job/mark) -u {UNIT} -o cat MILLRACE_EVENT=reload | grep -cx reloaded) = 4 ]",
        10 * PATIENCE, "reloads in the journal")  # fmt: skip


@case
def a_clock_that_is_stepped_changes_nothing(s):
    t = story(s)
    pid = t.show("MainPID")
    for step in ("+2 days", "-4 days", "+2 days"):
        t.must(f"date -s '{step}' >/dev/null")
        t.passes(f"frames after a step of {step}")
    time.sleep(3)
    check_equal((t.show("MainPID"), t.show("ActiveState")), (pid, "active"), "the process after steps of the clock")
    status = t.must(f"{STATS} --prometheus")
    longest = float(re.search(r"^millrace_latency_max_seconds{[^}]*} (\S+)", status, re.M)[1])
    check(longest < 3600, f"a latency of {longest} s was measured over a step")
    steps = t.must(f"journalctl -b -u {UNIT} -o cat --no-pager MILLRACE_EVENT=clock").splitlines()
    check(len(steps) >= 3 and all("the time of day was set" in l for l in steps[-3:]), f"told of the steps: {steps}")


@case
def a_stop_drains_what_is_under_way(s):
    t = story(s)
    t.mark()
    wire, ended = t.g.wires[0], threading.Event()
    before = json.loads(t.must(f"{STATS} --json"))["lanes"][0]["tx_packets"]
    wire.quiet()

    def take():
        # A port whose far end takes nothing cannot be drained.
        while not ended.is_set():
            wire.send(t.frames[:50], 1)
            wire.collect()

    thread = threading.Thread(target=take)
    thread.start()
    try:
        time.sleep(1)
        t.must(f"systemctl stop {UNIT}", 60)
    finally:
        ended.set()
        thread.join()
    wire.collect()
    told = t.journal()
    check_equal((t.show("ActiveState"), t.show("Result"), t.show("ExecMainStatus")), ("inactive", "success", "0"), f"the stop: {told}")
    report = json.loads(next(l for l in told.splitlines() if l.startswith("{")))
    lane = report["lanes"][0]
    check(report["balanced"] and report["exit_reason"] == "signal" and lane["in_flight"] == 0, report)
    check(lane["rx_packets"] == lane["tx_packets"] > before, f"nothing was under way, or something was lost: {lane}")
    check_equal(len(wire.got), lane["tx_packets"] - before, "frames that came out, to the last one")
    wire.quiet()


@case
def a_bad_configuration_stays_down_with_one_sentence(s):
    t = story(s)
    t.configure(slots=15)
    t.mark()
    status, _ = t.run(f"systemctl reset-failed {UNIT}; systemctl start {UNIT}", 90)
    check(status != 0, "it was started")
    time.sleep(RESTART_S + 3)
    told = t.journal()
    check_equal((t.show("ActiveState"), t.show("NRestarts")), ("failed", "0"), f"the unit: {told}")
    check(f"status={CONFIG}" in t.show("ExecStartPre") + t.show("ExecStart"), f"not status {CONFIG}: {told}")
    sentences = [l for l in told.splitlines() if l.startswith("millrace: ") or "slots" in l]
    check_equal(len(sentences), 1, f"sentences: {told}")
    check(re.search(rf"{ETC}:\d+: .*slots", sentences[0]), sentences[0])
    kept = t.diagnosis()
    check_equal(kept["doctor.tar"] > 0 and kept["doctor.json"] > 0, True, f"what doctor read and said: {kept}")


@case
def an_upgrade_keeps_the_configuration_and_the_run(s):
    t = story(s)
    t.configure()
    t.start()
    pid = t.show("MainPID")
    t.must("dpkg --force-confdef --force-confold -i /job/newer.deb", 90)
    check_equal(t.show("MainPID"), pid, "the process after an upgrade")
    t.passes("frames after an upgrade")
    check_equal(t.must("dpkg-query -W -f '${Version}' millrace"), "9.1", "version")
    check("# theirs" not in t.must(f"cat {ETC}"), "the configuration was replaced")
    t.must(f"systemctl restart {UNIT}", 90)
    t.passes("frames after the restart")


@case
def a_purge_stops_it_and_leaves_nothing(s):
    t = story(s)
    t.must("dpkg -P millrace", 90)
    check_equal(t.run(f"systemctl is-active {UNIT}")[1].strip(), "inactive", "the unit")
    left = t.must("find / -xdev \\( -path /proc -o -path /sys -o -path /job -o -path /var/lib/dpkg \\) -prune -o -name '*millrace*' -print")
    check_equal(left, "", "what is left")
    check_equal(t.run("getent passwd millrace; getent group millrace")[1], "", "user and group")
    took = time.monotonic() - t.g.began
    print(f"     {took:.0f} s from QEMU's start to the end", flush=True)
    check(took <= 240 * PATIENCE, f"{took:.0f} s from QEMU's start to the end")


sys.exit(main(at_once=1))
