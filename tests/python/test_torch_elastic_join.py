# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Newcomers to a training that is under way."""

import os
import time

import pytest
from elastic_training import (  # skipped without torch
    TOP_K,
    Training,
    die,
    elastic,
    expect_alike,
    expect_each_sample_once,
    until_all_are_there,
)
from worlds import Lost, environment, forked


def with_a_newcomer(folder, founders, **newcomers):
    """newcomers: of the Training of the last member."""
    shared = environment(founders)

    def work(member):
        os.environ.update(shared)
        is_newcomer = member == founders
        os.environ["LCOMM_JOIN"] = "on" if is_newcomer else "off"
        training = Training(member, folder, **(newcomers if is_newcomer else {}))
        until_all_are_there(training, founders + 1)
        return training.run(policy=TOP_K)

    return work


def test_a_newcomer_has_weights_optimiser_and_place_of_the_others(tmp_path):
    said = expect_alike(forked(3, with_a_newcomer(tmp_path, 2)))
    assert len(said) == 3
    for number, (_, changes, _) in enumerate(said):
        assert [each.joined for each in changes] == ([1] if number < 2 else [])
    expect_each_sample_once(tmp_path)


def test_a_newcomer_that_fails_before_it_trains_goes_alone(tmp_path):
    work = with_a_newcomer(tmp_path, 2)

    def or_end(member):
        if member < 2:
            return work(member)
        Training.run = failing
        with pytest.raises(OSError, match="no data here"):
            work(member)
        die()

    def failing(training, **_):
        with elastic.Job(1, 4):
            raise OSError("no data here")

    said = forked(3, or_end)
    assert isinstance(said.pop(), Lost) and len(expect_alike(said)) == 2


def test_no_more_than_max_are_let_in(tmp_path):
    shared = environment(2)

    def work(member):
        os.environ.update(shared)
        if member == 2:
            os.environ["LCOMM_JOIN"] = "on"
            while not (tmp_path / "is at work").exists():
                time.sleep(0.01)
            with pytest.raises(TimeoutError, match="it was not admitted"):
                elastic.Job(1, 2, timeout=3.0)
            (tmp_path / "has given up").touch()
            return "stayed out"
        training = Training(member, tmp_path)

        def before_step():
            """Many steps see it wait."""
            while not (tmp_path / "has given up").exists():
                time.sleep(0.2)
                if training.steps() < 20:
                    break
            if training.steps() == 2:
                (tmp_path / "is at work").touch()

        training.before_step = before_step
        return training.run(most=2)

    said = forked(3, work)
    assert said.pop() == "stayed out"
    assert [changes for _, changes, _ in expect_alike(said)] == [[], []]


def test_a_newcomer_that_does_not_fit_goes_alone(tmp_path):
    work = with_a_newcomer(tmp_path, 2, width=48)

    def or_end(member):
        if member < 2:
            return work(member)
        with pytest.raises(ValueError, match="rank 2 has another model"):
            work(member)
        die()

    said = forked(3, or_end)
    assert isinstance(said.pop(), Lost) and len(expect_alike(said)) == 2
    expect_each_sample_once(tmp_path)
