#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Captures that are not what they should be: said in one sentence, with an honest status."""
import os
import pathlib
import socket
import struct
import subprocess
import sys

import frames as fr
from harness import (
    CLEAN, CONFIG, FAILURE, PATIENCE, PCAP_HEADER, Skipped, case, check, check_equal, check_frames,
    complaints, config, lane, main, swapped, whole_frames,
)  # fmt: skip


def through(rx="in.pcap", tx="out.pcap", **keys):
    return config(
        {"p0": f"net_pcap0,rx_pcap={rx},tx_pcap={tx}"},
        [lane("l0", "p0", "p0", ["l2swap"])],
        **keys,
    )


def refused(s, cfg, words):
    """Status 78 at once, one sentence for each of these words, the same in the JSON."""
    r = s.run(cfg, "--duration", "10", status=CONFIG)
    check(r.seconds < 5 * PATIENCE, f"took {r.seconds} s")
    lines = r.stderr.splitlines()
    check_equal(len(lines), len(words), f"lines of stderr: {r.stderr}")
    for line, error, word in zip(lines, r.report["errors"], words):
        check(word in line and ".yaml:" in line and "ports[" in line, f"no '{word}' in {line}")
        check(error["message"] in line and error["line"] > 0, f"{error} is not {line}")


def ends_with_sentence(s, r, words):
    said = complaints(r.stderr)
    check_equal(len(said), 1, f"sentences: {r.stderr}")
    for word in words:
        check(word in said[0], f"no '{word}' in {said[0]}")
    check_equal(r.report["exit_reason"], "error", "exit_reason")


@case
def a_file_that_cannot_be_opened_is_refused_with_the_reason(s):
    s.pcap("in.pcap", fr.make(10, seed=1))
    (s.path / "text").write_text("no capture, but long enough to be one\n")
    (s.path / "short").write_bytes(PCAP_HEADER[:20])
    (s.path / "folder").mkdir()
    os.mkfifo(s.path / "pipe")
    end = socket.socket(socket.AF_UNIX)
    end.bind(str(s.path / "end"))
    end.close()
    cases = {
        "missing": "cannot be read: No such file or directory",
        "text": "is not a capture",
        "short": "is not a capture",
        "folder": "is a directory, not a file",
        "pipe": "is a pipe, not a file",
        "end": "is a socket, not a file",
        "/dev/zero": "is a device, not a file",
        "": "cannot be read",
        "-": "is not the name of a file",
        "in.pcap/x": "cannot be read: Not a directory",
    }
    for name, word in cases.items():
        refused(s, through(rx=name), [f"rx_pcap '{name}' {word}"])
    cases = {
        "missing/x": "cannot be created: folder 'missing/': No such file or directory",
        "folder": "is a directory, not a file",
        "pipe": "is a pipe, not a file",
        "/dev/full": "is a device, not a file",
        "": "cannot be written",
        "-": "is not the name of a file",
        "in.pcap/x": "cannot be written: Not a directory",
    }
    for name, word in cases.items():
        refused(s, through(tx=name), [f"tx_pcap '{name}' {word}"])
    refused(s, through("missing", "missing/x"), ["rx_pcap 'missing'", "tx_pcap 'missing/x'"])


@case
def files_without_the_right_to_them_are_refused_with_the_reason(s):
    if os.geteuid() != 0:
        raise Skipped("only root can become somebody who may not")
    s.pcap("in.pcap", fr.make(10, seed=1))
    (s.path / "in.pcap").chmod(0o600)
    s.path.chmod(0o755)
    (s.path / "run").chmod(0o777)
    (s.path / "ours").mkdir(mode=0o755)
    path = s.write("denied.yaml", through(tx="ours/out.pcap"))
    r = s.command("run", path, "--json", "--duration", "1",
        prefix=["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"])  # fmt: skip
    if "setpriv:" in r.stderr or "cannot open" in r.stderr:
        raise Skipped(r.stderr)
    check_equal(r.status, CONFIG, f"status: {r.told()}")
    for word in ("'in.pcap' cannot be read: Permission denied", "'ours/': Permission denied"):
        check(word in r.stderr, f"no '{word}' in {r.stderr}")


@case
def a_file_that_is_written_belongs_to_one_queue(s):
    given = fr.make(50, seed=2)
    s.pcap("in.pcap", given)
    os.symlink("in.pcap", s.path / "alias.pcap")
    refused(s, through(tx="in.pcap"), ["tx_pcap 'in.pcap' is also rx_pcap 'in.pcap'"])
    refused(s, through(tx="alias.pcap"), ["tx_pcap 'alias.pcap' is also rx_pcap"])
    check_equal(s.frames("in.pcap"), given, "the input")
    two = config(
        {n: f"net_pcap{n[1]},rx_pcap=in.pcap,tx_pcap={t}" for n, t in (("p0", "o"), ("p1", "./o"))},
        [lane("l0", "p0", "p0"), lane("l1", "p1", "p1")],
    )
    refused(s, two, ["tx_pcap './o' is also tx_pcap 'o'"])


