#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The command line: usage, configuration errors, and what check and stages print."""
import json
import os
import pathlib
import socket
import subprocess
import sys

from harness import (
    CLEAN, CONFIG, FAILURE, PATIENCE, SOURCE, USAGE, case, check, check_equal, complaints, config,
    lane, main, validate,
)  # fmt: skip


@case
def wrong_usage_is_status_2_with_words_on_stderr_and_nothing_on_stdout(s):
    path = str(s.write("good.yaml", good()))
    for args in (
        [], ["fly"], ["run"], ["run", path, path], ["run", path, "--fast"],
        ["run", path, "--duration", "soon"], ["run", path, "--duration", "-1"],
        ["run", path, "--duration", "0"], ["run", path, "--idle-exit", "nan"],
        ["run", path, "--name"], ["check"], ["check", path, path], ["stats", "x"],
        ["stats", "--json", "--prometheus"], ["stages", "x"],
        ["run", path, "--json", "--duration", "soon"], ["run", "--json"], ["check", "--json"],
        ["stats", "--json", "x"], ["stages", "--json", "x"],
    ):  # fmt: skip
        r = s.command(*args)
        check_equal(r.status, USAGE, f"status of {args}: {r.told()}")
        check(r.stderr.strip() != "", f"{args}: nothing on stderr")
        check_equal(r.stdout, "", f"stdout of {args}")


@case
def help_and_version_are_asked_for_and_so_are_no_errors(s):
    for args in (["--help"], ["help"], ["--version"]):
        r = s.command(*args)
        check_equal(r.status, CLEAN, f"status of {args}")
        check("millrace" in r.stdout, f"{args}: {r.stdout}")


def good():
    return config(
        {"p0": "net_pcap0,rx_pcap=in.pcap,tx_pcap=out.pcap"}, [lane("l0", "p0", "p0", ["l2swap"])]
    )


BAD = """devices:
  - {name: g0, device: sim}
ports:
  - {name: p0, device: "net_null0"}
lanes:
  - name: l0
    rx: {port: p0, queue: 0}
    tx: [{port: nowhere, queue: 0}]
    core: any
    device: g0
    path: [direct]
    slots: 3
    stages:
      - use: l2swop
"""


@case
def a_wrong_configuration_is_status_78_with_every_error_named_by_line_and_key(s):
    path = s.write("bad.yaml", BAD)
    for command in ("run", "check"):
        r = s.command(command, path, "--json")
        check_equal(r.status, CONFIG, f"status of {command}: {r.told()}")
        validate(f"{command}.schema.json", r.stdout)
        errors = json.loads(r.stdout)["errors"]
        found = {(e["line"], e["key"].rsplit(".", 1)[-1]) for e in errors}
        check_equal(found, {(8, "port"), (12, "slots"), (14, "use")}, f"errors of {command}")
        lines = [l for l in r.stderr.splitlines() if "bad.yaml:" in l]
        check_equal(len(lines), len(errors), f"sentences of {command}: {r.stderr}")
        check(any("l2swap" in l for l in lines), f"no word about l2swap: {r.stderr}")


@case
def a_file_that_is_not_there_or_empty_is_status_78(s):
    s.write("empty.yaml", "")
    for name in ("missing.yaml", "empty.yaml"):
        r = s.command("run", name, "--json")
        check_equal(r.status, CONFIG, f"status with {name}: {r.told()}")
        validate("run.schema.json", r.stdout)
        check(name in r.stderr, f"{name} is not named: {r.stderr}")
        check_equal(len(r.stderr.strip().splitlines()), 1, f"lines with {name}: {r.stderr}")


@case
def a_configuration_that_is_no_file_is_refused_at_once(s):
    os.mkfifo(s.path / "pipe")
    (s.path / "folder").mkdir()
    end = socket.socket(socket.AF_UNIX)
    end.bind(str(s.path / "end"))
    end.close()
    wanted = {"pipe": "pipe", "folder": "directory", "end": "socket", "/dev/zero": "device"}
    for name, kind in wanted.items():
        for command in ("run", "check"):
            r = s.command(command, name, "--json")
            check_equal(r.status, CONFIG, f"status of {command} {name}: {r.told()}")
            check(r.seconds < 5 * PATIENCE, f"{command} {name} took {r.seconds} s")
            validate(f"{command}.schema.json", r.stdout)
            check_equal(len(r.stderr.splitlines()), 1, f"lines of {command} {name}: {r.stderr}")
            check(f"{name}: is a {kind}, not a file" in r.stderr, f"{name}: {r.stderr}")


@case
def an_empty_or_long_name_is_named(s):
    long = "/".join(["d" * 100] * 5)
    (s.path / long).mkdir(parents=True)
    path = s.write(f"{long}/stem.yaml", good())
    r = s.command("check", path, "--json")
    check_equal(r.status, CLEAN, f"status with a long path: {r.told()}")
    check_equal(json.loads(r.stdout)["name"], "stem", "name")
    for command in ("run", "check"):
        r = s.command(command, "", "--json")
        check_equal(r.status, CONFIG, f"status of {command}: {r.told()}")
        validate(f"{command}.schema.json", r.stdout)
        check(r.stderr.startswith("'': "), f"the name is not seen: {r.stderr}")


@case
def a_run_without_json_prints_words_and_no_json(s):
    path = s.write("null.yaml", config({"p0": "net_null0"}, [lane("l0", "p0", "p0")]))
    r = s.command("run", path, "--duration", "0.2")
    check_equal(r.status, CLEAN, f"status: {r.told()}")
    check("l0" in r.stdout and "{" not in r.stdout, f"stdout: {r.stdout}")


