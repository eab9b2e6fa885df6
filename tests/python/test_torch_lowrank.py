# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Low rank of the hook, against PyTorch's own hook for PowerSGD on the same gradients."""

import contextlib
import math

import numpy
import pytest
from ddp_models import DDP, hooked, over_group_that_breaks, torch  # skipped without torch

powersgd = pytest.importorskip("torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook")

STEPS, WARMUP = 50, 2
# A matrix, kernels of a convolution, and what stays exact: a bias and a matrix that is too small.
SHAPES = {"dense": (60, 40), "conv": (48, 8, 3, 3), "bias": (7,), "small": (4, 3)}
MATRICES = ("dense", "conv")


class Shaped(torch.nn.Module):
    """The gradient of each parameter is what forward is given for it."""

    def __init__(self):
        super().__init__()
        for name, shape in SHAPES.items():
            self.register_parameter(name, torch.nn.Parameter(torch.zeros(shape)))

    def forward(self, given):
        return sum((getattr(self, name) * given[name]).sum() for name in SHAPES)


def mixed(x):
    """The numbers by counter of kernels/element.h, of seed 0 and indices below 2^32."""
    mask, key = (1 << 64) - 1, 0x9E3779B97F4A7C15
    key = (key ^ (key >> 30)) * 0xBF58476D1CE4E5B9 & mask
    key = (key ^ (key >> 27)) * 0x94D049BB133111EB & mask
    key ^= key >> 31
    before, between = numpy.uint32(key & 0xFFFFFFFF), numpy.uint32(key >> 32)
    x = x.astype(numpy.uint32) ^ before
    x = (x ^ (x >> 16)) * numpy.uint32(0x7FEB352D)
    x = ((x ^ (x >> 15)) + between) * numpy.uint32(0x846CA68B)
    return (x ^ (x >> 16)).view(numpy.int32).astype(numpy.float32) * numpy.float32(2.0**-31)


def start_of(_batch, columns, rank, **_options):
    """The first Q of libcomm in the place of PyTorch's numbers; both are orthogonalised."""
    start = mixed(numpy.arange(rank * columns)).reshape(rank, columns)
    return torch.from_numpy(start.T.copy()).unsqueeze(0)


def gradients_of(rank, step, strong):
    """`strong` terms that change from step to step, another mixture on each rank, and noise."""
    given = {}
    for name, shape in SHAPES.items():
        terms, dice = numpy.random.default_rng(5), numpy.random.default_rng([rank, step])
        rows = shape[0]
        columns = math.prod(shape[1:])
        total = 0.1 * dice.standard_normal((rows, columns))
        for k in range(strong):
            term = numpy.outer(terms.standard_normal(rows), terms.standard_normal(columns))
            total += (1.5 + math.sin(0.3 * step + k + rank)) * term
        given[name] = torch.from_numpy(total.astype(numpy.float32).reshape(shape))
    return given


def averages(model, rank, strong):
    """The gradients that the parameters have after each step."""
    for step in range(STEPS):
        model.zero_grad()
        model(gradients_of(rank, step, strong)).backward()
        yield {n: p.grad.numpy().copy() for n, p in model.module.named_parameters()}


def theirs(rank, strong):
    state = powersgd.PowerSGDState(None, strong, start_powerSGD_iter=WARMUP)
    model = DDP(Shaped())
    model.register_comm_hook(state, powersgd.powerSGD_hook)
    powersgd.torch.randn, kept = start_of, torch.randn
    try:
        return list(averages(model, rank, strong))
    finally:
        powersgd.torch.randn = kept


def ours(rank, size, strong):
    model = DDP(Shaped())
    policy = f"net=lowrank:{strong} min=0 warmup={WARMUP}"
    with contextlib.closing(hooked(model, policy, nodes=size)) as state:
        codecs = {t.name: t.codec() for t in state._tensors.values()}
        assert all((codecs[n] != "none") == (n in MATRICES) for n in SHAPES), codecs
        return list(averages(model, rank, strong))


@pytest.mark.parametrize("size, strong", [(2, 1), (4, 2), (2, 4)])
def test_results_are_those_of_pytorchs_hook_but_for_rounding(size, strong, tmp_path):
    # gloo's own threads may hold the group last, and cannot end it: it stays to the end
    said = over_group_that_breaks(
        size, tmp_path, lambda r: (ours(r, size, strong), theirs(r, strong))
    )
    for mine, reference in said:
        for step in range(STEPS):
            for name in SHAPES:
                near, most = reference[step][name], numpy.abs(reference[step][name]).max()
                assert (mine[step][name] == said[0][0][step][name]).all()
                assert numpy.abs(mine[step][name] - near).max() < 2e-5 * most, (step, name)
