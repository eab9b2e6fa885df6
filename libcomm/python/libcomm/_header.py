# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""What the package uses of libcomm's public headers, mirrored for ctypes.

Declarations are those of the headers without the names of parameters; a test compares functions,
structs and enumerators with the headers.
"""

from __future__ import annotations

import ctypes
import enum
from typing import Callable, List, Tuple

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


# Enumeration of the headers, and what its names begin with there.
ENUMS: List[Tuple[type, str, str]] = [
    (Status, "lcomm_status", "LCOMM_"),
    (Dtype, "lcomm_dtype", "LCOMM_"),
    (Op, "lcomm_op", "LCOMM_"),
    (Link, "lcomm_link", "LCOMM_LINK_"),
    (Progress, "lcomm_progress_mode", "LCOMM_PROGRESS_"),
    (CallKind, "lcomm_call_kind", "LCOMM_CALL_"),
    (Selection, "lcomm_selection", "LCOMM_SELECT_"),
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


STRUCTS: List[Tuple[type, str]] = [
    (CBootstrap, "lcomm_bootstrap"),
    (CConfig, "lcomm_config"),
    (CRequest, "lcomm_request"),
    (CStats, "lcomm_stats"),
    (CPolicyFacts, "lcomm_policy_facts"),
]

# -------------------------------------------------------------------- functions

FUNCTIONS = """
int lcomm_version()
const char * lcomm_last_error(const lcomm_comm *)
lcomm_status lcomm_create(const lcomm_bootstrap *, const lcomm_config *, lcomm_comm **)
lcomm_status lcomm_create_env(const lcomm_config *, lcomm_comm **)
lcomm_status lcomm_split(lcomm_comm *, int, int, const lcomm_config *, lcomm_comm **)
lcomm_status lcomm_destroy(lcomm_comm *)
lcomm_status lcomm_abort(lcomm_comm *, const char *)
int lcomm_rank(const lcomm_comm *)
int lcomm_size(const lcomm_comm *)
int lcomm_node(const lcomm_comm *)
int lcomm_nodes(const lcomm_comm *)
int lcomm_local_rank(const lcomm_comm *)
const char * lcomm_policy_string(const lcomm_comm *)
lcomm_status lcomm_policy_set(lcomm_comm *, const char *)
lcomm_status lcomm_name_set(lcomm_comm *, const char *)
const char * lcomm_transports(const lcomm_comm *, char *, size_t)
lcomm_status lcomm_stats_get(const lcomm_comm *, lcomm_stats *)
lcomm_status lcomm_stats_reset(lcomm_comm *)
lcomm_status lcomm_plan_print(lcomm_comm *, MOVE, int, char *, size_t)
lcomm_status lcomm_progress(lcomm_comm *)
lcomm_status lcomm_test(lcomm_comm *, lcomm_request *, int *)
lcomm_status lcomm_wait(lcomm_comm *, lcomm_request *)
uint64_t lcomm_request_not_finite(const lcomm_request *)
lcomm_status lcomm_memory_alloc(size_t, void **)
lcomm_status lcomm_memory_free(void *)
lcomm_status lcomm_allreduce(COMM, CONST, VOID, SUM)
lcomm_status lcomm_iallreduce(COMM, CONST, VOID, SUM, REQUEST)
lcomm_status lcomm_allreduce_on_stream(COMM, CONST, VOID, SUM, VOID)
lcomm_status lcomm_allreduce_scaled(COMM, CONST, VOID, SUM, FACTORS)
lcomm_status lcomm_iallreduce_scaled(COMM, CONST, VOID, SUM, FACTORS, REQUEST)
lcomm_status lcomm_reduce_scatter(COMM, CONST, VOID, SUM)
lcomm_status lcomm_ireduce_scatter(COMM, CONST, VOID, SUM, REQUEST)
lcomm_status lcomm_reduce_scatter_on_stream(COMM, CONST, VOID, SUM, VOID)
lcomm_status lcomm_reduce_scatterv(COMM, CONST, VOID, COUNTS, lcomm_dtype, lcomm_op)
lcomm_status lcomm_ireduce_scatterv(COMM, CONST, VOID, COUNTS, lcomm_dtype, lcomm_op, REQUEST)
lcomm_status lcomm_allgather(COMM, CONST, VOID, MOVE)
lcomm_status lcomm_iallgather(COMM, CONST, VOID, MOVE, REQUEST)
lcomm_status lcomm_allgather_on_stream(COMM, CONST, VOID, MOVE, VOID)
lcomm_status lcomm_allgatherv(COMM, CONST, VOID, COUNTS, lcomm_dtype)
lcomm_status lcomm_iallgatherv(COMM, CONST, VOID, COUNTS, lcomm_dtype, REQUEST)
lcomm_status lcomm_alltoall(COMM, CONST, VOID, MOVE)
lcomm_status lcomm_ialltoall(COMM, CONST, VOID, MOVE, REQUEST)
lcomm_status lcomm_alltoall_on_stream(COMM, CONST, VOID, MOVE, VOID)
lcomm_status lcomm_broadcast(COMM, VOID, MOVE, int)
lcomm_status lcomm_ibroadcast(COMM, VOID, MOVE, int, REQUEST)
lcomm_status lcomm_broadcast_on_stream(COMM, VOID, MOVE, int, VOID)
lcomm_status lcomm_barrier(COMM)
lcomm_status lcomm_ibarrier(COMM, REQUEST)
lcomm_selection lcomm_policy_query(const COMM, lcomm_call_kind, SUM, WHY)
lcomm_status lcomm_call_bytes(COMM, lcomm_call_kind, SUM, int, BYTES)
lcomm_status lcomm_policy_facts_get(const COMM, lcomm_policy_facts *)
lcomm_status lcomm_preview_create(const COMM, const int *, int, const char *, lcomm_preview **)
void lcomm_preview_destroy(PREVIEW)
lcomm_selection lcomm_preview_query(const PREVIEW, lcomm_call_kind, SUM, WHY)
lcomm_status lcomm_preview_bytes(const PREVIEW, lcomm_call_kind, SUM, int, BYTES)
void lcomm_preview_facts(const PREVIEW, lcomm_policy_facts *)
const char * lcomm_preview_policy(const PREVIEW)
int lcomm_preview_nodes(const PREVIEW)
lcomm_status lcomm_residual_create(COMM, uint64_t, lcomm_op, lcomm_residual **)
lcomm_status lcomm_residual_create_named(COMM, const char *, uint64_t, lcomm_op, lcomm_residual **)
lcomm_status lcomm_residual_create_scatter(COMM, const char *, COUNTS, lcomm_op, lcomm_residual **)
lcomm_status lcomm_allreduce_ef(RESIDUAL, CONST, VOID)
lcomm_status lcomm_iallreduce_ef(RESIDUAL, CONST, VOID, REQUEST)
lcomm_status lcomm_allreduce_flush(RESIDUAL, CONST, VOID)
lcomm_status lcomm_iallreduce_flush(RESIDUAL, CONST, VOID, REQUEST)
lcomm_status lcomm_reduce_scatter_ef(RESIDUAL, CONST, VOID)
lcomm_status lcomm_ireduce_scatter_ef(RESIDUAL, CONST, VOID, REQUEST)
lcomm_status lcomm_reduce_scatter_flush(RESIDUAL, CONST, VOID)
lcomm_status lcomm_ireduce_scatter_flush(RESIDUAL, CONST, VOID, REQUEST)
lcomm_status lcomm_residual_discard(RESIDUAL)
lcomm_status lcomm_residual_get(const RESIDUAL, float *)
lcomm_status lcomm_residual_destroy(RESIDUAL)
lcomm_status lcomm_tensor_add(COMM, const char *, VOID, SUM, lcomm_tensor **)
lcomm_status lcomm_tensor_data_set(COMM, TENSOR, VOID)
lcomm_status lcomm_tensor_freeze(COMM, TENSOR)
lcomm_status lcomm_tensor_unfreeze(COMM, TENSOR)
lcomm_status lcomm_tensor_scale(COMM, TENSOR, FACTORS)
lcomm_status lcomm_tensor_ready(COMM, TENSOR)
lcomm_status lcomm_tensor_ready_on_stream(COMM, TENSOR, VOID)
lcomm_status lcomm_tensors_wait(COMM)
lcomm_status lcomm_tensor_test(COMM, TENSOR, int *)
lcomm_status lcomm_tensor_wait(COMM, TENSOR)
uint64_t lcomm_tensors_not_finite(const COMM)
lcomm_status lcomm_tensors_discard(COMM)
lcomm_status lcomm_tensor_residual(COMM, const TENSOR, float *)
lcomm_status lcomm_tensor_codec(COMM, const TENSOR, lcomm_link, char *, size_t)
lcomm_status lcomm_state_size(COMM, size_t *)
lcomm_status lcomm_state_write(COMM, VOID, size_t)
lcomm_status lcomm_state_read(COMM, CONST, size_t)
"""

# Those of libcomm-with-mpi.so; an MPI_Comm is an int or a pointer, as the MPI has it.
MPI_FUNCTIONS = """
const char * lcomm_mpi_built_for()
const char * lcomm_mpi_other()
lcomm_status lcomm_create_mpi(MPI_Comm, const lcomm_config *, lcomm_comm **)
"""

_SHORT = {
    "COMM": "lcomm_comm *",
    "CONST": "const void *",
    "VOID": "void *",
    "REQUEST": "lcomm_request *",
    "SUM": "uint64_t, lcomm_dtype, lcomm_op",
    "MOVE": "uint64_t, lcomm_dtype",
    "COUNTS": "const uint64_t *",
    "FACTORS": "double, double",
    "WHY": "const char **",
    "BYTES": "uint64_t *, uint64_t *",
    "PREVIEW": "lcomm_preview *",
    "RESIDUAL": "lcomm_residual *",
    "TENSOR": "lcomm_tensor *",
}

_CTYPES = {
    "void": None,
    "int": ctypes.c_int,
    "size_t": ctypes.c_size_t,
    "uint64_t": ctypes.c_uint64,
    "double": ctypes.c_double,
    "const char *": ctypes.c_char_p,
    **{name: ctypes.c_int for _, name, _ in ENUMS},
}


def _spelt_out(parameter: str) -> str:
    words = parameter.split()
    return " ".join(_SHORT.get(word, word) for word in words)


def declarations(table: str) -> List[Tuple[str, str, List[str]]]:
    """(result, name, types of parameters) of each line, in C's words."""
    found = []
    for line in table.strip().splitlines():
        head, parameters = line.rstrip(")").split("(")
        result, name = head.rsplit(" ", 1)
        spelt = ", ".join(_spelt_out(p) for p in parameters.split(",") if p.strip())
        found.append((result, name, spelt.split(", ") if spelt else []))
    return found


def declare(library: ctypes.CDLL, table: str, handle_of_mpi: type = ctypes.c_void_p) -> None:
    """Give the functions of a library their types.

    Raises AttributeError for a function that the library does not have.
    """
    known = {**_CTYPES, "MPI_Comm": handle_of_mpi}
    for result, name, parameters in declarations(table):
        function: Callable = getattr(library, name)
        function.restype = known[result]
        # all other pointers are addresses
        function.argtypes = [known.get(p, ctypes.c_void_p) for p in parameters]
