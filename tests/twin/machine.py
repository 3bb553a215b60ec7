# SPDX-License-Identifier: BSD-3-Clause
"""machine: a guest in which a NIC and a device with a BAR lie on an emulated PCIe bus.

    wire (one UNIX datagram is one frame) ── NIC ── IOMMU ── BAR of the other device
                                                              │
                                              a file here, which the judge reads

The NIC's driver is DPDK's own, over vfio-pci; the device with the BAR is ivshmem-plain, as
which QEMU shows a file. Commands for the guest go over its second serial port and come
back with their output and status, so that one boot serves several cases; QEMU's monitor
takes devices away.
"""
import mmap
import os
import re
import shutil
import socket
import subprocess
import threading
import time

from guest import LIBGCC, QUIET, Initramfs, kernel
from harness import PATIENCE, Failed, Skipped, check

MODULES = ("irqbypass", "vfio", "vfio_virqfd", "vfio_iommu_type1", "vfio-pci-core", "vfio-pci")
DRIVERS = ("bus_vdev", "bus_pci", "mempool_ring", "net_e1000", "net_vmxnet3")
NIC, BAR = "0000:00:03.0", "0000:00:04.0"

INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /bin /sbin /dev /proc /sys /var/run /run /tmp
/bin/busybox --install -s /bin
export PATH=/bin
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
mkdir -p /dev/hugepages
mount -t hugetlbfs none /dev/hugepages
exec </dev/null >/dev/console 2>&1
chmod 755 / # EAL takes no plug-ins from below a folder that all may write
cd /job
for module in %s; do
	insmod "/modules/$module.ko"
done
stty -F /dev/ttyS1 raw -echo
exec 3<>/dev/ttyS1
echo GUEST READY
while read -r line <&3; do
	sh -c "$line" >/tmp/told 2>&1 </dev/null 3>&-
	status=$?
	cat /tmp/told >&3
	printf '\\001%%d\\n' "$status" >&3
done
"""


def initramfs(programs, modules):
    """The archive that every guest starts from; boots add nothing to it."""
    a = Initramfs()
    a.merged_usr()
    busybox = shutil.which("busybox")
    check(busybox, "busybox is not installed")
    a.program(busybox, "/usr/bin/busybox")
    for path in programs:
        a.program(path, "/usr/bin/" + os.path.basename(path))
    a.copy(LIBGCC)
    a.plugins(DRIVERS)
    for name, path in modules.items():
        a.file(f"modules/{name}.ko", path.read_bytes())
    a.entry("job", 0o040755)
    a.file("init", (INIT % " ".join(modules)).encode(), 0o755)
    return a.bytes()


class Parts:
    """What all boots share: kernel, modules, archive."""

    def __init__(self, cache, programs, scratch):
        for tool in ("qemu-system-x86_64", "busybox", "apt-get", "dpkg-deb", "ldd"):
            if shutil.which(tool) is None:
                raise Skipped(f"{tool} is not installed")
        self.elf, modules = kernel(cache, MODULES)
        missing = [name for name, path in modules.items() if not path.exists()]
        if missing:
            # Built in, or of another name in this kernel.
            modules = {name: path for name, path in modules.items() if path.exists()}
        self.initrd = scratch / "initrd"
        self.initrd.write_bytes(initramfs(programs, modules))


class Wire:
    """The far end of a NIC's cable."""

    def __init__(self, path, number):
        self.near, self.far = f"{path}/near{number}", f"{path}/far{number}"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
            self.socket.setsockopt(socket.SOL_SOCKET, option, 4 << 20)
        self.socket.bind(self.near)
        self.socket.setblocking(False)
        self.got = []

    def netdev(self, name):
        return (
            f"dgram,id={name},local.type=unix,local.path={self.far},"
            f"remote.type=unix,remote.path={self.near}"
        )

    def collect(self):
        while True:
            try:
                frame = self.socket.recv(65536)
            except BlockingIOError:
                return
            self.got.append(frame)

    def quiet(self, seconds=0.5):
        """Waits until what was under way has come, and forgets it."""
        seen = -1
        while len(self.got) != seen:
            seen = len(self.got)
            time.sleep(seconds)
            self.collect()
        self.got.clear()

    def follow(self, last, wanted):
        """Sends a frame until it comes back as wanted, and forgets all that came before it."""
        end = time.monotonic() + 20 * PATIENCE
        while True:
            self.send([last])
            time.sleep(0.05)
            self.collect()
            if wanted in self.got:
                break
            check(time.monotonic() < end, "the frame that follows what was under way does not come back")
        self.quiet()

    def exchange(self, frames, wanted, window=200, timeout=40):
        """Sends the frames, at most window ahead of what comes back; returns what came."""
        self.collect()
        self.got.clear()
        end = time.monotonic() + timeout * PATIENCE
        sent = 0
        while len(self.got) < wanted and time.monotonic() < end:
            if sent < len(frames) and sent - len(self.got) < window:
                try:
                    self.socket.sendto(frames[sent], self.far)
                    sent += 1
                    continue
                except (BlockingIOError, ConnectionRefusedError, FileNotFoundError):
                    pass
            time.sleep(0.0005)
            self.collect()
        return self.got

    def send(self, frames, seconds=5):
        """Sends without waiting for answers; returns how many QEMU took."""
        end = time.monotonic() + seconds
        sent = 0
        while sent < len(frames) and time.monotonic() < end:
            try:
                self.socket.sendto(frames[sent], self.far)
                sent += 1
            except (BlockingIOError, ConnectionRefusedError, FileNotFoundError):
                time.sleep(0.0005)
        return sent


