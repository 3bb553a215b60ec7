#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a run tells the service manager, and the units that deploy/ has for it."""
import ctypes
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import time

from harness import (
    CLEAN, CONFIG, GPU, PATIENCE, SOURCE, UNDRAINED, Skipped, case, check, check_equal, config, lane, main,
    sees_threads,
)  # fmt: skip

DEPLOY = SOURCE / "deploy"
EXPOSURE_MAX = 2.0


class Manager:
    """The socket that a service manager listens on, and what came, with its time."""

    def __init__(self, s, watchdog_s=0.0):
        self.path = str(s.path / "notify")
        if os.path.exists(self.path):
            os.unlink(self.path)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.told = []
        s.env["NOTIFY_SOCKET"] = self.path
        s.env.pop("WATCHDOG_USEC", None)
        if watchdog_s:
            s.env["WATCHDOG_USEC"] = str(int(watchdog_s * 1e6))

    def listen(self, seconds, until=None):
        """Takes what comes for so long, or until a line matches."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.socket.settimeout(max(0.01, end - time.monotonic()))
            try:
                message = self.socket.recv(4096).decode()
            except TimeoutError:
                break
            self.told += [(time.monotonic(), line) for line in message.splitlines()]
            if until and any(re.search(until, line) for line in message.splitlines()):
                return True
        return False

    def lines(self, pattern):
        return [line for _, line in self.told if re.search(pattern, line)]


def quiet(device="sim", **keys):
    return config({"p0": "net_ring0"}, [lane("l0", "p0", "p0")], device, region="16MiB", **keys)


def busy(device="sim", **keys):
    return config({"p0": "net_null0,size=64,copy=0"}, [lane("l0", "p0", "p0")], device, region="16MiB", **keys)


@case
def ready_is_told_once_when_lanes_run_and_the_watchdog_is_fed(s):
    m = Manager(s, watchdog_s=2)
    run = s.start(quiet())
    check(m.listen(40 * PATIENCE, "^READY=1"), f"never ready: {m.told}")
    first = next(i for i, (_, line) in enumerate(m.told) if line == "READY=1")
    steps = [line for _, line in m.told[:first] if line.startswith("STATUS=starting")]
    check(len(steps) > 5, f"steps of bring-up: {m.told[:first]}")
    check(m.lines("^EXTEND_TIMEOUT_USEC="), "no more time is asked for")
    m.listen(3 * PATIENCE)
    fed = [at for at, line in m.told if line == "WATCHDOG=1"]
    check(len(fed) >= 3, f"fed {len(fed)} times in 3 s")
    check(max(b - a for a, b in zip(fed, fed[1:])) < 2 * PATIENCE, f"fed too late: {fed}")
    check(any("1 lane runs; packets: 0 received" in l for l in m.lines("^STATUS")), f"{m.lines('^STATUS')}")
    run.signal()
    run.wait(CLEAN, "signal")
    m.listen(0.2)
    check_equal(len(m.lines("^READY=1")), 1, "READY")
    check_equal(m.told[-2][1], "STOPPING=1", "the last words")
    # As much as the drain may take, and what comes after it.
    check_equal(m.told[-3][1], "EXTEND_TIMEOUT_USEC=25000000", "time for the stop")


@case
def a_path_that_is_not_proven_is_never_ready(s):
    if sees_threads(s.millrace):
        raise Skipped("fault=noread needs two addresses of one byte")
    m = Manager(s)
    run = s.start(quiet("sim,fault=noread", proof={"alarm": "go_on"}))
    check(m.listen(40 * PATIENCE, "the path of lane l0 is unproven"), f"not said: {m.told} {run.stderr()}")
    m.listen(2)
    run.signal()
    run.wait(CLEAN, "signal")
    check_equal(m.lines("^READY=1"), [], "READY")


@case
def a_manager_that_does_not_read_is_not_waited_for(s):
    m = Manager(s, watchdog_s=1)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as others:
        others.setblocking(False)
        try:
            while True:
                others.sendto(b"X=1", m.path)
        except BlockingIOError:
            pass
    silent = s.start(quiet(kernel={"host_timeout_ms": 1000 * int(PATIENCE)}), "--duration", "3")
    silent.wait(CLEAN, "duration")
    check_equal(m.lines("^READY=1"), [], "READY in a full socket")
    run = s.start(quiet()).until_running()
    check(m.listen(40 * PATIENCE, "^READY=1"), f"not ready once there is room: {m.told}")
    check(m.lines("^X=1"), "the socket was not full")
    run.signal()
    run.wait(CLEAN, "signal")


@case
def what_only_lives_does_not_feed_the_watchdog(s):
    """Kernels that beat and do no work, and ones that stand still, judged by nobody else yet."""
    for fault in ("idle@0:1500", "stall@0:1500"):
        m = Manager(s, watchdog_s=2)
        run = s.start(busy(f"sim,fault={fault}", kernel={"stall_ms": 6000 * int(PATIENCE), "host_timeout_ms": 0}))
        check(m.listen(40 * PATIENCE, "^READY=1"), f"{fault}: never ready: {m.told}")
        check(m.listen(20 * PATIENCE, "stands still"), f"{fault}: not seen: {m.told}")
        before = len(m.lines("^WATCHDOG=1"))
        m.listen(3)
        check_equal(len(m.lines("^WATCHDOG=1")), before, f"{fault}: fed all the same")
        check(before > 0, f"{fault}: it was never fed")
        run.wait(GPU, "gpu_stalled")


class Halted:
    """A thread that does nothing while this is there: ptrace(2)."""

    def __init__(self, task):
        self.task, self.ptrace = task, ctypes.CDLL(None, use_errno=True).ptrace
        self.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]

    def __enter__(self):
        for request in (0x4206, 0x4207):  # PTRACE_SEIZE, PTRACE_INTERRUPT
            if self.ptrace(request, self.task, None, None) != 0:
                raise Skipped(f"ptrace: {os.strerror(ctypes.get_errno())}")
        os.waitpid(self.task, 0x40000000)  # __WALL

    def __exit__(self, *_):
        check_equal(self.ptrace(17, self.task, None, None), 0, "PTRACE_DETACH")


@case
def one_worker_of_several_that_stands_still_starves_the_watchdog(s):
    """Nothing is in flight, and nobody else judges it yet."""
    if os.geteuid() != 0:
        raise Skipped("root alone halts a thread of another process")
    m = Manager(s, watchdog_s=2)
    cfg = quiet(kernel={"stall_ms": 60000, "host_timeout_ms": 0})
    cfg["lanes"][0]["workers"] = 2
    run = s.start(cfg)
    check(m.listen(40 * PATIENCE, "^READY=1"), f"never ready: {m.told}")
    tasks = pathlib.Path(f"/proc/{run.process.pid}/task").iterdir()
    workers = [int(t.name) for t in tasks if re.fullmatch(r"mr-sim-\d+", (t / "comm").read_text().strip())]
    check_equal(len(workers), 2, "threads of workers")
    with Halted(workers[0]):
        check(m.listen(20 * PATIENCE, "stands still"), f"not seen: {m.told}")
        before = len(m.lines("^WATCHDOG=1"))
        m.listen(3)
        check_equal(len(m.lines("^WATCHDOG=1")), before, "fed all the same")
    check(m.listen(20 * PATIENCE, "^WATCHDOG=1"), f"not fed again: {m.told}")
    run.signal()
    run.wait(CLEAN, "signal")


@case
def a_peer_that_takes_nothing_for_ever_does_not_starve_the_watchdog(s):
    """Nobody receives from p1, and what waits for it is to wait."""
    m = Manager(s, watchdog_s=2)
    ports = {"p0": "net_null0,size=64,copy=0", "p1": "net_ring0"}
    run = s.start(config(ports, [lane("l0", "p0", "p1", tx_timeout_us=0)]))
    check(m.listen(40 * PATIENCE, "^READY=1"), f"never ready: {m.told}")
    m.listen(2 * PATIENCE)
    sent = run.stats()["lanes"][0]["tx_packets"]
    before = len(m.lines("^WATCHDOG=1"))
    m.listen(3 * PATIENCE)
    check(len(m.lines("^WATCHDOG=1")) - before >= 3, f"not fed: {m.told}")
    check_equal(m.lines("stands still"), [], "status")
    run.signal()
    time.sleep(0.5)
    run.signal()
    r = run.wait(UNDRAINED, "signal")
    check_equal(r.lane()["tx_packets"], sent, "sent to a port that is full")
    check(r.lane()["in_flight"] > 0, "nothing waits")


@case
def strict_refuses_what_could_not_be_read(s):
    """As a service's preflight: unknown is no."""
    if os.geteuid() != 0:
        raise Skipped("root alone can hide files from a process")
    hide = ("unshare", "-m", "sh", "-c", 'mount -t tmpfs none /proc/sys && exec "$@"', "sh")
    found = s.command("doctor", "--json", s.write("strict.yaml", quiet()), prefix=hide)
    gating = re.search(r'"verdict": ?"UNKNOWN"[^}]*"gating": ?true|"gating": ?true[^}]*"verdict": ?"UNKNOWN"', found.stdout)
    r = s.start(quiet(), "--strict", "--duration", "1", prefix=hide).ended()
    check_equal(r.status, CONFIG if gating else CLEAN, f"strict: {r.told()}")


