#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a machine and a configuration together refuse, in which words, and what is taken instead.

Machines are those of tests/fixtures, each with something that is not as it should be.
"""
import json
import sys

from harness import (
    CLEAN, CONFIG, FAILURE, SOURCE, USAGE, case, check, check_equal, main, validate,
)  # fmt: skip

sys.path.insert(0, str(SOURCE / "tests" / "fixtures"))
from machines import MACHINES, lane_config  # noqa: E402

GPU, NIC = "0000:3d:00.0", "0000:3e:00.0"
PCAP = ("up, device: \"0000:3e:00.0\"", "up, device: \"net_pcap0,rx_pcap=a,tx_pcap=b\"")
NULL = ("up, device: \"0000:3e:00.0\"", "up, device: \"net_null0\"")
OUT_NULL = ("]\nlanes:", ", {name: n, device: net_null0}]\nlanes:")
TX_NULL = ("tx: [{port: up, queue: 0}]", "tx: [{port: n, queue: 0}]")
TX_BOTH = ("tx: [{port: up, queue: 0}]", "tx: [{port: up, queue: 0}, {port: n, queue: 0}]")
COPIES = "would copy with the CPU into the memory of GPU 'g0'"


def option(text):
    return (f'"{NIC}"', f'"{NIC},{text}"')


def keys(text):
    return ("path:", f"{text}, path:")


# Machine, changes to its lane of path [direct], what refuses it (a check, or the key of the
# configuration), words of the sentence, words of the remedy.
REFUSED = (
    ("iommu_dmafq", (), "iommu.type", "is translated (DMA-FQ)", "iommu=pt"),
    ("iommu_pt_is_a_word", (), "iommu.type", f"{NIC} is translated (DMA)", "iommu=pt"),
    ("acs_on_translated", (), "pcie.acs", "", "setpci"),
    ("sys", (), "pair.topology", f"{GPU} to {NIC}: SYS", ""),
    ("no_peermem", (), "pair.peermem", "nvidia-peermem is not loaded", "`modprobe nvidia-peermem`"),
    ("peermem_ver_mismatch", (), "pair.peermem", "module 570.86.15, driver 580.65.06", ""),
    ("dmabuf_error_93", (), "pair.dmabuf", "does not offer it (error 93)", ""),
    ("proprietary_dmabuf", (), "gpu.kernel_module", "exports no dma-buf", "nvidia-open"),
    ("dmabuf_old_kernel", (), "kernel.release", "is older than 5.12", ""),
    ("geforce", (), "gpu.gpudirect", f"{GPU} does not offer it", ""),
    ("unordered", (), "gpu.ordering", "neither orders NIC writes nor flushes them", ""),
    ("integrated_gb10", (), "gpu.integrated", "shares the host's memory", "path: [pinned]"),
    ("bar1_256m_region_1g", (), "gpu.bar", "window of 256 MiB, 1056 needed", ""),
    ("bar1_held_by_another", (), "gpu.bar", "20 MiB of the window are free", ""),
    ("pix_ok", ((f'"{GPU}"', f'"{GPU}", region: 256GiB'),), "gpu.bar", "needed", ""),
    ("memlock_64k_no_ipc_lock", (), "limits.memlock", "64 KiB", "LimitMEMLOCK=infinity"),
    ("uverbs_denied", (), "devices.nodes", "may not be opened", "rdma"),
    ("no_driver", (), "gpu.kernel_module", "the NVIDIA driver is not loaded", "`modprobe nvidia`"),
    ("driver_before_cuda13", (), "cuda.driver", "12.8, older than 13.0", "580"),
    ("nouveau", (), "gpu.driver", "is bound to nouveau", "nvidia/bind"),
    ("no_gpu", (), "gpu.driver", f"there is no NVIDIA GPU at {GPU}", "lspci"),
    ("addresses_nearly_right", (), "nic.driver", "no network device", f"is {NIC} meant?"),
    ("vfio_bound", (), "nic.driver", "is bound to vfio-pci", "unbind"),
    ("nic_of_another_maker", (), "nic.driver", "is no NVIDIA/Mellanox NIC", "only mlx5"),
    ("link_down", (), "nic.link", "eth2 has no carrier", "cable"),
    ("mtu_too_small", (), "nic.link", "MTU 9000, 9500 wanted", "mtu 9500"),
    ("x8_in_x16", (), "nic.pcie_link", "runs at x8", "reseat"),
    ("gpu_x8", (), "gpu.pcie_link", "runs at x8", "reseat"),
    ("kmsg_xid79", (), "gpu.kernel_log", "has fallen off the bus", ""),
    ("caps_missing", (), "process.capabilities", "no CAP_NET_RAW", "AmbientCapabilities"),
    ("hp_wrong_node", (), "memory.hugepages", "0 MiB free on node 0", "nr_hugepages"),
    ("cpuset_outside", (), "cpu.cpuset", "CPU 2 is outside the cpuset", ""),
    ("pix_ok", (PCAP,), "lanes[0].path", f"direct cannot hold: the driver of port 'up' {COPIES}",
     "add pinned to the list"),
    ("pix_ok", (OUT_NULL, TX_NULL), "lanes[0].path", f"driver of port 'n' {COPIES}", "add pinned"),
    ("pix_ok", (OUT_NULL, TX_BOTH), "lanes[0].path", f"driver of port 'n' {COPIES}", "add pinned"),
    ("pix_ok", (OUT_NULL, TX_NULL, keys("tx_path: [direct]")), "lanes[0].tx_path", COPIES, ""),
    ("pix_ok", (PCAP, keys("rx_path: [direct], tx_path: [pinned]")), "lanes[0].rx_path", COPIES,
     ""),
    ("pix_ok", (("[direct]", "[direct, direct]"),), "lanes[0].path[1]", "already in the list", ""),
    ("pix_ok", (option("txq_inline_max=128"),), "ports[0].device", "txq_inline_max", ""),
    ("pix_ok", (option("mprq_en=1"),), "ports[0].device", "mprq_en", ""),
    ("pix_ok", (("core: 2", "core: 999"),), "lanes[0].core", "this machine has no core 999", ""),
)  # fmt: skip

# Machine, changes to its lane of path [direct, pinned], the paths in and out, the reason.
TAKEN = (
    ("pix_ok", (), "direct", "direct", "first that holds"),
    ("iommu_dmafq", (), "pinned", "pinned", "second choice: iommu.type: "),
    ("no_peermem", (), "pinned", "pinned", "second choice: pair.peermem: nvidia-peermem is not"),
    ("geforce", (), "pinned", "pinned", "second choice: gpu.gpudirect: "),
    ("bar1_held_by_another", (), "pinned", "pinned", "second choice: gpu.bar: 0000:3d:00.0: 20 MiB"),
    ("proprietary_dmabuf", (), "pinned", "pinned", "second choice: gpu.kernel_module: 580.65.06"),
    ("integrated_gb10", (), "pinned", "pinned", "second choice: gpu.integrated: "),
    ("pix_ok", (PCAP,), "pinned", "pinned", f"second choice: the driver of port 'up' {COPIES}"),
    ("no_peermem", (("[direct, pinned]", "[direct, staged]"),), "staged", "staged", "second"),
    ("no_peermem", (("[direct, pinned]", "[pinned, direct]"),), "pinned", "pinned", "first choice"),
    ("pix_ok", (OUT_NULL, TX_NULL, keys("rx_path: [direct]")), "direct", "pinned",
     f"out: second choice: the driver of port 'n' {COPIES}"),
)  # fmt: skip


def ask(s, number, machine, path, changes):
    """The doctor's report on that machine and a lane of that path, changed."""
    make, own, _ = MACHINES[machine]
    text = (own or lane_config()).replace("path: [direct]", f"path: {path}")
    for old, new in changes:
        check(old in text, f"{old} is not in {text}")
        text = text.replace(old, new)
    root = s.path / f"{number}-{machine}"
    make().write(root)
    r = s.command("doctor", "--json", "--root", root, s.write(f"{number}.yaml", text))
    validate("doctor.schema.json", r.stdout)
    r.report = json.loads(r.stdout)
    return r


