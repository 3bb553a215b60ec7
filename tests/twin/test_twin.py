#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""DMA straight into another PCI device's memory, by DPDK's own driver of an emulated NIC
behind an emulated IOMMU: rx into the BAR, tx from it, and what finds that it does not hold.

usage: test_twin.py MILLRACE CACHE UNMAPPED [-k WORD]

UNMAPPED is the same program with rte_dev_dma_map left out. Each case boots a guest of its
own (machine.py) and asks it several things, since a boot takes longer than an answer.
"""
import json
import pathlib
import re
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))

import frames as fr  # noqa: E402
from harness import (  # noqa: E402
    CLEAN, CONFIG, FAILURE, GPU, PATIENCE, PORT, Result, case, check, check_equal, check_frames, config, judge, lane,
    main, sentences, swapped,
)  # fmt: skip
from machine import BAR, NIC, Machine, Parts  # noqa: E402

NIC2 = "0000:00:05.0"
EXIT_S = 20
NOTICED_S = 1.0


class Twin(Machine):
    """A machine with a millrace in it."""

    def write(self, name, cfg):
        self.put(f"{name}.yaml", json.dumps(cfg))

    def begin(self, name, cfg, program="millrace", args=""):
        """Starts a run and returns once its lanes run, or it has ended."""
        self.write(name, cfg)
        self.must(
            f"cd /job; {program} run {name}.yaml --json {args} >{name}.json 2>{name}.err & "
            f"echo $! >/job/{name}.pid"
        )
        until = f"grep -q ' runs ' /job/{name}.err || ! kill -0 $(cat /job/{name}.pid)"
        self.must(f"for i in $(seq 200); do if {until}; then break; fi; usleep 100000; done; true", 40)

    def end(self, name, signal="TERM", status=CLEAN, reason=None):
        """Ends a run, or waits for its own end (signal None), and judges its report."""
        if signal is not None:
            self.run(f"kill -{signal} $(cat /job/{name}.pid)")
        gone = f"! kill -0 $(cat /job/{name}.pid) 2>/dev/null"
        self.must(f"for i in $(seq {EXIT_S * 10}); do {gone} && break; usleep 100000; done; {gone}", EXIT_S + 20)
        return self.ended(name, status, reason) if signal != "KILL" else None

    def ended(self, name, status=CLEAN, reason=None):
        told = [self.must(f"cat /job/{name}.{kind}") for kind in ("json", "err")]
        return judge(Result(status, *told, 0), status, reason)

    def stats(self, name):
        return json.loads(self.must(f"millrace stats --name {name} --json"))

    def doctor(self, cfg):
        """The verdicts of doctor for a configuration, by id, and its status."""
        self.write("doctor", cfg)
        status, told = self.run("cd /job; millrace doctor doctor.yaml --json 2>/dev/null")
        report = json.loads(told)
        return {c["id"]: c for c in report["checks"]}, status


PARTS = {}


def parts(s):
    if not PARTS:
        # Outlives the case that made it, like the kernel.
        cache = pathlib.Path(s.others[0])
        cache.mkdir(parents=True, exist_ok=True)
        PARTS["only"] = Parts(cache, [s.millrace, s.others[1]], cache)
    return PARTS["only"]


def cfg(stages=("l2swap",), ports=None, lanes=None, region="16MiB", bar=BAR, **keys):
    ports = ports or {"p0": {"device": NIC, "rx_ring": 256, "tx_ring": 256}}
    lanes = lanes or [lane("l0", "p0", "p0", list(stages), slots=16)]
    return config(ports, lanes, f"sim,bar={bar}", region=region, **keys)


# Whether a NIC reaches the BAR is known only by frames that go out and come back.
READBACK = {"readback": "port"}


def check_direct(r, name="l0", proven=False):
    ln = r.lane(name)
    check_equal(ln["rx_path"], "direct", f"path of {name}")
    check_equal(ln["path_verdict"], "direct" if proven else "unproven", f"path of {name}: {ln['evidence']}")
    check_equal((ln["guard"], ln["guard_by"]), ("on", "pkey"), f"guard of {name}")
    check_equal(ln["host_bytes_copied"], 0, f"bytes that the host copied for {name}")
    check_equal(r.drops(name), {}, f"drops of {name}")


def loop(g, name, given, wanted=None, wire=0, back=None):
    """Frames in at one wire, what comes out of another, in order."""
    wanted = wanted if wanted is not None else [swapped(f) for f in given]
    sending = g.wires[wire]
    if back is None or back == wire:
        got = sending.exchange(given, len(wanted))
    else:
        got = relay(sending, g.wires[back], given, len(wanted))
    check_frames(got, wanted, name)


def relay(sending, receiving, given, count, window=200, timeout=40):
    receiving.collect()
    receiving.got.clear()
    end = time.monotonic() + timeout
    sent = 0
    while len(receiving.got) < count and time.monotonic() < end:
        if sent < len(given) and sent - len(receiving.got) < window:
            sent += sending.send(given[sent : sent + 1], 0.1)
        else:
            time.sleep(0.0005)
        receiving.collect()
    return receiving.got


class Returning:
    """While it holds, what comes out at a wire goes back in."""

    def __init__(self, wire):
        self.wire = wire
        self.on = True
        self.thread = threading.Thread(target=self.turn)

    def turn(self):
        while self.on:
            self.wire.collect()
            frames, self.wire.got = self.wire.got, []
            self.wire.send(frames)
            time.sleep(0.001)

    def __enter__(self):
        self.wire.quiet()
        self.thread.start()

    def __exit__(self, *_):
        self.on = False
        self.thread.join()


def machine(s, name, **keys):
    return Twin(parts(s), s.path / name, **keys)


@case
def frames_go_into_the_bar_and_out_of_it_with_the_cpu_locked_out(s):
    g = machine(s, "loop", nics=("e1000e", "e1000e"))
    try:
        g.bind(NIC, NIC2)
        given = fr.make(3000, seed=81)
        with Returning(g.wires[0]):
            g.begin("swap", cfg(proof=READBACK))
        loop(g, "l2swap", given)
        r = g.end("swap")
        check_direct(r, proven=True)
        check_equal(r.lane()["rx_packets"], len(given), "packets received")
        # What came in lies, as it went out, in the file behind the BAR.
        memory = g.bar()
        check(any(memory.find(swapped(f)) >= 0 for f in given[-50:]), "no frame lies in the BAR")

        g.begin("keep", cfg(("drop",)))
        kept = fr.make(200, seed=82)
        check_equal(g.wires[0].send(kept), len(kept), "frames that the NIC took")
        until = time.monotonic() + 20
        while g.stats("keep")["lanes"][0]["rx_packets"] < len(kept) and time.monotonic() < until:
            time.sleep(0.2)
        memory = g.bar()
        missing = [i for i, f in enumerate(kept) if memory.find(f) < 0]
        check(not missing, f"frames {missing[:5]} and others, {len(missing)} in all, are not in the BAR")
        r = g.end("keep")
        check_equal(r.lane()["rx_path"], "direct", "path")

        ports = {"p0": {"device": NIC}, "p1": {"device": NIC2}}
        two = [lane("l0", "p0", "p1", ["checksum", "l2swap"], slots=16),
               lane("l1", "p1", "p0", ["l2swap", "forward"], slots=16)]  # fmt: skip
        g.begin("two", cfg(ports=ports, lanes=two, region="32MiB"))
        loop(g, "port 0 to 1", given[:1000], wire=0, back=1)
        loop(g, "port 1 to 0", given[1000:2000], wire=1, back=0)
        r = g.end("two")
        for name in ("l0", "l1"):
            check_direct(r, name)
            check_equal(r.lane(name)["tx_packets"], 1000, f"packets that {name} sent")

        # Ended in the middle of it, by a word and by force; the next start finds nothing in its way.
        for word in ("TERM", "KILL"):
            g.begin("again", cfg())
            g.wires[0].send(given[:500], 1)
            g.run(f"kill -{word} $(cat /job/again.pid)")
            g.wires[0].send(given[500:900], 1)
            if word == "TERM":
                g.end("again", None)
            else:
                g.end("again", "KILL")
        g.begin("last", cfg())
        g.wires[0].follow(given[999], swapped(given[999]))
        loop(g, "after a kill", given[:500])
        check_direct(g.end("last"))
    finally:
        g.close()


@case
def another_nic_does_the_same(s):
    g = machine(s, "e1000", nics=("e1000",))
    try:
        g.bind(NIC)
        given = fr.make(1000, seed=83)
        with Returning(g.wires[0]):
            g.begin("e1000", cfg(proof=READBACK))
        loop(g, "e1000", given)
        check_direct(g.end("e1000"), proven=True)
    finally:
        g.close()


@case
def a_driver_that_copies_short_frames_sends_from_host_memory_alone(s):
    g = machine(s, "vmxnet3", nics=("vmxnet3",))
    ports = {"p0": {"device": NIC}}
    try:
        g.bind(NIC)
        g.begin("ring", cfg())
        told = g.must("cat /job/ring.err")
        check("tx_ring 256" in told and "512 to 4096" in told, f"a ring that is too short: {told}")
        g.begin("direct", cfg(ports=ports))
        told = g.must("cat /job/direct.err")
        check("net_vmxnet3" in told and "set tx_path: [staged]" in told, f"all direct: {told}")
        mixed = [lane("l0", "p0", "p0", ["l2swap"], slots=16, rx_path=["direct"], tx_path=["staged"])]
        g.begin("mixed", cfg(ports=ports, lanes=mixed, region="32MiB"))
        given = fr.make(1000, seed=90)
        # QEMU's model drops what its socket does not take at once: a handful of datagrams.
        got = g.wires[0].exchange(given, len(given), window=4)
        r = g.end("mixed")
        ln = r.lane()
        check_equal((ln["rx_path"], ln["tx_path"]), ("direct", "staged"), "paths")
        check_equal((ln["rx_packets"], r.drops("l0")), (len(given), {}), "received, dropped")
        check_equal(r.report["ports"][0]["tx_errors"], 0, "frames that the device lost")
        check_frames(got, [swapped(f) for f in given], "vmxnet3")
    finally:
        g.close()


@case
def without_registration_no_byte_passes_and_the_iommu_says_so(s):
    g = machine(s, "unmapped")
    try:
        g.bind(NIC)
        given = fr.make(200, seed=84, low=200)
        g.begin("unmapped", cfg(("forward",)), program="millrace-unmapped")
        # Few at first: the kernel stops telling after ten faults.
        g.wires[0].send(given[:3])
        told, end = "", time.monotonic() + 10 * PATIENCE
        while "DMA Read" not in told and time.monotonic() < end:
            time.sleep(0.5)
            told = g.must("dmesg | grep DMAR: || true")
        g.wires[0].send(given)
        time.sleep(2)
        g.wires[0].collect()
        memory = g.bar()
        inside = [i for i, f in enumerate(given) if memory.find(f[14:]) >= 0]
        check_equal(inside, [], "frames in the BAR")
        check(not any(f in given for f in g.wires[0].got), "a frame came back")
        check(re.search(r"DMAR: \[DMA Write.*00:03.0", told), f"the IOMMU says nothing of a write: {told}")
        check(re.search(r"DMAR: \[DMA Read.*00:03.0", told), f"the IOMMU says nothing of a read: {told}")
        check_equal(g.stats("unmapped")["lanes"][0]["path_verdict"], "unproven", "path without read-back")
        g.end("unmapped", "KILL")
        proven = cfg(("forward",), proof=READBACK)
        with Returning(g.wires[0]):
            g.begin("proven", proven)
            r = g.end("proven")
            told = [e for e in r.lane()["evidence"] if e["check"] == "readback"]
            check_equal([e["verdict"] for e in told], ["PASS"], f"read-back: {told}")
            check_equal(r.lane()["path_verdict"], "direct", "path_verdict")
            g.begin("refused", proven, program="millrace-unmapped")
            r = g.end("refused", None, FAILURE)
        (error,) = r.report["errors"]
        says = "lane 'l0': path direct is not what it seems: readback: "
        check(error["message"].startswith(says), error["message"])
    finally:
        g.close()


@case
def doctor_tells_how_the_iommu_stands(s):
    wanted = {
        # NIC bound, iommu.type, nic.driver
        "on": (True, "PASS", "PASS"),
        "passthrough": (True, "PASS", "PASS"),
        "off": (False, "PASS", "FAIL"),
    }
    for kind, (bound, iommu, driver) in wanted.items():
        g = machine(s, kind, iommu=kind)
        try:
            if bound:
                g.bind(NIC)
            checks, status = g.doctor(cfg())
            check_equal(checks["iommu.type"]["verdict"], iommu, f"{kind}: {checks['iommu.type']}")
            check_equal(checks["nic.driver"]["verdict"], driver, f"{kind}: {checks['nic.driver']}")
            value = {"on": "translated", "passthrough": "one to one", "off": "no IOMMU group"}[kind]
            check(value in checks["iommu.type"]["value"], f"{kind}: {checks['iommu.type']}")
            check_equal(status == CONFIG, driver == "FAIL", f"{kind}: failed, status {status}")
            if bound:
                g.begin(kind, cfg())
                loop(g, kind, fr.make(300, seed=85))
                check_direct(g.end(kind))
        finally:
            g.close()


SWITCH = ["-device", "pcie-root-port,id=r1,bus=pcie.0,chassis=1,slot=1,addr=6",
          "-device", "x3130-upstream,id=u1,bus=r1"]  # fmt: skip


def below(port, bus, chassis, slot, device):
    return ["-device", f"xio3130-downstream,id={port},bus={bus},chassis={chassis},slot={slot}",
            "-device", f"{device},bus={port}"]  # fmt: skip


NIC_DEVICE = "e1000e,netdev=n0,id=nic0,mac=52:54:00:00:00:01"
BAR_DEVICE = "ivshmem-plain,memdev=gpu,id=bar"
LAYOUTS = {
    # name: QEMU's devices, where NIC and BAR then are, what lies between them
    "root": (
        ["-device", "pcie-root-port,id=r1,bus=pcie.0,chassis=1,slot=1,addr=6",
         "-device", "pcie-root-port,id=r2,bus=pcie.0,chassis=2,slot=2,addr=7",
         "-device", f"{NIC_DEVICE},bus=r1", "-device", f"{BAR_DEVICE},bus=r2"],
        "0000:01:00.0", "0000:02:00.0", "PHB",
    ),
    "one switch": (
        SWITCH + below("d1", "u1", 2, 1, NIC_DEVICE) + below("d2", "u1", 3, 2, BAR_DEVICE),
        "0000:03:00.0", "0000:04:00.0", "PIX",
    ),
    "two switches": (
        SWITCH + below("d1", "u1", 2, 1, NIC_DEVICE)
        + below("d2", "u1", 3, 2, "x3130-upstream,id=u2")
        + below("d3", "u2", 4, 1, BAR_DEVICE),
        "0000:03:00.0", "0000:06:00.0", "PXB",
    ),
}  # fmt: skip


@case
def the_way_between_nic_and_bar_is_named_in_three_layouts(s):
    for name, (devices, nic, bar, near) in LAYOUTS.items():
        g = machine(s, name.replace(" ", "-"), devices=devices)
        try:
            g.bind(nic)
            made = cfg(ports={"p0": {"device": nic}}, bar=bar)
            checks, _ = g.doctor(made)
            topology = checks["pair.topology"]
            check(re.search(rf"{bar} to {nic}: {near}\b", topology["value"]), f"{name}: {topology}")
            check_equal(checks["pcie.mps"]["verdict"] in ("PASS", "WARN"), True, f"{name}: {checks['pcie.mps']}")
            check(checks["pcie.acs"]["verdict"] != "UNKNOWN", f"{name}: {checks['pcie.acs']}")
            g.begin("way", made)
            loop(g, name, fr.make(300, seed=86))
            check_direct(g.end("way"))
        finally:
            g.close()


@case
def large_bars_are_registered_and_small_ones_refused(s):
    for gib in (1, 4):
        g = machine(s, f"bar{gib}", bar_mib=gib << 10, memory=768)
        try:
            g.bind(NIC)
            g.begin("large", cfg(region=f"{gib * 1024 - 64}MiB", kernel={"driver_ms": 60000}))
            loop(g, f"{gib} GiB", fr.make(300, seed=87))
            check_direct(g.end("large"))
            if gib == 1:
                g.begin("small", cfg(region="2GiB"))
                told = g.must("cat /job/small.err")
                check("cuMemAlloc_v2 of 2147483648 bytes" in told, f"a BAR too small: {told}")
                check(not any(" runs " in line for line in sentences(told)), told)
        finally:
            g.close()


@case
def a_device_that_is_pulled_ends_the_run_with_its_own_status(s):
    devices, nic, bar, _ = LAYOUTS["root"]
    for pulled, status, reason in (("bar", GPU, "gpu_lost"), ("nic0", PORT, "port_lost")):
        g = machine(s, f"pull-{pulled}", devices=devices)
        try:
            g.bind(nic)
            g.begin("pull", cfg(ports={"p0": {"device": nic}}, bar=bar))
            loop(g, "before", fr.make(200, seed=88))
            address = nic if pulled == "nic0" else bar
            note = "cut -d' ' -f1 /proc/uptime"
            g.must(f"(while [ -e /sys/bus/pci/devices/{address} ]; do usleep 2000; done; {note} >/job/gone) & "
                   f"(while ! grep -qE 'lost|was removed' /job/pull.err; do usleep 2000; done; {note} >/job/said) & true")
            g.monitor(f"device_del {pulled}")
            g.wires[0].send(fr.make(2000, seed=89), 3)
            g.end("pull", None, status=status, reason=reason)
            g.must(f"for i in $(seq 100); do [ -e /sys/bus/pci/devices/{address} ] || break; usleep 100000; done; "
                   f"[ ! -e /sys/bus/pci/devices/{address} ]; usleep 100000", 20)
            # vfio relays the kernel's wish and waits; the other device is just gone.
            if pulled == "nic0":
                told = g.must("dmesg | grep 'Relaying device request'")
                since = float(re.search(r"\[ *([\d.]+)\]", told)[1])
            else:
                since = float(g.must("cat /job/gone"))
            took = float(g.must("cat /job/said")) - since
            print(f"     {pulled}: said {took:.2f} s after the kernel's notice", flush=True)
            check(took < NOTICED_S * PATIENCE, f"{pulled}: said {took:.2f} s after the kernel's notice")
        finally:
            g.close()


sys.exit(main(at_once=1))  # a guest uses both processors
