# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Structs of libcomm's public headers, and functions that it calls, mirrored for ctypes.

A test compares them with the headers.
"""

from __future__ import annotations

import ctypes
from typing import List, Tuple

from ._header import LINK_COUNT

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


class CRackStats(ctypes.Structure):
    _fields_ = [
        ("racks", ctypes.c_uint64),
        ("sent_bytes", ctypes.c_uint64),
        ("sent_messages", ctypes.c_uint64),
    ]


class CLateness(ctypes.Structure):
    _fields_ = [
        ("sums", ctypes.c_uint64),
        ("late_sums", ctypes.c_uint64),
        ("pieces", ctypes.c_uint64),
        ("late_pieces", ctypes.c_uint64),
    ]


class CStaleness(ctypes.Structure):
    _fields_ = [
        ("steps", ctypes.c_uint64),
        ("under_way", ctypes.c_uint64),
        ("age", ctypes.c_uint64),
        ("age_most", ctypes.c_uint64),
        ("age_mean", ctypes.c_double),
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


class CServerPiece(ctypes.Structure):
    _fields_ = [
        ("tensor", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("first", ctypes.c_uint64),
        ("count", ctypes.c_uint64),
        ("values", ctypes.c_void_p),
        ("step", ctypes.c_uint64),
        ("used", ctypes.c_int),
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
UpdateFunction = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(CServerPiece))


STRUCTS: List[Tuple[type, str]] = [
    (CBootstrap, "lcomm_bootstrap"),
    (CConfig, "lcomm_config"),
    (CRequest, "lcomm_request"),
    (CStats, "lcomm_stats"),
    (CPolicyFacts, "lcomm_policy_facts"),
    (CRackStats, "lcomm_rack_stats"),
    (CLateness, "lcomm_lateness"),
    (CStaleness, "lcomm_staleness"),
    (CGuardFigures, "lcomm_guard_figures"),
    (CServerPiece, "lcomm_server_piece"),
    (CShrunk, "lcomm_shrunk"),
    (CChanges, "lcomm_changes"),
    (CRegrouped, "lcomm_regrouped"),
]
