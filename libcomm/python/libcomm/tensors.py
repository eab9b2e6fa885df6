# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Named gradients: averaged every step, fused into buckets, with error feedback of their own."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Callable, Optional, Tuple, Union

from . import _buffers, _calls
from . import guard as _guard
from ._buffers import Buffer
from ._core import Core
from ._header import Dtype, Link, Op
from ._library import lib
from ._structs import CGuardFigures, GuardFunction
from .errors import ArgumentError
from .guard import Guard

if TYPE_CHECKING:
    from .communicator import Communicator


class Tensor:
    """A gradient with a name, from Communicator.add_tensor().

    Each step: ready() as soon as backward has made it, in any order and from any thread, and then
    Communicator.wait_tensors(). In between its memory belongs to the library.
    """

    def __init__(
        self, comm: "Communicator", handle: Optional[int], name: str, buffer: Buffer
    ) -> None:
        self._comm = comm
        self._handle = handle
        self._buffer = buffer
        self.name = name

    @property
    def memory(self) -> Any:
        """The array that it lies in: that of add_tensor(), or the last one that ready() was given.

        The array itself of numpy, of torch and on a device, else a memoryview of it.
        """
        return self._buffer.holder

    def ready(self, array: Any = None) -> None:
        """The gradient of this step is in the tensor's memory; array: in this one, from now on.

        array: as many elements of the same type. On a device the gradient is there when the
        current stream has come to here. Raises StateError when it was ready in this step already.
        """
        handle = self._comm._handle_now()
        buffer = self._buffer
        if array is not None:
            buffer = _buffers.writable(array)
            _calls.expect_like(buffer, self._buffer)
            self._comm._check(lib.lcomm_tensor_data_set(handle, self._handle, buffer.address))
            self._buffer = buffer
        if buffer.is_on_device:
            stream = buffer.stream or 0
            status = lib.lcomm_tensor_ready_on_stream(handle, self._handle, stream)
        else:
            status = lib.lcomm_tensor_ready(handle, self._handle)
        self._comm._check(status)

    def wait(self) -> None:
        """Return when it holds its result, before the step's end.

        Raises StateError where another tensor has to be ready first, which is named.
        """
        self._comm._check(lib.lcomm_tensor_wait(self._comm._handle_now(), self._handle))

    def test(self) -> bool:
        """Does it hold its result?"""
        done = ctypes.c_int(0)
        handle = self._comm._handle_now()
        self._comm._check(lib.lcomm_tensor_test(handle, self._handle, ctypes.byref(done)))
        return bool(done.value)

    def freeze(self) -> None:
        """Leave it out of the steps, on all ranks, between two steps. Its residual waits."""
        self._comm._check(lib.lcomm_tensor_freeze(self._comm._handle_now(), self._handle))

    def unfreeze(self) -> None:
        """Take it in again."""
        self._comm._check(lib.lcomm_tensor_unfreeze(self._comm._handle_now(), self._handle))

    def scale(self, before: float, after: float) -> None:
        """Factors of each rank's gradient before all else, and of the result. Between two steps.

        Equal on all ranks, finite, not 0. Residuals are in units of what `before` makes.
        """
        handle = self._comm._handle_now()
        self._comm._check(lib.lcomm_tensor_scale(handle, self._handle, before, after))

    def residual(self, values: Any) -> Any:
        """Copy what this rank keeps of it into `values`, and return them. Between two steps.

        values: float32 on the host, as many elements; 0 where this rank keeps none.
        """
        there = _buffers.writable(values)
        is_fit = there.dtype is Dtype.FLOAT32 and not there.is_on_device
        if not is_fit or there.count != self._buffer.count:
            raise ArgumentError(
                f"values must have {self._buffer.count} elements of float32 on the host, not "
                f"{there.count} of {there.type_name}"
            )
        handle = self._comm._handle_now()
        self._comm._check(lib.lcomm_tensor_residual(handle, self._handle, there.address))
        return values

    def codec(self, link: Union[Link, str] = "net") -> str:
        """The codec that the policy has for it between nodes, or on another class of links."""
        kind = Link[link.upper().replace("-", "_")] if isinstance(link, str) else link
        text, handle = ctypes.create_string_buffer(128), self._comm._handle_now()
        self._comm._check(lib.lcomm_tensor_codec(handle, self._handle, kind, text, len(text)))
        return text.value.decode()

    def guard(self) -> Guard:
        """What the last check of guard= found of it; checks is 0 before the first."""
        raw, handle = CGuardFigures(), self._comm._handle_now()
        self._comm._check(lib.lcomm_tensor_guard(handle, self._handle, ctypes.byref(raw)))
        return _guard.of(raw)

    def __repr__(self) -> str:
        return f"<libcomm.Tensor {self.name}, {self._buffer.count} {self._buffer.type_name}>"


