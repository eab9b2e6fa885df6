# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""What checks of guard= find."""

from __future__ import annotations

from typing import Any, List, NamedTuple

from ._structs import CGuardFigures


class Guard(NamedTuple):
    """What a check of guard= found of a tensor, or of a residual with a name; alike on all ranks.

    libcomm_tensors.h says what error, cosine, residual and waited are.
    """

    tensor: str
    checks: int  # of it so far
    step: int  # that was checked, from 0
    samples: int  # elements that were compared
    error: float
    cosine: float
    residual: float
    waited: int
    fallbacks: int  # how often it went to a milder codec so far
    beyond: bool  # its limit
    codec: str  # that was compared
    next: str  # of the steps from here on


def of(raw: CGuardFigures) -> Guard:
    values: List[Any] = [getattr(raw, name) for name, *_ in raw._fields_]
    texts: List[Any] = [v.decode() if isinstance(v, bytes) else v for v in values]
    return Guard(*texts)._replace(tensor=(raw.tensor or b"").decode(), beyond=bool(raw.beyond))
