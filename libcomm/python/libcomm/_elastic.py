# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Communicators that go on without ranks that were lost, and with ranks that leave and join."""

from __future__ import annotations

import ctypes
from typing import Any, List, NamedTuple, Optional

from . import _ending
from ._core import Core
from ._header import Status
from ._library import lib
from ._structs import CChanges, CRegrouped, CShrunk


class Changes(NamedTuple):
    """What ranks have asked for."""

    leaving: int  # ranks that ask to leave
    waiting: int  # newcomers that wait to join
    leaves: bool  # this rank is one of those that ask to leave


class Shrunk(NamedTuple):
    """What Communicator.shrink() has found; libcomm_elastic.h says more."""

    ranks_before: int  # 0: it was not shrunk, and the rest is 0, too
    lost: int  # ranks
    steps: int  # of tensors that are finished, the same on all ranks
    finished: bool  # wait_tensors() has failed here, but results are there: go on with them
    lost_residual: float  # share of what error feedback remembered that is gone, from 0 to 1
    lost_norm: float  # the norm of that, as if its values were as large as those that are left


class Regrouped(NamedTuple):
    """What Communicator.regroup(), join() or shrink() has changed."""

    ranks_before: int  # 0: nothing was changed, and the rest is 0, too
    left: int  # in order
    lost: int  # meanwhile
    joined: int  # newcomers: the last so many ranks
    is_newcomer: bool  # this rank is one of them
    steps: int  # of tensors that are finished, the same on all ranks, newcomers too


def _fields_of(raw: ctypes.Structure) -> List[Any]:
    return [getattr(raw, name) for name, *_ in raw._fields_]


class Elastic(Core):
    """The part of a communicator that goes on with other ranks.

    With LCOMM_ELASTIC=on in the environment of all ranks, for from_env() and join(). A Communicator
    stays the same object: its rank, its size and the ranks behind it change, and its tensors and
    residuals are there as before. Its channels are gone, and requests of it have failed.
    """

    def _go_on(self, handle: Optional[int]) -> None:
        """As another communicator of the library; None: this rank has left."""
        before = self._handle_now()
        for request in list(self._running):
            request._break(before)
        for channel in self._channels:
            channel._take_leave()
        self._channels.clear()
        lib.lcomm_destroy(before)  # it has failed, or is over, and all know
        self._handle = handle
        if handle is None:
            _ending.forget(self)  # type: ignore[arg-type]
        else:
            self._rank, self._size = lib.lcomm_rank(handle), lib.lcomm_size(handle)

    @property
    def has_lost_ranks(self) -> bool:
        """Has it failed for a rank that was lost, so that shrink() can be called?"""
        status = lib.lcomm_progress(self._handle_now())
        return status in (Status.ERR_TRANSPORT, Status.ERR_TIMEOUT)

    def shrink(self) -> Shrunk:
        """Go on without the ranks that were lost. Collective over those that live.

        Each calls it when one of its calls has raised TransportError or PeerTimeoutError. All stand
        at one step of tensors then: where `finished` is true, this rank goes on as if its
        wait_tensors() had returned; else the step that was begun is undone, and made again. What
        error feedback and momentum remember is shared out among those that live. Raises
        UnsupportedError (not elastic), StateError (no rank was
        lost), PeerTimeoutError (too few came, or a part that was cut off), MismatchError.
        """
        handle = ctypes.c_void_p()
        self._check(lib.lcomm_shrink(self._handle_now(), ctypes.byref(handle)))
        self._go_on(handle.value)
        return self.shrunk

    @property
    def shrunk(self) -> Shrunk:
        """Of the last change of ranks."""
        raw = CShrunk()
        self._check(lib.lcomm_shrunk_get(self._handle_now(), ctypes.byref(raw)))
        return Shrunk(*_fields_of(raw))._replace(finished=bool(raw.finished))

    def leave(self) -> None:
        """This rank asks to leave: with the next regroup() it goes. Local, from any thread.

        It takes part in all calls until then. Raises UnsupportedError where it is not elastic.
        """
        self._check(lib.lcomm_leave(self._handle_now()))

    @property
    def changes(self) -> Changes:
        """What was asked for until the last wait_tensors() or barrier() ended.

        Alike on all ranks, but `leaves`. Local. Where ranks leave, or wait to join, all call
        regroup().
        """
        raw = CChanges()
        self._check(lib.lcomm_changes_get(self._handle_now(), ctypes.byref(raw)))
        return Changes(raw.leaving, raw.waiting, bool(raw.leaves))

    def regroup(self) -> bool:
        """Go on without ranks that ask to leave, and with newcomers that wait. Collective.

        Between two steps, with no request in flight. Returns False on ranks that have left, where
        it is closed then. Ranks that stay come first, so rank 0 has been there before. What error
        feedback and momentum remember of those that leave goes to the others. Newcomers add the
        same tensors and residuals before the next step or call with one, and are sent weights by
        broadcast(). Raises as shrink(), StateError in a step; after TransportError or
        PeerTimeoutError shrink() is called.
        """
        handle = ctypes.c_void_p()
        self._check(lib.lcomm_regroup(self._handle_now(), ctypes.byref(handle)))
        self._go_on(handle.value)
        return handle.value is not None

    @property
    def regrouped(self) -> Regrouped:
        """Of the last change of ranks, or of this rank's coming."""
        raw = CRegrouped()
        self._check(lib.lcomm_regrouped_get(self._handle_now(), ctypes.byref(raw)))
        return Regrouped(*_fields_of(raw))._replace(is_newcomer=bool(raw.is_newcomer))
