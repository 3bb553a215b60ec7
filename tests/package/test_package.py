#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The Debian packages: what lintian says, and install, upgrade, removal and purge of them.

They are made of the build folder, and once of the tree alone. They are installed in an overlay
over this machine's own system, whose upper layer then is what a package leaves behind.

usage: test_package.py MILLRACE BUILD [-k WORD]. Root only, on Debian.
"""
import ctypes
import filecmp
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
from debian import CONFIGURATION, another, build, package, told  # noqa: E402
from harness import SOURCE, Skipped, case, check, check_equal, config, lane, main  # noqa: E402

CLONE_NEWNS = 0x20000
# What the package manager and its triggers keep for themselves.
BOOKS = re.compile(r"var/lib/dpkg/|var/log/(dpkg|alternatives)|var/cache/(man|ldconfig)/|etc/(passwd|group|g?shadow)-$|etc/\.pwd\.lock|dev/")
# Of the flags that a package build adds, a build folder need not have any.
OF_FLAGS = "hardening-no-bindnow,hardening-no-fortify-functions"


class Overlay:
    """This machine's system, and a layer that takes every change to it."""

    def __init__(self, s):
        self.at = s.path / "over"
        self.upper, self.root = self.at / "upper", self.at / "root"

    def __enter__(self):
        if os.geteuid() != 0 or ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS) != 0:
            raise Skipped("mounts of its own need root")
        self.at.mkdir()
        told(["mount", "--make-rprivate", "/"])
        # On a file system of its own: an upper layer may not lie within the lower one.
        told(["mount", "-t", "tmpfs", "none", self.at])
        for d in (self.upper, self.root, self.at / "work"):
            d.mkdir()
        layers = f"lowerdir=/,upperdir={self.upper},workdir={self.at}/work"
        r = subprocess.run(["mount", "-t", "overlay", "overlay", "-o", layers, self.root], capture_output=True, text=True, check=False)
        if r.returncode != 0:
            told(["umount", self.at])
            raise Skipped(f"no overlay over this file system: {r.stderr.strip()}")
        try:
            told(["mount", "-t", "proc", "proc", self.root / "proc"])
            for name in ("dev", "sys"):
                told(["mount", "--bind", f"/{name}", self.root / name])
                # Whatever comes after this deletes nothing of this machine's.
                told(["mount", "-o", "remount,bind,ro", self.root / name])
            told(["mount", "-t", "tmpfs", "none", self.root / "tmp"])
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        # Lazily, since a process that is left may still be in it.
        told(["umount", "-R", "-l", self.root])
        told(["umount", "-l", self.at])

    def run(self, *argv, status=0):
        r = subprocess.run(
            ["chroot", self.root, *map(str, argv)], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C", "RUNTIME_DIRECTORY": "/tmp"},
        )  # fmt: skip
        check_equal(r.returncode, status, f"status of {argv}: {r.stdout[-3000:]}{r.stderr[-3000:]}")
        return r.stdout

    def dpkg(self, *argv):
        for a in argv:
            if isinstance(a, pathlib.Path):
                shutil.copy(a, self.root / "tmp")
        return self.run("dpkg", *(f"/tmp/{a.name}" if isinstance(a, pathlib.Path) else a for a in argv))

    def left(self):
        """Every change that is still there."""
        found = []
        for p in self.upper.rglob("*"):
            name = str(p.relative_to(self.upper))
            below = pathlib.Path("/") / name
            if BOOKS.match(name + ("/" if p.is_dir() else "")):
                continue
            if p.is_dir() and not p.is_symlink():
                same = below.is_dir()
            elif p.is_file() and not p.is_symlink():
                same = below.is_file() and filecmp.cmp(p, below, shallow=False)
            else:
                same = False  # a link, or a place that was emptied
            if not same:
                found.append(name)
        return sorted(found)


def millrace_of(o):
    return [l for name in ("passwd", "group") for l in (o.root / "etc" / name).read_text().splitlines() if l.startswith("millrace:")]


