#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""summary.py counts a run that ended early as a failure, whatever the tests before it said, and
keeps a sentence for each failure.

usage: test_summary.py SUMMARY
"""
import json
import pathlib
import subprocess
import sys
import tempfile


def counted(results, status):
    """What is counted of a run with these results that ends with this status."""
    with tempfile.TemporaryDirectory() as folder:
        at = pathlib.Path(folder)
        (at / "tests").mkdir()
        (at / "tests" / "budget.h").write_text("#define unit 60\n")
        (at / "meson-logs").mkdir()
        lines = "".join(
            json.dumps({"name": "millrace:unit / t", "result": r, "starttime": 0, "duration": 1, "stdout": ""}) + "\n"
            for r in results
        )
        (at / "lines").write_text(lines)
        command = ["sh", "-c", f"cp lines meson-logs/testlog.json; exit {status}"]
        ran = subprocess.run(
            [sys.executable, sys.argv[1], "plain", folder, *command], capture_output=True, text=True, check=True
        )
        logs = at / "meson-logs"
        told = (logs / "failures").read_text()
        return (logs / "counts").read_text().split(), told.count("failed: plain: "), ran.stdout + told


wrong = 0
for results, status, wanted in (
    (["OK", "OK"], 0, ["2", "0", "0"]),
    (["OK", "OK"], 1, ["2", "1", "0"]),
    (["OK", "OK"], -9 % 256, ["2", "1", "0"]),
    ([], 2, ["0", "1", "0"]),
    (["OK", "FAIL"], 1, ["1", "1", "0"]),
    (["SKIP"], 0, ["0", "0", "1"]),
):
    got, named, told = counted(results, status)
    if got != wanted or named != int(wanted[1]):
        wrong += 1
        print(f"{results} with status {status}: counted {got} and named {named}, not {wanted}: {told}")
sys.exit(wrong != 0)