@case
def units_are_sound_and_closed(s):
    if shutil.which("systemd-analyze") is None:
        raise Skipped("systemd-analyze is not installed")
    units = s.path / "units"
    units.mkdir()
    for name in ("millrace.service", "millrace-diagnosis.service"):
        text = (DEPLOY / name).read_text()
        # The program of this build, so that the check of what is executable holds.
        (units / name).write_text(text.replace("/usr/bin/millrace ", f"{s.millrace} "))
    env = dict(os.environ, SYSTEMD_UNIT_PATH=f"{units}:")
    # Its manual pages are installed with it, and so is nothing here.
    r = subprocess.run(["systemd-analyze", "verify", "--man=no", units / "millrace.service"],
        capture_output=True, text=True, env=env)  # fmt: skip
    told = [l for l in (r.stdout + r.stderr).splitlines() if "millrace" in l]
    check_equal(told, [], "systemd-analyze verify")
    r = subprocess.run(["systemd-analyze", "security", "--offline=yes", "--no-pager", units / "millrace.service"],
        capture_output=True, text=True, env=env)  # fmt: skip
    level = re.search(r"exposure level for millrace.service: ([\d.]+)", r.stdout)
    check(level, f"no exposure level: {r.stdout[-500:]} {r.stderr}")
    check(float(level[1]) <= EXPOSURE_MAX, f"exposure {level[1]} is above {EXPOSURE_MAX}")


