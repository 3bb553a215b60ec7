# SPDX-License-Identifier: BSD-3-Clause
"""debian: the packages of a build folder, and others like them."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
from harness import SOURCE, Skipped, check_equal  # noqa: E402

CONFIGURATION = "etc/millrace/millrace.yaml"


def told(argv, **more):
    r = subprocess.run([str(a) for a in argv], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, **more)
    check_equal(r.returncode, 0, f"status of {argv}: {r.stdout[-3000:]}{r.stderr[-3000:]}")
    return r.stdout


def build(s):
    """The folder with the packages, made of what is built; s.others[0] is the build folder."""
    if shutil.which("dh") is None or shutil.which("lintian") is None:
        raise Skipped("debhelper or lintian is not installed")
    options = json.loads(told(["meson", "introspect", "--buildoptions", s.others[0]]))
    if next(o["value"] for o in options if o["name"] == "prefix") != "/usr":
        raise Skipped("the build folder's prefix is not /usr: meson configure BUILD -Dprefix=/usr")
    out = s.path / "packages"
    told(["sh", SOURCE / "deploy" / "package.sh", "--prepared", s.others[0], out], env={**os.environ, "DEB_BUILD_OPTIONS": "noautodbgsym"})
    return out


def package(out, name):
    return next(out.glob(f"{name}_*.deb"))


def another(out, name, version, change=None):
    """The same package with another version, and another configuration if so wanted."""
    tree = out / f"{name}-{version}"
    told(["dpkg-deb", "-R", package(out, name), tree])
    control = tree / "DEBIAN" / "control"
    control.write_text(re.sub(r"^Version: .*$", f"Version: {version}", control.read_text(), flags=re.M))
    if change:
        path = tree / CONFIGURATION
        path.write_text(path.read_text() + change)
    told(["dpkg-deb", "-Zgzip", "-z1", "-b", tree, out / f"{name}-{version}.deb"])
    return out / f"{name}-{version}.deb"
