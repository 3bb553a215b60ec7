#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Packets in, packets out: captures through the real lanes, judged by scapy and by hand."""
import itertools
import sys

import frames as fr
from harness import (
    FAILURE, case, check, check_equal, check_frames, config, lane, main, swapped,
)  # fmt: skip

JUMBO = 9014  # an MTU of 9000 and the Ethernet header


def pcap_port(number, rx=None, tx=None, **keys):
    args = [f"net_pcap{number}"]
    args += [f"rx_pcap={rx}"] if rx else []
    args += [f"tx_pcap={tx}"] if tx else []
    return {"device": ",".join(args), **keys}


def one_lane(stages, *, mtu=1500, device="sim", tx="out.pcap", rx="in.pcap", **keys):
    return config(
        {"p0": pcap_port(0, rx, tx, mtu=mtu)}, [lane("l0", "p0", "p0", stages, **keys)], device
    )


PATHS = ("direct", "pinned", "staged")


def judge_bus(ln, packets):
    """A chain that leaves frames in place: what crosses the bus is they, and less than 64 bytes
    between two."""
    by_host, bus = ln["host_bytes_copied"], ln["counters"]["bus_bytes_copied"]
    ways = (ln["rx_path"] == "staged") + (ln["tx_path"] == "staged")
    check(by_host <= bus <= by_host + 63 * ways * packets, f"{bus} bytes crossed the bus for {by_host}")


def judge_copies(ln, rx, tx, received, sent):
    """Who copied how many bytes: the host on either staged way, the kernel between two paths."""
    worse = max(rx, tx, key=PATHS.index)
    check_equal((ln["rx_path"], ln["tx_path"], ln["path_verdict"]), (rx, tx, worse), "paths")
    by_host = (received if rx == "staged" else 0) + (sent if tx == "staged" else 0)
    check_equal(ln["host_bytes_copied"], by_host, f"{rx} to {tx}: host_bytes_copied")
    by_gpu = sent if rx != tx else 0
    check_equal(ln["counters"]["gpu_bytes_copied"], by_gpu, f"{rx} to {tx}: gpu_bytes_copied")
    if worse == "staged":
        check_equal(ln["guard"], "unavailable", "guard of a lane whose core copies packets")


@case
def every_frame_of_60_to_9014_bytes_is_swapped_as_scapy_swaps_it_on_every_path_and_mix(s):
    given = fr.make(2000, seed=7, high=JUMBO) + fr.make(1000, seed=8, high=128)
    kinds = fr.layers(given)
    for layer in ("Dot3", "IP", "IPv6", "UDP", "TCP", "ICMP", "ARP", "Dot1Q", "Dot1AD"):
        check(layer in kinds, f"the input has no {layer}")
    check(any(len(f) % 2 for f in given), "the input has no odd size")
    wanted = [fr.swapped_by_scapy(f) for f in given]
    check_frames([swapped(f) for f in given[:50]], wanted[:50], "this test's own swap")
    s.pcap("in.pcap", given)
    whole = sum(map(len, given))
    for rx, tx in itertools.product(PATHS, PATHS):
        out = f"{rx}-{tx}.pcap"
        # The mixed ones are asked for by side, the others by one list for both.
        by_side = {"rx_path": [rx], "tx_path": [tx]} if rx != tx else {}
        r = s.run_idle(one_lane(["l2swap"], mtu=9000, tx=out, path=rx, slots=16, **by_side))
        check_frames(s.frames(out), wanted, out)
        ln = r.lane()
        check_equal(ln["rx_packets"], len(given), "rx_packets")
        check_equal(ln["tx_packets"], len(given), "tx_packets")
        check_equal(ln["rx_bytes"], whole, "rx_bytes")
        check_equal(ln["tx_bytes"], whole, "tx_bytes")
        judge_copies(ln, rx, tx, whole, whole)
        judge_bus(ln, len(given))
        check_equal(r.drops(), {}, "drops")
    direct = (s.path / "direct-direct.pcap").read_bytes()
    check(len(direct) > 24 + sum(map(len, given)), "the output is too short")


@case
def runts_are_counted_by_name_and_absent_from_output(s):
    whole = fr.make(300, seed=3, low=14, high=200)
    runts = [bytes(range(n)) for n in range(1, 14)] * 3
    mixed = list(whole)
    for i, runt in enumerate(runts):
        mixed.insert(i * 7, runt)
    s.pcap("in.pcap", mixed)
    for paths in ({}, {"path": "staged"}, {"rx_path": ["pinned"]}, {"tx_path": ["staged"]}):
        r = s.run_idle(one_lane(["l2swap"], **paths))
        check_frames(s.frames("out.pcap"), [swapped(f) for f in whole], f"output of {paths}")
        check_equal(r.drops(), {"gpu_drop_runt": len(runts)}, f"drops of {paths}")
        ln = r.lane()
        check_equal(ln["rx_packets"], len(mixed), "rx_packets")
        # A runt is copied to the kernel, and not back.
        received, sent = sum(map(len, mixed)), sum(map(len, whole))
        judge_copies(ln, ln["rx_path"], ln["tx_path"], received, sent)


