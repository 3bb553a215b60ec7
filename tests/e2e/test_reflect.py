#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""reflect answers a kernel: ARP, neighbour discovery, ping, ping -6 and UDP echo, nothing lost.

    peer (a namespace): p0 ── veth ── in0 [ millrace: reflect, drop ]

The peer's kernel resolves, asks and compares; what it does not accept is lost to it. A frame
that the port missed is in a counter, so only that much may be missing.

usage: test_reflect.py MILLRACE [-k WORD]. Root only; needs ip, ethtool and ping.
"""
import atexit
import itertools
import os
import shutil
import signal
import sys

from scapy.layers.inet6 import ICMPv6ND_NS, ICMPv6NDOptSrcLLAddr, IPv6
from scapy.layers.l2 import Ether

from harness import PATIENCE, Skipped, case, check, check_equal, config, lane, main
from namespaces import out, ping

SIZES = (1, 16, 56, 999, 1000)  # and the longest that the MTU takes
COUNT = 20
ECHO = (
    "import socket,sys\n"
    "s=socket.socket(socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET,socket.SOCK_DGRAM)\n"
    "s.settimeout(float(sys.argv[3])); s.connect((sys.argv[1],7)); n=0\n"
    "for i in range(int(sys.argv[4])):\n"
    "    sent=bytes((i+k)%256 for k in range(int(sys.argv[2])))\n"
    "    s.send(sent)\n"
    "    try:\n"
    "        while s.recv(65536)!=sent: pass\n"  # an answer that was given up comes late
    "        n+=1\n"
    "    except TimeoutError: pass\n"
    "print(n)\n"
)


class Peer:
    made = itertools.count()

    def __init__(self, s):
        if os.geteuid() != 0:
            raise Skipped("namespaces need root")
        for tool in ("ip", "ethtool", "ping"):
            if shutil.which(tool) is None:
                raise Skipped(f"{tool} is not installed")
        self.s = s
        self.names = [f"mr-{os.getpid()}-{next(self.made)}-{n}" for n in ("peer", "mill")]
        try:
            for name in self.names:
                out("ip", "netns", "add", name)
                atexit.register(out, "ip", "netns", "del", name, ok=False)
            out("ip", "-n", self.names[1], "link", "add", "in0", "type", "veth",
                "peer", "name", "p0", "netns", self.names[0])  # fmt: skip
        except Exception as why:
            if "ermitted" in str(why) or "not supported" in str(why):
                raise Skipped(f"no namespaces or veth pairs here: {why}") from why
            raise
        self.run("ethtool", "-K", "p0", "tx", "off")
        for name, interface in zip(self.names, ("p0", "in0")):
            out("ip", "-n", name, "link", "set", interface, "up")
        out("ip", "-n", self.names[0], "addr", "add", "10.9.0.1/24", "dev", "p0")
        out("ip", "-n", self.names[0], "addr", "add", "fd09::1/64", "dev", "p0", "nodad")

    def argv(self, *argv):
        return ["ip", "netns", "exec", self.names[0], *argv]

    def run(self, *argv, ok=True):
        return out(*self.argv(*argv), ok=ok)

    def start(self, mtu=1500):
        params = {"addresses": ["10.9.0.2", "fd09::2"], "mac": "02:00:5e:00:53:01"}
        lanes = [lane("l0", "in", "in", [{"use": "reflect", "params": params}, "drop"])]
        cfg = config({"in": {"device": "kernel:in0", "mtu": mtu}}, lanes)
        return self.s.start(cfg, prefix=["ip", "netns", "exec", self.names[1]]).until_running()

    def echo(self, target, size):
        return int(self.run(sys.executable, "-c", ECHO, target, str(size), str(2 * PATIENCE), str(COUNT)))


@case
def a_kernel_gets_every_answer_at_every_size(s):
    peer = Peer(s)
    run = peer.start()
    got = {}
    for target, icmp, udp in (("10.9.0.2", 1472, 1472), ("fd09::2", 1452, 1452)):
        for size in (*SIZES, icmp):
            got[f"ping {target} {size}"] = ping(peer.argv(), target, size, COUNT)
        for size in (*SIZES, udp):
            got[f"udp {target} {size}"] = peer.echo(target, size)
    neighbours = peer.run("ip", "neigh", "show", "dev", "p0")
    if shutil.which("busybox") and "arping" in out("busybox", "--list"):
        told = peer.run("busybox", "arping", "-c", "3", "-I", "p0", "10.9.0.2")
        check("Received 3 re" in told, told)
    silent = peer.run("ping", "-c", "1", "-W", "1", "10.9.0.3", ok=False)
    check("0 received" in silent, f"answered for another's address: {silent}")
    run.signal(signal.SIGTERM)
    r = run.wait(reason="signal")
    port = r.report["ports"][0]
    missed = port["rx_missed"] + port["rx_nombuf"]
    lost = {k: COUNT - n for k, n in got.items() if n != COUNT}
    check(sum(lost.values()) <= missed, f"lost {lost}, but the port missed {missed}: {r.told()}")
    for target in ("10.9.0.2", "fd09::2"):
        check(f"{target} lladdr 02:00:5e:00:53:01" in neighbours, f"not resolved: {neighbours}")
    counters = r.stage("l0", "reflect")
    sizes = len(SIZES) + 1
    for name in ("icmp", "icmp6"):
        check(sizes * COUNT - missed <= counters[name] <= sizes * COUNT, f"{name}: {counters}")
    check(2 * sizes * COUNT - missed <= counters["udp"] <= 2 * sizes * COUNT, f"udp: {counters}")
    check(counters["arp"] >= 1 and counters["nd"] >= 1, f"{counters}")
    check_equal(r.lane()["tx_packets"], sum(counters.values()), "answers sent")


@case
def solicitations_that_are_to_be_discarded_are_not_answered(s):
    """RFC 4861 7.1.1, of a prober for duplicates: to a solicited-node address, without its link's."""
    mine, nodes = "fd09::2", "ff02::1:ff00:2"

    def asks(target, *options):
        frame = Ether(src="02:00:00:00:00:09", dst="33:33:ff:00:00:02") / IPv6(src="::", dst=target, hlim=255)
        return bytes(frame / ICMPv6ND_NS(tgt=mine) / b"".join(options))

    link = bytes(ICMPv6NDOptSrcLLAddr(lladdr="02:00:00:00:00:09"))
    s.pcap("in.pcap", [asks(nodes), asks(mine), asks(nodes, link), asks(nodes, bytes([14, 1]) + bytes(6))])
    stages = [{"use": "reflect", "params": {"addresses": [mine], "mac": "02:00:5e:00:53:01"}}, "drop"]
    r = s.run_idle(config({"p": "net_pcap0,rx_pcap=in.pcap,tx_pcap=out.pcap"}, [lane("l0", "p", "p", stages)]))
    check_equal(r.stage("l0", "reflect")["nd"], 2, "probes that were answered")
    for frame in s.frames("out.pcap"):
        told = Ether(frame)
        check_equal((told.dst, told[IPv6].dst), ("33:33:00:00:00:01", "ff02::1"), "who is told")


sys.exit(main())
