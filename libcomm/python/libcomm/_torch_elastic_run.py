# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""One training on ranks that come and go: what Job.run() does.

All replicas are alike after each step. Where ranks were lost, those that are left shrink the
communicator, finish the step that was broken off or have it undone, and meet: they agree where the
training stands, tell those who do not know, and deal what is left of the epoch's samples anew.
"""

from __future__ import annotations

import dataclasses
import math
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Iterable,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
)

import torch

from ._torch_gradients import AnyGradients, gradients_of
from .errors import AbortedError, ArgumentError, Error, StateError

if TYPE_CHECKING:
    from ._torch_elastic import Job, State

_END = object()


class TooFewRanksError(Error):
    """Fewer ranks are left than the job's min. All that are left raise it, after one step."""

    status = StateError.status


@dataclasses.dataclass
class Change:
    """Ranks were lost, left or joined, and the training goes on."""

    before: int  # ranks
    ranks: int = 0  # that are there now
    lost: int = 0
    left: int = 0  # in order
    joined: int = 0
    lost_residual: float = 0.0  # share of what error feedback remembered that is gone
    lost_norm: float = 0.0  # and its norm, as Shrunk has it
    steps: int = 0  # that are finished


@dataclasses.dataclass(frozen=True)
class Calls:
    """What the program gives: see Job.run()."""

    step: Callable[[Any], Any]
    after_step: Optional[Callable[[List[Any]], Any]]
    after_epoch: Optional[Callable[[int], Any]]
    after_change: Optional[Callable[[Change], Any]]


class _Said(NamedTuple):
    """By a rank, when ranks meet."""

    knows: int  # where the training stands
    epoch: int
    hash: int  # of what all have in common
    is_newcomer: int


