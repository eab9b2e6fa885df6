# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""FSDP over the backend "lcomm": gradients by the policy, parameters exactly."""

import importlib

import numpy
import pytest
from ddp_models import (  # skipped without torch
    BATCH,
    DDP,
    INPUTS,
    STEPS,
    Net,
    distributed,
    over_group,
    torch,
    trained,
)

from libcomm.torch import Options, communicator

WRAPPED = "FullyShardedDataParallel"
VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])
# Before, FSDP asks for CUDA: that of 1.13, which Python 3.11 cannot import, and that of 2.1, too.
BEGINS = (2, 6)


def found(name):
    """What torch.distributed.fsdp has by that name; a skip where it is of no use here."""
    if VERSION < BEGINS:
        pytest.skip(f"torch {torch.__version__} has no {name} for processors (2.6 has)")
    return getattr(importlib.import_module("torch.distributed.fsdp"), name)


@pytest.fixture(params=["fully_shard", WRAPPED])
def sharded(request):
    """Makes a model whose parameters lie in parts on all ranks."""
    shard, options = found(request.param), {}
    if request.param == WRAPPED:
        options = {"device_id": torch.device("cpu"), "use_orig_params": True}

    def make():
        model = Net()
        for part in ("first", "spare", "last"):
            setattr(model, part, shard(getattr(model, part), **options))
        return shard(model, **options)

    return make


def gathered(model):
    """All parameters in one vector; collective."""
    if hasattr(model, "summon_full_params"):
        with model.summon_full_params(model, writeback=False):
            whole = [p.detach().reshape(-1).clone() for p in model.parameters()]
    else:
        whole = [p.full_tensor().detach().reshape(-1) for p in model.parameters()]
    return torch.cat(whole).numpy()


def weights_after(model, rank):
    """As ddp_models.trained, of parameters that are gathered at the end."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    dice = torch.Generator().manual_seed(rank)
    for _ in range(STEPS):
        optimizer.zero_grad()
        x = torch.randn(BATCH, INPUTS, generator=dice)
        y = torch.randint(0, 10, (BATCH,), generator=dice)
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    return gathered(model)


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("policy", ["", "net=int8 min=0", "net=bf16 min=0"])
def test_shards_train_as_ddp_does_and_gradients_go_by_the_policy(size, policy, sharded, tmp_path):
    def work(rank):
        gloo = distributed.new_group(backend="gloo")
        ours = weights_after(sharded(), rank)
        stats = communicator().stats()
        theirs = trained(DDP(Net(), process_group=gloo), rank)
        return ours, theirs, (stats.sent_bytes["net"], stats.exact_bytes["net"])

    options = Options(policy=policy, nodes=2)
    said = over_group(size, tmp_path, work, backend="lcomm", pg_options=options)
    for ours, theirs, _ in said:
        error = numpy.abs(ours - theirs).max()
        assert (ours == said[0][0]).all()
        assert error < 1e-6 if not policy else 0 < error < 1e-2, error
    sent, exact = (sum(each[2][i] for each in said) for i in range(2))
    assert sent >= exact if not policy else sent < 0.9 * exact, (sent, exact)


def test_the_shards_that_are_gathered_are_those_that_ranks_have(tmp_path):
    shard = found("fully_shard")

    def work(rank):
        model = shard(Net())
        with torch.no_grad():
            for number, parameter in enumerate(model.parameters()):
                mine = parameter.to_local()
                dice = torch.Generator().manual_seed(100 * number + rank)
                mine.copy_(torch.randn(mine.shape, generator=dice))
        return [
            (p.to_local().detach().clone().numpy(), p.full_tensor().detach().numpy())
            for p in model.parameters()
        ]

    options = Options(policy="net=int4 min=0", nodes=2)
    said = over_group(2, tmp_path, work, backend="lcomm", pg_options=options)
    for number in range(len(said[0])):
        whole = numpy.concatenate([each[number][0] for each in said])
        assert all((each[number][1] == whole).all() for each in said)
