# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""The one call of CUDA's driver that is needed: for collectives that know no streams."""

from __future__ import annotations

import ctypes
from typing import Optional

from .errors import SystemCallError

_driver: Optional[ctypes.CDLL] = None


def synchronize(stream: int) -> None:
    """Return when the stream has come to here. The thread has the device's context."""
    global _driver
    if _driver is None:
        try:
            _driver = ctypes.CDLL("libcuda.so.1")
        except OSError as trouble:
            sentence = f"an array is on a device, but CUDA is not here: {trouble}"
            raise SystemCallError(sentence) from None
        _driver.cuStreamSynchronize.argtypes = [ctypes.c_void_p]
        _driver.cuStreamSynchronize.restype = ctypes.c_int
    code = _driver.cuStreamSynchronize(stream)
    if code != 0:
        raise SystemCallError(f"cuStreamSynchronize failed with error {code} of CUDA's driver")