def lines_of(unit, key):
    """The values of a key of a unit, in order, with lines that go on joined."""
    text = (DEPLOY / unit).read_text().replace("\\\n", " ")
    return re.findall(rf"^{key}=(.*)$", text, re.M)


# Device files and what the unit's list calls them. A mount is none, and two are allowed to all.
DEVICES = {"kmsg": "/dev/kmsg r", "nvidia": "char-nvidia* rw", "infiniband": "char-infiniband_verbs rw",
    "hugepages": None, "null": None, "tty": None}  # fmt: skip
# What libraries open.
OF_LIBRARIES = {"char-nvidia-uvm rw", "char-vfio rw", "/dev/vfio/vfio rw", "char-gdrdrv rw"}


@case
def device_files_that_are_opened_are_those_that_the_unit_allows(s):
    """The list holds for ExecStartPre too, where a check that may not read refuses the start."""
    allowed = set(lines_of("millrace.service", "DeviceAllow"))
    wanted = set(OF_LIBRARIES)
    for folder in ("lib/path", "lib/gpu", "drivers", "app"):
        for source in (SOURCE / folder).rglob("*.[ch]"):
            for name in re.findall(r'"/?dev/([a-z]+)', source.read_text()):
                name = "nvidia" if name.startswith("nvidia") else name
                check(name in DEVICES, f"{source} opens /dev/{name}, of which this list knows nothing")
                wanted |= {DEVICES[name]} - {None}
    check("/dev/kmsg r" in wanted and "char-nvidia* rw" in wanted, f"found too little: {wanted}")
    check_equal(allowed, wanted, "DeviceAllow")


def filter_sets():
    sets, name = {}, None
    for line in subprocess.run(["systemd-analyze", "syscall-filter"], capture_output=True, text=True, check=True).stdout.splitlines():
        if line.startswith("@"):
            name = line.strip()
            sets[name] = []
        elif name and line.startswith("    ") and not line.strip().startswith("#"):
            sets[name].append(line.strip())
    return sets


def calls(sets, word):
    if not word.startswith("@"):
        return {word}
    return set().union(*(calls(sets, w) for w in sets.get(word, ())))


@case
def system_calls_that_a_run_makes_pass_the_filter(s):
    if shutil.which("systemd-analyze") is None:
        raise Skipped("systemd-analyze is not installed")
    sets, allowed = filter_sets(), set()
    for line in lines_of("millrace.service", "SystemCallFilter"):
        named = set().union(*(calls(sets, w) for w in line.lstrip("~").split()))
        allowed = allowed - named if line.startswith("~") else allowed | named
    wanted = {"pkey_alloc", "pkey_mprotect", "pkey_free", "sched_setaffinity", "mbind", "mmap", "ioctl"}
    check_equal(wanted - allowed, set(), "calls that the filter refuses")
    check(not allowed & {"mount", "reboot", "init_module", "ptrace"}, "the filter is none")


