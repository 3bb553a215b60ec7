# SPDX-License-Identifier: BSD-3-Clause
"""guest: a machine of its own in QEMU's software emulation, for what this one lacks.

Debian's kernel package is fetched, not installed; its kernel is unpacked to the ELF file in
it, which QEMU enters directly (PVH), since decompression is slow there, and kept with the
modules that were asked for. The root file system is a cpio archive of the programs under
test with the libraries that they load. Nothing here needs root or KVM.
"""
import gzip
import io
import lzma
import os
import pathlib
import re
import struct
import subprocess
import tarfile

from harness import Skipped

FETCH_S = 90
LIBGCC = "/lib/x86_64-linux-gnu/libgcc_s.so.1"  # loaded as a thread ends, so ldd is silent
PLUGINS = pathlib.Path("/usr/lib/x86_64-linux-gnu/dpdk/pmds-23.0")
QUIET = (
    "console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable nokaslr "
    "random.trust_cpu=on audit=0 no_timer_check"
)


def run(*argv, timeout=FETCH_S, **keys):
    try:
        return subprocess.run(argv, capture_output=True, timeout=timeout, check=False, **keys)
    except (OSError, subprocess.TimeoutExpired) as why:
        raise Skipped(f"{argv[0]}: {why}") from why


def kernel_elf(image):
    """The vmlinux in a bzImage: Documentation/x86/boot.rst, payload_offset and _length."""
    setup_sectors = image[0x1F1] or 4
    offset, length = struct.unpack_from("<II", image, 0x248)
    at = (setup_sectors + 1) * 512 + offset
    packed = image[at : at + length]
    if packed.startswith(b"\xfd7zXZ"):
        elf = lzma.LZMADecompressor().decompress(packed)
    elif packed.startswith(b"\x1f\x8b"):
        elf = gzip.GzipFile(fileobj=io.BytesIO(packed)).read()
    elif packed.startswith(b"\x28\xb5\x2f\xfd"):
        elf = run("zstd", "-dc", input=packed).stdout
    else:
        raise Skipped(f"the kernel is packed in a way not known here: {packed[:4].hex()}")
    if not elf.startswith(b"\x7fELF"):
        raise Skipped("no kernel was found in the package")
    return elf


def unpacked(cache, package):
    """The files of a Debian package that is not installed: each path, and how to read it."""
    fetched = run("apt-get", "-q", "download", package, cwd=cache)
    packages = list(cache.glob(f"{package}_*.deb"))
    if fetched.returncode != 0 or not packages:
        raise Skipped(f"{package} cannot be fetched: {fetched.stderr.decode().strip()[-200:]}")
    whole = run("dpkg-deb", "--fsys-tarfile", packages[0]).stdout
    packages[0].unlink()
    with tarfile.open(fileobj=io.BytesIO(whole)) as files:
        for member in files:
            yield member.name, lambda member=member: files.extractfile(member).read()


def tool(cache, package, path):
    """A program of a Debian package that need not be installed for the sake of one."""
    cache.mkdir(parents=True, exist_ok=True)
    ready = cache / os.path.basename(path)
    for name, data in unpacked(cache, package) if not ready.exists() else ():
        if name == f".{path}":
            store(ready, data())
            ready.chmod(0o755)
    return ready


def kernel(cache, modules=()):
    """The kernel that Debian's linux-image-amd64 stands for, and those of its modules, by
    name; fetched once for a build folder."""
    cache.mkdir(parents=True, exist_ok=True)
    depends = run("apt-cache", "depends", "linux-image-amd64").stdout.decode()
    named = re.search(r"Depends: (linux-image-\S+)", depends)
    if named is None:
        raise Skipped("the package lists name no kernel; run apt-get update")
    ready = cache / f"vmlinux-{named[1]}"
    kept = {name: cache / f"{named[1]}-{name}.ko" for name in modules}
    if all(path.exists() for path in (ready, *kept.values())):
        return ready, kept
    for path, data in unpacked(cache, named[1]):
        name = os.path.basename(path)
        if path.startswith("./boot/vmlinuz-"):
            store(ready, kernel_elf(data()))
        elif name.removesuffix(".ko") in kept and name.endswith(".ko"):
            store(kept[name.removesuffix(".ko")], data())
    return ready, kept


def store(path, data):
    """Whole or not at all."""
    part = path.with_suffix(".part")
    part.write_bytes(data)
    part.rename(path)


class Initramfs:
    """A cpio archive in the form newc (cpio(5))."""

    def __init__(self):
        self.out = io.BytesIO()
        self.names = set()

    def entry(self, name, mode, data=b""):
        name = name.strip("/")
        if name in self.names:
            return
        self.names.add(name)
        parent = os.path.dirname(name)
        if parent:
            self.entry(parent, 0o040755)
        raw = name.encode() + b"\0"
        fields = (len(self.names), mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(raw), 0)
        head = b"070701" + b"".join(b"%08X" % f for f in fields)
        self.out.write(head + raw + b"\0" * (-(len(head) + len(raw)) % 4))
        self.out.write(data + b"\0" * (-len(data) % 4))

    def file(self, name, data, mode=0o644):
        self.entry(name, 0o100000 | mode, data)

    def link(self, name, target):
        self.entry(name, 0o120777, target.encode())

    def copy(self, path, name=None):
        """A file, at its real place and under the name by which it is found."""
        real = os.path.realpath(path)
        if name is None:
            name = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
            if name != real:
                self.link(name, real)
            name = real
        self.file(name, pathlib.Path(real).read_bytes(), 0o755)

    def program(self, path, name=None):
        """A program or plug-in with the libraries that it loads."""
        self.copy(path, name)
        for line in run("ldd", path).stdout.decode().splitlines():
            library = re.search(r"(/\S+) \(0x", line)
            if library:
                self.copy(library[1])

    def merged_usr(self):
        """/bin and the like as links, as on this machine."""
        for name in ("bin", "sbin", "lib", "lib64"):
            real = os.path.realpath("/" + name)
            if real != "/" + name:
                self.link(name, real.lstrip("/"))

    def plugins(self, names):
        """DPDK's drivers of those names."""
        for name in names:
            found = sorted(PLUGINS.glob(f"librte_{name}.so*"))
            if not found:
                raise Skipped(f"DPDK has no plug-in {name} in {PLUGINS}")
            for path in found:
                self.program(str(path))

    def bytes(self):
        self.entry("TRAILER!!!", 0)
        return self.out.getvalue()
