#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Overload and every way to stop: nothing is lost without a name, and it ends in time."""
import signal
import sys
import time

import frames as fr
from harness import (
    CLEAN, FAILURE, GPU, PATIENCE, UNDRAINED, case, check, check_equal, check_frames, complaints, config, judge,
    lane, main, swapped, until,
)  # fmt: skip

DRAIN_MS = 1000
MARGIN_S = 2.5 * PATIENCE  # joins, and a machine that does other things as well

# Frames without end, faster than one worker sums them up.
FLOOD = "net_null0,size=1500,copy=0"


def flood(overload="block", device="sim", stages=("checksum",), drain_ms=DRAIN_MS, **keys):
    ln = lane(
        "l0", "p0", "p0", stages,
        batch={"packets": 4, "timeout_us": 20}, slots=2, overload=overload, **keys,
    )  # fmt: skip
    return config({"p0": FLOOD}, [ln], device, drain_ms=drain_ms)


def stop(run, number=signal.SIGTERM, after_s=0.5, **keys):
    """Sends the signal and judges how long the end took."""
    run.until_running()
    time.sleep(after_s)
    at = run.signal(number)
    r = run.wait(**keys)
    took = time.monotonic() - at
    check(took < DRAIN_MS / 1e3 + MARGIN_S, f"took {took:.1f} s to stop")
    return r


@case
def overload_shed_counts_what_it_frees_and_block_frees_nothing(s):
    shed = stop(s.start(flood("shed")), reason="signal")
    check(set(shed.drops()) == {"rx_drop_shed"}, f"drops: {shed.drops()}")
    check(shed.lane()["tx_packets"] > 0, "nothing was sent")
    block = stop(s.start(flood("block")), reason="signal")
    check_equal(block.drops(), {}, "drops")
    check(block.lane()["counters"]["ring_full"] > 0, "the ring was never full: no overload")
    check_equal(block.lane()["tx_packets"], block.lane()["rx_packets"], "tx_packets")


@case
def sigterm_and_sigint_under_load_drain_and_end_in_time_with_status_0(s):
    for number in (signal.SIGTERM, signal.SIGINT):
        r = stop(s.start(flood(stages=["l2swap"])), number, reason="signal")
        ln = r.lane()
        check_equal(ln["in_flight"], 0, "in_flight")
        check(ln["tx_packets"] > 50, f"no load: {ln['tx_packets']} packets")
        check_equal(ln["tx_packets"], ln["rx_packets"], "tx_packets")
        check_equal(ln["state"], "halt", "state")


@case
def nohup_asks_to_stay_whatever_sighup_says(s):
    run = s.start(flood(), "--duration", "3", prefix=["nohup"]).until_running()
    run.signal(signal.SIGHUP)
    run.wait(reason="duration")


@case
def two_signals_at_once_end_it_and_are_no_fault(s):
    run = s.start(flood()).until_running()
    run.signal()
    run.signal(signal.SIGINT)
    run.signal(signal.SIGPIPE)
    r = run.ended()
    # The second asks for haste, unless it came before the first was looked at.
    check(r.status in (CLEAN, UNDRAINED), r.told())
    judge(r, r.status, "signal")


# A process that stands still has kernels that do as well, on the software device.
@case
def a_pause_is_no_fault_and_one_beyond_the_hosts_timeout_is_called_that(s):
    short = s.start(flood()).until_running()
    keys = {"kernel": {"host_timeout_ms": 500}}
    long = s.start({**flood(), **keys}).until_running()
    for run in (short, long):
        run.signal(signal.SIGSTOP)
    time.sleep(2)
    for run in (short, long):
        run.signal(signal.SIGCONT)
    time.sleep(1)
    check(short.process.poll() is None, f"did not go on: {short.stderr()}")
    if long.process.poll() is None:
        long.signal()
    short.signal()
    short.wait(reason="signal")
    r = long.ended()
    if r.status == CLEAN:
        judge(r, CLEAN, "signal")
    else:
        judge(r, FAILURE, "host_silent")
        check("the process was stopped" in complaints(r.stderr)[0], r.stderr)


