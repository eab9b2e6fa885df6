# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Arguments of collectives: from arrays to what the functions of the library take."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple, Optional, Sequence, Tuple, Union

from . import _buffers, _cuda
from ._buffers import Buffer
from ._header import Dtype, Op
from .errors import ArgumentError


class Call(NamedTuple):
    """A collective: the name of its function without lcomm_ and i, and its arguments."""

    name: str
    arguments: Tuple[Any, ...]
    result: Any
    holders: Tuple[Any, ...]
    stream: Optional[int]  # in whose order it shall be; None: in no order


_OPS = {each.name.lower(): each for each in Op}


def op_of(op: Union[Op, str]) -> Op:
    try:
        return _OPS[op.lower()] if isinstance(op, str) else Op(op)
    except (KeyError, ValueError):
        raise ArgumentError(f"there is no operation {op!r}: sum, avg, min or max") from None


def summed_type(buffer: Buffer) -> Dtype:
    if buffer.dtype is None:
        names = ", ".join(each.name.lower() for each in Dtype)
        raise ArgumentError(
            f"values of type {buffer.type_name} cannot be summed: convert the array to one of "
            f"{names}"
        )
    return buffer.dtype


def _moved(buffer: Buffer) -> Tuple[int, Dtype]:
    """Elements and type for calls that only move data: what has no type here moves as bytes."""
    if buffer.dtype is None:
        return buffer.itemsize, Dtype.UINT8
    return 1, buffer.dtype


def _pair(send: Buffer, out: Buffer) -> None:
    if send.type_name != out.type_name:
        raise ArgumentError(f"the input has type {send.type_name}, the result {out.type_name}")
    if send.is_on_device != out.is_on_device:
        raise ArgumentError("input and result are in one place: both on the host, or on a device")


def expect_like(buffer: Buffer, other: Buffer) -> None:
    """Memory that takes the place of another's."""
    _pair(buffer, other)
    _expect("the array", buffer.count, other.count)


def _stream(*buffers: Buffer) -> Optional[int]:
    return next((b.stream for b in buffers if b.is_on_device), None)


def parts_of(counts: Sequence[int], size: int) -> Any:
    if len(counts) != size or any(n < 0 for n in counts):
        raise ArgumentError(
            f"counts has {len(counts)} numbers, but there are {size} ranks, and each has a number "
            "of elements, 0 or more"
        )
    return (ctypes.c_uint64 * size)(*counts)


def _expect(what: str, have: int, want: int) -> None:
    if have != want:
        raise ArgumentError(f"{what} has {have} elements, but must have {want}")


def allreduce(array: Any, out: Any, op: Union[Op, str], before: float, after: float) -> Call:
    result = array if out is None else out
    there = _buffers.writable(result)
    send = there if out is None else _buffers.of(array)
    if out is not None:
        _pair(send, there)
        _expect("the result", there.count, send.count)
    arguments = (send.address, there.address, send.count, summed_type(send), op_of(op))
    scaled = before != 1.0 or after != 1.0
    return Call(
        "allreduce_scaled" if scaled else "allreduce",
        arguments + ((before, after) if scaled else ()),
        result,
        (send.holder, there.holder),
        _stream(send),
    )


def reduce_scatter(
    array: Any, out: Any, counts: Optional[Sequence[int]], op: Union[Op, str], rank: int, size: int
) -> Call:
    send, there = _buffers.of(array), _buffers.writable(out)
    _pair(send, there)
    parts = parts_of(counts, size) if counts is not None else None
    total = sum(counts) if counts is not None else send.count
    mine = counts[rank] if counts is not None else send.count // size
    _expect("the input", send.count, total)
    if counts is None:
        _expect(f"the input of {size} ranks", send.count, mine * size)
    if there.address != send.address:
        _expect("the result", there.count, mine)
    length = mine if parts is None else parts
    return Call(
        "reduce_scatter" if parts is None else "reduce_scatterv",
        (send.address, there.address, length, summed_type(send), op_of(op)),
        out,
        (send.holder, there.holder, parts),
        _stream(send),
    )


