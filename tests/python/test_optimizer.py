# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""DistributedOptimizer and broadcasts of what a training begins with."""

import copy

import libcomm
import numpy
import pytest
from ddp_models import Known, Net, given, torch  # skipped without torch
from worlds import forked, raised, world

from libcomm.torch import (
    DistributedOptimizer,
    broadcast_optimizer_state,
    broadcast_parameters,
)

SIZES = [1, 2, 3]


def batch(rank, step):
    dice = torch.Generator().manual_seed(100 * rank + step)
    return torch.randn(8, 32, generator=dice), torch.randint(0, 10, (8,), generator=dice)


def loss_of(model, rank, step):
    x, y = batch(rank, step)
    return torch.nn.functional.cross_entropy(model(x), y)


def weights(model):
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()]).numpy()


def alone(size, steps, optimizer_of, clip=None):
    """The same training in one process, on the batches of all ranks."""
    model = Net()
    optimizer = optimizer_of(model.parameters())
    for step in range(steps):
        optimizer.zero_grad()
        for rank in range(size):
            (loss_of(model, rank, step) / size).backward()
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
    return weights(model)


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("clip", [None, 0.1])
def test_ranks_train_as_one_process_on_all_batches(size, clip):
    def work(comm):
        torch.set_num_threads(1)
        model = Net()
        optimizer = DistributedOptimizer(sgd(model.parameters()), comm, model.named_parameters())
        assert isinstance(optimizer, torch.optim.SGD)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 100)
        for step in range(5):
            optimizer.zero_grad()
            loss_of(model, comm.rank, step).backward()
            if clip is not None:
                optimizer.synchronize()
                torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
            schedule.step()
        return weights(model)

    want = alone(size, 5, sgd, clip)
    said = world(size, work)
    for ours in said:
        assert (ours == said[0]).all() and numpy.abs(ours - want).max() < 1e-6


def test_several_backward_passes_and_a_closure_make_one_step():
    def work(comm):
        torch.set_num_threads(1)
        many, once = Net(), Net()
        first = DistributedOptimizer(sgd(many.parameters()), comm, backward_passes_per_step=2)
        second = DistributedOptimizer(
            sgd(once.parameters()), comm.split(0), once.named_parameters()
        )
        for step in range(3):
            first.zero_grad()
            for part in range(2):
                (loss_of(many, comm.rank, 2 * step + part) / 2).backward()
            first.step()

            def closure():
                second.zero_grad()
                parts = [loss_of(once, comm.rank, 2 * step + part) / 2 for part in range(2)]
                sum(parts).backward()
                return sum(parts)

            assert second.step(closure).item() > 0
        return weights(many), weights(once)

    said = world(2, work)
    for many, once in said:
        assert (many == said[0][0]).all() and numpy.abs(many - once).max() < 1e-6


def test_a_parameter_without_a_gradient_on_one_rank_counts_as_zero():
    def work(comm):
        model = Net()
        optimizer = DistributedOptimizer(sgd(model.parameters()), comm)
        for step in range(3):
            optimizer.zero_grad(set_to_none=True)
            model(batch(comm.rank, step)[0], spare=comm.rank == 0).sum().backward()
            optimizer.step()
        return weights(model), float(model.spare.weight.grad.abs().sum())

    (first, gradient), (second, other) = world(2, work)
    assert (first == second).all() and gradient == other > 0


def test_error_feedback_and_patterns_fit_the_names():
    def work(comm):
        model = Known()
        named = list(model.named_parameters())
        optimizer = DistributedOptimizer(torch.optim.SGD(model.parameters(), 1.0), comm, named)
        for step in range(4):
            optimizer.zero_grad(set_to_none=True)
            model(given(comm.rank, step)).backward()
            optimizer.step()
        for name, parameter in named:
            tensor = next(
                each._tensor for each in optimizer._libcomm_gradients if each._tensor.name == name
            )
            kept = tensor.residual(numpy.empty(parameter.numel(), numpy.float32))
            missing = comm.allreduce(kept.astype("float64"))
            total = sum(given(r, s)[name].double() for r in range(comm.size) for s in range(4))
            applied = -comm.size * parameter.detach().double().numpy()
            assert numpy.abs(applied + missing - total.numpy()).max() < 1e-3, name
            assert missing.any() == (name != "bias"), name

    world(2, work, policy="net=topk:0.05+ef min=0 exempt=bias", nodes=2)


