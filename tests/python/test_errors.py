# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Trouble: an exception with libcomm's sentence on every rank, and no hang."""

import os
import signal

import libcomm
import numpy
import pytest
from worlds import Lost, forked, programs, raised, world

SIZES = [2, 4]


def values(count=1000):
    return numpy.ones(count, numpy.float32)


def test_each_status_has_an_exception_of_its_own():
    kinds = {status: type(libcomm.errors.make(status, "x")) for status in libcomm.Status}
    assert len(set(kinds.values())) == len(libcomm.Status) - 1  # none for OK, but InternalError
    for status, kind in kinds.items():
        assert status == libcomm.Status.OK or kind.status == status
        assert issubclass(kind, libcomm.Error) and str(kind("a sentence")) == "a sentence"
    assert issubclass(libcomm.PeerTimeoutError, TimeoutError)
    assert issubclass(libcomm.PolicyError, ValueError)


@pytest.mark.parametrize("size", SIZES)
def test_a_wrong_policy_is_refused_on_every_rank(size):
    def work(_rank):
        return raised(libcomm.Communicator.from_env, policy="net=int9")

    said = forked(size, work)
    assert {kind for kind, _ in said} == {"PolicyError"}
    assert all("column 5: unknown codec 'int9'" in sentence for _, sentence in said)


@pytest.mark.parametrize("size", SIZES)
def test_policies_that_differ_are_named_on_every_rank(size):
    def work(rank):
        return raised(libcomm.Communicator.from_env, policy="net=bf16" if rank == 1 else "net=int8")

    said = forked(size, work)
    assert {kind for kind, _ in said} == {"MismatchError"}
    assert all("bf16" in sentence and "int8" in sentence for _, sentence in said)


def shapes(comm):
    return raised(comm.allreduce, values(20 if comm.rank == 1 else 10))


def roots(comm):
    # a root may be some broadcasts ahead
    return raised(lambda: [comm.broadcast(values(), root=comm.rank) for _ in range(100)])


def calls(comm):
    return raised(comm.barrier) if comm.rank == 0 else raised(comm.allreduce, values())


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("work", [shapes, roots, calls])
def test_calls_that_differ_are_named_on_every_rank(size, work):
    def caught(_rank):
        comm = libcomm.Communicator.from_env()
        first = work(comm)
        assert raised(comm.allreduce, values()) == first  # it stays
        assert raised(comm.close)[0] == first[0]
        return first

    said = forked(size, caught)
    assert {kind for kind, _ in said} == {"MismatchError"}, said
    assert all("rank" in sentence and "different" in sentence for _, sentence in said), said


@pytest.mark.parametrize("size", SIZES)
def test_a_killed_rank_is_named_on_every_other(size):
    def work(rank):
        comm = libcomm.Communicator.from_env()
        comm.allreduce(values())
        if rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        said = raised(lambda: [comm.allreduce(values()) for _ in range(1000)])
        raised(comm.close)
        return said

    said = forked(size, work)
    assert isinstance(said.pop(1), Lost)
    for kind, sentence in said:
        assert kind in ("TransportError", "RemoteError", "PeerTimeoutError"), sentence
        assert "rank 1" in sentence


@pytest.mark.parametrize("size", SIZES)
def test_an_exception_in_one_rank_is_told_to_all(size):
    def work(rank):
        try:
            with libcomm.Communicator.from_env() as comm:
                comm.allreduce(values())
                if rank == 1:
                    raise KeyError("no such layer")
                comm.allreduce(values())
        except (libcomm.Error, KeyError) as trouble:
            return type(trouble).__name__, str(trouble)

    said = forked(size, work)
    assert said.pop(1) == ("KeyError", "'no such layer'")
    for kind, sentence in said:
        assert kind == "AbortedError"
        assert "rank 1 ends with KeyError: 'no such layer'" in sentence


def test_an_abort_fails_the_calls_of_all():
    def work(comm):
        if comm.rank == 0:
            comm.abort("the disk is full")
        return raised(lambda: [comm.allreduce(values()) for _ in range(1000)])

    def rank(_rank):
        try:
            with libcomm.Communicator.from_env() as comm:
                return work(comm)
        except libcomm.Error:
            return None

    assert forked(2, rank) == [None, None]  # the end raises it once more


PROGRAM = """
import libcomm, numpy, sys
comm = libcomm.Communicator.from_env()
again = libcomm.Communicator.from_env(policy="net=int8")
comm.allreduce(numpy.ones(10, numpy.float32))
{line}
again.allreduce(numpy.ones(10, numpy.float32))
"""


def test_communicators_that_are_left_open_end_in_order_with_the_process():
    for status, output in programs(2, ["-c", PROGRAM.format(line="")]):
        assert (status, output) == (0, "")


def test_a_program_that_ends_by_an_exception_ends_the_others():
    line = "if comm.rank == 1: raise ValueError('a broken image')"
    (first, first_said), (second, second_said) = programs(2, ["-c", PROGRAM.format(line=line)])
    assert (first, second) == (1, 1)
    assert "rank 1 ends with ValueError: a broken image" in first_said
    assert "ValueError: a broken image" in second_said


def test_a_forked_child_leaves_the_communicator_alone():
    def work(comm):
        child = os.fork()
        if child == 0:
            said = raised(comm.allreduce, values())
            comm.close()
            os._exit(0 if said[0] == "StateError" else 1)
        assert os.waitpid(child, 0)[1] == 0
        return float(comm.allreduce(values())[0])

    assert world(2, work) == [2.0, 2.0]


def test_ranks_that_do_not_come_are_named():
    def work(rank):
        if rank == 1:
            return None
        return raised(libcomm.Communicator.from_env, timeout=1.0)

    kind, sentence = forked(2, work)[0]
    assert kind == "PeerTimeoutError" and "1" in sentence
