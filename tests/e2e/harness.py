# SPDX-License-Identifier: BSD-3-Clause
"""harness: what the end-to-end tests share.

A test is a program: it is handed the path of the real millrace, works in a scratch folder
of its own, prints one line for each case and ends with 0 (all hold), 1 (one does not) or 77
(nothing could be judged here).

    case      a function decorated with @case; its name says what holds
    Scratch   the folder, the configurations, the instances started in it
    Instance  one millrace process; wait() judges what holds for every run:
              stdout is one line of JSON of the schema, packets are conserved

Instances keep their sockets in the scratch folder (RUNTIME_DIRECTORY), so that a test
sees its own only. Captures are written and read here, byte by byte, so that the judge
shares no code with libpcap or DPDK.
"""
import contextlib
import fcntl
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import traceback

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
SCHEMAS = SOURCE / "tests" / "schema"
sys.path.insert(0, str(SCHEMAS))
import validate as schemas  # noqa: E402

CLEAN, FAILURE, USAGE, GPU, PORT, UNDRAINED, CONFIG = 0, 1, 2, 3, 4, 5, 78

# A sanitizer build is slower by this much; meson multiplies its own time limit alike.
PATIENCE = float(os.environ.get("MILLRACE_PATIENCE", "1"))
WAIT_S = 100 * PATIENCE

SANITIZER = re.compile(r"(Address|Leak|Thread)Sanitizer|: runtime error: ")

PCAP_HEADER = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)


def fewer(count, what):
    """What a sanitizer build, which is slower, does of count in the same time, and says so."""
    if PATIENCE == 1:
        return count
    some = int(count / PATIENCE)
    print(f"note: {some} {what} for {count}: a sanitizer build is slow", flush=True)
    return some


def sees_threads(millrace):
    """Is it a build with ThreadSanitizer? It takes one byte at two addresses for two, so there
    a guard by mprotect, which needs both, makes hand-overs look like races."""
    return b"__tsan_init" in pathlib.Path(millrace).read_bytes()


def sees_memory(millrace):
    """Is it a build with AddressSanitizer or ThreadSanitizer? Both take terabytes of addresses."""
    return b"__asan_init" in pathlib.Path(millrace).read_bytes() or sees_threads(millrace)


