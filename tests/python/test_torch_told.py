# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""States that a rank sends to all: of every torch alike, and nothing but values."""

import collections
import functools
import pickle

import libcomm
import numpy
import pytest
from ddp_models import torch  # skipped without torch
from worlds import raised, world

from libcomm import _torch_told
from libcomm.torch import broadcast_optimizer_state

OPTIMIZERS = {
    name: functools.partial(getattr(torch.optim, name), **options)
    for name, options in {
        "SGD": {"lr": 0.1, "momentum": 0.9},
        "Adam": {"lr": 0.1, "amsgrad": True},
        "AdamW": {"lr": 0.1},
        "Adagrad": {},
        "RMSprop": {"momentum": 0.1},
        "LBFGS": {},
    }.items()
}
SCHEDULERS = {
    "MultiStepLR": {"milestones": [2, 2, 5]},  # a Counter
    "LambdaLR": {"lr_lambda": lambda step: 0.9**step},
    "OneCycleLR": {"max_lr": 0.1, "total_steps": 9},
    "ReduceLROnPlateau": {},
}


def flattened(value):
    """Type and content of each part, in order."""
    if isinstance(value, torch.Tensor):
        return [str(value.dtype), tuple(value.shape), value.reshape(-1).tolist()]
    if isinstance(value, dict):
        parts = [x for pair in value.items() for x in pair]
    elif isinstance(value, (list, tuple, collections.deque)):
        parts = list(value)
    else:
        return [type(value).__name__, value]
    return [type(value).__name__] + [word for part in parts for word in flattened(part)]


def stepped(optimizer_of, rank):
    model = torch.nn.Linear(3, 2)
    optimizer = optimizer_of(model.parameters())
    x = torch.randn(4, 3, generator=torch.Generator().manual_seed(rank))

    def closure():
        optimizer.zero_grad()
        loss = model(x).square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    return optimizer


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_states_of_optimizers_arrive_as_they_were(name):
    def work(comm):
        optimizer = stepped(OPTIMIZERS[name], comm.rank)
        before = flattened(optimizer.state_dict())
        broadcast_optimizer_state(optimizer, comm, root=1)
        return before, flattened(optimizer.state_dict())

    said = world(3, work)
    assert all(after == said[1][0] for _, after in said), said
    assert said[0][0] != said[1][0]


@pytest.mark.parametrize("name", SCHEDULERS)
def test_states_of_schedulers_arrive_as_they_were(name):
    def work(comm):
        optimizer = stepped(OPTIMIZERS["SGD"], comm.rank)
        scheduler = getattr(torch.optim.lr_scheduler, name)(optimizer, **SCHEDULERS[name])
        state = _torch_told.without_functions(scheduler.state_dict())
        return flattened(state), flattened(_torch_told.told(state, comm, 0))

    said = world(2, work)
    assert said[1][1] == said[0][0]


def test_values_of_all_kinds_arrive():
    def work(comm):
        shared = torch.arange(6).reshape(2, 3).t()  # not contiguous
        value = {
            "rank": comm.rank,
            "numbers": (1, 2.5, True, None, 1j, 10**30, float("inf")),
            "words": ["text", b"bytes", bytearray(b"more"), {"a set"}],
            "tensors": [shared, torch.ones(0), torch.tensor(1.5, dtype=torch.bfloat16)],
            "again": shared,
            "of torch": [torch.float16, torch.Size([1, 2]), torch.device("cpu")],
            "counted": collections.Counter("aab"),
            "ordered": collections.OrderedDict(b=torch.nn.Parameter(torch.ones(2)), a=0),
            "missing": collections.defaultdict(list, {1: [2]}),
        }
        there = _torch_told.told(value, comm, 1)
        assert comm.rank == 1 or there["again"] is there["tensors"][0]
        return flattened(value), flattened(there)

    said = world(3, work)
    assert all(there == said[1][0] for _, there in said), said


def test_numbers_of_numpy_arrive_as_those_of_python():
    def work(comm):
        value = [numpy.float64(0.5), numpy.float32(0.25), numpy.int64(3), numpy.bool_(True)]
        return flattened(_torch_told.told(value, comm, 0))

    assert world(2, work)[1] == flattened([0.5, 0.25, 3, True])


class Own:
    """A value of the program's."""


@pytest.mark.parametrize("what", [Own, lambda: print, lambda: lambda: 0, lambda: Own.__init__])
def test_other_values_are_refused_with_one_sentence_on_every_rank(what):
    def work(comm):
        said = raised(_torch_told.told, {"state": [what()]}, comm, 1)
        return said, int(_torch_told.told(comm.rank, comm, 1))  # the communicator goes on

    said = world(3, work)
    assert said == [said[0]] * 3 and said[0][1] == 1
    kind, sentence = said[0][0]
    assert kind == "ArgumentError" and "the state of rank 1 cannot be sent" in sentence, sentence


class Hostile:
    """What a pickle can make its reader call."""

    def __init__(self, function, *arguments):
        self._does = function, arguments

    def __reduce__(self):
        return self._does


def test_bytes_of_a_peer_call_nothing(tmp_path):
    made = tmp_path / "made"
    hostile = [
        pickle.dumps(Hostile(open, str(made), "w")),
        pickle.dumps([Hostile(eval, f"open({str(made)!r}, 'w')")]),
        pickle.dumps(Hostile(getattr, 1, "real")),
        b"cposix\nsystem\n(S'touch " + str(made).encode() + b"'\ntR.",
        b"ctorch\nload\n.",  # no class of torch's but those of values
        b"(I5\nVfloat32\n(I1\nttQ.",  # a tensor that nobody sent
        b"(I0\nVload\n(I1\nttQ.",
        b"(I0\nVfloat32\n(I-4\nttQ.",
        b"",
        b"\x80\x04",
        b"no pickle",
    ]
    for words in hostile:
        with pytest.raises(libcomm.WireError, match="rank 1 has sent a state"):
            _torch_told._read(words, 1)
    assert not made.exists()
