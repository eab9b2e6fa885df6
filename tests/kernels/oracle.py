# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Compares conversions with numpy (float16) and ml_dtypes (bfloat16, float8).

usage: oracle.py PROGRAM, the program being oracle.c. Prints a line for each
table of kernels and format. Encoding: ten million float32, ties and their
neighbours; the same bits are wanted, but any NaN is a NaN. Decoding: all codes.
"""

import subprocess
import sys
import tempfile

import ml_dtypes
import numpy as np

COUNT = 10_000_000
# name: type, unsigned type of its codes, does a block share a scale
FORMATS = {
    "fp16": (np.float16, np.uint16, False),
    "bf16": (ml_dtypes.bfloat16, np.uint16, False),
    "fp16_block": (np.float16, np.uint16, True),
    "e4m3": (ml_dtypes.float8_e4m3fn, np.uint8, True),
    "e5m2": (ml_dtypes.float8_e5m2, np.uint8, True),
}
SCALES = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e8m0fnu).astype(np.float64)
failed = False


def report(name, wrong):
    global failed
    failed = failed or bool(wrong)
    print(f"FAIL {name}: {wrong}" if wrong else f"PASS {name}", flush=True)


def all_values(kind, unsigned):
    """Every code of a format as float32, in the order of the codes."""
    count = 1 << 8 * np.dtype(unsigned).itemsize
    with np.errstate(all="ignore"):
        return np.arange(count, dtype=unsigned).view(kind).astype(np.float32)


def ties(kind, unsigned):
    """What lies in the middle between two codes, and the float32 beside it."""
    values = all_values(kind, unsigned)
    values = np.unique(values[np.isfinite(values)].astype(np.float64))
    middle = ((values[:-1] + values[1:]) / 2).astype(np.float32)
    middle = np.concatenate([middle, values.astype(np.float32)])
    return np.concatenate([middle, np.nextafter(middle, np.float32(np.inf)),
                           np.nextafter(middle, np.float32(-np.inf))])


def samples(name):
    """Any bits, and bits whose exponents are those of the format."""
    kind, unsigned, shares_scale = FORMATS[name]
    random = np.random.default_rng(1)
    bits = random.integers(0, 1 << 32, COUNT, dtype=np.uint32)
    info = ml_dtypes.finfo(kind)
    # up to the largest number, down to an eighth of the smallest
    low = max(0, int(np.floor(np.log2(float(info.smallest_subnormal)))) + 127 - 3)
    high = int(np.log2(float(info.max))) + 127
    near = slice(COUNT // 2, None)
    exponents = random.integers(low, high + 1, COUNT - COUNT // 2, dtype=np.uint32)
    bits[near] = (bits[near] & np.uint32(0x807FFFFF)) | exponents << 23
    values = np.concatenate([bits.view(np.float32), ties(kind, unsigned)])
    if not shares_scale:
        return values
    # with the largest value of the format in a block its scale is 1
    largest = 57344 if name == "fp16_block" else float(info.max)
    return values[np.abs(values) <= largest]


def difference(values, got, expected, unsigned):
    """The first value that differs, as a text; empty when there is none."""
    if got.size != expected.size:
        return f"{got.size} results, not {expected.size}"
    unequal = np.flatnonzero(got.view(unsigned) != expected.view(unsigned))
    nan = np.isnan(got[unequal].astype(np.float32)) & np.isnan(expected[unequal].astype(np.float32))
    unequal = unequal[~nan]
    if unequal.size == 0:
        return ""
    at = unequal[0]
    return f"{unequal.size} differ, the first is {values[at]!r}: {got[at]!r}, not {expected[at]!r}"


def check_encode(program, tables, name):
    kind, unsigned, _ = FORMATS[name]
    values = samples(name)
    with np.errstate(all="ignore"):
        expected = values.astype(kind)
    with tempfile.TemporaryFile() as source:
        values.tofile(source)
        source.flush()
        for table in tables:
            source.seek(0)
            done = subprocess.run([program, "encode", table, name], stdin=source,
                                  stdout=subprocess.PIPE, check=False)
            wrong = difference(values, np.frombuffer(done.stdout, unsigned).view(kind), expected,
                               unsigned)
            if done.returncode != 0 and not wrong:
                wrong = f"exit status {done.returncode}: a scale is not 1"
            report(f"{table}_encodes_{name}_as_the_oracle", wrong)


def check_decode(program, tables, name):
    kind, unsigned, shares_scale = FORMATS[name]
    values = all_values(kind, unsigned)
    with np.errstate(all="ignore"):
        if shares_scale:
            scaled = (SCALES[:, None] * values.astype(np.float64)).astype(np.float32).ravel()
    for table in tables:
        for command in ("decode", "scales") if shares_scale else ("decode",):
            expected = values if command == "decode" else scaled
            done = subprocess.run([program, command, table, name], stdout=subprocess.PIPE,
                                  check=False)
            got = np.frombuffer(done.stdout, np.float32)
            wrong = difference(np.arange(expected.size), got, expected, np.uint32)
            if done.returncode != 0 and not wrong:
                wrong = f"exit status {done.returncode}: one code has several values"
            what = "decodes" if command == "decode" else "scales"
            report(f"{table}_{what}_{name}_as_the_oracle", wrong)


def main():
    program = sys.argv[1]
    tables = subprocess.run([program, "tables"], stdout=subprocess.PIPE, check=True, text=True)
    for name in FORMATS:
        check_encode(program, tables.stdout.split(), name)
        check_decode(program, tables.stdout.split(), name)
    sys.exit(failed)


main()
