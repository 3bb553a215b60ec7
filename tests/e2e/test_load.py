#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A source that never ends, through every overload mode, over the pool that the plan computes.

    test_load.py MILLRACE

What a sink that takes little does, and a packet a second, is tests/load/load_modes.c.
"""
import json
import sys

from harness import (
    CLEAN, CONFIG, PATIENCE, Failed, case, check, check_equal, config, fewer, lane, main, validate,
)  # fmt: skip

FLOOD = "net_null0,size=1024,copy=0"
BATCHES = (1, 2, 7, 32, 64, 512)


def flood(stages, **keys):
    port = {"device": FLOOD, "rx_ring": 128, "tx_ring": 128}
    return config({"p0": port}, [lane("l0", "p0", "p0", stages, slots=4, **keys)])


def pool_of(s, cfg):
    r = s.command("check", s.write("plan.yaml", cfg), "--json", "--no-host")
    check_equal(r.status, CLEAN, f"check: {r.told()}")
    validate("check.schema.json", r.stdout)
    return json.loads(r.stdout)["lanes"][0]["pool"]


def run_over(s, cfg, times):
    """Runs until more than that many pools have come; longer on a machine without time."""
    pool = pool_of(s, cfg)["buffers"]
    seconds = 0.4
    for _ in range(3):
        r = s.run(cfg, "--duration", f"{seconds:g}", reason="duration")
        came = r.lane()["rx_packets"]
        if came > times * pool:
            return r
        seconds = min(max(3, 2 * seconds * times * pool / (came + 1)), 60 * PATIENCE)
    raise Failed(f"{came} packets came over {pool} buffers: {r.told()}")


@case
def more_than_ten_pools_pass_each_mode_and_batch_and_all_are_accounted_for(s):
    for batch in BATCHES:
        for overload in ("block", "shed"):
            # The checksum of a kilobyte is slower than a port that makes frames of nothing.
            cfg = flood(["checksum"], batch={"packets": batch}, overload=overload)
            r = run_over(s, cfg, 10)
            drops = r.drops()
            shed = drops.pop("rx_drop_shed", 0)
            check_equal(drops, {}, f"batch {batch}, {overload}: drops")
            check((shed > 0) == (overload == "shed"), f"batch {batch}, {overload}: {shed} shed")


@case
def a_million_packets_pass_a_staged_lane_and_one_of_two_paths_in_every_overload_mode(s):
    wanted = 1000000 if PATIENCE == 1 else 100000
    for paths in ({"path": "staged"}, {"rx_path": ["pinned"]}):
        for overload in ("block", "shed"):
            cfg = flood(["l2swap"], overload=overload, **paths)
            cfg["ports"][0]["device"] = "net_null0,size=64,copy=0"
            for seconds in (1, 4, 16, 60):
                r = s.run(cfg, "--duration", f"{seconds * PATIENCE:g}", reason="duration")
                ln = r.lane()
                if ln["tx_packets"] > wanted / 2:
                    break
            what = f"{paths}, {overload}"
            check(ln["tx_packets"] > wanted / 2, f"{what}: {ln['tx_packets']} were sent")
            drops = r.drops()
            shed = drops.pop("rx_drop_shed", 0)
            check_equal(drops, {}, f"{what}: drops")
            check(shed == 0 or overload == "shed", f"{what}: {shed} shed")
            staged = 2 if "path" in paths else 0
            check_equal(ln["host_bytes_copied"], staged * 64 * ln["tx_packets"], what)
            check_equal(ln["counters"]["gpu_bytes_copied"], (2 - staged) // 2 * ln["tx_bytes"], what)


@case
def a_pool_of_exactly_the_minimum_carries_a_hundred_times_itself(s):
    for batch in (1, 64, 512):
        cfg = flood(["l2swap"], batch={"packets": batch})
        cfg["lanes"][0]["buffers"] = pool_of(s, cfg)["buffers_min"]
        r = run_over(s, cfg, fewer(100, "pools"))
        check_equal(r.drops(), {}, f"batch {batch}: drops")


@case
def one_buffer_below_the_minimum_is_refused_by_the_plan(s):
    cfg = flood(["l2swap"], batch={"packets": 64})
    least = pool_of(s, cfg)["buffers_min"]
    cfg["lanes"][0]["buffers"] = least - 1
    r = s.run(cfg, status=CONFIG)
    check_equal(len(r.report["errors"]), 1, f"errors: {r.told()}")
    error = r.report["errors"][0]
    check_equal(error["key"], "lanes[0].buffers", "key")
    wanted = f"{least - 1} buffers are fewer than can rest in the lane: "
    check(error["message"].startswith(wanted), f"message: {error['message']}")
    check(str(least) in error["hint"], f"hint: {error['hint']}")
    check(wanted in r.stderr, f"stderr: {r.stderr}")


sys.exit(main())
