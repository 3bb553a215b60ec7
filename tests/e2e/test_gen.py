#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The generator and its sink: over loops in memory, into files, and between namespaces.

    gen ── g0 ══ p0 [ tcpdump, a peer that does what it is told, or millrace ]

A peer on a packet socket sends back what comes, and loses, doubles, holds back and changes
frames by their number, so that what the sink must count is known exactly.

usage: test_gen.py MILLRACE [-k WORD]. The cases over veth pairs need root.
"""
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

from harness import (
    CLEAN, CONFIG, FAILURE, PATIENCE, PORT, USAGE, Instance, Skipped, alone, case, check, check_equal,
    config, lane, main, until, validate, whole_frames,
)  # fmt: skip
from namespaces import Namespace

ETH_P_ALL, SOL_PACKET, PACKET_IGNORE_OUTGOING = 0x0003, 263, 23
SO_RCVBUFFORCE = 33
AT = 42  # of the stamp, in a frame without a tag
LOOP = {"loop": "net_ring0"}


def gen(ports, send, receive=None, frames=None, **keys):
    """send: its port, then keys of send; receive: port or None."""
    send.setdefault("calibrate_ms", 0)
    cfg = {
        "eal": {"hugepages": "off"},
        "ports": [{"name": n, "device": d} for n, d in ports.items()],
        "send": send,
    }
    if receive is not None:
        receive = {"port": receive} if isinstance(receive, str) else receive
        cfg["receive"] = {"wait_ms": int(300 * PATIENCE), **receive}
    if frames is not None:
        cfg["frames"] = frames
    cfg.update(keys)
    return cfg


def start(s, cfg, *args, prefix=()):
    s.names += 1
    name = f"gen-{os.getpid()}-{s.names}"
    path = s.write(f"{name}.yaml", cfg)
    return Instance(s, [*prefix, s.millrace, "gen", path, "--json", "--name", name, *args])


def conserved(report):
    """Counts again: nothing of what was sent is nowhere, in all and in every stream."""
    for t in report["trials"]:
        check_equal(t["sent"] + t["missed"], t["scheduled"], f"scheduled: {t}")
        got = t["receive"]
        if got is None:
            continue
        check_equal(got["received"] + got["lost"], t["sent"], f"sent: {t}")
        check_equal(got["latency_ns"]["count"], got["received"], f"latencies: {t}")
        for key in ("received", "lost", "duplicates", "reordered", "stale"):
            check_equal(sum(st[key] for st in got["streams"]), got[key], f"{key}: {t}")
        for st in got["streams"]:
            check_equal(st["received"] + st["lost"], st["sent"], f"stream: {st}")


def end(instance, status=CLEAN, reason="done"):
    r = instance.ended()
    check(status in (None, r.status), f"wanted status {status}, got {r.told()}")
    validate("gen.schema.json", r.stdout)
    r.report = json.loads(r.stdout)
    check_equal(r.report["exit_reason"], reason, f"exit_reason of {r.told()}")
    if "trials" in r.report:
        conserved(r.report)
    return r


def run(s, cfg, *args, status=CLEAN, **keys):
    return end(start(s, cfg, *args, **keys), status)


def faults(trial):
    """What is not on time, whole, single and in order."""
    got = trial["receive"] or {}
    keys = ("lost", "duplicates", "reordered", "corrupted", "stale", "stray", "foreign")
    return {k: got[k] for k in keys if got.get(k)} | (
        {"missed": trial["missed"]} if trial["missed"] else {}
    )


def judged_by_time():
    """A sanitizer build finds no more in it than in the other cases, and takes long."""
    if PATIENCE != 1:
        raise Skipped("for builds without a sanitizer")


def crc32c(data):
    """Bit by bit (RFC 3720, appendix B.4)."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def stamp(frame, at=AT):
    """CRC, stream, sequence and intended time."""
    crc, _, _, stream, sequence, high, low = struct.unpack_from("!IHBBIHI", frame, at)
    return crc, stream, sequence, high << 32 | low


@case
def a_loop_in_memory_gives_back_all_of_every_mix_of_sizes(s):
    for frames in (
        {"size": 64},
        {"sizes": "sweep", "size": 64, "size_end": 1518, "size_step": 1, "streams": 7},
        {"sizes": "imix", "vlan": 4094, "streams": 64},
    ):
        send = {"port": "loop", "rate_pps": 20000, "packets": 3000, "burst": 16}
        r = run(s, gen(LOOP, send, "loop", frames))
        (trial,) = r.report["trials"]
        check_equal(trial["sent"], 3000, f"sent: {r.told()}")
        check_equal(faults(trial), {}, f"faults: {r.told()}")


