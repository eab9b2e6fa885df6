# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Ranks that are late, and racks: what a communicator counts."""

import os
import time

import libcomm
import numpy
import pytest
from worlds import forked, raised, world

COUNT, AHEAD = 1 << 14, 5


def wait_for(path):
    while not path.exists():
        time.sleep(0.002)


def late_steps(comm, folder, late):
    """All make a step; then one rank makes its steps when the others have made theirs."""
    tensor = comm.add_tensor("layer", numpy.zeros(COUNT, numpy.float32), op="sum")
    given = numpy.empty(COUNT, numpy.float32)

    def step():
        given[:] = 1.0
        tensor.ready(given)
        comm.wait_tensors()

    step()
    if comm.rank == late:
        for rank in range(comm.size - 1):
            wait_for(folder / str(rank))
    step()
    while comm.rank == late and comm.behind < AHEAD - 1:  # until the results are here
        comm.progress()
    for _ in range(AHEAD - 1):
        step()
    (folder / str(comm.rank)).touch()
    comm.barrier()
    return [comm.lateness(rank) for rank in range(comm.size)], comm.lateness()


def test_a_rank_that_is_late_is_told_how_far_and_counted_alike_by_all(tmp_path):
    late = 2
    policy = "net=none quorum=2 late=0"
    said = world(3, lambda comm: late_steps(comm, tmp_path, late), policy=policy)
    for rank, (known, mine) in enumerate(said):
        assert known == said[0][0] and mine == known[rank]
        assert known[rank].sums == AHEAD + 1 and known[rank].pieces == 3 * (AHEAD + 1)
    found = said[0][0][late]
    assert found.late_sums >= AHEAD and found.late_pieces >= 3 * AHEAD


def test_without_a_quorum_nobody_is_late():
    def work(comm):
        comm.allreduce(numpy.ones(COUNT, numpy.float32))
        nobody = raised(comm.lateness, comm.size)
        return comm.behind, comm.lateness(), comm.staleness(), nobody

    for behind, lateness, staleness, nobody in world(2, work):
        assert behind == 0 and set(lateness) == {0} and set(staleness) == {0}
        assert nobody[0] == "ArgumentError"


def stale_steps(comm):
    tensor = comm.add_tensor("layer", numpy.zeros(COUNT, numpy.float32))
    for _ in range(AHEAD):
        tensor.ready(numpy.ones(COUNT, numpy.float32))
        comm.wait_tensors()
        while comm.next_result():
            pass
        assert comm.staleness().under_way <= 2
    while comm.sync_results():
        pass
    return comm.staleness()


def test_how_old_gradients_are_is_told():
    for found in world(2, stale_steps, policy="net=none stale=2 late=0"):
        assert found.steps == AHEAD and found.under_way == 0
        assert found.age <= found.age_most <= 2 and 0 <= found.age_mean <= found.age_most


def rack_of(rank):
    return "ab"[rank // 2]


@pytest.mark.parametrize("named", [True, False])
def test_what_stays_in_a_rack_is_counted(named):
    def work(rank):
        if named:
            os.environ["LCOMM_RACK"] = rack_of(rank)
        with libcomm.Communicator.from_env(nodes=4) as comm:
            comm.allreduce(numpy.ones(1 << 16, numpy.float32))
            found, sent = comm.rack_stats(), comm.stats().sent_bytes["net"]
            comm.reset_stats()
            return found, sent, comm.rack_stats()

    for found, sent, after in forked(4, work):
        assert sent > 0 and found.racks == (2 if named else 0)
        assert (0 < found.sent_bytes < sent and found.sent_messages > 0) == named
        assert after == (found.racks, 0, 0)
