#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`bench crossover` and `bench compare`: what they write, and how they end.

No figure is judged here but those that are counted: bytes copied, runs, cells. How fast a
path is depends on the machine.
"""
import csv
import json
import os
import shutil
import signal
import sys
import time

from harness import (
    CLEAN, CONFIG, FAILURE, GPU, PATIENCE, USAGE, Instance, Skipped, case, check, check_equal,
    main, processor_s, sentences, validate,
)  # fmt: skip

SMALL = ["bench", "crossover", "--sizes", "64,1518", "--batches", "8", "--touched", "header,all",
         "--repeats", "2", "--run-ms", "4", "--json"]  # fmt: skip
LONG = ["bench", "crossover", "--quick", "--repeats", "64", "--json"]


def bench(s, *args, status=CLEAN, prefix=()):
    r = s.command(*args, prefix=prefix)
    check(r.status == status, f"wanted status {status}, got {r.told()}")
    if "--json" in args:
        validate("bench.schema.json", r.stdout)
        r.report = json.loads(r.stdout)
    return r


def available(report):
    return [p["path"] for p in report["paths"] if p["available"]]


@case
def every_cell_has_every_available_path_with_all_its_runs(s):
    r = bench(s, *SMALL, "--output", "out.json", "--csv", "out.csv").report
    check_equal((r["complete"], r["virtual"], r["clock"]), (True, False, "cpu"), "what it is")
    check("software CUDA device" in r["note"], f"the note is {r['note']!r}")
    paths = available(r)
    check({"direct", "pinned"} <= set(paths), f"paths {r['paths']}")
    for p in r["paths"]:
        check(p["available"] or p["reason"], f"no reason for {p}")
    cells = [(c["touched"], c["batch"], c["size"], c["touched_bytes"]) for c in r["cells"]]
    check_equal(
        cells,
        [("header", 8, 64, 64), ("header", 8, 1518, 64), ("all", 8, 64, 64), ("all", 8, 1518, 1518)],
        "cells",
    )
    copied = {"direct": 0, "pinned": 0, "staged": 2}
    for c in r["cells"]:
        check_equal([p["path"] for p in c["paths"]], paths, "paths of a cell")
        for p in c["paths"]:
            for runs in p["runs"].values():
                check_equal(len(runs), 2, f"runs of {p}")
            check_equal(
                p["runs"]["host_bytes_copied_per_packet"],
                [copied[p["path"]] * c["size"]] * 2,
                f"bytes copied on {p['path']}",
            )
    check_equal(r["runs"], len(cells) * len(paths) * 2 * 2, "runs")
    check_equal(r["runs_failed"], 0, f"failed: {r['first_failure']}")
    check_equal({m["path"] for m in r["models"]}, set(paths), "models")
    check_equal(json.loads((s.path / "out.json").read_text())["cells"], r["cells"], "the file")
    with open(s.path / "out.csv", encoding="utf-8", newline="") as f:
        rows = list(csv.DictReader(f))
    check_equal(len(rows), len(cells) * len(paths), "rows of the CSV")
    check_equal({x["provider"] for x in rows}, {"sim"}, "providers of the CSV")


@case
def quick_ends_within_two_minutes(s):
    """One round over a part of its batches, of which the whole is told; a machine that others
    use makes it longer, so it is held to two minutes only by what its processors did."""
    if PATIENCE != 1:
        raise Skipped("a sanitizer build is slow")
    before = processor_s()
    r = bench(s, "bench", "crossover", "--quick", "--json", "--repeats", "1", "--batches", "32").report
    worked = processor_s() - before
    check(r["complete"], "not complete")
    check_equal(len(r["cells"]), 4 * 3, "cells")
    whole = worked * 3 * 3
    print(f"note: --quick takes about {whole:.0f} s of processor time")
    check(whole < 120, f"{r['runs']} runs took {worked:.0f} s of processor time")


@case
def virtual_time_says_so_and_repeats_itself(s):
    a, b = (bench(s, "bench", "crossover", "--virtual", "sockets", "--json").report for _ in "ab")
    check_equal((a["virtual"], a["clock"]), (True, "virtual"), "what it is")
    check("virtual time" in a["note"], f"the note is {a['note']!r}")
    check_equal(a["device"]["provider"], "model", "provider")
    check_equal(a["cells"], b["cells"], "cells of two replays")
    check_equal(available(a), ["direct", "pinned", "staged"], "paths")
    over = [c for c in a["crossovers"] if c["verdict"] == "b_over_a" and c["b"] == "pinned"]
    check(over, "beyond a socket host memory overtakes the direct way nowhere")
    check(all(64 < c["size"] < 9000 for c in over), f"crossovers {over}")


@case
def advice_is_near_the_best_on_every_machine_of_virtual_time(s):
    """Nothing is left to chance there, so that what is missed is the model's own."""
    for machine in ("switch", "sockets", "old"):
        r = bench(s, "bench", "crossover", "--virtual", machine, "--json").report
        a = r["advice"]
        check(a["held_out"], "a cell's own measurement advises it")
        check_equal(a["cells"], 8 * 6 * 3, f"{machine}: cells")
        check(a["holds"] and a["share"] >= 0.95, f"{machine}: {a}, {r['models']}")


