# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Named gradients, step by step."""

import libcomm
import numpy
import pytest
from worlds import forked, raised, world

COUNTS = {"dense.weight": 1 << 15, "dense.bias": 64, "norm.weight": 300}
POLICY = "net=topk:0.05+ef min=0 exempt=*.bias undo=on"


def gradients(rank, step):
    dice = numpy.random.default_rng([rank, step])
    return {n: dice.standard_normal(c, dtype=numpy.float32) for n, c in COUNTS.items()}


def added(comm):
    return {n: comm.add_tensor(n, numpy.zeros(c, numpy.float32)) for n, c in COUNTS.items()}


def stepped(comm, tensors, step):
    """The results of a step, each in memory of its own."""
    mine = gradients(comm.rank, step)
    for name in reversed(list(tensors)):
        tensors[name].ready(mine[name])
    comm.wait_tensors()
    return mine


def sums(comm):
    tensors = added(comm)
    assert tensors["dense.weight"].codec().startswith("topk:0.05")
    assert tensors["dense.bias"].codec() == "none" == tensors["dense.weight"].codec("shm")
    applied = {name: numpy.zeros(count) for name, count in COUNTS.items()}
    for step in range(4):
        for name, result in stepped(comm, tensors, step).items():
            applied[name] += result
    for name, count in COUNTS.items():
        kept = tensors[name].residual(numpy.empty(count, numpy.float32)).astype("float64")
        total = sum(gradients(r, s)[name] for r in range(comm.size) for s in range(4))
        missing = comm.allreduce(kept)
        assert numpy.abs(comm.size * applied[name] + missing - total).max() < 1e-3, name
        assert missing.any() == (name != "dense.bias")


@pytest.mark.parametrize("size", [1, 2, 4])
def test_what_steps_leave_out_is_in_the_residuals(size):
    if size > 1:
        world(size, sums, nodes=2, policy=POLICY)
    else:
        world(1, lambda comm: stepped(comm, added(comm), 0), policy=POLICY)


def undone(comm):
    tensors = added(comm)
    stepped(comm, tensors, 0)
    state = comm.state_dict()
    huge = gradients(comm.rank, 1)
    for name, tensor in tensors.items():
        tensor.ready(huge[name] * numpy.float32(1e30))
    comm.wait_tensors()
    comm.discard_step()
    assert comm.state_dict()[64:] == state[64:] and comm.tensors_not_finite == 0
    first = stepped(comm, tensors, 2)
    comm.load_state_dict(state)
    second = stepped(comm, tensors, 2)
    assert all((first[name] == second[name]).all() for name in COUNTS)


def test_a_step_is_undone_and_a_state_restored():
    world(2, undone, nodes=2, policy=POLICY)


def frozen(comm):
    tensors = added(comm)
    norm = tensors.pop("norm.weight")
    norm.freeze()
    tensors["dense.weight"].scale(0.5, 4.0)
    given = numpy.ones(COUNTS["dense.weight"], numpy.float32)
    tensors["dense.weight"].ready(given)
    kind, sentence = raised(comm.wait_tensors)
    assert kind == "StateError" and "dense.bias" in sentence
    tensors["dense.bias"].ready()
    tensors["dense.bias"].wait()
    while not tensors["dense.weight"].test():
        comm.progress()
    assert (given == 2.0).all()
    comm.wait_tensors()
    norm.unfreeze()
    assert raised(tensors["dense.bias"].ready, numpy.zeros(3, numpy.float32))[0] == "ArgumentError"
    assert raised(tensors["dense.bias"].residual, numpy.zeros(64))[0] == "ArgumentError"
    assert raised(comm.add_tensor, "dense.bias", given)[0] == "ArgumentError"


def matrices(comm):
    shape = (64, 48)
    tensor = comm.add_tensor("dense.weight", numpy.zeros(shape, numpy.float32), shape=shape)
    assert tensor.codec() == "lowrank:1"
    given = numpy.outer(numpy.arange(64.0), numpy.arange(48.0)).astype(numpy.float32)
    tensor.ready(given * (comm.rank + 1))
    comm.wait_tensors()
    refused = raised(comm.add_tensor, "other", numpy.zeros(16, numpy.float32), shape=(3, 5))
    assert refused[0] == "ArgumentError" and "3 rows of 5 columns" in refused[1]


def test_a_matrix_goes_by_low_rank():
    world(2, matrices, nodes=2, policy="net=lowrank:1 min=0")


def test_tensors_are_frozen_scaled_and_waited_for_alone():
    world(2, frozen)


def test_ranks_with_different_tensors_are_told_which():
    def work(_rank):
        with libcomm.Communicator.from_env() as comm:
            tensor = comm.add_tensor(f"layer{comm.rank}", numpy.zeros(4, numpy.float32))
            tensor.ready()
            said = raised(comm.wait_tensors)
            raised(comm.close)
            return said

    for kind, sentence in forked(2, work):
        assert kind == "MismatchError" and "layer" in sentence


def late_results(comm):
    tensor = comm.add_tensor("t", numpy.zeros(1000, numpy.float32))
    steps = 0
    for step in range(6):
        tensor.ready(numpy.full(1000, step + comm.rank, numpy.float32))
        comm.wait_tensors()
        if step == 0:
            assert raised(tensor.ready)[0] == "StateError"
        while comm.next_result():
            steps += 1
    while comm.sync_results():
        steps += 1
    assert steps == 6


def test_results_come_after_their_steps_and_all_of_them():
    world(2, late_results, policy="net=none stale=2 late=0")
