#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""capture: packets of a running instance as pcapng, before and after the chain.

The lane is flooded with one capture over and over, so that every frame is known and the ring
of copies is full as soon as nobody takes any. pcapng is read here byte by byte, by tcpdump and by tshark.
"""
import os
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import time

from harness import (
    CLEAN, FAILURE, PATIENCE, USAGE, WAIT_S, Instance, Skipped, case, check, check_equal, check_frames, config, lane,
    main, pcapng_blocks, swapped, until,
)  # fmt: skip

OTHER = "net_null1,size=64,copy=0"
BEFORE, AFTER = 0, 1


def ipv4(protocol, l4, number, src=1, dst=2):
    head = struct.pack(">BBHHHBBHII", 0x45, 0, 20 + len(l4), number, 0, 64, protocol, 0, 0x0A000000 + src, 0x0A000000 + dst)
    total = sum(struct.unpack(">10H", head))
    total = (total & 0xFFFF) + (total >> 16)
    return head[:10] + struct.pack(">H", ~total & 0xFFFF) + head[12:] + l4


def ipv6(protocol, l4, number):
    return struct.pack(">IHBB", 0x60000000, len(l4), protocol, 64) + (0xFD << 120 | 1).to_bytes(16, "big") + (
        0xFD << 120 | 2 + number % 2).to_bytes(16, "big") + l4


def ports(number, length=8, extra=b""):
    return struct.pack(">HHHH", 53 if number % 3 == 0 else 1000 + number, (80, 53, 443)[number % 3], length, 0) + extra


def frame(number):
    """Each is another one; most kinds come with most numbers."""
    data = bytes((number * 7 + i) % 256 for i in range(16 + number * 19 % 900))
    tcp = ports(number)[:4] + struct.pack(">IIBBHHH", number, 0, 0x50, (2, 16, 17)[number % 3], 100, 0, 0)
    kind = (
        (0x0800, ipv4(17, ports(number, 8 + len(data), data), number, 1 + number % 4)),
        (0x0800, ipv4(6, tcp + data, number, 1, 2 + number % 3)),
        (0x86DD, ipv6(17, ports(number, 8 + len(data), data), number)),
        (0x0800, ipv4(1, struct.pack(">BBHHH", 8 if number % 2 else 0, 0, 0, 1, number) + data, number)),
        (0x0806, struct.pack(">HHBBH", 1, 0x800, 6, 4, 1) + bytes(6) + b"\x0a\0\0\1" + bytes(6) + b"\x0a\0\0\2" + bytes([number] * 18)),
        (0x86DD, ipv6(6, tcp + data, number)),
        (0x88CC, bytes([number]) * 50),
    )[number % 7]
    tag = struct.pack(">HH", 0x8100, 7 + number % 3) if number % 4 == 3 else b""
    to = b"\xff" * 6 if number % 5 == 0 else b"\x02\0\0\0\0" + bytes([number % 3])
    return to + b"\x02\0\0\0\1\1" + tag + struct.pack(">H", kind[0]) + kind[1]


FRAMES = [frame(n) for n in range(64)]


def flood(s, stages=("l2swap",), frames=FRAMES, **keys):
    s.pcap("in.pcap", frames)
    cfg = config({"p0": "net_pcap0,rx_pcap=in.pcap,infinite_rx=1", "p1": OTHER}, [lane("l0", "p0", "p1", stages, **keys)])
    return s.start(cfg).until_running()


def capture(s, run, *args, file="out.pcapng", prefix=()):
    """A capture that ends by itself."""
    return s.command("capture", "l0", "--name", run.name, "-w", file, *args, prefix=prefix)


def begin(s, run, *args, file="out.pcapng"):
    """One that goes on; returns once there is a file with something in it."""
    client = Instance(s, [s.millrace, "capture", "l0", "--name", run.name, "-w", file, *args])

    def has_begun():
        check(client.process.poll() is None, f"ended at once: {client.stderr()}")
        return (s.path / file).exists() and (s.path / file).stat().st_size > 0

    until(has_begun, "no file comes")
    return client


def stopped(run):
    run.signal()
    return run.wait(reason="signal")


def options(raw, at):
    found = {}
    while at + 4 <= len(raw):
        code, length = struct.unpack_from("<HH", raw, at)
        if code == 0:
            break
        found[code] = raw[at + 4 : at + 4 + length]
        at += 4 + (length + 3) // 4 * 4
    return found


def read(path):
    """Packets as (interface, time, bytes, length, options), and the statistics' options."""
    raw, interfaces, packets, statistics = path.read_bytes(), [], [], []
    blocks = list(pcapng_blocks(raw))
    check_equal(sum(len(body) + 12 for _, body in blocks), len(raw), "bytes of whole blocks")
    check_equal((blocks[0][0], *struct.unpack_from("<IHH", blocks[0][1])), (0x0A0D0D0A, 0x1A2B3C4D, 1, 0), "section")
    for kind, body in blocks:
        if kind == 1:
            interfaces.append((struct.unpack_from("<H", body)[0], options(body, 8)))
        elif kind == 6:
            interface, high, low, kept, length = struct.unpack_from("<5I", body)
            told = options(body, 20 + (kept + 3) // 4 * 4)
            packets.append((interface, high << 32 | low, body[20 : 20 + kept], length, told))
        elif kind == 5:
            statistics.append((struct.unpack_from("<I", body)[0], options(body, 12)))
    check_equal([(link, o[2], o[9]) for link, o in interfaces], [(1, b"l0 before", b"\x09"), (1, b"l0 after", b"\x09")], "interfaces")
    return packets, statistics


def sides(packets):
    """What went in and what came out, a packet of one for each of the other."""
    before, after = packets[0::2], packets[1::2]
    check(all(p[0] == BEFORE for p in before) and all(p[0] == AFTER for p in after), "the interfaces do not take turns")
    check_equal([p[4][5] for p in before], [p[4][5] for p in after], "ids of packets before and after")
    return before, after


def check_follow(got, wanted, what):
    """That frames are wanted ones in turn, from any of them on."""
    check(got, f"{what}: there are none")
    check(got[0] in wanted, f"{what}: the first frame is none of those that were sent")
    first = wanted.index(got[0])
    check_frames(got, [wanted[(first + i) % len(wanted)] for i in range(len(got))], what)


def comment(packet):
    return dict(word.split("=", 1) for word in packet[4][1].decode().split())


@case
def frames_before_and_after_the_chain_are_those_that_came_and_left_on_every_path(s):
    for keys in ({"path": "direct"}, {"path": "pinned"}, {"path": "staged"}, {"path": "direct", "tx_path": ["pinned"]}):
        run = flood(s, **keys)
        start = time.time()
        r = capture(s, run, "-c", "500")
        check_equal(r.status, CLEAN, f"{keys}: {r.told()}")
        check("500 packets, " in r.stderr, r.told())
        packets, statistics = read(s.path / "out.pcapng")
        before, after = sides(packets)
        check_equal(len(before), 500, "packets")
        check_follow([p[2] for p in before], FRAMES, f"{keys}: before")
        check_frames([p[2] for p in after], [swapped(p[2]) for p in before], f"{keys}: after")
        check(all(len(p[2]) == p[3] for p in packets), "a frame was cut")
        times = [p[1] / 1e9 for p in packets]
        check(times == sorted(times) and start - 1 < times[0] and times[-1] < time.time() + 1, f"times {times[0]}, {times[-1]}")
        check_equal(comment(before[0]), {"lane": "l0", "when": "before", "verdict": "tx", "port": "p1"}, "comment")
        check_equal(comment(after[0]), {"lane": "l0", "when": "after", "verdict": "tx", "port": "p1"}, "comment")
        check_equal([i for i, _ in statistics], [BEFORE, AFTER, BEFORE, AFTER], "statistics")
        check(struct.unpack("<Q", statistics[-1][1][4])[0] >= 500, f"received: {statistics[-1]}")
        check_equal(stopped(run).drops(), {}, f"{keys}: drops")


@case
def packets_of_several_workers_are_in_order_with_the_times_of_their_slots(s):
    run = flood(s, workers=3)
    for _ in range(3):
        start = time.time()
        check_equal(capture(s, run, "-c", "400", "-s", "1500").status, CLEAN, "capture")
        end = time.time()
        before, after = sides(read(s.path / "out.pcapng")[0])
        numbers = [struct.unpack("<Q", p[4][5])[0] for p in before]
        check(all(a < b for a, b in zip(numbers, numbers[1:])), f"out of order: {numbers}")
        # Workers begin one after the other, each with the slot that it comes to; from then on all is there.
        slots = [n >> 32 for n in numbers]
        gaps = [i + 1 for i, (a, b) in enumerate(zip(slots, slots[1:])) if b > a + 1]
        whole = max(gaps, default=0)
        check(slots[whole] - slots[0] < 64, f"slots are missing: {slots}")
        check_follow([p[2] for p in before[whole:]], FRAMES, "before")
        check_frames([p[2] for p in after], [swapped(p[2]) for p in before], "after")
        times = {}
        for slot, p in zip(slots, before):
            check_equal(times.setdefault(slot, p[1]), p[1], "times within a slot")
            check(times.get(slot - 3, 0) < p[1], "a worker's times go back")
        check(all(start - 1 < t / 1e9 < end + 1 for t in times.values()), f"times {times}, not {start} to {end}")
    stopped(run)


@case
def frames_are_cut_to_what_is_asked_for(s):
    run = flood(s)
    for snaplen in (1, 33, 64):
        check_equal(capture(s, run, "-c", "100", "-s", str(snaplen)).status, CLEAN, f"-s {snaplen}")
        for interface, _, data, length, _ in read(s.path / "out.pcapng")[0]:
            wanted = [f if interface == BEFORE else swapped(f) for f in FRAMES]
            check((data, length) in [(w[:snaplen], len(w)) for w in wanted], f"-s {snaplen}: {data} of {length}")
    stopped(run)


@case
def a_verdict_chooses_packets_and_the_reason_and_counters_are_told(s):
    s.write("rules.txt", "deny proto udp\npermit\n")
    run = flood(s, [{"use": "filter", "params": {"rules": "rules.txt"}}])
    for verdict in ("drop", "tx"):
        r = capture(s, run, "-c", "60", "--verdict", verdict)
        check_equal(r.status, CLEAN, r.told())
        packets, statistics = read(s.path / "out.pcapng")
        check_equal(len(packets), 120, verdict)
        for p in packets:
            udp = p[2][12:14] == b"\x08\0" and p[2][23] == 17 or p[2][12:14] == b"\x86\xdd" and p[2][20] == 17
            check("drop" == verdict or not udp, f"{verdict}: {p}")
            told = comment(p)
            check_equal((told["verdict"], told.get("reason")), (verdict, "policy" if verdict == "drop" else None), "told")
        counters = dict(word.split("=") for word in statistics[-1][1][1].decode().split())
        check(int(counters["filter[0].denied"]) > 0, f"counters: {counters}")
    r = capture(s, run, "--verdict", "nonsense")
    check_equal(r.status, USAGE, r.told())
    stopped(run)


EXPRESSIONS = [
    "ip", "ip6", "arp", "tcp", "udp", "icmp", "not ip", "vlan", "vlan 7", "vlan and ip", "port 53", "tcp port 80",
    "udp dst port 443", "portrange 1000-1030", "host 10.0.0.1", "src host 10.0.0.2", "dst net 10.0.0.0/30", "ip6 host fd00::2",
    "ip6 and tcp", "ether broadcast", "ether multicast", "ether dst 02:00:00:00:00:01", "ether proto 0x88cc", "greater 400",
    "less 100", "len >= 100 and len <= 300", "tcp[tcpflags] & tcp-syn != 0", "icmp[icmptype] = icmp-echo", "ip[8] = 64",
    "ip[2:2] - ((ip[0] & 0xf) << 2) > 200", "ip proto 1 or arp", "not (udp or tcp)", "ip[4:2] % 3 = 1", "udp and not port 53",
    "ether[len - 1] > 127", "ip and (tcp port 80 or udp port 53) and greater 70",
]  # fmt: skip


@case
def filters_choose_what_tcpdump_chooses(s):
    if shutil.which("tcpdump") is None:
        raise Skipped("tcpdump is not installed")
    run = flood(s)
    check(len(EXPRESSIONS) >= 30, "too few")
    for expression in EXPRESSIONS:
        subprocess.run(["tcpdump", "-r", s.path / "in.pcap", "-w", s.path / "theirs.pcap", expression], check=True,
                       stderr=subprocess.DEVNULL)  # fmt: skip
        wanted = s.frames("theirs.pcap")
        check(0 < len(wanted) < len(FRAMES), f"{expression}: {len(wanted)} frames tell nothing")
        r = capture(s, run, "-c", str(2 * len(wanted) + 1), "--filter", expression)
        check_equal(r.status, CLEAN, f"{expression}: {r.told()}")
        before, after = sides(read(s.path / "out.pcapng")[0])
        check_follow([p[2] for p in before], wanted, expression)
        check_frames([p[2] for p in after], [swapped(p[2]) for p in before], expression)
    for bad in ("nonsense and", "inbound"):
        r = capture(s, run, "-c", "1", "--filter", bad)
        check(r.status == USAGE and "--filter" in r.stderr, r.told())
    stopped(run)


def piped(s, run, tool):
    """What a tool makes of a capture of 50 packets that it reads from a pipe."""
    client = subprocess.Popen([s.millrace, "capture", "l0", "--name", run.name, "-c", "50", "-w", "-"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=s.env)  # fmt: skip
    told = subprocess.run(tool, stdin=client.stdout, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True)
    client.stdout.close()
    check_equal(client.wait(), CLEAN, f"{client.stderr.read()}")
    return told.stdout.splitlines()


@case
def it_pipes_into_tcpdump(s):
    if shutil.which("tcpdump") is None:
        raise Skipped("tcpdump is not installed")
    run = flood(s)
    lines = [line for line in piped(s, run, ["tcpdump", "-nn", "-r", "-"]) if re.match(r"\d", line)]
    check_equal(len(lines), 100, f"lines: {lines[:5]}")
    stopped(run)


@case
def tshark_finds_times_comments_counters_and_bytes_in_a_pipe_and_in_a_file(s):
    if shutil.which("tshark") is None:
        raise Skipped("tshark is not installed")

    def tshark(*args):
        return subprocess.run(["tshark", *args], cwd=s.path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True, check=True).stdout.splitlines()  # fmt: skip

    def fields(*names):
        return ["-T", "fields", "-E", "separator=|", "-E", "aggregator=;", *(word for name in names for word in ("-e", name))]

    rows = fields("frame.interface_name", "frame.time_epoch", "frame.cap_len", "frame.len", "frame.packet_id", "frame.comment", "udp.port")
    s.write("rules.txt", "deny proto udp\npermit\n")
    run = flood(s, [{"use": "filter", "params": {"rules": "rules.txt"}}])
    start = time.time()
    tee = ["sh", "-c", 'tee "$0" | tshark "$@"', s.path / "out.pcapng", "-r", "-", *rows]
    got = [row.split("|") for row in piped(s, run, tee)]
    packets, statistics = read(s.path / "out.pcapng")
    wanted = [[("l0 before", "l0 after")[i], f"{t // 10**9}.{t % 10**9:09}", str(len(d)), str(length), str(struct.unpack("<Q", o[5])[0]),
               o[1].decode()] for i, t, d, length, o in packets]  # fmt: skip
    check_equal([row[:6] for row in got], wanted, "what tshark finds")
    for number, row in enumerate(got):
        when = ("before", "after")[number % 2]
        verdict = "verdict=drop reason=policy" if row[6] else "verdict=tx port=p1"
        check_equal((row[0], row[5]), (f"l0 {when}", f"lane=l0 when={when} {verdict}"), f"packet {number}")
        check(start - 1 < float(row[1]) < time.time() + 1, f"time of packet {number}: {row}")
    check_equal(len(got), 100, "packets")
    tshark("-r", "out.pcapng", "-F", "nsecpcap", "-w", "theirs.pcap")
    check_frames(s.frames("theirs.pcap"), [p[2] for p in packets], "tshark's bytes")
    # The same file by the blocks that it is made of.
    blocks = tshark("-X", "read_format:MIME Files Format", "-r", "out.pcapng", *fields("pcapng.options.option.data.comment"))
    comments = "\n".join(blocks).split(";")
    counted = [c for c in comments if "filter[0]" in c]
    check_equal(counted, [o[1].decode() for _, o in statistics], "counters of stages")
    check(re.search(r"lane=l0 .*filter\[0\]\.denied=[1-9]", counted[-1]), f"counters: {counted}")
    stopped(run)


@case
def rules_that_are_reloaded_show_in_a_capture_that_goes_on(s):
    s.write("rules.txt", "permit\n")
    run = flood(s, [{"use": "filter", "params": {"rules": "rules.txt"}}])
    client = begin(s, run, "-s", "64", "--filter", "udp src port 1014")
    for verdict, rules in (("tx", "permit\n"), ("drop", "deny proto udp\npermit\n")) * 2:
        s.write("rules.txt", rules)
        r = s.command("reload", "--name", run.name)
        check_equal(r.status, CLEAN, r.told())
        word = f"verdict={verdict}"
        until(lambda: word.encode() in (s.path / "out.pcapng").read_bytes()[-300:], f"no packet with {word}")
    client.signal(signal.SIGINT)
    check_equal(client.ended().status, CLEAN, "capture")
    before, _ = sides(read(s.path / "out.pcapng")[0])
    verdicts = [comment(p)["verdict"] for p in before]
    turns = [v for i, v in enumerate(verdicts) if i == 0 or v != verdicts[i - 1]]
    check_equal(turns, ["tx", "drop", "tx", "drop"], f"verdicts of {len(before)} packets")
    stopped(run)


@case
def a_reader_of_the_pipe_that_is_killed_ends_the_capture_and_not_the_run(s):
    run = flood(s)
    reader = subprocess.Popen(["sh", "-c", "head -c 100000 >read; echo >ready; sleep 100"], stdin=subprocess.PIPE, cwd=s.path,
                              start_new_session=True)  # fmt: skip
    client = subprocess.Popen([s.millrace, "capture", "l0", "--name", run.name, "-w", "-"], env=s.env, stdout=reader.stdin,
                              stderr=subprocess.PIPE, text=True)  # fmt: skip
    reader.stdin.close()
    until((s.path / "ready").exists, "nothing is read")
    os.killpg(reader.pid, signal.SIGKILL)
    reader.wait()
    told = client.communicate(timeout=WAIT_S)[1]
    check(client.returncode == FAILURE and "standard output could not be written" in told, f"{client.returncode}: {told}")
    check_equal(capture(s, run, "-c", "1").status, CLEAN, "capture")
    check_equal(stopped(run).drops(), {}, "drops")


@case
def a_full_ring_loses_copies_and_no_packets(s):
    run = flood(s, ["forward"])
    os.mkfifo(s.path / "fifo")
    client = Instance(s, [s.millrace, "capture", "l0", "--name", run.name, "-w", "fifo"])
    with open(s.path / "fifo", "rb") as reader:


        def lost():
            told = s.command("stats", "--name", run.name, "--prometheus").stdout
            return int(re.search(r"^millrace_tap_lost_total\{[^}]*\} (\d+)", told, re.M)[1])

        until(lambda: lost() > 1000, "nothing was lost")  # nobody reads
        client.signal(signal.SIGINT)
        (s.path / "out.pcapng").write_bytes(reader.read())
    r = client.ended()
    check_equal(r.status, CLEAN, r.told())
    packets, statistics = read(s.path / "out.pcapng")
    check(struct.unpack("<Q", statistics[-1][1][5])[0] > 1000, f"statistics: {statistics[-1]}")
    check(re.search(r"\d+ packets, \d{4,} copies lost", r.stderr), r.told())
    before, _ = sides(packets)
    check(set(p[2] for p in before) <= set(FRAMES), "a frame that was not sent")
    check_equal(stopped(run).drops(), {}, "drops")


@case
def an_interrupt_ends_it_whole_and_another_may_follow(s):
    run = flood(s)
    for _ in range(3):
        client = begin(s, run, "-s", "64")
        client.signal(signal.SIGINT)
        r = client.ended()
        check_equal(r.status, CLEAN, r.told())
        check_equal(len(read(s.path / "out.pcapng")[1]), 4, "statistics")
        (s.path / "out.pcapng").unlink()
    stopped(run)


@case
def who_reads_slowly_gets_the_rest_after_an_interrupt(s):
    run = flood(s)
    os.mkfifo(s.path / "fifo")
    client = Instance(s, [s.millrace, "capture", "l0", "--name", run.name, "-w", "fifo"])
    with open(s.path / "fifo", "rb") as reader, open(s.path / "out.pcapng", "wb") as out:
        began = time.monotonic()
        while part := reader.read(40000):
            out.write(part)
            time.sleep(0.06)  # so that the ring alone takes longer than an idle reader is waited for
            if time.monotonic() - began > 1:
                client.signal(signal.SIGINT)
                began += 1000
    r = client.ended()
    check_equal(r.status, CLEAN, r.told())
    check_equal(len(read(s.path / "out.pcapng")[1]), 4, "statistics")
    check_equal(stopped(run).drops(), {}, "drops")


@case
def a_second_interrupt_ends_a_capture_that_nobody_reads(s):
    run = flood(s)
    os.mkfifo(s.path / "fifo")
    waits = None

    def begun():
        nonlocal waits
        if waits is None or waits.process.poll() is not None:  # the one that asks below may have been let in first
            waits = Instance(s, [s.millrace, "capture", "l0", "--name", run.name, "-w", "fifo"])
        return "captured already" in capture(s, run, "-c", "1", file="other.pcapng").stderr and waits.process.poll() is None

    until(begun, "it does not begin")
    waits.until_catches(signal.SIGINT)
    waits.signal(signal.SIGINT)
    r = waits.ended()
    check(r.status == FAILURE and "ended by a signal before fifo was open" in r.stderr, r.told())
    end, keep = os.pipe()
    client = subprocess.Popen([s.millrace, "capture", "l0", "--name", run.name, "-w", "-"], env=s.env, stdout=keep,
                              stderr=subprocess.PIPE, text=True)  # fmt: skip
    # Not by its bytes: a write that does not fit into a page begins the next.
    until(lambda: not select.select([], [keep], [], 0)[1], lambda: f"the pipe is never full, the client: {client.poll()}")
    os.close(keep)
    client.send_signal(signal.SIGINT)
    # The instance does not wait for it, so that others may follow.
    until(lambda: capture(s, run, "-c", "1").status == CLEAN, "nobody else is let in")
    check(client.poll() is None, "one interrupt took what it had to write")
    client.send_signal(signal.SIGINT)
    told = client.communicate(timeout=WAIT_S)[1]
    os.close(end)
    check(client.returncode == FAILURE and "nobody knows how many copies were lost" in told, f"{client.returncode}: {told}")
    check_equal(stopped(run).drops(), {}, "drops")


@case
def a_second_client_is_refused_and_one_that_dies_leaves_room(s):
    run = flood(s)
    client = begin(s, run)
    for _ in range(3):
        r = capture(s, run, file="second.pcapng")
        check(r.status == FAILURE and "captured already" in r.stderr, r.told())
        check(not (s.path / "second.pcapng").exists(), "it made a file")
    client.process.kill()
    client.ended()
    until(lambda: capture(s, run, "-c", "1").status == CLEAN, "refused for ever")
    stopped(run)


@case
def an_instance_that_stops_ends_the_capture_whole(s):
    for _ in range(3):
        run = flood(s)
        client = begin(s, run)
        check_equal(stopped(run).drops(), {}, "drops")
        r = client.ended()
        check(r.status == CLEAN and "the instance stops" in r.stderr, r.told())
        packets, statistics = read(s.path / "out.pcapng")
        check_equal(len(statistics), 4, "statistics")
        sides(packets)
        (s.path / "out.pcapng").unlink()
    run = flood(s)
    client = begin(s, run)
    run.process.kill()
    run.ended()
    r = client.ended()
    check(r.status == FAILURE and "in the middle" in r.stderr, r.told())
    read(s.path / "out.pcapng")


@case
def a_client_that_does_not_read_holds_up_no_stop(s):
    run = flood(s)
    client = begin(s, run, "-s", "64")
    client.process.send_signal(signal.SIGSTOP)
    time.sleep(0.3)
    started = time.monotonic()
    check_equal(stopped(run).drops(), {}, "drops")
    check(time.monotonic() - started < 10 * PATIENCE, "the stop waits for the client")
    client.process.kill()
    client.process.send_signal(signal.SIGCONT)
    client.ended()


@case
def a_full_disk_ends_it_and_what_was_written_can_be_read(s):
    run = flood(s)
    r = capture(s, run, file="/dev/full")
    check(r.status == FAILURE and "/dev/full" in r.stderr and "No space left" in r.stderr, r.told())
    r = capture(s, run, prefix=["prlimit", "--fsize=100000"])
    check(r.status == FAILURE and "out.pcapng" in r.stderr and "File too large" in r.stderr, r.told())
    packets, _ = read(s.path / "out.pcapng")
    check_follow([p[2] for p in sides(packets[: len(packets) // 2 * 2])[0]], FRAMES, "what was written")
    with open(s.path / "stdout.pcapng", "wb") as out:
        r = subprocess.run(["prlimit", "--fsize=100000", s.millrace, "capture", "l0", "--name", run.name, "-w", "-"],
            env=s.env, stdout=out, stderr=subprocess.PIPE, text=True, check=False)  # fmt: skip
    check(r.returncode == FAILURE and "standard output could not be written" in r.stderr, r.stderr)
    packets, _ = read(s.path / "stdout.pcapng")
    check_follow([p[2] for p in sides(packets[: len(packets) // 2 * 2])[0]], FRAMES, "what was written of standard output")
    r = capture(s, run, file="no/such/folder")
    check(r.status == FAILURE and "no/such/folder" in r.stderr, r.told())
    check_equal(capture(s, run, "-c", "1").status, CLEAN, "capture")
    check_equal(stopped(run).drops(), {}, "drops")


@case
def a_small_disk_holds_whole_blocks_of_what_it_has_room_for(s):
    if os.geteuid() != 0:
        raise Skipped("only root can mount a small disk")
    run = flood(s)
    (s.path / "disk").mkdir()
    small = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=64k none disk; "$@"; was=$?; cp disk/out.pcapng .; exit $was', "sh"]
    r = capture(s, run, file="disk/out.pcapng", prefix=small)
    check(r.status == FAILURE and "disk/out.pcapng" in r.stderr and "No space left" in r.stderr, r.told())
    packets, _ = read(s.path / "out.pcapng")
    check(len(packets) > 30, f"{len(packets)} packets in 64 KiB")
    check_follow([p[2] for p in sides(packets[: len(packets) // 2 * 2])[0]], FRAMES, "what was written")
    check_equal(stopped(run).drops(), {}, "drops")


@case
def what_there_is_not_is_refused_with_a_sentence(s):
    run = flood(s)
    r = s.command("capture", "l7", "--name", run.name, "-w", "x")
    check(r.status == FAILURE and "has no lane 'l7'" in r.stderr, r.told())
    check(not (s.path / "x").exists(), "it made a file")
    r = s.command("capture", "l0", "--name", "nobody", "-w", "x")
    check(r.status == FAILURE and "'nobody'" in r.stderr, r.told())
    for args in (["-c", "0"], ["-c", "x"], ["-s", "65536"], ["-s", "-1"]):
        r = capture(s, run, *args)
        check(r.status == USAGE and args[1] in r.stderr, r.told())
    for args in (["capture"], ["capture", "l0"], ["capture", "l0", "l1", "-w", "x"]):
        check_equal(s.command(*args).status, USAGE, f"{args}")
    check_equal(run.stats()["lanes"][0]["name"], "l0", "stats")
    stopped(run)


if __name__ == "__main__":
    sys.exit(main())
