# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Enumerators of libcomm's public headers, mirrored for ctypes.

A test compares them with the headers.
"""

from __future__ import annotations

import enum
from typing import List, Tuple

# ------------------------------------------------------------------ enumerators


class Status(enum.IntEnum):
    """What a call of the library returns."""

    OK = 0
    ERR_ARGUMENT = -1
    ERR_POLICY = -2
    ERR_MEMORY = -3
    ERR_TRANSPORT = -4
    ERR_TIMEOUT = -5
    ERR_MISMATCH = -6
    ERR_WIRE = -7
    ERR_UNSUPPORTED = -8
    ERR_STATE = -9
    ERR_REMOTE = -10
    ERR_ABORTED = -11
    ERR_SYSTEM = -12
    ERR_INTERNAL = -13


class Dtype(enum.IntEnum):
    """Types of elements."""

    FLOAT32 = 0
    FLOAT16 = 1
    BFLOAT16 = 2
    FLOAT64 = 3
    INT32 = 4
    INT64 = 5
    INT8 = 6
    UINT8 = 7


class Op(enum.IntEnum):
    """What a sum is: over ranks, or divided by their number, or the least or greatest value."""

    SUM = 0
    AVG = 1
    MIN = 2
    MAX = 3


class Link(enum.IntEnum):
    """Classes of links, from near to far; NET lies between nodes."""

    SELF = 0
    SAME_DEVICE = 1
    NVLINK = 2
    PCIE = 3
    SHM = 4
    NET = 5


LINK_COUNT = len(Link)


class Progress(enum.IntEnum):
    """Who moves running operations: calls of the program, or a thread of the library as well."""

    DEFAULT = 0
    CALLS = 1
    THREAD = 2
    AUTO = 3


class CallKind(enum.IntEnum):
    """Kinds of calls that a policy tells apart."""

    ALLREDUCE = 0
    REDUCE_SCATTER = 1
    ALLGATHER = 2
    BROADCAST = 3


class Selection(enum.IntEnum):
    """What a policy says of a call: not selected, exact, lossy, or lossy with a residual only."""

    NONE = 0
    EXACT = 1
    LOSSY = 2
    EF = 3


class LogLevel(enum.IntEnum):
    """How much is told: sentences of a level, and of those before it."""

    NONE = 0
    ERROR = 1
    WARN = 2
    INFO = 3
    DEBUG = 4
    TRACE = 5


# Enumeration of the headers, and what its names begin with there.
ENUMS: List[Tuple[type, str, str]] = [
    (Status, "lcomm_status", "LCOMM_"),
    (Dtype, "lcomm_dtype", "LCOMM_"),
    (Op, "lcomm_op", "LCOMM_"),
    (Link, "lcomm_link", "LCOMM_LINK_"),
    (Progress, "lcomm_progress_mode", "LCOMM_PROGRESS_"),
    (CallKind, "lcomm_call_kind", "LCOMM_CALL_"),
    (Selection, "lcomm_selection", "LCOMM_SELECT_"),
    (LogLevel, "lcomm_log_level", "LCOMM_LOG_"),
]
