# SPDX-License-Identifier: BSD-3-Clause
"""deploy/host-tune on trees made here, with programs that act on them, and on the machine.

usage: test_host_tune.py MILLRACE HOST_TUNE [-k WORD]
"""
import os
import pathlib
import subprocess
import sys
import time

from harness import Skipped, case, check, check_equal, machine_hugepages, main

NODE = "sys/devices/system/node/node{}/hugepages/hugepages-{}kB/nr_hugepages"
GOVERNOR = "sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor"
LIMITS = "etc/security/limits.d/90-millrace-packet.conf"
NIC = "0000:3e:00.0"

# What a call says is in the tree's file `calls`; the folders pci and eth are the devices.
SETPCI = """#!/bin/sh
tree=${0%/bin/setpci}
echo "setpci $*" >>"$tree/calls"
case $3 in
CAP_EXP+8.w) cat "$tree/pci/$2" ;;
CAP_EXP+8.w=?000:7000)
	[ ! -e "$tree/hang" ] || { : >"$tree/hanging"; sleep 60; }
	[ -e "$tree/lockdown" ] && exit 0
	old=$(cat "$tree/pci/$2")
	new=${3#*=}
	echo "${new%000:7000}${old#?}" >"$tree/pci/$2"
	;;
*) exit 1 ;;
esac
"""
ETHTOOL = """#!/bin/sh
tree=${0%/bin/ethtool}
echo "ethtool $*" >>"$tree/calls"
case $1 in
-a)
	read -r a r t <"$tree/eth/$2"
	printf 'Pause parameters for %s:\\nAutonegotiate:\\t%s\\nRX:\\t\\t%s\\nTX:\\t\\t%s\\n' "$2" $a $r $t
	printf 'RX negotiated: on\\nTX negotiated: on\\n\\n'
	;;
-A) echo "$4 $6 $8" >"$tree/eth/$2" ;;
*) exit 1 ;;
esac
"""
MODPROBE = """#!/bin/sh
tree=${0%/bin/modprobe}
echo "modprobe $*" >>"$tree/calls"
case $1 in
-r) rmdir "$tree/sys/module/$(echo "$2" | tr - _)" ;;
*) mkdir "$tree/sys/module/$(echo "$1" | tr - _)" ;;
esac
"""
ALL = ["--hugepages", "0:64", "--hugepages", "1:2:1048576", "--cpus", "2-3", "--mrrs", NIC,
       "--pause-off", "eth2", "--memlock", "packet", "--module", "nvidia-peermem"]  # fmt: skip


class Machine:
    """A tree with four CPUs, two nodes, a NIC; the state lies beside it."""

    def __init__(self, s):
        self.tool = s.others[0]
        self.path = pathlib.Path(s.path) / "tree"
        self.state = pathlib.Path(s.path) / "state" / "record"
        self.put("proc/sys/kernel/random/boot_id", "11111111-2222-3333-4444-555555555555")
        self.put("sys/devices/system/cpu/online", "0-3")
        self.put("sys/devices/system/cpu/isolated", "")
        for cpu in range(4):
            self.put(GOVERNOR.format(cpu), "powersave")
        self.put(NODE.format(0, 2048), "10")
        self.put(NODE.format(1, 1048576), "0")
        self.put("proc/irq/24/smp_affinity_list", "0-3")
        self.put("proc/irq/25/smp_affinity_list", "2")
        self.put("proc/irq/26/smp_affinity_list", "0")
        self.put("proc/irq/default_smp_affinity", "f")
        self.put("sys/module/mlx5_core/version", "1")
        self.put(f"pci/{NIC}", "2936")
        self.put("eth/eth2", "on on on")
        for name, text in (("setpci", SETPCI), ("ethtool", ETHTOOL), ("modprobe", MODPROBE)):
            self.put("bin/" + name, text)
            (self.path / "bin" / name).chmod(0o755)

    def put(self, name, text):
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")

    def get(self, name):
        return (self.path / name).read_text().strip()

    def command(self, verb, *args):
        return [self.tool, verb, "--root", str(self.path), "--state", str(self.state), *args]

    def run(self, verb, *args, status=0):
        r = subprocess.run(self.command(verb, *args), stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=60, check=False)  # fmt: skip
        if status is not None:
            check_equal(r.returncode, status, f"status of {verb} {args}: {r.stdout}")
        return r.stdout

    def contents(self):
        """All files but the calls, with what changes when one is written."""
        found = {}
        for file in sorted(self.path.rglob("*")):
            if file.is_file() and file.name != "calls":
                found[str(file.relative_to(self.path))] = file.read_text()
        return found

    def touched(self):
        stats = {}
        for file in self.path.rglob("*"):
            if file.name != "calls" and file != self.path:
                at = file.stat()
                stats[str(file)] = (at.st_ino, at.st_mtime_ns, at.st_ctime_ns)
        return stats


