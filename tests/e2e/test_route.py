#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""route beside the kernel's own forwarding: the same frames, the same routes, the same output.

    feeder (a namespace): f0 ── veth ── in0 [ kernel: ip_forward, routes ] out0 ── veth ── s0
    millrace: net_pcap in ─► route ─► net_pcap out

What the kernel forwards is captured behind it and has to be what millrace wrote, byte for
byte; its ICMP errors have to be about the same packets, with the same type, code and quote.

usage: test_route.py MILLRACE [-k WORD]. Root only; needs ip, and scapy for the frames.
"""
import os
import random
import shutil
import socket
import struct
import sys
import time

from harness import Skipped, WAIT_S, case, check, check_equal, config, lane, main, read_pcap
from namespaces import Namespace, out

ROUTER = "02:4d:52:00:00:01"
FEEDER = "02:00:00:00:00:aa"
HOPS = {"10.2.0.2": "02:00:00:00:00:b2", "10.2.0.3": "02:00:00:00:00:b3",
        "fd02::2": "02:00:00:00:00:c2", "fd02::3": "02:00:00:00:00:c3"}  # fmt: skip
ETH_P_ALL = 3
MARK = b"mr-route"


def raw(address):
    return bytes(int(x, 16) for x in address.split(":"))


def total(data):
    s = sum(struct.unpack(f">{len(data) // 2}H", data))
    while s >> 16:
        s = (s & 0xFFFF) + (s >> 16)
    return s


def frame(number, target, ttl=64, source=None, size=26):
    """UDP without a checksum, or of IPv6 with one that nobody looks at; its number is in it."""
    head = raw(ROUTER) + raw(FEEDER)
    body = struct.pack(">HHHH", 7, 9, 8 + 12 + size, 0) + MARK + struct.pack(">I", number) + bytes(size)
    if ":" in target:
        body = body[:6] + b"\x12\x34" + body[8:]
        addresses = b"".join(socket.inet_pton(socket.AF_INET6, a) for a in (source or "fd01::2", target))
        return head + b"\x86\xdd" + struct.pack(">IHBB", 0x60000000, len(body), 17, ttl) + addresses + body
    addresses = b"".join(socket.inet_aton(a) for a in (source or "10.1.0.2", target))
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(body), number, 0, ttl, 17, 0) + addresses
    ip = ip[:10] + struct.pack(">H", total(ip) ^ 0xFFFF) + ip[12:]
    return head + b"\x08\0" + ip + body


def draw_routes(rng):
    """Nested prefixes of both families, each by one of two hops of its family."""
    drawn = {}
    while len(drawn) < 120:
        bits = rng.choice((9, 12, 15, 16, 20, 23, 24, 27, 30, 32))
        address = 0x0A400000 | rng.randrange(4) << 16 | rng.randrange(4) << 8 | rng.randrange(64)
        address &= 0xFFFFFFFF << (32 - bits)
        drawn[f"{socket.inet_ntoa(struct.pack('>I', address & 0xFFFFFFFF))}/{bits}"] = rng.choice(("10.2.0.2", "10.2.0.3"))
    while len(drawn) < 240:
        bits = rng.choice((20, 32, 48, 63, 64, 65, 96, 120, 127, 128))
        address = bytes([0xFD, 0x40, 0, rng.randrange(3), 0, 0, 0, rng.randrange(4), *bytes(7), rng.randrange(8)])
        number = int.from_bytes(address, "big") >> (128 - bits) << (128 - bits)
        drawn[f"{socket.inet_ntop(socket.AF_INET6, number.to_bytes(16, 'big'))}/{bits}"] = rng.choice(("fd02::2", "fd02::3"))
    return drawn


def draw_frames(rng, count):
    frames = []
    for number in range(count):
        ttl = rng.choice((1, 2, 2, 3, 64, 64, 255))
        if rng.randrange(2):
            target = f"{rng.choice((10, 10, 10, 11))}.{64 + rng.randrange(4)}.{rng.randrange(4)}.{rng.randrange(64)}"
        else:
            target = f"fd{rng.choice((40, 40, 40, 41))}:{rng.randrange(3):x}:0:{rng.randrange(4):x}::{rng.randrange(8):x}"
        frames.append(frame(number, target, ttl, size=rng.choice((0, 1, 26, 500, 1300))))
    return frames


class Kernel:
    """A router made of namespaces."""

    def __init__(self, routes):
        if os.geteuid() != 0 or shutil.which("ip") is None:
            raise Skipped("namespaces need root and ip")
        try:
            self.feeder, self.router, self.sink = (Namespace(n) for n in ("feed", "route", "sink"))
            self.router.ip("link", "add", "in0", "type", "veth", "peer", "name", "f0", "netns", self.feeder.name)
            self.router.ip("link", "add", "out0", "type", "veth", "peer", "name", "s0", "netns", self.sink.name)
        except Exception as why:
            if "ermitted" in str(why) or "not supported" in str(why):
                raise Skipped(f"no namespaces or veth pairs here: {why}") from why
            raise
        for key, value in (
            ("ipv4.ip_forward", 1), ("ipv6.conf.all.disable_ipv6", 0), ("ipv6.conf.default.disable_ipv6", 0),
            ("ipv6.conf.in0.disable_ipv6", 0), ("ipv6.conf.out0.disable_ipv6", 0), ("ipv6.conf.all.forwarding", 1),
            ("ipv4.icmp_ratelimit", 0), ("ipv6.icmp.ratelimit", 0), ("ipv4.icmp_msgs_per_sec", 100000),
            ("ipv4.icmp_msgs_burst", 100000), ("ipv4.conf.all.rp_filter", 0), ("ipv4.conf.in0.rp_filter", 0),
        ):  # fmt: skip
            self.router.run("sysctl", "-qw", f"net.{key}={value}", ok=key.endswith("forward"))
        for name in ("in0", "out0"):
            self.router.ip("link", "set", name, "address", ROUTER, "up")
        for ns, name in ((self.feeder, "f0"), (self.sink, "s0")):
            ns.ip("link", "set", name, "up")
        for name, prefixes in (("in0", ("10.1.0.1/24", "fd01::1/64")), ("out0", ("10.2.0.1/24", "fd02::1/64"))):
            for prefix in prefixes:
                self.router.ip("addr", "add", prefix, "dev", name, *(["nodad"] if ":" in prefix else []))
        for hop, mac in HOPS.items():
            self.router.ip("neigh", "replace", hop, "lladdr", mac, "dev", "out0")
        for hop in ("10.1.0.2", "fd01::2"):
            self.router.ip("neigh", "replace", hop, "lladdr", FEEDER, "dev", "in0")
        batch = "".join(f"route add {p} via {hop}\n" for p, hop in routes.items())
        path = f"/tmp/{self.router.name}.batch"
        with open(path, "w", encoding="ascii") as f:
            f.write(batch)
        out("ip", "-n", self.router.name, "-batch", path)
        os.unlink(path)

    def forward(self, frames):
        """What comes out, and what comes back, of these frames."""
        ends = []
        for ns, name in ((self.feeder, "f0"), (self.sink, "s0")):
            end = ns.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
            end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
            end.bind((name, ETH_P_ALL))
            end.setblocking(False)
            ends.append(end)
        got = ([], [])

        def drain():
            for end, kept in zip(ends, got):
                while True:
                    try:
                        data, where = end.recvfrom(65536)
                    except BlockingIOError:
                        break
                    if where[2] != socket.PACKET_OUTGOING and MARK in data:
                        kept.append(data)

        for f in frames:
            ends[0].send(f)
            drain()
        quiet = time.monotonic()
        seen = 0
        while time.monotonic() - quiet < 0.5 and time.monotonic() - quiet < WAIT_S:
            drain()
            if len(got[0]) + len(got[1]) != seen:
                seen, quiet = len(got[0]) + len(got[1]), time.monotonic()
            time.sleep(0.02)
        return got[1], got[0]


def number_of(data):
    at = data.index(MARK) + len(MARK)
    return struct.unpack_from(">I", data, at)[0]


def error_of(data):
    """(type, code, source, target, quote) of an ICMP error whose checksum holds."""
    if data[12:14] == b"\x08\0":
        check_equal(total(data[14:34]), 0xFFFF, "checksum of an IPv4 header")
        end = 14 + struct.unpack_from(">H", data, 16)[0]
        icmp = data[34:end]
        check_equal(total(icmp + bytes(len(icmp) % 2)), 0xFFFF, "checksum of ICMP")
        return icmp[0], icmp[1], data[26:30], data[30:34], icmp[8:]
    icmp = data[54 : 54 + struct.unpack_from(">H", data, 18)[0]]
    pseudo = data[22:54] + struct.pack(">II", len(icmp), 58)
    check_equal(total(pseudo + icmp + bytes(len(icmp) % 2)), 0xFFFF, "checksum of ICMPv6")
    return icmp[0], icmp[1], data[22:38], data[38:54], icmp[8:]


def of_millrace(s, routes, frames):
    lines = [f"{p} via {HOPS[hop]} port out" for p, hop in routes.items()]
    lines += [f"{p} via {FEEDER} port back" for p in ("10.1.0.0/24", "fd01::/64")]
    s.write("routes.txt", "# drawn\n" + "\n".join(lines) + "\n")
    s.pcap("in.pcap", frames)
    params = {"routes": "routes.txt", "mac": ROUTER, "addresses": ["10.1.0.1", "fd01::1"],
              "errors_per_second": 0}
    ports = {
        "in": "net_pcap0,rx_pcap=in.pcap,tx_pcap=unused.pcap",
        "out": "net_pcap1,rx_pcap=in.pcap,tx_pcap=out.pcap",
        "back": "net_pcap2,rx_pcap=in.pcap,tx_pcap=back.pcap",
    }
    r = s.run_idle(config(ports, [lane("l0", "in", ["in", "out", "back"], [{"use": "route", "params": params}])]))
    return read_pcap(s.path / "out.pcap"), read_pcap(s.path / "back.pcap"), r


@case
def the_kernel_forwards_and_answers_the_same(s):
    rng = random.Random(7)
    routes = draw_routes(rng)
    frames = draw_frames(rng, 800)
    kernel_out, kernel_back = Kernel(routes).forward(frames)
    ours_out, ours_back, r = of_millrace(s, routes, frames)
    by_number = {number_of(f): f for f in kernel_out}
    check(len(by_number) > 200, f"the kernel forwarded {len(by_number)}")
    check_equal(sorted(map(number_of, ours_out)), sorted(by_number), "what was forwarded")
    for f in ours_out:
        check(f == by_number[number_of(f)], f"{f.hex()} of the kernel: {by_number[number_of(f)].hex()}")
    theirs = {number_of(f): f for f in kernel_back}
    check(len(theirs) > 100, f"the kernel answered {len(theirs)}")
    ours = {number_of(f): f for f in ours_back}
    check_equal(sorted(set(theirs) - set(ours)), [], "what only the kernel answered")
    # The kernel bounds how many unreachables of IPv4 it sends; all others are there.
    more = [error_of(f)[0] for n, f in ours.items() if n not in theirs]
    check_equal([t for t in more if t != 3], [], "types of what only millrace answered")
    for f in (ours[n] for n in theirs):
        mine, kernels = error_of(f), error_of(theirs[number_of(f)])
        check_equal(mine[:4], kernels[:4], f"the answer to frame {number_of(f)}")
        check_equal(mine[4], kernels[4], f"the quote of frame {number_of(f)}")
        check_equal(f[:12], raw(FEEDER) + raw(ROUTER), "Ethernet addresses of an answer")
    counters = r.stage("l0", "route")
    check_equal(counters["forwarded"], len(ours_out), "forwarded")
    check_equal(counters["answered"], len(ours_back), "answered")


@case
def errors_keep_to_their_rate_whichever_worker_sends_them(s):
    s.write("routes.txt", f"10.1.0.0/24 via {FEEDER} port in\n")
    s.pcap("in.pcap", [frame(n, "10.9.0.1", ttl=1) for n in range(2000)])
    ports = {"in": "net_pcap0,rx_pcap=in.pcap,tx_pcap=back.pcap"}
    for rate, burst, workers, batch in ((1, 7, 2, 16), (1000000, 1, 1, 1)):
        params = {"routes": "routes.txt", "mac": ROUTER, "addresses": ["10.1.0.1"],
                  "errors_per_second": rate, "errors_burst": burst}  # fmt: skip
        stages = [{"use": "route", "params": params}]
        r = s.run_idle(config(ports, [lane("l0", "in", "in", stages, workers=workers, batch={"packets": batch})]))
        counters = r.stage("l0", "route")
        answered = counters["answered"]
        check_equal(len(read_pcap(s.path / "back.pcap")), answered, "what came back")
        check_equal(answered + counters["limited"], 2000, "answered and held back")
        check_equal(r.drops().get("gpu_drop_policy", 0), counters["limited"], "drops")
        seconds = r.report["duration_s"]
        check(burst <= answered <= burst + rate * seconds, f"{answered} answers in {seconds} s")
        # Time goes on from slot to slot, so that a bucket of one fills again.
        check(rate == 1 or answered > 100, f"{answered} answers at a million a second")


sys.exit(main())
