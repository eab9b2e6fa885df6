# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""What a communicator says of its policy, and of the plans that calls follow."""

from __future__ import annotations

import ctypes
from typing import Any, Optional, Sequence, Union

from . import policy as _policy
from ._core import Core
from ._header import CallKind, Op
from ._library import check, lib
from ._structs import CPolicyFacts
from .policy import Answer, Bytes, Facts, Preview


class Policies(Core):
    """The part of a communicator that knows its policy."""

    @property
    def policy(self) -> str:
        """The policy in force, in canonical form; "" is the exact one."""
        return str(lib.lcomm_policy_string(self._handle_now()).decode())

    def set_policy(self, policy: str) -> None:
        """Another policy for all later calls. Collective, with no operation under way.

        PolicyError: the policy cannot be read; MismatchError: ranks give different ones. The one
        before stays in force then.
        """
        self._check(lib.lcomm_policy_set(self._handle_now(), policy.encode()))

    def plan(self, count: int, dtype: Any = "float32", residual: bool = False) -> str:
        """In words, which plan an all-reduce of `count` elements follows, and why.

        residual: of a call with one, or of a plain call.
        """
        size = 1 << 12
        while True:
            text = ctypes.create_string_buffer(size)
            handle, kind = self._handle_now(), _policy.dtype_of(dtype)
            self._check(lib.lcomm_plan_print(handle, count, kind, residual, text, size))
            if len(text.value) < size - 1:
                return text.value.decode()
            size *= 4

    def query(
        self,
        kind: Union[CallKind, str],
        count: int,
        dtype: Any = "float32",
        op: Union[Op, str] = "sum",
    ) -> Answer:
        """Is a plain call of `count` elements one that the policy selects, and is it lossy?

        kind: "allreduce", "reduce-scatter", "allgather" or "broadcast". Any thread.
        """
        return _policy.query(lib.lcomm_policy_query, self._handle_now(), (kind, count, dtype, op))

    def call_bytes(
        self,
        kind: Union[CallKind, str],
        count: int,
        dtype: Any = "float32",
        op: Union[Op, str] = "sum",
        error_feedback: bool = False,
    ) -> Bytes:
        """Bytes that such a call sends between nodes from this rank, at most, and if exact."""
        handle = self._handle_now()
        shape = (kind, count, dtype, op)
        return _policy.bytes_of(lib.lcomm_call_bytes, handle, handle, shape, error_feedback)

    @property
    def facts(self) -> Facts:
        """The policy in numbers."""
        raw = CPolicyFacts()
        self._check(lib.lcomm_policy_facts_get(self._handle_now(), ctypes.byref(raw)))
        return _policy.facts_of(raw)

    def preview(
        self, members: Optional[Sequence[int]] = None, policy_text: Optional[str] = None
    ) -> Preview:
        """What a policy would say of calls on some ranks, this one among them. Local.

        members: in the order of their new ranks; None: all. policy_text: None: the one in force.
        """
        ranks = list(range(self._size)) if members is None else list(members)
        handle = ctypes.c_void_p()
        text = None if policy_text is None else policy_text.encode()
        numbers = (ctypes.c_int * len(ranks))(*ranks)
        check(
            lib.lcomm_preview_create(
                self._handle_now(), numbers, len(ranks), text, ctypes.byref(handle)
            )
        )
        return Preview(handle.value)
