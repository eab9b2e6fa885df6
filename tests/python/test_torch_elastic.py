# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Training that goes on when ranks are killed or leave, and ends when it cannot."""

import os
import time

import pytest
from elastic_training import (  # skipped without torch
    SAMPLES,
    TOP_K,
    Training,
    at_step,
    be_asked_to_leave,
    die,
    elastic,
    expect_alike,
    expect_each_sample_once,
    torch,
)
from worlds import Lost, forked


@pytest.mark.parametrize("policy", ["", TOP_K])
@pytest.mark.parametrize("victim", [0, 1])
def test_a_rank_is_killed_in_a_step_and_the_others_train_to_the_end(victim, policy, tmp_path):
    def work(rank):
        training = Training(rank, tmp_path)
        if rank == victim:
            at_step(training, 3, die)
        return training.run(policy=policy)

    said = forked(3, work)
    assert isinstance(said.pop(victim), Lost)
    for _, changes, _ in expect_alike(said):
        (change,) = changes
        assert (change.before, change.ranks, change.lost, change.steps) == (3, 2, 1, 3)
        assert (change.left, change.joined) == (0, 0) and 0 <= change.lost_residual < 1
    expect_each_sample_once(tmp_path)


@pytest.mark.parametrize("victim", [0, 2])
def test_a_step_that_one_rank_has_passed_counts_for_all(victim, tmp_path):
    def work(rank):
        training = Training(rank, tmp_path)
        after_step = training.after_step

        def after(batches):
            after_step(batches)
            if rank == victim and training.steps() == 4:
                die()

        training.after_step = after
        return training.run()

    said = forked(3, work)
    assert isinstance(said.pop(victim), Lost)
    for _, changes, _ in expect_alike(said):
        assert [(each.lost, each.steps) for each in changes] == [(1, 4)]
    expect_each_sample_once(tmp_path)


@pytest.mark.parametrize("leaver", [0, 2])
def test_a_rank_leaves_in_order_by_sigterm(leaver, tmp_path):
    def work(rank):
        training = Training(rank, tmp_path)
        if rank == leaver:
            at_step(training, 3, be_asked_to_leave)
        return training.run(policy=TOP_K)

    said = forked(3, work)
    assert said.pop(leaver)[0] == "left"
    for _, changes, _ in expect_alike(said):
        (change,) = changes
        assert (change.ranks, change.left, change.lost, change.lost_residual) == (2, 1, 0, 0.0)
    assert len(said) == 2
    expect_each_sample_once(tmp_path)


def expect_rank_1_lost_after_an_epoch(said, folder):
    """The others come to the end of the first epoch again, and no sample is used twice."""
    assert isinstance(said.pop(1), Lost)
    for _, changes, _, calls in expect_alike(said):
        assert [each.lost for each in changes] == [1] and calls == [0, 0, 1]
    expect_each_sample_once(folder)


def test_who_is_killed_between_two_epochs_is_lost_there(tmp_path):
    def work(rank):
        training = Training(rank, tmp_path)
        calls = []

        def in_epoch_end():
            calls.append(training.sampler.epoch)
            if rank == 1:
                die()

        training.in_epoch_end = in_epoch_end
        return (*training.run(), calls)

    expect_rank_1_lost_after_an_epoch(forked(3, work), tmp_path)


def test_who_has_begun_the_next_epoch_comes_back_to_those_who_have_not(tmp_path):
    def work(rank):
        training, calls = Training(rank, tmp_path), []

        def after_epoch(epoch):
            """Rank 2 waits in vain for rank 1, and rank 0 for nobody."""
            calls.append(epoch)
            if rank == 1:
                while not (tmp_path / "next epoch").exists():
                    time.sleep(0.001)
                die()
            if rank == 2 and len(calls) == 1:
                training.job.comm.recv(torch.zeros(1), 1)

        def before_step():
            if training.sampler.epoch == 1:
                (tmp_path / "next epoch").touch()

        training.after_epoch, training.before_step = after_epoch, before_step
        return (*training.run(), calls)

    expect_rank_1_lost_after_an_epoch(forked(3, work), tmp_path)