@case
def floor_and_ceiling_are_measured_and_said(s):
    judged_by_time()
    send = {"port": "loop", "duration_ms": 300, "calibrate_ms": 100}
    r = start(s, gen(LOOP, send, "loop")).ended()
    report = json.loads(r.stdout)
    check(report["floor"]["latency_ns"]["p50"] > 0, f"floor: {r.told()}")
    check_equal(report["floor"]["received"], report["floor"]["sent"], "of the floor")
    check(report["ceiling"]["pps"] > 1000, f"ceiling: {r.told()}")
    # Without a rate, four fifths of the ceiling.
    ratio = report["trials"][0]["rate_pps"] / report["ceiling"]["pps"]
    check(0.79 < ratio < 0.81, f"{ratio} of the ceiling")
    for words in ("floor of latency, a loop in memory at 10000 packets/s", "ceiling of this port"):
        check(words in r.stderr, f"not said: {words}\n{r.stderr}")


@case
def more_than_can_be_sent_is_missed_and_not_skipped(s):
    """Four thousand million packets a second are above any ceiling."""
    send = {"port": "null", "rate_pps": 4000000000, "duration_ms": 50}
    r = run(s, gen({"null": "net_null0"}, send), status=FAILURE)
    (trial,) = r.report["trials"]
    check_equal(trial["scheduled"], 200_000_000, "scheduled")
    check(trial["missed"] > 0 and trial["rate_reached"] is False, f"missed: {trial}")
    check(trial["receive"] is None, "nothing was to be received")


