# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Elastic training in DistributedDataParallel, and what ranks that are lost change of weights."""

import os
import time

import pytest
from elastic_training import (  # skipped without torch
    TOP_K,
    Training,
    alone_in_ddp,
    at_step,
    be_asked_to_leave,
    die,
    elastic,
    expect_alike,
    expect_each_sample_once,
    net,
    torch,
    until_all_are_there,
)
from libcomm import Communicator
from worlds import Lost, environment, forked


DDP_WAYS = {
    "plain": {"bucket_cap_mb": 0.001},
    "bucket_views": {"gradient_as_bucket_view": True, "bucket_cap_mb": 0.001},
    "unused_parameters": {"find_unused_parameters": True},
    "static_graph": {"static_graph": True},
}


@pytest.mark.parametrize("way", DDP_WAYS)
@pytest.mark.parametrize("moment", ["in_a_step", "after_a_step"])
def test_in_ddp_the_hook_goes_on_without_a_killed_rank(moment, way, tmp_path):
    def work(rank):
        training = Training(rank, tmp_path, ddp=DDP_WAYS[way])
        if rank == 1 and moment == "in_a_step":
            at_step(training, 3, die)
        elif rank == 1:
            after_step = training.after_step
            training.after_step = lambda batches: die() if training.steps() == 4 else after_step(
                batches
            )
        return training.run(policy=TOP_K)

    said = forked(3, work)
    assert isinstance(said.pop(1), Lost)
    for _, changes, _ in expect_alike(said):
        (change,) = changes
        assert (change.ranks, change.steps) == (2, 3 if moment == "in_a_step" else 4)
    expect_each_sample_once(tmp_path)


def test_in_ddp_ranks_leave_and_join(tmp_path):
    shared = environment(2)

    def work(member):
        os.environ.update(shared)
        os.environ["LCOMM_JOIN"] = "on" if member == 2 else "off"
        training = Training(member, tmp_path, ddp={})
        until_all_are_there(training, 3)
        if member == 0:
            wait, left = training.before_step, []

            def leave_then():
                wait()
                if training.job.comm.size == 3 and not left:
                    left.append(be_asked_to_leave())

            training.before_step = leave_then
        elif member == 1:
            until_all_are_there(training, 2)
        return training.run(policy=TOP_K)

    said = forked(3, work)
    assert said.pop(0)[0] == "left" and len(expect_alike(said)) == 2
    expect_each_sample_once(tmp_path)


def test_a_process_group_of_several_ranks_is_refused(tmp_path):
    def work(rank):
        where = f"file://{tmp_path}/group"
        torch.distributed.init_process_group("gloo", init_method=where, rank=rank, world_size=2)
        model, sampler = torch.nn.parallel.DistributedDataParallel(net()), elastic.Sampler(10, 1)
        with pytest.raises(ValueError, match="process group of 2 ranks, and groups cannot change"):
            elastic.State(model, torch.optim.SGD(model.parameters(), 0.1), sampler)
        return True

    assert forked(2, work) == [True, True]


def weights_of(training):
    return torch.cat([p.detach().reshape(-1) for p in training.model.parameters()])


def die_when_all_have_averages(training, number, folder, victim):
    """In that step, when nobody has passed the barrier behind the sums: it counts all the same."""
    tensors, todo = [], [None]
    add, wait = Communicator.add_tensor, Communicator.wait_tensors

    def keeping(comm, *arguments, **options):
        tensors.append(add(comm, *arguments, **options))
        return tensors[-1]

    def have(ranks):
        return all((folder / f"rank {rank} has them").exists() for rank in ranks)

    def waiting(comm):
        if training.steps() == number and todo:
            todo.pop()
            while not all(tensor.test() for tensor in tensors):
                time.sleep(0.001)
            (folder / f"rank {comm.rank} has them").touch()
            while comm.rank == victim and not have(range(comm.size)):
                time.sleep(0.001)
            if comm.rank == victim:
                die()
        wait(comm)

    Communicator.add_tensor, Communicator.wait_tensors = keeping, waiting


def trained_exactly(folder, victim, in_ddp, is_finished):
    """By SGD and without batch norm, so that only rounding depends on ranks. Of two ranks."""

    def work(rank):
        training = Training(rank, folder)
        model = torch.nn.Linear(16, 4)
        torch.nn.init.zeros_(model.weight), torch.nn.init.zeros_(model.bias)
        training.model = alone_in_ddp(model) if in_ddp else model
        optimizer = torch.optim.SGD(training.model.parameters(), lr=0.1)
        training.state = elastic.State(training.model, optimizer, training.sampler)
        training.after_epoch = training.hash = lambda *_: None
        if victim is not None and is_finished:
            die_when_all_have_averages(training, 4, folder, victim)
        elif rank == victim:
            at_step(training, 4, die)
        _, changes, _ = training.run()
        return weights_of(training), training.sampler.accumulate, [c.steps for c in changes]

    folder.mkdir()
    return forked(2, work)


@pytest.mark.parametrize("is_finished", [False, True])
@pytest.mark.parametrize("in_ddp", [False, True])
def test_a_lost_rank_changes_nothing_where_samples_can_be_spread_evenly(
    in_ddp, is_finished, tmp_path
):
    """The step that was broken off is made again, or was finished; those after it are the same."""
    (plain, once, _), _ = trained_exactly(tmp_path / "plain", None, in_ddp, is_finished)
    lost, left = trained_exactly(tmp_path / "lost", 0, in_ddp, is_finished)
    weights, twice, steps = left
    assert isinstance(lost, Lost) and (once, twice, steps) == (1, 2, [5 if is_finished else 4])
    assert float((weights - plain).abs().max()) < 1e-5 < float(plain.abs().max())
    expect_each_sample_once(tmp_path / "lost")
