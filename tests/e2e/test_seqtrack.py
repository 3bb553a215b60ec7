#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""seqtrack on streams with programmed faults, whose counts are known by how they were made, with
its results taken from the wire; and on public captures.

MILLRACE_SAMPLES names a folder with these captures, which are not ours to keep:
    Example1_1Msps_8bits.pcapng, Example2_100Msps_12bits.pcapng, Example3_500Msps_8bits.pcapng
        DIFI-Consortium/DIFI-Certification, DIFI_Validator/examples
    100-IPFIXv10-CISCO_traffic-00.pcap, 112-IPFIXv10-CISCO-options-map-reassignment_traffic-00.pcap
        pmacct/pmacct, tests/<the name's first part>/pcap/traffic-00.pcap

usage: test_seqtrack.py MILLRACE [-k WORD]
"""
import ipaddress
import os
import pathlib
import random
import struct
import sys

from harness import PATIENCE, Skipped, case, check, check_equal, config, lane, main, read_pcap, until, write_pcap

RESULT = (0x4D525231, 1)
MISSED, TOTALS, RESTART, STEP = 1, 2, 3, 4
BOOKS = ("expected", "units", "missing", "open", "received", "placed", "duplicate", "late", "reordered",
         "malformed", "unknown", "filtered", "restarts", "steps")  # fmt: skip
FORMATS = ("vrt", "spead", "vdif", "vtp", "sflow", "netflow5", "netflow9", "ipfix", "flow", "int2", "ecpri", "rtp", "custom")


def total(data):
    data += bytes(len(data) % 2)
    s = sum(struct.unpack(f">{len(data) // 2}H", data))
    while s >> 16:
        s = (s & 0xFFFF) + (s >> 16)
    return s


def udp(payload, port, source="10.0.0.1", vlan=None):
    body = struct.pack(">HHHH", 4000, port, 8 + len(payload), 0) + payload
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(body), 0, 0, 64, 17, 0)
    ip += ipaddress.ip_address(source).packed + ipaddress.ip_address("10.0.0.2").packed
    ip = ip[:10] + struct.pack(">H", total(ip) ^ 0xFFFF) + ip[12:]
    tag = b"" if vlan is None else struct.pack(">HH", 0x8100, vlan)
    return bytes.fromhex("020000000002020000000001") + tag + b"\x08\0" + ip + body


class Records:
    """The records of results on the wire, each checked for its headers and sums."""

    def __init__(self, frames, source="10.0.0.8"):
        self.missed, self.totals, self.restarts, self.steps = [], {}, [], []
        self.numbers, self.frames = [], 0
        for f in frames:
            if f[12:14] != b"\x08\0" or f[26:30] != ipaddress.ip_address(source).packed:
                continue
            self.frames += 1
            length = struct.unpack(">H", f[16:18])[0]
            check_equal(total(f[14:34]), 0xFFFF, "IPv4 checksum")
            check_equal(total(f[26:34] + struct.pack(">HH", 17, length - 20) + f[34 : 14 + length]), 0xFFFF, "UDP checksum")
            p = f[42 : 14 + length]
            magic, kind, _, records, number, self.lost, _ = struct.unpack_from(">IBBHIIQ", p)
            check_equal((magic, kind), RESULT, "magic and kind")
            self.numbers.append(number)
            at = 24
            for _ in range(records):
                at += self.take(p, at)
            check_equal(at, len(p), "bytes of all records")
        check_equal(self.numbers, list(range(len(self.numbers))), "numbers of the results")

    def take(self, p, at):
        what, fmt, size, _ = struct.unpack_from(">BBHI", p, at)
        ports = struct.unpack_from(">HH", p, at + 48)
        stream = (FORMATS[fmt], struct.unpack_from(">3Q", p, at + 8), str(ipaddress.ip_address(p[at + 32 : at + 48]).ipv4_mapped))
        numbers = struct.unpack_from(f">{(size - 56) // 8}Q", p, at + 56)
        if what == TOTALS:
            books = dict(zip(BOOKS, numbers))
            check_equal(books["expected"], books["units"] + books["missing"] + books["open"], "units")
            check_equal(books["received"], sum(books[k] for k in
                ("placed", "duplicate", "late", "malformed", "unknown", "filtered")), "packets")  # fmt: skip
            self.totals[(stream[0], stream[1], stream[2], ports)] = books
        else:
            {MISSED: self.missed, RESTART: self.restarts, STEP: self.steps}[what].append((stream, *numbers[:2]))
        return size


def run(s, frames, formats="", params=None, **keys):
    """Frames through seqtrack; its counters and records, and the frames that went on."""
    write_pcap(s.path / "in.pcap", frames)
    given = {"result_dst": "10.0.0.9", "result_src": "10.0.0.8", "report_ms": 1000000, "late_ms": 1000000, **(params or {})}
    if formats:
        given["formats"] = str(s.write("formats.txt", formats))
    cfg = config(
        {"in": {"device": "net_pcap0,rx_pcap=in.pcap,tx_pcap=out.pcap", "mtu": 9000}},
        [lane("l0", "in", "in", [{"use": "seqtrack", "params": given}], tick_us=1000, **keys)],
    )
    r = s.run_idle(cfg)
    counters = r.stage("l0", "seqtrack")
    check_equal(counters["received"], sum(counters[k] for k in
        ("placed", "duplicate", "late", "malformed", "unknown", "filtered", "overflow")), "packets")  # fmt: skip
    check_equal(counters["results_lost"], 0, "results that were lost")
    out = read_pcap(s.path / "out.pcap")
    return counters, Records(out), [f for f in out if f[26:30] != ipaddress.ip_address("10.0.0.8").packed]


def vrt(stream, count, ps, words=50):
    head = 0x1CA00000 | (count % 16) << 16 | words
    return struct.pack(">IIQIQ", head, stream, 0x6A621E << 32, ps // 10**12, ps % 10**12) + bytes(4 * words - 28)


def spead(heap, at, size, whole):
    items = (0x8001 << 48 | heap, 0x8002 << 48 | whole, 0x8003 << 48 | at, 0x8004 << 48 | size)
    return struct.pack(">BBBBHH4Q", 0x53, 4, 2, 6, 0, 4, *items) + bytes(size)


def vdif(second, number, thread=0, station=0x4142, size=64, sequence=None):
    frame = struct.pack("<4I", second, 40 << 24 | number, (32 + size) // 8, 1 << 26 | thread << 16 | station)
    return (b"" if sequence is None else struct.pack("<Q", sequence)) + frame + bytes(16 + size)


def sflow(number, agent="192.0.2.1", sub=3):
    return struct.pack(">II4sIIII", 5, 1, ipaddress.ip_address(agent).packed, sub, number % 2**32, 5000, 0)


def netflow5(number, records):
    return struct.pack(">HHIIIIBBH", 5, records, 1000, 0, 0, number % 2**32, 1, 2, 0) + bytes(48 * records)


def netflow9(number):
    return struct.pack(">HHIIII", 9, 1, 1000, 0, number % 2**32, 99) + struct.pack(">HHI", 300, 8, 0)


def ipfix(number, records, template=False):
    sets = struct.pack(">HHHHHHHH", 2, 16, 256, 2, 8, 4, 12, 4) if template else b""
    sets += struct.pack(">HH", 256, 4 + 8 * records) + bytes(8 * records)
    return struct.pack(">HHIII", 10, 16 + len(sets), 0, number % 2**32, 55) + sets


def int2(number, node=17):
    return struct.pack(">II", 2 << 28 | 5 << 22 | number % 2**22, node) + bytes((0x10, 2, 0, 0)) + bytes(8)


def ecpri(number, axc=9):
    head = bytes.fromhex("020000000002020000000001aefe")
    # Frame, subframe, slot and symbol go on from message to message.
    when = struct.pack(">BBH", 0x90, number // 140 % 256, number % 14)
    return head + struct.pack(">BBHHBB", 0x10, 0, 40, axc, number % 256, 0x80) + when + bytes(32)


def rtp(number, ssrc=0xDEADBEEF):
    return struct.pack(">BBHII", 0x80, 96, number % 2**16, 160 * number % 2**32, ssrc) + bytes(160)


def numbered(make, port, first, **keys):
    return lambda i, **more: udp(make(first + i), port, **keys, **more)


# format: frame of the i-th packet, across the wrap of its number where it has one that is short
STREAMS = {
    "vrt": lambda i: udp(vrt(7, 14 + i, 5 * 10**12 + i * 720_000_000), 4991),
    "sflow": numbered(sflow, 6343, 2**32 - 100),
    "netflow9": numbered(netflow9, 2055, 2**32 - 100, vlan=5),
    "int2": numbered(int2, 5001, 2**22 - 100),
    "ecpri": lambda i: ecpri(200 + i),
    "rtp": numbered(rtp, 5004, 2**16 - 100),
    "vtp": numbered(lambda n: vdif(1000, n % 2**24, sequence=2**63 + n), 5003, 5),
    "vdif": lambda i: udp(vdif(1000 + i // 250, i % 250), 5002),
    "custom": numbered(lambda n: struct.pack("<IQ", 77, n % 1000), 9000, 900),
}
TABLE = """
vrt udp 4991
sflow udp 6343
flow udp 2055   # NetFlow 5 and 9 and IPFIX
int2 udp 5001
vdif udp 5002
vtp udp 5003
rtp udp 5004
spead udp 7148
ecpri ether 0xaefe
custom udp 9000 id 0:4 le seq 4:8 le modulus 1000
"""


@case
def programmed_faults_of_every_format_are_counted_exactly(s):
    """Lost: 60 (1), 200 (2), 300 (5), 450 (1). Twice: 400. Exchanged: 500 and 501."""
    frames, wanted = [], {}
    order = [i for i in range(700) if i not in (60, 200, 201, 300, 301, 302, 303, 304, 450)]
    at = order.index(500)
    order[at], order[at + 1] = order[at + 1], order[at]
    order.insert(order.index(400) + 1, 400)
    rng = random.Random(5)
    streams = {name: [make(i) for i in order] for name, make in STREAMS.items()}
    while any(streams.values()):
        name = rng.choice([n for n in streams if streams[n]])
        frames.append(streams[name].pop(0))
    counters, records, passed = run(s, frames, TABLE)
    check_equal(passed, frames, "frames that went on")
    check_equal(len(records.totals), len(STREAMS), "streams")
    for (name, *_), books in records.totals.items():
        for key, n in {"expected": 700, "units": 691, "missing": 9, "received": 692, "placed": 691, "duplicate": 1,
                       "reordered": 1, "late": 0, "malformed": 0, "restarts": 0, "steps": 0}.items():  # fmt: skip
            check_equal(books[key], n, f"{name}: {key}")
        wanted[name] = sorted(n for stream, _, n in records.missed if stream[0] == name)
    check_equal(wanted, {name: [1, 1, 2, 5] for name in STREAMS}, "gaps")
    check_equal((counters["missing"], counters["gaps"]), (9 * len(STREAMS), 4 * len(STREAMS)), "counters")
    at = {(stream[0], n) for stream, n, _ in records.missed}
    for name, number in (("sflow", 2**32 - 40), ("rtp", (2**16 + 100) % 2**16), ("custom", 200), ("ecpri", 4), ("vtp", 2**63 + 65)):
        check((name, number) in at, f"{name}: a gap at {number} is not among {sorted(n for x, n in at if x == name)}")


@case
def records_and_bytes_are_the_units_of_those_that_count_them(s):
    frames, v5, ip = [], 2**32 - 500, 2**32 - 300
    frames.append(udp(ipfix(ip, 0, template=True), 2055))
    for i in range(100):
        n = 1 + i % 29
        if i != 50:
            frames.append(udp(netflow5(v5, n), 2055))
        if i != 70:
            frames.append(udp(ipfix(ip, n), 2055))
        v5, ip = v5 + n, ip + n
    for heap in range(20):
        for at in range(0, 8000, 1000):
            if (heap, at) not in ((4, 3000), (5, 7000)):
                frames.append(udp(spead(1000 - heap, at, 1000, 8000), 7148))
    _, records, _ = run(s, frames, TABLE)
    books = {stream[0]: b for stream, b in records.totals.items()}
    check_equal({k: (b["missing"], b["placed"], b["unknown"]) for k, b in books.items()},
                {"netflow5": (1 + 50 % 29, 99, 0), "ipfix": (1 + 70 % 29, 100, 0), "spead": (2000, 158, 0)}, "missing and placed")  # fmt: skip
    check_equal(sorted((at, n) for stream, at, n in records.missed if stream[0] == "spead"), [(995, 1000), (996, 1000)], "heaps")


@case
def a_gap_of_exactly_one_modulus_two_senders_and_a_restart(s):
    frames = [udp(vrt(7, i, 10**12 + i * 10**9), 4991) for i in range(100) if not 40 <= i < 56]
    frames += [udp(rtp(i), 5004) for i in range(70000) if not 2000 <= i < 2000 + 2**16][:3000]
    for i in range(50):
        frames.append(udp(sflow(i), 6343, source="10.0.0.1"))
        frames.append(udp(sflow(90000 + i), 6343, source="10.0.0.3"))
    frames += [udp(sflow(5_000_000 + i, sub=4), 6343) for i in range(50)]
    frames += [udp(netflow9(10**9 + i), 2055) for i in range(50)] + [udp(netflow9(i), 2055) for i in range(50)]
    counters, records, _ = run(s, frames)
    by = {(name, source): b for (name, _, source, _), b in records.totals.items() if name != "sflow"}
    check_equal(by[("vrt", "10.0.0.1")]["missing"], 16, "a clock sees it")
    check_equal((by[("rtp", "10.0.0.1")]["missing"], by[("rtp", "10.0.0.1")]["placed"]), (0, 3000), "a number does not")
    check_equal((by[("netflow9", "10.0.0.1")]["restarts"], by[("netflow9", "10.0.0.1")]["placed"]), (1, 100), "restart")
    check_equal([(r[0][0], r[1]) for r in records.restarts], [("netflow9", 0)], "records of restarts")
    check_equal(len([k for k in records.totals if k[0] == "sflow"]), 3, "agents")
    check_equal(counters["missing"], 16, "all that is missing")


@case
def a_stream_is_told_while_it_runs_and_packets_may_end_here(s):
    """Into an interface that nobody ends: events come by age, totals by their time."""
    frames = [udp(rtp(i), 5004) for i in range(2000) if i % 100 != 50]
    counters, records, passed = run(s, frames, params={"forward": "false", "late_ms": 50, "report_ms": 50})
    check_equal(passed, [], "packets that went on")
    check_equal(sum(n for _, _, n in records.missed), 20, "missing")
    check_equal(counters["missing"], 20, "counter")


@case
def cut_and_wild_packets_are_counted_and_go_on(s):
    rng = random.Random(6)
    whole = [make(i) for make in STREAMS.values() for i in range(3)]
    whole += [udp(spead(1, 0, 100, 100), 7148), udp(ipfix(1, 3, True), 2055), udp(netflow5(1, 3), 2055)]
    frames = []
    for f in whole:
        for at in range(42, min(len(f), 120)):
            frames.append(f[:at])  # of the wire: the IP length says more
            changed = bytearray(f)
            changed[at] ^= 1 << rng.randrange(8)
            frames.append(bytes(changed))
        for length in (8, 9, 12, 16, 20, 27):  # of the datagram: padding behind it
            if f[12:14] == b"\x08\0":
                frames.append(f[:16] + struct.pack(">H", 20 + length) + f[18:38] + struct.pack(">H", length) + f[40:])
    counters, records, passed = run(s, frames, TABLE, params={"streams": 100})
    check_equal(passed, frames, "frames that went on")
    check(counters["malformed"] > 100, f"{counters['malformed']} malformed")
    check(counters["overflow"] > 0 and len(records.totals) == 100, f"streams: {counters}")


@case
def what_cannot_be_is_refused_by_name(s):
    for params, says in (
        ({"result_dst": "10.0.0.1"}, "result_src"),
        ({"result_dst": "10.0.0.1", "result_src": "fd00::1"}, "two families"),
        ({"formats": str(s.write("bad.txt", "vrt udp 4991\nvrtt udp 5000\n"))}, "bad.txt:2"),
        ({"streams": "0"}, "streams"),
        ({"result_dst": "10.0.0.1", "result_src": "224.0.0.1"}, "no packet may come from"),
        ({"result_dst": "0.0.0.0", "result_src": "10.0.0.1"}, "nobody's address"),
        ({"tick_us": 0}, "set it, as in tick_us: 1000"),
    ):
        tick_us = params.pop("tick_us", 1000)
        cfg = config({"in": "net_null0"}, [lane("l0", "in", "in", [{"use": "seqtrack", "params": params}], tick_us=tick_us)])
        r = s.command("check", s.write("bad.yaml", cfg))
        check_equal(r.status, 78, f"status of {params}: {r.told()}")
        check(says in r.stderr, f"{says!r} is not in {r.stderr!r}")


def of_seqtrack(report):
    return next(s for s in report["lanes"][0]["stages"] if s["name"] == "seqtrack")["counters"]


@case
def a_stop_that_cannot_tell_all_says_so(s):
    """More streams than the lane can tell of between two words of the stop; ticks come once a minute."""
    count = 20000
    write_pcap(s.path / "in.pcap", [udp(rtp(7, ssrc=i), 5004) for i in range(count)])
    params = {"result_dst": "10.0.0.9", "result_src": "10.0.0.8", "streams": count}
    ports = {"in": "net_pcap0,rx_pcap=in.pcap,tx_pcap=out.pcap"}
    for drain_ms, status in ((0, 5), (60000, 0)):
        ln = lane("l0", "in", "in", [{"use": "seqtrack", "params": params}], tick_us=60000000)
        run = s.start(config(ports, [ln], drain_ms=drain_ms)).until_running()
        until(lambda: of_seqtrack(run.stats())["streams"] == count, lambda: f"not all streams come: {run.stats()}")
        run.signal()
        r = run.wait(status)
        told = of_seqtrack(r.report)["results"]
        check(told < count if status else told == count, f"{told} of {count} with drain_ms {drain_ms}")
        check(("had told all" in r.stderr) == bool(status), r.stderr)


@case
def ticks_are_no_traffic_that_keeps_a_run_from_its_end(s):
    s.pcap("in.pcap", [udp(rtp(i), 5004) for i in range(100)])
    stage = {"use": "seqtrack", "params": {"result_dst": "10.0.0.9", "result_src": "10.0.0.8", "report_ms": 1}}
    ports = {"in": "net_pcap0,rx_pcap=in.pcap,tx_pcap=out.pcap"}
    r = s.run_idle(config(ports, [lane("l0", "in", "in", [stage], tick_us=1)]))
    check(r.lane()["made_packets"] > 0 and r.seconds < 10 * PATIENCE, f"{r.seconds} s")


@case
def a_reload_that_asks_for_other_memory_is_refused_by_the_parameter_that_does(s):
    stage = {"use": "seqtrack", "params": {"events": "64", "templates": "64"}}
    cfg = config({"in": "net_null0"}, [lane("l0", "in", "in", [stage], tick_us=1000)])
    run = s.start(cfg).until_running()
    for name in ("events", "templates"):
        stage["params"][name] = "4096"
        s.write(f"{run.name}.yaml", cfg)
        r = s.command("reload", "--name", run.name)
        check_equal(r.status, 78, f"status of {r.told()}")
        check(f"params.{name}: cannot change" in r.stderr, r.stderr)
        stage["params"][name] = "64"
    run.signal()
    run.wait()


@case
def totals_are_told_again_when_what_was_open_is_given_up(s):
    frames = [udp(rtp(i), 5004) for i in range(100) if i not in (95, 97)]
    _, records, _ = run(s, frames, params={"report_ms": 20, "late_ms": 200})
    books = next(iter(records.totals.values()))
    check_equal((books["missing"], books["open"], books["units"]), (2, 0, 98), "the last totals")


@case
def programs_of_one_machine_are_senders_of_their_own(s):
    frames = []
    for i in range(100):
        for port in (9000, 9001):
            frames.append(udp(struct.pack(">I", i + 5000 * (port - 9000)), port))
        frames.append(udp(spead(i, 0, 100, 100), 7148, source="10.0.0.4"))
    _, records, _ = run(s, frames, "custom udp 9000 seq 0:4\ncustom udp 9001 seq 0:4\nspead udp 7148\n")
    check_equal(len(records.totals), 3, "streams")
    check_equal({(b["placed"], b["missing"], b["late"]) for b in records.totals.values()}, {(100, 0, 0)}, "books")


def sample(name):
    folder = os.environ.get("MILLRACE_SAMPLES")
    if not folder:
        raise Skipped("MILLRACE_SAMPLES names no folder of public captures")
    path = pathlib.Path(folder) / name
    if not path.is_file():
        raise Skipped(f"{path} is not there")
    raw = path.read_bytes()
    frames, at = [], 24
    order = "<" if raw[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    check(raw[:4] != b"\x0a\x0d\x0d\x0a", f"{name} is pcapng")
    cooked = struct.unpack_from(order + "I", raw, 20)[0] == 113  # LINUX_SLL: 14 bytes, then the EtherType
    while at < len(raw):
        kept = struct.unpack_from(order + "I", raw, at + 8)[0]
        frame = raw[at + 16 : at + 16 + kept]
        frames.append(bytes(12) + frame[14:] if cooked else frame)
        at += 16 + kept
    return frames


@case
def difi_example_3_lacks_six_packets_and_the_others_none(s):
    for name, missing in (("Example1_1Msps_8bits", 0), ("Example2_100Msps_12bits", 0), ("Example3_500Msps_8bits", 6)):
        frames = sample(name + ".pcapng")
        ports = sorted({struct.unpack(">H", f[36:38])[0] for f in frames if f[23] == 17})
        table = "".join(f"vrt udp {p}\n" for p in ports)
        counters, records, _ = run(s, frames, table)
        data = {stream: b for stream, b in records.totals.items() if stream[1][1] in (0, 1)}
        check_equal(sum(b["missing"] for b in data.values()), missing, f"{name}: missing of {data}")
        check_equal((counters["malformed"], counters["restarts"], counters["clock_steps"]), (0, 0, 0), name)
        print(f"     {name}: {counters['received']} packets, {counters['missing']} missing", flush=True)


@case
def pmacct_captures_lack_nothing_where_records_are_counted(s):
    for name in ("100-IPFIXv10-CISCO_traffic-00.pcap",
                 "112-IPFIXv10-CISCO-options-map-reassignment_traffic-00.pcap"):  # fmt: skip
        frames = sample(name)
        counters, records, _ = run(s, frames, "flow udp 1024-65535\n")
        print(f"     {name}: {counters}", flush=True)
        check(counters["placed"] > 5, f"{name}: {counters}")
        check_equal(counters["missing"], 0, f"{name}: {records.totals}")


if __name__ == "__main__":
    sys.exit(main())
