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
    CONFIG, FAILURE, GPU, PATIENCE, case, check, check_equal, check_frames, complaints, config, lane, main,
    swapped,
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
        # Who leaves a driver or a kernel that never returns leaves its threads too.
        stays = any(w in words for w in ("block=", "stick=", "fault="))
        leaves = ":report_thread_leaks=0" if stays else ""
        s.env["TSAN_OPTIONS"] = os.environ.get("TSAN_OPTIONS", "") + leaves
        # The driver is a stand-in, so the machine has no such GPU.
        s.always = ("--skip", "gpu.driver")

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


def two_divisions(device=PCI, out="", **keys):
    """Header and payload stages: two kernels, the second is launched behind the first."""
    # The stand-in's workers wait for a core like anybody else.
    keys.setdefault("kernel", {"stall_ms": 20000})
    return config(
        {
            "p0": f"net_pcap0,rx_pcap=in.pcap,tx_pcap={out}swap.pcap",
            "p1": f"net_pcap1,rx_pcap=in.pcap,tx_pcap={out}sum.pcap",
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


def sentence(r, *says):
    """The one sentence of a run that failed."""
    said = complaints(r.stderr)
    check_equal(len(said), 1, f"sentences: {r.told()}")
    for words in ("g0", *says):
        check(words in said[0], f"'{words}' is not said: {said[0]}")


# NVIDIA/l2fwd-nv src/main.cpp:905: graphs, registrations and pools are never given back.
# NVIDIA/open-gpu-kernel-modules #732: DPDK's memory cannot be registered with CUDA since driver
# 550.54.14; meta-pytorch/torchcomms #2334: a kernel loaded at its first launch waits for the one
# that runs. NVIDIA/nccl #48: allocating and freeing wait for the kernel that runs.
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
        check_equal(driver.calls("cuMemHostRegister_v2"), 0, "DPDK's memory given to CUDA")


# NVIDIA/l2fwd-nv src/main.cpp:365: the last GPU is refused, and one that is not there taken;
# nvidia-holoscan/daqiri #248: ordinals do not follow PCI order, so another GPU was used.
# DPDK drivers/gpu/cuda/devices.h: no GPU after Ampere is in the list of devices.
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
    r = s.run(two_divisions("0000:3c:00.0"), status=FAILURE)
    sentence(r, "0000:3c:00.0", "nvidia-smi -L")


@case
def a_driver_that_is_not_there_too_old_or_incomplete_is_one_sentence(s):
    s.pcap("in.pcap", fr.make(10, seed=83))
    folder = pathlib.Path(s.others[2])
    runs = []
    for words, library, says in (
        ("version=12080", None, ("CUDA 12.8", "13.0", "580")),
        ("", "libcuda_standin_lacks_required", ("no function cuStreamSynchronize", "CUDA 13.0")),
        ("", "libcuda_standin_old", ("CUDA 12.8", "13.0")),
        ("", "libcuda_that_is_not_there", ("no NVIDIA driver",)),
        ("fail=cuInit@1:100", None, ("finds no CUDA device",)),
        ("fail=cuInit@1:803", None, ("cuInit", "803")),
    ):
        Driver(s, f"device={PCI} {words}", cuda=library and folder / f"{library}.so")
        runs.append((s.start(two_divisions()), says))
    for run, says in runs:
        sentence(run.wait(FAILURE), *says)


@case
def a_refusal_of_any_call_is_one_sentence_and_leaves_nothing(s):
    s.pcap("in.pcap", fr.make(10, seed=84))
    runs = []
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
        runs.append(
            (s.start(two_divisions(out=call), "--duration", "10"), driver, call, code, name)
        )
    for run, driver, call, code, name in runs:
        r = run.ended()
        check(r.status in (FAILURE, GPU), f"{call}: {r.told()}")
        sentence(r, call, name, f"({code},")
        check_equal(driver.lines("wrong") + driver.lines("left"), [], call)


def hangs(s, call, number, at, seconds):
    """A run whose driver never returns from that call: status 3, and it is named."""
    driver = Driver(s, f"device={PCI} block={call}@{number}")
    cfg = two_divisions(out=call, kernel={"driver_ms": 1500, "stall_ms": 1000})
    run = s.start(cfg, "--duration", "0.3")

    def judge_end():
        r = run.ended()
        check(driver.lines("blocks"), f"{call} was not reached: {r.told()}")
        check_equal(r.status, GPU, f"status with {call}: {r.told()}")
        sentence(r, call, at)
        check(r.seconds < seconds * PATIENCE, f"{call}: {r.seconds:.1f} s")
        check(r.stdout.count("\n") == 1, f"{call}: not one line: {r.stdout}")

    return judge_end


# NVIDIA/open-gpu-kernel-modules #1277: initialisation of many GPUs never ends.
@case
def a_driver_call_that_never_returns_at_the_start_ends_the_start(s):
    s.pcap("in.pcap", fr.make(10, seed=85))
    ends = [
        hangs(s, call, number, at, 15)
        for call, number, at in (
            ("cuInit", 1, "opening it"),
            ("cuDevicePrimaryCtxRetain", 1, "opening it"),
            ("cuMemHostAlloc", 1, "allocating packet memory"),
            ("cuMemAlloc_v2", 2, "loading its kernels"),
            ("cuModuleLoadData", 1, "loading its kernels"),
            ("cuLaunchKernel", 2, "launching its kernels"),
        )
    ]
    for end in ends:
        end()


# NVIDIA/open-gpu-kernel-modules #1333: a lost GPU's driver takes its callers with it.
@case
def a_driver_call_that_never_returns_at_the_end_is_left_and_the_process_ends(s):
    s.pcap("in.pcap", fr.make(10, seed=86))
    ends = [
        hangs(s, call, number, at, 20)
        for call, number, at in (
            ("cuMemFreeHost", 1, "freeing packet memory"),
            ("cuMemFree_v2", 1, "closing it"),
            ("cuModuleUnload", 1, "closing it"),
            ("cuStreamDestroy_v2", 1, "closing it"),
            ("cuDevicePrimaryCtxRelease_v2", 1, "closing it"),
        )
    ]
    for end in ends:
        end()


def flood(device=PCI):
    """A lane under load, for a device that is going to fail."""
    return config(
        {"p0": "net_null0,size=64,copy=0"},
        [lane("l0", "p0", "p0", ["l2swap"], path="pinned", batch={"packets": 8}, slots=4)],
        device,
        kernel={"stall_ms": 1000, "driver_ms": 1500},
    )


# What the software device's faults are on a real one: the run ends though neither kernel nor
# driver do, and the driver's own end, which would wait for them, is not waited for.
@case
def a_device_that_fails_under_load_ends_the_run_with_status_3_within_seconds(s):
    runs = []
    at, query = int(800 * PATIENCE), int(8 * PATIENCE)  # milliseconds, calls
    for words, reason, says in (
        (f"device={PCI} block=cuStreamQuery@{query}", "gpu_lost", "in cuStreamQuery"),
        (
            f"device={PCI} fail=cuStreamQuery@{query}:214",
            "gpu_lost",
            "CUDA_ERROR_ECC_UNCORRECTABLE",
        ),
        (
            f"device={PCI},ordering=none,flush=host fail=cuFlushGPUDirectRDMAWrites@20:999",
            "gpu_lost",
            "lane 'l0' cannot flush the NIC's writes",
        ),
        (f"device={PCI},fault=lost@{at}", "gpu_lost", "CUDA_ERROR_ECC_UNCORRECTABLE"),
        (f"device={PCI},fault=die@0:{at}", "gpu_lost", "CUDA_ERROR_LAUNCH_FAILED"),
        (f"device={PCI},fault=stall@0:{at}", "gpu_stalled", "has not beaten"),
        (f"device={PCI},fault=idle@0:{at}", "gpu_stalled", "has finished no slot"),
    ):
        driver = Driver(s, words)
        runs.append((s.start(flood(), "--duration", "20"), driver, words, reason, says))
    for run, driver, words, reason, says in runs:
        r = run.wait(GPU, reason)
        sentence(r, says)
        check(r.lane()["tx_packets"] > 0, f"{words}: nothing was sent before the fault")
        check_equal(r.lane()["path_verdict"], "unproven", "path_verdict")
        took = r.report["duration_s"]
        check(took < 6 * PATIENCE, f"{words}: told after {took} s")
        check(r.seconds < 12 * PATIENCE, f"{words}: ended after {r.seconds:.1f} s")
        check_equal(driver.lines("wrong"), [], words)


# A copy that hangs must not keep the host from beating, nor be blamed on it.
@case
def a_reload_whose_copy_never_returns_ends_the_run_as_a_lost_device(s):
    cfg = flood()
    cfg["kernel"] = {"stall_ms": 20000, "driver_ms": 3000, "host_timeout_ms": 1000}
    call = "cuMemcpyHtoDAsync_v2"
    driver = Driver(s)
    s.run(cfg, "--duration", "0.2", reason="duration")
    driver = Driver(s, f"device={PCI} stick={call}@{driver.calls(call) + 1}")
    run = s.start(cfg, "--duration", "60").until_running()
    r = s.command("reload", "--name", run.name)
    # The run ends with it, and lets who asked hear why.
    check_equal(r.status, CONFIG, f"reload: {r.told()}")
    check(call in r.stderr, f"reload: {r.told()}")
    r = run.wait(GPU, "gpu_lost")
    check(driver.lines("blocks"), "not reached")
    check(call in complaints(r.stderr)[-1], r.stderr)
    check(r.report["duration_s"] < 10 * PATIENCE, f"told after {r.report['duration_s']} s")


def logged(s, klog, line, words="", duration="20"):
    """A run under load, told of `line` by the kernel's log once it runs."""
    Driver(s, f"device={PCI}{words}")
    cfg = flood(f"{PCI},klog={klog}")
    run = s.start(cfg, "--duration", duration).until_running()
    with open(klog, "a", encoding="utf-8") as f:
        f.write(line + "\n")
    return run


@case
def a_flush_that_never_returns_is_seen_by_the_watch(s):
    driver = Driver(s, f"device={PCI},ordering=none,flush=host stick=cuFlushGPUDirectRDMAWrites@20")
    r = s.start(flood(), "--duration", "20").ended()
    check_equal(r.status, GPU, r.told())
    said = complaints(r.stderr)
    check("cuFlushGPUDirectRDMAWrites of lane 'l0' has not returned" in said[0], said[0])
    check("lane 'l0' did not stop" in said[1] and len(said) == 2, f"sentences: {said}")
    check(r.seconds < 12 * PATIENCE, f"ended after {r.seconds:.1f} s")
    check(driver.lines("blocks"), "not reached")


# NVIDIA/NVSentinel #155, leptonai/gpud #1209: a loss without a number, over several lines.
@case
def a_loss_that_only_the_kernels_log_tells_of_ends_the_run_and_anothers_does_not(s):
    klog = s.path / "kmsg"
    klog.write_text(f"3,1,1,-;NVRM: Xid (PCI:{PCI[:-2]}): 79, before the start\n")
    for line, says in (
        (f"3,2,2,-;NVRM: Xid (PCI:{PCI[:-2]}): 79, pid=1, GPU has fallen off the bus.", "Xid"),
        (
            f"3,3,3,-;NVRM: The NVIDIA GPU {PCI}\n3,4,4,-;NVRM: (PCI ID: 10de:2330) installed"
            "\n3,5,5,-;NVRM: fallen off the bus and is not responding to commands.",
            "not responding",
        ),
    ):
        r = logged(s, klog, line).wait(GPU, "gpu_lost")
        sentence(r, says, PCI)
        check(r.report["duration_s"] < 5 * PATIENCE, f"told after {r.report['duration_s']} s")
        told = {e["check"]: e for e in r.lane()["evidence"]}
        check_equal(told["kernel_log"]["verdict"], "PASS", "evidence")
        check_equal(told["bar1"]["value"], "no NIC registered memory of this GPU", "evidence of BAR1")
    line = "3,6,6,-;NVRM: Xid (PCI:0000:af:00): 79, pid=1, GPU has fallen off the bus."
    logged(s, klog, line, duration="3").wait(reason="duration")


@case
def what_the_kernels_log_says_of_the_device_goes_into_the_sentence(s):
    klog = s.path / "kmsg"
    klog.write_text("")
    line = f"3,2,2,-;NVRM: Xid (PCI:{PCI[:-2]}): 13, pid=1, Graphics Exception"
    r = logged(s, klog, line, f",fault=die@0:{int(1500 * PATIENCE)}").wait(GPU, "gpu_lost")
    sentence(r, "CUDA_ERROR_LAUNCH_FAILED", "13, pid=1, Graphics Exception")


sys.exit(main())