class Run:
    """A training from where its state is to the end of its last epoch."""

    def __init__(
        self, job: "Job", state: "State", batches: Iterable[Any], epochs: int, calls: Calls
    ) -> None:
        self._job, self._comm, self._state, self._calls = job, job.comm, state, calls
        self._sampler, self._batches, self._epochs = state.sampler, batches, epochs
        self._gradients: Optional[AnyGradients] = None  # once the ranks have met
        self._iterator: Optional[Iterator[Any]] = None
        self._results: List[Any] = []
        self._change: Optional[Change] = None  # that the ranks have not met after
        self._has_met = self._is_over = False

    def __call__(self) -> bool:
        """Returns whether this rank is there at the end."""
        try:
            while not self._is_over:
                try:
                    self._go_on()
                except (Error, RuntimeError):
                    self._recover()
        finally:
            if self._gradients is not None:
                self._gradients.close()
        return not self._comm.closed

    def _go_on(self) -> None:
        if not self._has_met:
            self._meet()
        while self._sampler.epoch < self._epochs:
            while self._sampler.steps_left:
                self._step()
                if self._has_other_ranks():
                    return
            self._iterator = None
            if self._calls.after_epoch is not None:
                self._calls.after_epoch(self._sampler.epoch)
            self._sampler._end_epoch()
        self._comm.barrier()  # who is behind it knows that nobody needs it any more
        self._is_over = True

    # ------------------------------------------------------------------ a step

    def _expect_enough(self) -> None:
        size, least = self._comm.size, self._job.min
        if size < least:
            raise TooFewRanksError(
                f"{size} of the ranks {'is' if size == 1 else 'are'} left, too few for "
                f"min={least}; stopped after step {self._state.steps}"
            )

    def _next_batches(self) -> List[Any]:
        if self._iterator is None:
            self._iterator = iter(self._batches)
        taken = [next(self._iterator, _END) for _ in range(self._sampler.accumulate)]
        if any(each is _END for each in taken):
            raise ArgumentError(
                f"batches ended {self._sampler.steps_left} steps before the epoch of the sampler: "
                "they are the sampler itself, or a DataLoader with batch_sampler=sampler"
            )
        return taken

    def _step(self) -> None:
        self._expect_enough()
        self._job._ask()
        gradients, batches = self._gradients, self._next_batches()
        assert gradients is not None
        self._state.optimizer.zero_grad()
        gradients.begin(len(batches))
        self._results = []
        for number, batch in enumerate(batches):
            with gradients.passing(is_last=number == len(batches) - 1):
                self._results.append(self._calls.step(batch))
        gradients.wait()
        self._finish_step()

    def _finish_step(self) -> None:
        self._state._update()
        self._sampler._use()
        self._state.steps += 1
        if self._calls.after_step is not None:
            self._calls.after_step(self._results)

    # ------------------------------------------------------------- other ranks

    def _begin_change(self) -> Change:
        self._has_met, self._iterator = False, None
        if self._change is None:
            self._change = Change(self._comm.size)
        return self._change

    def _take_change(self, change: Change) -> None:
        found = self._comm.regrouped
        change.left += found.left
        change.joined += found.joined

    def _recover(self) -> None:
        """Called in the handling of an exception, which stays one where no rank was lost."""
        if self._comm.closed or not self._comm.has_lost_ranks:
            raise
        change = self._begin_change()
        found = self._comm.shrink()
        self._take_change(change)
        change.lost_norm = math.hypot(change.lost_norm, found.lost_norm)
        change.lost_residual += (1.0 - change.lost_residual) * found.lost_residual
        if self._gradients is not None:
            self._gradients.end_lost_step(found.finished)
        if found.finished:
            self._finish_step()

    def _has_other_ranks(self) -> bool:
        """After a step: with those that leave or join. All ranks see the same."""
        asked, job = self._comm.changes, self._job
        stay = self._comm.size - asked.leaving
        if asked.leaving and stay < job.min:
            who = f"{asked.leaving} of {self._comm.size} ranks ask"
            why = f", and {stay} are too few for min={job.min}"
            if self._comm.size == 1:
                who, why = "the only rank asks", ""
            raise TooFewRanksError(f"{who} to leave{why}; stopped after step {self._state.steps}")
        if not asked.leaving and not (asked.waiting and stay + asked.waiting <= job.max):
            return False
        change = self._begin_change()
        if self._comm.regroup():
            self._take_change(change)
        else:
            self._is_over = True
        return True

    # ----------------------------------------------------------------- meeting

    def _meet(self) -> None:
        """All stand where the first rank stands that knows; newcomers are told."""
        state, comm = self._state, self._comm
        knows, is_new = state._knows, self._job.is_newcomer
        mine = torch.tensor([knows, self._sampler.epoch, state._hash(), is_new])
        said = torch.zeros(comm.size, len(mine), dtype=mine.dtype)
        comm.allgather(mine, said)
        root, epoch = self._expect_fit([_Said(*each) for each in said.tolist()])
        self._sampler._go_back(epoch)
        if not said[:, 0].all():
            state._tell(comm, root)
        self._sampler._deal(comm.rank, comm.size)
        if self._gradients is None:
            self._gradients = gradients_of(state.model, comm)
        self._has_met, self._job.is_newcomer = True, False
        self._tell_change()

    def _expect_fit(self, said: Sequence[_Said]) -> Tuple[int, int]:
        """The first rank that knows where the training stands, and the epoch of all."""
        know = [rank for rank, each in enumerate(said) if each.knows]
        if not know and any(each.is_newcomer for each in said):
            raise StateError("all ranks that knew where the training stands were lost")
        root = know[0] if know else 0
        self._expect_alike(said, root)
        return root, min(said[rank].epoch for rank in know or [root])

    def _expect_alike(self, said: Sequence[_Said], root: int) -> None:
        """A newcomer that does not fit goes alone; else all are told."""
        differ = [rank for rank, each in enumerate(said) if each.hash != said[root].hash]
        founders = [rank for rank in differ if not said[rank].is_newcomer]
        mine = self._comm.rank
        if mine in differ and not founders:
            self._comm._forget()
        if founders:
            self._await_all()
        if founders or mine in differ:
            other = founders[0] if founders else mine
            raise ArgumentError(
                f"rank {other} has another model, optimiser, sampler or state than rank {root}: "
                "start all by one command"
            )

    def _await_all(self) -> None:
        """Who ends first stops the others: all are to have their own reason by then."""
        try:
            self._comm.barrier()
        except AbortedError:
            pass  # another rank has ended, after all had come

    def _tell_change(self) -> None:
        change, self._change = self._change, None
        if change is None:
            return
        change.ranks, change.steps = self._comm.size, self._state.steps
        change.lost = change.before - change.left + change.joined - change.ranks
        if self._calls.after_change is not None:
            self._calls.after_change(change)
