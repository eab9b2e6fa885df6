# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Calls with error feedback: what one call did not send is added to the next."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, List, Optional, Tuple

from . import _buffers, _calls
from . import guard as _guard
from ._calls import Call
from ._header import Dtype
from ._library import lib
from ._structs import CGuardFigures
from .errors import ArgumentError, StateError
from .guard import Guard
from .request import Request

if TYPE_CHECKING:
    from ._collectives import Collectives


class _Residual:
    """What both kinds have in common."""

    def __init__(self, comm: "Collectives", handle: Optional[int], total: int) -> None:
        self._comm = comm
        self._handle = handle
        self._total = total

    @property
    def _counts(self) -> Tuple[int, int]:
        """Elements of the input and of the result."""
        return self._total, self._total

    def _handle_now(self) -> int:
        self._comm._handle_now()
        if self._handle is None:
            raise StateError("the residual was closed")
        return self._handle

    def _run(self, call: Call) -> Any:
        return self._comm._run(call, self._handle_now())

    def _start(self, call: Call) -> Request:
        return self._comm._start(call, self._handle_now())

    def discard(self) -> None:
        """Undo the last call with it, as if it had never been. Collective.

        Needs undo=on or nonfinite=discard in the policy (else StateError).
        """
        self._comm._check(lib.lcomm_residual_discard(self._handle_now()))

    def get(self, values: Any) -> Any:
        """Copy what this rank keeps into `values`, and return it.

        values: float32 on the host, as many elements as the input of a call; 0 where this rank
        keeps none. The sum over all ranks is what was not applied yet.
        """
        there = _buffers.writable(values)
        is_fit = there.dtype is Dtype.FLOAT32 and not there.is_on_device
        if not is_fit or there.count != self._total:
            raise ArgumentError(
                f"values must have {self._total} elements of float32 on the host, not "
                f"{there.count} of {there.type_name}{' on a device' if there.is_on_device else ''}"
            )
        self._comm._check(lib.lcomm_residual_get(self._handle_now(), there.address))
        return values

    @property
    def calls(self) -> int:
        """How many calls with it, flushes too, have been finished and not undone.

        After Communicator.shrink() it is the same on all ranks: where it is less than the calls
        that have returned here, the last one is undone, on all ranks, and made again.
        """
        number = ctypes.c_uint64()
        self._comm._check(lib.lcomm_residual_calls(self._handle_now(), ctypes.byref(number)))
        return number.value

    def guard(self) -> Guard:
        """What the last check of guard= found of its calls; checks is 0 before the first.

        `tensor` is the residual's name, "" without one; `step` counts calls.
        """
        raw = CGuardFigures()
        self._comm._check(lib.lcomm_residual_guard(self._handle_now(), ctypes.byref(raw)))
        return _guard.of(raw)

    def close(self) -> None:
        """Forget it, and what it holds, as the communicator's end does. May be called again."""
        handle, self._handle = self._handle, None
        if handle is not None and self._comm._handle is not None:
            self._comm._check(lib.lcomm_residual_destroy(handle))


class Residual(_Residual):
    """For all-reduces of one array of float32, from Communicator.residual()."""

    def allreduce(self, array: Any, out: Any = None) -> Any:
        """Sum over the ranks through the policy's codec, in place unless `out` is given.

        array, out: float32, of the residual's number of elements, on the host or on a device; there
        the call is in order with the current stream, and the next one waits until it is over.
        Returns the result. Errors as Communicator.allreduce.
        """
        return self._run(_calls.with_residual("allreduce_ef", array, out, self._counts))

    def iallreduce(self, array: Any, out: Any = None) -> Request:
        """The same, begun. One call at a time may be under way with a residual."""
        return self._start(_calls.with_residual("allreduce_ef", array, out, self._counts))

    def flush(self, array: Any, out: Any = None) -> Any:
        """The exact sum of `array` and what all ranks keep, of which nothing is left then.

        On a device it is in order with the current stream, too.
        """
        return self._run(_calls.with_residual("allreduce_flush", array, out, self._counts))

    def iflush(self, array: Any, out: Any = None) -> Request:
        """The same, begun."""
        return self._start(_calls.with_residual("allreduce_flush", array, out, self._counts))


class ScatterResidual(_Residual):
    """For reduce-scatters of one array of float32, from Communicator.scatter_residual()."""

    @property
    def counts(self) -> List[int]:
        """How many elements each rank receives; even parts after a change of ranks."""
        parts = (ctypes.c_uint64 * self._comm._size)()
        self._comm._check(lib.lcomm_residual_counts(self._handle_now(), parts))
        return list(parts)

    @property
    def _counts(self) -> Tuple[int, int]:
        return self._total, self.counts[self._comm._rank]

    def reduce_scatter(self, array: Any, out: Any) -> Any:
        """Each rank receives its part of the sum over the ranks, through the policy's codec.

        array: float32, the sum of all counts in elements; out: counts[rank] elements, or this
        rank's part of array; on a device as in Residual.allreduce(). Returns out. Errors as
        Communicator.reduce_scatter.
        """
        return self._run(_calls.with_residual("reduce_scatter_ef", array, out, self._counts))

    def ireduce_scatter(self, array: Any, out: Any) -> Request:
        """The same, begun. One call at a time may be under way with a residual."""
        return self._start(_calls.with_residual("reduce_scatter_ef", array, out, self._counts))

    def flush(self, array: Any, out: Any) -> Any:
        """The exact sum of `array` and what all ranks keep, of which nothing is left then.

        On a device it is in order with the current stream, too.
        """
        return self._run(_calls.with_residual("reduce_scatter_flush", array, out, self._counts))

    def iflush(self, array: Any, out: Any) -> Request:
        """The same, begun."""
        return self._start(_calls.with_residual("reduce_scatter_flush", array, out, self._counts))
