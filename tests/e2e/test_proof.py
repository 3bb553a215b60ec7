#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A path that is not what it seems: found, named, and either stopped or called unproven."""
import json
import signal
import sys

import frames as fr
from harness import (
    CLEAN, CONFIG, FAILURE, PATIENCE, USAGE, Instance, case, check, check_equal, complaints, config, lane, main,
    until, validate,
)  # fmt: skip

FLOOD = "net_null0,size=64,copy=0"

# What only a proof sees: options of the device, kind of evidence, words of its sentence.
LIES = (
    ("fault=short", "window", "what ports write is not what kernels read: a frame of 60 bytes"),
    ("fault=noread", "window", "what kernels write is not what ports read"),
    ("fault=hiddencopy", "window", "it is copied behind the back"),
    ("ordering=none,fault=noflush", "window", "not what kernels read, flushed or not"),
)


def one_lane(device, path="direct", port=FLOOD, **keys):
    return config({"p0": port}, [lane("l0", "p0", "p0", ["l2swap"], path=path)], device, **keys)


def evidence(r, check_name, name="l0"):
    return [e for e in r.lane(name)["evidence"] if e["check"] == check_name]


def refused(r, *says):
    said = complaints(r.stderr)
    check_equal(len(said), 1, f"sentences: {r.told()}")
    for words in says:
        check(words in said[0], f"'{words}' is not said: {said[0]}")
    check_equal(r.report["errors"][0]["message"], said[0].removeprefix("millrace: "), "message")


@case
def a_device_that_lies_is_refused_and_what_it_does_is_named(s):
    runs = [
        (s.start(one_lane(f"sim,{lie}"), "--duration", "1"), kind, says)
        for lie, kind, says in LIES
    ]
    for run, kind, says in runs:
        refused(run.wait(FAILURE), "lane 'l0': path direct is not what it seems", kind, says)


@case
def a_device_that_lies_and_runs_all_the_same_is_unproven(s):
    runs = [
        (s.start(one_lane(f"sim,{lie}", proof={"alarm": "go_on"}), "--duration", "0.2"), kind, says)
        for lie, kind, says in LIES
    ]
    for run, kind, says in runs:
        r = run.wait(CLEAN, "duration")
        check_equal(r.lane()["path_verdict"], "unproven", f"{says}: path_verdict")
        (told,) = evidence(r, kind)
        check_equal(told["verdict"], "FAIL", f"{says}: {kind}")
        check(says in told["value"], told["value"])
        (verdict,) = evidence(r, "verdict")
        check(kind in verdict["value"], verdict["value"])


@case
def lies_about_gpu_memory_do_not_touch_lanes_in_host_memory(s):
    runs = [
        s.start(one_lane(f"sim,{lie}", path="pinned"), "--duration", "0.2") for lie, _, _ in LIES
    ]
    for run in runs:
        r = run.wait(CLEAN, "duration")
        check_equal(r.lane()["path_verdict"], "pinned", r.told())


@case
def a_registration_that_fails_on_the_second_port_names_that_port(s):
    ports = {"p0": FLOOD, "p1": "net_null1,size=64,copy=0"}
    lanes = [lane(f"l{i}", f"p{i}", f"p{i}", ["l2swap"]) for i in range(2)]
    r = s.run(config(ports, lanes, "sim,fault=attach@2"), status=FAILURE)
    refused(r, "port 'p1'", "net_null1", "device 'g0'", "CUDA_ERROR_NOT_SUPPORTED")
    r = s.run(config(ports, lanes, "sim,fault=attach@3"), "--duration", "0.1", reason="duration")
    check_equal(len(evidence(r, "registration", "l1")), 1, "registrations of l1")


