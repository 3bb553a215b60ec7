#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""plugin: stages in a shared object of their own, built of the installed SDK alone.

usage: test_plugin.py MILLRACE BUILD [-k WORD]
BUILD is Millrace's own, from which the SDK is installed into the scratch folder.
"""
import json
import os
import re
import shutil
import struct
import subprocess

from harness import CONFIG, SOURCE, Skipped, case, check, check_equal, check_frames, config, lane, main, swapped

EXAMPLE = SOURCE / "tests" / "plugin"
NOBODY = 65534


def udp(port, number=0):
    """A frame whose addresses are a number, to port of UDP; port 0: not IP."""
    if port == 0:
        return struct.pack(">IIIH", number, 0, number + 1, 0x88B5) + bytes(46)
    ip = struct.pack(">BBHHHBBHII", 0x45, 0, 28, 0, 0, 64, 17, 0, 0x0A000001, 0x0A000002)
    return struct.pack(">IIIH", number, 0, number + 1, 0x800) + ip + struct.pack(">HHHH", 7, port, 8, 0) + bytes(18)


def done(argv, cwd, env):
    r = subprocess.run([str(a) for a in argv], cwd=cwd, env=env, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, text=True, check=False)
    check(r.returncode == 0, f"{' '.join(map(str, argv))}: status {r.returncode}\n{r.stdout}")
    return r.stdout


def installed(s):
    """Installs the SDK; the environment in which pkg-config finds that one alone."""
    root = s.path / "root"
    done(["meson", "install", "-C", s.others[0], "--no-rebuild", "--tags", "devel", "--destdir", root], s.path, s.env)
    found = [p for p in root.rglob("millrace-stage.pc")]
    check_equal(len(found), 1, "pkg-config files")
    # The files lie below a DESTDIR, so the prefix that they name is not where they are.
    return dict(s.env, PKG_CONFIG_LIBDIR=str(found[0].parent), PKG_CONFIG="pkg-config --define-prefix")


def flags(env, *args):
    return done([*env["PKG_CONFIG"].split(), *args, "millrace-stage"], "/", env).split()


def built(s, *args, name="tally.so", env=None):
    """The example without its build system; args are for the compiler."""
    env = env or installed(s)
    done(["cc", "-fPIC", "-shared", *flags(env, "--cflags"), EXAMPLE / "tally.c", *args, "-o", s.path / name],
         s.path, env)
    return env


def patched(s, name, old, new, of="tally.so"):
    """A copy in which bytes of the same number stand in the place of others."""
    code = (s.path / of).read_bytes()
    check(len(old) == len(new) and old in code, f"{old} is not in {of}")
    (s.path / name).write_bytes(code.replace(old, new))


def capture(stages, plugins, **keys):
    ports = {"p0": "net_pcap0,rx_pcap=in.pcap,tx_pcap=out.pcap"}
    return config(ports, [lane("l0", "p0", "p0", stages, **keys)], plugins=plugins)


def refused(s, path, *words, stages=("tally",), more=()):
    """check, run and stages alike end with 78, and one sentence says why."""
    cfg = capture(stages, [str(path), *more])
    file = s.write("refused.yaml", cfg)
    for argv in (["check", file], ["run", file, "--json"]):
        r = s.command(*argv)
        check_equal(r.status, CONFIG, f"status of {argv[0]} {r.told()}")
        lines = [l for l in r.stderr.splitlines() if "plugins[" in l]
        check_equal(len(lines), 1, f"sentences {r.told()}")
        for w in words:
            check(w in lines[0], f"no '{w}' in {lines[0]}")


@case
def the_example_is_built_of_the_installed_sdk_alone_and_runs(s):
    env = installed(s)
    example = s.path / "example"
    shutil.copytree(EXAMPLE, example)
    lines = (EXAMPLE / "tally.c").read_text().splitlines()
    check(len(lines) <= 60, f"the example stage has {len(lines)} lines")
    done(["meson", "setup", "b", "-Dcuda=disabled", "-Dwerror=true"], example, env)
    done(["ninja", "-C", "b"], example, env)
    shutil.copy(example / "b" / "tally.so", s.path)
    frames = [udp((0, 53, 7)[i % 3], i) for i in range(300)]
    s.pcap("in.pcap", frames)
    stages = ["l2swap", {"use": "tally", "params": {"closed": 53}}, {"use": "checksum"}]
    cfg = capture(stages, ["tally.so"])
    r = s.run_idle(cfg)
    check_equal(r.stage("l0", "tally"), {"udp": 200, "closed": 100}, "counters")
    check_equal(r.drops(), {"gpu_drop_policy": 100}, "drops")
    wanted = [swapped(f) for i, f in enumerate(frames) if i % 3 != 1]
    check_frames(s.frames("out.pcap"), wanted, "frames that went on")
    told = s.command("check", s.write("c.yaml", cfg))
    check("tally (closed=53)" in told.stdout and "plug-in          tally.so" in told.stdout, told.told())
    plan = json.loads(s.command("check", "--json", s.path / "c.yaml").stdout)
    check_equal(plan["lanes"][0]["plugin"], "tally.so", "plug-in in the plan")
    listed = json.loads(s.command("stages", "--json", "--plugin", "tally.so").stdout)["stages"][-1]
    check_equal((listed["name"], listed["plugin"]), ("tally", "tally.so"), "listed")
    check_equal([p["name"] for p in listed["params"]], ["closed"], "parameters")
    check("UDP port whose frames" in s.command("stages", "--plugin", "tally.so").stdout, "help")


@case
def a_fatbin_of_nvcc_lies_in_the_object(s):
    nvcc = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    if nvcc is None:
        raise Skipped("no nvcc")
    env = installed(s)
    # PTX is enough here; the code of all GPUs takes a minute.
    given = flags(env, "--variable=nvccflags")
    few = [a for i, a in enumerate(given)
           if not a.startswith("-arch") and a != "-gencode" and not (i and given[i - 1] == "-gencode")]
    done([nvcc, *few, "-gencode", "arch=compute_80,code=compute_80", "-o", "tally.fatbin", EXAMPLE / "tally.c"], s.path, env)
    source = flags(env, "--variable=fatbin_source")[0]
    built(s, f'-DMR_IMAGE_FILE="{s.path / "tally.fatbin"}"', source, env=env)
    fatbin = (s.path / "tally.fatbin").read_bytes()
    check(fatbin in (s.path / "tally.so").read_bytes(), "the object does not hold the fatbin")
    check_equal(s.command("stages", "--plugin", "tally.so").status, 0, "status")


@case
def lanes_of_a_device_run_several_plug_ins_and_a_chain_one(s):
    # All that a plug-in may call of the program is found there when it is loaded.
    calls = re.findall(r"^\t(mr_\w+);", (SOURCE / "app" / "mr_plugin.list").read_text(), re.M)
    check(len(calls) > 5, f"calls: {calls}")
    (s.path / "calls.c").write_text('#include "mr_stage.h"\nconst void *const called[] = {%s};\n' % ", ".join(calls))
    built(s, "calls.c")
    patched(s, "count.so", b"tally\0", b"count\0")
    frames = [udp(53, i) for i in range(100)]
    s.pcap("in.pcap", frames)
    ports = {f"p{i}": f"net_pcap{i},rx_pcap=in.pcap,tx_pcap=out{i}.pcap" for i in range(3)}
    chains = (["tally"], ["count"], ["l2swap"])
    lanes = [lane(f"l{i}", f"p{i}", f"p{i}", chain) for i, chain in enumerate(chains)]
    r = s.run_idle(config(ports, lanes, plugins=["tally.so", "count.so"]))
    check_equal(r.stage("l0", "tally")["udp"], 100, "counted by one")
    check_equal(r.stage("l1", "count")["udp"], 100, "counted by the other")
    check_frames(s.frames("out2.pcap"), [swapped(f) for f in frames], "of the built-in image")
    told = s.command("check", s.write("two.yaml", capture(["tally", "count"], ["tally.so", "count.so"])))
    check_equal(told.status, CONFIG, told.told())
    check("stage 'count' is of plug-in 'count.so', and the chain has stages of 'tally.so'" in told.stderr, told.stderr)
    told = s.command("check", s.write("typo.yaml", capture(["taly"], ["tally.so"])))
    check("did you mean 'tally'?" in told.stderr, told.stderr)


@case
def what_others_may_change_is_refused_and_nothing_of_it_runs(s):
    ctor = s.path / "ctor.c"
    ctor.write_text('#include <fcntl.h>\n__attribute__((constructor)) static void c(void) { creat("ran", 0600); }\n')
    built(s, ctor)
    so = s.path / "tally.so"
    ran = s.path / "ran"
    for mode in (0o666, 0o664, 0o646):
        os.chmod(so, mode)
        refused(s, "tally.so", "others may write it", f"{mode:04o}", "chmod go-w")
    os.chmod(so, 0o644)
    below = s.path / "below"
    (below / "deep").mkdir(parents=True)
    shutil.copy(so, below / "deep")
    for mode in (0o777, 0o770):
        os.chmod(below, mode)
        refused(s, "below/deep/tally.so", f"others may write the folder '{below}'", f"{mode:04o}")
        (s.path / "link.so").symlink_to("below/deep/tally.so")
        refused(s, "link.so", f"others may write the folder '{below}'")
        (s.path / "link.so").unlink()
    if os.geteuid() == 0:
        os.chown(so, NOBODY, 0)
        refused(s, "tally.so", f"it belongs to user {NOBODY}", "chown")
        os.chown(so, 0, 0)
        os.chmod(below, 0o755)
        os.chown(below, NOBODY, 0)
        refused(s, "below/deep/tally.so", f"the folder '{below}' belongs to user {NOBODY}")
        os.chown(below, 0, 0)
    identity = sdk_identity(so)
    patched(s, "other.so", identity, identity[:-1] + b"x")
    refused(s, "other.so", "was built with the SDK " + (identity[:-1] + b"x").decode(), identity.decode(), "build it again")
    check(not ran.exists(), "code of a refused plug-in ran")
    # With the sticky bit others cannot replace what is there.
    os.chmod(below, 0o1777)
    check_equal(s.command("stages", "--plugin", below / "deep" / "tally.so").status, 0, "in a sticky folder")
    check(ran.exists(), "the constructor was to be seen once it is loaded")


def sdk_identity(so):
    code = so.read_bytes()
    at = code.index(b"Millrace\0")
    return code[at + 12 : code.index(b"\0", at + 12)]


@case
def what_is_no_plug_in_of_this_sdk_is_refused(s):
    env = built(s)
    refused(s, "absent.so", "cannot be read: No such file")
    refused(s, ".", "is a directory, not a file")
    s.write("text.so", "tally\n")
    refused(s, "text.so", "is not an ELF file")
    s.write("empty.so", "")
    refused(s, "empty.so", "is not an ELF file")
    done(["cc", "-shared", "-x", "c", "-o", "plain.so", "/dev/null"], s.path, env)
    refused(s, "plain.so", "has no note .note.millrace")
    s.write("hide.map", "{ local: *; };\n")
    text = (EXAMPLE / "tally.c").read_text().replace("static const struct mr_stage_desc ", """
