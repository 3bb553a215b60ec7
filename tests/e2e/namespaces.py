# SPDX-License-Identifier: BSD-3-Clause
"""namespaces: network namespaces of the kernel, which end with the program."""
import atexit
import ctypes
import itertools
import os
import re
import socket
import subprocess
import time

from harness import PATIENCE, check

CLONE_NEWNET = 0x40000000  # linux/sched.h
LIBC = ctypes.CDLL(None, use_errno=True)


def out(*argv, ok=True):
    r = subprocess.run(argv, capture_output=True, text=True, check=False)
    check(not ok or r.returncode == 0, f"{' '.join(argv)}: {r.stdout}{r.stderr}")
    return r.stdout


def echo_replies(prefix):
    """How many the kernel of a namespace has had, of either protocol."""
    told = out(*prefix, "cat", "/proc/net/snmp", "/proc/net/snmp6")
    names, values = re.findall(r"^Icmp: (.*)$", told, re.M)
    four = dict(zip(names.split(), values.split()))["InEchoReps"]
    return int(four) + int(re.search(r"^Icmp6InEchoReplies\s+(\d+)$", told, re.M)[1])


def ping(prefix, target, size, count):
    """How many replies came to so many echoes. ping waits for the last ones no longer than
    twice what the slowest took, so the kernel is asked."""
    before = echo_replies(prefix)
    told = out(*prefix, "ping", "-c", str(count), "-i", "0.02", "-W", str(int(5 * PATIENCE)), "-q",
        "-s", str(size), "-M", "do", target, ok=False)  # fmt: skip
    counts = re.search(r"(\d+) packets transmitted, (\d+) received", told)
    check(counts and int(counts[1]) == count, f"ping {target} of {size} bytes: {told}")
    check("errors" not in told and "duplicates" not in told, told)
    end = time.monotonic() + 2 * PATIENCE
    while (came := echo_replies(prefix) - before) < count and time.monotonic() < end:
        time.sleep(0.1)
    return came


class Namespace:
    made = itertools.count()

    def __init__(self, name):
        self.name = f"mr-{os.getpid()}-{next(self.made)}-{name}"
        out("ip", "netns", "add", self.name)
        atexit.register(out, "ip", "netns", "del", self.name, ok=False)
        # No frames of the kernel's own among those that are counted.
        for which in ("all", "default"):
            self.run("sysctl", "-qw", f"net.ipv6.conf.{which}.disable_ipv6=1", ok=False)

    def argv(self, *argv):
        return ["ip", "netns", "exec", self.name, *argv]

    def run(self, *argv, ok=True):
        return out(*self.argv(*argv), ok=ok)

    def ip(self, *argv):
        return out("ip", "-n", self.name, *argv)

    def counter(self, interface, name):
        return int(self.run("cat", f"/sys/class/net/{interface}/statistics/{name}"))

    def socket(self, *args):
        """A socket stays in the namespace where it was made."""
        home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        away = os.open(f"/run/netns/{self.name}", os.O_RDONLY)
        try:
            check(LIBC.setns(away, CLONE_NEWNET) == 0, f"setns: {os.strerror(ctypes.get_errno())}")
            try:
                return socket.socket(*args)
            finally:
                if LIBC.setns(home, CLONE_NEWNET) != 0:
                    os._exit(1)  # nothing may go on in the wrong namespace
        finally:
            os.close(away)
            os.close(home)