def free_port():
    """Of the loopback; nobody else has it yet, and the kernel gives it to no client."""
    low = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split()[0])
    while True:
        with socket.socket() as s, contextlib.suppress(OSError):
            port = random.randrange(low // 2, low)
            s.bind(("127.0.0.1", port))
            return port


def whole_frames(raw):
    """How many of a capture are whole, of which the rest may be missing."""
    at, whole = 24, 0
    while at + 16 <= len(raw):
        at += 16 + struct.unpack_from("<I", raw, at + 8)[0]
        whole += at <= len(raw)
    return whole


class Failed(Exception):
    pass


class Skipped(Exception):
    pass


def check(condition, sentence):
    if not condition:
        raise Failed(sentence)


def until(holds, wrong):
    """Waits for a condition; wrong says what it is where that never comes, and may be a function."""
    end = time.monotonic() + WAIT_S
    while not holds():
        check(time.monotonic() < end, wrong() if callable(wrong) else wrong)
        time.sleep(0.02)


def check_equal(got, wanted, what):
    check(got == wanted, f"{what}: got {got!r}, wanted {wanted!r}")


def write_pcap(path, frames):
    with open(path, "wb") as f:
        f.write(PCAP_HEADER)
        for number, data in enumerate(frames):
            f.write(struct.pack("<IIII", number // 1000, number % 1000, len(data), len(data)))
            f.write(data)


def read_pcap(path):
    """The frames of a capture; a frame that was cut short is a failure."""
    raw = pathlib.Path(path).read_bytes()
    magic = struct.unpack_from("<I", raw)[0] if len(raw) >= 24 else 0
    check(magic in (0xA1B2C3D4, 0xA1B23C4D), f"{path} is not a capture")
    frames = []
    at = 24
    while at < len(raw):
        kept, length = struct.unpack_from("<II", raw, at + 8)
        check(kept == length, f"{path}: frame {len(frames)} has {kept} of {length} bytes")
        check(at + 16 + kept <= len(raw), f"{path}: frame {len(frames)} is incomplete")
        frames.append(raw[at + 16 : at + 16 + kept])
        at += 16 + kept
    return frames


def pcapng_blocks(raw):
    """Type and body of each block that is there to its end."""
    at = 0
    while at + 12 <= len(raw):
        kind, length = struct.unpack_from("<II", raw, at)
        if at + length > len(raw):
            return
        check(length % 4 == 0 and length >= 12, f"a block of {length} bytes at {at}")
        check_equal(struct.unpack_from("<I", raw, at + length - 4)[0], length, f"the length at the end of the block at {at}")
        yield kind, raw[at + 8 : at + length - 4]
        at += length


def check_frames(got, wanted, what):
    """The same frames in the same order, with words where they differ."""
    for i, (g, w) in enumerate(zip(got, wanted)):
        if g != w:
            at = next((k for k in range(min(len(g), len(w))) if g[k] != w[k]), "the end")
            raise Failed(
                f"{what}: frame {i} of {len(wanted)} differs at byte {at} "
                f"({len(g)} bytes for {len(w)})"
            )
    check(len(got) == len(wanted), f"{what}: {len(got)} frames, wanted {len(wanted)}")


def swapped(frame):
    """What l2swap makes of a frame; tests/e2e/test_packets.py compares this with scapy."""
    return frame[6:12] + frame[0:6] + frame[12:]


def lane(name, rx, tx, stages=(), path="direct", **keys):
    """One lane; rx is a port, tx a port or a list of them, all on queue 0."""
    out = {
        "name": name,
        "rx": {"port": rx, "queue": 0},
        "tx": [{"port": p, "queue": 0} for p in ([tx] if isinstance(tx, str) else tx)],
        "core": "any",
        "device": "g0",
        "path": [path],
        "stages": [s if isinstance(s, dict) else {"use": s} for s in stages],
    }
    out.update(keys)
    return out


def config(ports, lanes, device="sim", region="64MiB", drain_ms=5000, **keys):
    """ports: {name: device or mapping}."""
    out = {
        "eal": {"hugepages": "off"},
        "devices": [{"name": "g0", "device": device, "region": region}],
        "ports": [
            {"name": n, **(p if isinstance(p, dict) else {"device": p})} for n, p in ports.items()
        ],
        "lanes": lanes,
        "stop": {"drain_ms": drain_ms},
    }
    out.update(keys)
    return out


def validate(schema, text):
    if schemas.jsonschema is None:
        raise Skipped("python3-jsonschema is not installed")
    found = schemas.complaints(SCHEMAS / schema, text)
    check(not found, f"not of {schema}: " + "\n".join(found) + f"\n{text[:2000]}")


def sentences(stderr):
    """The lines that millrace itself wrote, without what DPDK says."""
    return [l for l in stderr.splitlines() if l.startswith("millrace: ")]


def complaints(stderr):
    """Those of them that are not progress."""
    return [l for l in sentences(stderr) if " runs " not in l]


def check_conserved(report):
    """Counts again by itself what `balanced` claims."""
    for ln in report["lanes"]:
        came = ln["rx_packets"] + ln["made_packets"]
        went = ln["tx_packets"] + sum(ln["drops"].values()) + ln["in_flight"]
        check(
            came == went,
            f"lane {ln['name']}: {came} packets came, {went} are accounted for: {ln}",
        )


def processor_s():
    """What the processors did for the processes that ended: no busy machine makes it longer."""
    all_ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return all_ended.ru_utime + all_ended.ru_stime


class Result:
    """A run that has ended."""

    def __init__(self, status, stdout, stderr, seconds):
        self.status, self.stdout, self.stderr, self.seconds = status, stdout, stderr, seconds
        self.report = None

    def told(self):
        return f"status {self.status} after {self.seconds:.1f} s\n{self.stdout}\n{self.stderr}"

    def lane(self, name="l0"):
        return next(ln for ln in self.report["lanes"] if ln["name"] == name)

    def stage(self, lane_name, stage):
        stages = self.lane(lane_name)["stages"]
        return next(s for s in stages if s["name"] == stage)["counters"]

    def drops(self, name="l0"):
        """The drop counters that are not 0."""
        return {k: v for k, v in self.lane(name)["drops"].items() if v != 0}


def judge(r, status=CLEAN, reason=None):
    """What holds for the end of every `run --json`; fills r.report."""
    check(r.status == status, f"wanted status {status}, got {r.told()}")
    validate("run.schema.json", r.stdout)
    r.report = json.loads(r.stdout)
    if "lanes" in r.report:
        check_conserved(r.report)
        check(r.report["balanced"] is True, f"not balanced: {r.told()}")
        left = sum(ln["in_flight"] for ln in r.report["lanes"])
        # What a kernel was given and has not answered when it left, nobody can drain; what
        # came by a path that no longer holds, nobody wants to.
        gone = status in (UNDRAINED, GPU)
        gone = gone or r.report["exit_reason"] in ("host_silent", "path_unproven")
        check(left == 0 or gone, f"{left} packets in flight: {r.told()}")
    if reason is not None:
        check_equal(r.report["exit_reason"], reason, f"exit_reason of {r.told()}")
    return r


class Instance:
    """A millrace process. Ended by wait(), or by force with the scratch folder."""

    def __init__(self, scratch, argv):
        self.argv = [str(a) for a in argv]
        self.scratch = scratch
        self.started = time.monotonic()
        self.err = open(scratch.path / f"stderr-{len(scratch.instances)}", "a+", encoding="utf-8")
        self.process = subprocess.Popen(
            self.argv,
            cwd=scratch.path,
            env=scratch.env,
            stdout=subprocess.PIPE,
            stderr=self.err,
            text=True,
        )
        scratch.instances.append(self)

    def stderr(self):
        self.err.seek(0)
        return self.err.read()

    def until_running(self):
        """Returns once the lanes run."""

        def runs():
            check(self.process.poll() is None, f"ended at once:\n{self.stderr()}")
            return " runs " in "".join(sentences(self.stderr()))

        until(runs, lambda: f"does not come up:\n{self.stderr()}")
        return self

    def stats(self):
        """What it counted so far."""
        return json.loads(self.scratch.command("stats", "--json", "--name", self.name).stdout)

    def until_catches(self, number):
        """Returns once a signal has a handler, and the process waits for something."""

        def catches():
            check(self.process.poll() is None, f"ended at once:\n{self.stderr()}")
            told = pathlib.Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
            caught = int(re.search(r"^SigCgt:\s*(\w+)", told, re.M)[1], 16)
            return caught >> (number - 1) & 1 and re.search(r"^State:\s*S", told, re.M)

        until(catches, lambda: f"catches no signal:\n{self.stderr()}")

    def signal(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return time.monotonic()

    def ended(self):
        """Waits for the end and judges nothing."""
        try:
            stdout, _ = self.process.communicate(timeout=WAIT_S)
        except subprocess.TimeoutExpired as hung:
            self.process.kill()
            self.process.communicate()
            raise Failed(f"hangs: {' '.join(self.argv)}\n{self.stderr()}") from hung
        stderr = self.stderr()
        # A sanitizer's exit status could be the wanted one.
        check(not SANITIZER.search(stderr), f"a sanitizer reports:\n{stderr}")
        return Result(self.process.returncode, stdout, stderr, time.monotonic() - self.started)

    def wait(self, status=CLEAN, reason=None):
        """Waits for the end of a `run --json` and judges it."""
        return judge(self.ended(), status, reason)


class Scratch:
    def __init__(self, millrace, prefix=()):
        self.millrace = str(millrace)
        self.prefix = list(prefix)
        self.always = ()  # arguments of every run
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="mr-e2e-"))
        self.instances = []
        self.names = 0
        run = self.path / "run"
        run.mkdir()
        self.env = dict(os.environ, RUNTIME_DIRECTORY=str(run), LC_ALL="C.UTF-8")

    def close(self):
        for i in self.instances:
            if i.process.poll() is None:
                i.process.kill()
                i.process.communicate()
            i.err.close()
        shutil.rmtree(self.path, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def pcap(self, name, frames):
        write_pcap(self.path / name, frames)

    def frames(self, name):
        return read_pcap(self.path / name)

    def write(self, name, text):
        path = self.path / name
        path.write_text(text if isinstance(text, str) else json.dumps(text, indent=1) + "\n")
        return path

    def command(self, *args, prefix=()):
        """Any command, to its end."""
        return Instance(self, [*prefix, self.millrace, *args]).ended()

    def start(self, cfg, *args, name=None, prefix=None, millrace=None):
        self.names += 1
        name = name or f"e2e-{os.getpid()}-{self.names}"
        path = self.write(f"{name}.yaml", cfg)
        prefix = self.prefix if prefix is None else prefix
        argv = [*prefix, millrace or self.millrace, "run", path, "--json", "--name", name, *self.always, *args]
        instance = Instance(self, argv)
        instance.name = name
        return instance

    def run(self, cfg, *args, status=CLEAN, reason=None, **keys):
        return self.start(cfg, *args, **keys).wait(status, reason)

    def run_idle(self, cfg, **keys):
        """A run over captures: ends when nothing moved for half a second."""
        return self.run(cfg, "--idle-exit", str(0.5 * PATIENCE), reason="idle", **keys)


@contextlib.contextmanager
def machine_hugepages():
    """The file that sets the machine's hugepages aside and how many there are; as many as
    there were come back. They are the machine's, so tests of other builds wait meanwhile."""
    if os.geteuid() != 0:
        raise Skipped("only root can set hugepages aside")
    file = pathlib.Path("/proc/sys/vm/nr_hugepages")
    with open(file, encoding="ascii") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        before = int(file.read_text(encoding="ascii").split()[0])
        try:
            yield file, before
        finally:
            file.write_text(str(before), encoding="ascii")


CASES = []


def case(function):
    CASES.append(function)
    return function


def alone(function):
    """A case that no other runs beside: it judges time, or what the whole machine has."""
    function.alone = True
    return function


def run_case(function, argv):
    """None if it could not be judged, else whether it holds."""
    started = time.monotonic()
    try:
        with Scratch(os.path.abspath(argv[0])) as scratch:
            scratch.others = [os.path.abspath(a) for a in argv[1:]]
            function(scratch)
    except Skipped as why:
        print(f"skip {function.__name__}: {why}", flush=True)
        return None
    except Failed as why:
        print(f"FAIL {function.__name__}: {why}", flush=True)
    except Exception:  # the test's own fault is a failure with its trace
        print(f"FAIL {function.__name__}: {traceback.format_exc()}", flush=True)
    else:
        print(f"ok   {function.__name__} ({time.monotonic() - started:.1f} s)", flush=True)
        return True
    return False


def run_cases(cases, argv):
    """0, 1, or 77 if there is none that could be judged."""
    held = [h for h in (run_case(c, argv) for c in cases) if h is not None]
    return int(not all(held)) if held else 77


def run_side_by_side(cases, argv, processes):
    """The status of each process, which has run a part of them."""
    take, give = os.pipe()
    os.write(give, bytes(range(len(cases))))
    os.close(give)
    children = []
    sys.stdout.flush()
    for _ in range(processes):
        child = os.fork()
        if child == 0:
            numbers = iter(lambda: os.read(take, 1), b"")
            sys.exit(run_cases((cases[n[0]] for n in numbers), argv))
        children.append(child)
    os.close(take)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def main(at_once=2):
    """Runs the cases of the calling program: PROGRAM MILLRACE [OTHER...] [-k WORD]; so many
    beside each other, since most of a case is waiting."""
    argv = sys.argv[1:]
    word = ""
    if "-k" in argv:
        at = argv.index("-k")
        word = argv[at + 1]
        del argv[at : at + 2]
    if not argv:
        print("usage: test MILLRACE [-k WORD]", file=sys.stderr)
        return 1
    chosen = [c for c in CASES if word in c.__name__]
    shared = [c for c in chosen if not hasattr(c, "alone")]
    processes = min(at_once, len(shared))
    if processes < 2:
        shared = []
    statuses = run_side_by_side(shared, argv, processes) if shared else []
    statuses.append(run_cases([c for c in chosen if c not in shared], argv))
    return min(statuses) if set(statuses) <= {0, 77} else 1