def works_as_the_user_of_the_service(s, o):
    keys = config({"p0": "net_null0,size=64,copy=0"}, [lane("l0", "p0", "p0")], region="16MiB", eal={"hugepages": "off"})
    shutil.copy(s.write("null.yaml", keys), o.root / "tmp")
    (o.root / "tmp").chmod(0o1777)
    report = json.loads(o.run(
        "setpriv", "--reuid", "millrace", "--regid", "millrace", "--init-groups", "--no-new-privs",
        "/usr/bin/millrace", "run", "/tmp/null.yaml", "--json", "--duration", "0.3"))  # fmt: skip
    check(report["balanced"] and report["lanes"][0]["rx_packets"] > 0, f"no packets: {report}")


def lint(out, *options):
    r = subprocess.run(
        ["lintian", "--allow-root", "--fail-on", "error,warning,info", "--display-info", *options, *out.glob("*.changes")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    check_equal((r.returncode, r.stdout), (0, ""), f"lintian: {r.stderr}")


@case
def packages_of_the_tree_alone_have_what_those_of_a_build_folder_have(s):
    prepared = build(s)
    out = s.path / "of-the-tree"
    # The image is the build folder's matter, and half of the time.
    told(["sh", SOURCE / "deploy" / "package.sh", out],
        env={**os.environ, "DEB_BUILD_OPTIONS": "noautodbgsym", "MILLRACE_CUDA": "disabled"})  # fmt: skip
    lint(out)
    for name in ("millrace", "millrace-dev"):
        listed = [
            [l.split()[5] for l in told(["dpkg-deb", "-c", package(at, name)]).splitlines()] for at in (prepared, out)
        ]
        check_equal(listed[1], listed[0], f"files of {name}")


@case
def the_packages_are_clean_installed_upgraded_and_purged_without_a_trace(s):
    out = build(s)
    lint(out, "--suppress-tags", OF_FLAGS)
    sdk = told(["dpkg-deb", "-c", package(out, "millrace-dev")])
    check("/usr/include/millrace/mr_stage.h" in sdk, f"no SDK in the package: {sdk}")
    prerm = told(["dpkg-deb", "-I", package(out, "millrace"), "prerm"])
    check(-1 < prerm.find("deb-systemd-invoke stop") < prerm.find("host-tune undo"), f"what a run needs is undone before it ends: {prerm}")
    with Overlay(s) as o:
        configuration = o.root / CONFIGURATION
        if configuration.exists() or millrace_of(o):
            raise Skipped("millrace is installed on this machine")
        o.dpkg("-i", package(out, "millrace"), package(out, "millrace-dev"))
        check_equal(configuration.read_bytes(), (SOURCE / "config" / "millrace.yaml").read_bytes(), "the configuration")
        check_equal(len(millrace_of(o)), 2, f"user and group: {millrace_of(o)}")
        check("groups=" in o.run("id", "millrace") and "(rdma)" in o.run("id", "millrace"), "the user is not in group rdma")
        o.run("/usr/bin/millrace", "check", "--no-host", f"/{CONFIGURATION}")
        works_as_the_user_of_the_service(s, o)
        check(o.run("man", "-w", "millrace.yaml").strip().endswith("millrace.yaml.5.gz"), "no manual page")

        mine = configuration.read_text() + "\n# mine\n"
        configuration.write_text(mine)
        o.dpkg("-i", another(out, "millrace", "9.1"))
        check_equal(configuration.read_text(), mine, "the configuration after an upgrade")
        o.dpkg("--force-confdef", "--force-confold", "-i", another(out, "millrace", "9.2", "\n# theirs\n"))
        check_equal(configuration.read_text(), mine, "the configuration after an upgrade with another one")
        check("# theirs" in (o.root / (CONFIGURATION + ".dpkg-dist")).read_text(), "theirs is not beside it")

        (o.root / "var/log/millrace-diagnosis/failure-1").mkdir(parents=True)
        o.dpkg("-r", "millrace", "millrace-dev")
        check(not (o.root / "usr/bin/millrace").exists(), "the program is still there")
        check_equal(configuration.read_text(), mine, "the configuration after a removal")
        o.dpkg("-P", "millrace", "millrace-dev")
        check_equal(o.left(), [], "what a purge leaves")


sys.exit(main(at_once=1))