def shell_of(unit, key):
    """The shell command of a unit's line, with the service manager's own escapes taken out."""
    line = lines_of(unit, key)[-1]
    return re.search(r"/bin/sh -c '(.*)'$", line)[1].replace("$$", "$").replace("%%", "%")


@case
def every_failure_leaves_a_diagnosis_also_one_that_is_started_anew(s):
    """OnFailure= is for the last of them: a unit that is started anew has not failed yet."""
    check_equal(lines_of("millrace.service", "OnFailure"), [], "OnFailure, a second time")
    systemctl = s.path / "systemctl"
    systemctl.write_text(f"#!/bin/sh\necho \"$*\" >>{s.path}/asked\n")
    systemctl.chmod(0o755)
    asked = s.path / "asked"
    for result in ("success", "exit-code", "watchdog", "signal", "timeout"):
        asked.write_text("")
        subprocess.run(["sh", "-c", shell_of("millrace.service", "ExecStopPost")], check=True,
            env={"PATH": f"{s.path}:/usr/bin:/bin", "SERVICE_RESULT": result})  # fmt: skip
        wanted = "" if result == "success" else "--no-block start millrace-diagnosis.service\n"
        check_equal(asked.read_text(), wanted, f"what is asked of the manager after {result}")


@case
def a_diagnosis_is_kept_where_the_services_account_cannot_reach(s):
    folder, = lines_of("millrace-diagnosis.service", "LogsDirectory")
    check(folder not in lines_of("millrace.service", "LogsDirectory"), "the folder is the service's")
    check_equal(lines_of("millrace-diagnosis.service", "LogsDirectoryMode"), ["0700"], "mode of the folder")
    umask, = lines_of("millrace-diagnosis.service", "UMask")
    check_equal(lines_of("millrace-diagnosis.service", "User"), [], "an account")
    check(f"/var/log/{folder} " in (DEPLOY / "debian" / "millrace.postrm").read_text(), "a purge leaves it")
    logs = s.path / folder
    for second in range(12):
        (logs / f"failure-20200101T0000{second:02}").mkdir(parents=True)
    journalctl = s.path / "journalctl"
    journalctl.write_text("#!/bin/sh\necho a line\n")
    journalctl.chmod(0o755)
    shell = shell_of("millrace-diagnosis.service", "ExecStart").replace("/usr/bin/millrace", s.millrace)
    subprocess.run(["sh", "-c", f"umask {umask}; {shell}"], check=True, cwd="/",
        env={**s.env, "PATH": f"{s.path}:/usr/bin:/bin", "LOGS_DIRECTORY": str(logs)})  # fmt: skip
    left = sorted(p.name for p in logs.iterdir())
    check_equal(len(left), 10, f"kept: {left}")
    check(not left[-1].startswith("failure-2020"), f"the newest is gone: {left}")
    newest = logs / left[-1]
    check_equal((newest / "journal.txt").read_text(), "a line\n", "journal.txt")
    check('"errors"' in (newest / "doctor.json").read_text(), "doctor.json")
    for p in (newest, *newest.iterdir()):
        check_equal(p.stat().st_mode & 0o077, 0, f"{p.name} is for others")


@case
def a_run_that_never_becomes_ready_is_not_started_for_ever(s):
    """A start that times out, as often as the limit allows, takes less than the limit's interval."""
    one = {key: int(lines_of("millrace.service", key)[0]) for key in
        ("TimeoutStartSec", "TimeoutStopSec", "RestartSec", "StartLimitIntervalSec", "StartLimitBurst")}  # fmt: skip
    takes = one["TimeoutStartSec"] + one["TimeoutStopSec"] + one["RestartSec"]
    check(one["StartLimitBurst"] * takes < one["StartLimitIntervalSec"], f"{one}")


@case
def statuses_of_the_unit_are_those_of_the_program(s):
    unit = (DEPLOY / "millrace.service").read_text()
    codes = re.search(r"^RestartForceExitStatus=(.*)$", unit, re.M)[1].split()
    header = (SOURCE / "app" / "mr_cmd.h").read_text()
    known = dict(re.findall(r"MR_EXIT_(\w+) = (\d+)", header))
    again = {v for k, v in known.items() if k not in ("CLEAN", "USAGE", "CONFIG")}
    check_equal(set(codes), again, "statuses that start it anew")
    check_equal(re.search(r"^RestartPreventExitStatus=(.*)$", unit, re.M)[1], known["CONFIG"], "status that does not")


sys.exit(main())
