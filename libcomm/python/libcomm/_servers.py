# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Ranks that sum for all others, or make weights of their gradients: algo=servers."""

from __future__ import annotations

import ctypes
from typing import Any, Callable, NamedTuple, Optional

from ._core import Core
from ._library import lib
from ._structs import CServerPiece, UpdateFunction


class ServerPiece(NamedTuple):
    """What a server has of a tensor in a step."""

    name: str  # of the tensor
    first: int  # element of the tensor; from here on
    values: Any  # float32, in: sum or average of the gradients; out: what workers receive
    step: int  # of this tensor, from 0; in order
    used: int  # workers whose gradients are in it


Update = Callable[[ServerPiece], Any]


def _view(address: int, count: int) -> Any:
    """That memory: a numpy array, without numpy a memoryview."""
    block = (ctypes.c_float * count).from_address(address)
    try:
        import numpy
    except ImportError:
        return memoryview(block).cast("B").cast("f")
    return numpy.frombuffer(memoryview(block), dtype=numpy.float32)


def _piece_of(raw: CServerPiece) -> ServerPiece:
    values = _view(raw.values, raw.count)
    return ServerPiece(raw.name.decode(), raw.first, values, raw.step, raw.used)


class Servers(Core):
    """The part of a communicator that knows servers; libcomm_servers.h says more.

    With algo=servers servers=0,1 in the policy ranks 0 and 1 own all tensors, in pieces, and the
    others are workers. All add the same tensors. Workers make steps as ever, then server_end();
    servers call server_run().
    """

    @property
    def is_server(self) -> bool:
        """Is this rank a server? False without algo=servers."""
        return bool(lib.lcomm_is_server(self._handle_now()))

    def server_run(self, update: Optional[Update] = None) -> None:
        """Be a server until all workers have called server_end(), however long they take.

        update: None: workers receive the sums or averages of their gradients. Else update(piece) is
        called in each step for each piece, on this thread, and workers receive what it leaves in
        piece.values, new weights say; given by all servers or by none. piece.values is an array of
        numpy (without numpy a memoryview) of float32 in memory of the library: valid during the
        call, so copy what is to stay. It makes no collective call. What it raises is raised here,
        and ends the communicator on all ranks.

        Raises StateError (this rank is no server; no tensors), MismatchError (some servers have an
        update and others none, or tensors or workers differ), PeerTimeoutError, TransportError
        (a worker or another server was lost), AbortedError.
        """
        handle, troubles = self._handle_now(), []

        def call(_context: Any, raw: Any) -> int:
            assert update is not None
            try:
                update(_piece_of(raw.contents))
            except BaseException as trouble:
                troubles.append(trouble)
                why = f"{type(trouble).__name__}: {trouble}"[:400]
                name = raw.contents.name.decode()
                reason = f"the update of tensor {name} at a server ends with {why}"
                lib.lcomm_abort(handle, reason.encode())
                return 1
            return 0

        called = None if update is None else UpdateFunction(call)
        status = lib.lcomm_server_run(handle, called, None)
        if troubles:
            raise troubles[0]
        self._check(status)

    def server_end(self) -> None:
        """On a worker: there are no more steps for now, so servers return from server_run().

        All workers call it between the same two steps, and wait for all. Until then servers take
        part in nothing else. close() calls it where it was forgotten. Raises StateError (no worker;
        in a step; results of stale= are under way: sync first), MismatchError, or as barrier().
        """
        self._check(lib.lcomm_server_end(self._handle_now()))