class Tensors(Core):
    """The part of a communicator that knows named gradients."""

    _guard_function: Any = None  # what the library calls

    def on_guard(self, function: Optional[Callable[[Guard], Any]]) -> None:
        """From the next check of guard= on call function(guard) for each tensor; None: nothing.

        On every rank, in wait_tensors(), or in the call that finds a residual's request over. It
        must not call libcomm; what it raises is printed, and the step goes on.
        """
        called = None
        if function is not None:
            told = function

            def tell(_context: Any, raw: Any) -> None:
                told(_guard.of(raw.contents))

            called = GuardFunction(tell)
        self._check(lib.lcomm_guard_set(self._handle_now(), called, None))
        self._guard_function = called

    def add_tensor(
        self,
        name: str,
        array: Any,
        op: Union[Op, str] = "avg",
        shape: Optional[Tuple[int, int]] = None,
    ) -> Tensor:
        """Register a gradient, in the same order on all ranks, before a step.

        name: unique, at most 127 bytes; exempt= and patterns of the policy fit it. array: its
        memory, float or integer, until Tensor.ready() is given another; its order decides that of
        the buckets, so add gradients as backward makes them. op: "avg" or "sum". shape: rows and
        columns of a matrix that net=lowrank of the policy may send as two factors, row by row in
        memory; of a weight with more dimensions the first one, and the others together.
        """
        buffer, handle = _buffers.writable(array), ctypes.c_void_p()
        if shape is not None and shape[0] * shape[1] != buffer.count:
            raise ArgumentError(
                f"tensor {name}: {shape[0]} rows of {shape[1]} columns are not the {buffer.count} "
                "elements of its array"
            )
        add = lib.lcomm_tensor_add if shape is None else lib.lcomm_tensor_add_shaped
        status = add(
            self._handle_now(),
            name.encode(),
            buffer.address,
            *(shape or (buffer.count,)),
            _calls.summed_type(buffer),
            _calls.op_of(op),
            ctypes.byref(handle),
        )
        self._check(status)
        return Tensor(self, handle.value, name, buffer)  # type: ignore[arg-type]

    def wait_tensors(self) -> None:
        """Finish the step: return when every tensor that is not frozen holds its result.

        Raises StateError naming the first that was not ready, MismatchError where ranks have
        different tensors, or as allreduce().
        """
        self._check(lib.lcomm_tensors_wait(self._handle_now()))

    def next_result(self) -> bool:
        """Hand out the next result: True where the tensors hold it now, False if there is no more.

        With stale= of the policy results come later than their steps, each once, in order: call it
        after wait_tensors() until it is False, and apply each. Without, it is True once a step.
        """
        there = ctypes.c_int()
        self._check(lib.lcomm_tensors_next(self._handle_now(), ctypes.byref(there)))
        return bool(there.value)

    def sync_results(self) -> bool:
        """The same, waiting for results that are under way; to be called until it is False.

        Then all ranks have been handed out the same ones, which is compared (else MismatchError).
        Collective: before weights are compared, tested or saved.
        """
        there = ctypes.c_int()
        self._check(lib.lcomm_tensors_sync(self._handle_now(), ctypes.byref(there)))
        return bool(there.value)

    @property
    def tensors_not_finite(self) -> int:
        """NaN and Inf in the results of the last finished step; the same on all ranks."""
        return int(lib.lcomm_tensors_not_finite(self._handle_now()))

    @property
    def tensors_momentum(self) -> bool:
        """With adam= of the policy: do tensors hold the average of the momentum, not of gradients?

        Of the step in flight, else of the last finished one; the same on all ranks.
        """
        is_momentum = ctypes.c_int()
        self._check(lib.lcomm_tensors_momentum(self._handle_now(), ctypes.byref(is_momentum)))
        return bool(is_momentum.value)

    def discard_step(self) -> None:
        """Undo the last finished step, as if it had never been. Collective, right after it.

        Needs undo=on or nonfinite=discard in the policy (else StateError).
        """
        self._check(lib.lcomm_tensors_discard(self._handle_now()))
