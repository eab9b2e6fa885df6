# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Which arrays are taken, which are refused, and with what advice."""

import array

import libcomm
import numpy
import pytest
from libcomm import _buffers


@pytest.fixture(scope="module")
def comm():
    with libcomm.Communicator.from_env() as alone:
        yield alone


def refused(call, *arguments, **options):
    with pytest.raises(libcomm.ArgumentError) as trouble:
        call(*arguments, **options)
    return str(trouble.value)


def test_arrays_with_gaps_are_refused_with_advice(comm):
    sentence = refused(comm.allreduce, numpy.zeros((4, 4), numpy.float32)[:, 1])
    assert "shape (4,)" in sentence and "numpy.ascontiguousarray" in sentence
    sentence = refused(comm.allreduce, numpy.zeros((4, 3), numpy.float32).T)
    assert "array.T" in sentence
    assert "copies nothing" in refused(comm.allreduce, memoryview(bytearray(8))[::2])


def test_arrays_that_must_not_be_written_are_refused_with_advice(comm):
    fixed = numpy.zeros(4, numpy.float32)
    fixed.flags.writeable = False
    assert "read-only" in refused(comm.allreduce, fixed)
    assert "read-only" in refused(comm.broadcast, b"fixed")
    out = numpy.ones(4, numpy.float32)
    assert not comm.allreduce(fixed, out=out).any()  # as an input it is welcome


def test_types_that_cannot_be_summed_are_refused_with_those_that_can(comm):
    for dtype in ("bool", "int16", "complex64", "uint32"):
        sentence = refused(comm.allreduce, numpy.zeros(3, dtype))
        assert dtype in sentence and "float32, float16, bfloat16" in sentence
    assert "another machine" in refused(comm.allreduce, numpy.zeros(3, ">f4"))


def test_what_is_no_array_is_a_type_error(comm):
    for wrong in (3.0, [1.0, 2.0], None, "text"):
        with pytest.raises(TypeError, match="libcomm takes arrays"):
            comm.allreduce(wrong)


def test_lengths_and_types_that_do_not_fit_are_refused(comm):
    three, four = numpy.zeros(3, numpy.float32), numpy.zeros(4, numpy.float32)
    assert "has 4 elements, but must have 3" in refused(comm.allreduce, three, out=four)
    assert "float32, the result float64" in refused(comm.allreduce, three, out=numpy.zeros(3))
    assert "must have 3" in refused(comm.allgather, three, four)
    assert "must have 4" in refused(comm.reduce_scatter, four, three)
    assert "counts has 2 numbers" in refused(comm.allgather, three, three, counts=[3, 0])
    assert "no operation 'product'" in refused(comm.allreduce, three, op="product")


def test_letters_of_the_buffer_protocol_are_types():
    for letter, name in (("f", "float32"), ("d", "float64"), ("i", "int32"), ("q", "int64")):
        found = _buffers.of(array.array(letter, [1, 2, 3]))
        assert (found.type_name, found.count) == (name, 3)
    assert _buffers.of(bytearray(5)).dtype is libcomm.Dtype.UINT8
    assert _buffers.of(array.array("H", [1])).dtype is None


def test_addresses_are_those_of_the_arrays():
    values = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)
    assert _buffers.of(values).address == values.ctypes.data
    assert _buffers.of(values[1]).address == values.ctypes.data + 12
    assert _buffers.of(memoryview(values)).address == values.ctypes.data
    values.flags.writeable = False
    assert _buffers.of(memoryview(values)).address == values.ctypes.data


class OnDevice:
    """What CuPy shows of an array."""

    def __init__(self, **more):
        self.__cuda_array_interface__ = {
            "shape": (2, 3),
            "typestr": "<f4",
            "data": (4096, False),
            "version": 3,
            **more,
        }


def test_arrays_of_devices_are_read_by_their_interface():
    found = _buffers.of(OnDevice(stream=7))
    assert (found.address, found.count, found.dtype) == (4096, 6, libcomm.Dtype.FLOAT32)
    assert found.is_on_device and found.stream == 7 and not found.is_read_only
    assert _buffers.of(OnDevice(stream=1)).stream == 0  # the default stream
    assert _buffers.of(OnDevice()).stream is None
    assert _buffers.of(OnDevice(strides=(12, 4))).count == 6
    assert "contiguous" in refused(_buffers.of, OnDevice(strides=(24, 4)))
    assert "read-only" in refused(_buffers.writable, OnDevice(data=(4096, True)))


def test_sums_of_devices_are_in_order_with_their_stream(comm, monkeypatch):
    from libcomm import _cuda, _library

    calls = []
    names = ("lcomm_allreduce_on_stream", "lcomm_allreduce_scaled_on_stream", "lcomm_iallreduce")
    for name in names:
        take = lambda *arguments, name=name: calls.append((name, arguments)) or 0  # noqa: E731
        monkeypatch.setattr(_library.lib, name, take)
    monkeypatch.setattr(_cuda, "synchronize", lambda stream: calls.append(("waits", stream)))
    comm.allreduce(OnDevice(stream=7))
    comm.allreduce(OnDevice(stream=7), after=2.0)
    comm._running.discard(comm.iallreduce(OnDevice(stream=8)))
    order = [name if name != "waits" else detail for name, detail in calls]
    assert order == [names[0], names[1], 8, names[2]]
    assert calls[0][1][-1] == calls[1][1][-1] == 7
