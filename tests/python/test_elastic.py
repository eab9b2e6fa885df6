# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Communicators that go on without ranks that were lost, and with others that leave and join."""

import os
import signal
import time

import libcomm
import numpy
import pytest
from libcomm import Communicator
from test_memory import held
from worlds import Lost, environment, forked, raised

COUNT = 3000
TOP_K = "net=topk:0.05+ef min=0"


def elastic(rank, policy="", **options):
    os.environ["LCOMM_ELASTIC"] = "on"
    return Communicator.from_env(policy=policy, timeout=30.0, nodes=2, **options)


def gradient_of(rank, step):
    return numpy.random.default_rng([rank, step]).standard_normal(COUNT, dtype=numpy.float32)


def step_of(comm, tensor, step, seat):
    values = gradient_of(seat, step)
    tensor.ready(values)
    comm.wait_tensors()
    return values


def die():
    os.kill(os.getpid(), signal.SIGKILL)


LOST = (libcomm.TransportError, libcomm.PeerTimeoutError)


def goes_on(victim):
    """After two steps a rank dies, and the others make three more without it."""

    def work(rank):
        comm = elastic(rank, TOP_K)
        tensor = comm.add_tensor("weights", numpy.zeros(COUNT, numpy.float32))
        results, found = [], None
        while len(results) < 5:
            if rank == victim and len(results) == 2:
                die()
            try:
                results.append(step_of(comm, tensor, len(results), rank))
            except LOST:
                found = comm.shrink()
                if found.finished:
                    results.append(tensor.memory.copy())
        told = comm.rank, comm.size, found, comm.regrouped.lost
        assert comm.shrunk == found and f"rank {told[0]} of 2" in repr(comm)
        comm.close()
        return told, [values.tobytes() for values in results]

    return work


@pytest.mark.parametrize("victim", [0, 1])
def test_the_others_go_on_without_a_rank_that_was_killed(victim):
    said = forked(3, goes_on(victim))
    assert isinstance(said.pop(victim), Lost)
    for number, ((rank, size, found, lost), results) in enumerate(said):
        assert (rank, size, lost) == (number, 2, 1) and results == said[0][1]
        assert found.ranks_before == 3 and found.lost == 1 and 0 <= found.lost_residual < 1
        assert (found.lost_norm > 0) == (found.lost_residual > 0)
        assert found.lost_residual > 0 or victim == 1  # its node's other rank kept what there is


def test_channels_and_requests_end_with_the_communicator_that_has_lost_a_rank():
    def work(rank):
        comm = elastic(rank, "pipe=int4+ef min=0")
        channel = comm.channel(2, COUNT) if rank == 0 else None
        if rank == 0:
            channel.send(gradient_of(0, 0))
        elif rank == 2:
            comm.recv(numpy.empty(COUNT, numpy.float32), 0)
        comm.barrier()
        if rank == 2:
            die()
        request = comm.iallreduce(numpy.ones(COUNT))
        assert raised(lambda: [comm.barrier() for _ in range(100)])[0]
        waits = channel and channel.get(numpy.empty(COUNT, numpy.float32))
        comm.shrink()
        kinds = [raised(call)[0] for call in (request.wait, request.test, request.wait)]
        assert len(set(kinds)) == 1 and kinds[0] in ("TransportError", "PeerTimeoutError")
        if rank == 0:
            assert (channel.get(numpy.empty(COUNT, numpy.float32)) == waits).all() and waits.any()
            kind, sentence = raised(channel.send, gradient_of(0, 0))
            assert kind == "StateError" and "make another" in sentence
            channel.close()
        total = float(comm.allreduce(numpy.ones(1))[0])
        comm.close()
        return total

    said = forked(3, work)
    assert isinstance(said.pop(), Lost) and said == [2.0, 2.0]


def test_a_rank_leaves_in_order_and_what_it_kept_stays():
    def work(rank):
        comm = elastic(rank, TOP_K)
        tensor = comm.add_tensor("weights", numpy.zeros(COUNT, numpy.float32), op="sum")
        applied = numpy.zeros(COUNT)
        for step in range(3):
            if rank == 0 and step == 1:
                comm.leave()
            applied += step_of(comm, tensor, step, rank)
            changes = comm.changes
            if changes.leaving and not comm.regroup():
                assert comm.closed and raised(comm.barrier)[0] == "StateError"
                comm.close()
                return changes
        kept = tensor.residual(numpy.empty(COUNT, numpy.float32)).astype("float64")
        missing = comm.allreduce(kept)
        told = comm.regrouped
        assert comm.shrunk.lost == 0 and (told.left, told.lost, told.joined) == (1, 0, 0)
        comm.close()
        return changes, comm.size, applied + missing

    left, *others = forked(3, work)
    assert (left.leaving, left.leaves) == (1, True)
    total = sum(gradient_of(r, s).astype("float64") for r in range(3) for s in range(2))
    total += sum(gradient_of(r, 2) for r in (1, 2))
    for _, size, got in others:
        assert size == 2 and numpy.abs(got - total).max() < 1e-3


