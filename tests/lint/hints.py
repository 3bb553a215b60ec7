# SPDX-License-Identifier: BSD-3-Clause
"""What the checks advise are commands that a shell takes.

usage: hints.py [SHELLCHECK]
A hint has its commands between backticks; what printf puts in is stood for by a word or a
number. shellcheck reads each, and the first word must be a program that a hint may name.
"""
import re
import subprocess
import sys

import tree

# What an operator of such a machine has, or is told to install.
PROGRAMS = set(
    """apt-get cat chmod deploy/host-tune devlink dkms dmesg dpdk-devbind.py echo ethtool grep ib_write_bw ip ldconfig lscpu
    lspci millrace mlxconfig mlxfwmanager modinfo modprobe mokutil mount nvidia-modprobe
    nvidia-smi rdma rm rmmod setpci sudo sysctl systemctl tail taskset ulimit""".split()
)
STRING = r'"((?:[^"\\]|\\.)*)"'


def hints(source):
    """The texts of mr_hint(f, ...), neighbouring strings joined."""
    for call in re.finditer(r"\bmr_hint\(\s*f\s*,", source):
        rest = source[call.end() :]
        for text in re.finditer(rf"(?:{STRING}\s*)+", rest[: rest.index(";\n")]):
            yield "".join(re.findall(STRING, text.group(0)))


def filled(text):
    text = re.sub(r"%l?l?[du]", "1", text)
    text = re.sub(r"%(\.\d+)?s", "word", text)
    return re.sub(r"\\(.)", r"\1", text).replace("%%", "%")


def main():
    if len(sys.argv) < 2:
        tree.skip("shellcheck is not installed")
    verdict = tree.Verdict()
    seen = set()
    for path in tree.files(".c"):
        calls = len(re.findall(r"(?<!void )\bmr_hint\(", tree.text(path)))
        taken = len(re.findall(r"\bmr_hint\(\s*f\s*,(?:[^;\"]|\n)*\"", tree.text(path)))
        if calls != taken:
            verdict.bad(f"{path}: {calls - taken} calls of mr_hint have no text to be read here")
        for hint in map(filled, hints(tree.text(path))):
            if hint.count("`") % 2:
                verdict.bad(f"{path}: a backtick is missing in '{hint}'")
            for command in hint.split("`")[1::2]:
                verdict.checked += 1
                if command in seen:
                    continue
                seen.add(command)
                run = subprocess.run(
                    [sys.argv[1], "--shell=bash", "--severity=style", "-"],
                    input=command + "\n",
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    check=False,
                )
                if run.returncode != 0:
                    verdict.bad(f"{path}: '{command}'\n{run.stdout}")
                for part in re.split(r"[;|]\s*", command):
                    if part.split()[0] not in PROGRAMS:
                        verdict.bad(f"{path}: '{part}' begins with no known program")
    verdict.done("commands in hints")


main()