@case
def a_signal_before_the_lanes_run_is_not_lost(s):
    run = s.start({**flood(), "log": {"level": "debug"}})
    until(lambda: "millrace: step " in run.stderr(), lambda: f"no step: {run.stderr()}")
    run.signal()
    run.wait(reason="signal")


@case
def duration_ends_the_run_when_it_is_over(s):
    r = s.run(flood(), "--duration", "1", reason="duration")
    check(1.0 <= r.report["duration_s"] < 1.0 + MARGIN_S, f"duration_s {r.report['duration_s']}")
    check(r.lane()["tx_packets"] > 0, "nothing was sent")


@case
def idle_exit_waits_for_the_last_packet_and_not_for_ever(s):
    given = fr.make(2500, seed=50)
    s.pcap("in.pcap", given)
    cfg = config(
        {"p0": "net_pcap0,rx_pcap=in.pcap,tx_pcap=out.pcap"}, [lane("l0", "p0", "p0", ["l2swap"])]
    )
    r = s.run(cfg, "--idle-exit", "1", reason="idle")
    check_frames(s.frames("out.pcap"), [swapped(f) for f in given], "output")
    check(1.0 <= r.report["duration_s"] < 6.0 * PATIENCE, f"duration_s {r.report['duration_s']}")


@case
def a_lane_that_never_falls_idle_does_not_end_by_idle_exit(s):
    r = s.run(flood(), "--idle-exit", "0.3", "--duration", "1.2", reason="duration")
    check(r.lane()["rx_packets"] > 0, "nothing was received")


# A worker stands still, which the watch takes seconds to call a stall.
STALLS = "sim,fault=stall@0:300"


def judge_left(r):
    left = r.lane()["in_flight"]
    check(left > 0, "nothing was left in flight")
    said = complaints(r.stderr)
    check(len(said) == 1 and f"{left} packets" in said[0], f"sentences: {r.stderr}")
    check("did not leave" in said[0], f"the kernel that stays is not named: {r.stderr}")


@case
def a_second_signal_stops_at_once_and_says_what_was_left(s):
    run = s.start(flood(device=STALLS, drain_ms=60000)).until_running()
    time.sleep(1.0)
    run.signal()
    time.sleep(0.5)
    check(run.process.poll() is None, "did not try to drain")
    at = run.signal()
    r = run.wait(UNDRAINED, "signal")
    check(time.monotonic() - at < 2 + MARGIN_S, f"took {time.monotonic() - at:.1f} s")
    judge_left(r)


@case
def a_lane_that_cannot_drain_ends_after_drain_ms_and_says_what_was_left(s):
    run = s.start(flood(device=STALLS, drain_ms=700)).until_running()
    time.sleep(1.0)
    at = run.signal()
    r = run.wait(UNDRAINED, "signal")
    took = time.monotonic() - at
    check(0.6 < took < 0.7 + 4 + MARGIN_S, f"took {took:.1f} s to stop")
    judge_left(r)


@case
def a_device_lost_in_the_drain_is_told_of_as_at_any_other_time(s):
    """Nobody receives from p1, so the drain would take a minute."""
    ln = lane("l0", "p0", "p1", ["l2swap"], batch={"packets": 8}, slots=4, tx_timeout_us=0)
    die_ms = int(4000 * PATIENCE)
    cfg = config(
        {"p0": FLOOD, "p1": "net_ring0"}, [ln], f"sim,fault=die@0:{die_ms}", drain_ms=60000
    )
    run = s.start(cfg).until_running()
    until(lambda: run.stats()["lanes"][0]["tx_packets"] == 1023, "p1 is never full")
    at = run.signal()
    time.sleep(0.2)
    check(run.process.poll() is None, "there was no drain")
    r = run.wait(GPU, "gpu_lost")
    check(time.monotonic() - at < die_ms / 1e3 + MARGIN_S + 3, "the drain went on")
    check(r.lane()["in_flight"] > 0, "nothing was in flight")
    said = complaints(r.stderr)
    check(len(said) == 1 and "device 'g0'" in said[0], f"sentences: {r.stderr}")


sys.exit(main())
