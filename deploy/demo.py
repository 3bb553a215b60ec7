# SPDX-License-Identifier: BSD-3-Clause
"""The demo's input, and the judgement of its output; the standard library only.

usage: demo.py make IN_PCAP                          write the frames
       demo.py judge IN_PCAP OUT_PCAP REPORT_JSON    exit status 0 if all is as it should be
The frames are IPv4/UDP over Ethernet of many sizes; the demo exchanges the Ethernet
addresses and sends every frame back.
"""
import json
import struct
import sys

FRAMES = 1000
SIZES = (60, 64, 128, 256, 512, 1024, 1280, 1514)
PCAP_MAGIC = 0xA1B2C3D4  # microseconds; draft-ietf-opsawg-pcap section 4
LINKTYPE_ETHERNET = 1


def internet_checksum(data):
    """RFC 1071; data has an even length."""
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def frame(number):
    size = SIZES[number % len(SIZES)]
    ethernet = bytes.fromhex("020000000002") + b"\x02\x00\x00\x01" + struct.pack(">H", number)
    ethernet += b"\x08\x00"
    payload = bytes((number + i) & 0xFF for i in range(size - 14 - 20 - 8))
    source, destination = b"\xc0\x00\x02\x01", b"\xc6\x33\x64\x01"  # RFC 5737
    length = 8 + len(payload)
    udp = struct.pack(">HHH", 1024 + number, 9, length)
    pseudo = source + destination + struct.pack(">HH", 17, length)
    whole = pseudo + udp + b"\0\0" + payload
    checksum = internet_checksum(whole + b"\0" * (len(whole) % 2)) or 0xFFFF
    udp += struct.pack(">H", checksum)
    ip = struct.pack(">BBHHHBB", 0x45, 0, 20 + length, number, 0, 64, 17)
    ip_checksum = internet_checksum(ip + b"\0\0" + source + destination)
    ip += struct.pack(">H", ip_checksum) + source + destination
    return ethernet + ip + udp + payload


def write_pcap(path, frames):
    with open(path, "wb") as f:
        f.write(struct.pack("<IHHiIII", PCAP_MAGIC, 2, 4, 0, 0, 65535, LINKTYPE_ETHERNET))
        for number, data in enumerate(frames):
            f.write(struct.pack("<IIII", 0, number, len(data), len(data)) + data)


def read_pcap(path):
    with open(path, "rb") as f:
        raw = f.read()
    frames = []
    at = 24
    while at + 16 <= len(raw):
        kept = struct.unpack_from("<I", raw, at + 8)[0]
        frames.append(raw[at + 16 : at + 16 + kept])
        at += 16 + kept
    return frames


def swapped(data):
    return data[6:12] + data[0:6] + data[12:]


def say(sentence):
    print("quickstart: " + sentence)


def guard_in_words(guard):
    if guard.startswith("on"):
        return "guard on: the lane's core had no access to packet memory"
    return f"guard {guard}: this machine gave no proof that the lane's core left packets alone"


def judge(in_path, out_path, report_path):
    with open(report_path, encoding="utf-8") as f:
        report = json.load(f)
    wanted = [swapped(data) for data in read_pcap(in_path)]
    got = read_pcap(out_path)
    faults = []
    say(f"{len(wanted)} frames in, {len(got)} frames out")
    if got == wanted:
        say("each came back in order, its Ethernet addresses swapped, nothing else changed")
    else:
        wrong = sum(a != b for a, b in zip(wanted, got)) + abs(len(wanted) - len(got))
        faults.append(f"{wrong} frames are missing or not as they should be")
    for device in report["devices"]:
        what = "the software device, no GPU was used" if device["provider"] == "sim" else "a GPU"
        say(f"device {device['name']}: {what}")
    for lane in report["lanes"]:
        dropped = sum(lane["drops"].values())
        say(
            f"lane {lane['name']}: {lane['rx_packets']} received, {lane['tx_packets']} sent, "
            f"{dropped} dropped, {lane['host_bytes_copied']} bytes copied by the host, "
            f"path {lane['path_verdict']}"
        )
        say(guard_in_words(lane["guard"]))
        if lane["rx_packets"] != len(wanted) or lane["tx_packets"] != len(got):
            faults.append(f"lane {lane['name']} counts other frames than the captures hold")
    if report["balanced"]:
        say("balanced: every packet is accounted for")
    else:
        faults.append("the run is not balanced: a packet is nowhere")
    for fault in faults:
        say("FAILED: " + fault)
    if not faults:
        say("all is well")
    return 1 if faults else 0


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "make":
        write_pcap(sys.argv[2], [frame(number) for number in range(FRAMES)])
        return 0
    if len(sys.argv) == 5 and sys.argv[1] == "judge":
        return judge(*sys.argv[2:])
    print(__doc__, file=sys.stderr)
    return 2


sys.exit(main())
