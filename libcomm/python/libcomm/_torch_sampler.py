# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""How the samples of an epoch are dealt to ranks that come and go."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List

import torch

from .errors import ArgumentError


class Sampler:
    """Deals the samples of an epoch, each of them once at most, whatever becomes of the ranks.

    count    samples of an epoch
    batch    of a rank, in a step, as the training begins
    seed     of the order, which depends on it and on the epoch alone
    shuffle  False: the samples are taken in their own order

    The samples are in one order, and steps take them from its beginning: batch by batch, each rank
    its part. Those of a step that was undone are dealt again, among the ranks that are left. A
    step keeps as many samples as it had at first where they can be spread evenly: in `accumulate`
    batches on each rank. Else each rank has its batch, and `rate` says by how much a step is
    smaller or larger. What is less than a step at the end of an epoch is left out.

    To iterate over it gives this rank's batches from here to the end of the epoch, as lists of
    numbers: it is a batch_sampler of torch.utils.data.DataLoader. libcomm.torch.elastic.Job.run()
    says when a step is done.
    """

    def __init__(self, count: int, batch: int, seed: int = 0, shuffle: bool = True) -> None:
        if count < 1 or batch < 1:
            raise ArgumentError(
                f"Sampler: {count} samples in batches of {batch}: each is 1 or more"
            )
        self.count, self.seed, self.shuffle = count, seed, shuffle
        self.epoch = 0
        self.used = 0  # samples of the epoch, by the steps that are done
        self.batch = self._rank_share = batch
        self.accumulate = 1  # batches of a rank in a step
        self._ended_used = 0  # of the epoch before
        self._at_first = 0  # samples of a step as the training began; 0: it has not
        self._rank, self._size = 0, 1

    @property
    def step_samples(self) -> int:
        """Samples of a step, of all ranks together."""
        return self._size * self.batch * self.accumulate

    @property
    def steps_left(self) -> int:
        """In this epoch."""
        return (self.count - self.used) // self.step_samples

    @property
    def rate(self) -> float:
        """What the learning rate is multiplied by, as it follows the samples of a step."""
        return self.step_samples / (self._at_first or self.step_samples)

    def _order(self) -> List[int]:
        if not self.shuffle:
            return list(range(self.count))
        dice = torch.Generator().manual_seed(1000003 * self.seed + self.epoch)
        order: List[int] = torch.randperm(self.count, generator=dice).tolist()
        return order

    def __iter__(self) -> Iterator[List[int]]:
        order, all_ranks = self._order(), self._size * self.batch
        begin, end = self.used, self.used + self.steps_left * self.step_samples
        for place in range(begin + self._rank * self.batch, end, all_ranks):
            yield order[place : place + self.batch]

    def __len__(self) -> int:
        return self.steps_left * self.accumulate

    # --------------------------------------------------------------- the ranks

    def _deal(self, rank: int, size: int) -> None:
        """From here on among so many ranks."""
        self._rank, self._size = rank, size
        self._at_first = self._at_first or size * self._rank_share
        is_even = self._at_first % size == 0
        share = self._at_first // size if is_even else self._rank_share
        self.accumulate = -(-share // self._rank_share)
        while share % self.accumulate:
            self.accumulate += 1
        self.batch = share // self.accumulate

    def _use(self) -> None:
        """A step is done."""
        self.used += self.step_samples

    def _end_epoch(self) -> None:
        self._ended_used = self.used
        self.epoch, self.used = self.epoch + 1, 0

    def _go_back(self, epoch: int) -> None:
        """To the end of that epoch, which others have yet to come to; no step was done since."""
        if self.epoch > epoch:
            self.epoch, self.used = epoch, self._ended_used

    # -------------------------------------------------------------- checkpoint

    def state_dict(self) -> Dict[str, Any]:
        """Where it is, for newcomers and checkpoints: the same on all ranks."""
        return {
            "epoch": self.epoch,
            "used": self.used,
            "ended_used": self._ended_used,
            "at_first": self._at_first,
        }

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Be where another one was, of as many samples, with the same batch and seed."""
        self.epoch, self.used = state["epoch"], state["used"]
        self._ended_used, self._at_first = state["ended_used"], state["at_first"]