def check_set(m):
    check_equal(m.get(NODE.format(0, 2048)), "64", "pages of node 0")
    check_equal(m.get(NODE.format(1, 1048576)), "2", "pages of node 1")
    check_equal([m.get(GOVERNOR.format(c)) for c in range(4)],
        ["powersave", "powersave", "performance", "performance"], "governors")  # fmt: skip
    check_equal([m.get(f"proc/irq/{i}/smp_affinity_list") for i in (24, 25, 26)],
        ["0-1", "0-1", "0"], "interrupts")  # fmt: skip
    check_equal(m.get("proc/irq/default_smp_affinity"), "00000003", "default of interrupts")
    check_equal(m.get(f"pci/{NIC}"), "5936", "device control")
    check_equal(m.get("eth/eth2"), "off off off", "pause frames")
    check_equal(m.get(LIMITS), "packet - memlock unlimited", "limits")
    check((m.path / "sys/module/nvidia_peermem").is_dir(), "the module is not loaded")


@case
def check_says_what_it_would_set_and_touches_nothing(s):
    m = Machine(s)
    before = m.touched()
    out = m.run("check", *ALL, status=1)
    check_equal(m.touched(), before, "the tree")
    check(not m.state.parent.exists(), "a record was made")
    calls = m.get("calls").splitlines()
    check_equal(set(calls), {f"setpci -s {NIC} CAP_EXP+8.w", "ethtool -a eth2"}, "calls")
    for word in ("10 -> 64", "512 -> 4096", "0-3 -> 0-1", "powersave -> performance",
                 "not set -> unlimited", "absent -> loaded", "autoneg on rx on tx on -> autoneg off",
                 "isolcpus=2-3 nohz_full=2-3 rcu_nocbs=2-3 irqaffinity=0-1"):  # fmt: skip
        check(word in out, f"{word!r} is not in: {out}")
    check("interrupt 26" not in out, f"an interrupt that is elsewhere: {out}")


@case
def apply_sets_all_and_undo_leaves_the_tree_as_it_was(s):
    m = Machine(s)
    before = m.contents()
    out = m.run("apply", *ALL)
    check_set(m)
    check("isolcpus=2-3" in out, f"no hint: {out}")
    m.put("sys/devices/system/cpu/isolated", "1-3")
    out = m.run("check", *ALL)
    check("would set" not in out and "hint" not in out, f"not all is as wanted: {out}")
    m.put("sys/devices/system/cpu/isolated", "")
    m.run("undo")
    after = m.contents()
    # The kernel's form of a mask.
    check_equal(after.pop("proc/irq/default_smp_affinity"), "0000000f\n", "default of interrupts")
    before.pop("proc/irq/default_smp_affinity")
    check_equal(after, before, "the tree after undo")
    check(not (m.path / "sys/module/nvidia_peermem").exists(), "the module is still loaded")
    check_equal(list(m.state.parent.iterdir()), [], "what is left of the record")
    check_equal(m.run("undo"), "nothing to undo\n", "second undo")


@case
def a_second_apply_keeps_the_first_old_values(s):
    m = Machine(s)
    before = m.contents()
    m.run("apply", "--hugepages", "0:20", "--mrrs", NIC + "=1024")
    m.run("apply", "--hugepages", "0:30", "--mrrs", NIC + "=2048", "--module", "a-b")
    m.run("apply", "--hugepages", "0:30")
    check_equal(m.get(NODE.format(0, 2048)), "30", "pages")
    m.run("undo")
    check_equal(m.contents(), before, "the tree after undo")


@case
def what_is_as_wanted_is_not_touched(s):
    m = Machine(s)
    m.put(LIMITS, "packet - memlock unlimited")
    m.put("sys/module/a_b/version", "1")
    before = m.touched()
    m.run("apply", "--hugepages", "0:5", "--mrrs", NIC + "=512", "--memlock", "packet",
          "--module", "a-b")  # fmt: skip
    check_equal(m.touched(), before, "the tree")
    check(not m.state.exists(), "a record of nothing")


@case
def another_file_of_limits_comes_back(s):
    m = Machine(s)
    m.put(LIMITS, "packet - memlock 65536\t#\n# ü")
    before = m.contents()
    m.run("apply", "--memlock", "packet")
    check_equal(m.get(LIMITS), "packet - memlock unlimited", "limits")
    m.run("undo")
    check_equal(m.contents(), before, "the tree after undo")


