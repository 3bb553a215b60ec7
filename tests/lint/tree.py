# SPDX-License-Identifier: BSD-3-Clause
"""What the lints share: the files of the tree, the build's commands, the verdict.

A lint collects sentences with Verdict.bad() and ends with Verdict.done(): exit
status 0 when there are none, 1 otherwise. skip() leaves with 77, which the test
runner counts as skipped.
"""
import json
import os
import shlex
import sys

SOURCE = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))


class Verdict:
    def __init__(self):
        self.sentences = []
        self.checked = 0

    def bad(self, sentence):
        self.sentences.append(sentence)

    def done(self, what):
        for s in self.sentences:
            print(s)
        if self.checked == 0:
            print(f"nothing was checked: no {what} found")
            sys.exit(1)
        print(f"{self.checked} {what} checked, {len(self.sentences)} faults")
        sys.exit(1 if self.sentences else 0)


def skip(why):
    print("skipped: " + why)
    sys.exit(77)


def is_build_folder(path):
    return os.path.exists(os.path.join(path, "meson-private"))


def files(*suffixes):
    """Paths relative to the tree, sorted; without suffixes all files."""
    found = []
    for folder, below, names in os.walk(SOURCE):
        below[:] = [
            d
            for d in below
            if d not in (".git", "__pycache__") and not is_build_folder(os.path.join(folder, d))
        ]
        for n in names:
            if not suffixes or n.endswith(suffixes):
                found.append(os.path.relpath(os.path.join(folder, n), SOURCE))
    return sorted(found)


def text(path):
    """The file as text, or None where it is not text."""
    with open(os.path.join(SOURCE, path), "rb") as f:
        raw = f.read()
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return None


def without_comments(source):
    """C source with comments and the insides of strings blanked, line numbers kept."""
    out = []
    i = 0
    while i < len(source):
        two = source[i : i + 2]
        if two == "/*":
            end = source.find("*/", i + 2)
            end = len(source) if end < 0 else end + 2
            out.append("".join(c if c == "\n" else " " for c in source[i:end]))
        elif two == "//":
            end = source.find("\n", i)
            end = len(source) if end < 0 else end
        elif source[i] in "\"'":
            quote, end = source[i], i + 1
            while end < len(source) and source[end] not in (quote, "\n"):
                end += 2 if source[end] == "\\" else 1
            end += 1
            out.append(quote + quote)
        else:
            end = i + 1
            out.append(source[i])
        i = end
    return "".join(out)


def commands(build):
    """The build's compile commands: (file relative to the tree, object, arguments)."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        entries = json.load(f)
    for e in entries:
        path = os.path.realpath(os.path.join(e["directory"], e["file"]))
        yield os.path.relpath(path, SOURCE), e["output"], shlex.split(e["command"])


def flags(arguments):
    """Compiler and flags of a command, without its file, output and depfile."""
    kept = []
    rest = iter(arguments)
    for a in rest:
        if a in ("-o", "-MQ", "-MF"):
            next(rest)
        elif a == "-c":
            next(rest)
        elif a not in ("-MD", "-MMD"):
            kept.append(a)
    return kept
