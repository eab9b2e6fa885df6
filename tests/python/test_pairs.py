# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Messages between two ranks: exact and encoded, begun, in groups, in channels."""

import gc
import weakref

import libcomm
import numpy
import pytest
from worlds import forked, raised, world

LONG = 1 << 16


def next_and_before(comm):
    return (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size


def values_of(rank, count=LONG):
    return numpy.random.default_rng(rank).standard_normal(count, dtype=numpy.float32)


def sent_in_turn(comm):
    """From rank to rank, and around to the first one."""
    to, before = next_and_before(comm)
    if comm.rank == 0:
        mine = values_of(7)
        assert comm.send(mine, to) is None and (mine == values_of(7)).all()
        return comm.recv(numpy.empty(LONG, numpy.float32), before)
    theirs = numpy.empty((2, LONG // 2), numpy.float32)  # shapes do not matter
    assert comm.recv(theirs, before) is theirs
    comm.send(theirs, to)
    return theirs.reshape(-1)


@pytest.mark.parametrize("size", [2, 3])
def test_what_is_sent_is_received(size):
    for theirs in world(size, sent_in_turn):
        assert (theirs == values_of(7)).all()


def in_a_group(comm):
    to, before = next_and_before(comm)
    theirs, mine = numpy.empty(LONG, numpy.float32), values_of(comm.rank)
    there = weakref.ref(mine)
    with comm.group():
        with comm.group():
            comm.send(mine, to)
            del mine
        gc.collect()
        assert there() is not None  # nothing but the group holds it
        comm.recv(theirs, before)
    assert there() is None
    return (theirs == values_of(before)).all()


def begun(comm):
    to, before = next_and_before(comm)
    theirs, mine = numpy.empty(LONG, numpy.float32), values_of(comm.rank)
    there = weakref.ref(mine)
    received, sent = comm.irecv(theirs, before), comm.isend(mine, to)
    del mine
    gc.collect()
    assert there() is not None and received.wait() is theirs
    sent.wait()
    return (theirs == values_of(before)).all()


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("work", [in_a_group, begun])
def test_long_messages_around_a_ring_do_not_wait_for_each_other(size, work):
    assert world(size, work) == [True] * size


def of_all_types(comm):
    to, before = next_and_before(comm)
    kinds = ("float64", "float16", "int32", "uint8", "int16", "bool", "complex64")
    for kind in kinds:
        theirs = numpy.zeros(100, kind)
        with comm.group():
            comm.send((numpy.arange(100) % 2 + comm.rank).astype(kind), to)
            comm.recv(theirs, before)
        assert (theirs == (numpy.arange(100) % 2 + before).astype(kind)).all(), kind
    with comm.group():
        comm.send(numpy.empty(0), comm.rank)
        comm.recv(numpy.empty(0), comm.rank)
    return True


def test_all_types_travel():
    assert world(2, of_all_types) == [True] * 2


def of_torch(comm):
    torch = pytest.importorskip("torch")
    to, before = next_and_before(comm)
    theirs = torch.zeros(LONG, dtype=torch.bfloat16)
    with comm.group():
        comm.send(torch.full((LONG,), comm.rank + 1.0, dtype=torch.bfloat16), to)
        comm.recv(theirs, before)
    return bool((theirs == before + 1).all())


def test_tensors_of_torch_travel():
    pytest.importorskip("torch", reason="no torch (package python3-torch)")
    assert world(2, of_torch) == [True] * 2


def encoded(comm):
    before = comm.rank - 1
    if comm.rank == 0:
        comm.send(values_of(3), 1)
        stats = comm.stats()
        return stats.sent_bytes["net"] / stats.exact_bytes["net"]
    theirs = comm.recv(numpy.empty(LONG, numpy.float32), before)
    return float(numpy.abs(theirs - values_of(3)).max())


def test_messages_between_nodes_are_encoded_by_pipe_in_the_policy():
    share, error = world(2, encoded, policy="pipe=int8", nodes=2)
    assert share < 0.3 and 0 < error < 0.05


def over_a_channel(comm):
    if comm.rank == 1:
        total = numpy.zeros(LONG)
        for _ in range(4):
            total += comm.recv(numpy.empty(LONG, numpy.float32), 0)
        return total
    channel = comm.channel(1, LONG)
    for step in range(3):
        channel.send(values_of(step))
    channel.isend(values_of(3)).wait()
    waits = channel.get(numpy.empty(LONG, numpy.float32))
    channel.close()
    channel.close()
    assert raised(channel.send, values_of(0)) == ("StateError", "the channel was closed")
    return waits


def test_what_a_channel_leaves_out_waits_in_it():
    waits, received = world(2, over_a_channel, policy="pipe=int4+ef", nodes=2)
    sent = sum(values_of(step).astype("float64") for step in range(4))
    assert waits.any() and numpy.abs(sent - received - waits).max() < 1e-4


def test_another_length_is_a_mismatch_on_all_ranks():
    def work(rank):
        comm = libcomm.Communicator.from_env()
        array = numpy.zeros(100 + rank, numpy.float32)
        said = raised(comm.recv, array, 0) if rank == 1 else (None, "")
        if rank == 0:
            said = raised(lambda: (comm.send(array, 1), comm.barrier()))
        return said if rank < 2 else raised(comm.barrier)

    for kind, sentence in forked(3, work):
        assert kind == "MismatchError" and "100" in sentence and "101" in sentence


def refused(comm):
    said = [raised(comm.send, numpy.zeros(4), comm.size)]
    said.append(raised(comm.send, numpy.zeros((4, 4)).T[1:], 0))
    said.append(raised(comm.recv, b"read only", 0))
    channel = comm.channel(0, 4)
    said.append(raised(channel.send, numpy.zeros(5, numpy.float32)))
    said.append(raised(channel.send, numpy.zeros(4)))
    said.append(raised(channel.get, numpy.zeros(4)))
    said.append(raised(comm.channel, 9, 4))
    try:
        with comm.group():
            raise ValueError("of the program")
    except ValueError as trouble:
        said.append(("ArgumentError", str(trouble)))
    assert not comm._groups
    comm.barrier()  # nothing has become of it
    return said


def test_wrong_arguments_are_refused():
    for said in world(2, refused):
        assert [kind for kind, _ in said] == ["ArgumentError"] * 8, said
