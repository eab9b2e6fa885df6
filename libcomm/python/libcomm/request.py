# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Operations that run while the program computes."""

from __future__ import annotations

import asyncio
import ctypes
from typing import TYPE_CHECKING, Any, Generator, Optional, Tuple

from ._library import check, last_error, lib
from ._structs import CRequest
from .errors import Error, make

if TYPE_CHECKING:
    from ._core import Core

# Looks without a pause, before the event loop may rest between two of them.
_EAGER_LOOKS = 100
_LONGEST_REST_S = 0.001


class Request:
    """A running operation, from a call such as Communicator.iallreduce.

    Its arrays belong to the library until wait() returns, or test() is true; the request keeps
    them in memory. Every request is to be waited for, or tested until it is over. It is awaitable:
    `result = await request` lets the event loop run other tasks meanwhile.
    """

    def __init__(self, comm: "Core", result: Any, holders: Tuple[Any, ...]) -> None:
        self._comm = comm
        self._result = result
        self._holders = holders
        self._raw = CRequest()
        self._is_over = False
        self._trouble: Optional[Error] = None  # of a communicator that is gone

    def _break(self, handle: int) -> None:
        """The communicator goes on with other ranks: what was begun on its handle has failed."""
        status = lib.lcomm_wait(handle, ctypes.byref(self._raw))
        if status != 0:
            self._trouble = make(status, last_error(handle))
        self._end()

    def _end(self) -> None:
        self._is_over = True
        self._holders = ()
        self._comm._running.discard(self)

    def wait(self) -> Any:
        """Return when the operation is over: the array with the result (None of a barrier).

        Raises the error of the operation, each time it is asked.
        """
        if self._trouble is not None:
            raise self._trouble
        if self._is_over and self._raw.status == 0:
            return self._result
        handle = self._comm._handle_now()
        status = lib.lcomm_wait(handle, ctypes.byref(self._raw))
        self._end()
        check(status, handle)
        return self._result

    def test(self) -> bool:
        """Is it over? Moves it forward. Raises the error of the operation, if there is one."""
        if self._trouble is not None:
            raise self._trouble
        if self._is_over and self._raw.status == 0:
            return True
        handle = self._comm._handle_now()
        done = ctypes.c_int(0)
        status = lib.lcomm_test(handle, ctypes.byref(self._raw), ctypes.byref(done))
        if status != 0 or done.value:
            self._end()
        check(status, handle)
        return bool(done.value)

    @property
    def not_finite(self) -> int:
        """NaN and Inf in the result of a sum that is over and went through a lossy codec.

        Else 0. Of a reduce-scatter: in this rank's part; of an all-reduce: the same on all ranks.
        """
        return int(lib.lcomm_request_not_finite(ctypes.byref(self._raw)))

    async def _looked_for(self) -> Any:
        looks, rest_s = 0, 0.0
        while not self.test():
            looks += 1
            if looks > _EAGER_LOOKS:
                rest_s = min(_LONGEST_REST_S, rest_s + 1e-5)
            await asyncio.sleep(rest_s)
        return self._result

    def __await__(self) -> Generator[Any, None, Any]:
        return self._looked_for().__await__()
