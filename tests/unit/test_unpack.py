#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What mr_unpack.h makes of packed samples is what numpy makes of the same bytes.

usage: test_unpack.py PROGRAM
Integers are exact, mean and RMS within a millionth. Every width, both byte orders, both
codings; random bytes, extremes, parts of groups, and sums in several parts.
"""
import itertools
import subprocess
import sys

try:
    import numpy
except ImportError:
    print("skipped: python3-numpy is not installed")
    sys.exit(77)

WIDTHS = (1, 2, 4, 8, 10, 12, 16)


def unpacked(data, bits, little, offset):
    """The samples as numpy sees them: bits side by side, in the order of the bytes."""
    stream = numpy.unpackbits(numpy.frombuffer(data, numpy.uint8), bitorder="little" if little else "big")
    rows = stream[: len(stream) // bits * bits].reshape(-1, bits).astype(numpy.int64)
    powers = 1 << numpy.arange(bits) if little else 1 << numpy.arange(bits)[::-1]
    raw = rows @ powers
    half = 1 << (bits - 1)
    return raw - half if offset else numpy.where(raw >= half, raw - 2 * half, raw)


def near(got, wanted):
    return abs(got - wanted) <= 1e-6 * abs(wanted) + 2**-29


def judge(line, data, *case):
    bits, little, offset, threshold, count, _ = case
    got = list(map(int, line.split()))
    x = unpacked(data, bits, little, offset)[:count]
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    rising = int(((x[:-1] < threshold) & (x[1:] >= threshold)).sum())
    clipped = int(((x == low) | (x == high)).sum())
    bins = numpy.bincount((x - low) >> max(0, bits - 8), minlength=256)
    wanted = [len(x), int(x.sum()), int((x * x).sum()), clipped, rising, int(x.min()), int(x.max())]
    assert len(x) == count, (len(x), count)
    if got[:7] != wanted or got[9:] != bins.tolist():
        return f"{case}: got {got[:7]}, numpy says {wanted}, or the bins differ"
    mean, rms = float(x.mean()), float(numpy.sqrt((x.astype(float) ** 2).mean()))
    if not near(got[7] / 2**32, mean) or abs(got[8] / 2**32 - rms) > 1e-6 * rms:
        return f"{case}: mean {got[7] / 2**32} and RMS {got[8] / 2**32}, numpy says {mean} and {rms}"
    return None


def main():
    rng = numpy.random.default_rng(1)
    cases = []
    for bits, little, offset in itertools.product(WIDTHS, (0, 1), (0, 1)):
        for data in (rng.bytes(16 * 60), bytes(16 * 9), b"\xff" * 16 * 9, b"\x80" + bytes(15) + b"\x7f" + bytes(15)):
            whole = len(data) * 8 // bits // 8 * 8
            # One sample other than 0 among many has a small RMS and mean.
            for count, parts in ((whole, 1), (whole - 3, 7), (1, 1)):
                threshold = int(rng.integers(-(1 << (bits - 1)), 1 << (bits - 1)))
                cases.append((data, bits, little, offset, threshold, count, parts))
    told = b"".join(" ".join(map(str, (*case, len(data)))).encode() + b"\n" + data for data, *case in cases)
    lines = subprocess.run(sys.argv[1], input=told, stdout=subprocess.PIPE, check=True).stdout.splitlines()
    assert len(lines) == len(cases), (len(lines), len(cases))
    faults = [fault for line, case in zip(lines, cases) if (fault := judge(line, *case)) is not None]
    for f in faults[:20]:
        print(f)
    print(f"{len(cases)} cases, {len(faults)} faults")
    return 1 if faults else 0


sys.exit(main())
