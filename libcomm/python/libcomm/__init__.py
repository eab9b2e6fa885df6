# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""libcomm: exact collectives inside a node, compressed ones between nodes.

    import libcomm, numpy

    with libcomm.Communicator.from_env(policy="net=int8") as comm:
        gradient = numpy.ones(1000, dtype=numpy.float32)
        comm.allreduce(gradient, op="avg")

The classes are Communicator, Request, Channel, Residual, ScatterResidual, Tensor, Guard, Preview,
ServerPiece and Stats. What a policy may say, and what every call promises, is in libcomm.h.
LIBCOMM_LIBRARY names libcomm.so where it is not found.
"""

from . import errors
from ._elastic import Changes, Regrouped, Shrunk
from ._header import CallKind, Dtype, Link, LogLevel, Op, Progress, Selection, Status
from ._late import Lateness, Staleness
from ._library import path as library_path
from ._log import log
from ._servers import ServerPiece
from ._version import __version__
from .channel import Channel
from .communicator import Communicator
from .errors import (
    AbortedError,
    ArgumentError,
    Error,
    InternalError,
    LibraryError,
    MismatchError,
    OutOfMemoryError,
    PeerTimeoutError,
    PolicyError,
    RemoteError,
    StateError,
    SystemCallError,
    TransportError,
    UnsupportedError,
    WireError,
)
from ._memory import memory
from .guard import Guard
from .policy import Answer, Bytes, Facts, Preview
from .request import Request
from .residual import Residual, ScatterResidual
from .stats import RackStats, Stats
from .tensors import Tensor

__all__ = [
    "AbortedError",
    "Answer",
    "ArgumentError",
    "Bytes",
    "CallKind",
    "Changes",
    "Channel",
    "Communicator",
    "Dtype",
    "Error",
    "Facts",
    "Guard",
    "InternalError",
    "Lateness",
    "LibraryError",
    "Link",
    "LogLevel",
    "MismatchError",
    "Op",
    "OutOfMemoryError",
    "PeerTimeoutError",
    "PolicyError",
    "Preview",
    "Progress",
    "RackStats",
    "Regrouped",
    "RemoteError",
    "Request",
    "Residual",
    "ScatterResidual",
    "Selection",
    "ServerPiece",
    "Shrunk",
    "Staleness",
    "StateError",
    "Stats",
    "Status",
    "SystemCallError",
    "Tensor",
    "TransportError",
    "UnsupportedError",
    "WireError",
    "__version__",
    "errors",
    "library_path",
    "log",
    "memory",
]
