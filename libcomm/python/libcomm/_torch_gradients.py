# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""How the gradients of an elastic training go to libcomm."""

from __future__ import annotations

import contextlib
from typing import Any, List, Union

import torch
import torch.distributed

from ._torch_optimizer import _Gradient
from ._torch_state import State, _trained
from ._torch_work import flat, shape_of
from .communicator import Communicator
from .errors import ArgumentError, UnsupportedError

DDP = torch.nn.parallel.DistributedDataParallel


class Gradients:
    """Those of a module: each parameter is a tensor of libcomm, ready as soon as it was made."""

    def __init__(self, model: torch.nn.Module, comm: Communicator) -> None:
        self._comm = comm
        self._all: List[_Gradient] = []
        for name, parameter in _trained(model):
            shape = shape_of(parameter)
            tensor = comm.add_tensor(name, flat(parameter), op="avg", shape=shape)
            self._all.append(_Gradient(tensor, parameter, 1))

    def begin(self, passes: int) -> None:
        """A step of so many backward passes, whose mean counts."""
        for gradient in self._all:
            gradient.begin_step()
            gradient.set_passes(passes)

    def passing(self, is_last: bool) -> Any:
        """In which a pass is made."""
        return contextlib.nullcontext()

    def wait(self) -> None:
        """Return when all gradients are averages. Raises as Communicator.wait_tensors()."""
        for gradient in self._all:
            gradient.complete()
        self._comm.wait_tensors()

    def end_lost_step(self, is_finished: bool) -> None:
        """After a shrink: the step is finished, with averages in .grad, or was undone."""

    def close(self) -> None:
        for gradient in self._all:
            gradient.close()


class HookedGradients:
    """The same of DistributedDataParallel, by its hook: backward() returns when they are averages.

    DDP's own process group, which cannot change, has one rank.
    """

    def __init__(self, model: Any, comm: Communicator) -> None:
        self._model, self._passes = model, 1
        self._state = State(model=model, comm=comm)
        model.register_comm_hook(self._state, _compress)

    def begin(self, passes: int) -> None:
        if passes != self._passes:
            for tensor in self._state._tensors.values():
                tensor.scale(1.0 / passes, 1.0)
        self._passes = passes

    def passing(self, is_last: bool) -> Any:
        return contextlib.nullcontext() if is_last else self._model.no_sync()

    def wait(self) -> None:
        """backward() has waited."""

    def end_lost_step(self, is_finished: bool) -> None:
        self._state._end_lost_step(is_finished)

    def close(self) -> None:
        self._state.close()


AnyGradients = Union[Gradients, HookedGradients]


# DDP looks at the annotations of hooks, which here are strings.
def _compress(state, bucket):  # type: ignore[no-untyped-def]
    return state._take(bucket)


def expect_fit(model: torch.nn.Module) -> None:
    """Raises UnsupportedError, ArgumentError for a model whose gradients cannot go on."""
    if any(parameter.is_cuda for parameter in model.parameters()):
        raise UnsupportedError(
            "libcomm.torch.elastic: gradients of this model are on a device, which nobody has "
            "tried with ranks that change: train on processors"
        )
    size = torch.distributed.get_world_size(model.process_group) if isinstance(model, DDP) else 1
    if size != 1:
        raise ArgumentError(
            f"this DistributedDataParallel has a process group of {size} ranks, and groups cannot "
            "change: make one of this rank alone, init_process_group('gloo', store=HashStore(), "
            "rank=0, world_size=1), or pass the module in it"
        )


def gradients_of(model: torch.nn.Module, comm: Communicator) -> AnyGradients:
    """Of a model that fits, between two steps, on all ranks."""
    return HookedGradients(model, comm) if isinstance(model, DDP) else Gradients(model, comm)