def test_misuse_is_a_sentence():
    def work(comm):
        model = Net()
        loose = raised(
            DistributedOptimizer, sgd(model.parameters()), comm, [("one", model.first.weight)]
        )
        optimizer = DistributedOptimizer(sgd(model.parameters()), comm)
        loss_of(model, 0, 0).backward()
        early = raised(optimizer.zero_grad)
        with pytest.raises(Exception, match="backward_passes_per_step"):
            loss_of(model, 0, 0).backward()
        optimizer.step()
        optimizer.zero_grad()
        return loose, early

    for loose, early in world(2, work):
        assert loose[0] == "ArgumentError" and "lacks 5 of" in loose[1]
        assert early[0] == "StateError" and "between backward() and step()" in early[1]


def test_parameters_and_the_state_of_an_optimizer_come_from_the_root():
    def work(comm):
        model = Net()
        image = torch.nn.Conv2d(2, 3, 3).to(memory_format=torch.channels_last)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01 * (1 + comm.rank))
        for step in range(1 + comm.rank):
            loss_of(model, comm.rank, step).backward()
            optimizer.step()
        mine = copy.deepcopy([model.state_dict(), image.state_dict(), optimizer.state_dict()])
        broadcast_parameters(model.state_dict(), comm, root=1)
        broadcast_parameters(image.named_parameters(), comm, root=1)
        broadcast_optimizer_state(optimizer, comm, root=1)
        return mine, [model.state_dict(), image.state_dict(), optimizer.state_dict()]

    def numbers(value):
        if isinstance(value, dict):
            return [number for each in value.values() for number in numbers(each)]
        if isinstance(value, list):
            return [number for each in value for number in numbers(each)]
        return value.reshape(-1).tolist() if isinstance(value, torch.Tensor) else [value]

    said = world(3, work)
    for before, after in said:
        assert numbers(after) == numbers(said[1][0])
    assert numbers(said[0][0]) != numbers(said[1][0])


def test_shapes_that_differ_are_named_on_every_rank():
    def work(rank):
        comm = libcomm.Communicator.from_env()
        model = torch.nn.Linear(4 + rank, 2)
        said = raised(broadcast_parameters, model.state_dict(), comm)
        raised(comm.close)
        return said

    for kind, sentence in forked(2, work):
        assert kind == "MismatchError" and "different" in sentence


def onebit(comm, model):
    adam = libcomm.torch.OneBitAdam(model.parameters(), comm, lr=0.01, weight_decay=0.1)
    return DistributedOptimizer(adam, comm, model.named_parameters())


def test_onebit_adam_is_adamw_until_momentum_arrives():
    def work(comm):
        torch.set_num_threads(1)
        model, told = Net(), []
        optimizer = onebit(comm, model)
        for step in range(8):
            optimizer.zero_grad()
            loss_of(model, comm.rank, step).backward()
            optimizer.step()
            told.append(comm.tensors_momentum)
            variance = [s["exp_avg_sq"].sum().item() for s in optimizer.state.values()]
            if step == 3:
                kept, warm = variance, weights(model)
            if told[-1]:
                assert variance == kept
                for parameter, state in optimizer.state.items():
                    assert (state["exp_avg"] == parameter.grad).all()
                    assert state["step"] == step + 1 and state["variance_step"] == 4
        assert told == [False] * 4 + [True] * 4
        assert numpy.abs(weights(model) - warm).max() <= 4.5 * 0.01
        return warm, weights(model)

    def adamw(parameters):
        return torch.optim.AdamW(parameters, lr=0.01, weight_decay=0.1)

    want = alone(2, 4, adamw)
    said = world(2, work, policy="net=sign min=0 adam=onebit warmup=4", nodes=2)
    for warm, ends in said:
        assert numpy.abs(warm - want).max() < 1e-5 and (ends == said[0][1]).all()


def test_onebit_adam_goes_on_from_its_state():
    def work(comm):
        torch.set_num_threads(1)
        model = Net()
        optimizer = onebit(comm, model)
        for step in range(5):
            if step == 4:
                saved = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
                residuals = comm.state_dict()
            optimizer.zero_grad()
            loss_of(model, comm.rank, step).backward()
            optimizer.step()
        ends = weights(model)
        model.load_state_dict(saved[0])
        optimizer.load_state_dict(saved[1])
        comm.load_state_dict(residuals)
        optimizer.zero_grad()
        loss_of(model, comm.rank, 4).backward()
        optimizer.step()
        return (weights(model) == ends).all()

    assert all(world(2, work, policy="net=sign min=0 adam=onebit warmup=2", nodes=2))


def test_onebit_adam_says_what_it_cannot_use():
    def work(comm):
        model = Net()
        return raised(libcomm.torch.OneBitAdam, model.parameters(), comm)

    for name, text in world(1, work):
        assert name == "ArgumentError" and "needs a policy with adam=" in text
