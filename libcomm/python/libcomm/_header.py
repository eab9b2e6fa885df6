# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Enumerators and structs of libcomm's public headers, mirrored for ctypes.

A test compares them with the headers.
"""

from __future__ import annotations

import ctypes
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

# ---------------------------------------------------------------------- structs

AllgatherFunction = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t
)


class CBootstrap(ctypes.Structure):
    _fields_ = [
        ("rank", ctypes.c_int),
        ("world_size", ctypes.c_int),
        ("context", ctypes.c_void_p),
        ("allgather", AllgatherFunction),
    ]


class CConfig(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("policy", ctypes.c_char_p),
        ("timeout_s", ctypes.c_double),
        ("nodes", ctypes.c_int),
        ("transport", ctypes.c_char_p),
        ("progress", ctypes.c_int),
    ]


class CRequest(ctypes.Structure):
    _fields_ = [
        ("internal", ctypes.c_void_p),
        ("state", ctypes.c_int32),
        ("status", ctypes.c_int32),
        ("not_finite", ctypes.c_uint64),
    ]


_PER_LINK = ctypes.c_uint64 * LINK_COUNT


class CStats(ctypes.Structure):
    _fields_ = [
        ("operations", ctypes.c_uint64),
        ("sent_bytes", _PER_LINK),
        ("received_bytes", _PER_LINK),
        ("exact_bytes", _PER_LINK),
        ("not_finite", ctypes.c_uint64),
        ("sent_messages", _PER_LINK),
        ("memory_bytes", ctypes.c_uint64),
        ("encode_s", ctypes.c_double),
        ("decode_s", ctypes.c_double),
        ("wire_s", ctypes.c_double),
        ("wait_s", ctypes.c_double),
        ("missed_wakeups", ctypes.c_uint64),
        ("flow_waits", ctypes.c_uint64),
        ("run_hits", ctypes.c_uint64),
        ("run_misses", ctypes.c_uint64),
        ("discarded", ctypes.c_uint64),
        ("guard_checks", ctypes.c_uint64),
        ("guard_beyond", ctypes.c_uint64),
        ("guard_waited", ctypes.c_uint64),
        ("guard_error", ctypes.c_double),
        ("guard_cosine", ctypes.c_double),
        ("guard_residual", ctypes.c_double),
        ("topk_picked", ctypes.c_uint64),
        ("topk_waited", ctypes.c_uint64),
    ]


class CPolicyFacts(ctypes.Structure):
    _fields_ = [
        ("min_bytes", ctypes.c_uint64),
        ("lossy", ctypes.c_int),
        ("error_feedback", ctypes.c_int),
        ("uses_names", ctypes.c_int),
        ("inside_nodes", ctypes.c_int),
        ("step_calls", ctypes.c_uint32),
    ]


_Codec = ctypes.c_char * 64


class CGuardFigures(ctypes.Structure):
    _fields_ = [
        ("tensor", ctypes.c_char_p),
        ("checks", ctypes.c_uint64),
        ("step", ctypes.c_uint64),
        ("samples", ctypes.c_uint64),
        ("error", ctypes.c_double),
        ("cosine", ctypes.c_double),
        ("residual", ctypes.c_double),
        ("waited", ctypes.c_uint64),
        ("fallbacks", ctypes.c_uint64),
        ("beyond", ctypes.c_int),
        ("codec", _Codec),
        ("next", _Codec),
    ]


class CShrunk(ctypes.Structure):
    _fields_ = [
        ("ranks_before", ctypes.c_int),
        ("lost", ctypes.c_int),
        ("steps", ctypes.c_uint64),
        ("finished", ctypes.c_int),
        ("lost_residual", ctypes.c_double),
        ("lost_norm", ctypes.c_double),
    ]


class CChanges(ctypes.Structure):
    _fields_ = [
        ("leaving", ctypes.c_int),
        ("waiting", ctypes.c_int),
        ("leaves", ctypes.c_int),
    ]


class CRegrouped(ctypes.Structure):
    _fields_ = [
        ("ranks_before", ctypes.c_int),
        ("left", ctypes.c_int),
        ("lost", ctypes.c_int),
        ("joined", ctypes.c_int),
        ("is_newcomer", ctypes.c_int),
        ("steps", ctypes.c_uint64),
    ]


LogFunction = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p)
GuardFunction = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(CGuardFigures))


STRUCTS: List[Tuple[type, str]] = [
    (CBootstrap, "lcomm_bootstrap"),
    (CConfig, "lcomm_config"),
    (CRequest, "lcomm_request"),
    (CStats, "lcomm_stats"),
    (CPolicyFacts, "lcomm_policy_facts"),
    (CGuardFigures, "lcomm_guard_figures"),
    (CShrunk, "lcomm_shrunk"),
    (CChanges, "lcomm_changes"),
    (CRegrouped, "lcomm_regrouped"),
]
