# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Calls with error feedback, and what they remember in checkpoints."""

import libcomm
import numpy
import pytest
from worlds import forked, raised, world

COUNT, STEPS = 1 << 15, 6
POLICY = "net=topk:0.05+ef min=0"


def gradient(rank, step):
    return numpy.random.default_rng([rank, step]).standard_normal(COUNT, dtype=numpy.float32)


def total_of(size):
    return sum(gradient(r, s).astype("float64") for r in range(size) for s in range(STEPS))


def kept(comm, residual):
    values = residual.get(numpy.empty(COUNT, numpy.float32))
    return comm.allreduce(values.astype("float64"))


def summed(comm):
    residual = comm.residual(COUNT, name="layer")
    applied = numpy.zeros(COUNT)
    for step in range(STEPS - 1):
        applied += residual.allreduce(gradient(comm.rank, step))
    missing = kept(comm, residual)
    assert numpy.abs(missing).max() > 0.1  # top-k did leave something out
    out = numpy.empty(COUNT, numpy.float32)
    applied += residual.flush(gradient(comm.rank, STEPS - 1), out=out)
    assert not kept(comm, residual).any()
    residual.close()
    assert raised(residual.flush, out)[0] == "StateError"
    return float(numpy.abs(applied - total_of(comm.size)).max())


@pytest.mark.parametrize("size", [2, 4])
def test_what_is_not_sent_comes_later_and_a_flush_leaves_nothing(size):
    assert max(world(size, summed, nodes=2, policy=POLICY)) < 1e-3


def scattered(comm):
    counts = [COUNT // comm.size] * comm.size
    residual = comm.scatter_residual(counts, name="layer")
    mine = slice(comm.rank * counts[0], (comm.rank + 1) * counts[0])
    applied, part = numpy.zeros(counts[0]), numpy.empty(counts[0], numpy.float32)
    for step in range(STEPS - 1):
        applied += residual.reduce_scatter(gradient(comm.rank, step), part)
    last = gradient(comm.rank, STEPS - 1)
    applied += residual.iflush(last, last[mine]).wait()
    return float(numpy.abs(applied - total_of(comm.size)[mine]).max())


def test_reduce_scatters_remember_likewise():
    assert max(world(4, scattered, nodes=2, policy=POLICY)) < 1e-3


def undone(comm):
    residual = comm.residual(COUNT, op="avg", name="layer")
    residual.allreduce(gradient(comm.rank, 0))
    before = kept(comm, residual)
    residual.iallreduce(gradient(comm.rank, 1) * 1e30).wait()
    residual.discard()
    return bool((kept(comm, residual) == before).all())


def test_a_call_is_undone():
    assert all(world(2, undone, nodes=2, policy=POLICY + " undo=on"))


def refused(comm):
    residual = comm.residual(COUNT)
    said = [
        raised(residual.allreduce, numpy.zeros(COUNT)),
        raised(residual.allreduce, numpy.zeros(3, numpy.float32)),
        raised(residual.get, numpy.zeros(3, numpy.float32)),
        raised(residual.discard),
        raised(comm.residual, 5, "max"),
    ]
    return [kind for kind, _ in said]


def test_other_types_and_lengths_are_refused():
    expected = ["ArgumentError"] * 3 + ["StateError", "ArgumentError"]
    assert world(2, refused, nodes=2, policy=POLICY) == [expected] * 2


def trained(comm, residual, steps):
    return [residual.allreduce(gradient(comm.rank, step)).tobytes() for step in steps]


def test_a_run_that_goes_on_from_its_state_has_the_same_bits():
    def work(comm):
        residual = comm.residual(COUNT, name="layer")
        trained(comm, residual, range(3))
        state = comm.state_dict()
        expected = trained(comm, residual, range(3, STEPS))
        assert isinstance(state, bytes)
        comm.load_state_dict(state)
        assert trained(comm, residual, range(3, STEPS)) == expected
        return state

    blocks = world(4, work, nodes=2, policy=POLICY)

    def fewer(comm):
        residual = comm.residual(COUNT, name="layer")
        comm.load_state_dict(blocks)
        return kept(comm, residual)

    def held(comm):
        residual = comm.residual(COUNT, name="layer")
        comm.load_state_dict(blocks[comm.rank])
        return kept(comm, residual)

    before = world(4, held, nodes=2, policy=POLICY)[0]
    after = world(2, fewer, nodes=2, policy=POLICY)[0]
    assert numpy.abs(after - before).max() < 1e-4 and numpy.abs(before).max() > 0.1


def test_a_state_in_files_is_that_of_the_bytes_and_serves_other_ranks(tmp_path):
    folder = tmp_path / "step 3"

    def saved(comm):
        residual = comm.residual(COUNT, name="layer")
        trained(comm, residual, range(3))
        comm.save_state(folder)
        file = folder / f"rank-{comm.rank:05}-of-{comm.size:05}.lcs"
        assert file.read_bytes() == comm.state_dict()
        before = kept(comm, residual)
        expected = trained(comm, residual, range(3, STEPS))
        comm.load_state(str(folder))
        assert trained(comm, residual, range(3, STEPS)) == expected
        return before

    def others(comm):
        residual = comm.residual(COUNT, name="layer")
        comm.load_state(folder)
        missing = raised(comm.load_state, tmp_path / "none")
        refused = raised(comm.save_state, folder)
        return kept(comm, residual), missing, refused

    before = world(4, saved, nodes=2, policy=POLICY)[0]
    for after, missing, refused in world(2, others, nodes=2, policy=POLICY):
        assert numpy.abs(after - before).max() < 1e-4 and numpy.abs(before).max() > 0.1
        assert missing[0] == "SystemCallError" and str(tmp_path / "none") in missing[1]
        assert refused[0] == "ArgumentError" and str(folder) in refused[1]


def test_a_damaged_state_is_refused_on_all_ranks_and_changes_nothing():
    def work(comm):
        residual = comm.residual(COUNT, name="layer")
        trained(comm, residual, range(2))
        state, before = comm.state_dict(), kept(comm, residual)
        said = raised(comm.load_state_dict, state[:-9] + b"\xff" + state[-8:])
        assert (kept(comm, residual) == before).all()
        return said[0]

    assert world(2, work, nodes=2, policy=POLICY) == ["WireError"] * 2


def test_the_same_calls_give_the_same_bits_on_all_ranks():
    def work(comm):
        return trained(comm, comm.residual(COUNT, op=libcomm.Op.AVG), range(STEPS))

    said = world(4, work, nodes=2, policy=POLICY)
    assert said[0] == said[1] == said[2] == said[3]


def test_a_world_of_one_needs_nobody():
    def rank(_rank):
        with libcomm.Communicator.from_env(policy=POLICY) as comm:
            return trained(comm, comm.residual(COUNT), [0])[0] == gradient(0, 0).tobytes()

    assert forked(1, rank) == [True]
