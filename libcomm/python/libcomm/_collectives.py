# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""The collectives of a communicator."""

from __future__ import annotations

import ctypes
from typing import Any, Optional, Sequence, Union

from . import _calls
from ._calls import Call
from ._core import Core
from ._header import Op
from ._library import lib
from .request import Request


def _begun(name: str) -> str:
    """lcomm_iallreduce of allreduce, lcomm_channel_isend of channel_send."""
    subject = "channel_" if name.startswith("channel_") else ""
    return f"lcomm_{subject}i{name[len(subject):]}"


class Collectives(Core):
    """Collectives on arrays; every rank makes the same calls in the same order.

    An array is a numpy array, a torch tensor, a CuPy array, or has the buffer protocol or
    __cuda_array_interface__. It is used where it lies: nothing is copied, so its elements must lie
    one after the other (else ArgumentError). Shapes do not matter, numbers of elements do. Sums
    know float32, float16, bfloat16, float64, int32, int64, int8 and uint8; calls that move data
    know all types, and are exact.

    Arrays on a device: calls are in order with the current stream of the array's framework;
    those that begin with i wait for it first.

    Every call may raise ArgumentError, MismatchError (ranks made different calls),
    PeerTimeoutError, TransportError, RemoteError or AbortedError; all ranks raise the same.
    The forms that begin with i return at once, with a Request.
    """

    # ------------------------------------------------------------------ begun

    def _run(self, call: Call, subject: Optional[int] = None) -> Any:
        """Make it, on the communicator or on a residual of it."""
        handle = self._handle_now() if subject is None else subject
        if call.stream is None:
            status = getattr(lib, "lcomm_" + call.name)(handle, *call.arguments)
        else:
            function = getattr(lib, f"lcomm_{call.name}_on_stream")
            status = function(handle, *call.arguments, call.stream)
        if status != 0:
            self._check(status)
        return call.result

    def _start(self, call: Call, subject: Optional[int] = None) -> Request:
        handle = self._handle_now() if subject is None else subject
        _calls.before_start(call)
        request = Request(self, call.result, call.holders)
        function = getattr(lib, _begun(call.name))
        self._check(function(handle, *call.arguments, ctypes.byref(request._raw)))
        self._running.add(request)
        return request

    # ------------------------------------------------------------------- sums

    def allreduce(
        self,
        array: Any,
        op: Union[Op, str] = "sum",
        out: Any = None,
        before: float = 1.0,
        after: float = 1.0,
    ) -> Any:
        """Sum over the ranks, element by element: in place, or into `out`.

        op: "sum", "avg", "min" or "max". out: as many elements of the same type; it does not
        overlap array. before multiplies each rank's elements, after the sum; both finite and
        not 0. Returns the result: array, or out.
        """
        return self._run(_calls.allreduce(array, out, op, before, after))

    def iallreduce(
        self,
        array: Any,
        op: Union[Op, str] = "sum",
        out: Any = None,
        before: float = 1.0,
        after: float = 1.0,
    ) -> Request:
        """allreduce(), begun."""
        return self._start(_calls.allreduce(array, out, op, before, after))

    def reduce_scatter(
        self,
        array: Any,
        out: Any,
        counts: Optional[Sequence[int]] = None,
        op: Union[Op, str] = "sum",
        before: float = 1.0,
        after: float = 1.0,
    ) -> Any:
        """Each rank receives its part of the sum over the ranks.

        array: the parts of all ranks, one after the other. out: this rank's part, also as a view
        of array. counts: elements of each part, equal on all ranks; None: all are as long.
        before, after: as in allreduce(), of arrays on a device. Returns out.
        """
        if before != 1.0 or after != 1.0:
            place, factors = (self._rank, self._size), (before, after)
            return self._run(_calls.reduce_scatter_scaled(array, out, counts, op, place, factors))
        return self._run(_calls.reduce_scatter(array, out, counts, op, self._rank, self._size))

    def ireduce_scatter(
        self,
        array: Any,
        out: Any,
        counts: Optional[Sequence[int]] = None,
        op: Union[Op, str] = "sum",
    ) -> Request:
        """reduce_scatter(), begun."""
        return self._start(_calls.reduce_scatter(array, out, counts, op, self._rank, self._size))

    # ------------------------------------------------------------------ moves

    def allgather(self, array: Any, out: Any, counts: Optional[Sequence[int]] = None) -> Any:
        """All ranks receive the arrays of all, one after the other in the order of ranks.

        array: this rank's part, also as a view of out. counts: elements of each part, equal on
        all ranks; None: all are as long. Exact. Returns out.
        """
        return self._run(_calls.allgather(array, out, counts, self._rank, self._size))

    def iallgather(self, array: Any, out: Any, counts: Optional[Sequence[int]] = None) -> Request:
        """allgather(), begun."""
        return self._start(_calls.allgather(array, out, counts, self._rank, self._size))

    def alltoall(self, array: Any, out: Any = None) -> Any:
        """Part r of array goes to rank r; what rank s sends here becomes part s of the result.

        array: as many parts of one length as there are ranks. out: as long; None: in place.
        Exact. Returns the result.
        """
        return self._run(_calls.alltoall(array, out, self._size))

    def ialltoall(self, array: Any, out: Any = None) -> Request:
        """alltoall(), begun."""
        return self._start(_calls.alltoall(array, out, self._size))

    def broadcast(self, array: Any, root: int = 0) -> Any:
        """All ranks receive the array of rank `root`. Exact. Returns array."""
        return self._run(_calls.broadcast(array, root))

    def ibroadcast(self, array: Any, root: int = 0) -> Request:
        """broadcast(), begun."""
        return self._start(_calls.broadcast(array, root))

    # ------------------------------------------------------------------ others

    def barrier(self) -> None:
        """Return when all ranks are here."""
        self._run(_calls.barrier())

    def ibarrier(self) -> Request:
        """barrier(), begun."""
        return self._start(_calls.barrier())

    def progress(self) -> None:
        """Move what was begun forward, without waiting; for long computations."""
        self._check(lib.lcomm_progress(self._handle_now()))
