# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Messages with error feedback: what was not sent of one is added to the next."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Optional

from . import _buffers, _calls
from ._header import Dtype
from ._library import lib
from .errors import ArgumentError, StateError
from .request import Request

if TYPE_CHECKING:
    from ._pairs import Pairs


class Channel:
    """For messages of one meaning to one rank, from Communicator.channel().

    With pipe=CODEC+ef in the policy what a message leaves out waits here for the next one; without
    it messages travel as those of Communicator.send(). The receiver receives as always.
    """

    def __init__(self, comm: "Pairs", handle: Optional[int], peer: int, count: int) -> None:
        self._comm = comm
        self._handle = handle
        self._left: Any = None  # what waited when the communicator went on with other ranks
        self.peer = peer
        self.count = count

    def _handle_now(self) -> int:
        if self._left is not None:
            raise StateError(
                "the communicator went on with other ranks, which have other numbers: make another "
                "channel"
            )
        self._comm._handle_now()
        if self._handle is None:
            raise StateError("the channel was closed")
        return self._handle

    def send(self, array: Any) -> None:
        """Send a message to the channel's peer.

        array: `count` elements of float32, on the host or on a device, where the call is in order
        with the current stream; it stays as it is. Errors as Communicator.send().
        """
        handle, call = self._handle_now(), _calls.channel_send(array, self.count)
        self._comm._message(call, handle)

    def isend(self, array: Any) -> Request:
        """The same, begun; array is on the host. Several may be under way: they go in their order.

        array belongs to the library until Request.wait() returns.
        """
        return self._comm._start(_calls.channel_send(array, self.count), self._handle_now())

    def get(self, values: Any) -> Any:
        """Copy what waits into `values`, and return it.

        values: `count` elements of float32 on the host. The sum of what was sent is that of what
        was received and what waits, within rounding. It can be had when the communicator has gone
        on with other ranks, too. Raises StateError while a message is in flight.
        """
        there = _buffers.writable(values)
        if there.dtype is not Dtype.FLOAT32 or there.is_on_device or there.count != self.count:
            raise ArgumentError(
                f"values must have {self.count} elements of float32 on the host, not "
                f"{there.count} of {there.type_name}{' on a device' if there.is_on_device else ''}"
            )
        if self._left is not None:
            ctypes.memmove(there.address, self._left, ctypes.sizeof(self._left))
        else:
            self._comm._check(lib.lcomm_channel_get(self._handle_now(), there.address))
        return values

    def _take_leave(self) -> None:
        """Its communicator goes on with other ranks: what waits is all that stays."""
        left = (ctypes.c_float * self.count)()
        if self._handle is not None:
            lib.lcomm_channel_get(self._handle, left)
        self._handle, self._left = None, left

    def close(self) -> None:
        """Forget it, and what waits in it. May be called again.

        Raises StateError while a message of it is in flight.
        """
        handle = self._handle
        if handle is not None and self._comm._handle is not None:
            self._comm._check(lib.lcomm_channel_destroy(handle))
        self._handle = None
        self._comm._channels.discard(self)
