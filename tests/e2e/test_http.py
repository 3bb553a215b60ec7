#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The HTTP server of a running instance: what it tells, whom, and what cannot disturb it."""
import base64
import hashlib
import http.client
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time

from guest import tool
from harness import (
    CLEAN, CONFIG, FAILURE, PATIENCE, SOURCE, Skipped, alone, case, check, check_equal, config, fewer, free_port,
    lane, main, sees_memory, until, validate,
)  # fmt: skip

SERVED = 64  # MR_LISTEN_CONNECTIONS
TYPES = {"/metrics": "text/plain; version=0.0.4; charset=utf-8", "/api/v1/status": "application/json"}


def quiet(listen, device="sim", users=None, stages=(), **keys):
    """A lane that nothing comes to."""
    told = {"listen": listen, **({"users": str(users)} if users else {})}
    return config({"p0": "net_ring0"}, [lane("l0", "p0", "p0", stages)], device, region="16MiB", http=told, **keys)


def busy(listen):
    return config({"p0": "net_null0,size=64,copy=0"}, [lane("l0", "p0", "p0")], region="16MiB", http={"listen": listen})


class Local(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=10 * PATIENCE)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def get(where, url, method="GET", user=None, body=None, source=""):
    """Status, headers and text; where is a port or the path of a socket."""
    if isinstance(where, int):
        c = http.client.HTTPConnection("127.0.0.1", where, timeout=10 * PATIENCE, source_address=(source, 0))
    else:
        c = Local(str(where))
    headers = {}
    if user is not None:
        headers["Authorization"] = "Basic " + base64.b64encode(user.encode()).decode()
    try:
        c.request(method, url, body, headers)
        r = c.getresponse()
        return r.status, r.headers, r.read().decode()
    finally:
        c.close()


def stop(run):
    run.signal()
    return run.wait(CLEAN, "signal")


