# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""What calls take of memory: no copy of an array, and no growth."""

import gc
import os
import sys

import numpy
import pytest
from worlds import world

MIB = 1 << 20
LARGE = 256 * MIB


def status(field):
    """Bytes of this process, as the system counts them."""
    with open("/proc/self/status", encoding="ascii") as file:
        lines = dict(line.split(":", 1) for line in file)
    return int(lines[field].split()[0]) * 1024


def peak_of(call):
    """How much more memory than before the process had at most during the call."""
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")  # the peak begins anew
    before = status("VmRSS")
    call()
    return status("VmHWM") - before


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="no clear_refs")
def test_an_allreduce_of_a_large_array_copies_nothing():
    def work(comm):
        values = numpy.ones(LARGE // 4, numpy.float32)
        quarter = values[: LARGE // 16]
        comm.allreduce(quarter)  # what a plan needs is there
        peak = peak_of(lambda: comm.allreduce(values))
        assert values[-1] == comm.size
        return peak, peak_of(lambda: comm.allreduce(quarter.copy()))

    for peak, of_a_copy in world(2, work):
        assert peak < LARGE / 8
        assert of_a_copy > LARGE / 8  # the measure sees a copy of a quarter


def held():
    gc.collect()
    return sys.getallocatedblocks(), len(os.listdir("/proc/self/fd")), status("VmRSS")


def grown(work, few, many):
    """What the process holds more after many rounds than after a few."""
    work(few)
    before = held()
    work(many)
    return [after - earlier for after, earlier in zip(held(), before)]


def test_ten_thousand_iterations_hold_nothing():
    def work(comm):
        values, whole = numpy.ones(64, numpy.float32), numpy.ones(128, numpy.float32)
        residual = comm.residual(64, name="layer")

        def iterate(number):
            for i in range(number):
                comm.allreduce(values, op="avg")
                comm.iallgather(values, whole).wait()
                residual.allreduce(values)
                if i % 100 == 0:
                    comm.stats(), comm.state_dict(), comm.query("allreduce", 64)
                    comm.preview()

        return grown(iterate, 1000, 10000)

    for blocks, files, memory in world(2, work):
        assert blocks < 1000 and files == 0 and memory < 2 * MIB


def test_communicators_that_were_closed_hold_nothing():
    def work(comm):
        def make(number):
            for _ in range(number):
                part = comm.split(0)
                part.residual(10)
                part.allreduce(numpy.ones(10, numpy.float32))
                part.close()

        return grown(make, 10, 40)

    for blocks, files, memory in world(2, work):
        assert blocks < 1000 and files == 0 and memory < 4 * MIB
