# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Arrays on emulated devices, whose streams take their time: results have the bits of the host."""

import numpy
import pytest
from emulated import DEFAULT_STREAM, Device  # before libcomm is opened
from libcomm import _cuda
from worlds import raised, world

COUNT = 6000  # of a part
TOP_K = "net=topk:0.05+ef min=0"
POLICIES = ["", "net=int8 min=0", "net=bf16 node=bf16 min=0", "net=topk:0.05 min=0"]


def uneven(comm):
    return [COUNT * (2 if rank == 0 else 1) for rank in range(comm.size)]


# Name: the call, and elements of its input and of its result.
CALLS = {
    "allreduce": (lambda comm, given, out: comm.allreduce(given), "all", 1),
    "average": (lambda comm, given, out: comm.allreduce(given, op="avg", out=out), "all", "all"),
    "reduce_scatter": (lambda comm, given, out: comm.reduce_scatter(given, out), "all", 1),
    "allgather": (lambda comm, given, out: comm.allgather(given, out), 1, "all"),
    "alltoall": (lambda comm, given, out: comm.alltoall(given, out=out), "all", "all"),
    "broadcast": (lambda comm, given, out: comm.broadcast(given, root=comm.size - 1), 1, 1),
    "uneven_parts": (
        lambda comm, given, out: comm.reduce_scatter(given, out, counts=uneven(comm)),
        "uneven",
        "mine",
    ),
    "uneven_gathered": (
        lambda comm, given, out: comm.allgather(given, out, counts=uneven(comm)),
        "mine",
        "uneven",
    ),
    "scaled": (lambda comm, given, out: comm.allreduce(given, before=0.5, after=3.0), 1, 1),
    # those that know no streams
    "begun": (lambda comm, given, out: comm.iallreduce(given, out=out).wait(), 1, 1),
    "part_begun": (lambda comm, given, out: comm.ireduce_scatter(given, out).wait(), "all", 1),
}


def length_of(comm, parts):
    mine = uneven(comm)
    return {1: COUNT, "all": COUNT * comm.size, "uneven": sum(mine), "mine": mine[comm.rank]}[parts]


def values(comm, count, seed):
    dice = numpy.random.default_rng([comm.rank, seed])
    return dice.standard_normal(count, dtype=numpy.float32)


def compare(comm, device, stream, name):
    call, given, out = CALLS[name]
    mine = values(comm, length_of(comm, given), len(name))
    empty = numpy.zeros(length_of(comm, out), numpy.float32)
    wanted = call(comm, mine.copy(), empty.copy())
    got = call(comm, *device.arrays(stream, mine, empty)).values()
    assert got.tobytes() == wanted.tobytes(), (name, comm.policy, got, wanted)


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("policy", POLICIES)
def test_calls_are_in_order_with_the_stream_and_have_the_bits_of_the_host(size, policy):
    def work(comm):
        device = Device()
        for stream in (DEFAULT_STREAM, device.stream()):
            for name in CALLS:
                compare(comm, device, stream, name)
        return comm.stats().operations

    assert min(world(size, work, nodes=2, policy=policy)) > 2 * len(CALLS)


def scaled(comm, given, out, counts):
    """A reduce-scatter with factors; on the host by hand."""
    if isinstance(given, numpy.ndarray):
        return comm.reduce_scatter(given * numpy.float32(0.5), out, counts) * numpy.float32(3.0)
    return comm.reduce_scatter(given, out, counts, before=0.5, after=3.0)


@pytest.mark.parametrize("policy", POLICIES)
def test_reduce_scatters_have_factors_on_devices(policy):
    def work(comm):
        device = Device()
        for counts in (None, uneven(comm)):
            mine = values(comm, sum(counts) if counts else COUNT * comm.size, 5)
            empty = numpy.zeros(counts[comm.rank] if counts else COUNT, numpy.float32)
            wanted = scaled(comm, mine, empty.copy(), counts)
            got = scaled(comm, *device.arrays(device.stream(), mine, empty), counts).values()
            assert got.tobytes() == wanted.tobytes(), (counts, got, wanted)
        refused = raised(comm.reduce_scatter, mine, empty, counts, before=0.5)
        assert refused[0] == "ArgumentError" and "on a device only" in refused[1]

    world(4, work, nodes=2, policy=policy)