def test_with_too_few_ranks_all_that_are_left_say_so(tmp_path):
    def work(rank):
        training = Training(rank, tmp_path)
        if rank == 1:
            at_step(training, 3, die)
        with pytest.raises(elastic.TooFewRanksError) as told:
            training.run(least=3)
        return str(told.value), training.hash()

    said = forked(3, work)
    assert isinstance(said.pop(1), Lost) and said[0] == said[1]
    assert said[0][0] == "2 of the ranks are left, too few for min=3; stopped after step 3"


def test_when_all_are_asked_to_leave_all_stop_after_one_step(tmp_path):
    def work(rank):
        training = Training(rank, tmp_path)
        at_step(training, 3 if rank else 2, be_asked_to_leave)
        told, run = [], elastic.Job.run

        def stopped(*arguments):
            try:
                run(*arguments)
            except elastic.TooFewRanksError as trouble:
                told.append(str(trouble))
                raise SystemExit(143) from None  # of which nobody else is told: all are here

        elastic.Job.run = stopped
        with pytest.raises(SystemExit):
            training.run(least=2)
        return told[0], training.hash()

    said = forked(2, work)
    assert said[0] == said[1]
    assert said[0][0].startswith("1 of 2 ranks ask to leave, and 1 are too few for min=2; stopped")


def test_batches_may_come_from_a_loader(tmp_path):
    def work(rank):
        training = Training(rank, tmp_path)
        numbers = torch.utils.data.TensorDataset(torch.arange(SAMPLES))
        loader = torch.utils.data.DataLoader(numbers, batch_sampler=training.sampler)
        step = training.step
        training.step = lambda batch: step(batch[0].tolist())
        if rank == 2:
            at_step(training, 5, die)
        return training.run(batches=loader)

    said = forked(3, work)
    assert isinstance(said.pop(), Lost) and len(expect_alike(said)) == 2
    expect_each_sample_once(tmp_path)


def test_an_exception_of_the_program_ends_all_ranks(tmp_path):
    def work(rank):
        training = Training(rank, tmp_path)

        def fail():
            raise OSError("a broken image")

        if rank == 0:
            at_step(training, 2, fail)
        try:
            training.run()
        except Exception as trouble:
            return f"{type(trouble).__name__}: {trouble}"

    said = forked(2, work)
    assert said[0] == "OSError: a broken image" and said[1].startswith("AbortedError: ")
    assert "a broken image" in said[1]


def refusal(*arguments, **options):
    try:
        elastic.Job(*arguments, **options)
    except Exception as trouble:
        return str(trouble)
    return "nothing"


def test_what_cannot_be_is_refused_on_every_rank(tmp_path):
    def work(rank):
        said = [refusal(3, 4), refusal(1, 1), refusal(2, 1)]
        rank, size = os.environ.pop("RANK"), os.environ.pop("WORLD_SIZE")
        os.environ["OMPI_COMM_WORLD_RANK"] = rank
        said.append(refusal(1, 2))
        del os.environ["OMPI_COMM_WORLD_RANK"]
        os.environ.update(RANK=rank, WORLD_SIZE=size)
        training = Training(rank, tmp_path, width=32 + int(rank))
        try:
            training.run()
        except ValueError as trouble:
            said.append(str(trouble))
        return said

    for words in forked(2, work):
        asks = "there are 2 ranks, and elastic.Job asks for"
        begins = [f"{asks} 3 to 4", f"{asks} 1 to 1", "elastic.Job: min=2 and max=1", "elastic.Job"]
        begins.append("rank 1 has another model, optimiser, sampler or state than rank 0")
        assert [word.startswith(begin) for word, begin in zip(words, begins)] == [True] * 5, words
        assert "mpirun" in words[3]


def test_a_state_that_newcomers_could_not_be_sent_is_refused_before_the_first_step(tmp_path):
    def work(rank):
        training = Training(rank, tmp_path)
        training.schedule.own = training  # is part of its state_dict()
        with pytest.raises(ValueError, match=f"the state of rank {rank} cannot be sent to all"):
            training.run()
        return training.steps()

    assert forked(1, work) == [0]


def test_one_rank_alone_trains_too(tmp_path):
    def work(rank):
        training = Training(rank, tmp_path)
        alone = training.run()
        other = Training(rank, tmp_path)
        at_step(other, 3, be_asked_to_leave)
        with pytest.raises(elastic.TooFewRanksError, match="the only rank asks to leave"):
            other.run()
        return alone

    assert forked(1, work)[0][0] == "stayed"
