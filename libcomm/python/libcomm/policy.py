# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""What a policy says of calls, before they are made."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple, Optional, Tuple, Union

from . import _calls
from ._header import CallKind, Dtype, Op, Selection
from ._library import check, lib
from ._structs import CPolicyFacts
from .errors import ArgumentError, StateError


class Answer(NamedTuple):
    """What a policy says of a call."""

    selection: Selection
    why: str  # it is not selected, or exact; "" otherwise


class Bytes(NamedTuple):
    """What a call sends between nodes from this rank: at most, and if it were exact."""

    sent: int
    exact: int


class Facts(NamedTuple):
    """A policy in numbers; lcomm_policy_facts of libcomm_interpose.h says what each is."""

    min_bytes: int
    lossy: bool
    error_feedback: bool
    uses_names: bool
    inside_nodes: bool
    step_calls: int


def kind_of(kind: Union[CallKind, str]) -> CallKind:
    try:
        return CallKind[kind.upper().replace("-", "_")] if isinstance(kind, str) else CallKind(kind)
    except (KeyError, ValueError):
        raise ArgumentError(
            f"there is no call {kind!r}: allreduce, reduce-scatter, allgather or broadcast"
        ) from None


def dtype_of(dtype: Any) -> Dtype:
    """A type of elements, also by name ("float32"), or as numpy and torch call it."""
    if isinstance(dtype, Dtype):
        return dtype
    name = getattr(dtype, "__name__", None) or str(dtype)
    try:
        return Dtype[name.rsplit(".", 1)[-1].upper()]
    except KeyError:
        names = ", ".join(each.name.lower() for each in Dtype)
        raise ArgumentError(f"libcomm has no type {dtype!r}: one of {names}") from None


def facts_of(raw: CPolicyFacts) -> Facts:
    return Facts(
        raw.min_bytes,
        bool(raw.lossy),
        bool(raw.error_feedback),
        bool(raw.uses_names),
        bool(raw.inside_nodes),
        raw.step_calls,
    )


def query(function: Any, handle: Any, shape: Tuple[Any, int, Any, Any]) -> Answer:
    """Ask lcomm_policy_query or lcomm_preview_query. shape: kind, count, dtype, op."""
    kind, count, dtype, op = shape
    why = ctypes.c_char_p()
    selection = function(
        handle, kind_of(kind), count, dtype_of(dtype), _calls.op_of(op), ctypes.byref(why)
    )
    return Answer(Selection(selection), (why.value or b"").decode())


def bytes_of(
    function: Any, handle: Any, comm: Optional[int], shape: Tuple[Any, int, Any, Any], ef: bool
) -> Bytes:
    """Ask lcomm_call_bytes or lcomm_preview_bytes."""
    kind, count, dtype, op = shape
    sent, exact = ctypes.c_uint64(), ctypes.c_uint64()
    status = function(
        handle,
        kind_of(kind),
        count,
        dtype_of(dtype),
        _calls.op_of(op),
        int(ef),
        ctypes.byref(sent),
        ctypes.byref(exact),
    )
    check(status, comm)
    return Bytes(sent.value, exact.value)


class Preview:
    """What a policy would say of calls on some ranks of a communicator, before they are one.

    From Communicator.preview(). Local: nothing is exchanged. It does not need the communicator any
    more, and is freed by close(), by the end of a `with`, or when nothing refers to it.
    """

    def __init__(self, handle: Optional[int]) -> None:
        self._handle: Optional[int] = handle

    def _handle_now(self) -> int:
        if self._handle is None:
            raise StateError("the preview was closed")
        return self._handle

    def name(self, name: str) -> None:
        """Name the communicator to be, for match=comm=GLOB of policies."""
        lib.lcomm_preview_name_set(self._handle_now(), name.encode())

    def query(
        self,
        kind: Union[CallKind, str],
        count: int,
        dtype: Any = "float32",
        op: Union[Op, str] = "sum",
    ) -> Answer:
        """Is a call of `count` elements one that the policy selects, and is it lossy?"""
        return query(lib.lcomm_preview_query, self._handle_now(), (kind, count, dtype, op))

    def bytes(
        self,
        kind: Union[CallKind, str],
        count: int,
        dtype: Any = "float32",
        op: Union[Op, str] = "sum",
        error_feedback: bool = False,
    ) -> Bytes:
        """Bytes that such a call sends between nodes from this rank."""
        shape = (kind, count, dtype, op)
        return bytes_of(lib.lcomm_preview_bytes, self._handle_now(), None, shape, error_feedback)

    @property
    def facts(self) -> Facts:
        """The policy in numbers."""
        raw = CPolicyFacts()
        lib.lcomm_preview_facts(self._handle_now(), ctypes.byref(raw))
        return facts_of(raw)

    @property
    def policy(self) -> str:
        """The policy in canonical form."""
        return str(lib.lcomm_preview_policy(self._handle_now()).decode())

    @property
    def nodes(self) -> int:
        """Number of nodes of these ranks."""
        return int(lib.lcomm_preview_nodes(self._handle_now()))

    def close(self) -> None:
        """Free it. May be called again."""
        handle, self._handle = self._handle, None
        lib.lcomm_preview_destroy(handle)

    def __enter__(self) -> "Preview":
        return self

    def __exit__(self, *_trouble: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None:
            self.close()
