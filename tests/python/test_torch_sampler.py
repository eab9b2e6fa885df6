# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""How samples are dealt to ranks that come and go."""

from elastic_training import elastic  # skipped without torch


def dealt(sampler, size):
    """What all ranks get until the end of the epoch, in the order of steps."""
    each = []
    for rank in range(size):
        sampler._deal(rank, size)
        each.append(list(sampler))
        assert len(each[-1]) == len(sampler) == sampler.steps_left * sampler.accumulate
    return [n for batches in zip(*each) for batch in batches for n in batch]


def test_all_ranks_together_take_the_samples_in_one_order():
    order = dealt(elastic.Sampler(100, 5, seed=3), 4)
    assert sorted(order) == list(range(100)) and order != sorted(order)
    assert dealt(elastic.Sampler(100, 10, seed=3), 2) == order  # whoever they are
    assert dealt(elastic.Sampler(100, 5, seed=4), 4) != order
    assert dealt(elastic.Sampler(103, 5, shuffle=False), 4) == list(range(100))


def test_what_is_left_is_dealt_to_those_who_are_left():
    sampler = elastic.Sampler(100, 4, seed=3)
    order = dealt(sampler, 5)
    sampler._use()
    assert dealt(sampler, 5) == order[20:]
    for size, samples, accumulate, rate in [(2, 20, 3, 1.0), (3, 12, 1, 0.6), (10, 20, 1, 1.0)]:
        left = dealt(sampler, size)
        assert left == order[20 : 20 + len(left)] and len(left) > 80 - samples
        told = sampler.step_samples, sampler.accumulate, sampler.rate
        assert told[0] == samples and told[2] == rate, (size, told)
        assert accumulate == told[1] or size == 2


def test_another_sampler_goes_on_where_one_was():
    sampler, other = elastic.Sampler(100, 5), elastic.Sampler(100, 5)
    dealt(sampler, 2)
    sampler._use()
    sampler._end_epoch()
    sampler._use()
    other.load_state_dict(sampler.state_dict())
    assert dealt(other, 4) == dealt(sampler, 4) and other.epoch == 1 and other.used == 10
    for each in (sampler, other):
        each._end_epoch()
        each._go_back(1)
        assert (each.epoch, each.used) == (1, 10)
        each._go_back(1)
        assert each.epoch == 1
