# SPDX-License-Identifier: BSD-3-Clause
"""system: a Debian of its own, with systemd, in QEMU's software emulation.

    wire (one UNIX datagram is one frame) ── virtio-net ── eth0 in the guest

debootstrap makes the root file system from the mirror that this machine's apt uses; what a
package depends on is installed into it, and the package itself is not. All of it becomes an image
that is kept in the build folder, and every boot throws away what it changed. A disk beside it is
a tar file with what the test brings. Commands go over the second serial port, as in machine.py.
"""
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path += [str(TESTS / name) for name in ("e2e", "twin", "package")]
from debian import told  # noqa: E402
from guest import QUIET, Initramfs, kernel  # noqa: E402
from harness import Skipped, check  # noqa: E402
from machine import Machine, Wire  # noqa: E402

MODULES = ("virtio_ring", "virtio", "virtio_pci_modern_dev", "virtio_pci_legacy_dev", "virtio_pci", "virtio_blk",
    "failover", "net_failover", "virtio_net", "crc32c_generic", "crc16", "mbcache", "jbd2", "ext4")  # fmt: skip
TOOLS = ("debootstrap", "mke2fs", "qemu-system-x86_64", "busybox", "apt-get", "dpkg-deb")
IMAGE_MIB = 1200
INCLUDE = "systemd-sysv,udev,iproute2"
# Neither journal nor checksums of metadata: both would need modules, and no boot is kept.
FEATURES = "^has_journal,^metadata_csum,^64bit"
# No frames of the kernel's own among those that are counted.
NO_IPV6 = " ".join(f"sysctl.net.ipv6.conf.{which}.disable_ipv6=1" for which in ("all", "default"))

INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /dev /proc /root
/bin/busybox mount -t devtmpfs dev /dev
for module in %s; do
	/bin/busybox insmod "/modules/$module.ko"
done
/bin/busybox mount -t ext4 /dev/vda /root || exec /bin/busybox sh
exec /bin/busybox switch_root /root /sbin/init
"""

SHELL = """#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
mkdir -p /job
tar -x -C /job -f /dev/vdb
cd /job
stty -F /dev/ttyS1 raw -echo
exec 3<>/dev/ttyS1
echo GUEST READY >/dev/console
while read -r line <&3; do
	sh -c "$line" >/tmp/told 2>&1 </dev/null 3>&-
	status=$?
	cat /tmp/told >&3
	printf '\\001%d\\n' "$status" >&3
