#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A device that fails: a sentence, an honest status, no hang, no packet without a name."""
import sys

import frames as fr
from harness import (
    CLEAN, FAILURE, GPU, PATIENCE, Failed, Skipped, case, check, check_equal, check_frames,
    complaints, config, judge, lane, main, sees_threads, swapped,
)  # fmt: skip

# mr_cudasim.h has the list.
CALLS = ("alloc", "hostalloc", "register", "map", "module", "launch")
FLOOD = "net_null0,size=64,copy=0"
CALLS_MAX = 40  # more of one kind than a start makes
SOON_MS = int(600 * PATIENCE)  # frames pass before


def two_paths(device, out):
    """A start that allocates device and host memory and serves two divisions of work."""
    return config(
        {
            "p0": f"net_pcap0,rx_pcap=in.pcap,tx_pcap={out}-0.pcap",
            "p1": f"net_pcap1,rx_pcap=in.pcap,tx_pcap={out}-1.pcap",
        },
        [
            lane("l0", "p0", "p0", ["l2swap"]),
            lane("l1", "p1", "p1", ["checksum"], path="pinned", workers=2),
        ],
        device,
    )


def judge_refused(r, what):
    """One sentence on stderr, one line of JSON that holds the same sentence."""
    said = complaints(r.stderr)
    check_equal(len(said), 1, f"sentences with {what}: {r.told()}")
    check("device 'g0'" in said[0], f"{what}: the device is not named: {said[0]}")
    check_equal(r.stderr.count("g0"), 1, f"{what}: the device is named again: {r.stderr}")
    errors = r.report["errors"]
    check_equal(len(errors), 1, f"errors with {what}")
    check(errors[0]["message"] in said[0], f"{what}: {errors[0]['message']} is not {said[0]}")


@case
def every_device_call_that_fails_at_start_is_one_sentence_and_status_1(s):
    given = fr.make(100, seed=60)
    s.pcap("in.pcap", given)
    reached = {}
    for call in CALLS:
        for k in range(1, CALLS_MAX):
            what = f"{call}@{k}"
            run = s.start(two_paths(f"sim,fault={what}", what), "--idle-exit", str(0.5 * PATIENCE))
            r = run.ended()
            if r.status == CLEAN:
                break
            judge_refused(judge(r, FAILURE), what)
            check("CUDA_ERROR_" in complaints(r.stderr)[0], f"{what}: no error's name: {r.stderr}")
        else:
            raise Failed(f"{call} still fails at call {CALLS_MAX}")
        reached[call] = k - 1
        judge(r, CLEAN, "idle")
        check_frames(s.frames(f"{what}-0.pcap"), [swapped(f) for f in given], what)
    for call in CALLS:
        check(reached[call] > 0, f"no {call} was reached: {reached}")


def flood(device, stages=("l2swap",)):
    return config(
        {"p0": FLOOD}, [lane("l0", "p0", "p0", stages, batch={"packets": 8}, slots=4)], device
    )


@case
def a_lost_device_and_a_dead_worker_end_the_run_with_status_3(s):
    for fault in (f"lost@{SOON_MS}", f"die@0:{SOON_MS}"):
        r = s.run(flood(f"sim,fault={fault}"), "--duration", "20", status=GPU, reason="gpu_lost")
        took = r.report["duration_s"]
        check(took < 6 * PATIENCE, f"{fault}: noticed after {took} s")
        check_equal(len(complaints(r.stderr)), 1, f"sentences with {fault}: {r.stderr}")
        check("g0" in complaints(r.stderr)[0], f"{fault}: the device is not named: {r.stderr}")
        check_equal(r.report["devices"][0]["health"], "lost", "health")
        check_equal(r.lane()["path_verdict"], "unproven", "path_verdict")
        check(r.lane()["tx_packets"] > 0, "nothing was sent before the fault")


@case
def a_worker_that_stands_still_or_makes_no_progress_ends_the_run_with_status_3(s):
    faults = (f"stall@0:{SOON_MS}", f"idle@0:{SOON_MS}")
    runs = [s.start(flood(f"sim,fault={f}"), "--duration", "30") for f in faults]
    for fault, run in zip(faults, runs):
        r = run.wait(GPU, "gpu_stalled")
        took = r.report["duration_s"]
        check(took < 12 * PATIENCE, f"{fault}: noticed after {took} s")
        check_equal(len(complaints(r.stderr)), 1, f"sentences with {fault}: {r.stderr}")
        check("cannot be freed" not in r.stderr, f"{fault}: the driver has words too: {r.stderr}")
        check_equal(r.report["devices"][0]["health"], "stalled", "health")
        check(r.lane()["in_flight"] > 0, f"{fault}: nothing was left in flight")


