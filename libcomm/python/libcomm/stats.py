# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Counters of a communicator."""

from __future__ import annotations

import dataclasses
from typing import Any, Dict, NamedTuple

from ._header import Link
from ._structs import CStats

PerLink = Dict[str, int]


@dataclasses.dataclass(frozen=True)
class Stats:
    """Counters of this rank since the communicator was made, or reset_stats().

    Bytes and messages are counted for each class of link: self, same-device, nvlink, pcie, shm,
    net. Times are in seconds. libcomm_stats.h says what each counts.
    """

    operations: int
    sent_bytes: PerLink
    received_bytes: PerLink
    exact_bytes: PerLink
    not_finite: int
    sent_messages: PerLink
    memory_bytes: int
    encode_s: float
    decode_s: float
    wire_s: float
    wait_s: float
    missed_wakeups: int
    flow_waits: int
    run_hits: int
    run_misses: int
    discarded: int
    guard_checks: int
    guard_beyond: int
    guard_waited: int
    guard_error: float
    guard_cosine: float
    guard_residual: float
    topk_picked: int
    topk_waited: int


class RackStats(NamedTuple):
    """What went to other nodes of this rank's rack, since the begin or reset_stats()."""

    racks: int  # of the communicator; 0: not known, and the others are 0
    sent_bytes: int  # headers included
    sent_messages: int


def _plain(value: Any) -> Any:
    if isinstance(value, (int, float)):
        return value
    return {each.name.lower().replace("_", "-"): int(value[each]) for each in Link}


def of(raw: CStats) -> Stats:
    return Stats(**{name: _plain(getattr(raw, name)) for name, *_ in CStats._fields_})
