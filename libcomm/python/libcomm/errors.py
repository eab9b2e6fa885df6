# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Exceptions, one for each status of the library. Their text is libcomm's sentence."""

from __future__ import annotations

import builtins
from typing import Dict, Type

from ._header import Status


class Error(Exception):
    """A call of libcomm failed. The text says who, what, why and what to do.

    After an error of an operation the communicator is of no more use: every later call raises the
    same one, on all ranks. Only refused arguments (ArgumentError, PolicyError, StateError) leave it
    as it was.
    """

    status: Status = Status.ERR_INTERNAL


class ArgumentError(Error, ValueError):
    """An argument makes no sense; nothing was done."""

    status = Status.ERR_ARGUMENT


class PolicyError(Error, ValueError):
    """The policy cannot be read, or not be used here; the position in it is named."""

    status = Status.ERR_POLICY


class OutOfMemoryError(Error, builtins.MemoryError):
    """A rank found no memory."""

    status = Status.ERR_MEMORY


class TransportError(Error, builtins.ConnectionError):
    """A connection to another rank broke, or cannot be made."""

    status = Status.ERR_TRANSPORT


class PeerTimeoutError(Error, builtins.TimeoutError):
    """A rank is dead, stopped or late; it is named."""

    status = Status.ERR_TIMEOUT


# What a rank that was lost lets the calls of the others raise.
LOST = (TransportError, PeerTimeoutError)


class MismatchError(Error):
    """Ranks made different calls, or have different versions or policies; both are named."""

    status = Status.ERR_MISMATCH


class WireError(Error):
    """Bytes of a peer, or of a saved state, are damaged."""

    status = Status.ERR_WIRE


class UnsupportedError(Error):
    """This build, or this system, cannot do it."""

    status = Status.ERR_UNSUPPORTED


class StateError(Error):
    """The call is not allowed now."""

    status = Status.ERR_STATE


class RemoteError(Error):
    """Another rank failed; what it said is in the text."""

    status = Status.ERR_REMOTE


class AbortedError(Error):
    """A rank gave up (Communicator.abort, or an exception of its program)."""

    status = Status.ERR_ABORTED


class SystemCallError(Error, OSError):
    """A call of the system, or of CUDA, failed."""

    status = Status.ERR_SYSTEM


class InternalError(Error):
    """A fault of libcomm itself; please report it."""

    status = Status.ERR_INTERNAL


class LibraryError(ImportError):
    """libcomm.so is not there, cannot be opened, or has another version."""


BY_STATUS: Dict[int, Type[Error]] = {
    int(each.status): each for each in Error.__subclasses__()  # in the order of the statuses
}


def make(status: int, sentence: str) -> Error:
    """The exception of a status; InternalError for one that this package does not know."""
    return BY_STATUS.get(status, InternalError)(sentence or f"libcomm failed with status {status}")
