#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The manual pages and the completion of bash say what the program takes, and are well formed.

usage: test_manual.py MILLRACE FOLDER [-k WORD], FOLDER has what the build made of them
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
from harness import CLEAN, SOURCE, USAGE, Skipped, case, check, check_equal, main  # noqa: E402

PAGES = ("millrace.1", "millrace.yaml.5", "millrace-stages.7")
KEY = re.compile(r'^(?:KEY|LIST|MAPPING|PART|PARAMS)\("([^"]+)"', re.M)


def page(s, name):
    return (pathlib.Path(s.others[0]) / name).read_text(encoding="ascii")


def usages(s):
    """The lines of --help that begin with the program's name: a line a command."""
    return [l.strip() for l in s.command("--help").stdout.splitlines() if l.startswith("  millrace ")]


@case
def the_pages_are_well_formed(s):
    if shutil.which("mandoc") is None:
        raise Skipped("mandoc is not installed")
    for name in PAGES:
        path = pathlib.Path(s.others[0]) / name
        r = subprocess.run(["mandoc", "-Tlint", path], capture_output=True, text=True, check=False)
        # Whether the other pages are installed is no fault of this one.
        faults = [l for l in r.stdout.splitlines() if "referenced manual not found" not in l]
        check_equal(faults, [], f"what mandoc finds in {name}")
        r = subprocess.run(
            ["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", path], stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, env={**s.env, "LC_ALL": "C.UTF-8", "MANWIDTH": "80"}, text=True, check=False,
        )  # fmt: skip
        check_equal((r.returncode, r.stderr), (0, ""), f"what man finds in {name}")


@case
def the_first_page_has_every_command_option_and_status(s):
    text = page(s, "millrace.1")
    check(len(usages(s)) >= 10, f"few commands: {usages(s)}")
    for usage in usages(s):
        words = usage.split()[1:]
        check(f".Ss millrace {words[0]}" in text, f"{words[0]} has no section")
        for option in re.findall(r"--([a-z-]+)", usage):
            check(f".It Fl -{option}" in text, f"--{option} of {words[0]} is not explained")
        names = [w for w in words[:2] if re.fullmatch("[a-z]+", w)]
        told = s.command(*names, "--help").stdout
        for option in re.findall(r"--[a-z-]+", usage):
            check(re.search(rf"^      {option} .*\w", told, re.M), f"{names} --help says nothing of {option}")
    statuses = re.findall(r"^  (\d+) +(\w.*)$", s.command("--help").stdout, re.M)
    check_equal(len(statuses), 7, "exit statuses")
    for status, meaning in statuses:
        check(f".It {status}\n{meaning[0].upper()}{meaning[1:]}.\n" in text, f"status {status} is not explained")


@case
def the_other_pages_have_every_key_stage_and_parameter(s):
    text = page(s, "millrace.yaml.5")
    keys = [k for d in sorted((SOURCE / "lib" / "config").glob("mr_schema*.def")) for k in KEY.findall(d.read_text())]
    check(len(keys) > 60, f"{len(keys)} keys")
    for key in keys:
        check(f".It Ic {key}\n" in text, f"{key} is not explained")
    text = page(s, "millrace-stages.7")
    for stage in json.loads(s.command("stages", "--json").stdout)["stages"]:
        section = text.partition(f".Ss {stage['name']}\n")[2].partition("\n.Ss ")[0]
        check(section, f"{stage['name']} has no section")
        for p in stage["params"]:
            check(f".It Ic {p['name']}\n" in section and f"default {p['default'] or 'none'})" in " ".join(section.split()),
                f"{p['name']} of {stage['name']} or its default")  # fmt: skip
        for c in stage["counters"]:
            check(f".It Va {c['name']}\n" in section, f"counter {c['name']} of {stage['name']}")


@case
def the_readme_shows_the_usage_that_the_program_has(s):
    readme = (SOURCE / "README.md").read_text(encoding="utf-8")
    shown = re.findall(r"^    (millrace .*)$", readme.partition("\n## Commands\n")[2].partition("\n## ")[0], re.M)
    for usage in usages(s):
        check(any(usage == l or (l.endswith(" ...") and usage.startswith(l[:-4])) for l in shown), f"not in README.md: {usage}")


@case
def a_page_that_is_none_is_named_with_those_that_are(s):
    for name in (*PAGES, "completion.bash"):
        check_equal(s.command("manual", name).status, CLEAN, name)
    r = s.command("manual", "millrace.8")
    check_equal((r.status, r.stdout), (USAGE, ""), "status")
    check(all(p in r.stderr for p in (*PAGES, "millrace.8")), r.stderr)


def complete(s, *words):
    """What bash offers for the last word."""
    script = (
        'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
        'spec=$(complete -p millrace); "$(sed "s/.*-F \\([^ ]*\\) .*/\\1/" <<<"$spec")"; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    r = subprocess.run(
        ["bash", "-u", "-c", script, "bash", pathlib.Path(s.others[0]) / "millrace", "millrace", *words],
        cwd=s.path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    check_equal((r.returncode, r.stderr), (0, ""), f"bash with {words}")
    return sorted(r.stdout.split())


@case
def bash_completes_commands_options_files_and_pages(s):
    s.write("lanes.yaml", "")
    commands = sorted({u.split()[1] for u in usages(s)} | {"--help", "--version"})
    check_equal(complete(s, ""), commands, "commands")
    check_equal(complete(s, "re"), ["reload"], "a command that is begun")
    for usage in usages(s):
        names = [w for w in usage.split()[1:3] if re.fullmatch("[a-z]+", w)]
        wanted = sorted(set(re.findall(r"--[a-z-]+", usage)) | {"--help"})
        check_equal(complete(s, *names, "--"), wanted, f"options of {names}")
    check_equal(complete(s, "run", "la"), ["lanes.yaml"], "a configuration")
    check_equal(complete(s, "doctor", "--capture", "la"), ["lanes.yaml"], "the file of an option")
    check_equal(complete(s, "run", "--duration", ""), [], "a number")
    check_equal(complete(s, "bench", "c"), ["compare", "crossover"], "what bench has")
    check_equal(complete(s, "manual", "millrace-"), ["millrace-stages.7"], "a page")


sys.exit(main())