@case
def frames_longer_than_a_buffer_are_counted_by_name_and_absent_from_output(s):
    whole = fr.make(200, seed=4, high=1522)  # two VLAN tags above the MTU still fit
    giants = [bytes(fr.make(2, seed=n, low=n, high=n)[0]) for n in (1700, 2001, 4000, 9000)]
    mixed = list(whole)
    for i in range(40):
        mixed.insert(i * 5, giants[i % len(giants)])
    s.pcap("in.pcap", mixed)
    for paths in ({}, {"path": "staged"}):
        r = s.run_idle(one_lane(["l2swap"], **paths))
        check_frames(s.frames("out.pcap"), [swapped(f) for f in whole], f"output of {paths}")
        check_equal(r.drops(), {"rx_drop_oversize": 40}, f"drops of {paths}")
        check_equal(r.lane()["rx_bytes"], sum(map(len, mixed)), "rx_bytes")


@case
def checksum_totals_are_those_of_rfc_1071_and_the_frames_stay_as_they_are(s):
    special = [b"\0" * 64, b"\xff" * 64, b"\xff" * 65, b"\0" * 61 + b"\x01"]
    given = special + fr.make(700, seed=5, low=14, high=1514)
    s.pcap("in.pcap", given)
    chains = {"c": ["checksum"], "cs": ["checksum", "l2swap"], "sc": ["l2swap", "checksum"]}
    ports, lanes = {}, []
    for i, (name, stages) in enumerate(chains.items()):
        ports[name] = pcap_port(i, "in.pcap", f"{name}.pcap")
        lanes.append(lane(name, name, name, stages, workers=1 + i))
    r = s.run_idle(config(ports, lanes))
    for name, stages in chains.items():
        # Exchanging 16-bit words leaves a sum of 16-bit words as it was.
        check_equal(
            r.stage(name, "checksum"),
            {
                "frames": len(given),
                "bytes": sum(map(len, given)),
                "sum": sum(fr.ones_complement_sum(f) for f in given),
            },
            f"counters of chain {stages}",
        )
        wanted = [swapped(f) for f in given] if "l2swap" in stages else given
        check_frames(s.frames(f"{name}.pcap"), wanted, f"chain {stages}")


@case
def dropped_frames_are_counted_under_the_reason_of_the_stage_and_not_sent(s):
    given = fr.make(150, seed=6)
    s.pcap("in.pcap", given)
    reasons = ("window", "runt", "policy", "malformed", "consumed", "result_full")
    ports, lanes = {}, []
    for i, reason in enumerate(reasons):
        ports[f"p{i}"] = pcap_port(i, "in.pcap", f"{reason}.pcap")
        stage = {"use": "drop", "params": {"reason": reason}}
        lanes.append(lane(reason.replace("_", "-"), f"p{i}", f"p{i}", [stage]))
    r = s.run_idle(config(ports, lanes))
    for reason in reasons:
        name = reason.replace("_", "-")
        check_equal(r.drops(name), {f"gpu_drop_{reason}": len(given)}, f"drops of {reason}")
        check_equal(r.lane(name)["tx_packets"], 0, "tx_packets")
        check_equal(s.frames(f"{reason}.pcap"), [], "output")


@case
def nothing_runs_after_a_drop(s):
    given = fr.make(50, seed=9)
    s.pcap("in.pcap", given)
    r = s.run_idle(one_lane(["drop", "checksum"]))
    check_equal(r.drops(), {"gpu_drop_policy": len(given)}, "drops")
    check_equal(r.stage("l0", "checksum")["frames"], 0, "frames summed after the drop")


@case
def forward_sends_to_that_entry_of_the_tx_list_alone(s):
    given = fr.make(500, seed=10)
    s.pcap("in.pcap", given)
    for port, (first, second) in enumerate(((given, []), ([], given))):
        cfg = config(
            {"p0": pcap_port(0, "in.pcap", f"a{port}.pcap"), "p1": pcap_port(1, tx=f"b{port}.pcap")},
            [
                lane(
                    "l0", "p0", ["p0", "p1"], [{"use": "forward", "params": {"port": port}}],
                    path=("staged", "direct")[port], tx_path=["staged"],
                )
            ],
        )
        r = s.run_idle(cfg)
        check_frames(s.frames(f"a{port}.pcap"), first, f"port 0 with forward to {port}")
        check_frames(s.frames(f"b{port}.pcap"), second, f"port 1 with forward to {port}")
        check_equal(r.drops(), {}, "drops")