@case
def a_registration_that_is_revoked_stops_a_direct_lane_and_no_other(s):
    revoke = f"sim,fault=revoke@{int(300 * PATIENCE)}"
    direct = s.start(one_lane(revoke), "--duration", "20")
    pinned = s.start(one_lane(revoke, path="pinned"), "--duration", "3")
    r = direct.wait(FAILURE, "path_unproven")
    said = complaints(r.stderr)
    check_equal(len(said), 1, f"sentences: {r.stderr}")
    for words in ("lane 'l0'", "path direct no longer holds", "was revoked"):
        check(words in said[0], said[0])
    check_equal(r.lane()["path_verdict"], "unproven", "path_verdict of direct")
    check(r.report["duration_s"] < 3 * PATIENCE, f"told after {r.report['duration_s']} s")
    r = pinned.wait(CLEAN, "duration")
    said = complaints(r.stderr)
    check_equal(len(said), 1, f"sentences: {r.stderr}")
    check("is unproven from now on, and the lane goes on" in said[0], said[0])
    check_equal(r.lane()["path_verdict"], "unproven", "path_verdict of pinned")
    (told,) = evidence(r, "watch")
    check_equal(told["verdict"], "FAIL", told["value"])


@case
def a_running_instance_exports_whether_its_paths_are_proven(s):
    for device, proven in (("sim", 1), ("sim,fault=hiddencopy", 0)):
        run = s.start(one_lane(device, proof={"alarm": "go_on"}), "--duration", "20", name="metric")
        run.until_running()
        metrics = s.command("stats", "--name", "metric", "--prometheus").stdout
        run.signal()
        run.wait(CLEAN, "signal")
        labels = 'instance="metric",lane="l0",rx_path="direct",tx_path="direct"'
        told = [l for l in metrics.splitlines() if l.startswith("millrace_path_proven")]
        check_equal(told, [f"millrace_path_proven{{{labels}}} {proven}"], device)


@case
def frames_go_out_of_a_port_and_in_again_before_lanes_run(s):
    for path in ("direct", "pinned", "staged"):
        r = s.run(one_lane("sim", path, "net_ring0"), "--duration", "0.1", reason="duration")
        (told,) = evidence(r, "readback")
        check_equal(told["verdict"], "PASS", f"{path}: {told['value']}")
        check("port 'p0': 6 sizes of 60 to 1522 bytes" in told["value"], told["value"])
        check("0 frames of others dropped" in told["value"], told["value"])
        check_equal(r.lane()["path_verdict"], path, "path_verdict")
        check_equal(r.lane()["rx_packets"], 0, f"{path}: test frames that a lane met")


@case
def a_port_without_a_way_back_is_not_tried_unless_asked_and_then_refused(s):
    s.pcap("in.pcap", fr.make(10, seed=91))
    pcap = "net_pcap0,rx_pcap=in.pcap,tx_pcap=out.pcap"
    for port, why in ((FLOOD, "net_null drops what is sent"), (pcap, "in the user's capture")):
        r = s.run(one_lane("sim", port=port), "--duration", "0.1", reason="duration")
        (told,) = evidence(r, "readback")
        check_equal(told["verdict"], "NA", told["value"])
        check(why in told["value"], told["value"])
    r = s.run(one_lane("sim", port="net_ring0", proof={"readback": "off"}), "--duration", "0.1")
    (told,) = evidence(r, "readback")
    check_equal(told["verdict"], "NA", told["value"])
    asked = {"readback": "port"}
    r = s.run(one_lane("sim", proof=asked), "--duration", "1", status=FAILURE)
    refused(r, "lane 'l0'", "readback: only frames of others came back")
    r = s.run(
        one_lane("sim", "pinned", proof={**asked, "alarm": "stop"}), "--duration", "1",
        status=FAILURE,
    )  # fmt: skip
    refused(r, "lane 'l0': path pinned", "readback: only frames of others came back")
    r = s.run(one_lane("sim", "pinned", proof=asked), "--duration", "0.1", reason="duration")
    check_equal(r.lane()["path_verdict"], "unproven", "path_verdict")


