#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The guard: lanes run without access to packet memory, and one that touches it dies.

usage: test_guard.py MILLRACE [MILLRACE_TOUCH]. The second program is the same but for one
byte of payload that its lane reads; a sanitizer build has none.
"""
import platform
import signal
import sys

import frames as fr
from harness import (
    PATIENCE, Skipped, case, check, check_equal, check_frames, config, lane, main,
    sees_threads, swapped,
)  # fmt: skip

PATHS = ("direct", "pinned")
GIVEN = fr.make(600, seed=70)


def cpu_has_keys():
    if sees_threads(sys.argv[1]):
        return False  # such a build uses none, see mr_guard_init
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as f:
        return " ospke" in f.read()


def cfg(path, guard, out):
    device = f"sim,guard={guard}" if guard else "sim"
    return config(
        {"p0": f"net_pcap0,rx_pcap=in.pcap,tx_pcap={out}"},
        [lane("l0", "p0", "p0", ["checksum", "l2swap"], path=path)],
        device,
    )


def judge_survival(s, path, guard, wanted):
    s.pcap("in.pcap", GIVEN)
    out = f"{path}-{guard}.pcap"
    r = s.run_idle(cfg(path, guard, out))
    check_frames(s.frames(out), [swapped(f) for f in GIVEN], out)
    check_equal((r.lane()["guard"], r.lane()["guard_by"]), wanted, f"guard on {path}")
    return r


@case
def a_whole_run_survives_with_packet_memory_closed_to_the_lane(s):
    for path in PATHS:
        r = judge_survival(s, path, "mprotect", ("on(software-dma)", "mprotect"))
        told = [e for e in r.lane()["evidence"] if e["check"] == "guard"]
        check_equal([e["verdict"] for e in told], ["PASS"], "verdict of the guard")


@case
def without_being_asked_the_guard_is_a_protection_key_or_said_to_be_missing(s):
    keys = cpu_has_keys()
    wanted = ("on(software-dma)", "pkey") if keys else ("unavailable", "none")
    for path in PATHS:
        judge_survival(s, path, None, wanted)


@case
def a_guard_that_was_switched_off_is_not_claimed(s):
    for path in PATHS:
        judge_survival(s, path, "off", ("off", "none"))


@case
def a_protection_key_is_refused_where_the_cpu_has_none(s):
    if cpu_has_keys():
        raise Skipped("this CPU has protection keys")
    s.pcap("in.pcap", GIVEN)
    r = s.run(cfg("direct", "pkey", "out.pcap"), "--duration", "1", status=1)
    check("guard=mprotect" in r.report["errors"][0]["message"], f"no way out: {r.stderr}")


# Lets all system calls pass but pkey_alloc, which fails with EPERM, as a service's filter would.
NO_KEYS = """
import ctypes, os, struct, sys
code = b"".join(struct.pack("HBBI", *c) for c in ((0x20, 0, 0, 0), (0x15, 0, 1, 330), (6, 0, 0, 0x50001), (6, 0, 0, 0x7fff0000)))
held = ctypes.create_string_buffer(code)
prog = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", 4, ctypes.addressof(held)))
libc = ctypes.CDLL(None)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.c_void_p(ctypes.addressof(prog)), 0, 0):
    sys.exit(99)
os.execvp(sys.argv[1], sys.argv[1:])
"""


@case
def keys_that_are_refused_are_not_laid_to_the_cpu(s):
    if platform.machine() != "x86_64" or sees_threads(s.millrace):
        raise Skipped("this build takes no protection key")
    refusing = (sys.executable, "-c", NO_KEYS)
    s.pcap("in.pcap", GIVEN)
    r = s.run(cfg("direct", None, "out.pcap"), "--duration", "1", reason="duration", prefix=refusing)
    check_equal((r.lane()["guard"], r.lane()["guard_by"]), ("unavailable", "none"), "guard")
    told = [e for e in r.lane()["evidence"] if e["check"] == "guard"]
    check_equal([e["verdict"] for e in told], ["WARN"], "verdict of the guard")
    check("Operation not permitted" in told[0]["value"] and "@pkey" in told[0]["value"], told[0]["value"])
    r = s.run(cfg("direct", "pkey", "out.pcap"), "--duration", "1", status=1, prefix=refusing)
    told = r.report["errors"][0]["message"]
    check("Operation not permitted" in told and "@pkey" in told, told)


def touch(s, path, guard):
    if not s.others:
        raise Skipped("a sanitizer build has no program that touches packets")
    s.pcap("in.pcap", GIVEN)
    run = s.start(cfg(path, guard, "out.pcap"), "--idle-exit", str(0.5 * PATIENCE), millrace=s.others[0])
    return run


@case
def a_lane_that_touches_one_payload_byte_dies_of_sigsegv(s):
    guards = ["mprotect"] + (["pkey"] if cpu_has_keys() else [])
    for guard in guards:
        for path in PATHS:
            r = touch(s, path, guard).ended()
            check_equal(r.status, -signal.SIGSEGV, f"status on {path} with {guard}: {r.told()}")


@case
def the_same_touch_survives_where_the_guard_is_off(s):
    for path in PATHS:
        touch(s, path, "off").wait(reason="idle")
        check_frames(s.frames("out.pcap"), [swapped(f) for f in GIVEN], "output")


sys.exit(main())
