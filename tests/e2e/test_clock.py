#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The time of day is stepped while a run goes on: nothing that Millrace measures or waits for
goes by it.

usage: test_clock.py MILLRACE STEPPED_CLOCK [-k WORD]
"""
import email.utils
import json
import re
import signal
import struct
import sys
import time
import urllib.request

from harness import (
    PATIENCE, WAIT_S, Instance, case, check, check_equal, complaints, config, free_port, lane, main, pcapng_blocks,
    until,
)  # fmt: skip

HOUR, DAY = 3600, 86400
FLOOD = "net_null0,size=64,copy=0"


class Clock:
    """The time of day of what is started in this scratch folder."""

    def __init__(self, s):
        self.file = s.path / "step"
        self.step(0)
        s.env["STEPPED_CLOCK"] = str(self.file)
        # Of the run alone: what asks it keeps the machine's time.
        self.prefix = ["env", f"LD_PRELOAD={s.others[0]}"]

    def step(self, seconds):
        with open(self.file, "r+b" if self.file.exists() else "wb") as f:
            f.write(struct.pack("=q", seconds))
        self.seconds = seconds


def flood(port=None):
    keys = {"http": {"listen": f"127.0.0.1:{port}"}} if port else {}
    return config({"p0": FLOOD}, [lane("l0", "p0", "p0", ["l2swap"], workers=2)], **keys)


@case
def steps_of_a_clock_leave_packets_latencies_rates_and_limits_as_they_are(s):
    clock = Clock(s)
    port = free_port()
    run = s.start(flood(port), prefix=clock.prefix).until_running()
    began = time.monotonic()

    def ask(path):
        """The answer, when it came, and the date that it carries."""
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=WAIT_S) as answer:
            date = email.utils.parsedate_to_datetime(answer.headers["Date"]).timestamp()
            return json.load(answer), time.monotonic(), date

    before, at, _ = ask("/api/v1/status")
    for step in (2 * DAY, -4 * DAY, HOUR, 0):
        clock.step(step)
        r = s.command("reload", "--name", run.name)
        check_equal(r.status, 0, f"a reload after a step of {step} s: {r.told()}")
        end = time.monotonic() + WAIT_S
        sent = before["lanes"][0]["tx_packets"]
        while (asked := ask("/api/v1/status"))[0]["lanes"][0]["tx_packets"] == sent:
            check(time.monotonic() < end, f"no packet leaves after a step of {step} s")
        now, then, date = asked
        check(abs(date - time.time() - step) < 60, f"the process does not see a step of {step} s: {date}")
        # Rates are what was counted between two answers by the time between them.
        passed = now["uptime_s"] - before["uptime_s"]
        check(abs(passed - (then - at)) < 2 * PATIENCE, f"{passed} s passed in {then - at:.1f} s")
        latency = now["lanes"][0]["latency_ns"]
        check(0 < latency["max"] < (then - began + 5) * 1e9, f"latencies after a step of {step} s: {latency}")
        check_equal(now["lanes"][0]["state"], "run", "state")
        before, at = now, then
    said = [line for line in complaints(run.stderr()) if "reloaded" not in line]
    steps = [re.search(r"the time of day was set (forward|back) by ([\d.]+) s[,;]", line) for line in said]
    check(all(steps), run.stderr())
    told = [float(step[2]) * (1 if step[1] == "forward" else -1) for step in steps]
    for is_, wanted in zip(told, (2 * DAY, -6 * DAY, 4 * DAY + HOUR, -HOUR), strict=True):
        check(abs(is_ - wanted) < 1, f"steps that were told: {told}")
    took = time.monotonic() - began
    run.signal()
    r = run.wait(reason="signal")
    ran = r.report["duration_s"]
    check(took - 5 < ran < took + 20 * PATIENCE, f"duration_s {ran} of a run of {took:.1f} s")


@case
def a_duration_goes_on_over_steps(s):
    clock = Clock(s)
    run = s.start(flood(), "--duration", str(4 * PATIENCE), prefix=clock.prefix).until_running()
    at = time.monotonic()
    clock.step(-DAY)
    time.sleep(0.5)
    check(run.process.poll() is None, "ended by a step back")
    clock.step(DAY)
    time.sleep(0.5)
    check(run.process.poll() is None, "ended by a step forth")
    run.wait(reason="duration")
    check(time.monotonic() - at < 4 * PATIENCE + 20, "a duration was stretched by a step")


def packet_times(path):
    """In seconds."""
    bodies = [body for kind, body in pcapng_blocks(path.read_bytes() if path.exists() else b"") if kind == 6]
    return [(high << 32 | low) / 1e9 for high, low in (struct.unpack_from("<II", body, 4) for body in bodies)]


@case
def packets_that_are_captured_have_the_time_of_day_as_it_is_set(s):
    clock = Clock(s)
    # One frame of 512 is asked for, so that a flood makes a small file.
    s.pcap("in.pcap", [bytes(12) + b"\x88\xb5" + bytes([n == 0] * 50) for n in range(512)])
    cfg = config({"p0": "net_pcap0,rx_pcap=in.pcap,infinite_rx=1", "p1": FLOOD}, [lane("l0", "p0", "p1", ["l2swap"])])
    run = s.start(cfg, prefix=clock.prefix).until_running()
    out = s.path / "out.pcapng"
    client = Instance(s, [s.millrace, "capture", "l0", "--name", run.name, "--filter", "ether[14] = 1", "-w", out])
    steps = [0, 2 * DAY, -4 * DAY, 0]
    for step in steps:
        clock.step(step)
        until(
            lambda: any(abs(t - time.time() - step) < HOUR for t in packet_times(out)[-1:]),
            lambda: f"no packet after a step of {step} s: {client.stderr()}",
        )
    client.signal(signal.SIGINT)
    check_equal(client.ended().status, 0, "capture")
    days = [round((t - time.time()) / DAY) * DAY for t in packet_times(out)]
    check_equal([d for i, d in enumerate(days) if i == 0 or d != days[i - 1]], steps, "steps of the packets' times")
    run.signal()
    run.wait(reason="signal")


sys.exit(main())