@case
def the_shipped_configurations_pass_the_check(s):
    for name in ("demo.yaml", "millrace.yaml"):
        path = SOURCE / "config" / name
        for more in ([], ["--no-host"]):
            r = s.command("check", path, "--json", *more)
            if name == "millrace.yaml" and not more:
                # The manual shows cores and cards that this machine need not have.
                check(r.status in (CLEAN, CONFIG), f"status with {name}: {r.told()}")
            else:
                check_equal(r.status, CLEAN, f"status with {name} {more}: {r.told()}")
            validate("check.schema.json", r.stdout)


@case
def a_checked_configuration_prints_the_plan_and_opens_nothing(s):
    path = s.write("good.yaml", good())  # its capture does not exist
    r = s.command("check", path, "--json")
    check_equal(r.status, CLEAN, f"status: {r.told()}")
    validate("check.schema.json", r.stdout)
    check("l2swap" in r.stdout, "the plan has no stages")
    check_equal(sorted(p.name for p in pathlib.Path(s.path).glob("*.pcap")), [], "files made")


@case
def a_checked_configuration_says_what_stages_keep_of_the_devices_memory(s):
    stages = [{"use": "l2swap"}, {"use": "seqtrack", "params": {"streams": 1 << 24}}, {"use": "unpack"}]
    path = s.write("streams.yaml", config({"p0": "net_null0"}, [lane("l0", "p0", "p0", stages, tick_us=1000)]))
    r = s.command("check", path, "--json")
    check_equal(r.status, CLEAN, f"status: {r.told()}")
    validate("check.schema.json", r.stdout)
    kept = [(t["state_bytes"], t["shared_bytes"]) for t in json.loads(r.stdout)["lanes"][0]["stages"]]
    check_equal(kept[0], (0, 0), "of a stage that keeps nothing")
    check(9 << 30 < kept[1][0] < 11 << 30 and 1 << 20 < kept[2][0] < 4 << 20, f"kept: {kept}")
    said = f"  states           seqtrack {kept[1][0] / 2**20:.1f} MiB, unpack {kept[2][0] / 2**20:.1f} MiB on the device\n"
    text = s.command("check", path).stdout
    check(said in text, f"'{said}' is not in {text}")
    check("  states " not in s.command("check", s.write("none.yaml", good())).stdout, "states without a stage that has one")


@case
def stages_lists_every_built_in_stage_with_its_parameters(s):
    r = s.command("stages", "--json")
    check_equal(r.status, CLEAN, f"status: {r.told()}")
    validate("stages.schema.json", r.stdout)
    text = s.command("stages")
    check_equal(text.status, CLEAN, "status")
    for word in ("forward", "l2swap", "drop", "checksum", "match", "reflect", "filter", "route", "seqtrack", "unpack", "reason", "port", "prefix"):
        check(word in r.stdout, f"'{word}' is not in the JSON")
        check(word in text.stdout, f"'{word}' is not in the text")


@case
def the_report_of_a_run_that_cannot_be_written_is_a_sentence_with_the_reason(s):
    path = s.write("null.yaml", config({"p0": "net_null0"}, [lane("l0", "p0", "p0")]))
    for to, reason in (
        (">&-", "Bad file descriptor"), (">/dev/full", "No space left"), ("| true", "Broken pipe"),
    ):  # fmt: skip
        for more in ([], ["--json"]):
            line = f'"$0" "$@" {to}; exit ${{PIPESTATUS[0]}}'
            argv = [s.millrace, "run", path, "--duration", "0.1", *more]
            r = subprocess.run(["bash", "-c", line, *argv], cwd=s.path, env=s.env,
                capture_output=True, text=True, timeout=60, check=False)  # fmt: skip
            check_equal(r.returncode, FAILURE, f"status with {to}: {r.stderr}")
            said = complaints(r.stderr)
            check(len(said) == 1 and reason in said[0], f"{to}: sentences: {r.stderr}")


@case
def a_result_that_cannot_be_written_is_status_1_with_a_sentence(s):
    path = str(s.write("good.yaml", good()))
    for args in (
        ["stages", "--json"], ["stages"], ["--version"], ["--help"], ["help"], ["check", path],
        ["check", path, "--json"],
    ):  # fmt: skip
        with open("/dev/full", "w", encoding="ascii") as full:
            r = subprocess.run([s.millrace, *args], stdout=full, stderr=subprocess.PIPE,
                text=True, timeout=30, check=False)  # fmt: skip
        check_equal(r.returncode, FAILURE, f"status of {args}: {r.stderr}")
        check("could not be written" in r.stderr, f"{args}: no sentence: {r.stderr}")


@case
def a_result_beyond_the_limit_of_file_sizes_is_status_1_with_a_sentence(s):
    r = subprocess.run(["sh", "-c", 'ulimit -f 0; "$0" stages >out', s.millrace], cwd=s.path,
        stderr=subprocess.PIPE, text=True, timeout=30, check=False)  # fmt: skip
    check_equal(r.returncode, FAILURE, f"status: {r.stderr}")
    check("could not be written: File too large" in r.stderr, f"no sentence: {r.stderr}")


@case
def a_closed_output_is_status_1_too(s):
    r = subprocess.run(["sh", "-c", '"$0" stages --json >&-', s.millrace], stderr=subprocess.PIPE,
        text=True, timeout=30, check=False)  # fmt: skip
    check_equal(r.returncode, FAILURE, f"status: {r.stderr}")


sys.exit(main())
