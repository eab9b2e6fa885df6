# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Training that goes on when ranks are lost, leave or join:

    from libcomm.torch import elastic

    state = elastic.State(model, optimizer, elastic.Sampler(len(images), batch=32))

    def step(batch):
        loss = cross_entropy(model(images[batch]), labels[batch])
        loss.backward()
        return loss.item()

    with elastic.Job(min=2, max=8, policy="net=topk:0.01+ef") as job:
        job.run(step, state, epochs=3)

The model is a plain module: its gradients are averaged as backward makes them. Or it is
DistributedDataParallel over a process group of one rank. Started by libcomm's launch, srun or
torchrun; `launch --restarts N` starts lost ranks anew, which join.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import threading
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional

import torch

from ._torch_elastic_run import Calls, Change, Run, TooFewRanksError
from ._torch_gradients import expect_fit
from ._torch_optimizer import broadcast_parameters
from ._torch_sampler import Sampler
from ._torch_state import _takes_a_thread
from ._torch_told import told, without_functions, written
from .communicator import Communicator
from .errors import LOST, ArgumentError, StateError

__all__ = ["Change", "Job", "Sampler", "State", "TooFewRanksError"]


class State:
    """What a training consists of, the same on all ranks after each step.

    model      a module on the host, or DistributedDataParallel over a process group of one rank
               (init_process_group("gloo", store=HashStore(), rank=0, world_size=1)), which cannot
               change its ranks: the job's are summed over by the hook. Its buffers are each rank's
               own, and newcomers receive those of a rank that has been there before
    optimizer  of its parameters
    sampler    an elastic.Sampler
    update     what follows when gradients are averages, such as clipping, optimizer.step() and
               scheduler.step(); None: optimizer.step(), with the learning rate times sampler.rate
    others     whatever has state_dict() and load_state_dict(), such as scheduler=...; like that of
               the optimiser it consists of numbers, text, tensors, and lists and dicts of them.
               Functions in it stay each rank's own

    Rank 0's are sent to all as the training begins, so ranks need not begin alike. Raises
    ArgumentError for another DistributedDataParallel, UnsupportedError for a model on a device.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        sampler: Sampler,
        update: Optional[Callable[[], Any]] = None,
        **others: Any,
    ) -> None:
        expect_fit(model)
        self.model, self.optimizer, self.sampler = model, optimizer, sampler
        self.steps = 0  # that are finished
        self._others, self._given_update = others, update
        self._knows = False  # where the training stands

    def _update(self) -> None:
        if self._given_update is not None:
            self._given_update()
            return
        groups, rate = self.optimizer.param_groups, self.sampler.rate
        rates = [group["lr"] for group in groups]
        for group in groups:
            group["lr"] = group["lr"] * rate
        self.optimizer.step()
        for group, given in zip(groups, rates):
            group["lr"] = given

    def _hash(self) -> int:
        """Of what all ranks have in common."""
        sampler = self.sampler
        words = [(n, tuple(t.shape), str(t.dtype)) for n, t in self.model.state_dict().items()]
        dealt = (sampler.count, sampler._rank_share, sampler.seed, sampler.shuffle)
        text = repr((words, type(self.optimizer).__name__, dealt, sorted(self._others)))
        digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
        return int.from_bytes(digest, "little", signed=True)

    def _facts(self) -> Dict[str, Any]:
        others = {n: without_functions(each.state_dict()) for n, each in self._others.items()}
        return {
            "steps": self.steps,
            "optimizer": self.optimizer.state_dict(),
            "sampler": self.sampler.state_dict(),
            "others": others,
        }

    def _tell(self, comm: Communicator, root: int) -> None:
        """All ranks receive what rank `root` has. Collective."""
        facts = told(self._facts(), comm, root)
        values = self.model.state_dict()
        if self._knows:  # parameters are alike anyway, buffers are this rank's own
            own = {name for name, _ in self.model.named_buffers()} if comm.rank != root else set()
            values = {n: value.clone() if n in own else value for n, value in values.items()}
        broadcast_parameters(values, comm, root)
        if not self._knows and comm.rank != root:
            self._load(facts)
        self._knows = True

    def _load(self, facts: Dict[str, Any]) -> None:
        self.steps = facts["steps"]
        self.optimizer.load_state_dict(facts["optimizer"])
        self.sampler.load_state_dict(facts["sampler"])
        for name, each in self._others.items():
            each.load_state_dict(facts["others"][name])


def _expect_no_mpirun() -> None:
    if "RANK" not in os.environ and {"OMPI_COMM_WORLD_RANK", "PMI_RANK"} & set(os.environ):
        raise ArgumentError(
            "elastic.Job does not go with mpirun, which ends a job when a rank dies; start the "
            "ranks by launch, torchrun or srun"
        )


class Job:
    """Ranks that come and go.

    min      fewer than so many do not go on: TooFewRanksError on all that are left
    max      newcomers are let in up to so many
    policy   what is compressed; None: LCOMM_POLICY, else exact
    options  of Communicator.from_env, such as timeout=30.0: so long a silent rank is waited for

    Collective as Communicator.from_env(); with LCOMM_JOIN=on this rank joins those that are at
    work, which wait for it from then on: data and model are made before the Job. `comm` is the
    communicator: it stays the same object, and rank and size are its. Ends by the end of `with`, or
    close(). An exception of the program ends all ranks, as that of any communicator does, but for a
    newcomer that has not begun to train; who is only to be lost ends its process (os._exit).
    Raises as Communicator.from_env, ArgumentError for less than min ranks or more than max.
    """

    def __init__(self, min: int, max: int, policy: Optional[str] = None, **options: Any) -> None:
        if not 1 <= min <= max:
            raise ArgumentError(f"elastic.Job: min={min} and max={max}: 1 <= min <= max")
        _expect_no_mpirun()
        os.environ["LCOMM_ELASTIC"] = "on"
        if _takes_a_thread(None):
            options.setdefault("progress", "thread")
        self.min, self.max = min, max
        self._is_asked = self._has_run = self._is_over = False
        self.comm = Communicator.from_env(policy, **options)
        self.is_newcomer = self.comm.regrouped.is_newcomer
        if not self.is_newcomer and not min <= self.comm.size <= max:
            size = self.comm.size
            self.comm.close()
            raise ArgumentError(
                f"there are {size} ranks, and elastic.Job asks for {min} to {max}; start as many "
                "by launch, torchrun or srun"
            )

    # --------------------------------------------------------------------- run

    def run(
        self,
        step: Callable[[Any], Any],
        state: State,
        epochs: int,
        batches: Optional[Iterable[Any]] = None,
        after_step: Optional[Callable[[List[Any]], Any]] = None,
        after_epoch: Optional[Callable[[int], Any]] = None,
        after_change: Optional[Callable[[Change], Any]] = None,
    ) -> bool:
        """Train to the end of the epoch before number `epochs`. Collective, once.

        step          makes the gradients of a batch by backward(), and returns what it likes; there
                      are none before. It is called again, with other samples, where the step was
                      undone. It changes nothing but gradients, and calls nothing of libcomm
        batches       gives this rank's batches from where the sampler is, each time it is iterated
                      over: a DataLoader with batch_sampler=state.sampler; None: the sampler itself
        after_step    of each step that is finished: what step() has returned for its batches
        after_epoch   of each epoch: its number. It may use job.comm, for an accuracy; where ranks
                      are lost meanwhile it is called again
        after_change  where ranks were lost, left or joined, when all have met again

        Returns True at the end of the training, False where this rank has left: leave(), or SIGTERM
        while it runs. Raises TooFewRanksError on all ranks, with all finished steps in the model
        and the optimiser, ArgumentError for a state that cannot be sent to newcomers, and what the
        program raises.
        """
        if self._has_run:
            raise StateError("a job runs once: give run() all epochs, or make another Job")
        self._has_run = True
        written(state._facts(), self.comm.rank)  # it could be sent to newcomers
        run = Run(
            self,
            state,
            state.sampler if batches is None else batches,
            epochs,
            Calls(step, after_step, after_epoch, after_change),
        )
        if self.comm.rank == 0 and not self.is_newcomer:
            state._knows = True
        try:
            with self._leaving_by_signal():
                return run()
        except TooFewRanksError:
            self._is_over = True  # on all ranks, whatever exception the program makes of it
            raise

    def leave(self) -> None:
        """This rank leaves after the step that is under way. From a signal handler, too."""
        self._is_asked = True

    @contextlib.contextmanager
    def _leaving_by_signal(self) -> Iterator[None]:
        """SIGTERM is how hosts say that they go away."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.signal(signal.SIGTERM, lambda *_: self.leave())
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, before or signal.SIG_DFL)

    def _ask(self) -> None:
        if self._is_asked:
            self.comm.leave()

    # --------------------------------------------------------------------- end

    def close(self) -> None:
        """End the communicator. Collective; may be called again. Who was lost is not missed."""
        try:
            self.comm.close()
        except LOST:
            pass

    def __enter__(self) -> "Job":
        return self

    def __exit__(self, kind: Any, trouble: Optional[BaseException], trace: Any) -> None:
        if self.is_newcomer and trouble is not None:
            self.comm._forget()  # the others lose it, and go on
        if trouble is None or self._is_over:
            self.close()
        else:
            self.comm.__exit__(kind, trouble, trace)