@case
def a_run_killed_in_the_middle_can_be_undone(s):
    m = Machine(s)
    before = m.contents()
    m.put("hang", "")
    run = subprocess.Popen(m.command("apply", *ALL), stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True)  # fmt: skip
    try:
        end = time.monotonic() + 30
        while not (m.path / "hanging").exists():
            check(time.monotonic() < end and run.poll() is None, "it did not come to setpci")
            time.sleep(0.01)
        r = subprocess.run(m.command("undo"), stderr=subprocess.PIPE, text=True, timeout=30,
            check=False)  # fmt: skip
        check(r.returncode == 1 and "another run" in r.stderr, f"two at one time: {r.stderr}")
    finally:
        os.killpg(run.pid, 9)
        run.wait(timeout=30)
    check_equal(m.get(NODE.format(0, 2048)), "64", "pages, which come first")
    check_equal(m.get("eth/eth2"), "on on on", "pause frames, which come later")
    for name in ("hang", "hanging"):
        (m.path / name).unlink()
    # The last of the killed processes holds the record until it is gone.
    end = time.monotonic() + 30
    while "another run" in (out := m.run("undo", status=None)):
        check(time.monotonic() < end, out)
        time.sleep(0.05)
    after = m.contents()
    after.pop("proc/irq/default_smp_affinity")
    before.pop("proc/irq/default_smp_affinity")
    check_equal(after, before, "the tree after undo")


@case
def a_write_without_effect_is_reported(s):
    m = Machine(s)
    m.put("lockdown", "")
    out = m.run("apply", "--mrrs", NIC, "--hugepages", "0:12", status=1)
    check("NOT set" in out and "wanted 4096, reads 512" in out, f"not reported: {out}")
    check("lockdown" in out, f"no hint: {out}")
    check_equal(m.get(NODE.format(0, 2048)), "12", "pages")
    m.run("undo")
    check_equal(m.get(NODE.format(0, 2048)), "10", "pages after undo")


@case
def what_undo_cannot_put_back_stays_recorded(s):
    m = Machine(s)
    m.run("apply", "--mrrs", NIC, "--hugepages", "0:12")
    m.put("lockdown", "")
    out = m.run("undo", status=1)
    check("NOT restored" in out, f"not reported: {out}")
    check_equal(m.get(NODE.format(0, 2048)), "10", "pages after undo")
    (m.path / "lockdown").unlink()
    out = m.run("undo")
    check("hugepages" not in out, f"put back twice: {out}")
    check_equal(m.get(f"pci/{NIC}"), "2936", "device control")


