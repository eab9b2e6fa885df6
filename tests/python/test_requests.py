# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Operations that run while the program computes."""

import asyncio
import gc
import weakref

import libcomm
import numpy
import pytest
from worlds import forked, raised, world

BIG = 1 << 18


def waited(comm):
    requests = [
        comm.iallreduce(numpy.full(BIG, i + 1.0, numpy.float32), op="avg") for i in range(4)
    ]
    gc.collect()  # nothing but the requests holds the arrays
    for i, request in enumerate(requests):
        result = request.wait()
        assert (result == i + 1.0).all() and request.wait() is result and request.test()
    assert not comm._running


def forgotten(comm):
    """The arrays of a request that nobody has kept stay until it is over."""
    values = numpy.ones(BIG, numpy.float32)
    there = weakref.ref(values)
    comm.iallreduce(values)
    del values
    gc.collect()
    assert there() is not None
    for request in list(comm._running):
        request.wait()
    del request
    gc.collect()
    assert there() is None


def tested(comm):
    request = comm.iallreduce(numpy.ones(BIG, numpy.float32))
    while not request.test():
        comm.progress()
    assert (request.wait() == comm.size).all() and request.not_finite == 0


def awaited(comm):
    async def work():
        values = numpy.ones(BIG, numpy.float32)
        first = comm.iallreduce(values)
        second = comm.ibroadcast(numpy.full(3, comm.rank, numpy.int32), root=comm.size - 1)
        results = await asyncio.gather(first, second)
        assert results[0] is values and (results[1] == comm.size - 1).all()
        return (await comm.ibarrier()) is None

    assert asyncio.run(work())


def all_begun(comm):
    rank, size = comm.rank, comm.size
    gathered, part = numpy.zeros(2 * size, numpy.float32), numpy.zeros(2, numpy.float32)
    mine = numpy.full(2, rank, numpy.float32)
    comm.iallgather(mine, gathered).wait()
    assert (gathered == numpy.repeat(numpy.arange(size), 2)).all()
    comm.ireduce_scatter(gathered, part).wait()
    assert (part == rank * size).all()
    comm.ireduce_scatter(gathered.copy(), part, counts=[2] * size).wait()
    assert (part == rank * size).all()
    comm.iallgather(mine, gathered, counts=[2] * size).wait()
    assert (comm.ialltoall(gathered).wait() == rank).all()
    assert (comm.iallreduce(mine, before=0.5).wait() == size * (size - 1) / 4).all()


@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("work", [waited, forgotten, tested, awaited, all_begun])
def test_requests_end_with_the_result(size, work):
    world(size, work)


def test_closing_with_operations_in_flight_is_an_error_that_says_so():
    def work(_rank):
        comm = libcomm.Communicator.from_env()
        # a rank that comes later may be told at once
        said = raised(comm.iallreduce, numpy.ones(BIG, numpy.float32))
        return said if said[0] else raised(comm.close)

    said = forked(2, work)
    assert {kind for kind, _ in said} == {"AbortedError"}
    assert all("with operations in flight; wait for them" in sentence for _, sentence in said)


def test_a_closed_communicator_says_so():
    comm = libcomm.Communicator.from_env()
    request = comm.iallreduce(numpy.ones(4, numpy.float32))
    assert request.wait().all()
    comm.close()
    comm.close()
    assert comm.closed and "closed" in repr(comm)
    for call in (comm.barrier, comm.stats, comm.state_dict, lambda: comm.nodes):
        assert raised(call) == ("StateError", "the communicator was closed")
    assert request.wait().all()  # its result stays