def call_both(comm, whole, parts, values):
    """A call with each residual; what a lost rank has broken off and undone is made again."""
    made = whole.calls
    while parts.calls == made:
        try:
            if whole.calls == made:
                result = whole.allreduce(values.copy())
            parts.reduce_scatter(values, numpy.empty(parts.counts[comm.rank], numpy.float32))
            comm.barrier()
        except LOST:
            comm.shrink()
    return result


def test_residuals_go_on_with_other_ranks():
    def work(rank):
        comm = elastic(rank, TOP_K)
        whole = comm.residual(COUNT)
        parts = comm.scatter_residual([COUNT - 2, 1, 0, 1])
        applied = numpy.zeros(COUNT)
        for step in range(5):
            if rank == 3 and step == 2:
                die()
            if rank == 0 and step == 3:
                comm.leave()
            applied += call_both(comm, whole, parts, gradient_of(rank, step))
            if comm.changes.leaving and not comm.regroup():
                return None
        assert whole.calls == parts.calls == 5 and parts.counts == [COUNT // 2] * 2
        kept = comm.allreduce(whole.get(numpy.empty(COUNT, numpy.float32)).astype("float64"))
        comm.close()
        return applied + kept

    said = forked(4, work)
    assert isinstance(said.pop(), Lost) and said[0] is None
    assert len(said) == 3 and numpy.abs(said[1] - said[2]).max() < 1e-3


@pytest.mark.parametrize("by_environment", [False, True])
def test_a_newcomer_joins_and_is_told_where_the_others_are(by_environment):
    shared = environment(2, LCOMM_ELASTIC="on")

    def work(member):
        os.environ.update(shared)
        if member == 2:
            os.environ["LCOMM_JOIN"] = "on" if by_environment else "off"
            comm = Communicator.from_env() if by_environment else Communicator.join()
            assert comm.regrouped.is_newcomer and comm.policy.startswith("net=topk:0.05")
        else:
            comm = elastic(member, TOP_K)
        tensor = comm.add_tensor("weights", numpy.zeros(COUNT, numpy.float32))
        step = comm.regrouped.steps
        while comm.size < 3:
            step_of(comm, tensor, step, comm.rank)
            step += 1
            time.sleep(0.01)
            if comm.changes.waiting:
                assert comm.regroup() and comm.regrouped.joined == 1
        results = [step_of(comm, tensor, step + more, comm.rank) for more in range(2)]
        told = comm.rank, comm.regrouped.steps == step
        comm.close()
        return told, [values.tobytes() for values in results]

    said = forked(3, work)
    assert [told for told, _ in said] == [(rank, True) for rank in range(3)]
    assert all(results == said[0][1] for _, results in said)


def test_forty_changes_hold_nothing():
    def work(rank):
        comm = elastic(rank, TOP_K)
        tensor = comm.add_tensor("weights", numpy.zeros(COUNT, numpy.float32))

        def change(times):
            for _ in range(times):
                step_of(comm, tensor, 0, rank)
                assert comm.regroup() and comm.size == 2
                comm.channel(0, COUNT)
            return held()

        before = change(10)
        grown = [after - earlier for after, earlier in zip(change(40), before)]
        comm.close()
        return grown

    for blocks, files, memory in forked(2, work):
        assert blocks < 100 and files == 0 and memory < 4 << 20


def test_what_cannot_go_on_says_so():
    def work(rank):
        with Communicator.from_env() as comm:
            said = [raised(call) for call in (comm.shrink, comm.leave, comm.regroup)]
            assert comm.changes == (0, 0, False) and comm.shrunk.ranks_before == 0
        with elastic(rank) as comm:
            return said, raised(comm.shrink)

    for said, (kind, sentence) in forked(2, work):
        assert {kind for kind, _ in said} == {"UnsupportedError"}
        assert all("LCOMM_ELASTIC=on" in sentence for _, sentence in said)
        assert kind == "StateError" and "no rank was lost" in sentence
