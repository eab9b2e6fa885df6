# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""What calls from Python cost: python_calls.py time|memory, on each rank, by torchrun's variables.

time: microseconds of an all-reduce of 8 bytes. memory: MiB that the process had more at most during
an all-reduce of 1 GiB, and during a copy of a quarter of that. Rank 0 prints a line of JSON.
"""

import json
import statistics
import sys
import time

import libcomm
import numpy

CALLS, ROUNDS = 2000, 15
GIB = 1 << 30


def microseconds(comm):
    values = numpy.ones(2, numpy.float32)
    took = []
    for _ in range(ROUNDS):
        comm.barrier()
        began = time.perf_counter()
        for _ in range(CALLS):
            comm.allreduce(values)
        took.append((time.perf_counter() - began) / CALLS * 1e6)
    return {"call_us": statistics.median(took), "fastest_us": min(took)}


def status(field):
    with open("/proc/self/status", encoding="ascii") as file:
        return int(dict(line.split(":", 1) for line in file)[field].split()[0])


def peak_of(call):
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")  # the peak begins anew
    before = status("VmRSS")
    call()
    return (status("VmHWM") - before) / 1024


def mebibytes(comm):
    values = numpy.ones(GIB // 4, numpy.float32)
    quarter = values[: GIB // 16]
    comm.allreduce(quarter)  # what a plan needs is there
    more = peak_of(lambda: comm.allreduce(values))
    assert values[-1] == comm.size
    return {"more_mib": more, "of_a_copy_mib": peak_of(lambda: comm.allreduce(quarter.copy()))}


with libcomm.Communicator.from_env() as world:
    found = microseconds(world) if sys.argv[1] == "time" else mebibytes(world)
    if world.rank == 0:
        print(json.dumps(found), flush=True)
