# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""The end of the process: communicators that are still there end in order, the last one first."""

from __future__ import annotations

import atexit
import os
import sys
from typing import TYPE_CHECKING, Dict, Optional

if TYPE_CHECKING:
    from .communicator import Communicator

# A dictionary, because it keeps the order in which they were made.
_open: Dict["Communicator", None] = {}


def remember(comm: "Communicator") -> None:
    _open[comm] = None


def forget(comm: "Communicator") -> None:
    _open.pop(comm, None)


def _last_exception() -> Optional[BaseException]:
    """The exception that ends this process, if one does: Python has shown it by now."""
    return getattr(sys, "last_value", None)


def _end_all() -> None:
    trouble = _last_exception()
    for comm in reversed(list(_open)):
        if comm._process != os.getpid():
            continue
        if trouble is not None:
            comm._leave(trouble)
            continue
        try:
            comm.close()
        except Exception as problem:
            print(f"libcomm: at the end of the process: {problem}", file=sys.stderr)


atexit.register(_end_all)