@case
def a_full_disk_changes_nothing(s):
    if os.geteuid() != 0:
        raise Skipped("mounting needs root")
    m = Machine(s)
    m.state.parent.mkdir()
    before = m.contents()
    script = 'mount -t tmpfs -o size=16k none "$0" && { cat /dev/zero >"$0/full"; "$@"; }'
    r = subprocess.run(["unshare", "-m", "sh", "-c", script, str(m.state.parent),
        *m.command("apply", *ALL)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=60, check=False)  # fmt: skip
    if "unshare" in r.stdout or "mount" in r.stdout:
        raise Skipped(f"no file system to fill here: {r.stdout}")
    check_equal(r.returncode, 1, f"status: {r.stdout}")
    check("nothing was changed" in r.stdout, f"no sentence: {r.stdout}")
    check_equal(m.contents(), before, "the tree")


@case
def a_record_that_cannot_be_made_changes_nothing(s):
    m = Machine(s)
    before = m.contents()
    m.state.parent.write_text("a file where a folder belongs\n")
    out = m.run("apply", *ALL, status=1)
    check("nothing was changed" in out, f"no sentence: {out}")
    m.state.parent.unlink()
    m.state.parent.mkdir()
    for text in ("something else\n", "millrace host-tune 1\nx\nhugepages\t0:2048/../..\t1\t2\n",
                 "millrace host-tune 1\nx\nrm\t/\t1\t2\n", "\xff\xfe"):  # fmt: skip
        m.state.write_text(text)
        for verb in (["apply", *ALL], ["undo"]):
            out = m.run(*verb, status=1)
            check("not a record" in out, f"no sentence: {out}")
        check_equal(m.state.read_text(), text, "the file of another")
    check_equal(m.contents(), before, "the tree")


@case
def after_a_restart_only_files_are_put_back(s):
    m = Machine(s)
    m.run("apply", "--hugepages", "0:12", "--memlock", "packet")
    m.put("proc/sys/kernel/random/boot_id", "another")
    m.put(NODE.format(0, 2048), "100")
    out = m.run("undo")
    check("started anew" in out, f"not said: {out}")
    check_equal(m.get(NODE.format(0, 2048)), "100", "pages of another boot")
    check(not (m.path / LIMITS).exists(), "limits are still there")


@case
def what_cannot_be_read_is_said_and_the_rest_is_set(s):
    m = Machine(s)
    m.put(f"pci/{NIC}", "ffff")
    m.put(NODE.format(1, 2048), "many")
    (m.path / GOVERNOR.format(2)).unlink()
    (m.path / "bin/ethtool").unlink()
    out = m.run("apply", "--mrrs", NIC, "--hugepages", "1:3", "--hugepages", "7:3", "--pause-off",
                "eth2", "--cpus", "2", status=1)  # fmt: skip
    check_equal(out.count("NOT KNOWN"), 4, f"what is not known: {out}")
    check("not there    governor of CPU 2" in out, f"no governor: {out}")
    check_equal(m.get(NODE.format(1, 2048)), "many", "pages")
    check_equal(m.get("proc/irq/24/smp_affinity_list"), "0-1,3", "interrupt")


@case
def many_cpus_are_listed_and_masked_as_the_kernel_does(s):
    m = Machine(s)
    m.put("sys/devices/system/cpu/online", "0-127")
    m.put("proc/irq/default_smp_affinity", "ffffffff,ffffffff,ffffffff,ffffffff")
    m.put("proc/irq/24/smp_affinity_list", "0-127")
    m.put("proc/irq/25/smp_affinity_list", "40-41,64")
    m.run("apply", "--cpus", "40-63,64,100,127")
    check_equal(m.get("proc/irq/default_smp_affinity"), "7fffffef,fffffffe,000000ff,ffffffff",
                "mask")  # fmt: skip
    check_equal(m.get("proc/irq/24/smp_affinity_list"), "0-39,65-99,101-126", "interrupt")
    check_equal(m.get("proc/irq/25/smp_affinity_list"), "0-39,65-99,101-126", "all moved away")


@case
def wrong_usage_is_status_2_and_touches_nothing(s):
    m = Machine(s)
    before = m.touched()
    for args in (["check"], ["apply"], ["tune", "--cpus", "1"], ["apply", "--hugepages", "5"],
                 ["apply", "--hugepages", "0:x"], ["apply", "--hugepages", "0:1:2:3"],
                 ["apply", "--hugepages", "../0:5"], ["apply", "--hugepages", "0:-5"],
                 ["apply", "--hugepages", "0:9999999999999"], ["apply", "--cpus", "3-2"],
                 ["apply", "--cpus", ""], ["apply", "--cpus", "1,,2"], ["apply", "--cpus", "9"],
                 ["apply", "--cpus", "0-3"], ["apply", "--cpus", "1 2"], ["apply", "--mrrs", "x"],
                 ["apply", "--mrrs", NIC + "=4097"], ["apply", "--mrrs", NIC + "\n-v"],
                 ["apply", "--pause-off", "-x"], ["apply", "--pause-off", "a b"],
                 ["apply", "--memlock", "../x"], ["apply", "--memlock", "*"],
                 ["apply", "--module", "-r"], ["apply", "--module", "a;b"], ["apply", "--module"],
                 ["apply", "--what", "1"], ["undo", "--cpus", "1"]):  # fmt: skip
        m.run(*args, status=2)
    check_equal(m.touched(), before, "the tree")


@case
def real_hugepages_are_taken_and_given_back(s):
    file = pathlib.Path("/", NODE.format(0, 2048))
    if not os.access(file, os.W_OK):
        raise Skipped("no hugepages of 2 MiB that may be set here")

    def run(verb, *args):
        r = subprocess.run([s.others[0], verb, "--state", s.path / "record", *args],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60,
            check=False)  # fmt: skip
        return r.returncode, r.stdout

    with machine_hugepages():
        before = int(file.read_text())
        wanted = ["--hugepages", f"0:{before + 4}"]
        check_equal(run("check", *wanted)[0], 1, "status of check")
        check_equal(int(file.read_text()), before, "pages after check")
        status, out = run("apply", *wanted)
        if "NOT set" in out:
            raise Skipped(f"the machine has no four pages to give: {out}")
        check_equal(status, 0, f"status of apply: {out}")
        check_equal(int(file.read_text()), before + 4, "pages after apply")
        check_equal(run("check", *wanted)[0], 0, "status of check after apply")
        status, out = run("undo")
        check_equal((status, int(file.read_text())), (0, before), f"after undo: {out}")


sys.exit(main())