done
"""

UNIT = """[Service]
ExecStart=/bin/sh /usr/local/sbin/guest-shell
"""


def mirror():
    """The mirror and the suite of the first source of apt that has a main of Debian."""
    listed = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages"],
        capture_output=True, text=True, check=False)  # fmt: skip
    suite = re.search(r"^VERSION_CODENAME=(\w+)", pathlib.Path("/etc/os-release").read_text(encoding="utf-8"), re.M)
    for line in listed.stdout.splitlines():
        uri, release, component = line.split()
        if suite and (release, component) == (suite[1], "main"):
            return uri, release
    raise Skipped(f"apt knows no source of this system's release: {listed.stderr.strip()[-200:]}")


def depends(package):
    """Names of what a package asks for."""
    field = told(["dpkg-deb", "-f", package, "Depends"])
    return sorted({re.match(r"[\w.+-]+", d.strip())[0] for d in field.split(",") if d.strip()})


def root(at, needed):
    """A root file system with the packages needed. About a minute, and the network, the first time."""
    uri, suite = mirror()
    shutil.rmtree(at, ignore_errors=True)
    began = time.monotonic()
    # In a mount namespace of its own, so that nothing stays mounted below the folder.
    r = subprocess.run(["unshare", "-m", "debootstrap", "--variant=minbase", f"--include={INCLUDE}", suite, at, uri],
        capture_output=True, text=True, check=False)  # fmt: skip
    if r.returncode != 0:
        raise Skipped(f"debootstrap: {(r.stdout + r.stderr).strip()[-300:]}")
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
    told(["chroot", at, "apt-get", "-q", "-y", "--no-install-recommends", "-o", "DPkg::Options::=--force-unsafe-io",
        "install", *needed], env=environment)  # fmt: skip
    told(["chroot", at, "apt-get", "clean"], env=environment)
    print(f"     a root file system in {time.monotonic() - began:.0f} s", flush=True)


def prepare(at):
    """What makes it start by itself, and quickly, with a shell for the test."""
    (at / "usr/local/sbin/guest-shell").write_text(SHELL, encoding="ascii")
    units = at / "etc/systemd/system"
    (units / "guest-shell.service").write_text(UNIT, encoding="ascii")
    wants = units / "multi-user.target.wants"
    wants.mkdir(exist_ok=True)
    (wants / "guest-shell.service").symlink_to("../guest-shell.service")
    for name in ("apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer", "fstrim.timer",
        "e2scrub_reap.service", "systemd-udev-settle.service"):  # fmt: skip
        (units / name).unlink(missing_ok=True)
        (units / name).symlink_to("/dev/null")
    (at / "etc/hostname").write_text("guest\n", encoding="ascii")
    # Empty, it would ask on the console what a first boot asks.
    (at / "etc/machine-id").write_text("4d696c6c72616365" * 2 + "\n", encoding="ascii")


def image(cache, package):
    """The image for a package, made if there is none yet."""
    for tool in TOOLS:
        if shutil.which(tool, path="/usr/sbin:/sbin:" + os.environ["PATH"]) is None:
            raise Skipped(f"{tool} is not installed")
    if os.geteuid() != 0:
        raise Skipped("a root file system is made by root only")
    needed = depends(package)
    recipe = hashlib.sha256("\n".join([*needed, INCLUDE, SHELL, UNIT, FEATURES]).encode()).hexdigest()[:12]
    ready = cache / f"system-{recipe}.ext4"
    if not ready.exists():
        for old in cache.glob("system-*.ext4"):
            old.unlink()
        at = cache / "system"
        root(at, needed)
        prepare(at)
        part = ready.with_suffix(".part")
        told(["mke2fs", "-q", "-F", "-t", "ext4", "-O", FEATURES, "-d", at, part, f"{IMAGE_MIB}M"])
        part.rename(ready)
        shutil.rmtree(at)
    return ready


class System(Machine):
    """One boot, with a tar file as its second disk."""

    boot_s = 100

    def __init__(self, cache, path, disk, brought):
        elf, modules = kernel(cache, MODULES)
        self.path = path
        path.mkdir()
        a = Initramfs()
        a.merged_usr()
        a.program(shutil.which("busybox"), "/usr/bin/busybox")
        names = [n for n in MODULES if modules[n].exists()]
        for name in names:
            a.file(f"modules/{name}.ko", modules[name].read_bytes())
        a.file("init", (INIT % " ".join(names)).encode(), 0o755)
        (path / "initrd").write_bytes(a.bytes())
        tar = path / "brought.tar"
        told(["tar", "-c", "-f", tar, "-C", brought, "."])
        with open(tar, "r+b") as f:
            f.truncate((tar.stat().st_size + 511) // 512 * 512)
        self.wires = [Wire(path, 0)]
        self.argv = ["qemu-system-x86_64", "-M", "q35", "-accel", "tcg,thread=multi,tb-size=512",
            "-cpu", "max", "-smp", "2", "-m", "1024", "-nodefaults", "-display", "none", "-no-reboot", "-serial", "stdio",
            "-chardev", f"socket,id=shell,path={path}/shell,server=on,wait=off", "-serial", "chardev:shell",
            "-drive", f"file={disk},format=raw,if=virtio,snapshot=on", "-drive", f"file={tar},format=raw,if=virtio,readonly=on",
            "-netdev", self.wires[0].netdev("n0"), "-device", "virtio-net-pci,netdev=n0,mac=52:54:00:00:00:01",
            "-kernel", str(elf), "-initrd", str(path / "initrd"),
            "-append", f"{QUIET} net.ifnames=0 {NO_IPV6} systemd.getty_auto=no systemd.show_status=no"]  # fmt: skip
        self.told = []
        self.began = time.monotonic()
        self.start()
        print(f"     booted in {time.monotonic() - self.began:.0f} s", flush=True)

    def close(self):
        self.shell.close()
        self.process.kill()
        self.process.wait()
        self.err.close()
        self.wires[0].socket.close()

    def until(self, command, seconds, what):
        """Asks until a command succeeds."""
        end = time.monotonic() + seconds
        while True:
            status, said = self.run(command)
            if status == 0:
                return said
            check(time.monotonic() < end, f"{what}: {said}")
            time.sleep(0.5)
