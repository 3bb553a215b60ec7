#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What `meson install` lays down works from where it lies, and uninstalling takes all of it.

usage: test_install.py MILLRACE BUILD [-k WORD]
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
from harness import Skipped, case, check, check_equal, config, lane, main  # noqa: E402

# One file of each kind that has to be there, as a pattern below the prefix.
WANTED = (
    r"bin/millrace", r"lib/(.*/)?millrace/librte_gpu_millrace\.so", r"lib/systemd/system/millrace\.service",
    r"lib/systemd/system/millrace-diagnosis\.service", r"share/man/man1/millrace\.1", r"share/man/man5/millrace\.yaml\.5", r"share/man/man7/millrace-stages\.7",
    r"share/bash-completion/completions/millrace", r"lib/sysusers\.d/millrace\.conf",
    r"include/millrace/mr_stage\.h", r"include/millrace/mr_kernel\.h", r"include/millrace/mr_sdk_id\.h", r"share/pkgconfig/millrace-stage\.pc", r"libexec/millrace/host-tune",
    r"share/doc/millrace/examples/millrace\.yaml", r"share/doc/millrace/RUNBOOK\.md",
    r"share/millrace/prometheus/millrace\.rules\.yml", r"share/millrace/grafana/millrace\.json",
)  # fmt: skip


def told(argv, **more):
    r = subprocess.run([str(a) for a in argv], capture_output=True, text=True, timeout=120, check=False, **more)
    check_equal(r.returncode, 0, f"status of {argv}: {r.stdout[-2000:]}{r.stderr[-2000:]}")
    return r.stdout


def prefix(build):
    options = json.loads(told(["meson", "introspect", "--buildoptions", build]))
    return next(o["value"] for o in options if o["name"] == "prefix")


def install(s, uninstall=False):
    """The folder that stands for the root, and the prefix in it."""
    build = s.others[0]
    root = s.path / "root"
    # It tells `uninstall` of the operator's own install, if there was one.
    log = pathlib.Path(build) / "meson-logs" / "install-log.txt"
    kept = log.read_bytes() if log.exists() else None
    if kept is not None and not os.access(log, os.W_OK):
        raise Skipped(f"{log} belongs to another user")
    told(["meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", root])
    if uninstall:
        told(["ninja", "-C", build, "uninstall"])
    if kept is not None:
        log.write_bytes(kept)
    return root, root / prefix(build).lstrip("/")


def files(root):
    return sorted(str(p.relative_to(root)) for p in root.rglob("*") if not p.is_dir())


@case
def an_install_is_whole_and_an_uninstall_leaves_nothing(s):
    root, top = install(s)
    found = files(top)
    for pattern in WANTED:
        check(any(re.fullmatch(pattern, f) for f in found), f"nothing like {pattern} in {found}")
    check_equal([f for f in files(root) if not (root / f).is_relative_to(top)], [], "files outside of the prefix")
    # Folders that are there already are not its own to take away.
    shutil.rmtree(root)
    root, _ = install(s, uninstall=True)
    check_equal(sorted(root.rglob("*")) if root.exists() else [], [], "what an uninstall leaves")


@case
def the_installed_program_runs_the_installed_examples(s):
    _, top = install(s)
    program = top / "bin" / "millrace"
    told([program, "check", "--no-host", top / "share/doc/millrace/examples/millrace.yaml"])
    told([program, "check", "--no-host", top / "share/doc/millrace/examples/demo.yaml"])
    path = s.write("null.yaml", config({"p0": "net_null0,size=64,copy=0"}, [lane("l0", "p0", "p0")], region="16MiB"))
    report = json.loads(told([program, "run", path, "--json", "--duration", "0.3"], env=s.env))
    check(report["balanced"] and report["lanes"][0]["rx_packets"] > 0, f"no packets: {report}")


@case
def the_installed_plug_in_is_a_driver_of_any_dpdk_program(s):
    _, top = install(s)
    plugin = next(top.rglob("librte_gpu_millrace.so"))
    # Loading registers its drivers, and needs every library that it names.
    child = f"import ctypes; ctypes.CDLL({str(plugin)!r})"
    told([sys.executable, "-c", child])


@case
def the_installed_units_name_what_is_installed(s):
    root, top = install(s)
    for unit in top.glob("lib/systemd/system/*.service"):
        text = unit.read_text(encoding="utf-8")
        programs = re.findall(r"/[\w./-]*/bin/millrace\b", text)
        check(programs, f"{unit.name} names no program")
        for p in programs:
            check((root / p.lstrip("/")).exists(), f"{unit.name}: {p} is not installed")


@case
def a_stage_of_ones_own_compiles_against_the_installed_headers_alone(s):
    _, top = install(s)
    include = top / "include" / "millrace"
    for header in sorted(include.glob("*.h")):
        source = s.write("one.c", f'#include "{header.name}"\n')
        told(["gcc", "-std=gnu17", "-Wall", "-Werror", "-fsyntax-only", "-I", include, source])


# The build folder has one log of what was installed.
sys.exit(main(at_once=1))