@case
def a_copy_that_fails_or_never_ends_is_one_sentence_at_the_start_and_while_running(s):
    """The first two copies are the start's own, there and back."""
    s.pcap("in.pcap", fr.make(50, seed=64))
    words = {"copy": "cannot copy its packets", "copystall": "stream stands still"}
    for rx, tx in (("staged", "staged"), ("direct", "staged"), ("staged", "pinned")):
        def staged(fault, port=FLOOD):
            ln = lane("l0", "p0", "p0", ["l2swap"], batch={"packets": 8}, slots=4,
                      rx_path=[rx], tx_path=[tx])  # fmt: skip
            return config({"p0": port}, [ln], f"sim,fault={fault}", kernel={"stall_ms": 1500})

        what = f"{rx} to {tx}"
        for k in (1, 2):
            judge_refused(s.run(staged(f"copy@{k}"), status=FAILURE), f"{what}, copy@{k}")
        for fault, reason in (("copy", "gpu_lost"), ("copystall", "gpu_stalled")):
            r = s.run(staged(f"{fault}@40"), "--duration", "30", status=GPU, reason=reason)
            check(r.report["duration_s"] < 15 * PATIENCE, f"{what}, {fault}: {r.report['duration_s']} s")
            said = complaints(r.stderr)
            check_equal(len(said), 1, f"{what}: sentences with {fault}: {r.stderr}")
            check("'l0'" in said[0] and words[fault] in said[0], f"{what}, {fault}: {said[0]}")
            check(r.lane()["in_flight"] > 0, f"{what}, {fault}: nothing was left in flight")
            check_equal(r.lane()["path_verdict"], "unproven", f"{what}, {fault}: path_verdict")
    cfg = config({"p0": FLOOD}, [lane("l0", "p0", "p0", path="staged")], "sim,fault=copystall@1")
    judge_refused(s.run(cfg, status=FAILURE), "copystall@1")


@case
def a_staged_lane_ends_with_a_lost_device_and_a_dead_worker(s):
    for fault in (f"lost@{SOON_MS}", f"die@0:{SOON_MS}"):
        ln = lane("l0", "p0", "p0", ["l2swap"], path="staged", batch={"packets": 8}, slots=4)
        cfg = config({"p0": FLOOD}, [ln], f"sim,fault={fault}")
        r = s.run(cfg, "--duration", "20", status=GPU, reason="gpu_lost")
        check(r.report["duration_s"] < 6 * PATIENCE, f"{fault}: noticed after {r.report['duration_s']} s")
        check_equal(len(complaints(r.stderr)), 1, f"sentences with {fault}: {r.stderr}")
        check(r.lane()["tx_packets"] > 0, "nothing was sent before the fault")


# NVIDIA/nccl #683: a completion does not say that the GPU can read the data.
@case
def a_device_that_cannot_order_nic_writes_is_flushed_or_refused(s):
    given = fr.make(200, seed=61)
    s.pcap("in.pcap", given)
    port = {"p0": "net_pcap0,rx_pcap=in.pcap,tx_pcap=out.pcap"}
    # What the guard is takes two addresses for one byte, see sees_threads.
    both = "flush=both" if sees_threads(s.millrace) else "flush=both,guard=mprotect"
    for device in ("flush=host", "flush=memops", both):
        cfg = config(port, [lane("l0", "p0", "p0", ["l2swap"])], f"sim,ordering=none,{device}")
        r = s.run_idle(cfg)
        check_frames(s.frames("out.pcap"), [swapped(f) for f in given], device)
        told = [e["value"] for e in r.lane()["evidence"] if e["check"] == "ordering"]
        check(len(told) == 1 and "flushed" in told[0], f"evidence of ordering: {told}")
    cfg = config(port, [lane("l0", "p0", "p0", ["l2swap"])], "sim,ordering=none,flush=none")
    judge_refused(s.run(cfg, status=FAILURE), "flush=none")


# NVIDIA/nccl #683: a completion does not say that the GPU can read the data.
@case
def frames_are_stale_where_the_flush_does_nothing(s):
    """Without it the case above would prove nothing: this is what an omitted flush shows."""
    if sees_threads(s.millrace):
        raise Skipped("kernels and NIC share their addresses in this build")
    given = fr.make(200, seed=63)
    s.pcap("in.pcap", given)
    wanted = [swapped(f) for f in given]
    for path, stale in (("direct", len(given)), ("pinned", 0)):
        port = {"p0": f"net_pcap0,rx_pcap=in.pcap,tx_pcap={path}.pcap"}
        lanes = [lane("l0", "p0", "p0", ["l2swap"], path=path)]
        device = "sim,ordering=none,fault=noflush"
        r = s.run_idle(config(port, lanes, device, proof={"alarm": "go_on"}))
        verdict = "unproven" if path == "direct" else path
        check_equal(r.lane()["path_verdict"], verdict, f"{path}: path_verdict")
        got = s.frames(f"{path}.pcap")
        check_equal(len(got), len(given), f"{path}: frames")
        wrong = sum(g != w for g, w in zip(got, wanted))
        check_equal(wrong, stale, f"{path}: stale frames")


@case
def a_device_that_cannot_be_mapped_keeps_its_rings_in_host_memory(s):
    given = fr.make(200, seed=62)
    s.pcap("in.pcap", given)
    for path in ("direct", "pinned"):
        cfg = config(
            {"p0": f"net_pcap0,rx_pcap=in.pcap,tx_pcap={path}.pcap"},
            [lane("l0", "p0", "p0", ["l2swap"], path=path)],
            "sim,map=0",
        )
        s.run_idle(cfg)
        check_frames(s.frames(f"{path}.pcap"), [swapped(f) for f in given], path)


sys.exit(main())
