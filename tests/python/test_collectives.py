# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Collectives on numpy arrays against what numpy computes of the inputs of all ranks."""

import array
import ctypes

import libcomm
import numpy
import pytest
from worlds import world

TYPES = ["float32", "float16", "float64", "int32", "int64", "int8", "uint8"]
COUNT = 12


def inputs(size, dtype, count=COUNT):
    """Of each rank; small, so that sums are exact in every type."""
    return [(numpy.arange(count) % 7 + rank).astype(dtype) for rank in range(size)]


def sums(comm, dtype):
    all_inputs = inputs(comm.size, dtype)
    mine = all_inputs[comm.rank]
    results = {}
    for op in ("sum", "min", "max"):
        given = mine.copy()
        results[op] = comm.allreduce(given, op=op)
        assert results[op] is given
    average, untouched = numpy.empty_like(mine), mine.copy()
    assert comm.allreduce(untouched, op=libcomm.Op.AVG, out=average) is average
    assert (untouched == mine).all()
    total = numpy.sum(all_inputs, axis=0)
    assert (results["sum"] == total).all()
    assert (results["min"] == numpy.min(all_inputs, axis=0)).all()
    assert (results["max"] == numpy.max(all_inputs, axis=0)).all()
    if "float" in dtype:
        assert numpy.allclose(average, total / comm.size, rtol=1e-3)
    else:
        assert (average == total // comm.size).all()


def all_types(comm):
    for dtype in TYPES:
        sums(comm, dtype)


def moves(comm):
    rank, size = comm.rank, comm.size
    for dtype in TYPES + ["bool", "complex64", "int16", "U3"]:
        every = [a.astype(dtype) for a in inputs(size, "int64", 3)]
        gathered = numpy.zeros(3 * size, dtype)
        assert comm.allgather(every[rank], gathered) is gathered
        assert (gathered == numpy.concatenate(every)).all()
        gathered[3 * rank : 3 * rank + 3] = every[rank]
        comm.allgather(gathered[3 * rank : 3 * rank + 3], gathered)
        assert (gathered == numpy.concatenate(every)).all()
        for root in range(size):
            told = every[rank].copy()
            comm.broadcast(told, root=root)
            assert (told == every[root]).all()
        parts = [numpy.repeat(a[:1], 2 * size) for a in every]
        given = parts[rank].copy()
        assert comm.alltoall(given) is given
        assert (given == numpy.concatenate([p[2 * rank : 2 * rank + 2] for p in parts])).all()


def parts(comm):
    rank, size = comm.rank, comm.size
    counts = [0 if r == 1 else r + 2 for r in range(size)]
    before = sum(counts[:rank])
    every = inputs(size, "float32", sum(counts))
    total = numpy.sum(every, axis=0)
    mine = numpy.zeros(counts[rank], numpy.float32)
    comm.reduce_scatter(every[rank].copy(), mine, counts=counts)
    assert (mine == total[before : before + counts[rank]]).all()
    back = numpy.zeros(sum(counts), numpy.float32)
    comm.allgather(mine, back, counts=counts)
    assert (back == total).all()
    even = numpy.arange(4 * size, dtype=numpy.float32) + rank
    view = even[4 * rank : 4 * rank + 4]
    assert comm.reduce_scatter(even, view, op="avg") is view
    assert numpy.allclose(view, numpy.arange(4 * rank, 4 * rank + 4) + (size - 1) / 2)
    # types that are no types of sums move as bytes, in uneven parts, too
    words = numpy.array([f"r{rank}"] * counts[rank], dtype="U2")
    told = numpy.empty(sum(counts), "U2")
    comm.allgather(words, told, counts=counts)
    assert list(told) == [f"r{r}" for r in range(size) for _ in range(counts[r])]


def factors(comm):
    given = numpy.full(5, 3.0, numpy.float32)
    comm.allreduce(given, before=0.5, after=4.0)
    assert (given == 6.0 * comm.size).all()


def shapes_and_kinds(comm):
    size = comm.size
    assert comm.allreduce(numpy.ones((2, 3, 4), numpy.float32)).shape == (2, 3, 4)
    assert comm.allreduce(numpy.array(2.0)) == 2.0 * size
    assert comm.allreduce(numpy.zeros((0, 3), numpy.float32)).shape == (0, 3)
    doubles = array.array("d", [1.0, 2.0])
    assert list(comm.allreduce(doubles)) == [size, 2.0 * size]
    assert list(comm.allreduce(array.array("q", [3]))) == [3 * size]
    numbers = (ctypes.c_float * 2)(1.0, 5.0)
    assert list(comm.allreduce(numbers)) == [size, 5.0 * size]
    said = bytearray(b"rank 0" if comm.rank == 0 else b"others")
    assert bytes(comm.broadcast(said)) == b"rank 0"
    whole = bytearray(2 * size)
    comm.allgather(b"%2d" % comm.rank, whole)
    assert bytes(whole) == b"".join(b"%2d" % r for r in range(size))


@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("work", [all_types, moves, parts, factors, shapes_and_kinds])
def test_collectives_are_right(size, work):
    world(size, work)


def lossy(comm):
    """On two nodes int8 is off by a little, and alike on all ranks; without a policy nothing is."""
    given = numpy.linspace(-1, 1, 1 << 16, dtype=numpy.float32) * (comm.rank + 1)
    exact = given.astype("float64") * sum(range(1, comm.size + 1)) / (comm.rank + 1)
    comm.allreduce(given)
    worst = float(numpy.abs(given - exact).max())
    same = numpy.zeros(comm.size * 8, numpy.uint8)
    comm.allgather(numpy.frombuffer(given.tobytes()[-8:], numpy.uint8), same)
    sent, before = comm.stats().sent_bytes["net"], comm.stats().exact_bytes["net"]
    return worst, len(set(same.reshape(-1, 8)[:, 0])), sent, before


def test_a_policy_compresses_between_nodes_alike_on_all_ranks():
    for worst, different, sent, exact in world(4, lossy, nodes=2, policy="net=int8"):
        assert 1e-5 < worst < 0.2 and different == 1
        assert 0 < sent < exact / 3
    for worst, _, sent, exact in world(4, lossy, nodes=2, policy=""):
        assert worst < 1e-6 and sent == exact


def shared_memory(comm):
    memory = libcomm.memory(1 << 20)
    values = numpy.frombuffer(memory, dtype=numpy.float32)
    assert not values.any() and len(memory) == 1 << 20
    values += 1
    comm.allreduce(values)
    assert (values == comm.size).all()
    comm.barrier()


def test_memory_of_the_library_is_zeroed_and_sums_like_any_other():
    world(2, shared_memory)
