#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The page of a running instance in headless Chromium.

usage: test_page.py MILLRACE FOLDER [-k WORD]. FOLDER keeps the driver of the browser and the
screenshots. Skipped where the browser is not installed or npm cannot fetch its driver.
"""
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
from harness import CLEAN, GPU, PATIENCE, Skipped, case, check_equal, config, free_port, lane, main  # noqa: E402

DRIVER = "playwright-core@1.57.0"
SCRIPT = pathlib.Path(__file__).resolve().parent / "page.mjs"
FLOOD = "net_null{0},size=64,copy=0"
# The time from the kernel's start to its fault: the page has to be there before.
FAULT_MS = int(6000 * PATIENCE)


def modules(s):
    """A folder in which node finds the driver."""
    folder = pathlib.Path(s.others[0])
    folder.mkdir(parents=True, exist_ok=True)
    for program in ("node", "npm", "chromium"):
        if shutil.which(program) is None:
            raise Skipped(f"{program} is not installed")
    if not (folder / "node_modules").is_dir():
        # In place only once it is whole.
        fetched = s.path / "npm"
        argv = ["npm", "install", "--prefix", fetched, "--no-save", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=0", DRIVER]
        try:
            r = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
        except subprocess.TimeoutExpired as late:
            raise Skipped(f"npm does not fetch {DRIVER} within 30 s") from late
        if r.returncode != 0:
            raise Skipped(f"npm cannot fetch {DRIVER}: {r.stderr.strip().splitlines()[-1:]}")
        shutil.move(fetched / "node_modules", folder / "node_modules")
    return folder


def watch(s, scenario, port, instance, *more):
    """Starts the instance once the browser waits for it, and returns it when all was seen."""
    folder = modules(s)
    shots = folder / "screenshots"
    shots.mkdir(exist_ok=True)
    # The browser keeps its things in the scratch folder.
    env = {**os.environ, "HOME": str(s.path), "CHROMIUM": shutil.which("chromium"), "MILLRACE_PATIENCE": str(PATIENCE),
           "MILLRACE_FAULT_MS": str(FAULT_MS)}  # fmt: skip
    argv = ["node", SCRIPT, folder, shots, scenario, f"http://127.0.0.1:{port}/"]
    with subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as node:
        node.stdout.readline()
        run = s.start(instance, *more)
        try:
            out, err = node.communicate(timeout=90 * PATIENCE)
        finally:
            node.kill()
    print(out, end="", flush=True)
    check_equal(node.returncode, 0, f"{scenario}: {out}{err}")
    return run


def stop(run):
    run.signal()
    run.wait(CLEAN, "signal")


def served(port, lanes, device="sim", **keys):
    ports = {f"p{i}": FLOOD.format(i) for i in range(len(lanes))}
    return config(ports, lanes, device, region="32MiB", http={"listen": f"127.0.0.1:{port}"}, **keys)


@case
def the_page_shows_what_runs_wide_narrow_dark_and_by_keyboard(s):
    port = free_port()
    # A core of its own is what a small machine's doctor has something to say about.
    lanes = [lane("l0", "p0", "p0", ["l2swap"]), lane("l1", "p1", "p1", ["drop"], core=max(os.sched_getaffinity(0)))]
    stop(watch(s, "shows", port, served(port, lanes), "--skip", "cpu.governor"))


@case
def a_path_that_is_no_longer_proven_is_seen_within_two_seconds(s):
    port = free_port()
    lanes = [lane("l0", "p0", "p0")]
    stop(watch(s, "unproven", port, served(port, lanes, f"sim,fault=revoke@{FAULT_MS}", proof={"alarm": "go_on"})))


@case
def a_lane_that_dies_is_seen_within_two_seconds_and_so_is_the_end(s):
    port = free_port()
    run = watch(s, "dies", port, served(port, [lane("l0", "p0", "p0")], f"sim,fault=stall@0:{FAULT_MS}"))
    run.wait(GPU, "gpu_stalled")


sys.exit(main(at_once=1))