@case
def a_file_holds_frames_of_the_times_and_sizes_that_were_asked_for(s):
    send = {"port": "file", "rate_pps": 2000, "packets": 600, "burst": 3}
    frames = {"sizes": "sweep", "size": 64, "size_end": 128, "size_step": 16, "streams": 2}
    run(s, gen({"file": "net_pcap0,tx_pcap=out.pcap"}, send, None, frames))
    given = s.frames("out.pcap")
    check_equal(len(given), 600, "frames")
    for k, frame in enumerate(given):
        crc, stream, sequence, time_ns = stamp(frame)
        check_equal(len(frame), 60 + 16 * (k % 5), f"bytes of frame {k}")
        check_equal((stream, sequence), (k % 2, k // 2), f"number of frame {k}")
        check_equal(crc, crc32c(frame[AT + 4 :]), f"CRC of frame {k}")
        check(abs(time_ns - k // 3 * 3 * 500_000) <= 1, f"time of frame {k}: {time_ns}")
        check_equal(struct.unpack_from("!HH", frame, 34), (49152 + k % 2, 9), f"ports of {k}")
        words = sum(struct.unpack_from("!10H", frame, 14))
        check_equal((words & 0xFFFF) + (words >> 16), 0xFFFF, f"checksum of frame {k}")


@case
def what_others_send_is_foreign_and_crashes_nothing(s):
    """net_null receives frames of whatever its buffers held."""
    send = {"port": "null", "rate_pps": 1000, "packets": 50}
    r = run(s, gen({"null": "net_null0,size=1500"}, send, "null"), status=FAILURE)
    (trial,) = r.report["trials"]
    check_equal(trial["receive"]["lost"], 50, f"lost: {r.told()}")
    check(trial["receive"]["foreign"] > 100, f"foreign: {r.told()}")


@case
def a_stopped_generator_moves_no_time(s):
    """What a closed loop hides: the packets of the pause leave late, and their latency says so."""
    judged_by_time()
    send = {"port": "loop", "rate_pps": 2000, "duration_ms": 2000}
    instance = start(s, gen(LOOP, send, "loop")).until_running()
    time.sleep(0.8)
    instance.signal(signal.SIGSTOP)
    time.sleep(0.4)
    instance.signal(signal.SIGCONT)
    (trial,) = end(instance).report["trials"]
    check_equal(trial["sent"], 4000, f"sent: {trial}")
    check(trial["late"] >= 700, f"late: {trial}")
    p99, p50 = trial["receive"]["latency_ns"]["p99"], trial["receive"]["latency_ns"]["p50"]
    check(p99 > 300e6, f"p99 does not show the pause: {trial}")
    check(p50 < 200e6, f"p50 shows it, though four fifths were on time: {trial}")


@case
def a_signal_ends_a_trial_with_its_whole_report(s):
    send = {"port": "loop", "rate_pps": 1000, "duration_ms": 60000}
    for number in (signal.SIGINT, signal.SIGTERM):
        instance = start(s, gen(LOOP, send, "loop")).until_running()
        time.sleep(0.5)
        instance.signal(number)
        r = end(instance, reason="signal")
        (trial,) = r.report["trials"]
        check(trial["cut"] and 0 < trial["sent"] < 10000, f"trial: {r.told()}")
        check_equal(faults(trial), {}, "faults")


@case
def a_trial_that_is_cut_short_has_missed_what_was_due_by_then(s):
    send = {"port": "full", "rate_pps": 5000, "duration_ms": 60000}
    instance = start(s, gen({"full": "net_ring0"}, send)).until_running()
    time.sleep(2)
    instance.signal(signal.SIGINT)
    (trial,) = end(instance, FAILURE, "signal").report["trials"]
    check(trial["sent"] < 3000, f"a ring that nobody empties took more than it holds: {trial}")
    check(9000 <= trial["scheduled"] < 60000, f"scheduled in 2 s of 5000 a second: {trial}")
    check_equal(trial["missed"], trial["scheduled"] - trial["sent"], "missed")


@case
def mistakes_are_refused_with_their_line(s):
    cfg = gen(LOOP, {"port": "lop", "rate_pps": 0}, "loop", {"size": 63})
    path = s.write("bad.yaml", cfg)
    r = s.command("gen", path, "--json")
    check_equal(r.status, CONFIG, f"status: {r.told()}")
    validate("gen.schema.json", r.stdout)
    (error,) = json.loads(r.stdout)["errors"]
    check_equal(error["key"], "frames.size", "key")
    line = next(i for i, l in enumerate(path.read_text().splitlines(), 1) if '"size"' in l)
    check_equal(error["line"], line, "line")
    cfg["frames"]["size"] = 64
    r = s.command("gen", s.write("bad.yaml", cfg), "--json")
    keys = [e["key"] for e in json.loads(r.stdout)["errors"]]
    check_equal(keys, ["send.port", "send.rate_pps"], "keys")
    check("did you mean 'loop'?" in r.stderr, f"stderr: {r.stderr}")
    check_equal(s.command("gen").status, USAGE, "without a file")


@case
def a_name_runs_once(s):
    path = s.write("twice.yaml", gen(LOOP, {"port": "loop", "rate_pps": 10, "duration_ms": 60000}))
    first = Instance(s, [s.millrace, "gen", path, "--json"]).until_running()
    r = s.command("gen", path, "--json")
    check_equal(r.status, CONFIG, f"the second: {r.told()}")
    check("already running" in r.stderr, f"the second: {r.stderr}")
    first.signal()
    end(first, reason="signal")


class Line:
    """Two namespaces and the veth pair between them: g0 is the generator's, p0 the peer's."""

    def __init__(self):
        if os.geteuid() != 0:
            raise Skipped("namespaces need root")
        if shutil.which("ip") is None:
            raise Skipped("ip is not installed")
        try:
            self.gen, self.peer = Namespace("gen"), Namespace("peer")
            self.gen.ip("link", "add", "g0", "type", "veth", "peer", "name", "p0",
                "netns", self.peer.name)  # fmt: skip
            self.gen.ip("link", "set", "g0", "up")
            self.peer.ip("link", "set", "p0", "up")
        except Exception as why:
            if "ermitted" in str(why) or "not supported" in str(why):
                raise Skipped(f"no namespaces or veth pairs here: {why}") from why
            raise

    def start(self, s, cfg):
        return start(s, cfg, prefix=self.gen.argv())

    def run(self, s, cfg, status=CLEAN):
        return end(self.start(s, cfg), status)


PORTS = {"g": "kernel:g0"}
# The ring of kernel: holds few frames, on a busy machine too few for counts that must be exact.
EXACT = {"g": "net_af_packet0,iface=g0,framecnt=4096"}
MIRROR = "net_af_packet0,iface=p0,blocksz=12288,framesz=1536,framecnt=4096"  # what fits a lane's buffer


class Peer(threading.Thread):
    """Sends back on p0 what act(frame) makes of each frame: a list."""

    def __init__(self, line, act):
        super().__init__(daemon=True)
        self.act, self.ended, self.came = act, False, 0
        self.socket = line.peer.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 26)
        self.socket.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        self.socket.bind(("p0", ETH_P_ALL))
        self.socket.settimeout(0.1)
        self.start()

    def run(self):
        while not self.ended:
            try:
                frame = self.socket.recv(65536)
            except TimeoutError:
                continue
            if frame[34:38] == struct.pack("!HH", 49152, 9):
                self.came += 1
                for back in self.act(frame):
                    self.socket.send(back)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ended = True
        self.join()
        self.socket.close()


@case
def a_kernel_peer_counts_what_was_sent(s):
    judged_by_time()
    if shutil.which("tcpdump") is None:
        raise Skipped("tcpdump is not installed")
    line = Line()
    argv = ["tcpdump", "-i", "p0", "-w", str(s.path / "seen.pcap"), "-B", "65536", "-Z", "root",
        "-U", "udp dst port 9"]  # fmt: skip
    with subprocess.Popen(line.peer.argv(*argv), stderr=subprocess.PIPE, text=True) as dump:
        try:
            check("listening on" in dump.stderr.readline(), "tcpdump does not listen")
            send = {"port": "g", "rate_pps": 4000, "packets": 4000, "calibrate_ms": 100}
            features = line.gen.run("ethtool", "-k", "g0")
            r = line.run(s, gen(PORTS, send, None, {"sizes": "imix"}))
            (trial,) = r.report["trials"]
            sent = trial["sent"] + r.report["ceiling"]["sent"]
            # It gets a block of frames once that is full or a second old.
            until(lambda: whole_frames((s.path / "seen.pcap").read_bytes()) >= sent, "tcpdump does not see all")
            dump.send_signal(signal.SIGINT)
            told = dump.communicate(timeout=30)[1]
        finally:
            dump.kill()
    numbers = {k: int(n) for n, k in re.findall(r"(\d+) packets? (captured|dropped by kernel)", told)}
    check_equal(trial["sent"], 4000, f"sent: {r.told()}")
    check_equal(numbers["dropped by kernel"], 0, f"tcpdump lost some: {told}")
    check_equal(numbers["captured"], sent, f"tcpdump: {told}\n{r.told()}")
    seen = s.frames("seen.pcap")
    check_equal(len(seen), sent, "frames in the capture")
    check_equal([stamp(f)[2] for f in seen[-4000:]], list(range(4000)), "their numbers")
    check_equal(line.gen.run("ethtool", "-k", "g0"), features, "offloads after the run")


@case
def faults_of_the_network_are_counted_exactly(s):
    line = Line()
    held = []

    def act(frame):
        number = stamp(frame)[2]
        if number % 10 == 1:
            return []
        if number % 10 == 2:
            return [frame, frame]
        if number % 10 == 3:
            at = AT + number % 18
            return [frame[:at] + bytes([frame[at] ^ 1 << number % 8]) + frame[at + 1 :]]
        if number % 10 == 4:
            held.append(frame)
            return []
        if number % 10 == 7:
            return [frame, held.pop()]
        if number % 10 == 8:
            return [frame, b"\xff" * 60, frame[:50], frame[:30] + b"\x01" + frame[31:]]
        return [frame]

    with Peer(line, act) as peer:
        send = {"port": "g", "rate_pps": 1000, "packets": 1000}
        r = line.run(s, gen(EXACT, send, "g", {"size": 128}), status=FAILURE)
    (trial,) = r.report["trials"]
    check_equal(peer.came, 1000, f"reached the peer: {r.told()}")
    got = faults(trial)
    # Of ten, one is lost and one corrupted, which loses its number too; of those at 8 a
    # copy that was cut short is corrupted, and one with another address is a duplicate.
    wanted = {"lost": 200, "duplicates": 200, "reordered": 100, "corrupted": 200, "foreign": 100}
    check_equal(got, wanted, f"faults: {r.told()}")


def mirror(s, line, device):
    """millrace on p0, which sends back what comes with its addresses swapped."""
    cfg = config({"p": device}, [lane("l0", "p", "p", ["l2swap"])])
    cfg["kernel"] = {"host_timeout_ms": 0}
    return s.start(cfg, prefix=line.peer.argv()).until_running()


@case
def millrace_gives_back_all_that_the_generator_sends(s):
    judged_by_time()
    line = Line()
    forwarder = mirror(s, line, MIRROR)
    send = {"port": "g", "rate_pps": int(1000 / PATIENCE), "packets": 2000}
    r = line.run(s, gen(EXACT, send, "g", {"sizes": "sweep", "size_end": 1400, "streams": 4}))
    check_equal(faults(r.report["trials"][0]), {}, f"faults: {r.told()}")
    forwarder.signal()
    ln = forwarder.wait(reason="signal").lane()
    check_equal((ln["rx_packets"], ln["tx_packets"]), (2000, 2000), "what millrace counted")


@case
def what_kernel_ports_lose_is_among_what_they_missed(s):
    """Tagged frames, since net_af_packet would take their tags."""
    judged_by_time()
    line = Line()
    forwarder = mirror(s, line, "kernel:p0")
    send = {"port": "g", "rate_pps": int(200 / PATIENCE), "packets": 300}
    r = end(line.start(s, gen(PORTS, send, "g", {"sizes": "imix", "vlan": 9})), status=None)
    forwarder.signal()
    port = forwarder.wait(reason="signal").report["ports"][0]
    (trial,) = r.report["trials"]
    got = faults(trial)
    lost = got.pop("lost", 0)
    check_equal(got, {}, f"faults: {r.told()}")
    check_equal(r.status, FAILURE if lost else CLEAN, f"status: {r.told()}")
    missed = trial["receive"]["rx_missed"] + port["rx_missed"] + port["rx_nombuf"]
    check(lost <= missed, f"{lost} lost, {missed} missed: {r.told()}")
    check(lost <= 200, f"too few came back: {r.told()}")


@case
def a_forwarder_that_pauses_shows_in_the_percentiles(s):
    judged_by_time()
    line = Line()
    forwarder = mirror(s, line, MIRROR)
    send = {"port": "g", "rate_pps": 1000, "duration_ms": 2000}
    instance = line.start(s, gen(EXACT, send, "g")).until_running()
    time.sleep(0.8)
    forwarder.signal(signal.SIGSTOP)
    time.sleep(0.2)
    forwarder.signal(signal.SIGCONT)
    (trial,) = end(instance).report["trials"]
    forwarder.signal()
    forwarder.wait(reason="signal")
    latency = trial["receive"]["latency_ns"]
    check_equal((trial["sent"], faults(trial)), (2000, {}), f"sent: {trial}")
    # A tenth of the packets met the pause, half of them for longer than a tenth of a second.
    check(latency["p99"] > 150e6, f"p99 does not show the pause: {trial}")
    check(latency["max"] > 180e6, f"max does not show the pause: {trial}")
    check(latency["p50"] < 100e6, f"p50 shows it: {trial}")


@case
@alone
def searches_find_the_rates_where_loss_begins_and_where_it_is_too_much(s):
    """The peer loses by the times in the frames: one of 50 above 700 a second, half above 1300."""
    line = Line()
    last = [0]

    def act(frame):
        _, _, number, time_ns = stamp(frame)
        gap, last[0] = time_ns - last[0], time_ns
        if number == 0:
            return [frame]
        if (gap < 1e9 / 1300 and number % 2) or (gap < 1e9 / 700 and number % 50 == 7):
            return []
        return [frame]

    for search, capacity in (("zero-loss", 700), ("partial-loss", 1300)):
        with Peer(line, act):
            send = {"port": "g", "rate_pps": 2000, "duration_ms": 250}
            find = {"search": search, "loss_ppm": 40000, "resolution_ppm": 40000}
            receive = {"port": "g", "wait_ms": int(500 * PATIENCE)}
            r = line.run(s, gen(EXACT, send, receive, find=find))
        found = r.report["found"]
        check(capacity - 80 <= found["rate_pps"] <= capacity, f"{search}: {r.told()}")
        check_equal(found["limited_by"], "loss", search)
        check_equal(r.report["trials"][found["trial"]]["passed"], True, search)
        check(f"{search} throughput: " in r.stderr, f"said: {r.stderr}")


@case
def a_search_over_a_loop_is_limited_by_the_rate_and_one_without_return_finds_none(s):
    find = {"search": "zero-loss", "resolution_ppm": 200000}
    send = {"port": "loop", "rate_pps": 500, "duration_ms": 100}
    r = run(s, gen(LOOP, send, "loop", find=find))
    check_equal(r.report["found"]["limited_by"], "rate", f"found: {r.told()}")
    ports = {"out": "net_ring0", "in": "net_ring1"}
    send = {"port": "out", "rate_pps": 500, "duration_ms": 100}
    r = run(s, gen(ports, send, {"port": "in", "wait_ms": 50}, find=find), status=FAILURE)
    check_equal(r.report["found"]["trial"], None, f"found: {r.told()}")
    check("no rate holds" in r.stderr, f"said: {r.stderr}")


@case
def an_interface_that_goes_away_is_a_lost_port(s):
    line = Line()
    send = {"port": "g", "rate_pps": 100, "duration_ms": 60000}
    instance = line.start(s, gen(PORTS, send, "g")).until_running()
    time.sleep(0.5)
    line.gen.ip("link", "del", "g0")
    r = end(instance, PORT, "port_lost")
    check("was removed" in r.stderr, f"said: {r.stderr}")


# Namespaces are to go when the test is ended from outside, too.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
sys.exit(main())
