# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Arrays on emulated devices; imported before libcomm. Who imports it is skipped without them."""

import ctypes
import os
import pathlib
import sys

import numpy
import pytest

NAMED = pathlib.Path(os.environ.get("LIBCOMM_LIBRARY", "build/latest"))
FOLDER = (NAMED if NAMED.is_dir() else NAMED.parent).resolve() / "tests" / "python"
MODULE = FOLDER / "libcomm-cuda.so"
if not MODULE.exists():
    pytest.skip(f"no emulated device ({MODULE}): make tests", allow_module_level=True)
if "libcomm" in sys.modules:
    pytest.skip("libcomm was opened without an emulated device", allow_module_level=True)
os.environ["LIBCOMM_LIBRARY"] = str(FOLDER)  # libcomm.so beside that module

DEFAULT_STREAM = 0


class Device:
    """The emulated devices of this process, which is not forked any more."""

    def __init__(self):
        self._module = ctypes.CDLL(str(MODULE))
        self._idle = None
        address, size = ctypes.c_void_p, ctypes.c_size_t
        self._module.device_copy.argtypes = [address, address, size, address]
        self._module.device_memory_get.argtypes = [size, address]
        self._module.cuStreamSynchronize.argtypes = [address]

    def stream(self):
        made = ctypes.c_void_p()
        assert self._module.device_stream_create(ctypes.byref(made)) == 0
        return made.value

    def memory(self, size):
        """Its bytes are NaN until something is written."""
        got = ctypes.c_void_p()
        assert self._module.device_memory_get(size, ctypes.byref(got)) == 0
        return got.value

    def copy(self, destination, source, size, stream):
        assert self._module.device_copy(destination, source, size, stream) == 0

    def finish(self, stream):
        assert self._module.cuStreamSynchronize(stream) == 0

    def keep_busy(self, stream):
        """For some milliseconds: what is put into the stream next comes late."""
        size = 1 << 22
        self._idle = self._idle or [self.memory(size), self.memory(size)]
        for _ in range(8):
            self.copy(*self._idle, size, stream)

    def arrays(self, stream, *values):
        """Arrays with these values, when the stream comes to it, which is late."""
        # to get memory waits for all streams
        made = [Array(self, each, stream) for each in values]
        self.keep_busy(stream)
        for array, each in zip(made, values):
            self.copy(array.address, each.ctypes.data, each.nbytes, stream)
        return made


class Array:
    """What CuPy has: memory of a device, in the order of a stream."""

    def __init__(self, device, like, stream):
        self._device, self._stream, self._like = device, stream, like
        self.address = device.memory(like.nbytes)
        self.__cuda_array_interface__ = {
            "shape": like.shape,
            "typestr": like.dtype.str,
            "data": (self.address, False),
            "version": 3,
            "stream": stream or 1,  # as the interface calls the default one
        }

    def values(self):
        """What it holds when the stream comes to here."""
        found = numpy.empty_like(self._like)
        self._device.copy(found.ctypes.data, self.address, found.nbytes, self._stream)
        self._device.finish(self._stream)
        return found
