# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""What a communicator remembers between calls: residuals, and their place in a checkpoint."""

from __future__ import annotations

import ctypes
import os
from typing import Iterable, List, Optional, Sequence, Union

from . import _calls
from ._collectives import Collectives
from ._header import Op
from ._library import lib
from .residual import Residual, ScatterResidual

State = Union[bytes, bytearray, memoryview]
Folder = Union[str, "os.PathLike[str]"]


class Feedback(Collectives):
    """The part of a communicator that has error feedback."""

    def residual(
        self, count: int, op: Union[Op, str] = "sum", name: Optional[str] = None
    ) -> Residual:
        """Error feedback for all-reduces of one array of `count` float32.

        In the same order on all ranks. One with a name (at most 127 bytes, used once) is saved by
        state_dict(), and exempt=, momentum= and clip= of the policy act on it.
        """
        handle, what = ctypes.c_void_p(), _calls.op_of(op)
        if name is None:
            status = lib.lcomm_residual_create(
                self._handle_now(), count, what, ctypes.byref(handle)
            )
        else:
            status = lib.lcomm_residual_create_named(
                self._handle_now(), name.encode(), count, what, ctypes.byref(handle)
            )
        self._check(status)
        return Residual(self, handle.value, count)

    def scatter_residual(
        self, counts: Sequence[int], op: Union[Op, str] = "sum", name: Optional[str] = None
    ) -> ScatterResidual:
        """Error feedback for reduce-scatters: rank r receives counts[r] elements of the sum."""
        handle = ctypes.c_void_p()
        parts = _calls.parts_of(counts, self._size)
        text = None if name is None else name.encode()
        self._check(
            lib.lcomm_residual_create_scatter(
                self._handle_now(), text, parts, _calls.op_of(op), ctypes.byref(handle)
            )
        )
        return ScatterResidual(self, handle.value, sum(counts))

    def state_dict(self) -> bytes:
        """What error feedback and momentum remember on this rank, for a checkpoint. Local.

        Between two steps, with no call of a named residual under way (else StateError).
        """
        handle, size = self._handle_now(), ctypes.c_size_t()
        self._check(lib.lcomm_state_size(handle, ctypes.byref(size)))
        block = ctypes.create_string_buffer(size.value)
        self._check(lib.lcomm_state_write(handle, block, size.value))
        return block.raw

    def load_state_dict(self, state: Union[State, Iterable[State]]) -> None:
        """Restore what state_dict() gave. Collective: all ranks restore it, or none does.

        state: this rank's bytes, where ranks and nodes are as many as they were; else those of all
        ranks that saved, in any order. Residuals with names are made before. Raises WireError
        (damaged bytes), ArgumentError (a block or a residual is missing), MismatchError.
        """
        blocks: List[bytes]
        if isinstance(state, (bytes, bytearray, memoryview)):
            blocks = [bytes(state)]
        else:
            blocks = [bytes(block) for block in state]
        joined = b"".join(blocks)
        self._check(lib.lcomm_state_read(self._handle_now(), joined, len(joined)))

    def save_state(self, folder: Folder) -> None:
        """Save what state_dict() gives into a file of this rank in `folder`, which all ranks share.

        The folder is made if need be, and a new one each time; it is complete when all ranks have
        returned. A file has its name once it is whole and on the disk. Local, between two steps.
        Raises ArgumentError (it holds files of another number of ranks), StateError,
        SystemCallError (path and cause are named).
        """
        self._check(lib.lcomm_state_save(self._handle_now(), os.fsencode(folder)))

    def load_state(self, folder: Folder) -> None:
        """Restore what save_state() wrote, also on other ranks than saved. Collective.

        All ranks restore it, or none does. Residuals with names and tensors are made before.
        Raises as load_state_dict(), SystemCallError where the folder or a file cannot be read.
        """
        self._check(lib.lcomm_state_load(self._handle_now(), os.fsencode(folder)))