def reduce_scatter_scaled(
    array: Any,
    out: Any,
    counts: Optional[Sequence[int]],
    op: Union[Op, str],
    place: Tuple[int, int],
    factors: Tuple[float, float],
) -> Call:
    """place: rank and number of ranks. factors: before and after the sum."""
    rank, size = place
    parts = [_buffers.of(array).count // size] * size if counts is None else counts
    call = reduce_scatter(array, out, parts, op, rank, size)
    if call.stream is None:
        raise ArgumentError(
            "a reduce-scatter has factors for arrays on a device only: multiply the array before "
            "it, or the result"
        )
    return call._replace(name="reduce_scatterv_scaled", arguments=call.arguments + factors)


def allgather(
    array: Any, out: Any, counts: Optional[Sequence[int]], rank: int, size: int
) -> Call:
    send, there = _buffers.of(array), _buffers.writable(out)
    _pair(send, there)
    each, dtype = _moved(send)
    mine = counts[rank] if counts is not None else send.count
    parts = parts_of([each * n for n in counts], size) if counts is not None else None
    _expect("the input", send.count, mine)
    _expect("the result", there.count, sum(counts) if counts is not None else mine * size)
    return Call(
        "allgather" if parts is None else "allgatherv",
        (send.address, there.address, each * mine if parts is None else parts, dtype),
        out,
        (send.holder, there.holder, parts),
        _stream(send),
    )


def alltoall(array: Any, out: Any, size: int) -> Call:
    result = array if out is None else out
    there = _buffers.writable(result)
    send = there if out is None else _buffers.of(array)
    _pair(send, there)
    each, dtype = _moved(send)
    mine = send.count // size
    _expect(f"the input of {size} ranks", send.count, mine * size)
    _expect("the result", there.count, send.count)
    arguments = (send.address, there.address, each * mine, dtype)
    return Call("alltoall", arguments, result, (send.holder, there.holder), _stream(send))


def broadcast(array: Any, root: int) -> Call:
    there = _buffers.writable(array)
    each, dtype = _moved(there)
    arguments = (there.address, each * there.count, dtype, root)
    return Call("broadcast", arguments, array, (there.holder,), _stream(there))


def send(array: Any, to: int) -> Call:
    there = _buffers.of(array)
    each, dtype = _moved(there)
    arguments = (there.address, each * there.count, dtype, to)
    return Call("send", arguments, array, (there.holder,), _stream(there))


def recv(array: Any, sender: int) -> Call:
    there = _buffers.writable(array)
    each, dtype = _moved(there)
    arguments = (there.address, each * there.count, dtype, sender)
    stream = _stream(there)
    name = "recv" if stream is None else "receive"  # lcomm_receive_on_stream
    return Call(name, arguments, array, (there.holder,), stream)


def channel_send(array: Any, count: int) -> Call:
    there = _buffers.of(array)
    if there.dtype is not Dtype.FLOAT32:
        raise ArgumentError(f"messages of a channel are of float32, not of {there.type_name}")
    _expect("the message", there.count, count)
    return Call("channel_send", (there.address,), array, (there.holder,), _stream(there))


def barrier() -> Call:
    return Call("barrier", (), None, (), None)


def with_residual(name: str, array: Any, out: Any, counts: Tuple[int, int]) -> Call:
    """A call with a residual. counts: elements of the input and of the result."""
    result = array if out is None else out
    there = _buffers.writable(result)
    send = there if out is None else _buffers.of(array)
    _pair(send, there)
    if send.dtype is not Dtype.FLOAT32:
        raise ArgumentError(f"calls with a residual are of float32, not of {send.type_name}")
    _expect("the input", send.count, counts[0])
    if there.address != send.address:
        _expect("the result", there.count, counts[1])
    holders = (send.holder, there.holder)
    return Call(name, (send.address, there.address), result, holders, _stream(send))


def before_start(call: Call) -> None:
    """Calls that are begun take the data that is there."""
    if call.stream is not None:
        _cuda.synchronize(call.stream)

