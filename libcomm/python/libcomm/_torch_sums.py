# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Calls of torch.distributed as calls of libcomm: sums by the policy, all else exact."""

from __future__ import annotations

from typing import Any, Callable, List, NamedTuple, Optional, Sequence, Tuple

import torch
import torch.distributed

from . import _buffers
from ._torch_work import Part, moved, vector
from .communicator import Communicator
from .errors import ArgumentError, Error, UnsupportedError
from .request import Request

_Op = torch.distributed.ReduceOp

# What libcomm sums itself.
_NAMES = [(_Op.SUM, "sum"), (_Op.AVG, "avg"), (_Op.MIN, "min"), (_Op.MAX, "max")]

# What is done with all ranks' values where libcomm cannot sum them. ReduceOp has no hash.
_FOLDS: List[Tuple[Any, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]]] = [
    (_Op.SUM, torch.add),
    (_Op.AVG, torch.add),
    (_Op.MIN, torch.minimum),
    (_Op.MAX, torch.maximum),
    (_Op.PRODUCT, torch.mul),
    (_Op.BAND, torch.bitwise_and),
    (_Op.BOR, torch.bitwise_or),
    (_Op.BXOR, torch.bitwise_xor),
]


class Place(NamedTuple):
    """Who this is."""

    rank: int
    size: int


def _find(op: Any, table: Sequence[Tuple[Any, Any]]) -> Any:
    return next((found for each, found in table if op == each), None)


def _summed_by_libcomm(tensor: torch.Tensor, op: Any) -> Optional[str]:
    """The name of the operation, if libcomm has it for these values."""
    return _find(op, _NAMES) if _buffers.of(tensor).dtype is not None else None


def _folded(flat: torch.Tensor, op: Any, place: Place) -> Part:
    """Other types and operations: all ranks receive all values, and do the same with them."""
    fold = _find(op, _FOLDS)
    if fold is None:
        raise UnsupportedError(
            f'the backend "lcomm" cannot reduce by {op}: use SUM, AVG, MIN, MAX, PRODUCT, BAND, '
            "BOR or BXOR"
        )
    whole = flat.new_empty((place.size, *flat.shape))

    def finish() -> None:
        total = whole[0]
        for each in whole[1:]:
            total = fold(total, each)
        flat.copy_(total / place.size if op == _Op.AVG else total)

    return Part(lambda comm: moved(comm, "allgather", flat, whole), (finish,))


def allreduce(tensor: torch.Tensor, op: Any, place: Place) -> Part:
    """In place."""
    flat, back = vector(tensor)
    name = _summed_by_libcomm(flat, op)
    if name is None:
        part = _folded(flat, op, place)
        return Part(part.begin, part.finishes + back)
    return Part(lambda comm: moved(comm, "allreduce", flat, op=name), back)


def reduce(tensor: torch.Tensor, op: Any, root: int, place: Place) -> Part:
    """The root has the result; the others' tensors stay as they are."""
    return allreduce(tensor if place.rank == root else tensor.detach().clone(), op, place)


def broadcast(tensor: torch.Tensor, root: int) -> Part:
    flat, back = vector(tensor)
    return Part(lambda comm: moved(comm, "broadcast", flat, root=root), back)


# ------------------------------------------------------------------- in parts


def _counts(tensors: Sequence[torch.Tensor]) -> Optional[List[int]]:
    """Elements of each; None where all are as long."""
    counts = [tensor.numel() for tensor in tensors]
    return None if len(set(counts)) <= 1 else counts


def _joined(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors])


def _part_out(whole: torch.Tensor, tensors: Sequence[torch.Tensor]) -> None:
    """What lies one after the other in `whole` goes into the tensors."""
    parts = whole.split([tensor.numel() for tensor in tensors])
    for tensor, part in zip(tensors, parts):
        tensor.detach().copy_(part.view(tensor.shape))


def allgather_into(whole: torch.Tensor, mine: torch.Tensor) -> Part:
    """The tensors of all ranks, one after the other."""
    flat, back = vector(whole)
    source = mine.detach().contiguous()
    return Part(lambda comm: moved(comm, "allgather", source, flat), back)


