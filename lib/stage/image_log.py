# SPDX-License-Identifier: BSD-3-Clause
"""Makes the CUDA image, and writes down what ptxas measured and how long it took.

usage: image_log.py LOG NVCC OPTION...
The log is what tests/lint/image.py judges. Warnings, and all that is said by a compiler that
failed, go to where a compiler's words go.
"""
import resource
import subprocess
import sys


def main():
    log, *command = sys.argv[1:]
    r = subprocess.run([*command, "-Xptxas", "-v"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(log, "w", encoding="utf-8") as f:
        f.write(f"{r.stdout}processor time: {used.ru_utime + used.ru_stime:.1f} s\n")
    if r.returncode != 0 or "warning" in r.stdout:
        sys.stderr.write(r.stdout)
    return r.returncode


sys.exit(main())
