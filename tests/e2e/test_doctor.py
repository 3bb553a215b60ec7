#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""doctor: machines that are judged, this one among them; captures; hostile trees."""
import json
import os
import pathlib
import pty
import random
import shutil
import struct
import subprocess
import sys
import tarfile
import time

from harness import (
    CLEAN, CONFIG, FAILURE, PATIENCE, SOURCE, USAGE, Skipped, case, check, check_equal, config,
    fewer, lane, main, processor_s, validate,
)  # fmt: skip

sys.path.insert(0, str(SOURCE / "tests" / "fixtures"))
from machine import Machine  # noqa: E402
from machines import MACHINES, lane_config  # noqa: E402

STATUS = {"PASS": CLEAN, "WARN": FAILURE, "UNKNOWN": FAILURE, "FAIL": CONFIG}
WORST = ["PASS", "WARN", "UNKNOWN", "FAIL"]


def worst(verdicts):
    return max((v for v in verdicts if v != "NA"), key=WORST.index, default="PASS")


def doctor(s, *args, prefix=()):
    r = s.command("doctor", "--json", *args, prefix=prefix)
    check(r.status in (CLEAN, FAILURE, CONFIG), f"status of doctor {args}: {r.told()}")
    validate("doctor.schema.json", r.stdout)
    r.report = json.loads(r.stdout)
    if "checks" in r.report:
        r.checks = {c["id"]: c for c in r.report["checks"]}
        counted = [c["verdict"] for c in r.report["checks"] if not c["skipped"]]
        check_equal(r.report["verdict"], worst(counted), "overall verdict")
        check_equal(r.status, STATUS[r.report["verdict"]], f"status of {r.report['verdict']}")
    return r


def build(s, m, name="machine"):
    """The tree of a machine, and the arguments that ask about it."""
    root = s.path / name
    shutil.rmtree(root, ignore_errors=True)
    m.write(root)
    return root


def ask(s, name):
    make, asked, expected = MACHINES[name]
    root = build(s, make(), name)
    args = ["--root", root]
    if asked:
        args.append(s.write(name + ".yaml", asked))
    return doctor(s, *args), expected, root, args