@case
def a_plot_is_drawn_or_one_sentence_says_what_is_missing(s):
    args = ["bench", "crossover", "--virtual", "switch", "--sizes", "64,1518", "--batches", "1"]
    (s.path / "empty").mkdir()
    r = bench(s, *args, "--plot", "p.svg", prefix=["env", f"PATH={s.path / 'empty'}"], status=FAILURE)
    told = sentences(r.stderr)
    check(len(told) == 1 and "gnuplot-nox" in told[0], f"without gnuplot: {r.stderr}")
    if shutil.which("gnuplot") is None:
        raise Skipped("gnuplot is not installed")
    bench(s, *args, "--plot", "it's.svg")
    drawn = (s.path / "it's.svg").read_text(encoding="utf-8")
    check("virtual time" in drawn and "staged" in drawn, "the plot does not say what it shows")
    r = bench(s, *args, "--plot", "/dev/full", status=FAILURE)
    check("could not draw" in "".join(sentences(r.stderr)), f"a full disk: {r.stderr}")


@case
def bad_options_are_refused_with_a_sentence(s):
    for args in (
        [], ["fly"], ["crossover", "x"], ["crossover", "--sizes", "1518,64"],
        ["crossover", "--sizes", "59"], ["crossover", "--sizes", "9601"],
        ["crossover", "--batches", ""], ["crossover", "--batches", "1,,2"],
        ["crossover", "--touched", "some"], ["crossover", "--paths", "direct,direct"],
        ["crossover", "--repeats", "65"], ["crossover", "--slots", "3"],
        ["crossover", "--seed", "-1"], ["crossover", "--virtual", "moon"],
        ["crossover", "--virtual", "old", "--device", "sim"], ["crossover", "--device", "a b"],
        ["compare"], ["compare", "a"], ["compare", "a", "b", "c"],
    ):  # fmt: skip
        r = s.command("bench", *args)
        check_equal(r.status, USAGE, f"status of {args}: {r.told()}")
        check("usage: " in r.stderr, f"no usage of {args}: {r.stderr}")
        check_equal(r.stdout, "", f"stdout of {args}")


@case
def what_cannot_be_measured_is_refused_with_the_reason(s):
    r = bench(s, *SMALL, "--device", "0000:ff:1f.7", "--paths", "direct", status=CONFIG).report
    check("direct" in r["errors"][0]["message"], f"errors {r['errors']}")
    r = bench(s, *SMALL, "--device", "sim,nonsense=1", status=CONFIG).report
    check("nonsense" in r["errors"][0]["message"], f"errors {r['errors']}")