static const struct mr_table_desc tally_table = {"closed", "closed", NULL, NULL};
static const struct mr_stage_desc """, 1).replace(".name = \"tally\",", ".name = \"tally\", .table = &tally_table,", 1)
    source = s.write("table.c", text)
    done(["cc", "-fPIC", "-shared", *flags(env, "--cflags"), source, "-o", s.path / "table.so"], s.path, env)
    refused(s, "table.so", "no parameter of type file")
    built(s, "-Wl,--version-script=hide.map", name="hidden.so", env=env)
    refused(s, "hidden.so", "does not export the symbol mr_plugin")
    (s.path / "lacks.c").write_text("void mr_nowhere(void);\nvoid f(void) { mr_nowhere(); }\n")
    built(s, "lacks.c", name="lacks.so", env=env)
    refused(s, "lacks.so", "cannot be loaded", "mr_nowhere")
    patched(s, "forward.so", b"tally\0", b"route\0")
    refused(s, "forward.so", "there is a built-in stage 'route'")
    shutil.copy(s.path / "tally.so", s.path / "again.so")
    refused(s, "tally.so", "plug-in 'tally.so' has a stage 'tally' too", more=["again.so"])
    code = (s.path / "tally.so").read_bytes()
    for size in (16, 64, len(code) // 2):
        (s.path / "cut.so").write_bytes(code[:size])
        refused(s, "cut.so", "plug-in 'cut.so'")
    refused(s, "cut.so", "is cut short")


@case
def a_reload_takes_parameters_and_refuses_another_plug_in(s):
    built(s)
    ports = {"p0": "net_pcap0,rx_pcap=in.pcap,infinite_rx=1", "p1": "net_null0"}
    s.pcap("in.pcap", [udp(53)] * 64)

    def closed(port):
        return config(ports, [lane("l0", "p0", "p1", [{"use": "tally", "params": {"closed": port}}])],
                      plugins=["tally.so"])

    run = s.start(closed(0)).until_running()

    def reload(port):
        s.write(f"{run.name}.yaml", closed(port))
        return s.command("reload", "--name", run.name)

    check_equal(reload(53).status, 0, "a reload of parameters")
    shutil.copy(s.path / "tally.so", s.path / "new.so")
    os.rename(s.path / "tally.so", s.path / "old.so")
    os.rename(s.path / "new.so", s.path / "tally.so")
    r = reload(0)
    check_equal(r.status, CONFIG, r.told())
    check("plugins[0]: plug-in 'tally.so' is not the file that this instance runs" in r.stderr, r.stderr)
    (s.path / "tally.so").unlink()
    check("cannot be read" in reload(0).stderr, "a plug-in that is gone")
    os.rename(s.path / "old.so", s.path / "tally.so")
    check_equal(reload(0).status, 0, "a reload with the file of before")
    s.write(f"{run.name}.yaml", dict(closed(0), plugins=[]))
    r = s.command("reload", "--name", run.name)
    check("plugins: cannot change while the instance runs" in r.stderr, r.stderr)
    run.signal()
    r = run.wait(reason="signal")
    check(r.stage("l0", "tally")["closed"] > 0, "none was closed")


if __name__ == "__main__":
    raise SystemExit(main())