@case
def every_machine_gets_its_verdict_in_every_check(s):
    check(len(MACHINES) >= 35, "machines are missing")
    wrong = []
    for name in list(MACHINES)[:: len(MACHINES) // fewer(len(MACHINES), "machines")]:
        r, expected, root, _ = ask(s, name)
        check("checks" in r.report, f"{name}: {r.told()}")
        for i, want in expected.items():
            got = r.checks[i]
            if got["verdict"] != want:
                wrong.append(f"{name}: {i} is {got['verdict']}, not {want}: {got['value']}")
        check_equal(sorted(r.checks), sorted(expected), f"checks of {name}")
        check_equal(r.report["verdict"], worst(expected.values()), f"verdict of {name}")
        shutil.rmtree(root)
    check(not wrong, "\n".join(wrong))


@case
def every_check_is_seen_to_fail_or_warn(s):
    """A check that no machine can make complain judges nothing."""
    silent = {"gpu.gpudev", "config.roles", "pool.size", "pool.alignment", "memory.hugetlbfs",
        "runtime.folder", "runtime.dumps", "register.time", "nic.tx_inline", "nic.rx_options"}  # fmt: skip
    seen = set()
    for _, _, expected in MACHINES.values():
        seen.update(i for i, v in expected.items() if v in ("WARN", "FAIL"))
    check_equal(sorted(set(MACHINES["pix_ok"][2]) - seen), sorted(silent), "checks without one")


@case
def topology_of_the_machines_is_named(s):
    near = {"pix_ok": "PIX", "pxb_two_switch": "PXB", "phb": "PHB", "node": "NODE", "sys": "SYS",
        "numa_minus1": "SYS", "domain_10000": "PIX"}  # fmt: skip
    for name, want in near.items():
        r, *_ = ask(s, name)
        check_equal([p["near"] for p in r.report["pairs"]], [want], name)
    check(r.report["pairs"][0]["gpu"].startswith("10000:"), "a wide domain is cut")


@case
def the_text_has_the_worst_first_and_the_verdict_last(s):
    root = build(s, MACHINES["sys"][0]())
    r = s.command("doctor", "--root", root)
    check_equal(r.status, CONFIG, f"status: {r.told()}")
    check("\033" not in r.stdout, "colour in a file")
    lines = r.stdout.splitlines()
    order = [l.split()[0] for l in lines if l[:1].isupper() and l.split()[0] in WORST + ["NA"]]
    check(order[-1] == "NA" or order[-1].endswith(":"), f"order: {order}")
    ranked = [w for w in order if w in WORST]
    check_equal(ranked, sorted(ranked, key=WORST.index, reverse=True), "order")
    check(lines[-1].startswith("FAIL: a direct lane cannot run here"), lines[-1])
    check("0000:3d:00.0" in r.stdout and "pci0000:ba" in r.stdout, "no tree is drawn")
    check("<- narrowest of" in r.stdout, "the narrowest link is not marked")
    check("wanted: GPU and NIC are near" in r.stdout, "it does not say what is wanted")
    good = s.command("doctor", "--root", build(s, Machine(), "good"))
    check_equal(good.status, CLEAN, f"status: {good.told()}")
    check("lanes:" in good.stdout, "no configuration is proposed")
    check(good.stdout.splitlines()[-1].startswith("PASS: "), good.stdout)


@case
def on_a_terminal_there_is_colour(s):
    root = build(s, Machine())
    main_end, tty = pty.openpty()
    run = subprocess.Popen([s.millrace, "doctor", "--root", root], stdout=tty)
    os.close(tty)
    said = b""
    while True:
        try:
            some = os.read(main_end, 65536)
        except OSError:  # the other end has closed
            break
        if not some:
            break
        said += some
    os.close(main_end)
    check_equal(run.wait(), CLEAN, "status")
    check(b"\033[32mPASS" in said, "no colour")


@case
def the_proposed_configuration_is_one(s):
    root = build(s, Machine())
    text = s.command("doctor", "--root", root).stdout
    begin = text.index("devices:")
    proposed = text[begin : text.rindex("\nPASS: ")]
    file = s.write("proposed.yaml", proposed)
    planned = s.command("check", "--no-host", file)
    check_equal(planned.status, CLEAN, f"status of check: {planned.told()}")
    r = doctor(s, "--root", root, file)
    check("checks" in r.report, f"refused: {r.told()}\n{proposed}")
    check_equal(r.report["verdict"], "PASS", f"of\n{proposed}\n{r.told()}")


USER = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
# A container sees little of its host.
CONTAINER = ("unshare", "-m", "sh", "-c",
    "for i in /sys/class /sys/kernel /sys/fs /dev /proc/irq; do mount -t tmpfs none $i || exit 99; done;"
    'exec "$@"', "sh")  # fmt: skip


def here(s, who, *args):
    """doctor about this machine, as who; and its seconds, by the clock and of a processor."""
    os.chmod(s.path, 0o777)
    program = s.path / "millrace"
    if not program.exists():
        shutil.copy(s.millrace, program)
    began, before = time.monotonic(), processor_s()
    r = subprocess.run([*who, program, "doctor", "--json", *args], cwd="/", capture_output=True, text=True, timeout=60, check=False)  # fmt: skip
    return r, (time.monotonic() - began, processor_s() - before)


def people():
    if os.geteuid() != 0:
        return ((),)
    may = subprocess.run([*CONTAINER, "true"], stderr=subprocess.DEVNULL, check=False)
    return ((), USER, CONTAINER) if may.returncode == 0 else ((), USER)


@case
def this_machine_is_told_the_truth_within_a_second(s):
    gpus = [p for p in pathlib.Path("/sys/bus/pci/devices").glob("*/vendor") if p.read_text().strip() == "0x10de"]
    if gpus:
        raise Skipped("this machine has NVIDIA devices")
    for who in people():
        r, (took, worked) = here(s, who)
        check_equal(r.returncode, CONFIG, f"status as {who}: {r.stderr}")
        # Others may have the processors, but it waits for nothing.
        check(worked < 1 * PATIENCE, f"took {worked:.2f} s of a processor")
        check(took < 10 * PATIENCE, f"took {took:.2f} s")
        validate("doctor.schema.json", r.stdout)
        checks = {c["id"]: c for c in json.loads(r.stdout)["checks"]}
        check_equal(checks["gpu.driver"]["verdict"], "FAIL", "gpu.driver")
        check_equal(checks["pair.topology"]["verdict"], "NA", "pair.topology")
        check_equal(len(checks), 60, "checks")


@case
def where_sysfs_is_hidden_a_sentence_says_so(s):
    if len(people()) < 3:
        raise Skipped("it takes root, and the right to mount")
    hidden = [c.replace("/sys/class /sys/kernel /sys/fs /dev /proc/irq", "/sys") for c in CONTAINER]
    r, _ = here(s, hidden)
    check_equal(r.returncode, CONFIG, "status")
    check("sysfs" in json.loads(r.stdout)["errors"][0]["message"], r.stdout)


@case
def a_root_without_verbs_or_much_else_is_judged(s):
    m = Machine()
    m.nic.update(verbs=None)
    for gone in ("sys/kernel", "sys/module", "dev", "proc/irq", "sys/fs", "millrace", "var"):
        m.remove(gone)
    r = doctor(s, "--root", build(s, m))
    check_equal(r.report["verdict"], "FAIL", "verdict")
    check_equal(r.checks["nic.nodes"]["verdict"], "FAIL", "nic.nodes")
    empty = s.path / "empty"
    empty.mkdir()
    r = doctor(s, "--root", empty)
    check("errors" in r.report, "an empty folder is no machine")


@case
def unknown_is_a_failure_only_when_strict_and_gating(s):
    root = build(s, MACHINES["noroot_64B_config"][0]())
    r = doctor(s, "--root", root)
    check_equal(r.status, FAILURE, "status")
    strict = doctor(s, "--root", root, "--strict")
    check_equal(strict.status, CONFIG, "strict status")
    for i, c in r.checks.items():
        want = "FAIL" if c["verdict"] == "UNKNOWN" and c["gating"] else c["verdict"]
        check_equal(strict.checks[i]["verdict"], want, i)
    check_equal(strict.checks["pcie.acs"]["verdict"], "FAIL", "pcie.acs")
    check_equal(strict.checks["nic.mrrs"]["verdict"], "UNKNOWN", "nic.mrrs")
    check("root" in r.checks["pcie.acs"]["hint"], "it does not say that root is needed")


@case
def what_is_skipped_does_not_count_and_is_repeated(s):
    root = build(s, MACHINES["mrrs_512"][0]())
    r = doctor(s, "--root", root, "--skip", "nic.mrrs")
    check_equal(r.status, CLEAN, "status")
    check_equal(r.report["skipped"], ["nic.mrrs"], "skipped")
    check_equal(r.checks["nic.mrrs"]["verdict"], "WARN", "its verdict is still told")
    text = s.command("doctor", "--root", root, "--skip", "nic.mrrs").stdout
    check("(skipped)" in text and "1 skipped" in text, text)
    wrong = s.command("doctor", "--root", root, "--skip", "nic.mrs")
    check_equal(wrong.status, USAGE, f"status: {wrong.told()}")
    check("nic.mrrs" in wrong.stderr, f"no suggestion: {wrong.stderr}")


@case
def a_configuration_is_asked_only_for_what_it_needs(s):
    """A software lane asks nothing of GPU and NIC, however ill they are."""
    root = build(s, MACHINES["no_peermem"][0]())
    sim = (
        "devices: [{name: g0, device: sim}]\nports: [{name: p0, device: net_null0}]\n"
        "lanes:\n  - {name: l0, rx: {port: p0, queue: 0}, tx: [{port: p0, queue: 0}],"
        " core: any, device: g0, path: [direct]}\n"
    )
    r = doctor(s, "--root", root, s.write("sim.yaml", sim))
    check_equal(r.status, CLEAN, f"status: {r.told()}")
    for i in ("gpu.driver", "nic.driver", "pair.peermem", "iommu.type", "kernel.clocksource"):
        check_equal(r.checks[i]["verdict"], "NA", i)
    bad = doctor(s, "--root", root, s.write("bad.yaml", sim.replace("g0, path", "g1, path")))
    check_equal(bad.status, CONFIG, "status of a bad configuration")
    check("errors" in bad.report, "no errors[]")


@case
def near_misses_of_an_address_are_suggested(s):
    r, *_ = ask(s, "addresses_nearly_right")
    check("0000:3e:00.0" in r.checks["nic.driver"]["hint"], r.checks["nic.driver"]["hint"])
    check("0000:3d:00.0" in r.checks["gpu.driver"]["hint"], r.checks["gpu.driver"]["hint"])


@case
def a_peer_memory_module_that_the_kernel_cannot_take_has_another_remedy(s):
    m = MACHINES["no_peermem"][0]()
    own = doctor(s, "--root", build(s, m)).checks["pair.peermem"]
    check("OFED" in own["hint"] and "ib_register_peer_memory_client" in own["hint"], own)
    m = MACHINES["no_peermem"][0]()
    for name in ("mlx5_core", "ib_core"):
        m.put(f"sys/module/{name}/version", "24.04-0.6.6\n")
    ofed = doctor(s, "--root", build(s, m)).checks["pair.peermem"]
    check("OFED" not in ofed["hint"] and "modprobe nvidia-peermem" in ofed["hint"], ofed)
    check_equal((own["verdict"], ofed["verdict"]), ("FAIL", "FAIL"), "verdicts")


def endless(device="sim"):
    return config({"p0": "net_null0"}, [lane("l0", "p0", "p0", path="pinned")], device=device)


@case
def run_asks_the_same_before_dpdk_and_refuses(s):
    r = s.run(endless("0000:f3:00.0"), status=CONFIG)
    check_equal([e["message"] for e in r.report["errors"]],
        ["gpu.driver: there is no NVIDIA GPU at 0000:f3:00.0"], "errors")  # fmt: skip
    check("EAL" not in r.stderr, f"DPDK was started: {r.stderr}")
    check_equal(os.listdir(s.path / "run"), [], "left in the runtime directory")
    asked = doctor(s, s.path / f"{pathlib.Path(s.instances[0].argv[2]).name}")
    check_equal(asked.report["verdict"], "FAIL", "doctor of the same configuration")


@case
def what_a_run_skips_is_in_its_report_and_its_metrics(s):
    name = "skips"
    run = s.start(endless(), "--skip", "gpu.driver", "--skip", "nic.mrrs", name=name).until_running()
    metrics = s.command("stats", "--name", name, "--prometheus").stdout
    run.signal()
    r = run.wait(CLEAN, "signal")
    said = [e for e in r.lane()["evidence"] if e["check"] == "preflight"]
    check_equal(said, [{"check": "preflight", "verdict": "WARN", "value": "not looked at: nic.mrrs, gpu.driver"}], "evidence")  # fmt: skip
    check("not looked at: nic.mrrs, gpu.driver" in metrics, "not in the metrics")
    quiet = s.run(endless(), "--duration", "0.2")
    check("preflight" not in [e["check"] for e in quiet.lane()["evidence"]], "evidence of nothing")
    wrong = s.command("run", s.write("x.yaml", endless()), "--skip", "everything")
    check_equal(wrong.status, USAGE, f"status: {wrong.told()}")


def same_report(a, b, what):
    for i in a.checks:
        for key in ("verdict", "value", "hint"):
            check_equal(b.checks[i][key], a.checks[i][key], f"{what}: {key} of {i}")
    check_equal(b.report["pairs"], a.report["pairs"], f"{what}: pairs")


@case
def a_capture_of_this_machine_replays_to_the_same_report(s):
    """Byte for byte, whoever made it and whoever reads it."""
    secrets = [p.read_text().strip() for p in pathlib.Path("/sys/class/net").glob("*/address")]
    for name in ("/etc/machine-id", "/sys/class/dmi/id/product_uuid", "/sys/class/dmi/id/product_serial"):
        if os.access(name, os.R_OK):
            secrets.append(pathlib.Path(name).read_text().strip())
    secrets = [x for x in secrets if len(x) > 11 and x.strip("0:-")]
    for n, who in enumerate(people()):
        tar = s.path / f"this{n}.tar"
        live, _ = here(s, who, "--capture", tar)
        for reader in people()[:2]:
            again, _ = here(s, reader, "--root", tar)
            check_equal(again.stdout, live.stdout, f"by {who}, replayed by {reader}")
        folder = s.path / f"unpacked{n}"
        with tarfile.open(tar) as t:
            t.extractall(folder)
        check_equal(here(s, (), "--root", folder)[0].stdout, live.stdout, "unpacked by tar")
        told = tar.read_bytes().lower()
        for secret in secrets:
            check(secret.lower().encode() not in told, f"{secret} is in the capture")


def leftovers(folder):
    return [p for p in os.listdir(folder) if p.endswith(".part")]


@case
def a_capture_that_cannot_be_written_leaves_the_old_one(s):
    root = build(s, Machine())
    tar = s.path / "kept.tar"
    doctor(s, "--root", root, "--capture", tar)
    old = tar.read_bytes()
    shell = ("sh", "-c", "trap '' XFSZ; ulimit -f 8; exec \"$@\"", "sh")
    r = doctor(s, "--root", root, "--capture", tar, prefix=shell)
    check_equal(r.status, FAILURE, f"status: {r.told()}")
    check("cannot write" in r.report["errors"][0]["message"], r.told())
    check_equal(tar.read_bytes(), old, "the capture from before")
    # Nor is anything else taken for one, such as a configuration whose option's value was forgotten.
    mine = s.write("mine.yaml", "lanes: []\n")
    for args in ((), (mine,)):
        r = s.command("doctor", "--root", root, "--capture", mine, *args)
        check("what is there is no capture" in r.stderr and r.status in (FAILURE, CONFIG), r.told())
        check_equal((s.path / mine).read_text(), "lanes: []\n", "the configuration")
    r = doctor(s, "--root", root, "--capture", "/dev/full")
    check("No space left" in r.report["errors"][0]["message"], r.told())
    pipe = s.path / "pipe"
    os.mkfifo(pipe)
    r = doctor(s, "--root", root, "--capture", pipe)
    check("errors" in r.report, "nobody reads this pipe")
    r = doctor(s, "--root", root, "--capture", s.path / "no" / "folder.tar")
    check("No such file" in r.report["errors"][0]["message"], r.told())
    check_equal(leftovers(s.path), [], "half a capture")


@case
def a_capture_is_written_where_the_configuration_is_refused_too(s):
    tar, wrong = s.path / "refused.tar", s.write("refused.yaml", "lanes: none\n")
    r = s.command("doctor", "--capture", tar, wrong)
    check(r.status == CONFIG and "lanes" in r.stderr, r.told())
    check(len(doctor(s, "--root", tar).checks) > 50, "the capture has not what was read")
    r = s.command("doctor", "--capture", s.path / "no" / "folder.tar", wrong)
    check(r.status == CONFIG and "folder.tar" in r.stderr and "lanes" in r.stderr, r.told())


@case
def a_capture_of_any_machine_replays_to_the_same_report(s):
    for name in ("pix_ok", "noroot_denied", "domain_10000", "hp_stale_maps", "counters_grow",
        "kmsg_falloff_lines", "vf_untrusted", "uverbs_denied", "irq_on_lcore", "iommu_pt"):  # fmt: skip
        r, _, root, args = ask(s, name)
        tar = s.path / f"{name}.tar"
        doctor(s, *args, "--capture", tar)
        again = [tar if a == root else a for a in args]
        same_report(r, doctor(s, *again), name)
        subprocess.run(["gzip", "-f", tar], check=True)
        again = [f"{tar}.gz" if a == root else a for a in args]
        same_report(r, doctor(s, *again), name + ", compressed")


@case
def an_archive_of_hwloc_gather_topology_is_a_machine(s):
    """One leading folder, files as they lie in sysfs and procfs, compressed by bzip2."""
    r, _, root, _ = ask(s, "pxb_two_switch")
    tar = s.path / "host.tar.bz2"
    with tarfile.open(tar, "w:bz2") as t:
        t.add(root, arcname="host")
    again = doctor(s, "--root", tar)
    check_equal(again.report["pairs"], r.report["pairs"], "pairs")
    differ = {i for i, c in again.checks.items() if c["verdict"] not in (r.checks[i]["verdict"], "UNKNOWN")}
    check_equal(differ, set(), "checks that a gathered archive changes")



def export(s):
    """As lstopo writes it: hwloc's own parser, which serves where its plug-ins are not
    installed, takes no comments."""
    lines = (SOURCE / "tests" / "fixtures" / "export.xml").read_text().splitlines(True)
    return s.write("export.xml", "".join(l for l in lines if not l.startswith("<!--")))


@case
def an_export_of_hwloc_is_a_machine(s):
    """It tells of CPUs, nodes and functions; of all else nothing passes and nothing fails."""
    xml = export(s)
    r = doctor(s, "--root", xml)
    check_equal([(p["near"], p["gpu"], p["nic"]) for p in r.report["pairs"]],
        [("PIX", "0000:3d:00.0", "0000:3e:00.0")], "pairs")  # fmt: skip
    told = {"pair.topology", "pair.numa", "nic.nodes"}
    # Of Millrace itself, whatever the machine.
    own = {"gpu.gpudev", "pool.alignment", "nic.tx_inline", "nic.rx_options", "register.time"}
    passed = {i for i, c in r.checks.items() if c["verdict"] == "PASS"}
    check_equal(passed, told | own, "what passes")
    check_equal({c["verdict"] for c in r.report["checks"]}, {"PASS", "UNKNOWN", "NA"}, "verdicts")
    text = s.command("doctor", "--root", xml).stdout
    check("mlx5_0 ens1np0" in text and "    core: 0\n" in text, f"names and cores: {text}")
    tar = s.path / "export.tar"
    doctor(s, "--root", xml, "--capture", tar)
    same_report(r, doctor(s, "--root", tar), "captured")
    elsewhere = s.path / "elsewhere.xml"
    elsewhere.write_text(pathlib.Path(xml).read_text().replace("0000:3e:00.0", "0000:zz:00.0"))
    check_equal(doctor(s, "--root", elsewhere).report.get("pairs", []), [], "an address that is none")


@case
def a_spoiled_export_ends_with_a_sentence_or_a_report(s):
    rng = random.Random(11)
    whole = pathlib.Path(export(s)).read_bytes()
    xml = s.path / "spoiled.xml"
    s.env["HWLOC_LIBXML_IMPORT"] = "0"  # the parser that some of them end
    for i in range(fewer(60, "spoiled exports")):
        data = bytearray(whole[: rng.randrange(6, len(whole))] if i % 3 == 0 else whole)
        for _ in range(1 + i % 5):
            data[rng.randrange(5, len(data))] = rng.randrange(256)
        xml.write_bytes(data)
        doctor(s, "--root", xml)
    check_equal(unpacked_by(s), [], "left behind")
    xml.write_text('<?xml version="1.0"?><html/>')
    refused(s, xml, "lstopo")
    with open(xml, "r+b") as f:
        f.truncate(1 << 34)
    refused(s, xml, "more than a machine")


@case
def what_a_part_of_a_machine_leaves_out_is_unknown(s):
    """Nothing fails or passes for what a gathered archive does not hold."""
    asked = s.write("lane.yaml", lane_config())
    root = build(s, base(0))
    good = doctor(s, "--root", root, asked)
    partial = root / "millrace" / "partial"
    partial.touch()
    wrong = []
    # The functions of the bus are told by their list.
    keys = [k for k in RESTS_ON if not k.startswith("sys/bus/")]
    for key in keys[:: len(keys) // fewer(len(keys), "files left out")]:
        path = place(root, key)
        kept = s.path / "kept"
        os.rename(path, kept)
        r = doctor(s, "--root", root, asked)
        os.rename(kept, path)
        wrong += [f"without {key}: {i} is {c['verdict']}, not {good.checks[i]['verdict']}: {c['value']}"
            for i, c in r.checks.items()
            if c["verdict"] not in (good.checks[i]["verdict"], "UNKNOWN", "NA")]  # fmt: skip
        if r.checks[RESTS_ON[key]]["verdict"] == "PASS":
            wrong.append(f"without {key}: {RESTS_ON[key]} passes")
    check(not wrong, "\n".join(wrong))


@case
def a_capture_names_no_machine(s):
    mac, guid, uuid = "e4:1d:2d:aa:bb:cc", "e41d:2d03:00aa:bbcc", "6fd1b9a4-5c3e-4d1f-9a7b-0123456789ab"
    m = Machine()
    m.nic.update(netdev="enxe41d2daabbcc", serial=struct.pack("<II", 0xDDAABBCC, 0xE41D2D03))
    m.cmdline += f" BOOTIF=01-{mac.replace(':', '-')} root=UUID={uuid} systemd.machine_id={'ab12' * 8}"
    m.kmsg += [f"6,3,300,-;NVRM: GPU at PCI:0000:3d:00: GPU-{uuid} {mac.upper()}", f"6,4,1,-;NVRM: {guid}"]
    m.put("proc/driver/nvidia/gpus/0000:3d:00.0/information", f"GPU UUID: GPU-{uuid}\nDevice Minor: \t 0\n")
    root = build(s, m)
    tar = s.path / "m.tar"
    r = doctor(s, "--root", root, "--capture", tar)
    raw = tar.read_bytes()
    hidden = [mac, mac.upper(), mac.replace(":", "-"), mac.replace(":", ""), guid, uuid, "ab12" * 8]
    for secret in [h.encode() for h in hidden] + [struct.pack("<I", 0xDDAABBCC)]:
        check(secret not in raw, f"{secret!r} is in the capture")
    again = doctor(s, "--root", tar)
    for i in r.checks:
        check_equal(again.checks[i]["verdict"], r.checks[i]["verdict"], i)
    check("enx" in again.checks["nic.nodes"]["value"], "the interface has no name any more")


# A file or folder, and a check that cannot pass without it.
RESTS_ON = {
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "kernel.clocksource",
    "proc/sys/kernel/numa_balancing": "kernel.numa_balancing",
    "sys/kernel/security/lockdown": "kernel.lockdown",
    "proc/self/limits": "limits.memlock",
    "proc/self/status": "process.capabilities",
    "proc/self/mounts": "memory.hugetlbfs",
    "proc/cmdline": "iommu.cmdline",
    "sys/module/nvidia_peermem/version": "pair.peermem",
    "proc/driver/nvidia/version": "gpu.kernel_module",
    "dev/kmsg": "gpu.kernel_log",
    "NIC/config": "nic.mrrs",
    "NIC/vendor": "nic.driver",
    "NIC/numa_node": "pair.numa",
    "NIC/current_link_width": "nic.pcie_link",
    "NIC/aer_dev_fatal": "pcie.aer",
    "NIC/net/eth2/carrier": "nic.link",
    "NIC/net/eth2/mtu": "nic.link",
    "NIC/infiniband/mlx5_0/ports/1/state": "nic.port",
    "NIC/infiniband/mlx5_0/fw_ver": "nic.firmware",
    "GPU/resource": "gpu.bar",
    "GPU/current_link_width": "gpu.pcie_link",
    "DOWN/config": "pcie.acs",
    "GROUP/type": "iommu.type",
    "millrace/probe/gpu/0000:3d:00.0": "gpu.ordering",
    "millrace/probe/nic/0000:3e:00.0": "nic.pause",
    "millrace/probe/pair/0000:3d:00.0+0000:3e:00.0": "pair.readback",
    "sys/devices/system/node/node0/hugepages/hugepages-2048kB/free_hugepages": "memory.hugepages",
    "proc/sys/kernel/osrelease": "kernel.release",
    "dev/nvidia-uvm": "devices.nodes",
    "dev/infiniband/uverbs0": "devices.nodes",
    "proc/driver/nvidia/gpus/0000:3d:00.0/information": "devices.nodes",
    "sys/bus/pci/devices/0000:3e:00.0": "pair.topology",
    "sys/devices/system/cpu/online": "cpu.online",
    "sys/devices/system/cpu/isolated": "cpu.online",
    "sys/fs/cgroup/system.slice/millrace.service/cpuset.cpus.effective": "cpu.cpuset",
    "proc/self/cgroup": "cpu.cpuset",
    "proc/irq/default_smp_affinity": "cpu.irqs",
    "NIC/infiniband": "nic.nodes",
    "NIC/net": "nic.nodes",
    "GPU/driver": "gpu.driver",
}
# More that rest on the answers of libraries.
ANSWERS = {
    "millrace/probe/gpu/0000:3d:00.0": ["gpu.integrated", "gpu.gpudirect", "gpu.dmabuf", "cuda.driver"],
    "millrace/probe/nic/0000:3e:00.0": ["pair.dmabuf"],
    "proc/self/mounts": ["memory.leftovers"],
    "proc/self/status": ["cpu.cpuset"],
}
# What is asked only where GPU memory is registered by dma-buf rests on these.
BY_DMABUF = ("proc/sys/kernel/osrelease", "millrace/probe/gpu/0000:3d:00.0",
    "millrace/probe/nic/0000:3e:00.0")  # fmt: skip
# The files of a machine do not speak of these: the configuration does.
OF_THE_CONFIGURATION = {"runtime.folder", "pool.size", "nic.tx_inline", "nic.rx_options", "config.roles"}
PLACES = {
    "NIC": "sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/0000:3c:10.0/0000:3e:00.0",
    "GPU": "sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/0000:3c:00.0/0000:3d:00.0",
    "DOWN": "sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/0000:3c:10.0",
    "GROUP": "sys/kernel/iommu_groups/1",
}
DEVICES = {"dev/nvidia-uvm", "dev/infiniband/uverbs0"}
# What is a good file all the same: words of a command line, devices whatever their bytes,
# a process in no group, and no isolated CPU, which is a warning at most.
LENIENT = {
    "huge number": {"proc/cmdline"} | DEVICES,
    "not UTF-8": DEVICES,
    "0 bytes": {"proc/self/cgroup"} | DEVICES,
    "random": DEVICES,
}
# "Not there" is an answer for these.
MAY_BE_ABSENT = {"kernel.numa_balancing", "pair.peermem", "pcie.aer", "iommu.type", "cpu.cpuset", "cpu.online"}


def gone(path):
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif os.path.lexists(path):
        path.unlink()


def spoil(path, how, rng):
    gone(path)
    if how == "folder":
        path.mkdir()
    elif how == "loop":
        path.symlink_to(path.name)
    elif how == "pipe":
        os.mkfifo(path)
    elif how == "outside":
        path.symlink_to("../" * 30 + "etc/hostname")
    elif how == "0 bytes":
        path.write_bytes(b"")
    elif how == "random":
        path.write_bytes(rng.randbytes(4096))
    elif how == "huge number":
        path.write_text("9" * 400 + "\n")
    elif how == "not UTF-8":
        path.write_bytes(b"\xff\xfe\x80 \xc3(\n")


SPOILED = ("folder", "loop", "pipe", "outside", "0 bytes", "random", "huge number", "not UTF-8")


def place(root, key):
    head, _, rest = key.partition("/")
    return root / (f"{PLACES[head]}/{rest}" if head in PLACES else key)


def passes_by_accident(r, key, how):
    """The checks that rest on a spoiled file and pass all the same."""
    if key in LENIENT.get(how, ()) or "checks" not in r.report:
        return []
    asked = [RESTS_ON[key], *ANSWERS.get(key, ())]
    if how == "outside":
        asked = [i for i in asked if i not in MAY_BE_ABSENT]
    return [f"{key} as {how}: {i} is PASS: {r.checks[i]['value']}" for i in asked
        if r.checks[i]["verdict"] == "PASS"]  # fmt: skip


def base(dmabuf):
    m = Machine()
    m.iommu, m.extmem_dmabuf = "identity", dmabuf
    return m


@case
def a_spoiled_file_is_never_a_pass(s):
    rng = random.Random(7)
    asked = s.write("lane.yaml", lane_config())
    step = len(SPOILED) // fewer(len(SPOILED), "ways to spoil each file")
    sound = {}
    wrong = []
    for dmabuf in (0, 1):
        root = build(s, base(dmabuf))
        good = doctor(s, "--root", root, asked)
        sound.update({i: c for i, c in good.checks.items() if c["verdict"] != "NA"})
        check_equal(good.report["verdict"], "PASS", "the base")
        for number, key in enumerate(BY_DMABUF if dmabuf else RESTS_ON):
            path = place(root, key)
            kept = s.path / "kept"
            os.rename(path, kept)
            for how in SPOILED[number % step :: step]:
                spoil(path, how, rng)
                wrong += passes_by_accident(doctor(s, "--root", root, asked), key, how)
            gone(path)
            os.rename(kept, path)
        check_equal(doctor(s, "--root", root, asked).report, good.report, "the base, mended")
    check(not wrong, "\n".join(wrong))
    gating = {i for i, c in sound.items() if c["gating"]} - OF_THE_CONFIGURATION
    covered = set(RESTS_ON.values()).union(*ANSWERS.values())
    check(gating <= covered, f"gating, and nothing of theirs was spoiled: {gating - covered}")
    check_equal({c for c in good.checks} - set(sound), set(), "checks that were never asked")


def mutate(root, rng):
    """A few files of the tree become something else; what the checks rest on comes first."""
    files = sorted(p for p in root.rglob("*") if p.is_file() or p.is_symlink())
    done = {}
    for key in rng.sample(sorted(RESTS_ON), 3):
        done[key] = rng.choice(SPOILED)
        if os.path.lexists(place(root, key)):
            spoil(place(root, key), done[key], rng)
    for path in rng.sample(files, rng.randint(1, 12)):
        how = rng.choice(SPOILED + ("gone", "unreadable"))
        if not os.path.lexists(path) or any(place(root, k) == path for k in done):
            continue
        if how == "gone":
            path.unlink()
        elif how == "unreadable":
            if path.is_file() and not path.is_symlink():
                path.chmod(0)
        else:
            spoil(path, how, rng)
    return done


@case
def hostile_trees_end_with_a_report(s):
    """Ends with a status of doctor's and an object of the schema; a sanitizer watches too."""
    rounds = fewer(int(os.environ.get("MILLRACE_HOSTILE", "60")), "hostile trees")
    asked = s.write("lane.yaml", lane_config())
    good = build(s, base(0), "good")
    for seed in range(rounds):
        rng = random.Random(seed)
        root = s.path / "hostile"
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(good, root, symlinks=True)
        done = mutate(root, rng)
        began = time.monotonic()
        r = doctor(s, "--root", root, asked, *(["--capture", s.path / "h.tar"] if seed % 3 == 0 else []))
        check(time.monotonic() - began < 10 * PATIENCE, f"seed {seed} takes too long")
        for key, how in done.items():
            wrong = passes_by_accident(r, key, how)
            check(not wrong, f"seed {seed}: {wrong}")


def entry(t, name, kind=tarfile.REGTYPE, to="", size=0):
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, to, size
    t.fileobj.write(info.tobuf(tarfile.GNU_FORMAT))


def unpacked_by(s):
    return [p for i in s.instances for p in os.listdir("/tmp")
        if p.startswith(f"millrace-root-{i.process.pid}-")]  # fmt: skip


def refused(s, root, words, prefix=()):
    began = time.monotonic()
    r = doctor(s, "--root", root, prefix=prefix)
    check("errors" in r.report, f"{root} is judged: {r.told()}")
    check(words in r.report["errors"][0]["message"], f"{words!r} is not in: {r.told()}")
    check(time.monotonic() - began < 5 * PATIENCE, f"{root} takes too long")
    check_equal(unpacked_by(s), [], "left behind")


@case
def hostile_archives_end_with_a_sentence_or_a_report(s):
    tar = s.path / "evil.tar"
    outside = s.path / "outside"
    with tarfile.open(tar, "w") as t:
        for name, kind, to in (
            ("../outside", tarfile.REGTYPE, ""), ("/outside", tarfile.REGTYPE, ""),
            (str(outside), tarfile.REGTYPE, ""), ("sys", tarfile.SYMTYPE, str(s.path)),
            ("sys/outside", tarfile.REGTYPE, ""), ("dev/null", tarfile.CHRTYPE, ""),
            ("dev/sda", tarfile.BLKTYPE, ""), ("hard", tarfile.LNKTYPE, "/etc/passwd"),
            ("a/../../outside", tarfile.REGTYPE, ""), ("pipe", tarfile.FIFOTYPE, ""),
            ("..", tarfile.DIRTYPE, ""), ("loop", tarfile.SYMTYPE, "loop"),
        ):  # fmt: skip
            entry(t, name, kind, to)
    refused(s, tar, "possible")  # no list of CPUs
    check(not outside.exists(), "the archive wrote outside its folder")
    for data in (b"", b"\x1f\x8b" + b"x" * 100, random.Random(3).randbytes(5000), b"\0" * 10240):
        tar.write_bytes(data)
        refused(s, tar, "neither a tar archive")


@case
def archives_larger_than_a_machine_are_refused_at_once(s):
    """By what they say of themselves: neither zeroes nor what is left out is read to the end."""
    tar = s.path / "large.tar"
    for name in ("sys/large", "../large", "proc/1/../large"):
        with tarfile.open(tar, "w") as t:
            entry(t, name, size=1 << 40)
        refused(s, tar, "more than a machine")
    with tarfile.open(tar, "w") as t:
        for i in range(900):
            t.addfile(tarfile.TarInfo(f"{i}/" + "a/" * 450 + "f"))
    refused(s, tar, "more than a machine")
    sparse = s.path / "sparse"
    with open(sparse, "wb") as f:
        f.truncate(10 << 30)
    subprocess.run(["tar", "-C", s.path, "-Scf", tar, "sparse"], check=True, timeout=60)
    check(tar.stat().st_size < 1 << 20, "no sparse archive")
    refused(s, tar, "more than a machine")


@case
def half_an_archive_is_none(s):
    root = build(s, Machine())
    tar = s.path / "half.tar"
    doctor(s, "--root", root, "--capture", tar)
    whole = tar.read_bytes()
    for part in (100, 511, 512 + 1, len(whole) // 2 // 512 * 512 + 100):
        tar.write_bytes(whole[:part])
        refused(s, tar, "neither a tar archive")
    subprocess.run(["gzip", "-c", tar], stdout=open(s.path / "half.gz", "wb"), check=True)
    cut = (s.path / "half.gz").read_bytes()
    (s.path / "half.gz").write_bytes(cut[: len(cut) // 2])
    refused(s, s.path / "half.gz", "neither a tar archive")


@case
def a_root_that_is_neither_folder_nor_file_is_refused(s):
    pipe = s.path / "pipe"
    os.mkfifo(pipe)
    for root in (pipe, "/dev/zero", "/dev/full"):
        refused(s, root, "neither a folder nor an archive")


@case
def a_signal_leaves_no_unpacked_folder(s):
    """It waits already when the program begins, which is as early as one can come."""
    tar = s.path / "m.tar"
    doctor(s, "--root", build(s, Machine()), "--capture", tar)
    waiting = ("python3", "-c", "import os, signal, sys; signal.pthread_sigmask(signal.SIG_BLOCK, [2]);"
        "os.kill(os.getpid(), 2); os.execvp(sys.argv[1], sys.argv[1:])")  # fmt: skip
    refused(s, tar, "a signal came", prefix=waiting)


@case
def a_full_disk_where_an_archive_is_unpacked_is_a_sentence(s):
    if len(people()) < 3:
        raise Skipped("it takes root, and the right to mount")
    tar = s.path / "m.tar"
    doctor(s, "--root", build(s, Machine()), "--capture", tar)
    away = pathlib.Path("/var/tmp") / s.path.name
    away.mkdir()
    try:
        shutil.copy(s.millrace, away / "millrace")
        shutil.copy(tar, away / "m.tar")
        small = ("unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=64k none /tmp && "$@"; r=$?;'
            'ls -A /tmp >&2; exit $r', "sh")  # fmt: skip
        r = subprocess.run([*small, away / "millrace", "doctor", "--json", "--root", away / "m.tar"],
            capture_output=True, text=True, timeout=60, cwd="/", check=False)  # fmt: skip
    finally:
        shutil.rmtree(away)
    check_equal(r.returncode, CONFIG, f"status: {r.stderr}")
    check("No space left" in json.loads(r.stdout)["errors"][0]["message"], r.stdout)
    check("millrace-root" not in r.stderr, f"left behind: {r.stderr}")


sys.exit(main())