def complaints_of(r):
    """What refuses, with its sentence and its remedy."""
    if "errors" in r.report:
        return [(e["key"], e["message"], e["hint"]) for e in r.report["errors"]]
    return [(c["id"], c["value"], c["hint"]) for c in r.report["checks"] if c["verdict"] == "FAIL"]


@case
def what_cannot_hold_is_refused_with_its_reason_and_a_remedy(s):
    check(len(REFUSED) >= 25, "refusals are missing")
    wrong = []
    for i, (machine, changes, what, says, remedy) in enumerate(REFUSED):
        r = ask(s, i, machine, "[direct]", changes)
        told = complaints_of(r)
        if r.status != CONFIG or not any(
            k == what and says in sentence and remedy in hint for k, sentence, hint in told
        ):
            wrong.append(f"{machine} {changes}: {what}: {says}: status {r.status}, {told}")
        for lane in r.report.get("lanes", ()):
            if lane["rx_path"] != "direct" or lane["tx_path"] != "direct":
                wrong.append(f"{machine}: nobody listed {lane}")
    check(not wrong, "\n".join(wrong))


@case
def another_path_is_taken_only_where_it_is_listed_and_with_the_reason(s):
    wrong = []
    for i, (machine, changes, rx, tx, why) in enumerate(TAKEN):
        r = ask(s, i, machine, "[direct, pinned]", changes)
        lanes = r.report.get("lanes", [])
        told = [(l["rx_path"], l["tx_path"]) for l in lanes]
        if r.status not in (CLEAN, FAILURE) or told != [(rx, tx)] or why not in lanes[0]["why"]:
            wrong.append(f"{machine} {changes}: status {r.status}, {lanes}, {complaints_of(r)}")
    check(not wrong, "\n".join(wrong))