@case
def outputs_that_cannot_be_written_are_a_sentence_and_a_status(s):
    for file in ("no/such/folder", "."):
        before = processor_s()
        r = bench(s, *SMALL, "--output", file, status=FAILURE)
        worked = processor_s() - before
        check("cannot be written" in "".join(sentences(r.stderr)), f"{file}: {r.stderr}")
        check(worked < 1 * PATIENCE, f"{file}: said after {worked:.1f} s of a processor only")
    virtual = ["bench", "crossover", "--virtual", "switch", "--json"]
    r = bench(s, *virtual, "--output", "/dev/full", status=FAILURE)
    check("No space left" in "".join(sentences(r.stderr)), f"a full disk: {r.stderr}")
    (s.path / "old.json").write_text("x" * 100000)
    limit = ["prlimit", "--fsize=20000"]
    r = bench(s, *virtual, "--output", "old.json", status=FAILURE, prefix=limit)
    check("File too large" in "".join(sentences(r.stderr)), f"a limit of files: {r.stderr}")
    check_equal((s.path / "old.json").read_text(), "", "half a result was left")
    os.mkfifo(s.path / "pipe")
    bench(s, *virtual, "--csv", "pipe", status=FAILURE)


@case
def a_signal_leaves_a_result_that_says_that_it_is_partial(s):
    i = Instance(s, [s.millrace, *LONG, "--output", "part.json"])
    time.sleep(4)
    i.signal(signal.SIGINT)
    r = i.ended()
    check_equal(r.status, FAILURE, f"status: {r.told()}")
    validate("bench.schema.json", r.stdout)
    report = json.loads(r.stdout)
    check_equal((report["complete"], report["stopped"]), (False, "a signal"), "what it says")
    check(report["runs"] < report["runs_wanted"], f"{report['runs']} runs")
    check("partial" in "".join(sentences(r.stderr)), f"stderr: {r.stderr}")
    check_equal(json.loads((s.path / "part.json").read_text())["complete"], False, "the file")


@case
def a_device_that_is_lost_ends_the_measurement_with_what_there_is(s):
    args = ["bench", "crossover", "--json", "--run-ms", "10000", "--device", "sim,fault=die@0:1500"]
    r = bench(s, *args, status=GPU).report
    check_equal((r["complete"], r["runs"]), (False, 0), "what it says")
    check("device 'g'" in r["stopped"], f"stopped by {r['stopped']!r}")
    r = bench(s, *SMALL, "--device", "sim,fault=launch@1", status=FAILURE).report
    check("cuLaunchKernel" in r["errors"][0]["message"], f"errors {r['errors']}")


@case
def two_files_are_compared_and_other_schemas_refused(s):
    small = ["bench", "crossover", "--sizes", "64,9000", "--batches", "4,64", "--json"]
    bench(s, *small, "--virtual", "switch", "--output", "a.json")
    bench(s, *small, "--virtual", "old", "--output", "b.json")
    r = bench(s, "bench", "compare", "a.json", "b.json", "--json").report
    check_equal(len(r["rows"]), 2 * 2 * 3 * 3, "rows")
    check("model_machine" in r["differ"], f"differ {r['differ']}")
    slower = [x["packets_per_second"]["ratio"] for x in r["rows"] if x["size"] == 9000]
    check(all(x["median"] <= 1.01 for x in slower), f"ratios {slower}")
    same = bench(s, "bench", "compare", "a.json", "a.json", "--json").report
    check_equal(same["differ"], [], "a file and itself")
    check(all(x["latency_p50_ns"]["ratio"]["median"] == 1 for x in same["rows"]), "ratios of itself")
    text = bench(s, "bench", "compare", "a.json", "b.json").stdout
    check("they differ in" in text and "then" in text, f"as text: {text}")

    other = json.loads((s.path / "a.json").read_text())
    other["schema"] = 2
    s.write("c.json", other)
    s.write("d.json", "{\"bench\": 1}")
    s.write("e.json", "no JSON at all")
    for bad, word in (("c.json", "schema 2"), ("d.json", "is not what bench"),
                      ("e.json", "line 1"), ("none.json", "No such file"), (".", "directory")):  # fmt: skip
        for pair in (["a.json", bad], [bad, "a.json"]):
            r = bench(s, "bench", "compare", *pair, "--json", status=FAILURE)
            check(word in r.report["errors"][0]["message"], f"{bad}: {r.report}")


sys.exit(main())
