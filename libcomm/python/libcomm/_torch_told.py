# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""A rank's value for all ranks: a state_dict() of an optimiser, a scheduler or a sampler.

The value travels as a pickle without its tensors, then each tensor by a broadcast. A pickle can
name anything that its reader is to call, so this one may name a few classes of values only. torch's
own way to say so (torch.load, weights_only) differs from version to version.
"""

from __future__ import annotations

import inspect
import io
import pickle
from typing import Any, Dict, List, Tuple

import torch

from .communicator import Communicator
from .errors import ArgumentError, WireError

# Classes that a value may be of, besides those that a pickle has letters for.
_CLASSES = {
    "builtins": set("bool bytearray complex dict float frozenset int list set str".split()),
    "collections": {"Counter", "OrderedDict", "defaultdict", "deque"},
    "torch": {"Size", "device"},
}


class _Writer(pickle.Pickler):
    """Writes a value, and collects its tensors."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=4)
        self.tensors: List[torch.Tensor] = []
        self._numbers: Dict[int, int] = {}  # of tensors, by id()
        self._kept: List[Any] = []  # as long as their id() is known

    def persistent_id(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return None
        if id(value) not in self._numbers:
            if value.layout is not torch.strided or value.is_quantized:
                raise pickle.PicklingError(f"a tensor is not dense, but {value.layout}")
            self._numbers[id(value)] = len(self.tensors)
            self._kept.append(value)
            self.tensors.append(value.detach().cpu().contiguous())
        kind = str(value.dtype).replace("torch.", "")
        return self._numbers[id(value)], kind, tuple(value.shape)

    def reducer_override(self, value: Any) -> Any:
        """numpy's numbers travel as Python's."""
        if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
            plain = value.item()
            return type(plain), (plain,)
        return NotImplemented


def _is_type_of_elements(name: str) -> bool:
    return isinstance(getattr(torch, name, None), torch.dtype)


class _Reader(pickle.Unpickler):
    """Reads a value with tensors that hold nothing yet."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.tensors: List[torch.Tensor] = []

    def find_class(self, module: str, name: str) -> Any:
        if name in _CLASSES.get(module, ()):
            return super().find_class(module, name)
        if module == "torch" and _is_type_of_elements(name):
            return getattr(torch, name)
        raise pickle.UnpicklingError(f"it holds a value of {module}.{name}")

    def persistent_load(self, what: Any) -> torch.Tensor:
        number, kind, shape = what
        if not 0 <= number <= len(self.tensors) or not _is_type_of_elements(kind):
            raise pickle.UnpicklingError(f"there is no tensor {number} of {kind}")
        if number == len(self.tensors):
            self.tensors.append(torch.empty(shape, dtype=getattr(torch, kind)))
        return self.tensors[number]


def written(value: Any, rank: int) -> Tuple[bytes, List[torch.Tensor]]:
    """A value of `rank` for told(), which raises ArgumentError where others could not read it."""
    file = io.BytesIO()
    writer = _Writer(file)
    try:
        writer.dump(value)
        _Reader(io.BytesIO(file.getvalue())).load()
    except Exception as why:  # whatever a class of the program raises when it is pickled
        raise ArgumentError(
            f"the state of rank {rank} cannot be sent to all ranks: {why}. It may consist of "
            "numbers, text, tensors, and lists, tuples, sets and dicts of them"
        ) from why
    return file.getvalue(), writer.tensors


def _read(words: bytes, root: int) -> Tuple[Any, List[torch.Tensor]]:
    reader = _Reader(io.BytesIO(words))
    try:
        return reader.load(), reader.tensors
    except Exception as why:  # bytes of a peer may be anything
        raise WireError(f"rank {root} has sent a state that cannot be read: {why}") from why


def without_functions(state: Any) -> Any:
    """A state_dict() without entries that are functions, which each rank has of its own.

    Schedulers of older versions of torch have such (OneCycleLR).
    """
    if not isinstance(state, dict):
        return state
    return {name: value for name, value in state.items() if not inspect.isroutine(value)}


def _exchanged(words: bytes, comm: Communicator, root: int) -> bytes:
    """Those of rank `root`."""
    length = torch.tensor([len(words)])
    comm.broadcast(length, root=root)
    there = bytearray(words) if comm.rank == root else bytearray(int(length))
    comm.broadcast(there, root=root)
    return bytes(there)


def told(value: Any, comm: Communicator, root: int) -> Any:
    """All ranks receive rank `root`'s value. Collective.

    It consists of numbers, text, tensors, and lists, tuples, sets and dicts of them; tensors of a
    device arrive on the host, numbers of numpy as Python's. Raises ArgumentError on all ranks where
    it holds anything else, and as Communicator.broadcast.
    """
    words, trouble = b"", ""
    tensors: List[torch.Tensor] = []
    if comm.rank == root:
        try:
            words, tensors = written(value, root)
        except ArgumentError as why:
            trouble = str(why)
    trouble = _exchanged(trouble.encode(), comm, root).decode()
    if trouble:
        raise ArgumentError(trouble)
    words = _exchanged(words, comm, root)
    if comm.rank != root:
        value, tensors = _read(words, root)
    for tensor in tensors:
        comm.broadcast(tensor, root=root)
    return value
