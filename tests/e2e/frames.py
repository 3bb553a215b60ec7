# SPDX-License-Identifier: BSD-3-Clause
"""frames: frames of every kind and size, the same for the same seed.

Headers come from scapy, which also says what an exchange of the Ethernet addresses is.
"""
import logging
import random

logging.getLogger("scapy").setLevel(logging.ERROR)

from scapy.layers.inet import ICMP, IP, TCP, UDP  # noqa: E402
from scapy.layers.inet6 import IPv6  # noqa: E402
from scapy.layers.l2 import ARP, Dot1Q, Ether  # noqa: E402
from scapy.packet import Raw  # noqa: E402


def _mac(rng):
    # Unicast and multicast, never equal: a swap of equal addresses shows nothing.
    return ":".join(f"{rng.randrange(256):02x}" for _ in range(6))


def _headers(rng, kind):
    base = Ether(dst=_mac(rng), src=_mac(rng))
    v4 = IP(src="192.0.2.1", dst="198.51.100.1", id=rng.randrange(65536))
    v6 = IPv6(src="2001:db8::1", dst="2001:db8::2")
    ports = {"sport": rng.randrange(1024, 65536), "dport": 53}
    stack = {
        "ipv4-udp": lambda: base / v4 / UDP(**ports),
        "ipv4-tcp": lambda: base / v4 / TCP(flags="PA", **ports),
        "ipv4-icmp": lambda: base / v4 / ICMP(),
        "ipv6-udp": lambda: base / v6 / UDP(**ports),
        "ipv6-tcp": lambda: base / v6 / TCP(flags="S", **ports),
        "arp": lambda: base / ARP(op=2, psrc="192.0.2.1", pdst="192.0.2.2"),
        "vlan": lambda: base / Dot1Q(vlan=rng.randrange(1, 4095)) / v4 / UDP(**ports),
        "qinq": lambda: Ether(dst=base.dst, src=base.src, type=0x88A8)
        / Dot1Q(vlan=rng.randrange(1, 4095), prio=5)
        / Dot1Q(vlan=rng.randrange(1, 4095))
        / v6
        / UDP(**ports),
        "random": lambda: Ether(dst=base.dst, src=base.src, type=0x88B5),
        "llc": lambda: Ether(dst=base.dst, src=base.src, type=0x0003),
    }
    return stack[kind]()


KINDS = (
    "ipv4-udp ipv4-tcp ipv4-icmp ipv6-udp ipv6-tcp arp vlan qinq random llc".split()
)


def make(count, seed=1, low=60, high=1514):
    """count frames of low to high bytes; both bounds and odd sizes among them."""
    rng = random.Random(seed)
    frames = []
    heads = [bytes(_headers(rng, KINDS[i % len(KINDS)])) for i in range(200)]
    for i in range(count):
        size = low if i == 0 else high if i == 1 else rng.randrange(low, high + 1)
        head = bytearray(heads[i % len(heads)][:size])
        head[0:12] = rng.randbytes(12)
        frames.append(bytes(head) + rng.randbytes(size - len(head)))
    return frames


def plain(count, seed=1, size=64):
    """count small frames that tell their number, for tests about order and counting."""
    rng = random.Random(seed)
    head = rng.randbytes(12) + b"\x88\xb5"
    return [head + i.to_bytes(4, "big") + bytes(size - 18) for i in range(count)]


def swapped_by_scapy(frame):
    """The frame with its addresses exchanged, by scapy's own dissection of the header."""
    header = Ether(frame[:14])
    header.src, header.dst = header.dst, header.src
    return bytes(header) + frame[14:]


def layers(frames):
    """The names of all layers that scapy finds in the frames."""
    seen = set()
    for frame in frames:
        layer = Ether(frame)
        while layer and not isinstance(layer, Raw):
            seen.add(layer.__class__.__name__)
            layer = layer.payload
    return seen


def ones_complement_sum(frame):
    """RFC 1071: 16-bit big-endian words, the odd byte padded on the right, carries folded."""
    if len(frame) % 2:
        frame += b"\0"
    total = 0
    for i in range(0, len(frame), 2):
        total += int.from_bytes(frame[i : i + 2], "big")
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total
