#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""kernel: ports: frames cross two namespaces through Millrace and none is lost unnamed.

    src ── in0 [ millrace, in a namespace of its own ] out0 ── dst

Each line is a veth pair, so nothing of the machine is touched. What the kernel and Millrace
count is compared at every step of the way (Net.judge_way), so a machine that is too busy to
carry all frames loses them in a counter, and the test still holds. Frames on the far side
are taken from a packet socket here, with the VLAN tag that the kernel took out put back
(packet(7), PACKET_AUXDATA), and compared byte for byte by the number that each carries.

usage: test_veth.py MILLRACE [-k WORD]. Root only; needs tcpreplay, ethtool and ping.
"""
import json
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

from harness import (
    CLEAN, FAILURE, PATIENCE, PORT, Skipped, case, check, check_equal, complaints, config, fewer,
    lane, main, sees_threads,
)  # fmt: skip
from namespaces import Namespace, out, ping

# linux/if_packet.h, linux/if_ether.h, asm-generic/socket.h, linux/udp.h
ETH_P_ALL, SOL_PACKET = 0x0003, 263
PACKET_STATISTICS, PACKET_AUXDATA, PACKET_IGNORE_OUTGOING = 6, 8, 23
TP_STATUS_VLAN_VALID, TP_STATUS_VLAN_TPID_VALID = 1 << 4, 1 << 6
SO_RCVBUFFORCE = 33
UDP_SEGMENT = 103

COUNT = 100_000
RATE = 10_000  # frames a second: little enough for a lane that shares two CPUs with all else
MARK = b"millrace"

OFFLOADS = (
    "tx-checksumming", "tcp-segmentation-offload", "generic-segmentation-offload",
    "generic-receive-offload", "large-receive-offload",
)  # fmt: skip


class Capture(threading.Thread):
    """Keeps all frames that an interface receives; `dropped` are those the kernel could not."""

    def __init__(self, namespace, interface):
        super().__init__(daemon=True)
        self.frames = []
        self.dropped = 0
        self.ended = False
        self.socket = namespace.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 30)
        self.socket.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        self.socket.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        self.socket.bind((interface, ETH_P_ALL))
        self.socket.settimeout(0.2)
        self.start()

    def run(self):
        room = socket.CMSG_SPACE(20)
        while not self.ended:
            try:
                data, ancillary, flags, _ = self.socket.recvmsg(65536, room)
            except TimeoutError:
                continue
            except OSError:  # the case failed, and its namespaces are gone
                return
            tag = b""
            for level, kind, value in ancillary:
                if (level, kind) != (SOL_PACKET, PACKET_AUXDATA):
                    continue
                status, tci, tpid = struct.unpack("I12xHH", value)
                if status & TP_STATUS_VLAN_VALID:
                    known = status & TP_STATUS_VLAN_TPID_VALID
                    tag = struct.pack("!HH", tpid if known else 0x8100, tci)
            self.frames.append(data[:12] + tag + data[12:])

    def count(self):
        """Of all that the interface has received; the kernel tells what it dropped once."""
        told = self.socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8)
        self.dropped += struct.unpack("II", told)[1]
        return len(self.frames) + self.dropped

    def end(self):
        self.ended = True
        self.join()
        self.count()
        self.socket.close()


class Net:
    """The three namespaces with their interfaces; they end with the program."""

    def __init__(self, s, mtu=1500):
        if os.geteuid() != 0:
            raise Skipped("namespaces need root")
        for tool in ("ip", "tcpreplay", "ethtool", "ping", "setpriv"):
            if shutil.which(tool) is None:
                raise Skipped(f"{tool} is not installed")
        self.s = s
        try:
            self.src, self.mill, self.dst = (Namespace(n) for n in ("src", "mill", "dst"))
            for near, far in (("in0", self.src), ("out0", self.dst)):
                self.mill.ip("link", "add", near, "mtu", str(mtu), "type", "veth",
                    "peer", "name", "p0", "mtu", str(mtu), "netns", far.name)  # fmt: skip
                self.mill.ip("link", "set", near, "up")
                far.ip("link", "set", "p0", "up")
        except Exception as why:
            if "ermitted" in str(why) or "not supported" in str(why):
                raise Skipped(f"no namespaces or veth pairs here: {why}") from why
            raise

    def config(self, *, both=False, mtu=1500, device="sim", stages=("forward",), **keys):
        ports = {n: {"device": f"kernel:{n}0", "mtu": mtu} for n in ("in", "out")}
        lanes = [lane("l0", "in", "out", stages, **keys)]
        if both:
            lanes.append(lane("back", "out", "in", stages, **keys))
        return config(ports, lanes, device)

    def start(self, cfg, *args, prefix=()):
        return self.s.start(cfg, *args, prefix=self.mill.argv(*prefix))

    def features(self):
        return {i: self.mill.run("ethtool", "-k", i) for i in ("in0", "out0")}

    def replay(self, frames, rate):
        self.s.pcap("given.pcap", frames)
        path = str(self.s.path / "given.pcap")
        self.src.run("tcpreplay", "-q", "-i", "p0", f"--pps={rate}", path)

    def stats(self, run):
        """The lane and the ports by name, as they are now."""
        r = self.s.command("stats", "--name", run.name, "--json")
        check_equal(r.status, CLEAN, f"status of stats: {r.told()}")
        report = json.loads(r.stdout)
        return report["lanes"][0], {p["name"]: p for p in report["ports"]}

    def settled(self, run, capture):
        """Returns once all that reached in0 is accounted for and all that left out0 is captured,
        or nothing of that has changed for a while."""
        seen, since = None, time.monotonic()
        while time.monotonic() < since + 2 * PATIENCE**0.5:
            ln, ports = self.stats(run)
            taken = ln["rx_packets"] + ports["in"]["rx_missed"] + ports["in"]["rx_nombuf"]
            now = (self.mill.counter("in0", "rx_packets"), taken, ln["in_flight"],
                   self.mill.counter("out0", "tx_packets"), capture.count())  # fmt: skip
            if now[0] == now[1] and now[2] == 0 and now[3] == now[4]:
                return
            if now != seen:
                seen, since = now, time.monotonic()
            time.sleep(0.1)

    def until_link(self, run, port, state):
        end = time.monotonic() + 5 * PATIENCE
        while self.stats(run)[1][port]["link"] != state:
            check(time.monotonic() < end, f"the link of {port} is not told to be {state}")
            time.sleep(0.1)

    def judge_way(self, r, capture, given):
        """From the sender to the far side: what is not there is in a counter."""
        port = {p["name"]: p for p in r.report["ports"]}["in"]
        ln = r.lane()
        came = self.mill.counter("in0", "rx_packets")
        unsent = self.src.counter("p0", "tx_dropped")
        left = self.mill.counter("out0", "tx_packets")
        unheard = self.mill.counter("out0", "tx_dropped")
        told = (
            f"{len(given)} given, {unsent} lost in the sender's veth, {came} reached in0, "
            f"{ln['rx_packets']} received, port {port}, {ln['tx_packets']} sent, "
            f"drops {r.drops()}, {left} left out0, {unheard} lost there, "
            f"{len(capture.frames)} captured, {capture.dropped} not captured"
        )
        print(f"     {told}", flush=True)
        check(port["rx_missed"] is not None, "net_pcap counts what it misses")
        lost = port["rx_missed"] + port["rx_nombuf"]
        check_equal(came + unsent, len(given), f"before the port: {told}")
        check_equal(ln["rx_packets"] + lost, came, f"at the port: {told}")
        check_equal(ln["tx_packets"] + sum(r.drops().values()), ln["rx_packets"], f"lane: {told}")
        check_equal(left + unheard, ln["tx_packets"], f"behind the port: {told}")
        check_equal(len(capture.frames) + capture.dropped, left, f"far side: {told}")
        return told


def numbered(count, seed, high):
    """count frames of 60 to `high` bytes (4 more with a VLAN tag), each with its number."""
    rng = random.Random(seed)
    filler = rng.randbytes(1 << 16)
    frames = []
    for i in range(count):
        size = rng.randrange(60, high + 1)
        head = b"\x02" + rng.randbytes(5) + b"\x02" + rng.randbytes(5)
        kind = i % 8
        if kind in (0, 1):  # a VLAN tag may exceed the MTU by its own four bytes
            head += struct.pack("!HH", 0x8100, rng.randrange(1, 4095) | rng.randrange(8) << 13)
            size = high + 4 if i % 64 == 0 else size
        elif kind == 2:
            head += struct.pack("!HHHH", 0x88A8, rng.randrange(1, 4095), 0x8100, i % 4095)
        elif kind == 3:
            head += struct.pack("!HHHH", 0x8100, rng.randrange(1, 4095), 0x8100, i % 4095)
        head += (b"\x88\xb5", b"\x08\x00", b"\x86\xdd")[i % 3]
        head += MARK + struct.pack("!I", i)
        at = rng.randrange(1 << 15)
        frames.append(head + filler[at : at + size - len(head)])
    frames[0] = frames[0][:60]
    frames[4] = (frames[4] + filler)[:high]
    return frames


def number_of(frame):
    at = frame.find(MARK, 12, 40)
    check(at > 0, f"a frame that was never sent: {frame[:64].hex()}")
    return struct.unpack_from("!I", frame, at + len(MARK))[0]


def judge_frames(capture, given):
    """Every captured frame is one that was given, to the byte, in the order given."""
    last = -1
    for frame in capture.frames:
        number = number_of(frame)
        check(number > last, f"frame {number} arrived after frame {last}")
        check(
            frame == given[number],
            f"frame {number} differs: {len(frame)} for {len(given[number])} bytes, "
            f"{frame[:40].hex()} for {given[number][:40].hex()}",
        )
        last = number


def carry(s, count, rate, *, mtu=1500, enough, **keys):
    net = Net(s, mtu)
    given = numbered(count, seed=mtu, high=mtu + 14)
    run = net.start(net.config(mtu=mtu, **keys)).until_running()
    capture = Capture(net.dst, "p0")
    net.replay(given, rate)
    net.settled(run, capture)
    run.signal(signal.SIGTERM)
    r = run.wait(reason="signal")
    capture.end()
    told = net.judge_way(r, capture, given)
    judge_frames(capture, given)
    check_equal(r.drops(), {}, f"drops: {told}")
    # A machine may be slow, but a test that sees next to nothing proves next to nothing.
    check(len(capture.frames) >= enough * count, f"too few arrived: {told}")
    tags = [f[12:14] for f in capture.frames]
    for tag in (b"\x81\x00", b"\x88\xa8"):
        share = tags.count(tag) / len(tags)
        check(share > 0.05, f"only {share:.3f} of the frames have the tag {tag.hex()}")
    check(max(map(len, capture.frames)) == mtu + 18, "no frame of full size with a tag arrived")
    return r


@case
def a_hundred_thousand_frames_arrive_whole_and_in_order_or_are_named(s):
    carry(s, fewer(COUNT, "frames"), int(RATE / PATIENCE), enough=0.5)


@case
def jumbo_frames_of_9000_bytes_arrive_whole_and_in_order_or_are_named(s):
    count = fewer(5000, "frames")
    carry(s, count, int(1000 / PATIENCE), mtu=9000, slots=16, path="pinned", enough=0.5)


@case
def more_than_the_lane_can_take_is_counted_by_the_port_as_missed(s):
    net = Net(s)
    given = numbered(20_000, seed=3, high=1514)
    # A stopped process is silent for as long as the sender takes.
    cfg = dict(net.config(), kernel={"host_timeout_ms": 0})
    run = net.start(cfg).until_running()
    capture = Capture(net.dst, "p0")
    run.signal(signal.SIGSTOP)  # the kernel's ring runs over
    net.replay(given[:10_000], 20_000)
    run.signal(signal.SIGCONT)
    time.sleep(0.5)
    net.replay(given[10_000:], int(5000 / PATIENCE))
    net.settled(run, capture)
    run.signal(signal.SIGTERM)
    r = run.wait(reason="signal")
    capture.end()
    told = net.judge_way(r, capture, given)
    judge_frames(capture, given)
    check(r.report["ports"][0]["rx_missed"] > 1000, f"nothing was missed: {told}")
    check(len(capture.frames) > 1000, f"did not go on after that: {told}")


@case
def ping_passes_both_ways_up_to_the_mtu_and_only_what_a_port_missed_is_lost(s):
    sizes = (16, 56, 1000, 1472)
    for device in ("sim",) if sees_threads(s.millrace) else ("sim", "sim,guard=mprotect"):
        net = Net(s)
        net.src.ip("addr", "add", "10.9.0.1/24", "dev", "p0")
        net.dst.ip("addr", "add", "10.9.0.2/24", "dev", "p0")
        run = net.start(net.config(both=True, device=device)).until_running()
        came = [ping(net.src.argv(), "10.9.0.2", size, 50) for size in sizes]
        run.signal(signal.SIGTERM)
        r = run.wait(reason="signal")
        missed = {p["name"]: p["rx_missed"] for p in r.report["ports"]}
        told = f"{device}: of 50 echoes each {came} came back, ports missed {missed}"
        print(f"     {told}", flush=True)
        check(min(came) > 0, told)
        check(200 - sum(came) <= sum(missed.values()), told)
        requests, replies = r.lane("l0"), r.lane("back")
        for ln, sent, port in ((requests, 200, "in"), (replies, 200 - missed["in"], "out")):
            # ARP adds a few; a frame that came back in after it was sent would double it.
            low, high = sent - missed[port], sent + 30
            check(low <= ln["rx_packets"] <= high, f"{told}: {ln['name']} {ln['rx_packets']}")
            check_equal(ln["tx_packets"], ln["rx_packets"], f"{told}: tx_packets of {ln['name']}")
            check_equal(r.drops(ln["name"]), {}, f"{told}: drops of {ln['name']}")
            if "mprotect" in device:
                guard = (ln["guard"], ln["guard_by"])
                check_equal(guard, ("on(software-dma)", "mprotect"), "guard")


@case
def frames_that_the_sender_left_uncut_are_dropped_by_name(s):
    net = Net(s)
    net.src.ip("addr", "add", "10.9.0.1/24", "dev", "p0")
    net.src.ip("neigh", "add", "10.9.0.2", "lladdr", "02:00:00:00:00:02", "dev", "p0")
    run = net.start(net.config()).until_running()
    capture = Capture(net.dst, "p0")
    uncut = net.src.socket(socket.AF_INET, socket.SOCK_DGRAM)
    uncut.setsockopt(socket.SOL_UDP, UDP_SEGMENT, 1400)
    for pieces in (2, 12, 40):
        uncut.sendto(bytes(1400 * pieces), ("10.9.0.2", 9))
    uncut.sendto(bytes(1400), ("10.9.0.2", 9))
    uncut.close()
    net.settled(run, capture)
    run.signal(signal.SIGTERM)
    r = run.wait(reason="signal")
    capture.end()
    if r.lane()["rx_packets"] > 4:
        raise Skipped("this kernel's veth cuts what it is given")
    check_equal(r.drops(), {"rx_drop_oversize": 3}, "drops")
    check_equal([len(f) for f in capture.frames], [1442], "frames on the far side")


def refuse(net, cfg, words, prefix=()):
    """The run does not come up, says why in one sentence, and leaves all as it was."""
    before = net.features()
    r = net.start(cfg, "--duration", "1", prefix=prefix).wait(status=FAILURE, reason="error")
    for word in words:
        check(word in r.report["errors"][0]["message"], f"no '{word}': {r.report['errors']}")
    check_equal(len(complaints(r.stderr)), 1, f"sentences: {r.stderr}")
    check_equal(net.features(), before, "offloads after a failed start")
    return r


@case
def an_interface_mtu_above_the_configured_mtu_is_refused(s):
    net = Net(s)
    net.mill.ip("link", "set", "out0", "mtu", "1501")
    refuse(net, net.config(), ("'out0'", "MTU 1501", "mtu is 1500"))
    refuse(net, net.config(mtu=1000), ("'in0'", "MTU 1500", "mtu is 1000"))


@case
def an_interface_that_is_down_or_missing_is_refused(s):
    net = Net(s)
    net.mill.ip("link", "set", "out0", "down")
    refuse(net, net.config(), ("'out0'", "is down", "ip link set out0 up"))
    cfg = net.config()
    cfg["ports"][1]["device"] = "kernel:out1"
    refuse(net, cfg, ("'out1'", "No such device", "ip link"))


@case
def a_link_that_goes_down_costs_named_packets_and_comes_back(s):
    for interface in ("out0", "in0"):
        net = Net(s)
        given = numbered(6000, seed=5, high=1514)
        run = net.start(net.config()).until_running()
        capture = Capture(net.dst, "p0")
        for part, state in ((given[:2000], "up"), (given[2000:4000], "down"), (given[4000:], "up")):
            net.mill.ip("link", "set", interface, state)
            net.until_link(run, interface[:-1], state)
            net.replay(part, int(4000 / PATIENCE))
            net.settled(run, capture)
        run.signal(signal.SIGTERM)
        r = run.wait(reason="signal")
        capture.end()
        told = net.judge_way(r, capture, given)
        judge_frames(capture, given)
        numbers = [number_of(f) for f in capture.frames]
        check(any(n >= 4000 for n in numbers), f"nothing arrived after the pause: {told}")
        if interface == "in0":
            continue
        # Until the lane hears of it, a packet waits as for any port that pauses.
        check(set(r.drops()) <= {"tx_drop_link", "tx_drop_stalled"}, f"drops: {told}")
        check(r.drops().get("tx_drop_link", 0) > 1000, f"drops: {told}")


@case
def an_interface_that_vanishes_ends_the_run_as_a_lost_port(s):
    net = Net(s)
    run = net.start(net.config()).until_running()
    net.mill.ip("link", "del", "out0")
    r = run.wait(status=PORT, reason="port_lost")
    check_equal(len(complaints(r.stderr)), 1, f"sentences: {r.stderr}")
    check("'out'" in complaints(r.stderr)[0], f"which port? {r.stderr}")


@case
def offloads_are_off_during_a_run_and_as_before_after_every_end(s):
    net = Net(s)
    # Not the defaults: what was off before must not come back on.
    net.mill.run("ethtool", "-K", "in0", "gro", "on")
    net.mill.run("ethtool", "-K", "in0", "tx-tcp-mangleid-segmentation", "off")
    net.mill.run("ethtool", "-K", "out0", "gso", "off")
    before = net.features()
    check(before["in0"] != before["out0"], "the interfaces do not differ")
    for on in OFFLOADS[:4]:
        check(f"{on}: on" in before["in0"], f"{on} is not on before: nothing to see")
    ends = (
        ("duration", lambda run: None, ("--duration", "5")),
        ("signal", lambda run: run.signal(signal.SIGTERM), ()),
        ("signal", lambda run: run.signal(signal.SIGINT), ()),
    )
    for reason, end, args in ends:
        run = net.start(net.config(both=True), *args).until_running()
        during = net.features()
        for interface, told in during.items():
            for off in OFFLOADS:
                check(f"\n{off}: off" in told, f"{off} of {interface} in a run: {told}")
        end(run)
        run.wait(reason=reason)
        check_equal(net.features(), before, f"offloads after {reason}")


@case
def without_the_right_to_raw_frames_there_is_one_sentence(s):
    net = Net(s)
    for missing in ("net_raw", "net_admin"):
        prefix = ("setpriv", f"--bounding-set=-{missing}", f"--inh-caps=-{missing}")
        refuse(net, net.config(), ("'in0'", "not permitted", f"CAP_{missing.upper()}"), prefix)
    os.chmod(s.path, 0o777)
    out("chown", "-R", "65534:65534", str(s.path / "run"))
    nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    if subprocess.run([*nobody, "test", "-x", s.millrace], check=False).returncode != 0:
        print("     the build folder is closed to nobody: not tried as nobody", flush=True)
        return
    refuse(net, net.config(), ("'in0'", "not permitted", "root"), nobody)


# Namespaces are to go when the test is ended from outside, too.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
sys.exit(main())
