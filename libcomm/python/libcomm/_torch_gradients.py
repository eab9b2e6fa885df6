# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""How the gradients of an elastic training go to libcomm."""

from __future__ import annotations

from typing import Any, List

import torch

from ._torch_optimizer import _Gradient
from ._torch_state import _trained
from ._torch_work import flat, shape_of
from .communicator import Communicator
from .errors import UnsupportedError


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

    def wait(self) -> None:
        """Return when all gradients are averages. Raises as Communicator.wait_tensors()."""
        for gradient in self._all:
            gradient.complete()
        self._comm.wait_tensors()

    def end_lost_step(self, is_finished: bool) -> None:
        """After a shrink: the step is finished, with averages, or was undone."""

    def close(self) -> None:
        for gradient in self._all:
            gradient.close()


def gradients_of(model: torch.nn.Module, comm: Communicator) -> Any:
    if any(parameter.is_cuda for parameter in model.parameters()):
        raise UnsupportedError(
            "libcomm.torch.elastic: gradients on a device are not carried over when ranks change: "
            "train on processors"
        )
    return Gradients(model, comm)