def test_calls_that_are_not_begun_wait_for_no_stream(monkeypatch):
    def work(comm):
        device, counts = Device(), uneven(comm)
        stream = device.stream()
        residual, parts = comm.residual(COUNT), comm.scatter_residual(counts)
        whole, mine = values(comm, sum(counts), 1), values(comm, counts[comm.rank], 2)
        given, long, part = device.arrays(stream, values(comm, COUNT, 3), whole, mine)

        def refuse(_stream):
            raise AssertionError("a call has waited for a stream")

        monkeypatch.setattr(_cuda, "synchronize", refuse)
        comm.allreduce(given, before=0.5, after=3.0)
        comm.reduce_scatter(long, part, counts=counts, before=0.5)
        residual.allreduce(given)
        residual.flush(given)
        parts.reduce_scatter(long, part)
        parts.flush(long, part)
        with pytest.raises(AssertionError):
            comm.iallreduce(given)
        device.finish(stream)

    world(2, work, nodes=2, policy=TOP_K)


def test_data_on_devices_meets_data_on_hosts():
    def work(comm):
        mine = values(comm, COUNT, 1)
        wanted = comm.allreduce(mine.copy())
        if comm.rank % 2:
            return comm.allreduce(mine).tobytes() == wanted.tobytes()
        device = Device()
        (given,) = device.arrays(device.stream(), mine)
        found = comm.allreduce(given).values()
        return found.tobytes() == wanted.tobytes()

    assert all(world(4, work, nodes=2, policy="net=int8 min=0"))


def test_residuals_of_arrays_on_a_device_have_the_bits_of_the_host():
    def work(comm):
        device = Device()
        stream = device.stream()
        here, there = comm.residual(COUNT), comm.residual(COUNT)
        for step in range(4):
            mine = values(comm, COUNT, step)
            wanted = here.allreduce(mine.copy())
            (given,) = device.arrays(stream, mine)
            call = there.allreduce if step % 2 else lambda each: there.iallreduce(each).wait()
            assert call(given).values().tobytes() == wanted.tobytes(), step
        kept = [each.get(numpy.empty(COUNT, numpy.float32)) for each in (here, there)]
        assert kept[0].any() and kept[0].tobytes() == kept[1].tobytes()
        mine = values(comm, COUNT, 9)
        (given,) = device.arrays(stream, mine)
        assert there.flush(given).values().tobytes() == here.flush(mine).tobytes()
        assert not there.get(kept[1]).any()

    world(4, work, nodes=2, policy=TOP_K)


def test_residuals_of_uneven_parts_are_in_order_with_the_stream():
    def work(comm):
        device = Device()
        stream, counts = device.stream(), uneven(comm)
        here, there = comm.scatter_residual(counts), comm.scatter_residual(counts)
        empty = numpy.zeros(counts[comm.rank], numpy.float32)
        gradients = [values(comm, sum(counts), step) for step in range(4)]
        wanted, found = [], []
        for mine in gradients:  # which streams read later
            given, out = device.arrays(stream, mine, empty)
            wanted.append(here.reduce_scatter(mine, empty.copy()).tobytes())
            found.append(there.reduce_scatter(given, out))
        assert [each.values().tobytes() for each in found] == wanted
        kept = [each.get(numpy.empty(sum(counts), numpy.float32)) for each in (here, there)]
        assert kept[0].any() and kept[0].tobytes() == kept[1].tobytes()
        given, out = device.arrays(stream, gradients[0], empty)
        wanted = here.flush(gradients[0], empty).tobytes()
        assert there.flush(given, out).values().tobytes() == wanted
        assert not there.get(kept[1]).any()

    world(4, work, nodes=2, policy=TOP_K)


@pytest.mark.parametrize("policy", ["", "net=int8 min=0", TOP_K])
def test_gradients_that_a_stream_makes_are_summed_when_they_are_there(policy):
    def work(comm):
        device = Device()
        stream, other = device.stream(), comm.split(0)
        zeros = numpy.zeros(COUNT, numpy.float32)
        here = [comm.add_tensor(f"layer{i}", zeros.copy()) for i in range(2)]
        memory = device.arrays(stream, zeros, zeros)
        there = [other.add_tensor(f"layer{i}", memory[i]) for i in range(2)]
        for step in range(3):
            mine = [values(comm, COUNT, 10 * step + i) for i in range(2)]
            given = device.arrays(stream, *mine)
            for i in (1, 0):
                here[i].ready(mine[i])
                there[i].ready(given[i])
            comm.wait_tensors()
            other.wait_tensors()
            for wanted, found in zip(mine, given):
                assert found.values().tobytes() == wanted.tobytes(), (step, policy)
        other.close()

    world(4, work, nodes=2, policy=policy)


def test_arrays_in_two_places_are_refused():
    def work(comm):
        (there,) = Device().arrays(DEFAULT_STREAM, values(comm, COUNT, 1))
        return raised(comm.allreduce, there, out=numpy.empty(COUNT, numpy.float32))

    kind, sentence = world(1, work)[0]
    assert kind == "ArgumentError" and "in one place" in sentence
