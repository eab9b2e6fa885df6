# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Models and process groups for tests of the hook; who imports it is skipped without torch."""

import contextlib

import libcomm
import numpy
import pytest
from worlds import forked

torch = pytest.importorskip("torch", reason="no torch (package python3-torch)")
distributed = pytest.importorskip("torch.distributed", reason="a torch without distributed")

import libcomm.torch  # noqa: E402  it needs torch

STEPS, BATCH, INPUTS = 6, 16, 32
DDP = torch.nn.parallel.DistributedDataParallel
TOP_K = "net=topk:0.05+ef min=0 exempt=*.bias"

# What DDP is told, and what its training does.
WAYS = {
    "plain": ({}, {}),
    "bucket_views": ({"gradient_as_bucket_view": True}, {}),
    "no_sync": ({}, {"accumulate": 3}),
    "unused_parameters": ({"find_unused_parameters": True}, {"spare": lambda step: step % 2 == 0}),
    "static_graph": ({"static_graph": True}, {}),
}


@contextlib.contextmanager
def group(folder, rank, size, backend="gloo", **options):
    torch.set_num_threads(1)
    where = f"file://{folder}/group"
    distributed.init_process_group(
        backend, init_method=where, rank=rank, world_size=size, **options
    )
    yield
    distributed.destroy_process_group()


def over_group(size, folder, work, **options):
    """work(rank) on ranks with a process group, of gloo unless another backend is given."""

    def rank(number):
        with group(folder, number, size, **options):
            return work(number)

    folder.mkdir(exist_ok=True)
    return forked(size, rank)


def over_group_that_breaks(size, folder, work, **options):
    """The same without an end: other ranks may be gone."""

    def rank(number):
        context = group(folder, number, size, **options)
        context.__enter__()
        return work(number)

    return forked(size, rank)


def raised(call, *arguments, **options):
    """(name of the class, text) of whatever a call raises."""
    try:
        call(*arguments, **options)
    except Exception as trouble:
        return type(trouble).__name__, str(trouble)
    return None, "nothing was raised"


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.first = torch.nn.Linear(INPUTS, 256)
        self.spare = torch.nn.Linear(256, 256)
        self.last = torch.nn.Linear(256, 10)

    def forward(self, x, spare=True):
        x = torch.relu(self.first(x))
        return self.last(torch.relu(self.spare(x)) if spare else x)


def trained(model, rank, steps=STEPS, accumulate=1, spare=lambda step: True):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    dice = torch.Generator().manual_seed(rank)
    for step in range(steps):
        optimizer.zero_grad()
        for part in range(accumulate):
            is_last = part == accumulate - 1
            with contextlib.nullcontext() if is_last else model.no_sync():
                x = torch.randn(BATCH, INPUTS, generator=dice)
                y = torch.randint(0, 10, (BATCH,), generator=dice)
                torch.nn.functional.cross_entropy(model(x, spare(step)), y).backward()
        optimizer.step()
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()]).numpy()


def hooked(model, policy, nodes=2, **options):
    state = libcomm.torch.State(policy=policy, model=model, nodes=nodes, **options)
    model.register_comm_hook(state, libcomm.torch.compress)
    return state


class Known(torch.nn.Module):
    """The gradient of each parameter is what forward is given for it, whatever the weights."""

    SIZES = {"wide": 300000, "narrow": 1500, "bias": 70, "deep": 30000}

    def __init__(self):
        super().__init__()
        for name, count in self.SIZES.items():
            self.register_parameter(name, torch.nn.Parameter(torch.zeros(count)))

    def forward(self, given):
        # the order of use is not that of registration, so DDP makes other buckets after a step
        return sum((getattr(self, name) * given[name]).sum() for name in reversed(list(given)))


def given(rank, step):
    dice = numpy.random.default_rng([rank, step])
    sizes = Known.SIZES.items()
    return {n: torch.from_numpy(dice.standard_normal(c, dtype=numpy.float32)) for n, c in sizes}


def steps_of(model, rank, numbers, factor=1.0):
    """Averages that each step gives, summed."""
    total = {name: numpy.zeros(count) for name, count in Known.SIZES.items()}
    for step in numbers:
        model.zero_grad()
        (model(given(rank, step)) * factor).backward()
        for name, parameter in model.module.named_parameters():
            total[name] += parameter.grad.numpy()
    return total
