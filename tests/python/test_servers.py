# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""algo=servers from Python: sums, weights that servers make, failures."""

import ctypes
import sys

import libcomm
import numpy
import pytest
from libcomm import _servers
from worlds import forked, raised, world

COUNTS = {"wide": 200_000, "narrow": 500}  # some chunks, of which each server has a part; one whole
STEPS = 6
SERVERS = {3: "servers=0", 4: "servers=1,3"}


def gradient(rank, step, name):
    dice = numpy.random.default_rng([rank, step, len(name)])
    return dice.standard_normal(COUNTS[name], dtype=numpy.float32)


def workers_of(size):
    owners = SERVERS[size].split("=")[1].split(",")
    return [rank for rank in range(size) if str(rank) not in owners]


def add_all(comm):
    return {n: comm.add_tensor(n, numpy.zeros(c, numpy.float32)) for n, c in COUNTS.items()}


def worked(comm, tensors, steps):
    """What the tensors of a worker hold after each step."""
    results = []
    for step in steps:
        for name, tensor in tensors.items():
            tensor.ready(gradient(comm.rank, step, name))
        comm.wait_tensors()
        results.append({name: tensor.memory.copy() for name, tensor in tensors.items()})
    comm.server_end()
    return results


def averaged(comm):
    tensors = add_all(comm)
    for begin in (0, STEPS):  # twice, with a collective call in between
        if comm.is_server:
            comm.server_run()
            results = []
        else:
            results = worked(comm, tensors, range(begin, begin + STEPS))
        assert comm.allreduce(numpy.ones(1))[0] == comm.size
    return comm.is_server, results


@pytest.mark.parametrize("size", SERVERS)
def test_servers_send_averages_back(size):
    workers = workers_of(size)
    said = world(size, averaged, nodes=size, policy=f"net=none algo=servers {SERVERS[size]}")
    assert [rank for rank in range(size) if not said[rank][0]] == workers
    for step in range(STEPS):
        for name in COUNTS:
            parts = [gradient(r, STEPS + step, name).astype("float64") for r in workers]
            want = sum(parts) / len(parts)
            for rank in workers:
                assert numpy.abs(said[rank][1][step][name] - want).max() < 1e-5


class Descent:
    """Weights at a server, by SGD with momentum."""

    def __init__(self):
        self.weights = {name: numpy.zeros(count) for name, count in COUNTS.items()}
        self.momentum = {name: numpy.zeros(count) for name, count in COUNTS.items()}
        self.seen = []

    def __call__(self, piece):
        assert piece.values.dtype == numpy.float32 and piece.values.ndim == 1
        here = slice(piece.first, piece.first + len(piece.values))
        momentum, weights = self.momentum[piece.name][here], self.weights[piece.name][here]
        momentum *= 0.9
        momentum += piece.values
        weights -= 0.1 * momentum
        piece.values[:] = weights
        self.seen.append((piece.name, piece.first, len(piece.values), piece.step, piece.used))


def weighed(comm):
    tensors, descent = add_all(comm), Descent()
    if comm.is_server:
        comm.server_run(descent)
        return descent.seen
    return worked(comm, tensors, range(STEPS))


@pytest.mark.parametrize("size", SERVERS)
def test_servers_make_weights_of_gradients(size):
    workers = workers_of(size)
    said = world(size, weighed, nodes=size, policy=f"net=none algo=servers {SERVERS[size]}")
    for name, count in COUNTS.items():
        weights, momentum = numpy.zeros(count), numpy.zeros(count)
        for step in range(STEPS):
            parts = [gradient(r, step, name).astype("float64") for r in workers]
            momentum = 0.9 * momentum + sum(parts) / len(parts)
            weights = weights - 0.1 * momentum
            for rank in workers:
                assert numpy.abs(said[rank][step][name] - weights).max() < 1e-4
    pieces = [seen for rank in range(size) if rank not in workers for seen in said[rank]]
    for name, count in COUNTS.items():
        for step in range(STEPS):
            mine = sorted(p[1:3] for p in pieces if p[0] == name and p[3] == step)
            ends = [first + length for first, length in mine]
            assert [first for first, _ in mine] == [0] + ends[:-1] and ends[-1] == count
    assert all(used == len(workers) for *_, used in pieces)


def test_without_numpy_a_piece_is_a_memoryview(monkeypatch):
    monkeypatch.setitem(sys.modules, "numpy", None)  # an import fails
    memory = (ctypes.c_float * 3)(1, 2, 3)
    view = _servers._view(ctypes.addressof(memory), 3)
    assert isinstance(view, memoryview) and view.format == "f" and list(view) == [1, 2, 3]
    view[1] = 5.0
    assert memory[1] == 5.0


def fail_at(step):
    def update(piece):
        if piece.step == step:
            raise ValueError("no such weights")

    return update


def test_an_update_that_raises_is_told_to_all_ranks():
    def work(_rank):
        comm = libcomm.Communicator.from_env(policy="net=none algo=servers servers=0")
        tensors = add_all(comm)
        try:
            comm.server_run(fail_at(2)) if comm.is_server else worked(comm, tensors, range(9))
            return None
        except (libcomm.Error, ValueError) as trouble:
            said = type(trouble).__name__, str(trouble)
        raised(comm.close)
        return said

    said = forked(3, work)
    assert said[0] == ("ValueError", "no such weights")
    for kind, sentence in said[1:]:
        assert kind == "AbortedError" and "rank 0" in sentence, sentence
        assert "ValueError: no such weights" in sentence and "update of tensor" in sentence


def test_who_is_no_server_is_refused():
    def work(comm):
        return comm.is_server, raised(comm.server_run), raised(comm.server_end)

    for is_server, run, end in world(2, work):
        assert not is_server and run[0] == end[0] == "StateError"


def test_servers_of_which_some_have_an_update_are_refused_alike():
    def work(_rank):
        comm = libcomm.Communicator.from_env(policy=f"net=none algo=servers {SERVERS[4]}")
        tensors = add_all(comm)
        update = fail_at(99) if comm.rank == 1 else None
        call = (lambda: comm.server_run(update)) if comm.is_server else None
        said = raised(call or (lambda: worked(comm, tensors, range(1))))
        raised(comm.close)
        return said

    for kind, sentence in forked(4, work):
        assert kind == "MismatchError" and "1 of 2 servers have given an update" in sentence
