#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Steering in software: which frames a lane's match takes, judged by scapy's dissection."""
import functools
import ipaddress
import random
import sys

import frames as fr
from harness import case, check, check_equal, check_frames, config, lane, main
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrDestOpt
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.layers.vxlan import VXLAN
from scapy.packet import Raw


def make(count, seed):
    """Frames whose fields are drawn from few values, so that every match takes some."""
    rng = random.Random(seed)
    out = []
    for _ in range(count):
        v4 = rng.random() < 0.6
        frame = Ether(dst="02:00:00:00:00:01", src="02:00:00:00:00:02")
        if rng.random() < 0.4:
            frame /= Dot1Q(vlan=rng.choice((5, 6, 100)), prio=rng.randrange(8))
            if rng.random() < 0.2:
                frame /= Dot1Q(vlan=7)
        if rng.random() < 0.1:
            out.append(bytes(frame / ARP(psrc="10.0.0.1", pdst="10.0.0.2")))
            continue
        near, far = rng.randrange(4), rng.randrange(4)
        if v4:
            frame /= IP(src=f"10.{near}.0.1", dst=f"192.0.2.{far}", frag=0)
        else:
            frame /= IPv6(src=f"2001:db8:{near}::1", dst=f"2001:db8:f::{far}")
            if rng.random() < 0.2:
                frame /= IPv6ExtHdrDestOpt()
        sport, dport = rng.choice((53, 1024, 4000)), rng.choice((53, 4000, 4003, 4004, 4789))
        kind = rng.choice("uutvi")
        if kind == "v":
            frame /= UDP(sport=sport, dport=4789) / VXLAN(vni=rng.choice((5, 70000)), flags=8)
            frame /= Ether() / IP(dst="10.9.9.9") / UDP(sport=1, dport=53)
        elif kind == "i":
            frame /= ICMP()
        else:
            frame /= (UDP if kind == "u" else TCP)(sport=sport, dport=dport)
        out.append(bytes(frame / Raw(rng.randbytes(rng.randrange(8, 64)))))
    return out


@functools.cache
def dissect(frame):
    """The outermost of each field, as scapy reads it."""
    layers, layer = [], Ether(frame)
    while layer and not isinstance(layer, Raw):
        layers.append(layer)
        layer = layer.payload
    found = {"ethertype": layers[0].type}
    for at in layers:
        if isinstance(at, Dot1Q):
            found.setdefault("vlan", at.vlan)
            if "src" not in found:
                found["ethertype"] = at.type
        elif isinstance(at, (IP, IPv6)):
            found["src"], found["dst"] = map(ipaddress.ip_address, (at.src, at.dst))
            found["protocol"] = at.proto if isinstance(at, IP) else at.nh
        elif isinstance(at, IPv6ExtHdrDestOpt):
            found["protocol"] = at.nh
        elif isinstance(at, (UDP, TCP)):
            found["src_port"], found["dst_port"] = at.sport, at.dport
        elif isinstance(at, VXLAN):
            found["vni"] = at.vni
            break
    return found


def takes(match, frame):
    found = dissect(frame)
    for field, wanted in match.items():
        if field not in found:
            return False
        if field in ("src", "dst"):
            net = ipaddress.ip_network(wanted)
            if found[field].version != net.version or found[field] not in net:
                return False
            continue
        low, _, high = str(wanted).partition("-")
        if not int(low, 0) <= found[field] <= int(high or low, 0):
            return False
    return True


# Matches that exclude each other, but not all frames between them.
GROUPS = (
    ({"vlan": 5}, {"vlan": 6, "dst_port": "4000-4003"}, {"vlan": 100, "src": "10.0.0.0/15"}),
    ({"vni": 5}, {"vni": 70000}, {"dst_port": 53}, {"protocol": 6, "dst_port": "4000-4788"}),
    ({"src": "2001:db8:1::/48"}, {"src": "10.2.0.0/16", "protocol": 17}, {"ethertype": "0x0806"}),
    ({"dst": "192.0.2.0/31"}, {"dst": "2001:db8:f::2/127", "dst_port": 4789}, {"dst": "192.0.2.3"}),
    ({"src_port": 53, "dst_port": "53-4003", "ethertype": "0x86dd"}, {"protocol": 1}),
)


def run_group(s, given, matches, name):
    count = len(matches)
    args = ",".join(
        ["net_pcap0"] + ["rx_pcap=in.pcap"] * count + [f"tx_pcap={name}{i}.pcap" for i in range(count)]
    )
    lanes = []
    for i, m in enumerate(matches):
        path = ("direct", "pinned", "staged")[i % 3]
        lanes.append(lane(f"l{i}", "p0", "p0", ["checksum"], path, match=m, slots=16))
        lanes[i]["rx"]["queue"] = lanes[i]["tx"][0]["queue"] = i
    r = s.run_idle(config({"p0": {"device": args, "steering": "software"}}, lanes))
    for i, m in enumerate(matches):
        wanted = [f for f in given if takes(m, f)]
        check(0 < len(wanted) < len(given), f"{m} takes {len(wanted)} of {len(given)}: no test")
        check_frames(s.frames(f"{name}{i}.pcap"), wanted, f"{m}")
        rest = len(given) - len(wanted)
        check_equal(r.drops(f"l{i}"), {"gpu_drop_unmatched": rest}, f"drops of {m}")
        counted = r.stage(f"l{i}", "match")
        check_equal(counted, {"matched": len(wanted), "other": rest}, f"counters of {m}")
        # The lane's own chain sees what the match takes alone.
        check_equal(r.stage(f"l{i}", "checksum")["frames"], len(wanted), "frames behind match")


@case
def each_lane_takes_the_frames_that_its_match_names_and_counts_the_rest(s):
    given = make(900, seed=41)
    kinds = fr.layers(given)
    for layer in ("Dot1Q", "ARP", "IP", "IPv6", "UDP", "TCP", "ICMP", "VXLAN"):
        check(layer in kinds, f"the input has no {layer}")
    s.pcap("in.pcap", given)
    for i, matches in enumerate(GROUPS):
        run_group(s, given, matches, f"g{i}-")


@case
def lanes_may_share_a_match(s):
    given = make(300, seed=42)
    s.pcap("in.pcap", given)
    run_group(s, given, ({"dst_port": 53}, {"dst_port": 53}), "shared")


sys.exit(main())
