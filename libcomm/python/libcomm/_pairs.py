# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Messages between two ranks: the sends and receives of pipeline and model parallelism."""

from __future__ import annotations

import contextlib
import ctypes
from typing import Any, Iterator, List, Optional

from . import _calls
from ._calls import Call
from ._collectives import Collectives
from ._library import lib
from .channel import Channel
from .request import Request


class Pairs(Collectives):
    """The part of a communicator that sends arrays to one rank, and receives them.

    The n-th send to a rank is what that rank's n-th receive from this one gets; there are no tags.
    Both have as many elements of one type (else MismatchError, on all ranks); shapes do not matter.
    No other rank takes part, and messages and collectives do not wait for each other. They are
    exact unless the policy has pipe=CODEC. Long messages (over 4072 bytes) go when the receiver
    asks for them: ranks that send to each other use requests, or a group.

    Arrays are as for collectives. On a device a call is in order with the current stream.
    """

    _groups = 0  # that are open, one in the other
    _grouped: List[Any]  # arrays of messages whose group is open

    def _message(self, call: Call, subject: Optional[int] = None) -> Any:
        if self._groups:
            self._grouped.append(call.holders)
        return self._run(call, subject)

    def send(self, array: Any, to: int) -> None:
        """Send an array to rank `to`; it may be changed when the call returns.

        Raises ArgumentError, MismatchError, PeerTimeoutError (the rank that did not receive is
        named), TransportError, WireError, RemoteError.
        """
        self._message(_calls.send(array, to))

    def recv(self, array: Any, sender: int) -> Any:
        """Receive into array what rank `sender` sends. Returns array.

        array: as many elements of the same type as are sent. Raises as send().
        """
        return self._message(_calls.recv(array, sender))

    def isend(self, array: Any, to: int) -> Request:
        """send(), begun. array is on the host, and is not changed until Request.wait() returns."""
        return self._start(_calls.send(array, to))

    def irecv(self, array: Any, sender: int) -> Request:
        """recv(), begun. array is on the host; it is there when Request.wait() returns it."""
        return self._start(_calls.recv(array, sender))

    @contextlib.contextmanager
    def group(self) -> Iterator[None]:
        """Messages that do not wait for each other, in whatever order they are made:

            with comm.group():
                comm.send(mine, to=next)
                comm.recv(theirs, sender=before)

        send(), recv() and Channel.send() return at once in it, and its end waits for them; until
        then their arrays are not used otherwise. Groups may be nested: the outermost end counts.
        """
        if not self._groups:
            self._grouped = []
        self._check(lib.lcomm_group_begin(self._handle_now()))
        self._groups += 1
        try:
            yield
        except BaseException:
            self._end_group()  # those that were made are received all the same
            raise
        self._check(self._end_group())

    def _end_group(self) -> int:
        self._groups -= 1
        status = lib.lcomm_group_end(self._handle) if self._handle is not None else 0
        if not self._groups:
            self._grouped = []
        return int(status)

    def channel(self, peer: int, count: int) -> Channel:
        """Error feedback for messages of `count` float32 to rank `peer`. Local.

        It pays where messages of a channel are alike, or add up at the receiver, such as the
        gradients of a layer's activations. Raises ArgumentError, OutOfMemoryError.
        """
        handle = ctypes.c_void_p()
        status = lib.lcomm_channel_create(self._handle_now(), peer, count, ctypes.byref(handle))
        self._check(status)
        made = Channel(self, handle.value, peer, count)
        self._channels.add(made)
        return made
