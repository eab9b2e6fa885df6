# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""What all parts of a communicator need: its handle and its errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional, Set

from ._library import last_error, lib
from .errors import StateError, make
from .request import Request

if TYPE_CHECKING:
    from .channel import Channel


class Core:
    """A communicator of the library."""

    def __init__(self, handle: Optional[int]) -> None:
        self._handle = handle
        self._running: Set[Request] = set()
        self._channels: Set["Channel"] = set()
        self._rank: int = lib.lcomm_rank(handle)
        self._size: int = lib.lcomm_size(handle)

    def _handle_now(self) -> int:
        if self._handle is None:
            raise StateError("the communicator was closed")
        return self._handle

    def _check(self, status: int) -> None:
        if status != 0:
            raise make(status, last_error(self._handle))
