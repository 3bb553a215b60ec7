#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The guard by memory protection keys, on a CPU that has them: one that QEMU emulates.

A guest (guest.py) runs the real programs on `direct` and `pinned` and hands everything back
as one tar file over its second serial port. Its kernel is kept in CACHE.

usage: test_guard_pkey.py MILLRACE CACHE [MILLRACE_TOUCH]. A sanitizer build has no third
program and is not tried. Needs QEMU, busybox, and the kernel package from an archive.
"""
import io
import pathlib
import platform
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time

import frames as fr
from guest import LIBGCC, QUIET, Initramfs, kernel
from harness import (
    Failed, Result, Skipped, case, check, check_equal, check_frames, config, judge, lane, main,
    read_pcap, swapped,
)  # fmt: skip

BOOT_S, GUEST_S = 30, 60  # boots alone in 4 s; a boot that hangs is tried once more
GIVEN = fr.make(300, seed=70)

INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /bin /sbin /dev /proc /sys /var/run /tmp
/bin/busybox --install -s /bin
export PATH=/bin
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
exec </dev/null >/dev/console 2>&1
chmod 755 / # EAL takes no plug-ins from below a folder that all may write
echo GUEST READY
cd /work
grep -c ospke /proc/cpuinfo >keys
while read -r name program; do
	"/bin/$program" run "$name.yaml" --json --idle-exit 0.5 >"$name.json" 2>"$name.err"
	echo $? >"$name.status"
	echo GUEST RAN "$name" "$(cat "$name.status")"
done <plan
stty -F /dev/ttyS1 raw
tar -c -f - . >/dev/ttyS1
sync
echo GUEST ENDS
poweroff -f
"""


def cfg(path, device):
    port = {"p0": "net_pcap0,rx_pcap=in.pcap,tx_pcap=OUT"}
    l0 = lane("l0", "p0", "p0", ["l2swap"], path=path, slots=16)
    return config(port, [l0], device, region="8MiB")


# What the guest runs: name, touching or not, path, device.
PLAN = [
    (f"{kind}-{path}-{guard}", kind == "touch", path, device)
    for path in ("direct", "pinned")
    for kind, guard, device in (
        ("plain", "pkey", "sim,guard=pkey"),
        ("touch", "pkey", "sim,guard=pkey"),
        ("plain", "auto", "sim"),
        ("touch", "off", "sim,guard=off"),
    )
    if path == "direct" or guard == "pkey"
]


def initramfs(s, touch):
    a = Initramfs()
    a.merged_usr()
    a.program(shutil.which("busybox"), "/usr/bin/busybox")
    a.program(s.millrace, "/usr/bin/millrace")
    a.program(touch, "/usr/bin/millrace-touch")
    a.copy(LIBGCC)
    a.plugins(("bus_vdev", "mempool_ring", "net_pcap"))
    s.pcap("in.pcap", GIVEN)
    a.file("work/in.pcap", (s.path / "in.pcap").read_bytes())
    for name, _, path, device in PLAN:
        made = s.write(f"{name}.yaml", cfg(path, device)).read_text().replace("OUT", f"{name}.pcap")
        a.file(f"work/{name}.yaml", made.encode())
    rows = [f"{name} millrace{'-touch' if touches else ''}\n" for name, touches, _, _ in PLAN]
    a.file("work/plan", "".join(rows).encode())
    a.file("init", INIT.encode(), 0o755)
    return a.bytes()