@case
def doctor_tries_the_paths_of_a_configuration_and_runs_no_lane(s):
    tried = (
        (one_lane("sim", port="net_ring0"), "PASS", "lane 'l0' is direct: readback: 6 sizes"),
        (one_lane("sim"), "PASS", "lane 'l0' is direct: window: 6 sizes"),
        (one_lane("sim", "pinned", "net_ring0"), "PASS", "lane 'l0' is pinned: readback: 6 sizes"),
        (one_lane("sim,fault=short"), "FAIL", "lane 'l0' is unproven as direct: window: what"),
        (one_lane("sim,map=0"), "UNKNOWN", "lane 'l0' is unproven as direct: window: bytes"),
        (one_lane("sim", proof={"readback": "port"}), "FAIL", "readback: only frames of others"),
        (one_lane("sim,fault=attach@1"), "FAIL", "port 'p0' (net_null0): device 'g0'"),
    )
    for i, (cfg, verdict, says) in enumerate(tried):
        file = s.write(f"try{i}.yaml", json.dumps(cfg))
        for more in ((), ("--readback",)):
            r = s.command("doctor", "--json", *more, file)
            validate("doctor.schema.json", r.stdout)
            checks = {c["id"]: c for c in json.loads(r.stdout)["checks"]}
            told = checks["pair.readback"]
            check_equal(told["verdict"], verdict if more else "NA", f"{says}: {told}")
            check(says in told["value"] or not more, told["value"])
        check_equal(r.status == CONFIG, verdict == "FAIL", f"{says}: status {r.status}")
        check_equal(told["hint"] == "", verdict == "PASS", f"{says}: {told}")


@case
def doctor_that_is_told_to_stop_while_it_tries_leaves_nothing_behind(s):
    file = s.write("told.yaml", one_lane("sim", port="net_ring0"))
    kept = s.path / "run" / "dpdk" / "millrace-told"
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        run = Instance(s, [s.millrace, "doctor", "--json", "--readback", file])
        until(kept.exists, lambda: f"never begins to try: {run.stderr()}")
        run.signal(number)
        r = run.ended()
        validate("doctor.schema.json", r.stdout)
        told = {c["id"]: c for c in json.loads(r.stdout)["checks"]}["pair.readback"]
        # It may have been at its end already.
        check(told["verdict"] in ("UNKNOWN", "PASS"), f"{number}: {told}")
        if told["verdict"] == "UNKNOWN":
            check("told to stop before step" in told["value"] and told["hint"], f"{told}")
            check_equal(r.status, FAILURE, f"status after {number}")
        check(not kept.exists(), f"{number} leaves {kept}")


@case
def doctor_tries_nothing_without_a_configuration_on_another_machine_or_against_a_check(s):
    check_equal(s.command("doctor", "--readback").status, USAGE, "status without CONFIG")
    file = s.write("c.yaml", json.dumps(one_lane("sim", port="net_ring0")))
    r = s.command("doctor", "--readback", "--root", s.path, file)
    check_equal(r.status, USAGE, "status with a root")
    gone = s.write("gone.yaml", one_lane("sim", port="net_pcap0,rx_pcap=gone,tx_pcap=out"))
    r = s.command("doctor", "--json", "--readback", gone)
    check_equal(r.status, CONFIG, r.told())
    check("ports[0].device: rx_pcap 'gone' cannot be read" in r.stderr, r.stderr)
    check_equal(json.loads(r.stdout)["errors"][0]["key"], "ports[0].device", "key")
    real = s.write("real.yaml", json.dumps(one_lane("0000:ff:1f.7", "pinned")))
    r = s.command("doctor", "--json", "--readback", real)
    check_equal(r.status, CONFIG, r.told())
    checks = {c["id"]: c for c in json.loads(r.stdout)["checks"]}
    check_equal(checks["gpu.driver"]["verdict"], "FAIL", str(checks["gpu.driver"]))
    check_equal(checks["pair.readback"]["verdict"], "NA", str(checks["pair.readback"]))


sys.exit(main())