def resident_kib(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(status.split("VmRSS:")[1].split()[0])


def families(text):
    return sorted(l.split()[2] for l in text.splitlines() if l.startswith("# TYPE "))


@case
def it_tells_what_stats_tells(s):
    port = free_port()
    run = s.start(quiet(f"127.0.0.1:{port}"), name="told").until_running()
    for url, kind in TYPES.items():
        status, headers, text = get(port, url)
        check_equal((status, headers["Content-Type"], headers["Cache-Control"]), (200, kind, "no-store"), url)
        check_equal(get(port, url, "HEAD")[0::2], (200, ""), f"HEAD {url}")
        if url == "/metrics":
            stats = s.command("stats", "--name", "told", "--prometheus").stdout
            check_equal(families(text), families(stats), "families")
        else:
            validate("status.schema.json", text + "\n")
            stats = json.loads(s.command("stats", "--name", "told", "--json").stdout)
            check_equal([k for k in stats if k not in json.loads(text)], [], "members that only stats tells")
            check_equal(json.loads(text)["layout"], [{"name": "l0", "rx": "p0", "tx": ["p0"], "device": "g0"}], "layout")
            check(any(f["id"] == "runtime.folder" for f in json.loads(text)["findings"]), "no findings")
            # A net_ring keeps none of the pool's buffers, so all of the plan's are free.
            planned = json.loads(s.command("check", s.path / "told.yaml", "--json").stdout)["lanes"][0]["pool"]["buffers"]
            check_equal(json.loads(text)["lanes"][0]["pool"], {"buffers": planned, "free": planned}, "pool")
    check_equal(get(port, "/healthz")[0::2], (200, "healthy\n"), "health")
    check_equal(get(port, "/readyz")[0::2], (200, "ready\n"), "readiness")
    check_equal(get(port, "/nothing")[0], 404, "a path that is none")
    status, headers, _ = get(port, "/metrics", "POST", body="x" * 100000)
    check_equal((status, headers["Allow"]), (405, "GET, HEAD"), "POST")
    stop(run)
    with socket.socket() as c:
        check(c.connect_ex(("127.0.0.1", port)) != 0, "it listens after the end")


@case
def a_name_that_was_made_to_mean_this_machine_is_not_answered(s):
    port = free_port()
    run = s.start(busy(f"127.0.0.1:{port}")).until_running()
    wanted = {"localhost": 200, f"LOCALHOST:{port}": 200, "127.0.0.1": 200, f"[::1]:{port}": 200, "evil.example": 421,
              f"evil.example:{port}": 421, "127.0.0.1.evil.example": 421, "::1": 421, "[evil]": 421, "a" * 200: 421}  # fmt: skip
    for host, status in wanted.items():
        c = http.client.HTTPConnection("127.0.0.1", port, timeout=10 * PATIENCE)
        c.putrequest("GET", "/api/v1/status", skip_host=True)
        c.putheader("Host", host)
        c.endheaders()
        check_equal(c.getresponse().status, status, f"Host: {host}")
        c.close()
    stop(run)


@case
def the_buckets_of_the_status_are_those_of_its_latencies(s):
    port = free_port()
    run = s.start(busy(f"127.0.0.1:{port}")).until_running()
    time.sleep(0.5)
    status = json.loads(get(port, "/api/v1/status")[2])
    buckets = status["latency_buckets"]["l0"]
    bounds = [b for b, _ in buckets]
    check_equal(bounds, sorted(set(bounds)), "order of the bounds")
    # The histogram's own, 32 to an octave, so that a bucket is the same one in the next report,
    # whatever has become the longest time.
    odd = [b for b in bounds if (b + 1) % (1 << max(0, (b + 1).bit_length() - 6))]
    check_equal(odd, [], "bounds that are none of the histogram's")
    # The two are read one after the other while packets flow.
    told, held = status["lanes"][0]["latency_ns"]["count"], sum(n for _, n in buckets)
    check(0 < told <= held, f"{told} packets told, {held} in buckets")
    check(status["uptime_s"] > 0.3, f"uptime {status['uptime_s']}")
    pool = status["lanes"][0]["pool"]
    check(0 < pool["free"] <= pool["buffers"], f"{pool['free']} of {pool['buffers']} buffers are free")
    stop(run)


@case
def the_page_may_run_what_is_in_it_and_nothing_else(s):
    port = free_port()
    run = s.start(quiet(f"127.0.0.1:{port}")).until_running()
    status, headers, page = get(port, "/")
    check_equal((status, headers["Content-Type"]), (200, "text/html; charset=utf-8"), "page")
    policy = dict(d.strip().split(" ", 1) for d in headers["Content-Security-Policy"].split(";"))
    check_equal(policy["default-src"], "'none'", "what is not named")
    for tag, source in (("script", policy["script-src"]), ("style", policy["style-src"])):
        inner = page.split(f"<{tag}>")[1].split(f"</{tag}>")[0]
        digest = base64.b64encode(hashlib.sha256(inner.encode()).digest()).decode()
        check_equal(source, f"'sha256-{digest}'", tag)
        check_equal(page.count(f"<{tag}"), 1, f"elements {tag}")
    check("http:" not in page and "https:" not in page, "an address")
    stop(run)


def alerts(series, at, **counts):
    """A case of `promtool test rules`: how many of each alert are firing at a time."""
    labels = '{job="millrace", instance="here:9467", lane="l0"}'
    names = [f"count(ALERTS{{alertname=\"{name}\", alertstate=\"firing\"}}) or vector(0)" for name in counts]
    return {
        "interval": "15s",
        "input_series": [{"series": name + labels, "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {"expr": e, "eval_time": at, "exp_samples": [{"labels": "{}", "value": n}]} for e, n in zip(names, counts.values())
        ],
    }


@case
def prometheus_takes_the_metrics_and_the_alerts(s):
    promtool = shutil.which("promtool") or tool(pathlib.Path(s.others[0]), "prometheus", "/usr/bin/promtool")
    port = free_port()
    run = s.start(quiet(f"127.0.0.1:{port}", stages=["checksum"])).until_running()
    metrics = get(port, "/metrics")[2]
    stop(run)
    r = subprocess.run([promtool, "check", "metrics"], input=metrics, capture_output=True, text=True)
    check_equal((r.returncode, r.stdout + r.stderr), (0, ""), "promtool check metrics")
    rules = SOURCE / "deploy" / "prometheus" / "millrace.rules.yml"
    r = subprocess.run([promtool, "check", "rules", rules], capture_output=True, text=True)
    check(r.returncode == 0 and "SUCCESS" in r.stdout, f"promtool check rules: {r.stdout}{r.stderr}")
    cases = s.path / "alerts.yml"
    cases.write_text(json.dumps({"rule_files": [str(rules)], "evaluation_interval": "15s", "tests": [
        alerts({"up": "1 1 1 1 0x20"}, "3m", MillraceDown=1),
        alerts({"up": "1 1 1 1 1x20"}, "3m", MillraceDown=0, MillraceUnwatched=0),
        alerts({"up": "1 1 1 1 stale"}, "10m", MillraceDown=0, MillraceUnwatched=1),
        # Started four times: the counter goes back to 0 three times.
        alerts({"up": "1x40", "millrace_turns_total": "9 99 3 88 0 50 2 70 90x32"}, "9m", MillraceRestarts=1, MillraceDown=0),
        alerts({"up": "1x40", "millrace_turns_total": "9 99 3 88 90x36"}, "9m", MillraceRestarts=0),
        alerts({"up": "1x40", "millrace_slots_given_total": "7x40", "millrace_in_flight_packets": "5x40"}, "9m",
            MillraceKernelWithoutProgress=1),
        alerts({"up": "1x40", "millrace_path_proven": "1 1 0x38"}, "9m", MillracePathNotProven=1),
        alerts({"millrace_pool_buffers": "1000x40", "millrace_pool_free": "49x40"}, "9m", MillracePoolLow=1,
            MillracePoolEmpty=0),
        alerts({"millrace_pool_buffers": "1000x40", "millrace_pool_free": "50x40"}, "9m", MillracePoolLow=0),
        # Without a pool there is none to run low.
        alerts({"millrace_pool_buffers": "0x40", "millrace_pool_free": "0x40"}, "9m", MillracePoolLow=0),
        alerts({"millrace_port_rx_nombuf_total": "0+15x40"}, "9m", MillracePoolEmpty=1, MillracePoolLow=0),
    ]}))  # fmt: skip
    r = subprocess.run([promtool, "test", "rules", cases], capture_output=True, text=True)
    check(r.returncode == 0 and "SUCCESS" in r.stdout, f"promtool test rules: {r.stdout}{r.stderr}")


@case
def a_path_that_is_no_longer_proven_is_not_ready(s):
    port = free_port()
    run = s.start(quiet(f"127.0.0.1:{port}", "sim,fault=revoke@1500", proof={"alarm": "go_on"})).until_running()
    until(lambda: get(port, "/readyz")[0] == 503, "it stays ready")
    check_equal(get(port, "/readyz")[2], "the path of lane l0 is unproven\n", "readiness")
    check_equal(get(port, "/healthz")[0], 200, "health")
    check("millrace_path_proven" in get(port, "/metrics")[2], "no metric of it")
    stop(run)


def user_file(s, name, text, mode=0o600):
    path = pathlib.Path(s.write(name, text))
    path.chmod(mode)
    return path


@case
def only_users_are_told(s):
    secret = subprocess.run(["openssl", "passwd", "-6", "right"], capture_output=True, text=True, check=True)
    users = user_file(s, "users", f"# who may ask\n\nanne:{secret.stdout.strip()}\n")
    port = free_port()
    run = s.start(quiet(f"0.0.0.0:{port}", users=users)).until_running()
    for url in ("/metrics", "/readyz", "/nothing"):
        status, headers, text = get(port, url)
        check_equal((status, "millrace_" in text), (401, False), f"{url} to nobody in particular")
        check("Basic" in headers["WWW-Authenticate"], "no challenge")
    check_equal(get(port, "/metrics", user="anne:right")[0], 200, "the right password")
    for _ in range(5):
        time.sleep(1)
        began = time.monotonic()
        statuses = [get(port, "/metrics", user=u)[0] for u in ("anne:wrong", "bob:right", "anne:", ":", "anne:righ", "a:b", "c:d")]
        if time.monotonic() - began < 0.9:
            break  # else they are counted anew on the way
    check_equal(statuses[:4], [401] * 4, "wrong passwords")
    check_equal(statuses[-1], 429, "one guess too many")
    check_equal(get(port, "/metrics", user="anne:right")[0], 200, "who is known is not told to wait")
    stop(run)
    run = s.start(quiet(f"0.0.0.0:{port}", users=users)).until_running()
    guesses = [get(port, "/metrics", user="anne:wrong", source="127.0.0.2")[0] for _ in range(8)]
    check(429 in guesses, f"who guesses: {guesses}")
    check_equal(get(port, "/metrics", user="anne:right")[0], 200, "who does not")
    stop(run)


@case
def what_is_wrong_with_the_server_is_told_before_lanes_run(s):
    for listen, words in (("0.0.0.0:9", "tell everybody"), ("[::]:9", "tell everybody"),
        ("localhost:9", "in numbers"), ("127.0.0.1", "ADDRESS:PORT"), ("127.0.0.1:0", "ADDRESS:PORT"),
        ("127.0.0.1:65536", "ADDRESS:PORT"), ("[::1:9", "in numbers"), ("unix:here", "from the root"),
        ("unix:/" + "x" * 110, "a socket takes")):  # fmt: skip
        r = s.command("check", "--no-host", s.write("wrong.yaml", quiet(listen)))
        check_equal(r.status, CONFIG, f"{listen}: {r.told()}")
        check(words in r.stderr and "http.listen" in r.stderr, f"{listen}: {r.stderr}")
    good = "anne:$6$saltsalt$" + "x" * 86 + "\n"
    for text, mode, words in ((good, 0o604, "chmod o="), ("anne\n", 0o600, ":1: is not NAME:HASH"),
        ("anne:$6$saltsalt\n", 0o600, ":1: the hash of 'anne'"), (good + good, 0o600, ":2: 'anne' was there before"),
        (good + "bob:plain\n", 0o600, ":2: the hash of 'bob'"), ("# none\n", 0o600, "names no user"),
        ("x" * 600, 0o600, "longer than"), (None, 0, "No such file")):  # fmt: skip
        users = user_file(s, "bad", text, mode) if text is not None else s.path / "gone"
        r = s.start(quiet(f"127.0.0.1:{free_port()}", users=users)).wait(CONFIG)
        check(words in r.stderr, f"{words!r}: {r.stderr}")
        r = s.command("check", s.write("wrong.yaml", quiet("127.0.0.1:9", users=users)))
        check_equal((r.status, words in r.stderr, "http.users" in r.stderr), (CONFIG, True, True), r.told())


@case
def an_address_in_use_is_a_sentence_and_a_socket_left_behind_none(s):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        r = s.start(quiet(f"127.0.0.1:{other.getsockname()[1]}")).wait(FAILURE)
        check("another program does" in r.stderr, r.stderr)
    mine = pathlib.Path(s.write("mine", "what somebody keeps"))
    r = s.start(quiet(f"unix:{mine}"), "--duration", "1").wait(FAILURE)
    check("is no socket" in r.stderr, r.stderr)
    check_equal(mine.read_text(), "what somebody keeps", "a file where the socket was to be")
    path = s.path / "http"
    run = s.start(quiet(f"unix:{path}"), name="killed").until_running()
    check_equal(get(path, "/readyz")[0], 200, "over a UNIX socket")
    r = s.start(quiet(f"unix:{path}"), name="second").wait(FAILURE)
    check("another program does" in r.stderr, r.stderr)
    check_equal(get(path, "/readyz")[0], 200, "after the second was refused")
    run.signal(signal.SIGKILL)
    run.ended()
    check(path.exists(), "nothing was left behind")
    run = s.start(quiet(f"unix:{path}"), name="next").until_running()
    check_equal(get(path, "/readyz")[0], 200, "after a kill")
    stop(run)
    check(not path.exists(), "a socket is left behind")
    run = s.start(quiet(f"unix:{path}"), name="removed").until_running()
    path.unlink()
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        stop(run)
        check(path.exists(), "the socket of another program was removed")


@case
def as_many_silent_clients_as_may_be_hold_up_no_stop(s):
    port = free_port()
    few = ["bash", "-c", 'ulimit -n 110; exec "$@"', "sh"]
    r = s.start(quiet(f"127.0.0.1:{port}"), "--duration", "1", prefix=few).wait(CONFIG)
    check("files open" in r.stderr, r.stderr)
    run = s.start(quiet(f"127.0.0.1:{port}")).until_running()
    silent = [socket.create_connection(("127.0.0.1", port), 10, (f"127.0.0.{2 + k % 10}", 0)) for k in range(100)]
    until(lambda: len(os.listdir(f"/proc/{run.process.pid}/fd")) >= 70, "clients are not taken")
    began = time.monotonic()
    stop(run)
    check(time.monotonic() - began < 5 * PATIENCE, f"stopped after {time.monotonic() - began:.1f} s")
    for c in silent:
        c.close()


MALFORMED = (
    b"\0" * 1000, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET " + b"/" * 100000 + b" HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 20000 + b"\r\n", b"GET /metrics HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
    b"GET /%ff%00 HTTP/1.1\r\nHost: x\r\n\r\n", b"POST /metrics HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
)  # fmt: skip


class Clients(threading.Thread):
    """Clients of one kind that go on while they may, and what they leave at the end of it."""

    def __init__(self, port, wanted):
        super().__init__(daemon=True)
        self.port, self.left, self.connected = port, wanted, 0
        self.kind, self.may, self.idle = None, threading.Event(), threading.Event()
        self.wrong = None
        self.idle.set()
        self.start()

    def go(self, kind):
        self.kind = kind
        self.idle.clear()
        self.may.set()

    def halt(self):
        self.may.clear()
        check(self.idle.wait(60 * PATIENCE), f"clients that are {self.kind.__name__} do not end")
        check(self.wrong is None, f"clients that are {self.kind.__name__}: {self.wrong}")

    def run(self):
        while True:
            self.may.wait()
            try:
                self.kind(self)
            except Exception as why:  # told by halt(), in the test's own thread
                self.wrong = repr(why)
                self.may.clear()
            self.idle.set()

    def connect(self):
        """From an address of its own, since each may have a few connections."""
        self.connected += 1
        return socket.create_connection(("127.0.0.1", self.port), 10 * PATIENCE, (f"127.0.1.{self.connected % 250}", 0))

    def asking(self):
        """One request after the other on one connection."""
        with self.connect() as c:
            while self.may.is_set():
                c.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
                told = c.recv(1 << 16)
                head, _, body = told.partition(b"\r\n\r\n")
                rest = int(re.search(rb"Content-Length: (\d+)", head)[1]) - len(body)
                while rest > 0:
                    rest -= len(c.recv(1 << 16))
                check(head.startswith(b"HTTP/1.1 200") and rest == 0, head)
                self.left -= 1

    def slow(self):
        """As many as are served, who ask for much and read a byte now and then."""
        all_ = [self.connect() for _ in range(40)]
        for c in all_:
            c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            c.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20)
        while self.may.is_set():
            for c in all_:
                c.recv(1)
            time.sleep(0.02)
        for c in all_:
            c.close()

    def malformed(self):
        while self.may.is_set():
            for text in MALFORMED:
                with self.connect() as c:
                    try:
                        c.sendall(text)
                        c.shutdown(socket.SHUT_WR)
                        c.recv(4096)
                    except OSError:
                        pass  # it may hang up before it has read all

    def silent(self):
        """Open, and no word."""
        all_ = [self.connect() for _ in range(1000)]
        while self.may.is_set():
            time.sleep(0.02)
        for c in all_:
            c.close()


class LaneBooks:
    """What the kernel and the lane itself say of the lane's thread."""

    def __init__(self, s, run, task):
        stat = (task / "stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
        status = (task / "status").read_text(encoding="ascii")
        self.faults = int(stat[7]) + int(stat[9])
        self.waits = int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", status, re.M)[1])
        told = s.command("stats", "--name", run.name, "--prometheus").stdout
        self.wall, self.cpu = time.monotonic(), int((task / "schedstat").read_text(encoding="ascii").split()[0]) / 1e9
        self.packets, self.cycles = (
            int(re.search(rf"^millrace_{name}{{[^}}]*}} (\d+)", told, re.M)[1]) for name in ("tx_packets_total", "busy_cycles_total")
        )  # fmt: skip

    def since(self, b):
        """Packets for each cycle of the turns that moved any. Time in which another program had the
        lane's core hits such a turn as often as these have the core, and is taken off."""
        return (self.packets - b.packets) / ((self.cycles - b.cycles) * (self.cpu - b.cpu) / (self.wall - b.wall))


def interval(ratios, draws=2000):
    """The median, and the bounds of 95 % of the medians that samples of these would have."""
    rng = random.Random(1)
    medians = sorted(statistics.median(rng.choices(ratios, k=len(ratios))) for _ in range(draws))
    return statistics.median(ratios), medians[draws // 40], medians[-draws // 40]


def lane_task(pid):
    return next(t for t in pathlib.Path(f"/proc/{pid}/task").iterdir() if (t / "comm").read_text(encoding="ascii").strip() == "lane-l0")


def beside_a_core_of_its_own(s, run, port, core, requests):
    """Windows with clients and without, in turn: the lane does as much in each cycle."""
    task = lane_task(run.process.pid)
    shared = [(t / "comm").read_text(encoding="ascii").strip() for t in task.parent.iterdir() if t.name != task.name and core in os.sched_getaffinity(int(t.name))]
    check_equal(shared, [], f"threads beside the lane's that may run on core {core}")
    clients, ratios, kib, files = Clients(port, requests), [], [], []
    began = LaneBooks(s, run, task)
    kinds = (Clients.asking, Clients.slow, Clients.asking, Clients.malformed, Clients.asking, Clients.silent)
    while len(ratios) < 3 * len(kinds) or clients.left > 0:
        check(len(ratios) < 40 * len(kinds), f"{clients.left} requests are still to come")
        kind = kinds[len(ratios) % len(kinds)]
        clients.go(kind)
        time.sleep(0.1)
        before = LaneBooks(s, run, task)
        time.sleep(0.25)
        loaded = LaneBooks(s, run, task).since(before)
        kib.append(resident_kib(run.process.pid))
        files.append(len(os.listdir(f"/proc/{run.process.pid}/fd")))
        clients.halt()
        check_equal(get(port, "/healthz")[0], 200, f"after clients that are {kind.__name__}")
        before = LaneBooks(s, run, task)
        time.sleep(0.25)
        ratios.append(loaded / LaneBooks(s, run, task).since(before))
    now = LaneBooks(s, run, task)
    # A sanitizer's own memory and locks are the thread's too.
    if sees_memory(s.millrace):
        return ratios, kib, files
    check_equal((now.faults - began.faults, now.waits - began.waits), (0, 0), "faults and waits of the lane's thread")
    return ratios, kib, files


@case
def who_opens_all_connections_he_can_leaves_room_for_others(s):
    port = free_port()
    run = s.start(quiet(f"127.0.0.1:{port}")).until_running()
    held = []
    for _ in range(80):
        c = socket.create_connection(("127.0.0.1", port), 10, ("127.0.0.2", 0))
        c.sendall(b"POST /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000000\r\n")
        held.append(c)
    check_equal(get(port, "/readyz")[0], 200, "to another")
    began = time.monotonic()
    check_equal(get(port, "/metrics", "POST", body="x" * 100)[0], 405, "a body")
    with socket.create_connection(("127.0.0.1", port), 10) as c:
        c.sendall(b"POST /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000000\r\n\r\n")
        check(c.recv(100).startswith(b"HTTP/1.1 405"), "a body that does not come is waited for")
    check(time.monotonic() - began < 5 * PATIENCE, "answered late")
    stop(run)
    for c in held:
        c.close()


@case
@alone
def no_client_disturbs_the_lane(s):
    """Ten thousand requests, slow readers, malformed ones, a thousand that are silent: the lane has a
    core of its own, and the server answers the next one in bounded memory."""
    cores = os.sched_getaffinity(0)
    if len(cores) < 2:
        raise Skipped("a lane with a core of its own needs two")
    port, core = free_port(), max(cores)
    cfg = busy(f"127.0.0.1:{port}")
    cfg["lanes"][0]["core"] = core
    run = s.start(cfg).until_running()
    for _ in range(50):
        get(port, "/metrics")
    before, files = resident_kib(run.process.pid), len(os.listdir(f"/proc/{run.process.pid}/fd"))
    os.sched_setaffinity(0, cores - {core})
    try:
        ratios, kib, open_ = beside_a_core_of_its_own(s, run, port, core, fewer(10000, "requests"))
    finally:
        os.sched_setaffinity(0, cores)
    middle, low, high = interval(ratios)
    print(f"     {len(ratios)} windows: with clients {middle:.4f} of the packets per cycle ({low:.4f} to {high:.4f})", flush=True)
    print(f"     resident memory grew by {max(kib) - before} KiB at most, files by {max(open_) - files}", flush=True)
    check(max(open_) - files <= SERVED + 4, f"{max(open_) - files} more files are open")
    # A sanitizer keeps what was freed, and is slower beside others.
    if not sees_memory(s.millrace):
        check(max(kib) - before < 8192, f"resident memory grew by {max(kib) - before} KiB")
        what = f"with clients the lane does {middle:.4f} ({low:.4f} to {high:.4f}) of what it does without"
        # Where the machine is too restless to tell one from the other, its bound is judged.
        check((middle if high - low < 0.02 else high) >= 0.99, what)
    r = stop(run)
    check(r.lane()["rx_packets"] > 0 and r.drops() == {}, "the lane")


sys.exit(main())