def boot(s, elf, archive, number):
    """One boot; returns the guest's words and its tar file, None if it never came up."""
    initrd, answer = s.path / "initrd", s.path / f"answer-{number}"
    initrd.write_bytes(archive)
    guest = subprocess.Popen(
        [
            "qemu-system-x86_64", "-M", "q35", "-accel", "tcg,thread=multi", "-cpu", "max",
            "-smp", "2", "-m", "768", "-nodefaults", "-display", "none", "-no-reboot",
            "-serial", "stdio", "-serial", f"file:{answer}",
            "-kernel", str(elf), "-initrd", str(initrd),
            "-append", QUIET,
        ],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    started = time.monotonic()
    ready = threading.Event()
    told = []

    def listen():
        for line in guest.stdout:
            told.append(line.decode(errors="replace").strip())
            if "GUEST READY" in told[-1]:
                ready.set()

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    try:
        while not ready.wait(0.1) and guest.poll() is None:
            if time.monotonic() > started + BOOT_S:
                return told, None
        guest.wait(max(1, started + GUEST_S - time.monotonic()))
    except subprocess.TimeoutExpired:
        return told, None
    finally:
        guest.kill()
        guest.wait()
        listener.join()
    print(f"     guest: {time.monotonic() - started:.1f} s", flush=True)
    return told, answer.read_bytes() if ready.is_set() else None


class Guest:
    """What came back from the guest; one boot serves all cases."""

    only = None

    def __init__(self, s):
        if platform.machine() != "x86_64":
            raise Skipped("the guest is x86-64")
        if len(s.others) < 2:
            raise Skipped("a sanitizer build is not tried in a guest")
        for tool in ("qemu-system-x86_64", "busybox", "apt-get", "dpkg-deb", "ldd"):
            if shutil.which(tool) is None:
                raise Skipped(f"{tool} is not installed")
        elf, _ = kernel(pathlib.Path(s.others[0]))
        archive = initramfs(s, s.others[1])
        for number in range(2):
            told, answer = boot(s, elf, archive, number)
            if answer is not None:
                break
            print(f"     boot {number} failed: {told[-3:]}", flush=True)
        check(answer is not None, "the guest came up in neither of two boots:\n" + "\n".join(told))
        try:
            with tarfile.open(fileobj=io.BytesIO(answer)) as files:
                whole = {m.name: files.extractfile(m).read() for m in files if m.isfile()}
            self.files = {name.removeprefix("./"): data for name, data in whole.items()}
        except tarfile.TarError as why:
            raise Failed(f"the guest's answer is damaged ({why}):\n" + "\n".join(told)) from why
        check(int(self.files["keys"]) > 0, "QEMU's CPU has no protection keys")

    def result(self, name):
        stdout, stderr, status = (
            self.files[f"{name}.{kind}"].decode() for kind in ("json", "err", "status")
        )
        return Result(int(status), stdout, stderr, 0)

    def frames(self, s, name):
        path = s.path / f"{name}.pcap"
        path.write_bytes(self.files[path.name])
        return read_pcap(path)


def guest(s):
    if isinstance(Guest.only, Exception):
        raise Guest.only
    if Guest.only is None:
        try:
            Guest.only = Guest(s)
        except (Failed, Skipped) as why:
            Guest.only = why
            raise
    return Guest.only


def runs(kind, guards):
    return [n for n, *_ in PLAN if n.startswith(kind) and n.split("-")[2] in guards]


@case
def a_whole_run_survives_with_packet_memory_under_a_protection_key(s):
    g = guest(s)
    for name in runs("plain", ("pkey", "auto")):
        r = judge(g.result(name), reason="idle")
        check_frames(g.frames(s, name), [swapped(f) for f in GIVEN], name)
        ln = r.lane()
        check_equal((ln["guard"], ln["guard_by"]), ("on(software-dma)", "pkey"), f"guard of {name}")
        check_equal(ln["path_verdict"], name.split("-")[1], f"path of {name}")
        check_equal(r.drops(), {}, f"drops of {name}")


@case
def a_lane_that_touches_one_payload_byte_dies_of_sigsegv(s):
    g = guest(s)
    for name in runs("touch", ("pkey",)):
        r = g.result(name)
        check_equal(r.status, 128 + signal.SIGSEGV, f"status of {name}: {r.told()}")


@case
def the_same_touch_survives_where_the_guard_is_off(s):
    g = guest(s)
    for name in runs("touch", ("off",)):
        r = judge(g.result(name), reason="idle")
        check_equal(r.lane()["guard"], "off", f"guard of {name}")
        check_frames(g.frames(s, name), [swapped(f) for f in GIVEN], name)


sys.exit(main(at_once=1))  # a guest uses both processors
