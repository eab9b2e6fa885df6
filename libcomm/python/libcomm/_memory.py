# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Memory of the host that the other ranks of a host read where it lies: the fastest there."""

from __future__ import annotations

import ctypes
import weakref
from typing import Any

from ._library import check, lib


def memory(size: int) -> Any:
    """`size` bytes, zeroed, aligned to a page, with the buffer protocol.

    `numpy.frombuffer(libcomm.memory(4 * n), dtype=numpy.float32)` and `torch.frombuffer` make
    arrays of it. It is freed when nothing refers to it any more. It pays from some 64 KiB on.
    Raises OutOfMemoryError.
    """
    address = ctypes.c_void_p()
    check(lib.lcomm_memory_alloc(size, ctypes.byref(address)))
    owner = (ctypes.c_char * size).from_address(address.value or 0)
    weakref.finalize(owner, lib.lcomm_memory_free, address.value).atexit = False
    return owner
