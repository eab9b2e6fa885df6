# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Without DistributedDataParallel: an optimiser that averages gradients before its step.

Names and meanings are those that Horovod has for PyTorch.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple, Union

import torch

from ._header import Op
from ._torch_told import told
from ._torch_work import flat, refuse_stale, shape_of, vector
from .communicator import Communicator
from .errors import ArgumentError, StateError
from .tensors import Tensor

Named = Iterable[Tuple[str, torch.Tensor]]


class _Gradient:
    """The gradient of one parameter: a tensor of libcomm, ready when backward made it."""

    def __init__(self, tensor: Tensor, parameter: torch.Tensor, passes: int) -> None:
        self._tensor, self._parameter, self._passes = tensor, parameter, passes
        self._made = 0  # backward passes of this step
        # the node that adds to .grad lives as long as somebody holds it
        self._node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
        self._hook = self._node.register_hook(self._on_made)

    def _on_made(self, *_gradients: Any) -> None:
        if self._made == self._passes:
            raise StateError(
                f"the gradient of {self._tensor.name} was made {self._passes + 1} times before a "
                "step: call step() after each backward(), or give DistributedOptimizer "
                "backward_passes_per_step"
            )
        self._made += 1
        if self._made == self._passes:
            self._tensor.ready(flat(self._parameter.grad))

    @property
    def is_made(self) -> bool:
        return self._made > 0

    def complete(self) -> None:
        """Ready if it was not: fewer passes, or none; then it is 0."""
        if self._made < self._passes:
            if self._parameter.grad is None:
                self._parameter.grad = torch.zeros_like(self._parameter)
            self._tensor.ready(flat(self._parameter.grad))

    def begin_step(self) -> None:
        self._made = 0

    def set_passes(self, passes: int) -> None:
        """Between two steps: so many passes make the gradient, which is their mean."""
        if passes != self._passes:
            self._passes = passes
            self._tensor.scale(1.0 / passes, 1.0)

    def close(self) -> None:
        """From now on backward tells nobody."""
        self._hook.remove()


class _Averaging:
    """What DistributedOptimizer adds to an optimiser."""

    _libcomm_comm: Communicator
    _libcomm_gradients: List[_Gradient]
    _libcomm_is_averaged: bool

    def synchronize(self) -> None:
        """Wait until all gradients are averages, for clipping before step().

        Raises as Communicator.wait_tensors.
        """
        for gradient in self._libcomm_gradients:
            gradient.complete()
        self._libcomm_comm.wait_tensors()
        for gradient in self._libcomm_gradients:
            gradient.begin_step()
        self._libcomm_is_averaged = True

    def step(self, closure: Any = None) -> Any:
        """The optimiser's step with averages; after synchronize() with what .grad holds now."""
        step = super().step  # type: ignore[misc]
        if closure is None:
            has_more = any(gradient.is_made for gradient in self._libcomm_gradients)
            if has_more or not self._libcomm_is_averaged:
                self.synchronize()
            self._libcomm_is_averaged = False
            return step()

        def averaged() -> Any:
            loss = closure()
            self.synchronize()
            return loss

        result = step(averaged)
        self._libcomm_is_averaged = False
        return result

    def zero_grad(self, *arguments: Any, **options: Any) -> None:
        """The optimiser's, between step() and backward()."""
        if any(gradient.is_made for gradient in self._libcomm_gradients):
            raise StateError(
                "zero_grad() was called between backward() and step(), while gradients are summed: "
                "call it after step(), or synchronize() first"
            )
        super().zero_grad(*arguments, **options)  # type: ignore[misc]


def _all_named(optimizer: torch.optim.Optimizer, named: Optional[Named]) -> Dict[str, torch.Tensor]:
    """The parameters of the optimiser by their names, in the order of backward."""
    owned = [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad]
    if named is None:
        return {f"parameter.{i}": p for i, p in reversed(list(enumerate(owned)))}
    found = {name: p for name, p in reversed(list(named)) if p.requires_grad}
    missing = {id(p) for p in owned} - {id(p) for p in found.values()}
    if missing:
        raise ArgumentError(
            f"named_parameters lacks {len(missing)} of the optimiser's {len(owned)} parameters: "
            "pass model.named_parameters() of the whole model"
        )
    here = {id(p) for p in owned}
    return {name: p for name, p in found.items() if id(p) in here}


def DistributedOptimizer(
    optimizer: torch.optim.Optimizer,
    comm: Communicator,
    named_parameters: Optional[Named] = None,
    op: Union[Op, str] = "avg",
    backward_passes_per_step: int = 1,
) -> torch.optim.Optimizer:
    """Let an optimiser's step() use the average (op="sum": the sum) of all ranks' gradients.

    Returns the same object, which has synchronize() now. Each parameter is a tensor of comm by its
    name, so the policy's codecs, exempt= and error feedback fit it; sums begin while backward runs.
    named_parameters: those of the model; None: parameters are parameter.0, parameter.1, ...
    backward_passes_per_step: passes whose gradients are added up before they are averaged.
    All ranks make it for the same parameters in the same order, and step together; a parameter that
    had no gradient on a rank counts as 0 there. Between backward() and step() the communicator is
    not used otherwise; each of several optimisers has one of its own (comm.split(0)).
    Raises ArgumentError, UnsupportedError for a policy with stale=, and as Communicator.add_tensor.
    """
    refuse_stale(comm)
    gradients = []
    for name, parameter in _all_named(optimizer, named_parameters).items():
        tensor = comm.add_tensor(name, flat(parameter), op=op, shape=shape_of(parameter))
        gradients.append(_Gradient(tensor, parameter, backward_passes_per_step))
    kind = type(optimizer)
    optimizer.__class__ = type(kind.__name__, (_Averaging, kind), {})
    optimizer._libcomm_comm = comm  # type: ignore[attr-defined]
    optimizer._libcomm_gradients = gradients  # type: ignore[attr-defined]
    optimizer._libcomm_is_averaged = False  # type: ignore[attr-defined]
    return optimizer


def broadcast_parameters(
    parameters: Union[Mapping[str, Any], Named], comm: Communicator, root: int = 0
) -> None:
    """All ranks receive rank `root`'s parameters: model.state_dict() or named_parameters().

    Exact, in place, also of tensors whose elements do not lie together; values that are no tensors
    are left alone. Returns when all ranks have them. Raises as
    Communicator.broadcast, MismatchError where shapes differ.
    """
    named = parameters.items() if isinstance(parameters, Mapping) else parameters
    requests = []
    for _, value in named:
        if isinstance(value, torch.Tensor):
            there, back = vector(value)
            requests.append((comm.ibroadcast(there, root=root), back))
    for request, back in requests:
        request.wait()
        for bring in back:
            bring()
    comm.barrier()


def broadcast_optimizer_state(
    optimizer: torch.optim.Optimizer, comm: Communicator, root: int = 0
) -> None:
    """All ranks receive the state and the options of rank `root`'s optimiser. Collective.

    Raises ArgumentError, on all ranks, where its state_dict() holds more than numbers, text,
    tensors, and lists, tuples, sets and dicts of them; and as Communicator.broadcast.
    """
    state = told(optimizer.state_dict(), comm, root)
    if comm.rank != root:
        optimizer.load_state_dict(state)