@case
def what_a_pinned_lane_needs_too_is_no_reason_to_take_it(s):
    for machine, what in (
        ("uverbs_denied", "devices.nodes"),
        ("memlock_64k_no_ipc_lock", "limits.memlock"),
        ("no_gpu", "gpu.driver"),
        ("hp_wrong_node", "memory.hugepages"),
    ):
        r = ask(s, 0, machine, "[direct, pinned]", ())
        check_equal(r.status, CONFIG, f"{machine}: {r.told()}")
        check(what in [k for k, _, _ in complaints_of(r)], f"{machine}: {complaints_of(r)}")
        check_equal(r.report["lanes"][0]["rx_path"], "direct", machine)


@case
def a_check_that_was_skipped_keeps_no_lane_from_being_direct(s):
    MACHINES["no_peermem"][0]().write(s.path / "machine")
    text = lane_config().replace("path: [direct]", "path: [direct, pinned]")
    args = ("--json", "--root", s.path / "machine", s.write("c.yaml", text))
    skips = ("--skip", "pair.peermem", "--skip", "pair.readback")
    for more, path in (((), "pinned"), (skips[:2], "pinned"), (skips, "direct")):
        r = s.command("doctor", *more, *args)
        told = json.loads(r.stdout)["lanes"][0]
        check_equal(told["rx_path"], path, f"{more}: {told}")


@case
def the_text_names_the_path_that_each_lane_takes_and_why(s):
    MACHINES["no_peermem"][0]().write(s.path / "machine")
    text = lane_config().replace("path: [direct]", "path: [direct, pinned]")
    r = s.command("doctor", "--root", s.path / "machine", s.write("c.yaml", text))
    said = "lane 'l0': in pinned, out pinned; second choice: pair.peermem: nvidia-peermem is not"
    check(said in r.stdout, r.stdout)


def check_on(s, machine, path, *changes):
    """What `check` says of that machine, as the list of a lane and as text."""
    root = s.path / machine.replace("#", "-")
    if not root.exists():
        m = MACHINES[machine.removesuffix("#unasked")][0]()
        if machine.endswith("#unasked"):
            m.probe_gpu = m.probe_nic = m.probe_pair = None
        m.write(root)
    text = lane_config().replace("path: [direct]", path)
    for old, new in changes:
        check(old in text, f"{old} is not in {text}")
        text = text.replace(old, new)
    args = ("--root", root, s.write("c.yaml", text))
    r = s.command("check", "--json", *args)
    check_equal(r.status, CLEAN, r.told())
    validate("check.schema.json", r.stdout)
    return json.loads(r.stdout)["lanes"][0], s.command("check", *args).stdout


def choices(lane, way="rx"):
    return [(c["path"], c["choice"]) for c in lane["paths"][way]]


@case
def check_shows_what_becomes_of_every_listed_path_on_this_machine(s):
    every = "path: [direct, pinned, staged]"
    lane, text = check_on(s, "no_peermem", every)
    check_equal((lane["rx_path"], lane["tx_path"]), ("pinned", "pinned"), "paths")
    check_equal(
        choices(lane), [("direct", "refused"), ("pinned", "taken"), ("staged", "next")], "list"
    )
    why = lane["paths"]["rx"][0]["why"]
    check(why.startswith("pair.peermem: nvidia-peermem is not loaded"), why)
    check(f"    1. direct   refused: {why}\n    2. pinned   taken\n" in text, text)
    check("    3. staged   not looked at\n" in text, text)
    lane, text = check_on(s, "pix_ok", every)
    check_equal(
        choices(lane), [("direct", "taken"), ("pinned", "next"), ("staged", "next")], "list"
    )
    check_equal(lane["path_unasked"], "", "the fixture has the devices' answers")
    check("    1. direct   taken\n" in text, text)
    lane, text = check_on(
        s, "pix_ok", "path: [staged], rx_path: [direct, pinned]", OUT_NULL, TX_NULL
    )
    check_equal(choices(lane), [("direct", "taken"), ("pinned", "next")], "in")
    check_equal(choices(lane, "tx"), [("staged", "taken")], "out")
    check("    1. in direct   taken\n" in text and "out staged" not in text, text)


@case
def check_names_what_only_the_devices_know_and_run_may_find(s):
    lane, text = check_on(s, "pix_ok#unasked", "path: [direct, pinned]")
    check_equal(choices(lane), [("direct", "taken"), ("pinned", "next")], "list")
    for what in ("gpu.gpudirect", "gpu.ordering", "pair.readback"):
        check(what in lane["path_unasked"].split(", "), f"{what} in {lane['path_unasked']!r}")
    for what in ("gpu.ecc", "cuda.driver"):
        check(what not in lane["path_unasked"], f"a pinned lane is asked for {what} as well")
    said = f"1. direct   taken, unless one of these fails, which only run asks: {lane['path_unasked']}"
    check(said in text, text)
    lane, text = check_on(s, "pix_ok#unasked", "path: [pinned, direct]")
    check_equal((choices(lane), lane["path_unasked"]), ([("pinned", "taken"), ("direct", "next")], ""), "list")
    lane, _ = check_on(s, "pix_ok#unasked", "path: [direct]")
    check_equal(lane["path_unasked"], "", "there is no other to take")
    r = s.command("check", "--no-host", "--root", s.path / "pix_ok-unasked", s.path / "c.yaml")
    check_equal(r.status, USAGE, "which machine?")


sys.exit(main())
