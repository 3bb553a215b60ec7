#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""unpack in the real program, its results taken from the wire and judged by numpy: the model and the
judge are those of tests/unit/test_windows.py.

usage: test_unpack.py MILLRACE [-k WORD]
"""
import pathlib
import random
import sys

from harness import case, check, check_equal, config, lane, main, read_pcap, write_pcap

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "unit"))
import test_windows as judge  # noqa: E402


def run(s, frames, params):
    """Frames through unpack: its counters, its results, and the frames that went on."""
    write_pcap(s.path / "in.pcap", frames)
    (s.path / "formats.txt").write_bytes(judge.FORMATS)
    given = {"result_dst": "192.0.2.1", "result_src": "192.0.2.2", "late_ms": 1000000,
             "formats": str(s.path / "formats.txt"), **params}  # fmt: skip
    cfg = config(
        {"in": {"device": "net_pcap0,rx_pcap=in.pcap,tx_pcap=out.pcap", "mtu": 9000}},
        [lane("l0", "in", "in", [{"use": "unpack", "params": given}], tick_us=1000)],
    )
    counters = s.run_idle(cfg).stage("l0", "unpack")
    out = read_pcap(s.path / "out.pcap")
    told = [f for f in out if f[26:30] == bytes((192, 0, 2, 2))]
    results = [judge.records(f) for f in told]
    check_equal([r["number"] for r in results], list(range(len(results))), "numbers of the results")
    check_equal(counters["results_lost"], 0, "results that were lost")
    check_equal(counters["received"], sum(counters[k] for k in
        ("placed", "duplicate", "late", "malformed", "unknown", "filtered", "overflow")), "packets")  # fmt: skip
    return counters, results, [f for f in out if f not in told]


@case
def every_format_is_told_as_numpy_says_and_goes_on_or_ends(s):
    rng = random.Random(3)
    for n, (form, bits) in enumerate((("vrt", 12), ("custom-time", 10), ("vdif", 2), ("rtp", 16), ("custom", 1))):
        setting = judge.Setting(bits, n % 2, n // 2 % 2, 1 + n % 3, 1 - (1 << bits >> 2))
        packets, model, params, wire = judge.stream_of(rng, form, setting, 400)
        arrive = judge.disturbed(rng, packets)
        for p in arrive:
            model.packet(p)
        model.end()
        forward = "true" if n % 2 else "false"
        counters, results, passed = run(s, [p.wire for p in arrive], {**dict(setting.params() + params), "forward": forward})
        judge.compare(form, setting, model, results, wire)
        check_equal(passed, [p.wire for p in arrive] if n % 2 else [], f"{form}: frames that went on")
        check_equal(counters["windows"], len(model.told), f"{form}: windows")
        check(counters["duplicate"] > 0 and counters["incomplete"] > 0, f"{form}: {counters}")


@case
def a_window_is_told_when_nothing_more_comes(s):
    """Without an end: the file is over, and the tick of a running lane closes what is old."""
    frames = [judge.rtp(i, bytes(16)) for i in range(40)]
    counters, results, _ = run(s, frames, {"window_units": 32, "late_ms": 50, "bits": 8})
    told = [r for result in results for r in result["records"]]
    check_equal([(r["at"], r["expected"], r["units"]) for r in told], [(0, 32, 32), (32, 32, 8)], "windows")
    check_equal(told[1]["flags"] & judge.AGED, judge.AGED, "the last one's age")
    check_equal(counters["aged"], 1, "counter")


@case
def what_cannot_be_is_refused_by_name(s):
    for params, says in (
        ({"bits": "3"}, "bits"),
        ({"order": "middle"}, "order"),
        ({"channels": "5"}, "channels"),
        ({"window_units": "0"}, "window_units"),
        ({"result_dst": "10.0.0.1"}, "result_src"),
    ):
        cfg = config({"in": "net_null0"}, [lane("l0", "in", "in", [{"use": "unpack", "params": params}])])
        r = s.command("check", s.write("bad.yaml", cfg))
        check_equal(r.status, 78, f"status of {params}: {r.told()}")
        check(says in r.stderr, f"{says!r} is not in {r.stderr!r}")


if __name__ == "__main__":
    sys.exit(main())
