# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Functions of libcomm's public headers that the package calls.

Declarations are those of the headers without the names of parameters; a test compares them.
"""

from __future__ import annotations

import ctypes
from typing import Any, Dict, List, Tuple

from ._header import ENUMS

FUNCTIONS = """
int lcomm_version()
const char * lcomm_last_error(const lcomm_comm *)
lcomm_status lcomm_log_set(lcomm_log_level, lcomm_log_function, VOID)
lcomm_status lcomm_create(const lcomm_bootstrap *, const lcomm_config *, lcomm_comm **)
lcomm_status lcomm_create_env(const lcomm_config *, lcomm_comm **)
lcomm_status lcomm_split(lcomm_comm *, int, int, const lcomm_config *, lcomm_comm **)
lcomm_status lcomm_join(const lcomm_config *, lcomm_comm **)
lcomm_status lcomm_shrink(COMM, lcomm_comm **)
lcomm_status lcomm_shrunk_get(const COMM, lcomm_shrunk *)
lcomm_status lcomm_leave(COMM)
lcomm_status lcomm_changes_get(const COMM, lcomm_changes *)
lcomm_status lcomm_regroup(COMM, lcomm_comm **)
lcomm_status lcomm_regrouped_get(const COMM, lcomm_regrouped *)
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
lcomm_status lcomm_rack_stats_get(const COMM, lcomm_rack_stats *)
lcomm_status lcomm_lateness_get(const COMM, int, lcomm_lateness *)
lcomm_status lcomm_staleness_get(const COMM, lcomm_staleness *)
lcomm_status lcomm_behind(const COMM, uint64_t *)
lcomm_status lcomm_server_run(COMM, lcomm_server_update, VOID)
lcomm_status lcomm_server_end(COMM)
int lcomm_is_server(const COMM)
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
lcomm_status lcomm_allreduce_scaled_on_stream(COMM, CONST, VOID, SUM, FACTORS, VOID)
lcomm_status lcomm_reduce_scatterv_scaled_on_stream(COMM, CONST, VOID, PARTS, FACTORS, VOID)
lcomm_status lcomm_reduce_scatter(COMM, CONST, VOID, SUM)
lcomm_status lcomm_ireduce_scatter(COMM, CONST, VOID, SUM, REQUEST)
lcomm_status lcomm_reduce_scatter_on_stream(COMM, CONST, VOID, SUM, VOID)
lcomm_status lcomm_reduce_scatterv(COMM, CONST, VOID, PARTS)
lcomm_status lcomm_ireduce_scatterv(COMM, CONST, VOID, PARTS, REQUEST)
lcomm_status lcomm_reduce_scatterv_on_stream(COMM, CONST, VOID, PARTS, VOID)
lcomm_status lcomm_allgather(COMM, CONST, VOID, MOVE)
lcomm_status lcomm_iallgather(COMM, CONST, VOID, MOVE, REQUEST)
lcomm_status lcomm_allgather_on_stream(COMM, CONST, VOID, MOVE, VOID)
lcomm_status lcomm_allgatherv(COMM, CONST, VOID, COUNTS, lcomm_dtype)
lcomm_status lcomm_iallgatherv(COMM, CONST, VOID, COUNTS, lcomm_dtype, REQUEST)
lcomm_status lcomm_allgatherv_on_stream(COMM, CONST, VOID, COUNTS, lcomm_dtype, VOID)
lcomm_status lcomm_alltoall(COMM, CONST, VOID, MOVE)
lcomm_status lcomm_ialltoall(COMM, CONST, VOID, MOVE, REQUEST)
lcomm_status lcomm_alltoall_on_stream(COMM, CONST, VOID, MOVE, VOID)
lcomm_status lcomm_broadcast(COMM, VOID, MOVE, int)
lcomm_status lcomm_ibroadcast(COMM, VOID, MOVE, int, REQUEST)
lcomm_status lcomm_broadcast_on_stream(COMM, VOID, MOVE, int, VOID)
lcomm_status lcomm_send(COMM, CONST, MOVE, int)
lcomm_status lcomm_isend(COMM, CONST, MOVE, int, REQUEST)
lcomm_status lcomm_send_on_stream(COMM, CONST, MOVE, int, VOID)
lcomm_status lcomm_recv(COMM, VOID, MOVE, int)
lcomm_status lcomm_irecv(COMM, VOID, MOVE, int, REQUEST)
lcomm_status lcomm_receive_on_stream(COMM, VOID, MOVE, int, VOID)
lcomm_status lcomm_group_begin(COMM)
lcomm_status lcomm_group_end(COMM)
lcomm_status lcomm_channel_create(COMM, int, uint64_t, lcomm_channel **)
lcomm_status lcomm_channel_send(CHANNEL, CONST)
lcomm_status lcomm_channel_isend(CHANNEL, CONST, REQUEST)
lcomm_status lcomm_channel_send_on_stream(CHANNEL, CONST, VOID)
lcomm_status lcomm_channel_get(const CHANNEL, float *)
lcomm_status lcomm_channel_destroy(CHANNEL)
lcomm_status lcomm_barrier(COMM)
lcomm_status lcomm_ibarrier(COMM, REQUEST)
lcomm_selection lcomm_policy_query(const COMM, lcomm_call_kind, SUM, WHY)
lcomm_status lcomm_call_bytes(COMM, lcomm_call_kind, SUM, int, BYTES)
lcomm_status lcomm_policy_facts_get(const COMM, lcomm_policy_facts *)
lcomm_status lcomm_preview_create(const COMM, const int *, int, const char *, lcomm_preview **)
void lcomm_preview_destroy(PREVIEW)
void lcomm_preview_name_set(PREVIEW, const char *)
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
lcomm_status lcomm_allreduce_ef_on_stream(RESIDUAL, CONST, VOID, VOID)
lcomm_status lcomm_allreduce_flush_on_stream(RESIDUAL, CONST, VOID, VOID)
lcomm_status lcomm_allreduce_flush(RESIDUAL, CONST, VOID)
lcomm_status lcomm_iallreduce_flush(RESIDUAL, CONST, VOID, REQUEST)
lcomm_status lcomm_reduce_scatter_ef(RESIDUAL, CONST, VOID)
lcomm_status lcomm_ireduce_scatter_ef(RESIDUAL, CONST, VOID, REQUEST)
lcomm_status lcomm_reduce_scatter_ef_on_stream(RESIDUAL, CONST, VOID, VOID)
lcomm_status lcomm_reduce_scatter_flush(RESIDUAL, CONST, VOID)
lcomm_status lcomm_ireduce_scatter_flush(RESIDUAL, CONST, VOID, REQUEST)
lcomm_status lcomm_reduce_scatter_flush_on_stream(RESIDUAL, CONST, VOID, VOID)
lcomm_status lcomm_residual_discard(RESIDUAL)
lcomm_status lcomm_residual_get(const RESIDUAL, float *)
lcomm_status lcomm_residual_calls(const RESIDUAL, uint64_t *)
lcomm_status lcomm_residual_counts(const RESIDUAL, uint64_t *)
lcomm_status lcomm_residual_guard(const RESIDUAL, lcomm_guard_figures *)
lcomm_status lcomm_residual_destroy(RESIDUAL)
lcomm_status lcomm_tensor_add(COMM, const char *, VOID, SUM, lcomm_tensor **)
lcomm_status lcomm_tensor_add_shaped(COMM, const char *, VOID, uint64_t, SUM, lcomm_tensor **)
lcomm_status lcomm_tensor_data_set(COMM, TENSOR, VOID)
lcomm_status lcomm_tensor_freeze(COMM, TENSOR)
lcomm_status lcomm_tensor_unfreeze(COMM, TENSOR)
lcomm_status lcomm_tensor_scale(COMM, TENSOR, FACTORS)
lcomm_status lcomm_tensor_ready(COMM, TENSOR)
lcomm_status lcomm_tensor_ready_on_stream(COMM, TENSOR, VOID)
lcomm_status lcomm_tensors_wait(COMM)
lcomm_status lcomm_tensors_next(COMM, int *)
lcomm_status lcomm_tensors_sync(COMM, int *)
lcomm_status lcomm_tensor_test(COMM, TENSOR, int *)
lcomm_status lcomm_tensor_wait(COMM, TENSOR)
uint64_t lcomm_tensors_not_finite(const COMM)
lcomm_status lcomm_tensors_momentum(COMM, int *)
lcomm_status lcomm_tensors_discard(COMM)
lcomm_status lcomm_tensor_residual(COMM, const TENSOR, float *)
lcomm_status lcomm_tensor_codec(COMM, const TENSOR, lcomm_link, char *, size_t)
lcomm_status lcomm_tensor_guard(COMM, const TENSOR, lcomm_guard_figures *)
lcomm_status lcomm_guard_set(COMM, lcomm_guard_function, VOID)
lcomm_status lcomm_state_save(COMM, const char *)
lcomm_status lcomm_state_load(COMM, const char *)
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
    "PARTS": "const uint64_t *, lcomm_dtype, lcomm_op",
    "FACTORS": "double, double",
    "WHY": "const char **",
    "BYTES": "uint64_t *, uint64_t *",
    "PREVIEW": "lcomm_preview *",
    "RESIDUAL": "lcomm_residual *",
    "TENSOR": "lcomm_tensor *",
    "CHANNEL": "lcomm_channel *",
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
    known: Dict[str, Any] = {**_CTYPES, "MPI_Comm": handle_of_mpi}
    for result, name, parameters in declarations(table):
        function = getattr(library, name)
        function.restype = known[result]
        # all other pointers are addresses
        function.argtypes = [known.get(p, ctypes.c_void_p) for p in parameters]
