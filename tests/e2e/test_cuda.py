#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The provider `cuda`, from dlopen to the last free, over a stand-in of the NVIDIA driver.

usage: test_cuda.py MILLRACE LIBCUDA LIBGDRAPI FOLDER [-k WORD]

LIBCUDA (tests/standin/libcuda.c, which has the words of MILLRACE_STANDIN) is the software
device behind the driver's own entry points; FOLDER has drivers that cannot be used.
"""
import os
import pathlib
import sys

import frames as fr
from harness import (
    FAILURE, case, check, check_equal, check_frames, complaints, config, lane, main, swapped,
)  # fmt: skip

PCI = "0000:3b:00.0"


class Driver:
    """What LD_LIBRARY_PATH shows as the machine's driver, and what it saw."""

    def __init__(self, s, words=f"device={PCI}", gdr=True, cuda=None):
        s.drivers = getattr(s, "drivers", 0) + 1
        folder = s.path / f"driver{s.drivers}"
        folder.mkdir()
        self.log = folder / "log"
        os.symlink(cuda or s.others[0], folder / "libcuda.so.1")
        if gdr:
            os.symlink(s.others[1], folder / "libgdrapi.so.2")
        s.env["LD_LIBRARY_PATH"] = str(folder)
        s.env["MILLRACE_STANDIN"] = f"log={self.log} {words}"

    def lines(self, first):
        text = self.log.read_text() if self.log.exists() else ""
        return [l for l in text.splitlines() if l.split()[0] == first]

    def calls(self, name):
        return sum(int(l.split()[2]) for l in self.lines("count") if l.split()[1] == name)

    def judge(self):
        """The driver was used as it may be, and got everything back."""
        check_equal(self.lines("wrong"), [], "calls that the driver does not survive")
        check(self.lines("count"), "the context was not released")
        check_equal(self.lines("left"), [], "left with the driver")


def two_divisions(device=PCI, **keys):
    """Header and payload stages: two kernels, the second is launched behind the first."""
    return config(
        {
            "p0": "net_pcap0,rx_pcap=in.pcap,tx_pcap=swap.pcap",
            "p1": "net_pcap1,rx_pcap=in.pcap,tx_pcap=sum.pcap",
        },
        [
            lane("l0", "p0", "p0", ["l2swap"], path="pinned"),
            lane("l1", "p1", "p1", ["checksum"], path="pinned", workers=2),
        ],
        device,
        **keys,
    )


def judge_packets(s, given):
    check_frames(s.frames("swap.pcap"), [swapped(f) for f in given], "swapped")
    check_frames(s.frames("sum.pcap"), given, "summed")


def refused(s, *says, status=FAILURE, cfg=None):
    r = s.run(cfg or two_divisions(), status=status)
    said = complaints(r.stderr)
    check_equal(len(said), 1, f"sentences: {r.told()}")
    for words in ("g0", *says):
        check(words in said[0], f"'{words}' is not said: {said[0]}")
    return r


@case
def packets_pass_through_the_driver_and_all_is_given_back(s):
    given = fr.make(1500, seed=81)
    s.pcap("in.pcap", given)
    for gdr in (True, False):
        driver = Driver(s, gdr=gdr)
        r = s.run_idle(two_divisions())
        judge_packets(s, given)
        check_equal(r.report["devices"][0]["provider"], "cuda", "provider")
        check_equal(r.lane()["path_verdict"], "pinned", "path_verdict")
        driver.judge()
        check_equal(driver.calls("cuLaunchKernel"), 2, "launches")


# NVIDIA/l2fwd-nv src/main.cpp:365: the last GPU is refused, and one that is not there taken;
# nvidia-holoscan/daqiri #248: ordinals do not follow PCI order, so another GPU was used.
@case
def a_gpu_is_found_by_its_address_whatever_its_ordinal_and_no_other_is_taken(s):
    given = fr.make(300, seed=82)
    s.pcap("in.pcap", given)
    words = f"device=0000:af:00.0,sms=1 device=0001:3b:00.0,sms=1 device={PCI},sms=9"
    cfg = two_divisions()
    cfg["lanes"][1]["workers"] = 16  # more than the others hold
    driver = Driver(s, words)
    r = s.run_idle(cfg)
    judge_packets(s, given)
    check(r.report["devices"][0]["provider"] == "cuda", "provider")
    driver.judge()
    Driver(s, words)
    refused(s, "0000:3c:00.0", "nvidia-smi -L", cfg=two_divisions("0000:3c:00.0"))


@case
def a_driver_that_is_not_there_too_old_or_incomplete_is_one_sentence(s):
    s.pcap("in.pcap", fr.make(10, seed=83))
    folder = pathlib.Path(s.others[2])
    Driver(s, f"version=12080 device={PCI}")
    refused(s, "CUDA 12.8", "13.0", "580")
    Driver(s, cuda=folder / "libcuda_standin_lacks_required.so")
    refused(s, "has no function cuStreamSynchronize", "CUDA 13.0")
    Driver(s, cuda=folder / "libcuda_standin_old.so")
    refused(s, "CUDA 12.8", "13.0")
    Driver(s, cuda=folder / "no-such-library.so")
    refused(s, "no NVIDIA driver")
    Driver(s, "version=13000 fail=cuInit@1:100")
    refused(s, "finds no CUDA device")
    Driver(s, f"device={PCI} fail=cuInit@1:803")
    refused(s, "cuInit", "803")


@case
def a_refusal_of_any_call_is_one_sentence_and_leaves_nothing(s):
    s.pcap("in.pcap", fr.make(10, seed=84))
    for call, at, code, name in (
        ("cuDevicePrimaryCtxRetain", 1, 2, "CUDA_ERROR_OUT_OF_MEMORY"),
        ("cuStreamCreate", 2, 2, "CUDA_ERROR_OUT_OF_MEMORY"),
        ("cuMemAlloc_v2", 2, 2, "CUDA_ERROR_OUT_OF_MEMORY"),
        ("cuMemHostAlloc", 3, 2, "CUDA_ERROR_OUT_OF_MEMORY"),
        ("cuPointerSetAttribute", 1, 1, "CUDA_ERROR_INVALID_VALUE"),
        ("cuModuleLoadData", 1, 209, "CUDA_ERROR_NO_BINARY_FOR_GPU"),
        ("cuLaunchKernel", 2, 701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"),
        ("cuStreamQuery", 1, 214, "CUDA_ERROR_ECC_UNCORRECTABLE"),
    ):
        driver = Driver(s, f"device={PCI} fail={call}@{at}:{code}")
        r = s.start(two_divisions(), "--duration", "10").ended()
        said = complaints(r.stderr)
        check(r.status in (FAILURE, 3), f"{call}: {r.told()}")
        check_equal(len(said), 1, f"sentences with {call}: {r.told()}")
        for words in (call, name, f"({code},"):
            check(words in said[0], f"{call}: '{words}' is not said: {said[0]}")
        check_equal(driver.lines("wrong"), [], call)


sys.exit(main())
