# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Ranks that are late, where the policy does not let the others wait for them."""

from __future__ import annotations

import ctypes
from typing import NamedTuple, Optional

from ._core import Core
from ._library import lib
from ._structs import CLateness, CStaleness


class Lateness(NamedTuple):
    """With quorum=: how often a rank was late; libcomm_stats.h says what is counted."""

    sums: int
    late_sums: int  # of which a piece did not use it
    pieces: int
    late_pieces: int  # that did not use it


class Staleness(NamedTuple):
    """With stale=: how old what this rank computes is, in steps."""

    steps: int  # that this rank has made
    under_way: int  # of these: their results were not handed out
    age: int  # of the last gradient
    age_most: int  # of all
    age_mean: float  # over all


class Late(Core):
    """The part of a communicator that knows who is late."""

    @property
    def behind(self) -> int:
        """For how many of the next steps this rank had better compute no gradients.

        With quorum= after wait_tensors(), with stale=N:drop after next_result() was False, and of
        calls with a residual: the results of so many are there already. In these steps it reports
        zeros, waits, and applies the results as always; so it is with the others again. 0 where it
        is not behind, and without either. Local, between two steps.
        """
        steps = ctypes.c_uint64()
        self._check(lib.lcomm_behind(self._handle_now(), ctypes.byref(steps)))
        return steps.value

    def lateness(self, rank: Optional[int] = None) -> Lateness:
        """How often `rank` (None: this one) was late, as the results of this rank say.

        Zeros without quorum=. Local, between two steps. Raises ArgumentError for no rank of these.
        """
        raw, handle = CLateness(), self._handle_now()
        number = self._rank if rank is None else rank
        self._check(lib.lcomm_lateness_get(handle, number, ctypes.byref(raw)))
        return Lateness(raw.sums, raw.late_sums, raw.pieces, raw.late_pieces)

    def staleness(self) -> Staleness:
        """How old this rank's gradients are. Zeros without stale=. Local, between two steps."""
        raw = CStaleness()
        self._check(lib.lcomm_staleness_get(self._handle_now(), ctypes.byref(raw)))
        return Staleness(raw.steps, raw.under_way, raw.age, raw.age_most, raw.age_mean)