@case
def what_nobody_keeps_may_go_to_dev_null(s):
    s.pcap("in.pcap", fr.make(100, seed=3))
    r = s.run_idle(through(tx="/dev/null"))
    check_equal(r.lane()["tx_packets"], 100, "tx_packets")


@case
def a_full_disk_is_told_with_the_frames_that_it_holds(s):
    if os.geteuid() != 0:
        raise Skipped("only root can mount a small disk")
    disk = s.path / "disk"
    disk.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", disk], check=False)
    if made.returncode != 0:
        raise Skipped("no tmpfs can be mounted")
    try:
        given = fr.plain(1000, seed=4)
        s.pcap("in.pcap", given)
        r = s.run(through(tx="disk/out.pcap"), "--idle-exit", str(0.5 * PATIENCE), status=FAILURE)
        raw = (disk / "out.pcap").read_bytes()
    finally:
        subprocess.run(["umount", disk], check=True)
    whole = whole_frames(raw)
    check(0 < whole < len(given), f"{whole} frames fitted")
    ends_with_sentence(s, r, [
        "port 'p0'", "tx_pcap 'disk/out.pcap'", f"the first {whole} of the {len(given)} frames",
        "disk full"])  # fmt: skip


@case
def a_limit_of_file_sizes_is_told_like_a_full_disk(s):
    # What the software device and EAL keep in files fits below the limit, the capture does not.
    given = [bytes(14) + bytes([i % 251]) * 1400 for i in range(12000)]
    s.pcap("in.pcap", given)
    small = {"rx_ring": 64, "tx_ring": 64, "device": "net_pcap0,rx_pcap=in.pcap,tx_pcap=out.pcap"}
    cfg = config(
        {"p0": small},
        [lane("l0", "p0", "p0", slots=2, batch={"packets": 8})],
        "sim,mem=4MiB",
        "2MiB",
    )
    r = s.start(cfg, "--idle-exit", str(0.5 * PATIENCE),
        prefix=["bash", "-c", 'ulimit -f 12000; exec "$@"', "sh"]).wait(FAILURE)  # fmt: skip
    ends_with_sentence(s, r, ["tx_pcap 'out.pcap'", f"of the {len(given)} frames"])


@case
def a_file_that_was_moved_while_it_was_written_is_still_judged(s):
    s.pcap("in.pcap", fr.make(300, seed=5))
    run = s.start(through(), "--idle-exit", str(3 * PATIENCE)).until_running()
    os.rename(s.path / "out.pcap", s.path / "moved.pcap")
    run.wait(CLEAN, "idle")
    run = s.start(through(tx="gone.pcap"), "--idle-exit", str(3 * PATIENCE)).until_running()
    os.unlink(s.path / "gone.pcap")
    run.wait(CLEAN, "idle")


def blocks(frames, order="<"):
    """The same frames as a pcapng file."""
    out = struct.pack(order + "IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)
    out += struct.pack(order + "IIHHII", 1, 20, 1, 0, 262144, 20)
    for data in frames:
        size = 32 + (len(data) + 3) // 4 * 4
        out += struct.pack(order + "IIIIIII", 6, size, 0, 0, 0, len(data), len(data))
        out += data.ljust(size - 32, b"\0") + struct.pack(order + "I", size)
    return out


@case
def a_damaged_capture_is_told_with_the_packet_where_it_is(s):
    given = fr.plain(40, seed=6)
    s.pcap("whole.pcap", given)
    whole = (s.path / "whole.pcap").read_bytes()
    at = len(whole) - 16 - len(given[-1])  # of the last record
    swapped_order = struct.pack(">IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    for data in given:
        swapped_order += struct.pack(">IIII", 0, 0, len(data), len(data)) + data
    ng = blocks(given)
    ng_swapped = blocks(given, ">")
    wrong = whole[:at] + struct.pack("<IIII", 0, 0, 1 << 30, 60) + whole[at + 16 :]
    cuts = {
        "data": whole[:-1],
        "header": whole[: at + 7],
        "wrong": wrong,
        "order": swapped_order[:-3],
        "ng": ng[:-5],
        "ngorder": ng_swapped[:-5],
        "nghead": ng[: -32 - (len(given[-1]) + 3) // 4 * 4 + 6],
    }
    for name, raw in cuts.items():
        (s.path / name).write_bytes(raw)
        r = s.run(through(rx=name), "--idle-exit", str(0.5 * PATIENCE), status=FAILURE)
        ends_with_sentence(s, r, ["port 'p0'", f"rx_pcap '{name}'", f"packet {len(given)} "])
        check_frames(
            s.frames("out.pcap")[: len(given) - 1],
            [swapped(f) for f in given[:-1]],
            f"output of {name}",
        )
    for name, raw in (("whole", whole), ("order", swapped_order), ("ng", ng), ("no", ng_swapped)):
        pathlib.Path(s.path / name).write_bytes(raw)
        r = s.run_idle(through(rx=name))
        check_equal(complaints(r.stderr), [], f"sentences with {name}")
        check_frames(s.frames("out.pcap"), [swapped(f) for f in given], f"output of {name}")


sys.exit(main())
