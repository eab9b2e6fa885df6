# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""What the library tells, as calls of a Python function."""

from __future__ import annotations

import atexit
from typing import Any, Callable, List, Optional, Union

from ._header import LogLevel
from ._library import check, lib
from ._structs import LogFunction
from .errors import ArgumentError

# A thread of the library may still be in one that was replaced.
_kept: List[Any] = []


def log(
    function: Optional[Callable[[LogLevel, str], Any]], level: Union[LogLevel, str] = "warn"
) -> None:
    """From now on call function(level, sentence), instead of writing to standard error.

    function: None: as before. level: "error", "warn", "info", "debug" or "trace": sentences up to
    it. Called by any thread that is inside the library, several at once too. It must not call
    libcomm; what it raises is printed, and the library goes on. For example
    `libcomm.log(lambda level, sentence: logging.getLogger("libcomm").warning(sentence))`.
    """
    try:
        number = LogLevel[level.upper()] if isinstance(level, str) else LogLevel(level)
    except (KeyError, ValueError):
        names = ", ".join(each.name.lower() for each in LogLevel)
        raise ArgumentError(f"there is no level {level!r}: one of {names}") from None
    called = None
    if function is not None:
        told = function

        def tell(_context: Any, height: int, sentence: bytes) -> None:
            told(LogLevel(height), sentence.decode(errors="replace"))

        called = LogFunction(tell)
        _kept.append(called)
    check(lib.lcomm_log_set(number, called, None))


# Registered before the end of communicators, so called after it: no thread tells anything then.
atexit.register(log, None)
