#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""capture: copies of a lane's packets, before and behind the chain, judged by hand and by tshark.

A port reads the same frames over and over, so what is captured is a run of them from
anywhere on; the ring of a lane holds what is asked for, so that nothing of it is lost.
"""
import itertools
import json
import shutil
import signal
import struct
import subprocess
import time

import frames as fr
from harness import (
    CLEAN, FAILURE, USAGE, WAIT_S, Instance, Skipped, case, check, check_equal, check_frames, config, lane, main,
    swapped,
)  # fmt: skip

INTERFACE, STATISTICS, PACKET, SECTION = 1, 5, 6, 0x0A0D0D0A
PATHS = ("direct", "pinned", "staged")


def options(raw, at, end):
    """{code: [value]} of a block."""
    found = {}
    while at + 4 <= end:
        code, size = struct.unpack_from("<HH", raw, at)
        if code == 0:
            break
        found.setdefault(code, []).append(raw[at + 4 : at + 4 + size])
        at += 4 + (size + 3) // 4 * 4
    return found


class Packet:
    def __init__(self, raw, at, end):
        self.side, high, low, kept, self.length = struct.unpack_from("<IIIII", raw, at + 8)
        self.time_ns = high << 32 | low
        self.frame = raw[at + 28 : at + 28 + kept]
        self.options = options(raw, at + 28 + (kept + 3) // 4 * 4, end)
        self.comments = [c.decode() for c in self.options.get(1, [])]


class Pcapng:
    """The blocks of draft-ietf-opsawg-pcapng, taken apart byte by byte."""

    def __init__(self, raw):
        self.interfaces, self.packets, self.statistics = [], [], []
        at = 0
        while at < len(raw):
            check(at + 12 <= len(raw), f"a block is cut at {at} of {len(raw)} bytes")
            kind, size = struct.unpack_from("<II", raw, at)
            check(at + size <= len(raw), f"block {kind} at {at} is cut: {size} of {len(raw) - at}")
            check_equal(struct.unpack_from("<I", raw, at + size - 4)[0], size, "closing length")
            if kind == INTERFACE:
                self.interfaces.append(options(raw, at + 16, at + size - 4))
            elif kind == PACKET:
                self.packets.append(Packet(raw, at, at + size - 4))
            elif kind == STATISTICS:
                self.statistics.append(options(raw, at + 20, at + size - 4))
            else:
                check_equal((kind, at), (SECTION, 0), "a block and its place")
            at += size

    def side(self, which):
        return [p for p in self.packets if p.side == which]


def looped(stages, s, given, **keys):
    """A lane over a port that reads the frames again and again."""
    s.pcap("in.pcap", given)
    ports = {
        "p0": {"device": "net_pcap0,rx_pcap=in.pcap,infinite_rx=1", "mtu": 1500},
        "p1": {"device": "net_null0", "mtu": 1500},
    }
    return config(ports, [lane("l0", "p0", "p1", stages, **keys)])


def take(s, run, *args, out="c.pcapng", status=CLEAN):
    r = s.command("capture", "l0", "--name", run.name, "-w", out, *args)
    check_equal(r.status, status, r.told())
    return r, Pcapng((s.path / out).read_bytes()) if status == CLEAN else None


def end(run):
    run.signal()
    return run.wait(reason="signal")


def check_run(got, given, what):
    """The frames are given ones in their order, from any of them on, over and over."""
    check(len(got) > 0, f"{what}: nothing was captured")
    starts = [i for i, f in enumerate(given) if f == got[0]]
    check(starts, f"{what}: the first frame is none that was given")
    wanted = list(itertools.islice(itertools.cycle(given), starts[0], starts[0] + len(got)))
    check_frames(got, wanted, what)


@case
def what_is_captured_on_every_path_are_the_frames_before_and_behind_the_chain(s):
    given = fr.make(300, seed=31)
    for rx, tx in [(p, p) for p in PATHS] + [("pinned", "direct"), ("direct", "staged")]:
        by_side = {"rx_path": [rx], "tx_path": [tx]} if rx != tx else {}
        cfg = looped(["l2swap"], s, given, path=rx, **by_side)
        run = s.start(cfg).until_running()
        _, c = take(s, run, "-c", "400")
        check_equal(len(c.packets), 800, f"copies on {rx} to {tx}")
        before, after = c.side(0), c.side(1)
        check_run([p.frame for p in before], given, f"before, {rx} to {tx}")
        check_frames([p.frame for p in after], [swapped(p.frame) for p in before], f"after, {rx} to {tx}")
        check(all(p.comments[0] == "lane=l0 verdict=tx tx=0" for p in c.packets), "comments")
        times = [p.time_ns for p in before]
        check_equal(times, sorted(times), "times")
        end(run)


@case
def each_copy_has_so_many_bytes_its_verdict_and_the_counters_of_the_stages(s):
    given = fr.make(200, seed=32)
    udp = {"use": "match", "params": {"protocol": 17, "action": "drop"}}
    run = s.start(looped([udp, "l2swap"], s, given)).until_running()
    _, c = take(s, run, "-c", "300", "-s", "33")
    dropped = {p.frame for p in c.side(0) if p.comments[0] == "lane=l0 verdict=drop reason=policy"}
    sent = {p.frame for p in c.side(0) if p.comments[0] == "lane=l0 verdict=tx tx=0"}
    check(dropped and sent, "neither all are dropped nor all are sent")
    check_equal(len(c.side(0)), 300, "packets")
    check(all(len(p.frame) == min(33, p.length) for p in c.packets), "33 bytes of each")
    check(all(1514 >= p.length >= 60 for p in c.packets), "lengths of the frames")
    behind = [p.frame for p in c.side(1)]
    check_frames(behind, [swapped(p.frame) for p in c.side(0) if p.frame in sent], "what is sent")
    told = [p.comments[1] for p in c.packets if len(p.comments) > 1]
    check(told and told[0].startswith("stages: match.matched="), f"counters: {told}")
    for words, which in (("policy", dropped), ("drop", dropped), ("tx", sent)):
        _, some = take(s, run, "-c", "50", "-s", "33", "--verdict", words)
        check_equal(len(some.side(0)), 50, words)
        check({p.frame for p in some.side(0)} <= which, f"others among --verdict {words}")
        check_equal(len(some.side(1)), 0 if which is dropped else 50, f"sent with {words}")
    end(run)


# Each is true for some of frames.make's frames, and false for others.
EXPRESSIONS = """
ip | ip6 | arp | tcp | udp | icmp | icmp6 or ip6 | not ip | vlan | vlan and ip | port 53
udp port 53 | tcp dst port 53 | udp[0:2] > 30000 or tcp[0:2] > 30000 | portrange 40000-65535
host 192.0.2.1 | src host 192.0.2.1 | dst host 198.51.100.1 | net 192.0.2.0/24
dst net 198.51.100.0 mask 255.255.255.0 | ip6 host 2001:db8::1 | src net 2001:db8::/32
ip proto 17 | ip6 proto 6 | ether proto 0x88b5 | ether proto 0x88a8
less 300 | greater 800 | len <= 700 and len >= 400 | ether broadcast or ether[0] & 1 != 0
ether[6] > 127 | tcp[tcpflags] & tcp-push != 0 | tcp[13] == 2 or ip6[53] == 2
ip[8] == 64 | len - ((ip[0] & 0xf) << 2) > 500 | ether[0:4] % 3 == 1
ether[0] << 2 & 0xff > 100 or ether[1] / 7 * 3 > 40 | (ip or ip6) and not (tcp or udp)
ip[4:2] ^ 0x5555 > 0x7fff | arp[6:2] == 2 | len / 2 * 2 == len | llc
not (vlan or ip or ip6 or arp) | ether[100:4] & 0x80000000 != 0
"""


@case
def filters_choose_what_tcpdump_chooses_of_the_same_frames(s):
    given = fr.make(120, seed=33, high=900)
    run = s.start(looped([], s, given)).until_running()
    expressions = [e.strip() for e in EXPRESSIONS.replace("\n", "|").split("|") if e.strip()]
    check(len(expressions) >= 40, f"{len(expressions)} expressions")
    for e in expressions:
        r = subprocess.run(["tcpdump", "-r", "in.pcap", "-w", "chosen.pcap", e], cwd=s.path,
                           capture_output=True, text=True, check=False)
        check_equal(r.returncode, 0, f"tcpdump of '{e}': {r.stderr}")
        wanted = s.frames("chosen.pcap")
        check(0 < len(wanted) < len(given), f"'{e}' chooses {len(wanted)} of {len(given)}")
        _, c = take(s, run, "-c", str(2 * len(wanted)), "--filter", e)
        got = [p.frame for p in c.side(0)]
        check_equal(len(got), 2 * len(wanted), e)
        check_run(got, wanted, e)
    end(run)


@case
def a_full_ring_loses_copies_and_counts_them_and_loses_no_packet(s):
    cfg = config({"p0": "net_null0,size=64,copy=0"}, [lane("l0", "p0", "p0", ["forward"])])
    run = s.start(cfg).until_running()
    # Nobody reads: the client is stopped by what it writes to.
    slow = Instance(s, [s.millrace, "capture", "l0", "--name", run.name, "-w", "-"])

    def counters():
        return json.loads(s.command("stats", "--json", "--name", run.name).stdout)["lanes"][0]

    ln = wait_for(counters, lambda l: l["counters"]["capture_lost"] > 1000, "copies lost")
    sent = ln["tx_packets"]
    wait_for(counters, lambda l: l["tx_packets"] > sent + 1000000, "the lane goes on")
    slow.process.stdout.buffer.read(100000)
    slow.signal()
    rest = slow.process.stdout.buffer.read()
    slow.process.wait()
    check(b"lost" in slow.stderr().encode(), f"the client does not tell: {slow.stderr()}")
    told = int(slow.stderr().split(" lost")[0].rsplit(" ", 1)[1])
    check(told > 1000, f"lost: {slow.stderr()}")
    check(len(rest) > 0, "nothing came")
    end_lost = wait_for(counters, lambda l: True, "")["counters"]["capture_lost"]
    r = end(run)
    check_equal(r.lane()["counters"]["capture_lost"], end_lost, "lost after the capture ended")
    check_equal(r.drops(), {}, "drops")
    check_equal(r.lane()["rx_packets"], r.lane()["tx_packets"], "packets sent")


def wait_for(get, holds, what):
    until = time.monotonic() + WAIT_S
    while True:
        value = get()
        if holds(value):
            return value
        check(time.monotonic() < until, f"{what}: {value}")
        time.sleep(0.05)


@case
def tshark_reads_a_file_and_a_pipe(s):
    if shutil.which("tshark") is None:
        raise Skipped("tshark is not installed")
    given = fr.make(50, seed=34)
    run = s.start(looped(["l2swap"], s, given)).until_running()
    take(s, run, "-c", "60")
    fields = ["-T", "fields", "-e", "frame.interface_name", "-e", "frame.len", "-e", "frame.comment",
              "-e", "frame.time_epoch", "-e", "eth.dst"]  # fmt: skip
    env = dict(s.env, HOME=str(s.path))
    r = subprocess.run(["tshark", "-r", "c.pcapng", *fields], cwd=s.path, env=env,
                       capture_output=True, text=True, check=False)
    check_equal(r.returncode, 0, r.stderr)
    rows = [l.split("\t") for l in r.stdout.splitlines()]
    check_equal(len(rows), 120, "rows of tshark")
    check_equal({w[0] for w in rows}, {"l0-before", "l0-after"}, "interfaces")
    check(all(w[2].startswith("lane=l0 verdict=tx tx=0") for w in rows), "comments")
    check(all(abs(float(w[3]) - time.time()) < 3600 for w in rows), "times of day")
    known = {(len(f), f[:6].hex(":")) for f in given}
    check({(int(w[1]), w[4]) for w in rows if w[0] == "l0-before"} <= known, "frames")
    pipe = f"'{s.millrace}' capture l0 --name {run.name} -c 20 -w - | tshark -r - -T fields -e frame.len"
    r = subprocess.run(["bash", "-o", "pipefail", "-c", pipe], cwd=s.path, env=env,
                       capture_output=True, text=True, check=False)
    check_equal((r.returncode, len(r.stdout.split())), (0, 40), f"by a pipe: {r.stderr}")
    end(run)


@case
def a_bad_argument_is_one_sentence_that_says_what_to_do(s):
    run = s.start(looped([], s, fr.make(20, seed=35))).until_running()
    name = ("--name", run.name)
    for args, status, words in (
        (("l0", *name), USAGE, "add -w FILE, or -w - for standard output"),
        (("l0", *name, "-w", "c", "-c", "0"), USAGE, "-c '0' is not a number of packets; give 1 to"),
        (("l0", *name, "-w", "c", "-c", "1x"), USAGE, "-c '1x' is not a number of packets"),
        (("l0", *name, "-w", "c", "-s", "65536"), USAGE, "give 1 to 65535 bytes"),
        (("l0", *name, "-w", "c", "--verdict", "lost"), USAGE, "choose one of: tx, tx_mask, drop, window"),
        (("l0", *name, "-w", "c", "--filter", "tcp port"), USAGE, "see pcap-filter(7)"),
        (("l0", *name, "-w", "c", "--filter", "ip protochain 6"), USAGE,
         "cannot be run in the kernel"),
        (("l" * 40, *name, "-w", "c"), USAGE, "is longer than the name of a lane"),
        (("l7", *name, "-w", "c"), FAILURE, "there is no lane 'l7'; choose one of: l0"),
        (("l0", "--name", "nobody", "-w", "c"), FAILURE, "no instance 'nobody' is running"),
        (("l0", *name, "-w", "none/c", "-c", "1"), FAILURE, "name another file with -w"),
    ):
        r = s.command("capture", *args)
        check_equal((r.status, r.stdout), (status, ""), r.told())
        told = r.stderr.splitlines()
        check(len(told) == 1 and words in told[0], f"wanted '{words}', got {r.told()}")
    check(not (s.path / "c").exists(), "a file was left for a capture that never began")
    for args in ((), ("l0", "l1"), ("l0", "--nonsense")):
        r = s.command("capture", *args)
        check(r.status == USAGE and "usage: millrace capture LANE" in r.stderr, r.told())
    end(run)


@case
def a_full_disk_ends_the_capture_with_a_file_that_can_be_read_and_the_lane_goes_on(s):
    disk = s.path / "disk"
    disk.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", disk], check=False)
    if made.returncode != 0:
        raise Skipped("no tmpfs can be mounted")
    try:
        run = s.start(looped([], s, fr.make(100, seed=36))).until_running()
        r = s.command("capture", "l0", "--name", run.name, "-w", "disk/c.pcapng")
        check_equal(r.status, FAILURE, r.told())
        check("'disk/c.pcapng': No space left on device; the capture ends here, the lane goes on; "
              "make room" in r.stderr, r.told())
        c = Pcapng((disk / "c.pcapng").read_bytes())
        check(len(c.packets) > 10, f"{len(c.packets)} whole packets")
        take(s, run, "-c", "10")
        end(run)
    finally:
        subprocess.run(["umount", disk], check=True)


@case
def a_client_that_dies_leaves_its_lane_to_the_next_and_one_captures_at_a_time(s):
    run = s.start(looped([], s, fr.make(50, seed=37))).until_running()
    first = Instance(s, [s.millrace, "capture", "l0", "--name", run.name, "-w", "first.pcapng"])
    wait_for(lambda: (s.path / "first.pcapng").exists(), bool, "the first captures")
    r = s.command("capture", "l0", "--name", run.name, "-w", "second.pcapng")
    check_equal(r.status, FAILURE, r.told())
    check("only one capture of a lane runs at a time; end that one first" in r.stderr, r.told())
    first.signal(signal.SIGKILL)
    first.process.wait()

    def again():
        return s.command("capture", "l0", "--name", run.name, "-c", "5", "-w", "third.pcapng")

    wait_for(again, lambda r: r.status == CLEAN, "the lane is free again")
    last = Instance(s, [s.millrace, "capture", "l0", "--name", run.name, "-w", "last.pcapng"])
    wait_for(lambda: (s.path / "last.pcapng").exists(), bool, "the last captures")
    end(run)
    r = last.ended()
    check_equal(r.status, CLEAN, r.told())
    check("the instance stops" in r.stderr, r.told())
    check(Pcapng((s.path / "last.pcapng").read_bytes()).statistics, "the last file is closed")


main()