def allgather(tensors: Sequence[torch.Tensor], mine: torch.Tensor) -> Part:
    """Those of all ranks, each into a tensor; they may be of different lengths."""
    source, counts = mine.detach().contiguous(), _counts(tensors)
    whole = source.new_empty(sum(tensor.numel() for tensor in tensors))
    return Part(
        lambda comm: moved(comm, "allgather", source, whole, counts=counts),
        (lambda: _part_out(whole, tensors),),
    )


def gather(tensors: Sequence[torch.Tensor], mine: torch.Tensor, place: Place) -> Part:
    """tensors: those of the root; of the others none."""
    return allgather(tensors or [torch.empty_like(mine) for _ in range(place.size)], mine)


def scatter(mine: torch.Tensor, tensors: Sequence[torch.Tensor], root: int, place: Place) -> Part:
    """tensors: those of the root, one for each rank; of the others none."""
    whole = _joined(tensors) if tensors else mine.new_empty(place.size * mine.numel())

    def finish() -> None:
        mine.detach().copy_(whole.view(place.size, *mine.shape)[place.rank])

    return Part(lambda comm: moved(comm, "broadcast", whole, root=root), (finish,))


def reduce_scatter_from(out: torch.Tensor, whole: torch.Tensor, op: Any, place: Place) -> Part:
    """This rank's part of the sum of `whole`."""
    return _reduce_scatter(out, whole.detach().contiguous(), None, op, place)


def reduce_scatter(
    out: torch.Tensor, tensors: Sequence[torch.Tensor], op: Any, place: Place
) -> Part:
    """The sum of tensors[rank]; the tensors may be of different lengths."""
    return _reduce_scatter(out, _joined(tensors), _counts(tensors), op, place)


def _reduce_scatter(
    out: torch.Tensor, whole: torch.Tensor, counts: Optional[List[int]], op: Any, place: Place
) -> Part:
    flat, back = vector(out)
    name = _summed_by_libcomm(whole, op)
    if name is not None:
        return Part(
            lambda comm: moved(comm, "reduce_scatter", whole, flat, counts=counts, op=name), back
        )
    total = whole.clone().view(-1)
    part = _folded(total, op, place)
    begin = sum(counts[: place.rank]) if counts else place.rank * flat.numel()
    mine = total[begin : begin + flat.numel()]
    return Part(part.begin, (*part.finishes, lambda: flat.copy_(mine.view(flat.shape)), *back))


# ------------------------------------------------------------------ all to all


def alltoall_even(out: torch.Tensor, mine: torch.Tensor) -> Part:
    """Parts of one length."""
    flat, back = vector(out)
    source = mine.detach().contiguous()
    return Part(lambda comm: moved(comm, "alltoall", source, flat), back)


def _agreed(comm: Communicator, sent: List[int], received: List[int]) -> int:
    """Elements of the longest part of all; what ranks send is what the others expect."""
    table = torch.empty((comm.size, comm.size), dtype=torch.int64)
    comm.allgather(torch.tensor(sent, dtype=torch.int64), table)
    for sender, count in enumerate(table[:, comm.rank].tolist()):
        if count != received[sender]:
            sentence = (
                f"all_to_all: rank {sender} sends {count} elements to rank {comm.rank}, which "
                f"expects {received[sender]}; give both the same number"
            )
            try:
                comm.abort(sentence)
                comm.barrier()  # the next call tells the others
            except Error:
                pass  # that one, or another rank has found a difference of its own
            raise ArgumentError(sentence)
    return int(table.max())


def alltoall(outs: Sequence[torch.Tensor], parts: Sequence[torch.Tensor]) -> Part:
    """Parts of different lengths: they travel in parts of the longest."""
    sources = [part.detach().reshape(-1) for part in parts]

    def begin(comm: Communicator) -> Optional[Request]:
        lengths = [source.numel() for source in sources], [out.numel() for out in outs]
        padded = sources[0].new_zeros((comm.size, _agreed(comm, *lengths)))
        for row, source in zip(padded, sources):
            row[: source.numel()].copy_(source)
        comm.alltoall(padded)
        for row, out in zip(padded, outs):
            out.detach().copy_(row[: out.numel()].view(out.shape))
        return None

    return Part(begin)