@case
def an_empty_chain_sends_every_frame_unchanged_to_the_first_port(s):
    given = fr.make(300, seed=11)
    s.pcap("in.pcap", given)
    s.run_idle(one_lane([]))
    check_frames(s.frames("out.pcap"), given, "output")


# (batch, slots, workers): every value of each, small rings with many workers among them.
SHAPES = (
    (1, 2, 1), (1, 2, 2), (1, 64, 4), (2, 4, 3), (7, 2, 1), (7, 8, 4), (7, 64, 2),
    (64, 2, 2), (64, 16, 3), (64, 64, 1), (512, 2, 1), (512, 4, 4), (3, 32, 4), (100, 8, 2),
)  # fmt: skip


@case
def order_is_kept_and_nothing_is_lost_for_every_batch_ring_and_worker_count(s):
    given = fr.plain(3001, seed=12)  # a multiple of no batch above 1
    s.pcap("in.pcap", given)
    wanted = [swapped(f) for f in given]
    for at in range(0, len(SHAPES), 7):
        ports, lanes = {}, []
        for i, (batch, slots, workers) in enumerate(SHAPES[at : at + 7]):
            name = f"b{batch}s{slots}w{workers}"
            ports[name] = pcap_port(i, "in.pcap", f"{name}.pcap")
            stages = ["l2swap"] if i % 2 == 0 else ["checksum", "l2swap"]
            lanes.append(
                lane(
                    name, name, name, stages,
                    batch={"packets": batch, "timeout_us": 50}, slots=slots, workers=workers,
                    rx_path=[PATHS[i % 3]], tx_path=[PATHS[(i + i // 3) % 3]],
                )
            )  # fmt: skip
        r = s.run_idle(config(ports, lanes))
        for ln in r.report["lanes"]:
            check_frames(s.frames(f"{ln['name']}.pcap"), wanted, ln["name"])
            check_equal(ln["tx_packets"], len(given), f"tx_packets of {ln['name']}")
            batch = int(ln["name"][1:].split("s")[0])
            check(
                ln["counters"]["slots_given"] * batch >= len(given),
                f"{ln['name']}: more packets in a slot than the batch",
            )


# NVIDIA/l2fwd-nv src/main.cpp:432: a batch waits for ever for the packets that it lacks.
@case
def a_single_packet_is_delivered_without_waiting_for_a_full_batch(s):
    s.pcap("in.pcap", fr.plain(1))
    for timeout_us in (0, 1000000):  # an idle device gets its slot at once in any case
        r = s.run_idle(one_lane(["l2swap"], batch={"packets": 512, "timeout_us": timeout_us}))
        check_frames(s.frames("out.pcap"), [swapped(f) for f in fr.plain(1)], "output")
        check(r.lane()["latency_ns"]["max"] < 900e6, f"waited: {r.lane()['latency_ns']}")


# nvidia-holoscan/daqiri #43: an integrated GPU has no GPUDirect, and the run fails late.
@case
def gpu_memory_that_a_nic_could_not_reach_is_refused_and_its_dma_buf_is_evidence(s):
    s.pcap("in.pcap", fr.plain(3))
    for device, verdict in (("sim", "PASS"), ("sim,dmabuf=0", "NA")):
        r = s.run_idle(one_lane(["l2swap"], device=device))
        told = [e["verdict"] for e in r.lane()["evidence"] if e["check"] == "dma_buf"]
        check_equal(told, [verdict], f"evidence of dma-buf on {device}")
    r = s.run(one_lane(["l2swap"], device="sim,gdr=0"), status=FAILURE)
    check("no GPUDirect RDMA" in r.stderr and "path: [pinned]" in r.stderr, r.stderr)
    s.run_idle(one_lane(["l2swap"], device="sim,gdr=0", path="pinned"))


@case
def a_software_port_claims_no_registration(s):
    s.pcap("in.pcap", fr.plain(3))
    r = s.run_idle(one_lane(["l2swap"]))
    told = [e["value"] for e in r.lane()["evidence"] if e["check"] == "registration"]
    check(len(told) == 1 and "none needed" in told[0], f"evidence of registration: {told}")


@case
def an_empty_capture_gives_an_empty_capture(s):
    s.pcap("in.pcap", [])
    r = s.run_idle(one_lane(["l2swap"]))
    check_equal(s.frames("out.pcap"), [], "output")
    check_equal(r.lane()["rx_packets"], 0, "rx_packets")


sys.exit(main())
