# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Arrays of all kinds as what the library takes: address, number and type of elements, place.

Nothing is copied. Known are torch tensors, whatever has __cuda_array_interface__ (CuPy, Numba),
numpy arrays, and whatever has the buffer protocol (array.array, bytearray, ctypes).
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple

from ._header import Dtype
from .errors import ArgumentError


class Buffer(NamedTuple):
    """Memory of an array. `dtype` is None for elements that the library cannot sum."""

    address: int
    count: int  # type: ignore[assignment]  # tuples have a method of that name
    dtype: Optional[Dtype]
    itemsize: int
    type_name: str
    is_read_only: bool
    is_on_device: bool
    stream: Optional[int]  # of the device, in whose order the array is; None: in no order
    holder: object  # keeps the memory in its place


_BY_NAME = {each.name.lower(): each for each in Dtype}
# Letters of the buffer protocol: f float32, e float16, d float64, ...
_WHOLE_LETTERS = "bhilq"


def _by_letter(letter: str, itemsize: int) -> str:
    letter = letter.lstrip("@=<")
    if letter in ("f", "d", "e"):
        return f"float{8 * itemsize}"
    if len(letter) == 1 and letter.lower() in _WHOLE_LETTERS:
        return f"{'int' if letter.islower() else 'uint'}{8 * itemsize}"
    return letter


def _not_contiguous(array: Any, advice: str) -> ArgumentError:
    shape = tuple(getattr(array, "shape", ()))
    return ArgumentError(
        f"the elements of this {type(array).__name__} of shape {shape} do not lie one after the "
        f"other in memory, and libcomm copies nothing: {advice}"
    )


# ---------------------------------------------------------------------- numpy


# Of each dtype of numpy: ours, bytes, name. To ask numpy takes longer than a short sum.
_numpy_types: Dict[Any, Tuple[Optional[Dtype], int, str]] = {}


def _numpy_type(dtype: Any) -> Tuple[Optional[Dtype], int, str]:
    if not dtype.isnative:
        raise ArgumentError(
            f"the bytes of {dtype.str} are in the order of another machine: convert it, "
            "array.astype(array.dtype.newbyteorder('='))"
        )
    known = _BY_NAME.get(dtype.name), dtype.itemsize, dtype.name
    if dtype.isbuiltin:  # there are few of these; of others a program may make many
        _numpy_types[dtype] = known
    return known


def _of_numpy(array: Any) -> Buffer:
    flags = array.flags
    if not flags.c_contiguous:
        advice = "pass numpy.ascontiguousarray(array), and copy the result back"
        if flags.f_contiguous:
            advice = "pass array.T, which is contiguous, on all ranks"
        raise _not_contiguous(array, advice)
    dtype, itemsize, name = _numpy_types.get(array.dtype) or _numpy_type(array.dtype)
    return Buffer(
        array.__array_interface__["data"][0],
        array.size,
        dtype,
        itemsize,
        name,
        not flags.writeable,
        False,
        None,
        array,
    )


# ---------------------------------------------------------------------- torch


def _of_torch(tensor: Any) -> Buffer:
    name = str(tensor.dtype).rsplit(".", 1)[-1]
    if str(tensor.layout) != "torch.strided":
        raise ArgumentError(f"libcomm takes dense tensors, not {tensor.layout}: tensor.to_dense()")
    if not tensor.is_contiguous():
        raise _not_contiguous(tensor, "pass tensor.contiguous(), and copy the result back")
    kind = tensor.device.type
    if kind not in ("cpu", "cuda"):
        raise ArgumentError(f"libcomm takes tensors on cpu and cuda, not on {kind}: tensor.cpu()")
    if tensor.is_conj() or tensor.is_neg():
        raise ArgumentError("the tensor is a view that negates: pass tensor.resolve_neg()")
    stream = None
    if kind == "cuda":
        stream = sys.modules["torch"].cuda.current_stream(tensor.device).cuda_stream
    return Buffer(
        tensor.data_ptr(),
        tensor.numel(),
        _BY_NAME.get(name),
        tensor.element_size(),
        name,
        False,
        kind == "cuda",
        stream,
        tensor,
    )


# ------------------------------------------------------- __cuda_array_interface__


def _is_contiguous(
    shape: Tuple[int, ...], strides: Optional[Tuple[int, ...]], itemsize: int
) -> bool:
    expected = itemsize
    for length, stride in zip(reversed(shape), reversed(strides or ())):
        if length > 1 and stride != expected:
            return False
        expected *= length
    return True


def _of_device(array: Any) -> Buffer:
    interface: Dict[str, Any] = array.__cuda_array_interface__
    typestr: str = interface["typestr"]
    shape, itemsize = tuple(interface["shape"]), int(typestr[2:])
    if not _is_contiguous(shape, interface.get("strides"), itemsize) and 0 not in shape:
        raise _not_contiguous(array, "pass a contiguous copy, and copy the result back")
    kinds = {"f": "float", "i": "int", "u": "uint"}
    name = f"{kinds.get(typestr[1], typestr[1])}{8 * itemsize}"
    address, is_read_only = interface["data"]
    count = 1
    for length in shape:
        count *= length
    stream = interface.get("stream")
    return Buffer(
        address or 0,
        count,
        _BY_NAME.get(name),
        itemsize,
        name,
        bool(is_read_only),
        True,
        0 if stream == 1 else stream,  # 1 is how the interface calls the default stream
        array,
    )


# ------------------------------------------------------------- buffer protocol


class _PyBuffer(ctypes.Structure):
    """Py_buffer of CPython, whose layout is part of its stable interface."""

    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.py_object),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    ]


def _address_of(view: memoryview) -> int:
    if not view.readonly and view.nbytes > 0:
        return ctypes.addressof(ctypes.c_char.from_buffer(view))
    raw = _PyBuffer()
    ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(view), ctypes.byref(raw), 0)
    address = raw.buf or 0
    ctypes.pythonapi.PyBuffer_Release(ctypes.byref(raw))
    return address


def _of_memory(array: Any) -> Buffer:
    view = memoryview(array)
    if not view.c_contiguous:
        raise _not_contiguous(array, "pass bytes of it that are")
    name = _by_letter(view.format, view.itemsize)
    return Buffer(
        _address_of(view),
        view.nbytes // view.itemsize,
        _BY_NAME.get(name),
        view.itemsize,
        name,
        view.readonly,
        False,
        None,
        view,
    )


# ------------------------------------------------------------------------- any

_known: Dict[type, Callable[[Any], Buffer]] = {}


def _reader_of(array: Any) -> Callable[[Any], Buffer]:
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        return _of_torch
    if hasattr(array, "__cuda_array_interface__"):
        return _of_device
    if hasattr(array, "__array_interface__") and hasattr(array, "flags"):
        return _of_numpy
    try:
        memoryview(array)
    except TypeError:
        raise TypeError(
            f"libcomm takes arrays (numpy, torch, CuPy, or with the buffer protocol), and this is "
            f"a {type(array).__name__}: {array!r:.60}"
        ) from None
    return _of_memory


def of(array: Any) -> Buffer:
    """The memory of an array. Raises ArgumentError when its elements do not lie together."""
    reader = _known.get(type(array))
    if reader is None:
        reader = _known[type(array)] = _reader_of(array)
    return reader(array)


def writable(array: Any) -> Buffer:
    """The same of one that is written. Raises ArgumentError when it must not be."""
    buffer = of(array)
    if buffer.is_read_only:
        raise ArgumentError(
            f"the result would be written into a {type(array).__name__} that is read-only: pass "
            "an array that may be written, or a copy of this one"
        )
    return buffer