IOMMU = ["-device", "intel-iommu,caching-mode=on,intremap=on,aw-bits=48"]


class Machine:
    """One boot. devices are QEMU's arguments for the PCI side; None: NIC and BAR at bus 0."""

    boot_s = 40  # boots alone in 5 s; a boot that hangs is tried once more

    def __init__(self, parts, path, nics=("e1000e",), bar_mib=64, iommu="on", devices=None, memory=640):
        self.path = path
        path.mkdir()
        self.bar_path = path / "bar"
        with open(self.bar_path, "wb") as f:
            f.truncate(bar_mib << 20)
        self.wires = [Wire(path, i) for i in range(len(nics))]
        argv = ["qemu-system-x86_64", "-M", "q35", "-accel", "tcg,thread=multi,tb-size=256",
                "-cpu", "max", "-smp", "2", "-m", str(memory), "-nodefaults", "-display", "none",
                "-no-reboot", "-serial", "stdio",
                "-chardev", f"socket,id=shell,path={path}/shell,server=on,wait=off",
                "-serial", "chardev:shell",
                "-monitor", f"unix:{path}/monitor,server=on,wait=off",
                "-kernel", str(parts.elf), "-initrd", str(parts.initrd),
                "-append", f"{QUIET} " + {
                    "on": "intel_iommu=on iommu.strict=1",
                    "passthrough": "intel_iommu=on iommu=pt",
                    "off": "intel_iommu=off",
                }[iommu]]  # fmt: skip
        argv += IOMMU
        for i, _ in enumerate(nics):
            argv += ["-netdev", self.wires[i].netdev(f"n{i}")]
        argv += ["-object", f"memory-backend-file,id=gpu,mem-path={self.bar_path},"
                 f"size={bar_mib << 20},share=on"]  # fmt: skip
        if devices is None:
            devices = []
            for i, model in enumerate(nics):
                addr = (3, 5, 6, 7)[i]
                devices += ["-device", f"{model},netdev=n{i},id=nic{i},mac=52:54:00:00:00:0{i + 1},addr={addr}"]
            devices += ["-device", "ivshmem-plain,memdev=gpu,id=bar,addr=4"]
        self.argv = argv + devices
        self.told = []
        self.start()

    def start(self):
        for attempt in range(2):
            self.err = open(self.path / "qemu.err", "w+", encoding="utf-8")
            self.process = subprocess.Popen(
                self.argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.err
            )
            self.ready = threading.Event()
            threading.Thread(target=self._listen, args=(self.process,), daemon=True).start()
            if self.ready.wait(self.boot_s * PATIENCE) and self.process.poll() is None:
                break
            print(f"     boot {attempt} failed: {self.console()[-300:]}", flush=True)
            self.process.kill()
            self.process.wait()
        else:
            raise Failed(f"the guest came up in neither of two boots: {self.qemu_said()}\n{self.console()}")
        self.shell = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.shell.connect(f"{self.path}/shell")

    def _listen(self, process):
        for line in process.stdout:
            self.told.append((time.monotonic(), line.decode(errors="replace").rstrip()))
            if "GUEST READY" in self.told[-1][1]:
                self.ready.set()
        self.ready.set()

    def console(self):
        return "\n".join(line for _, line in self.told)

    def qemu_said(self):
        self.err.seek(0)
        return self.err.read()

    def run(self, command, timeout=30):
        """Status and output of a shell command in the guest."""
        self.shell.settimeout(timeout * PATIENCE)
        self.shell.sendall(command.encode() + b"\n")
        told = b""
        try:
            while not re.search(rb"\x01\d+\n$", told):
                part = self.shell.recv(65536)
                if not part:
                    raise Failed(f"the guest ended in: {command}\n{self.console()[-2000:]}")
                told += part
        except TimeoutError as hung:
            raise Failed(f"the guest hangs in: {command}\n{told.decode(errors='replace')}\n"
                         f"{self.console()[-2000:]}") from hung  # fmt: skip
        text, _, status = told.rpartition(b"\x01")
        return int(status), text.decode(errors="replace")

    def must(self, command, timeout=30):
        status, told = self.run(command, timeout)
        check(status == 0, f"in the guest: {command}: status {status}: {told}\n{self.console()[-1500:]}")
        return told

    def put(self, name, text):
        """A text file in the guest's /job, a line at a time: the shell's line is bounded."""
        self.must(f": >/job/{name}")
        for line in text.splitlines():
            quoted = line.replace("'", "'\\''")
            self.must(f"echo '{quoted}' >>/job/{name}")

    def bind(self, *addresses):
        """Gives devices to vfio-pci."""
        for a in addresses:
            self.must(
                f"d=/sys/bus/pci/devices/{a}; echo vfio-pci >$d/driver_override; "
                f"[ ! -e $d/driver ] || echo {a} >$d/driver/unbind; "
                f"echo {a} >/sys/bus/pci/drivers_probe; [ -e $d/driver ]"
            )

    def monitor(self, command):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
            s.settimeout(2)
            s.connect(f"{self.path}/monitor")
            s.sendall(command.encode() + b"\n")
            told = b""
            try:
                while told.count(b"(qemu)") < 2:
                    part = s.recv(65536)
                    if not part:
                        break
                    told += part
            except TimeoutError:
                pass
        return told.decode(errors="replace")

    def bar(self):
        """The device's memory as it is now."""
        with open(self.bar_path, "rb") as f:
            return mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)

    def close(self):
        self.shell.close()
        self.process.kill()
        self.process.wait()
        self.err.close()
        for w in self.wires:
            w.socket.close()
        self.bar_path.unlink()
